"""Lowering of rows of the ops table, of tests, and of what people see."""

from __future__ import annotations

from dataclasses import replace

from tapeless.errors import WARNINGS
from tapeless.ir.core import Apply, Check, Print, Progress, Shown
from tapeless.ir.types import Const, Var
from tapeless.lower.core.code import ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.ir import loopir


@lowers(Apply)
def lower_apply(lo: Lowerer, vars: tuple[Var, ...], exp: Apply) -> None:
    (v,) = vars
    name, args = exp.op, exp.args
    if name in ("identity", "stop_gradient"):
        lo.scalars[v] = lo.atom(args[0])
    else:
        lo.scalars[v] = lo.code.let(name, v.type.dtype, *(lo.atom(a) for a in args), label=v.name)
    match name, args:
        case "eq", (Var() as size, Const() as number) if size in lo.function.sizes:
            lo.tests[v] = (size, number)


@lowers(Check)
def lower_check(lo: Lowerer, vars: tuple[Var, ...], exp: Check) -> None:
    cond = exp.cond
    lo.code.check(lo.atom(cond), exp.error, exp.message, *(lo.atom(a) for a in exp.args))
    if isinstance(cond, Var) and cond in lo.tests and exp.error not in WARNINGS:
        size, number = lo.tests[cond]
        lo.tested = {**lo.tested, size: number}


@lowers(Progress)
def lower_progress(lo: Lowerer, vars: tuple[Var, ...], exp: Progress) -> None:
    """Nothing where many are at work at once."""
    if not lo.code.parallel and not lo.schedule.apart:
        lo.code.emit(loopir.Progress(lo.atom(exp.done), lo.atom(exp.total), exp.backward))


@lowers(Print)
def lower_print(lo: Lowerer, vars: tuple[Var, ...], exp: Print) -> None:
    """Arrays print element by element in brackets, as NumPy does on one line."""
    parts, args = exp.parts, exp.args
    code = lo.code
    if not any(a.type.shape for a in args):
        code.emit(loopir.Print(parts, tuple(lo.atom(a) for a in args)))
        return
    for part in parts:
        if isinstance(part, str):
            code.emit(loopir.Print((part,), ()))
        elif not args[part.position].type.shape:
            code.emit(loopir.Print((replace(part, position=0),), (lo.atom(args[part.position]),)))
        else:
            _print_array(lo, lo.loc(args[part.position]))


def _print_array(lo: Lowerer, loc: Loc) -> None:
    code = lo.code
    code.emit(loopir.Print(("[",), ()))
    with code.loop(loc.shape[0]) as i:
        code.branch(code.compare("gt", i, ZERO), lambda: code.emit(loopir.Print((" ",), ())))
        if loc.rank == 1:
            code.emit(loopir.Print((Shown(0),), (code.load(loc, [i]),)))
        else:
            _print_array(lo, code.inside(loc, i))
    code.emit(loopir.Print(("]",), ()))
