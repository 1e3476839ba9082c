"""Arrays that a call of a reversible function takes: none that it changes may share memory with another.

Takes the values of a call. What can be told from their names is an error at once; parts of one array are compared when
the call comes.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import combinations
from math import gcd

from tapeless.frontend.data import atoms
from tapeless.frontend.data.indexing import base_dims
from tapeless.frontend.data.leaves import leaves_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import operator
from tapeless.frontend.state.values import Array, Sequence_, Static, Strided, Value
from tapeless.ir.core import At, Axis
from tapeless.ir.types import Atom, Const, Dim, DType, i64

TRUE = Const(True, DType.bool)


@operator("reversible.distinct")
def _distinct(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    names, constants, *values = args
    assert isinstance(names, Sequence_) and isinstance(constants, Sequence_)
    changed, others = ([str(n.value) for n in x.items if isinstance(n, Static)] for x in (names, constants))
    keep_apart(ctx, [*changed, *others], changed, values)
    return Static(None)


def keep_apart(ctx: Context, names: Sequence[str], changed: Container[str], values: Sequence[Value]) -> None:
    """Of these names, some are `changed`."""
    arrays = [
        (name, leaf, name in changed)
        for name, value in zip(names, values, strict=True)
        for leaf in leaves_of(value)
        if isinstance(leaf, Array)
    ]
    for (one, a, a_changes), (other, b, b_changes) in combinations(arrays, 2):
        if (a_changes or b_changes) and a.cell is b.cell:
            _compare(ctx, one, other, a, b)


def _compare(ctx: Context, one: str, other: str, a: Array, b: Array) -> None:
    """Two views of one array: the first steps in which they differ decide."""
    both = f"'{one}' and '{other}'" if one != other else f"two arrays of '{one}'"
    common = 0
    while common < min(len(a.view), len(b.view)) and a.view[common] == b.view[common]:
        common += 1
    steps, others = a.view[common:], b.view[common:]
    if not steps and not others:
        _refuse(ctx, f"{both} are the same array")
    match (steps, others):
        case ((Strided(axes=here), *_), (Strided(axes=there), *_)):
            meet: Atom = TRUE
            for x, y, n in zip(here, there, base_dims(ctx, a, a.view[:common]), strict=True):
                meet = atoms.logical_and(ctx, meet, _meet(ctx, x, y, n))
            if meet == TRUE:
                _refuse(ctx, f"{both} share memory")
            reason = f"{both} are parts of one array, and share memory"
            ctx.check(atoms.logical_not(ctx, meet), "InvertibilityError", reason)
        case _:
            _refuse(ctx, f"{both} are parts of one array")


def _refuse(ctx: Context, reason: str) -> None:
    ctx.not_invertible("TP402", reason, hint="pass a copy (.copy()).")


def _meet(ctx: Context, a: Axis, b: Axis, n: Dim) -> Atom:
    """Whether two subscripts have a position in common, as far as that can be told: otherwise they have."""
    (low, high, first, step), (low2, high2, first2, step2) = _extent(ctx, a, n), _extent(ctx, b, n)
    over = atoms.logical_and(ctx, atoms.apply(ctx, "lt", low, high2), atoms.apply(ctx, "lt", low2, high))
    if isinstance(step, Const) and isinstance(step2, Const):
        step = step2 = i64(gcd(int(step.value.real), int(step2.value.real)))
    if step != step2 or step in (i64(0), i64(1)):
        return over
    far = atoms.apply(ctx, "mod", atoms.apply(ctx, "sub", first, first2), step)
    return atoms.logical_and(ctx, over, atoms.apply(ctx, "eq", far, i64(0)))


def _extent(ctx: Context, axis: Axis, n: Dim) -> tuple[Atom, Atom, Atom, Atom]:
    """From where to where, the first position, and the distance of positions, 0 for a single one."""
    if isinstance(axis, At):
        at = axis.index
        if axis.wrap and not (isinstance(at, Const) and at.value.real >= 0):
            behind = atoms.apply(ctx, "add", at, ctx.size_atom(n))
            at = atoms.select(ctx, atoms.apply(ctx, "lt", at, i64(0)), behind, at)
        return at, atoms.apply(ctx, "add", at, i64(1)), at, i64(0)
    length = ctx.size_atom(axis.length)
    steps = atoms.apply(ctx, "mul", atoms.apply(ctx, "sub", length, i64(1)), axis.step)
    last = atoms.apply(ctx, "add", axis.start, steps)
    low, high = atoms.apply(ctx, "min", axis.start, last), atoms.apply(ctx, "max", axis.start, last)
    high = atoms.apply(ctx, "add", high, i64(1))
    empty = atoms.apply(ctx, "eq", length, i64(0))
    return low, atoms.select(ctx, empty, i64(0), high), axis.start, axis.step
