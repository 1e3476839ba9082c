"""Loops over threads: the body becomes a function, which the parallel runtime calls with ranges of iterations.

`write` takes a `threads` loop and the code around it. What the body takes from outside travels in a context of 8-byte
slots: the error record, the first index, then scalars and pointers.

Note [Regions]
There is one level of regions: a `threads` loop inside another runs in its thread, one iteration after the other.
`rt_parallel(fn, ctx, count, threads)` calls fn(ctx, t0, t1) for ranges that make up 0 <= t < count; without threads to
share the work, the function is called for the whole range at once. A failing check leaves the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapeless.backends.llvm.uses import Counts
from tapeless.backends.llvm.writer import MEMORY, REGISTER, Bounds, Writer, symbol
from tapeless.ir.types import DType, Var
from tapeless.lower.loopir import LARGEST_SIZE, Buffer, For

if TYPE_CHECKING:
    from tapeless.backends.llvm.code import Code


def write(outer: Code, stm: For) -> None:
    w, shared = outer.w, outer.shared
    counts = Counts(stm.body)
    local = counts.private(shared.mentions) | counts.allocated
    scalars = [var for var in counts.free if var is not stm.var]
    buffers = [buffer for buffer in counts.buffers if buffer not in local]
    lo, hi = outer.index(stm.lo), outer.index(stm.hi)
    count = _count(w, lo, hi, stm.step)

    shared.regions += 1
    name = f"{shared.program.name}.region{shared.regions}"
    inner = type(outer)(shared, Writer(w.module, shared.flags), "", parallel=True)
    context, first = _hand_over(outer, inner, lo, scalars, buffers)
    _write_function(inner, name, stm, first)
    _call(outer, name, context, count, counts.can_fail)


def _count(w: Writer, lo: str, hi: str, step: int) -> str:
    """The number of iterations."""
    first, last = (lo, hi) if step > 0 else (hi, lo)
    span = w.intrinsic("smax", "i64", w.let(f"sub i64 {last}, {first}"), "0")
    if abs(step) == 1:
        return span
    return w.let(f"udiv i64 {w.let(f'add i64 {span}, {abs(step) - 1}')}, {abs(step)}")


def _hand_over(outer: Code, inner: Code, lo: str, scalars: list[Var], buffers: list[Buffer]) -> tuple[str, str]:
    """Fills the context outside and reads it inside; gives the context's address and the first index inside."""
    ow, iw = outer.w, inner.w
    context, used = ow.fresh("context"), 0
    invariant = ", !invariant.load " + iw.module.node("")
    iw.open("start")

    sizes = set(outer.shared.program.params[: outer.shared.program.sizes])
    size = ", !range " + iw.module.node(f"i64 0, i64 {LARGEST_SIZE + 1}")

    def slot(kind: str, value: str, more: str = "") -> str:
        nonlocal used
        ow.do(f"store {kind} {value}, ptr {ow.slot(context, used)}, align 8")
        place = iw.slot("%context", used)
        used += 1
        return iw.let(f"load {kind}, ptr {place}, align 8{invariant}{more}")

    inner.err = slot("ptr", outer.err)
    first = slot("i64", lo)
    for var in scalars:
        dtype = var.type.dtype
        value = outer.to_memory(dtype, outer.value(var))
        inner.values[var] = inner.from_memory(
            dtype, [slot(MEMORY[dtype], part, size if var in sizes else "") for part in value]
        )
    for buffer in buffers:
        inner.pointers[buffer] = slot("ptr", outer.pointer(buffer))
    ow.allocas.append(f"  {context} = alloca [{used} x i64], align 8")
    return context, first


def _write_function(code: Code, name: str, stm: For, first: str) -> None:
    w = code.w

    def iteration(t: str) -> None:
        offset = t if stm.step == 1 else w.let(f"mul nsw i64 {t}, {stm.step}")
        index = w.let(f"add nsw i64 {first}, {offset}", stm.var.name)
        if stm.var.type.dtype is not DType.i64:
            index = w.let(f"trunc i64 {index} to {REGISTER[stm.var.type.dtype]}")
        code.values[stm.var] = (index,)
        code.block(stm.body)

    code.start()
    code.counted(Bounds("i64", "%t0", "%t1"), "t", iteration, stm.body, stm.vectorize)
    code.finish()
    header = f"define internal void {symbol(name)}(ptr noalias readonly %context, i64 %t0, i64 %t1)"
    w.module.add(f"{header} {code.shared.attributes('noinline ')} {{\n{w.body()}\n}}\n")


def _call(code: Code, name: str, context: str, count: str, can_fail: bool) -> None:
    w = code.w
    several, alone, after = w.label("several"), w.label("alone"), w.label("joined")
    threads = code.value(code.shared.program.threads)[0]
    many = w.op("and", "i1", w.let(f"icmp sgt i64 {threads}, 1"), w.let(f"icmp sgt i64 {count}, 1"))
    w.branch(many, several, alone)
    w.open(several)
    runtime = w.module.declare("rt_parallel", "void @(ptr, ptr, i64, i64) nounwind")
    w.do(f"call void {runtime}(ptr {symbol(name)}, ptr {context}, i64 {count}, i64 {threads})")
    w.jump(after)
    w.open(alone)
    w.do(f"call void {symbol(name)}(ptr {context}, i64 0, i64 {count})")
    w.jump(after)
    w.open(after)
    if can_fail:
        ok = w.label("ok")
        error = w.let(f"load i64, ptr {code.err}, align 8")
        w.branch(w.let(f"icmp eq i64 {error}, 0"), ok, "failed", w.weights(1 << 20, 1))
        w.open(ok)
        code.can_fail = True
