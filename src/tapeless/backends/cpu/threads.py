"""The parallel runtime: `rt_parallel(fn, ctx, count, threads)` calls fn(ctx, t) for 0 <= t < count on up to `threads` threads.

Gives `address()` of it. It is written in LLVM IR and holds no Python. The threads are started once and wait for work.

Note [The pool]
There is one job at a time: its iterations in ranges, several for each thread, so that a slow one does not hold up the
rest. Its caller publishes it with the number of ranges that are left, runs the first one, and like everybody takes from
the others until there are none; then it waits for those that members of the pool have taken and not finished. A thread
that wakes up late finds nothing left, and nobody has waited for it: on a busy machine a region takes no longer than
without threads. (An OpenMP runtime waits for all of its team, which took milliseconds per region there, and hangs in a
forked child: Note [OpenMP] in openmp.py says when one serves all the same.) A caller that finds the pool taken, by
another thread of Python or from inside a region, works alone. Waiting is spinning for some microseconds, then sleeping
on a futex. A forked child has none of the threads: it is told so by Python, and starts its own. While the main thread
sleeps it looks at signals from time to time (Note [Interrupts] in interrupts.py). Ranges that are left when one has
failed, or the caller was interrupted, are not begun.

Note [Cache lines]
A line takes about 200 ns from core to core, so a region's cost is the number of times that one changes hands. All of a
job is in one line, with the word that its members spin on: one transfer publishes it, one takes a range of it. The
count of finished ranges, on which the caller spins, only grows and has a line of its own.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.cpu import interrupts, openmp
from tapeless.backends.cpu.iterations import EACH
from tapeless.backends.llvm import flushing, host, optimize
from tapeless.lower.core.schedule import MOST_THREADS

SHARES = 4  # ranges for each thread
SPINS = 400  # about 20 us
PAUSE = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.hint(i32 1)"}
FUTEX = {"x86_64": 202, "aarch64": 98}  # numbers of the system call
WAIT, WAKE = 128, 129
POOL = "pool"

RUNTIME = """
; fn, ctx, iterations, ranges, members that may work, ranges that are left, number of the job (a futex of the pool)
%job = type { ptr, ptr, i64, i64, i64, i64, i32 }
@job = internal global [128 x i8] zeroinitializer, align 128
@finished = internal global [32 x i32] zeroinitializer, align 128  ; ranges, ever, by members; a futex of the caller
@taken = internal global i32 0        ; a caller has the pool
@size = internal global i64 0         ; threads started
@sleepers = internal global i32 0
@waiting = internal global i32 0      ; the caller sleeps
@stand_in = internal global ptr null  ; serves in place of the pool
@period = internal constant [2 x i64] [i64 0, i64 PERIOD]  ; nanoseconds

define internal void @run(ptr %job, i64 %range) nounwind {
  %p1 = getelementptr inbounds %job, ptr %job, i32 0, i32 1
  %p2 = getelementptr inbounds %job, ptr %job, i32 0, i32 2
  %p3 = getelementptr inbounds %job, ptr %job, i32 0, i32 3
  %fn = load ptr, ptr %job
  %ctx = load ptr, ptr %p1
  %count = load i64, ptr %p2
  %ranges = load i64, ptr %p3
  %each = udiv i64 %count, %ranges
  %longer = urem i64 %count, %ranges  ; the first ones have one more
  %before0 = call i64 @llvm.smin.i64(i64 %range, i64 %longer)
  %next = add i64 %range, 1
  %before1 = call i64 @llvm.smin.i64(i64 %next, i64 %longer)
  %start = mul i64 %range, %each
  %stop = mul i64 %next, %each
  %t0 = add i64 %start, %before0
  %t1 = add i64 %stop, %before1
  call void @each(ptr %fn, ptr %ctx, i64 %t0, i64 %t1)
  ret void
}

; Takes ranges of the pool's job until there are none; how many.
define internal i32 @take() nounwind {
entry:
  %left = getelementptr inbounds %job, ptr @job, i32 0, i32 5
  br label %look
look:
  %done = phi i32 [ 0, %entry ], [ %done, %claim ], [ %more, %mine ]
  %t = load atomic i64, ptr %left acquire, align 8
  %any = icmp sgt i64 %t, 0
  br i1 %any, label %claim, label %none
claim:
  %less = sub i64 %t, 1
  %pair = cmpxchg ptr %left, i64 %t, i64 %less acq_rel acquire
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %mine, label %look
mine:
  call void @run(ptr @job, i64 %t)
  %more = add i32 %done, 1
  br label %look
none:
  ret i32 %done
}

; A thread of the pool.
define internal ptr @member(ptr %number) nounwind {
entry:
  %allowed = getelementptr inbounds %job, ptr @job, i32 0, i32 4
  %generation = getelementptr inbounds %job, ptr @job, i32 0, i32 6
  %me = ptrtoint ptr %number to i64
  %signals = alloca [16 x i64], align 16
  %control = alloca i32
  RESET                                ; who starts a thread hands its own setting on
  call i32 @sigfillset(ptr %signals)
  call i32 @pthread_sigmask(i32 0, ptr %signals, ptr null)
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %now, %awake ], [ %now, %work ], [ %now, %count ], [ %now, %wake ]
  br label %spin
spin:
  %k = phi i32 [ 0, %idle ], [ %next, %again ]
  %g = load atomic i32, ptr %generation acquire, align 4
  %same = icmp eq i32 %g, %seen
  br i1 %same, label %again, label %awake
again:
  call void @PAUSE
  %next = add i32 %k, 1
  %patient = icmp ult i32 %next, SPINS
  br i1 %patient, label %spin, label %sleep
sleep:
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %rc = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %generation, i32 WAIT, i32 %seen, ptr null, ptr null, i32 0)
  %u = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %awake
awake:
  %now = load atomic i32, ptr %generation acquire, align 4
  %most = load atomic i64, ptr %allowed monotonic, align 8
  %wanted = icmp ult i64 %me, %most
  br i1 %wanted, label %work, label %idle
work:
  %done = call i32 @take()
  %idled = icmp eq i32 %done, 0
  br i1 %idled, label %idle, label %count
count:
  %f = atomicrmw add ptr @finished, i32 %done seq_cst
  %w = load atomic i32, ptr @waiting seq_cst, align 4
  %nobody = icmp eq i32 %w, 0
  br i1 %nobody, label %idle, label %wake
wake:
  %rw = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @finished, i32 WAKE, i32 1, ptr null, ptr null, i32 0)
  br label %idle
}

; Starts threads until there are enough, as far as the system allows.
define internal void @enlarge(i64 %wanted) nounwind {
entry:
  %id = alloca i64
  br label %loop
loop:
  %n = load i64, ptr @size
  %enough = icmp sge i64 %n, %wanted
  br i1 %enough, label %done, label %start
start:
  %number = inttoptr i64 %n to ptr
  %rc = call i32 @pthread_create(ptr %id, ptr null, ptr @member, ptr %number)
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %started, label %done
started:
  %thread = load i64, ptr %id
  call i32 @pthread_detach(i64 %thread)
  %more = add i64 %n, 1
  store i64 %more, ptr @size
  br label %loop
done:
  ret void
}

; In a forked child: none of the threads is there, whatever they were doing.
define void @rt_forked() nounwind {
  %left = getelementptr inbounds %job, ptr @job, i32 0, i32 5
  store i64 0, ptr %left
  store i32 0, ptr @waiting
  store i32 0, ptr @sleepers
  store i64 0, ptr @size
  store i32 0, ptr @taken
  store ptr null, ptr @stand_in
  ret void
}

define void @rt_hand_over(ptr %other) nounwind {
  store ptr %other, ptr @stand_in
  ret void
}

define void @rt_parallel(ptr %fn, ptr %ctx, i64 %count, i64 %threads) nounwind {
entry:
  %some = icmp sgt i64 %count, 1
  %allowed = icmp sgt i64 %threads, 1
  %several = and i1 %some, %allowed
  br i1 %several, label %divide, label %alone
divide:
  %other = load ptr, ptr @stand_in
  %own = icmp eq ptr %other, null
  br i1 %own, label %ask, label %elsewhere
elsewhere:
  call void %other(ptr %fn, ptr %ctx, i64 %count, i64 %threads)
  ret void
ask:
  %p1 = getelementptr inbounds %job, ptr @job, i32 0, i32 1
  %p2 = getelementptr inbounds %job, ptr @job, i32 0, i32 2
  %p3 = getelementptr inbounds %job, ptr @job, i32 0, i32 3
  %p4 = getelementptr inbounds %job, ptr @job, i32 0, i32 4
  %left = getelementptr inbounds %job, ptr @job, i32 0, i32 5
  %generation = getelementptr inbounds %job, ptr @job, i32 0, i32 6
  %few = call i64 @llvm.smin.i64(i64 %threads, i64 MOST_THREADS)
  %used = call i64 @llvm.smin.i64(i64 %few, i64 %count)
  %attempt = cmpxchg ptr @taken, i32 0, i32 1 acq_rel monotonic
  %won = extractvalue { i32, i1 } %attempt, 1
  br i1 %won, label %open, label %alone
alone:
  call void @each(ptr %fn, ptr %ctx, i64 0, i64 %count)
  ret void
open:
  %others = sub i64 %used, 1
  call void @enlarge(i64 %others)
  %shares = mul i64 %used, SHARES
  %ranges = call i64 @llvm.smin.i64(i64 %shares, i64 %count)
  %shared = sub i64 %ranges, 1
  %before = load atomic i32, ptr @finished monotonic, align 4
  store ptr %fn, ptr @job
  store ptr %ctx, ptr %p1
  store i64 %count, ptr %p2
  store i64 %ranges, ptr %p3
  store atomic i64 %others, ptr %p4 monotonic, align 8
  store atomic i64 %shared, ptr %left release, align 8
  %g = atomicrmw add ptr %generation, i32 1 seq_cst
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %quiet = icmp sle i32 %sleeping, 0
  br i1 %quiet, label %join_in, label %call
call:
  %rw = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %generation, i32 WAKE, i32 %sleeping, ptr null, ptr null, i32 0)
  br label %join_in
join_in:
  call void @run(ptr @job, i64 0)
  %mine = call i32 @take()
  %all_shared = trunc i64 %shared to i32
  %theirs = sub i32 %all_shared, %mine
  %target = add i32 %before, %theirs
  br label %spin
spin:
  %k = phi i32 [ 0, %join_in ], [ %next, %again ]
  %f = load atomic i32, ptr @finished acquire, align 4
  %all = icmp eq i32 %f, %target
  br i1 %all, label %close, label %again
again:
  call void @PAUSE
  %next = add i32 %k, 1
  %patient = icmp ult i32 %next, SPINS
  br i1 %patient, label %spin, label %sleep
sleep:                                 ; the last one sees `waiting`, or has already counted itself
  store atomic i32 1, ptr @waiting seq_cst, align 4
  %now = load atomic i32, ptr @finished seq_cst, align 4
  %enough = icmp eq i32 %now, %target
  br i1 %enough, label %woken, label %wait
wait:
  %rc = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @finished, i32 WAIT, i32 %now, ptr @period, ptr null, i32 0)
  %called = icmp eq i64 %rc, 0
  br i1 %called, label %sleep, label %look
look:
  %err = load ptr, ptr %ctx
  call void @rt_look(ptr %err)
  br label %sleep
woken:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %close
close:
  store atomic i32 0, ptr @taken release, align 4
  ret void
}

declare void @rt_look(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare RESET
declare void @PAUSE_NAME
declare i64 @syscall(i64, ...)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
"""


def _text() -> str:
    target, machine = host.host(), platform.machine()
    text = RUNTIME.replace("PAUSE_NAME", PAUSE[machine].replace(" 1", "")).replace("PAUSE", PAUSE[machine])
    text = text.replace("declare RESET", flushing.DECLARED[machine]).replace("RESET", flushing.RESET[machine])
    numbers = {"FUTEX": FUTEX[machine], "WAIT": WAIT, "WAKE": WAKE, "SPINS": SPINS, "SHARES": SHARES}
    for name, number in (numbers | {"MOST_THREADS": MOST_THREADS, "PERIOD": 1000 * interrupts.PERIOD}).items():
        text = text.replace(name, str(number))
    return f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{EACH}{text}'


@functools.cache
def _load() -> Any:
    data = host.machine(opt=0).emit_object(optimize.parse(_text()))  # nothing in it is hot
    jit = host.jit()
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for name in ("rt_parallel", "rt_forked", "rt_hand_over"):
        builder.export_symbol(name)
    builder.import_symbol("rt_look", interrupts.address("rt_look"))
    tracker = builder.link(jit, "tapeless.threads")
    jit.detach()  # the pool's threads run this code to the very end of the process
    tracker.detach()
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(tracker["rt_forked"]))
    return tracker


def runtime() -> str:
    """Who runs loops over threads: the file of an OpenMP runtime, or `pool`."""
    return openmp.name() or POOL


def address() -> int:
    loaded, chosen = _load(), runtime()
    hand_over = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded["rt_hand_over"])
    hand_over(None if chosen == POOL else openmp.address(chosen))
    found: int = loaded["rt_parallel"]
    return found
