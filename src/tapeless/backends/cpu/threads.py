"""The parallel runtime: `tp_parallel(fn, ctx, count, threads)` calls fn(ctx, t0, t1) on up to `threads` threads.

Gives `address()` of it. It is written in LLVM IR and holds no Python. The threads are started once and wait for work.

Note [The pool]
There is one job at a time. Its caller publishes it with a number of tickets, works on it, takes the tickets back that
nobody claimed, and waits for those who claimed one. A thread that wakes up late finds no ticket, and nobody has waited
for it: on a busy machine a region takes no longer than without threads. (An OpenMP runtime waits for all of its team,
which took milliseconds a region there, and hangs in a forked child.) Who works takes ranges of iterations off a
shared counter, several for each thread, so that a slow one does not hold up the rest.
A caller that finds the pool taken, by another thread of Python or from inside a region, works alone.
Waiting is spinning for some microseconds, then sleeping on a futex. A forked child has none of the threads: it notices
by the process number and starts its own.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.llvm import host, optimize

SHARES = 4  # ranges for each thread
MAX_THREADS = 1024
SPINS = 400  # about 20 us
PAUSE = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.hint(i32 1)"}
FUTEX = {"x86_64": 202, "aarch64": 98}  # numbers of the system call
WAIT, WAKE = 128, 129

# A job: fn, ctx, count, length of a range, the counter. It lives on its caller's stack.
RUNTIME = """
%job = type { ptr, ptr, i64, i64, i64 }
@taken = internal global i32 0        ; a caller has the pool
@process = internal global i32 0      ; that started the threads
@size = internal global i64 0         ; threads started
@published = internal global ptr null
@tickets = internal global i64 0
@finished = internal global i32 0     ; a futex of the caller
@expected = internal global i32 -1    ; the number of them that wakes it up
@generation = internal global i32 0   ; of jobs; a futex of the pool
@sleepers = internal global i32 0

define internal void @work(ptr %job) nounwind {
entry:
  %p1 = getelementptr inbounds %job, ptr %job, i32 0, i32 1
  %p2 = getelementptr inbounds %job, ptr %job, i32 0, i32 2
  %p3 = getelementptr inbounds %job, ptr %job, i32 0, i32 3
  %p4 = getelementptr inbounds %job, ptr %job, i32 0, i32 4
  %fn = load ptr, ptr %job
  %ctx = load ptr, ptr %p1
  %count = load i64, ptr %p2
  %length = load i64, ptr %p3
  br label %take
take:
  %t0 = atomicrmw add ptr %p4, i64 %length monotonic
  %more = icmp slt i64 %t0, %count
  br i1 %more, label %run, label %done
run:
  %end = add i64 %t0, %length
  %t1 = call i64 @llvm.smin.i64(i64 %end, i64 %count)
  call void %fn(ptr %ctx, i64 %t0, i64 %t1)
  br label %take
done:
  ret void
}

; A thread of the pool.
define internal ptr @member(ptr %unused) nounwind {
entry:
  %signals = alloca [16 x i64], align 16
  call i32 @sigfillset(ptr %signals)
  call i32 @pthread_sigmask(i32 0, ptr %signals, ptr null)
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %now, %idle_ ]
  br label %spin
spin:
  %k = phi i32 [ 0, %idle ], [ %next, %again ]
  %g = load atomic i32, ptr @generation acquire, align 4
  %same = icmp eq i32 %g, %seen
  br i1 %same, label %again, label %awake
again:
  call void @PAUSE
  %next = add i32 %k, 1
  %patient = icmp ult i32 %next, SPINS
  br i1 %patient, label %spin, label %sleep
sleep:
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %rc = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @generation, i32 WAIT, i32 %seen, ptr null, ptr null, i32 0)
  %u = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %awake
awake:
  %now = load atomic i32, ptr @generation acquire, align 4
  br label %claim
claim:
  %t = load atomic i64, ptr @tickets acquire, align 8
  %any = icmp sgt i64 %t, 0
  br i1 %any, label %try, label %idle_
try:
  %less = sub i64 %t, 1
  %pair = cmpxchg ptr @tickets, i64 %t, i64 %less acq_rel acquire
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %job, label %claim
job:
  %job_ = load ptr, ptr @published
  call void @work(ptr %job_)
  %before = atomicrmw add ptr @finished, i32 1 seq_cst
  %after = add i32 %before, 1
  %e = load atomic i32, ptr @expected seq_cst, align 4
  %last = icmp eq i32 %after, %e
  br i1 %last, label %wake, label %idle_
wake:
  %rw = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @finished, i32 WAKE, i32 1, ptr null, ptr null, i32 0)
  br label %idle_
idle_:
  br label %idle
}

; Starts threads until there are enough, as far as the system allows.
define internal void @enlarge(i64 %wanted) nounwind {
entry:
  %id = alloca i64
  %pid = call i32 @getpid()
  %owner = load i32, ptr @process
  %ours = icmp eq i32 %pid, %owner
  br i1 %ours, label %loop, label %fresh
fresh:
  store i32 %pid, ptr @process
  store i64 0, ptr @size
  store i32 0, ptr @sleepers
  br label %loop
loop:
  %n = load i64, ptr @size
  %enough = icmp sge i64 %n, %wanted
  br i1 %enough, label %done, label %start
start:
  %rc = call i32 @pthread_create(ptr %id, ptr null, ptr @member, ptr null)
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

define void @tp_parallel(ptr %fn, ptr %ctx, i64 %count, i64 %threads) nounwind {
entry:
  %job = alloca %job
  %p1 = getelementptr inbounds %job, ptr %job, i32 0, i32 1
  %p2 = getelementptr inbounds %job, ptr %job, i32 0, i32 2
  %p3 = getelementptr inbounds %job, ptr %job, i32 0, i32 3
  %p4 = getelementptr inbounds %job, ptr %job, i32 0, i32 4
  %few = call i64 @llvm.smin.i64(i64 %threads, i64 MAX_THREADS)
  %used = call i64 @llvm.smin.i64(i64 %few, i64 %count)
  %shares = mul i64 %used, SHARES
  %least = udiv i64 %count, %shares
  %length = call i64 @llvm.smax.i64(i64 %least, i64 1)
  store ptr %fn, ptr %job
  store ptr %ctx, ptr %p1
  store i64 %count, ptr %p2
  store i64 %length, ptr %p3
  store i64 0, ptr %p4
  %pid = call i32 @getpid()
  %attempt = cmpxchg ptr @taken, i32 0, i32 %pid acq_rel monotonic
  %won = extractvalue { i32, i1 } %attempt, 1
  br i1 %won, label %open, label %held
held:                                  ; by this process, or by the one it was forked from
  %holder = extractvalue { i32, i1 } %attempt, 0
  %here = icmp eq i32 %holder, %pid
  br i1 %here, label %alone, label %inherit
inherit:
  %second = cmpxchg ptr @taken, i32 %holder, i32 %pid acq_rel monotonic
  %mine = extractvalue { i32, i1 } %second, 1
  br i1 %mine, label %open, label %alone
alone:
  call void @work(ptr %job)
  ret void
open:
  %others = sub i64 %used, 1
  call void @enlarge(i64 %others)
  store ptr %job, ptr @published
  store atomic i32 -1, ptr @expected seq_cst, align 4
  store atomic i32 0, ptr @finished seq_cst, align 4
  store atomic i64 %others, ptr @tickets release, align 8
  %g = atomicrmw add ptr @generation, i32 1 seq_cst
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %quiet = icmp sle i32 %sleeping, 0
  br i1 %quiet, label %join_in, label %call
call:
  %wanted = trunc i64 %others to i32
  %rw = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @generation, i32 WAKE, i32 %wanted, ptr null, ptr null, i32 0)
  br label %join_in
join_in:
  call void @work(ptr %job)
  %left = atomicrmw xchg ptr @tickets, i64 0 acq_rel
  %claimed = sub i64 %others, %left
  %claims = trunc i64 %claimed to i32
  br label %spin
spin:
  %k = phi i32 [ 0, %join_in ], [ %next, %again ]
  %f = load atomic i32, ptr @finished acquire, align 4
  %all = icmp eq i32 %f, %claims
  br i1 %all, label %close, label %again
again:
  call void @PAUSE
  %next = add i32 %k, 1
  %patient = icmp ult i32 %next, SPINS
  br i1 %patient, label %spin, label %sleep
sleep:                                 ; the last one sees `expected`, or has already counted itself
  store atomic i32 %claims, ptr @expected seq_cst, align 4
  %now = load atomic i32, ptr @finished seq_cst, align 4
  %enough = icmp eq i32 %now, %claims
  br i1 %enough, label %close, label %wait
wait:
  %rc = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @finished, i32 WAIT, i32 %now, ptr null, ptr null, i32 0)
  br label %sleep
close:
  store atomic i32 0, ptr @taken release, align 4
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @PAUSE_NAME
declare i64 @syscall(i64, ...)
declare i32 @getpid()
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
"""


def _text() -> str:
    target, machine = host.host(), platform.machine()
    text = RUNTIME.replace("PAUSE_NAME", PAUSE[machine].replace(" 1", "")).replace("PAUSE", PAUSE[machine])
    numbers = {"FUTEX": FUTEX[machine], "WAIT": WAIT, "WAKE": WAKE, "SPINS": SPINS, "SHARES": SHARES}
    for name, number in (numbers | {"MAX_THREADS": MAX_THREADS}).items():
        text = text.replace(name, str(number))
    return f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{text}'


@functools.cache
def _load() -> Any:
    data = host.machine(opt=0).emit_object(optimize.parse(_text()))  # nothing in it is hot
    jit = llvm.create_lljit_compiler(host.machine())
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process().export_symbol("tp_parallel")
    tracker = builder.link(jit, "tapeless.threads")
    jit.detach()  # the pool's threads run this code to the very end of the process
    tracker.detach()
    return tracker


def address() -> int:
    found: int = _load()["tp_parallel"]
    return found
