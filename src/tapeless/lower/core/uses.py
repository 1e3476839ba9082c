"""What lowering asks of a region before it begins: which arrays are only made to be put into others, which sizes are
tested.

Takes a Core body; gives positions of its statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.ir.core import Apply, At, Axis, Body, Check, Copy, For, Full, Index, Stm, Sweep, Update
from tapeless.ir.types import Atom, Const, Var
from tapeless.ir.walk import free_in_exp, free_in_lambda, map_regions
from tapeless.passes.analysis.places import in_place

MADE = (Sweep, Copy, Full)


def single_updates(body: Body) -> dict[Var, int]:
    """Arrays that are made in order to be written into another one: the position of that update, their last use.

    Results of sweeps have no other use; copies may be read by sweeps before; new arrays may be what a loop starts with
    that updates them in place.
    """
    kinds = {type(stm.exp) for stm in body.stms}
    if Update not in kinds or kinds.isdisjoint(MADE):
        return {}
    users: dict[Var, list[int]] = {}
    for k, stm in enumerate(body.stms):
        for v in free_in_exp(stm.exp):
            users.setdefault(v, []).append(k)
    for r in body.results:
        if isinstance(r, Var):
            users.setdefault(r, []).append(len(body.stms))
    found: dict[Var, int] = {}
    for stm in body.stms:
        for v in stm.vars if isinstance(stm.exp, MADE) else ():
            last = _last_update(body, stm, v, users) if v.type.shape else None
            if last is not None:
                found[v] = last
    return found


def _last_update(body: Body, made: Stm, v: Var, users: Mapping[Var, list[int]]) -> int | None:
    *readers, last = users.get(v, [len(body.stms)])
    if last == len(body.stms) or (readers and not isinstance(made.exp, Copy)):
        return None
    match body.stms[last].exp:
        case Update(value=value) if value is v:
            return last if all(isinstance(body.stms[k].exp, Sweep) for k in readers) else None
        case For(params=params, inits=inits, body=inner) if isinstance(made.exp, Full) and inits.count(v) == 1:
            k = inits.index(v)
            if in_place(inner, inner.results[k], params[k]):
                return _last_update(body, body.stms[last], body.stms[last].vars[k], users)
    return None


def unread(body: Body) -> set[Var]:
    """Variables of it and of all regions in it that nobody reads."""
    made: set[Var] = set()
    read: set[Var] = set()

    def look(inner: Body) -> Body:
        read.update(r for r in inner.results if isinstance(r, Var))
        for stm in inner.stms:
            made.update(stm.vars)
            read.update(free_in_exp(stm.exp))
            map_regions(stm.exp, look)
        return inner

    look(body)
    return made - read


def last_uses(body: Body) -> dict[Var, int]:
    """The position of the last statement that uses a variable; that behind the last one for results."""
    last = {v: k for k, stm in enumerate(body.stms) for v in free_in_exp(stm.exp)}
    last |= {r: len(body.stms) for r in body.results if isinstance(r, Var)}
    return last


def updated_by(body: Body, first: int, last: int) -> tuple[Var, set[int]] | None:
    """The array that the update at `last` writes, by its name at `first`, and the updates of it in between, by id. None
    if one of those may write the same cells.
    """
    update = body.stms[last].exp
    assert isinstance(update, Update)
    made = {v: s for s in body.stms[first:last] for v in s.vars}
    array, between = update.array, set()
    while (stm := made.get(array)) is not None and isinstance(stm.exp, Update):
        if not _apart(update.axes, stm.exp.axes, body):
            return None
        between.add(id(stm))
        array = stm.exp.array
    return array, between


def _apart(a: Sequence[Axis], b: Sequence[Axis], body: Body) -> bool:
    """Are these different rows, along some axis, by a constant distance?"""
    makers = {s.vars[0]: s.exp for s in body.stms if isinstance(s.exp, Apply)}

    def place(axis: At) -> tuple[Atom, complex]:
        match makers.get(axis.index) if isinstance(axis.index, Var) else None:
            case Apply("add", (x, Const(value=number))):
                return x, number
        return axis.index, 0

    pairs = [(x, y) for x, y in zip(a, b, strict=True) if isinstance(x, At) and isinstance(y, At)]
    places = [(place(x), place(y)) for x, y in pairs if not x.wrap and not y.wrap]  # -1 may be another row's number
    return any(x is y and m != n for (x, m), (y, n) in places)


def own_cells(body: Body, v: Var, first: int, update: Update) -> list[Var]:
    """Views of the cells that `v`, made by the statement at `first`, is to be written into, where that reads nothing
    else of the array, and of each view only the element that it makes.
    """
    stm = body.stms[first]
    own = {s.vars[0] for s in body.stms[:first] if s.exp == Index(update.array, update.axes)}
    read = dict.fromkeys(stm.exp.arrays) if isinstance(stm.exp, Sweep) else {}
    return [a for a in read if a in own and by_cells(stm, v, a)]


def by_cells(stm: Stm, v: Var, a: Var) -> bool:
    """Whether the statement, which makes `v`, reads of the array `a` only the cell that it makes, for each."""
    exp = stm.exp
    if not isinstance(exp, Sweep) or v in stm.vars[: sum(len(r.neutral) for r in exp.reduces)]:
        return False
    if a in free_in_lambda(exp.lam):
        return False
    if v.type.rank == 1:
        return True
    if exp.scans:
        return False
    rows = {p for p, array in zip(exp.lam.params[1:], exp.arrays, strict=True) if array is a}
    made = exp.lam.body.results[stm.vars.index(v)]
    users = [s for s in exp.lam.body.stms if made in s.vars or not rows.isdisjoint(free_in_exp(s.exp))]
    if len(users) != 1 or made not in users[0].vars or not rows.isdisjoint(exp.lam.body.results):
        return False
    assert isinstance(made, Var)
    return all(by_cells(users[0], made, row) for row in rows.intersection(free_in_exp(users[0].exp)))


def size_test(body: Body, d: Atom, e: Atom, last: int) -> list[int]:
    """Positions before `last` of the statements that make sure that two sizes are equal; none when nothing does."""
    for k, stm in enumerate(body.stms[:last]):
        if isinstance(stm.exp, Check) and isinstance(stm.exp.cond, Var):
            for j, maker in enumerate(body.stms[:k]):
                if stm.exp.cond in maker.vars and maker.exp in (Apply("eq", (d, e)), Apply("eq", (e, d))):
                    return [j, k]
    return []
