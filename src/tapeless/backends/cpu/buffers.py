"""Buffers of compiled code: small ones from the C library; of large ones some are kept for the next use.

Gives the addresses of `EXPORTED`: `rt_new(count, bytes of each, error record)`, `rt_drop(pointer)` and `rt_drop_all(pointers, count)`, which
programs call, and what large ones come from, `rt_allocate(size)` and `rt_release(pointer)`; besides `trim()`, which gives everything kept back to the system, and `kept()` in bytes. Written in
LLVM IR and holds no Python.

Note [Kept buffers]
The system takes a large buffer back when it is freed, and clears every page of the next one: that is often as much work
as filling it. So what compiled code frees is kept, up to a share of the memory that the process may use, the newest
first in use again, the oldest first to go. A buffer serves only what is at least four fifths of its size; where none
does, the oldest is made as long as the new one, and others go to make up for it, so that arrays which grow a little
each time do not pile up. When the system has no more memory, all goes back and the allocation is tried once more. A
thread that finds another one at the list does without it: nobody waits, and a child that was forked at that moment
starts with an empty list.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.cpu import interrupts, pages
from tapeless.backends.llvm import host, optimize
from tapeless.backends.llvm.heap import OUT_OF_MEMORY

LARGE = 256 << 10  # bytes of a buffer that is worth keeping
SLOTS = 64
WORDS = {
    "SLOTS": SLOTS,
    "LARGE": LARGE,
    "MOST_ELEMENTS": 2**57,
    "TOO_MUCH": 2**62,
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
    "PAGE_LESS_ONE": pages.PAGE - 1,
}
SHARE = 16  # of the memory, the part that may be kept
EXPORTED = ("rt_new", "rt_drop", "rt_drop_all", "rt_allocate", "rt_release")
LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")

RUNTIME = """
%entry = type { ptr, i64 }
@list = internal global [SLOTS x %entry] zeroinitializer, align 64  ; the oldest first
@count = internal global i64 0
@total = internal global i64 0        ; bytes
@limit = internal global i64 LIMIT
@taken = internal global i32 0        ; a thread is at the list

define internal i1 @enter() nounwind {
  %pair = cmpxchg ptr @taken, i32 0, i32 1 acq_rel monotonic
  %won = extractvalue { i32, i1 } %pair, 1
  ret i1 %won
}

define internal void @leave() nounwind {
  store atomic i32 0, ptr @taken release, align 4
  ret void
}

; Takes entry k off the list.
define internal ptr @remove(i64 %k) nounwind {
  %at = getelementptr inbounds %entry, ptr @list, i64 %k
  %sizes = getelementptr inbounds %entry, ptr %at, i32 0, i32 1
  %p = load ptr, ptr %at
  %size = load i64, ptr %sizes
  %n = load i64, ptr @count
  %total = load i64, ptr @total
  %less = sub i64 %total, %size
  store i64 %less, ptr @total
  %last = sub i64 %n, 1
  store i64 %last, ptr @count
  %behind = sub i64 %last, %k
  %bytes = mul i64 %behind, 16
  %next = getelementptr inbounds %entry, ptr %at, i64 1
  call void @llvm.memmove.p0.p0.i64(ptr %at, ptr %next, i64 %bytes, i1 false)
  ret ptr %p
}

; Frees the oldest entries until there is room for so many bytes more, and for an entry.
define internal void @make_room(i64 %size) nounwind {
entry:
  br label %loop
loop:
  %n = load i64, ptr @count
  %total = load i64, ptr @total
  %limit = load i64, ptr @limit
  %after = add i64 %total, %size
  %much = icmp ugt i64 %after, %limit
  %full = icmp eq i64 %n, SLOTS
  %over = or i1 %much, %full
  %any = icmp ugt i64 %n, 0
  %go = and i1 %over, %any
  br i1 %go, label %drop, label %done
drop:
  %p = call ptr @remove(i64 0)
  call void @dispose(ptr %p)
  br label %loop
done:
  ret void
}

; The oldest entry, made as long as this; older ones go until they make up for it. Null where there is none.
define internal ptr @exchange(i64 %size) nounwind {
entry:
  br label %loop
loop:
  %freed = phi i64 [ 0, %entry ], [ %sum, %drop ]
  %n = load i64, ptr @count
  %any = icmp ugt i64 %n, 0
  br i1 %any, label %more, label %nothing
more:
  %first = load i64, ptr getelementptr inbounds (%entry, ptr @list, i64 0, i32 1)
  %sum = add i64 %freed, %first
  %p = call ptr @remove(i64 0)
  %enough = icmp uge i64 %sum, %size
  %last = icmp eq i64 %n, 1
  %stop = or i1 %enough, %last
  br i1 %stop, label %change, label %drop
drop:
  call void @dispose(ptr %p)
  br label %loop
change:
  %q = call ptr @resize(ptr %p, i64 %size)
  ret ptr %q
nothing:
  ret ptr null
}

; The newest entry that fits, or null.
define internal ptr @find(i64 %size) nounwind {
entry:
  %quarter = lshr i64 %size, 2
  %most = add i64 %size, %quarter
  %n = load i64, ptr @count
  br label %loop
loop:
  %left = phi i64 [ %n, %entry ], [ %k, %look ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %missing, label %look
look:
  %k = sub i64 %left, 1
  %sizes = getelementptr inbounds %entry, ptr @list, i64 %k, i32 1
  %has = load i64, ptr %sizes
  %enough = icmp uge i64 %has, %size
  %close = icmp ule i64 %has, %most
  %fits = and i1 %enough, %close
  br i1 %fits, label %found, label %loop
found:
  %p = call ptr @remove(i64 %k)
  ret ptr %p
missing:
  ret ptr null
}

define i64 @rt_trim() nounwind {
entry:
  %in = call i1 @enter()
  br i1 %in, label %drop, label %done
drop:
  %total = load i64, ptr @total
  %all = load i64, ptr @limit
  call void @make_room(i64 %all)
  call void @leave()
  ret i64 %total
done:
  ret i64 0
}

define i64 @rt_kept() nounwind {
  %total = load atomic i64, ptr @total monotonic, align 8
  ret i64 %total
}

define void @rt_keep(i64 %limit) nounwind {
  store atomic i64 %limit, ptr @limit monotonic, align 8
  %freed = call i64 @rt_trim()
  ret void
}

; In a forked child: a list that somebody was at is in an unknown state.
define void @rt_forked() nounwind {
entry:
  %busy = load i32, ptr @taken
  %sound = icmp eq i32 %busy, 0
  br i1 %sound, label %done, label %forget
forget:
  store i64 0, ptr @count
  store i64 0, ptr @total
  store i32 0, ptr @taken
  br label %done
done:
  ret void
}

define ptr @rt_allocate(i64 %size) nounwind {
entry:
  %in = call i1 @enter()
  br i1 %in, label %look, label %fresh
look:
  %old = call ptr @find(i64 %size)
  %missing = icmp eq ptr %old, null
  br i1 %missing, label %exchange, label %reused
exchange:
  %other = call ptr @exchange(i64 %size)
  call void @leave()
  %none = icmp eq ptr %other, null
  br i1 %none, label %fresh, label %changed
changed:
  ret ptr %other
reused:
  call void @leave()
  ret ptr %old
fresh:
  %p = call ptr @obtain(i64 %size)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %again, label %got
again:
  %freed = call i64 @rt_trim()
  %q = call ptr @obtain(i64 %size)
  ret ptr %q
got:
  ret ptr %p
}

define void @rt_release(ptr %p) nounwind {
entry:
  %nothing = icmp eq ptr %p, null
  br i1 %nothing, label %done, label %some
some:
  %size = call i64 @length(ptr %p)
  %large = icmp uge i64 %size, LARGE
  br i1 %large, label %try, label %free
try:
  %in = call i1 @enter()
  br i1 %in, label %inside, label %free
inside:
  %limit = load i64, ptr @limit
  %fits = icmp ule i64 %size, %limit
  br i1 %fits, label %keep, label %beyond
beyond:
  call void @leave()
  br label %free
keep:
  call void @make_room(i64 %size)
  %n = load i64, ptr @count
  %at = getelementptr inbounds %entry, ptr @list, i64 %n
  %sizes = getelementptr inbounds %entry, ptr %at, i32 0, i32 1
  store ptr %p, ptr %at
  store i64 %size, ptr %sizes
  %total = load i64, ptr @total
  %sum = add i64 %total, %size
  store i64 %sum, ptr @total
  %next = add i64 %n, 1
  store i64 %next, ptr @count
  call void @leave()
  ret void
free:
  call void @dispose(ptr %p)
  ret void
done:
  ret void
}

; So many elements, none where there are fewer than 0; or the error.
define ptr @rt_new(i64 %count, i64 %each, ptr %err) nounwind {
  %none = icmp slt i64 %count, 0
  %n = select i1 %none, i64 0, i64 %count
  %bytes = mul i64 %n, %each
  %more = add i64 %bytes, 64
  %whole = and i64 %more, -64 ; a multiple of 64, and not 0
  %beyond = icmp ugt i64 %n, MOST_ELEMENTS
  %size = select i1 %beyond, i64 TOO_MUCH, i64 %whole
  %is_large = icmp uge i64 %size, LARGE
  br i1 %is_large, label %large, label %small
small:
  %p = call ptr @aligned_alloc(i64 64, i64 %size)
  %p_failed = icmp eq ptr %p, null
  br i1 %p_failed, label %failed, label %small_done
small_done:
  ret ptr %p
large:
  %q = call ptr @rt_allocate(i64 %size)
  %q_failed = icmp eq ptr %q, null
  br i1 %q_failed, label %failed, label %large_done
large_done:
  ret ptr %q
failed:
  call void @rt_fail(ptr %err, i64 OUT_OF_MEMORY, i64 0, i64 0, i64 0)
  ret ptr null
}

; Large buffers begin with a page, others seldom.
define void @rt_drop(ptr %p) nounwind {
  %a = ptrtoint ptr %p to i64
  %rest = and i64 %a, PAGE_LESS_ONE
  %page = icmp eq i64 %rest, 0
  br i1 %page, label %large, label %small
large:
  call void @rt_release(ptr %p)
  ret void
small:
  call void @free(ptr %p)
  ret void
}

define void @rt_drop_all(ptr %pointers, i64 %count) nounwind {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  %place = getelementptr inbounds ptr, ptr %pointers, i64 %k
  %p = load ptr, ptr %place
  %nothing = icmp eq ptr %p, null
  br i1 %nothing, label %step, label %drop
drop:
  store ptr null, ptr %place
  call void @rt_drop(ptr %p)
  br label %step
step:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

declare void @rt_fail(ptr, i64, i64, i64, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _memory() -> int:
    """Bytes that the process may use."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
        found = min(found, int(LIMIT_OF_GROUP.read_text()))
    return found


def _text() -> str:
    target = host.host()
    text = pages.filled(RUNTIME, WORDS | {"LIMIT": _memory() // SHARE}) + pages.text()
    return f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{text}'


@functools.cache
def _load() -> Any:
    data = host.machine(opt=0).emit_object(optimize.parse(_text()))
    jit = host.jit()
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for name in (*EXPORTED, "rt_trim", "rt_kept", "rt_keep", "rt_forked"):
        builder.export_symbol(name)
    builder.import_symbol("rt_fail", interrupts.address("rt_fail"))
    tracker = builder.link(jit, "tapeless.buffers")
    jit.detach()  # compiled code calls it to the very end of the process
    tracker.detach()
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(tracker["rt_forked"]))
    return tracker


def address(name: str) -> int:
    found: int = _load()[name]
    return found


def trim() -> int:
    """Gives all kept buffers back to the system; how many bytes that were."""
    freed: int = ctypes.CFUNCTYPE(ctypes.c_int64)(address("rt_trim"))()
    return freed


def kept() -> int:
    """Bytes of buffers that nobody uses at the moment."""
    found: int = ctypes.CFUNCTYPE(ctypes.c_int64)(address("rt_kept"))()
    return found


def keep(limit: int | None = None) -> None:
    """At most so many bytes from now on, 0 for none; the usual share of the memory without a number."""
    most = _memory() // SHARE if limit is None else limit
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(address("rt_keep"))(most)
