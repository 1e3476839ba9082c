"""The parallel runtime: `tp_parallel(fn, ctx, count, threads)` calls fn(ctx, t0, t1) on up to `threads` threads.

Gives `address()` of it. It is written in LLVM IR and holds no Python; two ways of starting threads stand behind it.

Note [Two runtimes]
With libgomp, a region costs about 2 us, since its threads wait for the next one; but a child that is forked from a
process which has used it hangs in its first region. The other way starts and joins threads for each region with
pthreads, remembers nothing and so survives a fork. `tp_parallel` calls through a variable, which a forked
child changes. Threads take ranges from a shared counter, a few for each thread, so that a late or slow one does not
hold up the rest, and any number of threads that really start does all the work.
"""

from __future__ import annotations

import ctypes
import functools
import os

import llvmlite.binding as llvm

from tapeless.backends.llvm import host, optimize

SHARES = 4  # ranges for each thread
MAX_THREADS = 1024

# The work of a region: fn, ctx, count, length of a range, the counter.
RUNTIME = f"""
%work = type {{ ptr, ptr, i64, i64, i64 }}
@tp_start = global ptr @tp_start_pthreads

define internal ptr @worker(ptr %work) nounwind {{
entry:
  %p1 = getelementptr inbounds %work, ptr %work, i32 0, i32 1
  %p2 = getelementptr inbounds %work, ptr %work, i32 0, i32 2
  %p3 = getelementptr inbounds %work, ptr %work, i32 0, i32 3
  %p4 = getelementptr inbounds %work, ptr %work, i32 0, i32 4
  %fn = load ptr, ptr %work
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
  ret ptr null
}}

define void @tp_parallel(ptr %fn, ptr %ctx, i64 %count, i64 %threads) nounwind {{
entry:
  %work = alloca %work
  %p1 = getelementptr inbounds %work, ptr %work, i32 0, i32 1
  %p2 = getelementptr inbounds %work, ptr %work, i32 0, i32 2
  %p3 = getelementptr inbounds %work, ptr %work, i32 0, i32 3
  %p4 = getelementptr inbounds %work, ptr %work, i32 0, i32 4
  %few = call i64 @llvm.smin.i64(i64 %threads, i64 {MAX_THREADS})
  %used = call i64 @llvm.smin.i64(i64 %few, i64 %count)
  %shares = mul i64 %used, {SHARES}
  %least = udiv i64 %count, %shares
  %length = call i64 @llvm.smax.i64(i64 %least, i64 1)
  store ptr %fn, ptr %work
  store ptr %ctx, ptr %p1
  store i64 %count, ptr %p2
  store i64 %length, ptr %p3
  store i64 0, ptr %p4
  %start = load ptr, ptr @tp_start
  call void %start(ptr %work, i64 %used)
  ret void
}}

define void @tp_start_pthreads(ptr %work, i64 %threads) nounwind {{
entry:
  %ids = alloca [{MAX_THREADS} x i64]
  br label %loop
loop:
  %k = phi i64 [ 1, %entry ], [ %next, %started ]
  %some = icmp slt i64 %k, %threads
  br i1 %some, label %start, label %run
start:
  %id = getelementptr inbounds i64, ptr %ids, i64 %k
  %code = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr %work)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %started, label %run
started:
  %next = add i64 %k, 1
  br label %loop
run:
  %all = phi i64 [ %k, %loop ], [ %k, %start ]
  call ptr @worker(ptr %work)
  br label %join
join:
  %j = phi i64 [ 1, %run ], [ %after, %joining ]
  %left = icmp slt i64 %j, %all
  br i1 %left, label %joining, label %done
joining:
  %place = getelementptr inbounds i64, ptr %ids, i64 %j
  %thread = load i64, ptr %place
  call i32 @pthread_join(i64 %thread, ptr null)
  %after = add i64 %j, 1
  br label %join
done:
  ret void
}}

define void @tp_start_gomp(ptr %work, i64 %threads) nounwind {{
  %n = trunc i64 %threads to i32
  call void @GOMP_parallel(ptr @worker, ptr %work, i32 %n, i32 0)
  ret void
}}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare void @GOMP_parallel(ptr, ptr, i32, i32)
"""


class Runtime:
    """The loaded runtime. `use` chooses how threads start: "gomp" or "pthreads"."""

    def __init__(self) -> None:
        target = host.host()
        gomp = _gomp()
        text = RUNTIME
        if gomp is None:  # the name must exist, and is not called
            text = text.replace(
                "declare void @GOMP_parallel(ptr, ptr, i32, i32)",
                "define internal void @GOMP_parallel(ptr %f, ptr %d, i32 %n, i32 %g) { ret void }",
            )
        module = optimize.parse(f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{text}')
        data = optimize.to_object(module)
        builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        names = ("tp_parallel", "tp_start", "tp_start_gomp", "tp_start_pthreads")
        for name in names:
            builder.export_symbol(name)
        if gomp is not None:
            builder.import_symbol("GOMP_parallel", gomp)
        self._jit = llvm.create_lljit_compiler(host.machine())
        self._tracker = builder.link(self._jit, "tapeless.threads")
        self.address: int = self._tracker["tp_parallel"]
        self._start = ctypes.c_void_p.from_address(self._tracker["tp_start"])
        self.use("gomp" if gomp is not None else "pthreads")
        os.register_at_fork(after_in_child=lambda: self.use("pthreads"))

    def use(self, way: str) -> None:
        self.way = way
        self._start.value = self._tracker[f"tp_start_{way}"]


def _gomp() -> int | None:
    if os.environ.get("TAPELESS_THREADS") == "pthreads":
        return None
    try:
        library = ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None
    return ctypes.cast(library.GOMP_parallel, ctypes.c_void_p).value


@functools.cache
def runtime() -> Runtime:
    return Runtime()


def address() -> int:
    return runtime().address
