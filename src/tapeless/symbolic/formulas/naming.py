"""Names for what occurs in several places of formulae."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from tapeless.symbolic.formulas.expressions import Expression, made, symbol


def subexpressions(roots: Iterable[Expression]) -> list[Expression]:
    """All of them, operands first."""
    found: dict[Expression, None] = {}

    def visit(x: Expression) -> None:
        if x not in found:
            for child in x.children:
                visit(child)
            found[x] = None

    for root in roots:
        visit(root)
    return list(found)


def with_names(
    roots: Sequence[Expression], least: int, taken: Iterable[str]
) -> tuple[list[tuple[str, Expression]], list[Expression]]:
    """Names for what occurs twice or more and has at least so many parts; they and the roots, written with them."""
    order = subexpressions(roots)
    uses: dict[Expression, int] = dict.fromkeys(roots, 0)
    size: dict[Expression, int] = {}
    for x in order:
        size[x] = 1 + sum(size[c] for c in x.children)
        for child in x.children:
            uses[child] = uses.get(child, 0) + 1
    used = set(taken)
    free_names = (name for k in count(1) if (name := f"t{k}") not in used)
    bound = {s for x in order if x.kind == "total" for s in [x.parts[0]]}
    names: dict[Expression, Expression] = {}
    defined: list[tuple[str, Expression]] = []
    for x in order:
        shared = uses.get(x, 0) > 1 and size[x] >= least and x.kind in ("sum", "product", "call", "choice", "total")
        if shared and not x.free & bound:
            name = next(free_names)
            defined.append((name, _renamed(x, names)))
            names[x] = symbol(name)
    return defined, [_renamed(x, names) for x in roots]


def _renamed(x: Expression, names: dict[Expression, Expression]) -> Expression:
    """With names in place of what they stand for, and nothing simplified."""
    done = dict(names)

    def visit(y: Expression) -> Expression:
        if y not in done:
            done[y] = _with_parts(y, visit)
        return done[y]

    return visit(x)


def _with_parts(x: Expression, visit: Callable[[Expression], Expression]) -> Expression:
    match x.kind:
        case "number" | "symbol":
            return x
        case "sum":
            return made("sum", x.parts[0], tuple((visit(t), f) for t, f in x.parts[1]))
        case "product":
            return made("product", tuple((visit(b), visit(e)) for b, e in x.parts[0]))
        case _:
            return made(x.kind, *(visit(p) if isinstance(p, Expression) else p for p in x.parts))
