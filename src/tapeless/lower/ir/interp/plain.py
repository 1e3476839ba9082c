"""Rules for scalars, checks, scalar results and prints."""

from __future__ import annotations

from collections.abc import Callable

from tapeless.lower.ir.interp.machine import LoopError, Machine, Scope, executes
from tapeless.lower.ir.loopir import Assign, Check, Declare, Let, Print, Progress, Return
from tapeless.ops.table import TABLE

EXACT: dict[str, Callable[..., int]] = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "neg": int.__neg__}


@executes(Let)
def operation(machine: Machine, stm: Let, scope: Scope) -> None:
    values = [machine.value(stm, arg, scope) for arg in stm.args]
    dtype = stm.var.type.dtype.numpy
    if stm.op == "convert":
        values.append(dtype)
    result = TABLE[stm.op].evaluate(*values)
    if result.dtype != dtype:
        raise machine.fault(stm, f"{stm.op} gave {result.dtype}")
    if stm.exact and stm.op in EXACT and EXACT[stm.op](*map(int, values)) != result:
        raise machine.fault(stm, f"an exact {stm.op} overflows: {', '.join(map(str, values))}")
    scope[stm.var] = result


@executes(Declare)
def declare(machine: Machine, stm: Declare, scope: Scope) -> None:
    scope[stm.var] = machine.value(stm, stm.init, scope)


@executes(Assign)
def assign(machine: Machine, stm: Assign, scope: Scope) -> None:
    scope[stm.var] = machine.value(stm, stm.value, scope)


@executes(Check)
def check(machine: Machine, stm: Check, scope: Scope) -> None:
    if not machine.value(stm, stm.cond, scope) and stm.fatal:
        raise LoopError(stm.site, tuple(machine.value(stm, arg, scope) for arg in stm.args))


@executes(Return)
def scalar_result(machine: Machine, stm: Return, scope: Scope) -> None:
    machine.scalars[stm.k] = machine.value(stm, stm.value, scope)


@executes(Print)
def show(machine: Machine, stm: Print, scope: Scope) -> None:
    values = [machine.value(stm, arg, scope) for arg in stm.args]
    print("".join(p if isinstance(p, str) else p.text(values[p.position]) for p in stm.parts), end="")


@executes(Progress)
def progress(machine: Machine, stm: Progress, scope: Scope) -> None:
    machine.value(stm, stm.done, scope)
    machine.value(stm, stm.total, scope)
