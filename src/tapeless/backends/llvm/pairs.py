"""Two divisions by one number in a loop that is not counted: one division of two numbers.

Takes the body of a `while` loop in Loop IR and writes it. Such a loop stays scalar, and the divider is its narrowest
part; a processor divides two numbers in the time of one. A quotient and its slope are such divisions. Each is rounded
as it would be alone. Counted loops are left to LLVM, which may have eight ways around in a vector.
"""

from __future__ import annotations

from collections.abc import Mapping

from tapeless.backends.llvm.code import Code
from tapeless.ir.types import F64, Atom, Const, Var
from tapeless.lower.loopir import Assign, Declare, Let, Load, Store
from tapeless.lower.walk import Block

PAIR = "<2 x double>"


def write(code: Code, body: Block) -> None:
    seconds = _pairs(body)
    done: set[Var] = set()
    for stm in body:
        if isinstance(stm, Let) and stm.var in done:
            continue
        second = seconds.get(stm.var) if isinstance(stm, Let) else None
        if isinstance(stm, Let) and second is not None:
            _divide(code, stm, second)
            done.add(second.var)
        else:
            code.statement(stm)


def _pairs(body: Block) -> Mapping[Var, Let]:
    """By the first of two quotients: the second, if nothing happens in between and its dividend is not of this body, so
    that it can come as early.
    """
    inside = {stm.var for stm in body if isinstance(stm, Let | Load | Declare | Assign)}
    waiting: dict[Var, Let] = {}
    found: dict[Var, Let] = {}
    for stm in body:
        if isinstance(stm, Assign):
            waiting.pop(stm.var, None)
        elif not isinstance(stm, Let | Load | Declare | Store):
            waiting.clear()
        if not isinstance(stm, Let) or stm.var.type != F64 or stm.op not in ("div", "reciprocal"):
            continue
        divisor = stm.args[-1]
        if not isinstance(divisor, Var):
            continue
        first = waiting.pop(divisor, None)
        if first is not None and _dividend(stm) not in inside:
            found[first.var] = stm
        else:
            waiting[divisor] = stm
    return found


def _dividend(stm: Let) -> Atom:
    return stm.args[0] if stm.op == "div" else Const(1.0)


def _divide(code: Code, first: Let, second: Let) -> None:
    w = code.w
    w.flags = code.shared.flags

    def pair(a: Atom, b: Atom) -> str:
        one = w.let(f"insertelement {PAIR} poison, double {code.value(a)[0]}, i32 0")
        return w.let(f"insertelement {PAIR} {one}, double {code.value(b)[0]}, i32 1")

    divisor = first.args[-1]
    both = w.fp("fdiv", PAIR, pair(_dividend(first), _dividend(second)), pair(divisor, divisor))
    for k, stm in enumerate((first, second)):
        code.values[stm.var] = (w.let(f"extractelement {PAIR} {both}, i32 {k}"),)
