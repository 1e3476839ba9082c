"""Ctrl-C in compiled code: what polls ask, and where Python's signal handlers get their turn.

Gives the addresses of `rt_watched`, `rt_poll` and `rt_look`, written in LLVM IR, and `object_code()`, which programs
keep beside theirs so that nothing is compiled when they are loaded. `raised` takes the exception out of an error
record.

Note [Interrupts]
A signal handler of C would be ours only until somebody calls signal.signal: asyncio, IPython and pytest all do. So the
handlers are Python's. Its own C handler only notes a signal; what was set with signal.signal runs when the main thread
comes to PyErr_CheckSignals, holding the interpreter's lock. Compiled code released that when it was called. Every
`PERIOD` the main thread takes it for the while, if it is in a loop that polls (Note [Polls] in backends/llvm/polls.py)
or waits for other threads. A handler that returns lets the code go on. One that raises is what the caller sees: the
exception is put into the error record of the call, the function is left as with a failing check, so that all buffers
are freed, and the caller raises that very exception.

Reading a clock costs more than some of the loops. So time comes from a thread that sets the word which the main
thread's polls read. A poll puts it back to 0. Where nobody has after another `PERIOD`, no loop is running: the thread
sleeps until the next poll wakes it, so that a process that computes nothing has no timer, and one without long loops no
such thread. The word is
    0  nothing to do    1  time to look at signals    2  the same, and the thread sleeps    3  there is no thread
A first poll (2 or 3) does not look: the signals that came before the call were Python's own affair.

Other threads never call Python here: their polls read the error record of their call, which stops them as soon as
another thread of the region has failed or was interrupted. The main thread waits for those before it leaves. Ctrl-C
while the main thread is in Python is Python's affair as ever: what other threads of Python run goes on.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import threading
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.llvm import flushing, host, optimize
from tapeless.backends.llvm.errors import RECORDING
from tapeless.backends.llvm.polls import CONVENTION
from tapeless.lower.ir.loopir import INTERRUPT

PERIOD = 100_000  # microseconds between two looks at signals
INTERRUPTED = -2  # in place of the number of an error site
FUTEX = {"x86_64": 202, "aarch64": 98}  # number of the system call
WAIT, WAKE = 128, 129
EXPORTED = ("rt_watched", "rt_poll", "rt_look", "rt_begin", "rt_fail")
OF_PYTHON = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch")

RUNTIME = """
@word = internal global [16 x i64] zeroinitializer, align 128
@main = internal global i64 0  ; the thread that runs signal handlers

define ptr @rt_watched(ptr %err) nounwind {
  %me = call i64 @pthread_self()
  %main = load i64, ptr @main
  %mine = icmp eq i64 %me, %main
  %place = select i1 %mine, ptr @word, ptr %err
  ret ptr %place
}

; Whether to stop.
define CONVENTION i64 @rt_poll(ptr %err) nounwind {
entry:
  %id = alloca i64
  %signals = alloca [16 x i64], align 16
  %before = alloca [16 x i64], align 16
  %failed = load atomic i64, ptr %err acquire, align 8
  %stop = icmp ne i64 %failed, 0
  %me = call i64 @pthread_self()
  %main = load i64, ptr @main
  %other = icmp ne i64 %me, %main
  %now0 = load atomic i64, ptr @word monotonic, align 8
  %nothing = icmp eq i64 %now0, 0
  %early = or i1 %stop, %other
  %leave = or i1 %early, %nothing
  br i1 %leave, label %done, label %ask
ask:
  %old = atomicrmw xchg ptr @word, i64 0 seq_cst
  switch i64 %old, label %done [
    i64 1, label %look
    i64 2, label %wake
    i64 3, label %start
  ]
look:
  call void @rt_look(ptr %err)
  br label %done
wake:
  %rw = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @word, i32 WAKE, i32 1, ptr null, ptr null, i32 0)
  br label %done
start:                                 ; signals are for the threads of Python
  call i32 @sigfillset(ptr %signals)
  call i32 @pthread_sigmask(i32 2, ptr %signals, ptr %before)
  %rc = call i32 @pthread_create(ptr %id, ptr null, ptr @clock, ptr null)
  call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %started, label %done
started:
  %thread = load i64, ptr %id
  call i32 @pthread_detach(i64 %thread)
  br label %done
done:
  %now = load atomic i64, ptr %err acquire, align 8
  ret i64 %now
}

; Runs signal handlers. The main thread only; others have nothing to do here.
define void @rt_look(ptr %err) nounwind {
entry:
  %control = alloca i32
  %saved = alloca i32
  %me = call i64 @pthread_self()
  %main = load i64, ptr @main
  %mine = icmp eq i64 %me, %main
  %place = getelementptr inbounds i64, ptr %err, i64 INTERRUPT
  %type = load i64, ptr %place
  %quiet = icmp eq i64 %type, 0        ; one exception is enough
  %go = and i1 %mine, %quiet
  br i1 %go, label %ask, label %done
ask:
  SAVE
  RESET
  %state = call i32 @PyGILState_Ensure()
  %rc = call i32 @PyErr_CheckSignals()
  %nothing = icmp eq i32 %rc, 0
  br i1 %nothing, label %leave, label %raised
raised:
  %value = getelementptr inbounds i64, ptr %place, i64 1
  %trace = getelementptr inbounds i64, ptr %place, i64 2
  call void @PyErr_Fetch(ptr %place, ptr %value, ptr %trace)
  %pair = cmpxchg ptr %err, i64 0, i64 CODE acq_rel monotonic
  br label %leave
leave:
  call void @PyGILState_Release(i32 %state)
  RESTORE
  br label %done
done:
  ret void
}

; The thread that tells the time.
define internal ptr @clock(ptr %nothing) nounwind {
entry:
  br label %sleep
sleep:
  call i32 @usleep(i32 PERIOD)
  %tick = cmpxchg ptr @word, i64 0, i64 1 seq_cst monotonic
  %polled = extractvalue { i64, i1 } %tick, 1
  br i1 %polled, label %sleep, label %idle
idle:
  %rest = cmpxchg ptr @word, i64 1, i64 2 seq_cst monotonic
  %resting = extractvalue { i64, i1 } %rest, 1
  br i1 %resting, label %wait, label %sleep
wait:
  %rc = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @word, i32 WAIT, i32 2, ptr null, ptr null, i32 0)
  %now = load atomic i64, ptr @word seq_cst, align 8
  %asleep = icmp eq i64 %now, 2
  br i1 %asleep, label %wait, label %sleep
}

; For a process, or a forked child of one: who runs its handlers.
define void @rt_begin(i64 %thread) nounwind {
  store i64 3, ptr @word
  store i64 %thread, ptr @main
  ret void
}

declare i64 @pthread_self()
declare i32 @usleep(i32)
declare i64 @syscall(i64, ...)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
DECLARED
"""


def _text() -> str:
    target, machine, text = host.host(), platform.machine(), RUNTIME
    for name in ("SAVE", "RESET", "RESTORE", "DECLARED"):
        text = text.replace(f"  {name}\n", f"  {getattr(flushing, name)[machine]}\n")
    text = text.replace("DECLARED", flushing.DECLARED[machine]).replace("CONVENTION", CONVENTION)
    numbers = {"FUTEX": FUTEX[machine], "WAIT": WAIT, "WAKE": WAKE, "PERIOD": PERIOD}
    for name, number in (numbers | {"INTERRUPT": INTERRUPT, "CODE": INTERRUPTED}).items():
        text = text.replace(name, str(number))
    text += RECORDING.format(linkage="", name="rt_fail")
    return f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{text}\n'


@functools.cache
def object_code() -> bytes:
    data: bytes = host.machine(opt=0).emit_object(optimize.parse(_text()))  # nothing in it is hot
    return data


_loaded: Any = None


def address(name: str, data: bytes | None = None) -> int:
    """`data` is the object code, where it is at hand."""
    global _loaded
    if _loaded is None:
        _loaded = _load(data or object_code())
    found: int = _loaded[name]
    return found


def _load(data: bytes) -> Any:
    host.initialize()
    jit = host.jit()
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for name in EXPORTED:
        builder.export_symbol(name)
    for name in OF_PYTHON:
        builder.import_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    tracker = builder.link(jit, "tapeless.interrupts")
    jit.detach()  # its thread runs this code to the very end of the process
    tracker.detach()
    begin = ctypes.CFUNCTYPE(None, ctypes.c_int64)(tracker["rt_begin"])
    begin(threading.main_thread().ident or 0)
    os.register_at_fork(after_in_child=lambda: begin(threading.get_ident()))
    return tracker


def raised(record: Any) -> BaseException | None:
    """The exception that a signal handler raised while compiled code ran. It can be taken once."""
    if not record[INTERRUPT]:
        return None
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    try:
        restore(*(record[INTERRUPT + k] or None for k in range(3)))
    except BaseException as problem:
        return problem
    raise AssertionError("an error record holds no exception")
