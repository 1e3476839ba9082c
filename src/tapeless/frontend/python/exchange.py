"""Arrays that a loop hands around: `u, v = v, u` at the end of every iteration, where others see one of them.

Takes the names, the states before and at the end of an iteration; says whether they were exchanged, and gives the
contents of the arrays of before after the loop. Used by `loop_trials`.

Note [Exchanged arrays]
After an exchange it is still certain that the names have different arrays, but which of them has the caller's, or that
of another name, depends on the number of iterations. So a number goes around with each name: the position of the array
that it has. After the loop each array of before takes the contents of the name that has its number. Other names must
not be used meanwhile: what they refer to is stale in the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.frontend.data import atoms
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.parts import cells_of
from tapeless.frontend.state.values import Array, Cell, Key, State, Value
from tapeless.ir.core import Body
from tapeless.ir.types import Atom, Var, i64


def exchangeable(before: State, keys: Sequence[Key]) -> bool:
    """Whether the names have whole arrays of their own, of one type, and somebody else sees one of them."""
    cells: list[Cell] = []
    for key in keys:
        value = before.names.get(key)
        if not isinstance(value, Array) or value.view or value.cell.may_be or value.cell.readonly:
            return False
        cells.append(value.cell)
    kinds = {(before.cells[c].type.dtype, before.cells[c].type.rank) for c in cells}
    if len(set(cells)) != len(cells) or len(kinds) != 1:
        return False
    return any(c.argument for c in cells) or bool(seen_by_others(before, keys))


def seen_by_others(before: State, keys: Sequence[Key]) -> list[Cell]:
    """Arrays of these names that other names, of this function or of those that called it, may refer to."""
    mine = [c for key in keys for c in cells_of(before.names[key])]
    others = {c for key, v in before.names.items() if key not in keys for seen in cells_of(v) for c in seen.possible}
    return [c for c in mine if c in others]


def owners(keys: Sequence[Key], starts: Mapping[Key, Cell], end: State) -> dict[Key, Key] | None:
    """For each name, the one whose array of the start it has at the end; None when that is no exchange."""
    holder = {cell: key for key, cell in starts.items()}
    found: dict[Key, Key] = {}
    for key in keys:
        value: Value | None = end.names.get(key)
        if not isinstance(value, Array) or value.view or value.cell not in holder:
            return None
        found[key] = holder[value.cell]
    return found if len(set(found.values())) == len(found) else None


def contents(ctx: Context, number: int, holders: Sequence[tuple[Atom, Var]]) -> Var:
    """What is in array `number`, of names given by the number and the contents that each has."""
    *others, (_, last) = holders
    for which, var in others:
        cond = atoms.apply(ctx, "eq", which, i64(number))
        out = Var(var.name, var.type)
        ctx.b.if_(cond, Body((), (var,)), Body((), (last,)), [out])
        last = out
    return last
