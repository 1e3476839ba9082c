"""Kernels on threads: each becomes a function of one iteration, which the parallel runtime calls.

`write` takes a launch and the code around it. What is handed over travels in a context (handover.py): the error record,
the first index, then scalars and pointers.

Note [Regions]
There is one level of regions: a `threads` loop inside another runs in its thread, one iteration after the other.
`rt_parallel(fn, ctx, count, threads)` calls fn(ctx, t) for 0 <= t < count: an iteration is a chunk of a sweep, so there are
few. A failing check leaves its iteration; the runtime finds the error record in the first word of the context, and
begins no other one.
"""

from __future__ import annotations

from tapeless.backends.llvm import errors, stopping
from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.handover import Context
from tapeless.backends.llvm.writer import REGISTER, Writer
from tapeless.ir.types import DType, Var
from tapeless.lower.ir.loopir import Buffer, For, Launch


@emits(Launch)
def write(outer: Code, stm: Launch) -> None:
    w, shared, kernel = outer.w, outer.shared, stm.kernel
    loop = kernel.loop
    lo, hi = outer.index(loop.lo), outer.index(loop.hi)
    count = _count(w, lo, hi, loop.step)
    inner = type(outer)(shared, Writer(w.module, shared.flags), "", parallel=True)
    context = Context(outer, inner)
    first = context.slot("i64", lo)
    context.values(p for p in kernel.params if isinstance(p, Var))
    context.pointers(p for p in kernel.params if isinstance(p, Buffer))
    context.close()
    function = _write_function(inner, kernel.name, loop, first)
    _call(outer, function, context.address, count, inner.can_fail)


def _count(w: Writer, lo: str, hi: str, step: int) -> str:
    """The number of iterations."""
    first, last = (lo, hi) if step > 0 else (hi, lo)
    span = w.intrinsic("smax", "i64", last if first == "0" else w.let(f"sub i64 {last}, {first}"), "0")
    if abs(step) == 1:
        return span
    return w.let(f"udiv i64 {w.let(f'add i64 {span}, {abs(step) - 1}')}, {abs(step)}")


def _write_function(code: Code, name: str, stm: For, first: str) -> str:
    w = code.w
    code.start()
    stopping.begin(code, stm.body)
    index = "%t" if stm.step == 1 else w.let(f"mul nsw i64 %t, {stm.step}")
    if first != "0":
        index = w.let(f"add nsw i64 {first}, {index}", stm.var.name)
    if stm.var.type.dtype is not DType.i64:
        index = w.let(f"trunc i64 {index} to {REGISTER[stm.var.type.dtype]}")
    code.values[stm.var] = (index,)
    code.block(stm.body)
    stopping.finish(code)
    params = "ptr noalias readonly %context, i64 %t"
    return w.module.function(name, params, code.shared.attributes("noinline "), w.body())


def _call(code: Code, function: str, context: str, count: str, can_fail: bool) -> None:
    threads = code.value(code.shared.program.threads)[0]
    launch = code.module.declare("rt_parallel", "void @(ptr, ptr, i64, i64) nounwind")
    code.w.do(f"call void {launch}(ptr {function}, ptr {context}, i64 {count}, i64 {threads})")
    if can_fail:
        errors.leave_if_failed(code)
