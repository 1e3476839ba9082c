"""Lowering of callbacks: a routine that takes sizes and addresses of results, then of arguments, and answers whether it raised."""

from __future__ import annotations

from tapeless.ir.core import Library, Var
from tapeless.ir.types import I64, Atom
from tapeless.lower.core.blas import pointer, temporary
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Call, Pointer
from tapeless.ops.callbacks import AGAIN, FIRST


def lower_callback(lo: Lowerer, vars: tuple[Var, ...], exp: Library) -> None:
    code = lo.code
    if code.parallel:
        raise AssertionError("a callback in a parallel region")
    outs = [temporary(lo, v.type.dtype, tuple(map(lo.dim, v.type.shape)) or (ONE,), v.name) for v in vars]
    words: list[Atom | Pointer] = []
    for v, out in zip(vars, outs, strict=True):
        words += [*(out.shape if v.type.shape else ()), pointer(out)]
    for a in exp.args[int(exp.attr("likes")) :]:
        given = _given(lo, a)
        words += [*(given.shape if a.type.shape else ()), pointer(given)]
    raised = Var("raised", I64)
    code.emit(Call(f"{AGAIN if exp.attr('again') else FIRST}{exp.attr('number')}", tuple(words), raised))
    code.check(code.compare("eq", raised, ZERO), "RuntimeError", "a callback raised an exception")
    for v, out in zip(vars, outs, strict=True):
        if v.type.shape:
            lo.arrays[v] = place = lo.place(v)
            code.copy(out, place)
        else:
            lo.scalars[v] = code.load(out, [ZERO], v.name)


def _given(lo: Lowerer, argument: Atom) -> Loc:
    """An argument in a row."""
    if not argument.type.shape:
        one = temporary(lo, argument.type.dtype, (ONE,), "argument")
        lo.code.store(one, [ZERO], lo.atom(argument))
        return one
    loc = lo.loc(argument)
    if loc.ordered:
        return loc
    packed = temporary(lo, loc.dtype, loc.shape, "argument")
    lo.code.copy(loc, packed)
    return packed
