"""Accumulators that rows of different lengths, one behind the other, fill cell by cell: written where that is so at run
time.

Takes and gives verified Core, cleaned up.

Note [Tiles]
    for i in range(rows): for e in range(start[i], start[i + 1]): ...
is how rows of a sparse matrix are visited. The adjoint of what is read at `e` adds to a cell at `e`, into zeros, and
nothing says that no other row has the same cell. But one pass over `start` does: if it begins with 0, ends with the
length of the array and never falls, every cell is met exactly once. Then cells are set instead of added to: no zeros
before, and no private copies for threads. Otherwise everything is as it was: the `with_acc` is there twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Exp,
    Full,
    Function,
    If,
    Index,
    Lambda,
    Reduction,
    Stm,
    Sweep,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.types import BOOL, I64, Atom, Const, Dim, DType, Type, Var, const, dim_atom, i64
from tapeless.ir.walk import Substitution, all_stms, free_in_exp, in_regions, map_function, map_regions, with_stms
from tapeless.passes.analysis.facts import may_fail

Defs = Mapping[Var, Exp]


@dataclass(frozen=True)
class Tiles:
    """Cell `start[i] + e` of accumulator k is updated for all i below `width`, e below start[i + 1] - start[i]: at
    `position`.
    """

    k: int
    start: Var
    width: Dim
    position: Atom


def write_tiles(function: Function) -> Function:
    if not any(isinstance(s.exp, WithAcc) for s in all_stms(function.body)):
        return function
    return map_function(function, _body)


def _body(body: Body) -> Body:
    """The same object where nothing changes. A `with_acc` inside a sweep is too small to be worth it."""
    stms: list[Stm] = []
    zeros = _single_zeros(body)
    for stm in body.stms:
        match stm.exp:
            case Sweep() | Apply():
                stms.append(stm)
            case WithAcc() as exp if (tiles := _find(exp, zeros)) is not None:
                moved = [zeros[a] for a in exp.arrays if a in zeros]
                stms = [s for s in stms if not any(s is m for m in moved)]
                stms.extend(_twice(stm, exp, tiles, moved))
            case _:
                stms.append(in_regions(stm, _body))
    return with_stms(body, stms)


def _single_zeros(body: Body) -> dict[Var, Stm]:
    """Arrays of zeros that one statement uses."""
    found = {s.vars[0]: s for s in body.stms if isinstance(s.exp, Full) and _is_zero(s.exp.value)}
    uses = [v for s in body.stms for v in free_in_exp(s.exp)]
    return {v: s for v, s in found.items() if uses.count(v) == 1 and v not in body.results}


def _is_zero(value: Atom | None) -> bool:
    return isinstance(value, Const) and value.value == 0


# -- what to look for


def _find(exp: WithAcc, zeros: Mapping[Var, Stm]) -> Tiles | None:
    bound = {v for s in all_stms(exp.lam.body) for v in s.vars}
    for stm in exp.lam.body.stms:
        if isinstance(stm.exp, Sweep) and stm.exp.width not in bound:
            for update, start in _candidates(stm.exp):
                k = exp.lam.params.index(update.acc) if update.acc in exp.lam.params else -1
                if k < 0 or start in bound or exp.arrays[k] not in zeros or _updates(exp, update.acc) != 1:
                    continue
                at = update.axes[0]
                assert isinstance(at, At)
                return Tiles(k, start, stm.exp.width, at.index)
        if may_fail(stm):
            break  # what comes later may rely on the test
    return None


def _candidates(rows: Sweep) -> Iterator[tuple[UpdateAcc, Var]]:
    for cells in rows.lam.body.stms:
        if isinstance(cells.exp, Sweep):
            for s in cells.exp.lam.body.stms:
                start = _start_of_rows(s.exp, rows, cells.exp) if isinstance(s.exp, UpdateAcc) else None
                if isinstance(s.exp, UpdateAcc) and start is not None and _reads_first(rows, start):
                    yield s.exp, start


def _reads_first(rows: Sweep, start: Var) -> bool:
    """Whether the starts are read before anything is tested: then they may be read before the sweep too."""
    reads = [k for k, s in enumerate(rows.lam.body.stms) if isinstance(s.exp, Index) and s.exp.array is start]
    return not any(may_fail(s) for s in rows.lam.body.stms[: max(reads) + 1])


def _updates(exp: WithAcc, acc: Var) -> int:
    return sum(isinstance(s.exp, UpdateAcc) and s.exp.acc is acc for s in all_stms(exp.lam.body))


def _start_of_rows(update: UpdateAcc, rows: Sweep, cells: Sweep) -> Var | None:
    """The array that says where rows begin, if `update` is that of `Tiles`."""
    at, *behind = update.axes
    if update.acc.type.acc != "add" or not isinstance(at, At) or at.check:
        return None
    if tuple(behind) != tuple(full_axes(update.acc.type.shape[1:])) or update.value.type.rank != len(behind):
        return None
    defs = {v: s.exp for s in (*rows.lam.body.stms, *cells.lam.body.stms) for v in s.vars}
    index, e = rows.lam.params[0], cells.lam.params[0]
    position = defs.get(at.index) if isinstance(at.index, Var) else None
    for first in _other_term(position, e):
        match defs.get(first):
            case Index(array=start, axes=(At(index=i, wrap=False, check=False),)) if i is index:
                if start not in defs and _is_length(cells.width, first, start, index, defs):
                    return start
            case _:
                pass
    return None


def _other_term(exp: Exp | None, term: Var) -> list[Var]:
    match exp:
        case Apply("add", (Var() as a, Var() as b)) if b is term:
            return [a]
        case Apply("add", (Var() as a, Var() as b)) if a is term:
            return [b]
        case _:
            return []


def _is_length(width: Dim, first: Var, start: Var, index: Var, defs: Defs) -> bool:
    """Whether it is max(start[index + 1] - first, 0), in one of the ways to write that."""

    def at_least_zero(a: Atom) -> Atom:
        match defs.get(a) if isinstance(a, Var) else None:
            case Apply("max", (x, Const(value=0))) | Apply("max", (Const(value=0), x)):
                return x
            case _:
                return a

    def at_least_first(a: Atom) -> Atom:
        match defs.get(a) if isinstance(a, Var) else None:
            case Apply("max", (x, y)) if first in (x, y):
                return y if x is first else x
            case _:
                return a

    length = at_least_zero(dim_atom(width))
    match defs.get(length) if isinstance(length, Var) else None:
        case Apply("sub", (end, begin)) if begin is first:
            end = at_least_first(end)
        case _:
            return False
    match defs.get(end) if isinstance(end, Var) else None:
        case Index(array=array, axes=(At(index=Var() as after, wrap=False, check=False),)) if array is start:
            return defs.get(after) in (Apply("add", (index, i64(1))), Apply("add", (i64(1), index)))
        case _:
            return False


# -- what becomes of it


def _twice(stm: Stm, exp: WithAcc, tiles: Tiles, zeros: list[Stm]) -> list[Stm]:
    b = Builder(stm.span)
    cond = _filled_once(b, tiles, exp.arrays[tiles.k].type.shape[0])
    results = tuple(Var(v.name, v.type) for v in stm.vars)
    otherwise = Body((*zeros, Stm(results, exp, stm.span)), results)
    b.bind(stm.vars, If(cond, _setting(otherwise, exp, tiles), otherwise))
    return b.stms


def _setting(body: Body, exp: WithAcc, tiles: Tiles) -> Body:
    """The same with the accumulator set, in memory that holds nothing yet. Positions are inside, so none wraps."""
    old, array = exp.lam.params[tiles.k], exp.arrays[tiles.k]
    acc = Var(old.name, Type(old.type.dtype, old.type.shape, "set"))
    params = tuple(acc if p is old else p for p in exp.lam.params)
    stms = list[Stm]()
    for s in body.stms:
        match s.exp:
            case Full() if s.vars[0] is array:
                stms.append(Stm(s.vars, replace(s.exp, value=None), s.span))
            case WithAcc(lam=Lambda(_, inner)) as before:
                inner = _unwrapped(Substitution({old: acc}).body(inner), tiles.position, old.type.shape[0])
                stms.append(Stm(s.vars, replace(before, lam=Lambda(params, inner)), s.span))
            case _:
                stms.append(s)
    return Substitution({}, refresh=True).body(Body(tuple(stms), body.results))


def _unwrapped(body: Body, position: Atom, length: Dim) -> Body:
    def axes(many: tuple[Axis, ...], shape: tuple[Dim, ...]) -> tuple[Axis, ...]:
        return tuple(
            At(a.index) if isinstance(a, At) and a.index is position and d == length and not a.check else a
            for a, d in zip(many, shape, strict=True)
        )

    def exp(old: Exp) -> Exp:
        match old:
            case Apply():
                return old
            case Index(array=array):
                return replace(old, axes=axes(old.axes, array.type.shape))
            case UpdateAcc(acc=acc):
                return replace(old, axes=axes(old.axes, acc.type.shape))
            case _:
                return map_regions(old, lambda b: _unwrapped(b, position, length))

    return Body(tuple(Stm(s.vars, exp(s.exp), s.span) for s in body.stms), body.results)


def _filled_once(b: Builder, tiles: Tiles, length: Dim) -> Var:
    """Note [Tiles]: one pass over the starts, which reads what the rows will read."""
    start, width = tiles.start, dim_atom(tiles.width)

    def truth(op: str, *args: Atom) -> Var:
        return b.let(BOOL, Apply(op, args))

    def row(i: Var) -> tuple[Atom, ...]:
        after = b.let(I64, Apply("add", (i, i64(1))), "after")
        begin, end = (b.index(start, [At(a)], start.name) for a in (i, after))
        from_zero = truth("or", truth("gt", i, i64(0)), truth("eq", begin, i64(0)))
        to_length = truth("or", truth("lt", after, width), truth("eq", end, dim_atom(length)))
        return (truth("and", truth("le", begin, end), truth("and", from_zero, to_length)),)

    both = [Var("both", BOOL), Var("both", BOOL)]
    op = b.lam(both, lambda x, y: (truth("and", x, y),))
    lam = b.lam([Var("i", I64)], row)
    reduction = Reduction(op, (const(True, DType.bool),), commutative=True)
    filled = b.let(BOOL, Sweep(tiles.width, (), lam, (reduction,)), "filled")
    return truth("and", filled, truth("gt", width, i64(0)))
