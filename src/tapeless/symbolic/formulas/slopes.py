"""Derivatives of expressions, by reverse accumulation: what is shared is differentiated once.

`gradient` takes an expression and symbols; gives the derivative by each. Conditions have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.symbolic.formulas.expressions import (
    ONE,
    ZERO,
    Expression,
    add,
    call,
    choice,
    compare,
    divide,
    multiply,
    negative,
    number,
    power,
    subtract,
    symbol,
    total,
)

TWO = number(2)


def _square(x: Expression) -> Expression:
    return power(x, TWO)


def _root(x: Expression) -> Expression:
    return power(x, number(0.5))


SLOPES: dict[str, Callable[[Expression], Expression]] = {
    "exp": lambda x: call("exp", x),
    "log": lambda x: divide(ONE, x),
    "sin": lambda x: call("cos", x),
    "cos": lambda x: negative(call("sin", x)),
    "tan": lambda x: add(ONE, _square(call("tan", x))),
    "sinh": lambda x: call("cosh", x),
    "cosh": lambda x: call("sinh", x),
    "tanh": lambda x: subtract(ONE, _square(call("tanh", x))),
    "asin": lambda x: divide(ONE, _root(subtract(ONE, _square(x)))),
    "acos": lambda x: negative(divide(ONE, _root(subtract(ONE, _square(x))))),
    "atan": lambda x: divide(ONE, add(ONE, _square(x))),
    "asinh": lambda x: divide(ONE, _root(add(ONE, _square(x)))),
    "acosh": lambda x: divide(ONE, _root(subtract(_square(x), ONE))),
    "atanh": lambda x: divide(ONE, subtract(ONE, _square(x))),
    "log1p": lambda x: divide(ONE, add(ONE, x)),
    "expm1": lambda x: call("exp", x),
    "log2": lambda x: divide(ONE, multiply(x, call("log", TWO))),
    "log10": lambda x: divide(ONE, multiply(x, call("log", number(10)))),
    "erf": lambda x: divide(multiply(TWO, call("exp", negative(_square(x)))), _root(symbol("pi"))),
    "erfc": lambda x: negative(divide(multiply(TWO, call("exp", negative(_square(x)))), _root(symbol("pi")))),
    "expit": lambda x: multiply(call("expit", x), subtract(ONE, call("expit", x))),
    "abs": lambda x: choice(compare("gt", x, ZERO), ONE, choice(compare("gt", ZERO, x), number(-1), ZERO)),
    **dict.fromkeys(("floor", "ceil", "rint", "trunc", "sign", "constant"), lambda x: ZERO),
}


class NoSlope(Exception):
    """A function whose derivative is not known here."""


def gradient(x: Expression, symbols: Sequence[Expression]) -> list[Expression]:
    wanted = frozenset(symbols)
    adjoints: dict[Expression, list[Expression]] = {x: [ONE]}
    for node in reversed(_in_order(x, wanted)):
        if node not in adjoints or node.kind == "symbol":
            continue
        adjoint = add(*adjoints[node])
        for operand, slope in _parts(node, wanted):
            adjoints.setdefault(operand, []).append(multiply(adjoint, slope) if slope is not None else adjoint)
        for k, side in _sides(node, wanted):
            adjoints.setdefault(side, []).append(_only(adjoint, node.parts[0], k))
    return [add(*adjoints[s]) if s in adjoints else ZERO for s in symbols]


def _in_order(x: Expression, wanted: frozenset[Expression]) -> list[Expression]:
    """What depends on the symbols, operands first."""
    found: dict[Expression, None] = {}

    def visit(y: Expression) -> None:
        if y in found or not y.free & wanted:
            return
        for child in y.children if y.kind != "total" else ():
            visit(child)
        found[y] = None

    visit(x)
    if x.kind == "total" or any(y.kind == "total" for y in found):
        for y in list(found):
            if y.kind == "total":
                for s in y.free & wanted:
                    visit(s)
        found = {s: None for s in found if s.kind == "symbol"} | {s: None for s in found if s.kind != "symbol"}
    return list(found)


def _sides(node: Expression, wanted: frozenset[Expression]) -> list[tuple[int, Expression]]:
    if node.kind != "choice":
        return []
    return [(k, side) for k, side in enumerate(node.parts[1:]) if side.free & wanted]


def _only(adjoint: Expression, condition: Expression, side: int) -> Expression:
    """The adjoint on one side of a choice. What guards the choice itself stays outside: elsewhere its condition may have
    no value.
    """
    if adjoint.kind == "choice" and ZERO in adjoint.parts[1:]:
        outer, *sides = adjoint.parts
        return choice(outer, *(x if x is ZERO else _only(x, condition, side) for x in sides))
    return choice(condition, *((adjoint, ZERO) if side == 0 else (ZERO, adjoint)))


def _parts(node: Expression, wanted: frozenset[Expression]) -> list[tuple[Expression, Expression | None]]:
    """Operands, each with the slope by it; None for 1."""
    match node.kind:
        case "sum":
            return [(t, None if f == 1 else number(f)) for t, f in node.parts[1] if t.free & wanted]
        case "product":
            return _of_product(node, wanted)
        case "call":
            return _of_call(node, wanted)
        case "total":
            index, bound, body = node.parts
            if bound.free & wanted:
                raise NoSlope("a number of terms")
            found = sorted(node.free & wanted, key=lambda s: s.serial)
            return [(s, total(index, bound, d)) for s, d in zip(found, gradient(body, found), strict=True)]
        case _:
            return []


def _of_product(node: Expression, wanted: frozenset[Expression]) -> list[tuple[Expression, Expression | None]]:
    found: list[tuple[Expression, Expression | None]] = []
    pairs = node.parts[0]
    for k, (base, exponent) in enumerate(pairs):
        others = [power(b, e) for j, (b, e) in enumerate(pairs) if j != k]
        if base.free & wanted:
            found.append((base, multiply(exponent, power(base, subtract(exponent, ONE)), *others)))
        if exponent.free & wanted:
            found.append((exponent, multiply(node, call("log", base))))
    return found


def _of_call(node: Expression, wanted: frozenset[Expression]) -> list[tuple[Expression, Expression | None]]:
    name, *args = node.parts
    if name in SLOPES:
        return [(args[0], SLOPES[name](args[0]))]
    if name == "atan2":
        y, x = args
        size = add(_square(x), _square(y))
        found = [(y, divide(x, size)), (x, negative(divide(y, size)))]
        return [(a, s) for a, s in found if a.free & wanted]
    raise NoSlope(f"'{name}'")
