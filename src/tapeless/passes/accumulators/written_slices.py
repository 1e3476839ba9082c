"""Slices of an array that are written one after the other, each nearly all of it: every cell takes what reaches it.

Takes and gives a verified function. The adjoint of a stencil of whole arrays adds to one shifted slice of an array
after the other:

    e = a[1:+m]; t = map m (\\x y -> add x y) e v; b = update a[1:+m] = t; then likewise c from b with another slice

becomes one map over the cells of `a`. A cell inside a slice takes what the slice brings, in the order of before, so each
result is the same to the last bit. Memory is gone through once, not once for each slice, at the price of a test for each
slice and cell: a bargain where threads are cheap, so this is for devices.

Slices that are far smaller than the array are left alone: going over all cells would cost more than they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Body, Exp, Function, If, Index, Range, Stm, Sweep, Update
from tapeless.ir.types import BOOL, I64, Atom, Const, Dim, Var, dim_atom, i64
from tapeless.ir.walk import all_stms, in_regions, map_function, use_counts, with_stms

NARROW = 8  # cells that a slice may leave out along an axis whose length is not known

Defs = Mapping[Var, Exp]


@dataclass(frozen=True)
class Link:
    """One slice that is written: `update` at a place of the body, reading what was there at `before` if that is combined
    with `value` by the row `op`, as operand number `operand`. Statements at `spent` are of no use without it.
    """

    at: int
    update: Update
    value: Var
    op: str = ""
    operand: int = 0
    spent: tuple[int, ...] = ()

    @property
    def slices(self) -> list[Range]:
        return [a for a in self.update.axes if isinstance(a, Range)]


def write_at_once(function: Function) -> Function:
    if sum(isinstance(s.exp, Update) for s in all_stms(function.body)) < 2:
        return function
    uses = use_counts(function.body)
    outer: dict[Var, Exp] = {v: s.exp for s in all_stms(function.body) for v in s.vars if isinstance(s.exp, Apply)}

    def visit(body: Body) -> Body:
        stms = [in_regions(stm, visit) for stm in body.stms]
        return with_stms(body, _joined(stms, uses, outer))

    return map_function(function, visit)


def _joined(stms: list[Stm], uses: Counter[Atom], outer: Defs) -> list[Stm]:
    """The statements with each chain of writes in the place of its last one."""
    place = {v: k for k, s in enumerate(stms) for v in s.vars}
    links = {s.vars[0]: link for k, s in enumerate(stms) if (link := _link(k, stms, place, uses, outer)) is not None}
    chains: list[list[Link]] = []
    for link in links.values():
        before = links.get(link.update.array)
        goes_on = before is not None and uses[link.update.array] == (2 if link.op else 1)
        chain = next((c for c in chains if goes_on and c[-1] is before), None)
        if chain is None:
            chains.append([link])
        else:
            chain.append(link)
    result: list[list[Stm]] = [[s] for s in stms]
    for chain in chains:
        if len(chain) > 1:
            for link in chain:
                for k in (link.at, *link.spent):
                    result[k] = []
            last = stms[chain[-1].at]
            b = Builder(last.span)
            _write(b, chain, last.vars[0])
            result[chain[-1].at] = b.stms
    return [s for part in result for s in part]


def _link(k: int, stms: Sequence[Stm], place: Mapping[Var, int], uses: Counter[Atom], outer: Defs) -> Link | None:
    update = stms[k].exp
    if not isinstance(update, Update) or not isinstance(update.value, Var):
        return None
    sides = update.array.type.shape
    if not all(isinstance(a, Range) and _nearly_all(a, d, outer) for a, d in zip(update.axes, sides, strict=True)):
        return None
    if update.value.type.rank != len(sides):
        return None
    combined = _combined(k, stms, place, uses, update)
    return combined or Link(k, update, update.value)


def _combined(
    k: int, stms: Sequence[Stm], place: Mapping[Var, int], uses: Counter[Atom], update: Update
) -> Link | None:
    """What was there with another array, element by element, by one row."""
    assert isinstance(update.value, Var)
    made = place.get(update.value)
    if made is None or uses[update.value] != 1:
        return None
    found = _elementwise(stms[made].exp, update.value.type.rank)
    if found is None:
        return None
    op, arrays = found
    for operand, array in enumerate(arrays):
        read = place.get(array)
        if read is None or uses[array] != 1 or stms[read].exp != Index(update.array, update.axes):
            continue
        return Link(k, update, arrays[1 - operand], op, operand, (made, read))
    return None


def _elementwise(exp: Exp, rank: int) -> tuple[str, tuple[Var, Var]] | None:
    """The row by which a nest of maps combines two arrays."""
    if not isinstance(exp, Sweep) or exp.reduces or exp.scans or len(exp.arrays) != 2 or len(exp.lam.body.stms) != 1:
        return None
    (stm,) = exp.lam.body.stms
    if exp.lam.body.results != stm.vars:
        return None
    op, given = "", tuple[Atom, ...]()
    if rank == 1 and isinstance(stm.exp, Apply):
        op, given = stm.exp.op, stm.exp.args
    elif rank > 1 and (inner := _elementwise(stm.exp, rank - 1)) is not None:
        op, given = inner
    rows = exp.lam.params[1:]
    if given == rows:
        return op, (exp.arrays[0], exp.arrays[1])
    if given == rows[::-1]:
        return op, (exp.arrays[1], exp.arrays[0])
    return None


def _nearly_all(axis: Range, side: Dim, outer: Defs) -> bool:
    if axis.step != i64(1):
        return False
    if isinstance(axis.length, int) and isinstance(side, int):
        return 2 * axis.length >= side
    return axis.length == side or _below(dim_atom(axis.length), dim_atom(side), outer) <= NARROW


def _below(length: Atom, side: Atom, outer: Defs) -> float:
    """How much less a length is, if that is known: side - c, or that and never below 0."""
    exp = outer.get(length) if isinstance(length, Var) else None
    match exp:
        case Apply("max", (Var() as first, Const(value=0))):
            return _below(first, side, outer)
        case Apply("add", (first, Const(value=c))) if first == side:
            return -c.real
        case Apply("sub", (first, Const(value=c))) if first == side:
            return c.real
    return float("inf")


# -- the map over all cells


def _write(b: Builder, chain: Sequence[Link], result: Var) -> None:
    array = chain[0].update.array

    def axis(cell: list[Var], row: Var) -> list[Atom]:
        if not row.type.shape:
            return [_cell(b, chain, cell, row)]
        return list(b.map(row.type.shape[0], [row], lambda i, inner: axis([*cell, i], inner)))

    with b.region() as stms:
        axis([], array)
    *before, last = stms
    assert not before
    b.bind([result], last.exp)


def _cell(b: Builder, chain: Sequence[Link], cell: Sequence[Var], value: Atom) -> Atom:
    """What a cell holds after all slices were written."""
    for link in chain:
        inside: Atom | None = None
        at: list[Atom] = []
        for i, part, side in zip(cell, link.slices, link.update.array.type.shape, strict=True):
            at.append(i if part.start == i64(0) else b.let(I64, Apply("sub", (i, part.start)), "at"))
            tests = [Apply("lt", (at[-1], dim_atom(part.length)))] if part.length != side else []
            if part.start != i64(0):
                tests.append(Apply("ge", (at[-1], i64(0))))
            for test in tests:
                good = b.let(BOOL, test, "c")
                inside = good if inside is None else b.let(BOOL, Apply("and", (inside, good)), "inside")
        value = _taken(b, link, at, value) if inside is None else _taken_if(b, inside, link, at, value)
    return value


def _taken(b: Builder, link: Link, at: Sequence[Atom], old: Atom) -> Atom:
    new = b.index(link.value, [At(i) for i in at])
    if not link.op:
        return new
    return b.let(old.type, Apply(link.op, (old, new) if link.operand == 0 else (new, old)), "t")


def _taken_if(b: Builder, inside: Atom, link: Link, at: Sequence[Atom], old: Atom) -> Atom:
    with b.region() as stms:
        new = _taken(b, link, at, old)
    taken = Var("t", old.type)
    b.bind([taken], If(inside, Body(tuple(stms), (new,)), Body((), (old,))))
    return taken
