"""Sorting as loops: a stable merge sort from the bottom up, NaN last, of values or of their positions."""

from __future__ import annotations

from tapeless.ir.core import Library, Var
from tapeless.ir.types import Atom, DType
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Space, Stm, Swap, While


def lower_sort(lo: Lowerer, var: Var, exp: Library) -> None:
    """`sort` gives the values in order, `argsort` the positions that put them in order."""
    code = lo.code
    source = lo.loc(exp.args[0])
    n = source.shape[0]
    positions = exp.name == "argsort"
    dtype = DType.i64 if positions else source.dtype
    here, there = code.allocate(dtype, (n,), "sorted"), code.allocate(dtype, (n,), "merged")
    code.spread([n], lambda i: code.store(here, i, i[0] if positions else code.load(source, i)))
    last = code.let("max", DType.i64, code.sub(n, ONE), ZERO, label="last")
    width = code.declare(ONE, "width")

    def value(loc: Loc, at: Atom) -> tuple[Atom, Atom]:
        """The element at a position (kept inside) and what it is compared by."""
        inside = code.let("min", DType.i64, at, last, label="at")
        item = code.load(loc, [inside])
        return item, code.load(source, [item]) if positions else item

    def merge_all() -> None:
        start = code.declare(ZERO, "start")
        with code.nested() as test:
            more = code.compare("lt", start, n)
        with code.nested() as body:
            middle = code.let("min", DType.i64, code.add(start, width), n, label="middle")
            end = code.let("min", DType.i64, code.add(middle, width), n, label="end")
            left, right = code.declare(start, "left"), code.declare(middle, "right")
            with code.loop(end, start) as k:
                (a, key_a), (b, key_b) = value(here, left), value(here, right)
                second = code.compare("lt", right, end)
                second = code.let("and", DType.bool, second, less(lo, key_b, key_a), label="second")
                empty = code.compare("ge", left, middle)
                second = code.let("or", DType.bool, second, empty, label="second")
                code.store(there, [k], code.let("select", dtype, second, b, a, label="e"))
                step = code.let("convert", DType.i64, second, label="step")
                code.assign(right, code.add(right, step))
                code.assign(left, code.add(left, code.sub(ONE, step)))
            code.assign(start, end)
        code.emit(While(tuple(test), more, tuple(body)))

    with code.nested() as test:
        go = code.compare("lt", width, n)
    with code.nested() as body:
        merge_all()
        if here.buffer.space is Space.heap:
            code.emit(Swap(here.buffer, there.buffer))
        else:
            code.copy(there, here)
        code.assign(width, code.add(width, width))
    stms: tuple[Stm, ...] = tuple(body)
    code.emit(While(tuple(test), go, stms))
    out = lo.place(var)
    lo.arrays[var] = out
    code.copy(here, out)
    code.free(here.buffer)
    code.free(there.buffer)


def less(lo: Lowerer, a: Atom, b: Atom) -> Atom:
    """a comes before b: NaN comes after everything."""
    code = lo.code
    if a.type.dtype is DType.bool:
        a, b = code.let("convert", DType.i64, a), code.let("convert", DType.i64, b)
    smaller = code.compare("lt", a, b)
    if not a.type.dtype.is_float:
        return smaller
    b_nan = code.let("isnan", DType.bool, b, label="nan")
    a_nan = code.let("isnan", DType.bool, a, label="nan")
    a_number = code.let("not", DType.bool, a_nan, label="number")
    before_nan = code.let("and", DType.bool, b_nan, a_number, label="before")
    return code.let("or", DType.bool, smaller, before_nan, label="less")
