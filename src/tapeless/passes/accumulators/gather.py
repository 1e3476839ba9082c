"""Accumulators that iterations update around themselves: what arrives at each cell is added up there.

Takes and gives verified Core. A nest of sweeps that adds at constant distances from its indices (the adjoint of a
stencil) becomes the same nest without these updates, followed by sweeps over the cells that add to each cell once.
Relies on index tests being gone. So threads share the cells out without private copies, and the loops vectorise.

Note [Gathering]
With offsets c between `least` and `most` along an axis of which iterations 0 .. n-1 add at i + c, cells from `least` to
`most` + n - 1 are reached. Cells from `most` to `least` + n - 1 are reached from every offset: they are gathered
without tests. The others, at most `most` - `least` at either end, test for each offset whether there is such an
iteration. All of them are inside the array, as the nest reaches both ends; when there are no iterations there are no
cells.
Terms are added in the order in which the nest would have added them, and their sum to what the cell held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Body, Exp, For, Function, If, Index, Lambda, Stm, Sweep, UpdateAcc, WithAcc
from tapeless.ir.operands import operands, regions
from tapeless.ir.types import BOOL, I64, Atom, Dim, Type, Var, dim_atom, i64, zero_of
from tapeless.ir.walk import Substitution, all_stms, in_regions, map_function, with_stms
from tapeless.ops.table import op as row
from tapeless.passes.analysis.distances import distance

CHEAP = 8  # scalar operations up to which a term is computed again for each cell that it is added to
FEW = 256  # iterations that are not worth a second nest

Place = int | Atom  # along one axis: the index of a sweep of the nest, by depth, or a position known before the nest


def gather(function: Function) -> Function:
    if not any(isinstance(s.exp, WithAcc) for s in all_stms(function.body)):
        return function
    return map_function(function, _body)


def _body(body: Body) -> Body:
    stms: list[Stm] = []
    for stm in body.stms:
        if isinstance(stm.exp, Sweep):
            stms.extend(_gathered(stm, stm.exp))
        else:
            stms.append(_inside(stm))
    return with_stms(body, stms)


def _inside(stm: Stm) -> Stm:
    if isinstance(stm.exp, Apply) or not any(isinstance(s.exp, UpdateAcc) for s in _within(stm.exp)):
        return stm
    return in_regions(stm, _body)


def _within(exp: Exp) -> Iterator[Stm]:
    for region in regions(exp):
        yield from all_stms(region.body)


# -- what is gathered


@dataclass(frozen=True)
class Term:
    """What an update adds, and how far from the indices of the nest, by depth."""

    value: Atom
    offsets: tuple[int, ...]


@dataclass
class Group:
    """Updates of an accumulator by one body of the nest, along the same axes."""

    acc: Var
    nest: tuple[Sweep, ...]
    places: tuple[Place, ...]
    terms: list[Term]

    @property
    def overlaps(self) -> bool:
        return len({t.offsets for t in self.terms}) > 1

    @property
    def is_small(self) -> bool:
        widths = [s.width for s in self.nest]
        return prod(w for w in widths if isinstance(w, int)) < FEW if all(isinstance(w, int) for w in widths) else False


def groups_of(sweep: Sweep) -> list[Group]:
    """Of the accumulators all of whose updates can be gathered, if that is of use."""
    inner = _bound(sweep)
    groups: dict[tuple[object, ...], Group] = {}
    updates: dict[Var, int] = {}
    found: dict[Var, int] = {}
    for s in _within(sweep):
        if isinstance(s.exp, UpdateAcc):
            updates[s.exp.acc] = updates.get(s.exp.acc, 0) + 1
    for nest in _nests((sweep,)):
        for s in nest[-1].lam.body.stms:
            if not isinstance(s.exp, UpdateAcc) or (placed := _placed(s.exp, nest, inner)) is None:
                continue
            places, term = placed
            acc = s.exp.acc
            found[acc] = found.get(acc, 0) + 1
            key = (acc, id(nest[-1]), places)
            groups.setdefault(key, Group(acc, nest, places, [])).terms.append(term)
    worth = {g.acc for g in groups.values() if g.overlaps and not g.is_small}
    return [g for g in groups.values() if g.acc in worth and found[g.acc] == updates[g.acc]]


def _nests(outer: tuple[Sweep, ...]) -> Iterator[tuple[Sweep, ...]]:
    yield outer
    for s in outer[-1].lam.body.stms:
        if isinstance(s.exp, Sweep):
            yield from _nests((*outer, s.exp))


def _bound(sweep: Sweep) -> set[Var]:
    """Names of the nest's own."""
    bound = set(sweep.lam.params)
    for s in all_stms(sweep.lam.body):
        bound.update(s.vars)
        for region in regions(s.exp):
            bound.update(region.params)
    return bound


def _placed(update: UpdateAcc, nest: Sequence[Sweep], inner: set[Var]) -> tuple[tuple[Place, ...], Term] | None:
    """Where an update adds: along its axes each index of the nest once, at a constant distance."""
    if update.acc.type.acc != "add" or update.acc in inner or update.value.type.shape:
        return None
    if any(s.width in inner for s in nest):
        return None
    defs = {v: s.exp for sweep in nest for s in sweep.lam.body.stms for v in s.vars}
    depths = {sweep.lam.params[0]: k for k, sweep in enumerate(nest)}
    places: list[Place] = []
    offsets: dict[int, int] = {}
    for axis in update.axes:
        if not isinstance(axis, At) or axis.wrap or axis.check:
            return None
        if axis.index not in inner:
            places.append(axis.index)
            continue
        found = distance(axis.index, defs)
        if found is None or found[0] not in depths or depths[found[0]] in offsets:
            return None
        places.append(depths[found[0]])
        offsets[depths[found[0]]] = found[1]
    if len(offsets) != len(nest):
        return None
    return tuple(places), Term(update.value, tuple(offsets[k] for k in range(len(nest))))


# -- the nest without its updates


def _gathered(stm: Stm, sweep: Sweep) -> list[Stm]:
    groups = groups_of(sweep)
    if not groups:
        return [stm]
    kept = {t.value: None for g in groups for t in g.terms if not is_cheap(t.value, g.nest)}
    rest = Rest({g.acc for g in groups}, list(kept))
    left, arrays = rest.without(stm, sweep)
    b = Builder(stm.span)
    for group in groups:
        Gatherer(b, group, arrays).run()
    return [left, *b.stms]


class Rest:
    """Leaves out the updates of `gone`; values in `kept` become results of the nest."""

    def __init__(self, gone: set[Var], kept: Sequence[Atom]) -> None:
        self.gone, self.kept = gone, kept

    def without(self, stm: Stm, sweep: Sweep) -> tuple[Stm, dict[Atom, Var]]:
        """The statement, and the arrays of the kept values of its iterations."""
        lam = sweep.lam
        stms: list[Stm] = []
        rows: dict[Atom, Var] = {}
        own = {*lam.params, *(v for s in lam.body.stms for v in s.vars)}
        for s in lam.body.stms:
            if isinstance(s.exp, UpdateAcc) and s.exp.acc in self.gone:
                continue
            new = s
            if isinstance(s.exp, Sweep):
                new, inner = self.without(s, s.exp)
                rows.update(inner)
            stms.append(new)
        results: list[Atom] = [*rows.values()]
        values: list[Atom] = [*rows]
        for v in self.kept:
            if v in own:
                values.append(v)
                results.append(v)
        if (
            not values
            and len(stms) == len(lam.body.stms)
            and all(a is b for a, b in zip(stms, lam.body.stms, strict=True))
        ):
            return stm, {}
        vars = [Var("term", Type(r.type.dtype, (sweep.width, *r.type.shape))) for r in results]
        body = Body(tuple(stms), (*lam.body.results, *results))
        new = Stm((*stm.vars, *vars), replace(sweep, lam=Lambda(lam.params, body)), stm.span)
        return new, dict(zip(values, vars, strict=True))


# -- terms


def _needed(value: Atom, nest: Sequence[Sweep]) -> list[Stm]:
    """The statements of the nest that a value takes, in order."""
    wanted = {value}
    found: list[Stm] = []
    for sweep in reversed(nest):
        for s in reversed(sweep.lam.body.stms):
            if any(v in wanted for v in s.vars):
                found.append(s)
                wanted.update(operands(s.exp))
        wanted.update(a for p, a in zip(sweep.lam.params[1:], sweep.arrays, strict=True) if p in wanted)
    return found[::-1]


def is_cheap(value: Atom, nest: Sequence[Sweep]) -> bool:
    """Whether a value is a handful of operations on elements of arrays and scalars of outside."""
    total = 0
    for s in _needed(value, nest):
        match s.exp:
            case Apply(op=name):
                total += row(name).cost
            case Index(axes=axes) if not any(isinstance(a, At) and a.check for a in axes):
                total += 1
            case _:
                return False
    return total <= CHEAP


class Gatherer:
    """Writes the sweeps over the cells of one group; `tests_only`: only over those that not every offset reaches."""

    def __init__(self, b: Builder, group: Group, arrays: Mapping[Atom, Var], tests_only: bool = False) -> None:
        self.b, self.group, self.arrays, self.tests_only = b, group, arrays, tests_only
        self.terms = sorted(group.terms, key=lambda t: t.offsets, reverse=True)
        self.least = [min(t.offsets[k] for t in group.terms) for k in range(len(group.nest))]
        self.most = [max(t.offsets[k] for t in group.terms) for k in range(len(group.nest))]

    def run(self) -> None:
        self._axis([], None)

    # Note [Gathering]

    def _axis(self, cell: list[Atom], tested: int | None) -> None:
        """Sweeps along the next axis for each position so far; from axis `tested` on there are tests."""
        k = len(cell)
        if k == len(self.group.nest):
            if tested is not None or not self.tests_only:
                self.b.effect(UpdateAcc(self.group.acc, self.axes(cell), self.sum_at(cell, tested)))
            return
        width = self.group.nest[k].width
        n = dim_atom(width)
        reach = self.most[k] - self.least[k]
        if reach == 0:
            self.sweep(width, lambda i: self._axis([*cell, self.plus(i, self.least[k])], tested))
            return
        first = self.scalar("mul", i64(reach), self.scalar("min", n, i64(1)))  # none without iterations
        if tested is not None:
            cells = self.scalar("add", n, first)
            self.sweep(cells, lambda i: self._axis([*cell, self.plus(i, self.least[k])], tested))
            return
        middle = self.scalar("max", self.scalar("sub", n, i64(reach)), i64(0))
        ends = self.scalar("add", first, self.scalar("min", n, i64(reach)))

        def at_end(i: Var) -> None:
            far = self.scalar("add", i, middle)
            at = self.b.let(I64, Apply("select", (self.test("lt", i, first), i, far)), "at")
            self._axis([*cell, self.plus(at, self.least[k])], k)

        self.sweep(middle, lambda i: self._axis([*cell, self.plus(i, self.most[k])], None))
        self.few(ends, at_end)

    def sweep(self, width: Dim, make: Callable[[Var], None]) -> None:
        i = Var("i", I64)
        with self.b.region() as stms:
            make(i)
        self.b.effect(Sweep(width, (), Lambda((i,), Body(tuple(stms), ()))))

    def few(self, count: Atom, make: Callable[[Var], None]) -> None:
        """One after the other: they are not worth sharing out."""
        i = Var("i", I64)
        with self.b.region() as stms:
            make(i)
        self.b.effect(For(i, count, (), (), Body(tuple(stms), ())))

    def axes(self, cell: Sequence[Atom]) -> tuple[At, ...]:
        return tuple(At(cell[p] if isinstance(p, int) else p) for p in self.group.places)

    def sum_at(self, cell: Sequence[Atom], tested: int | None) -> Atom:
        """Of the terms that arrive at a cell."""
        total: Atom | None = None
        for term in self.terms:
            part = self._term(term, cell, tested)
            total = part if total is None else self.b.let(part.type, Apply("add", (total, part)), "sum")
        assert total is not None
        return total

    def _term(self, term: Term, cell: Sequence[Atom], tested: int | None) -> Atom:
        """The term for a cell; where there may be no such iteration, 0 then."""
        b = self.b
        at = [self.plus(c, -o) for c, o in zip(cell, term.offsets, strict=True)]
        checked = [] if tested is None else [k for k in range(tested, len(cell)) if self.least[k] != self.most[k]]
        if not checked:
            return self._value(term.value, at)
        inside: Atom | None = None
        for k in checked:
            for test in (self.test("ge", at[k], i64(0)), self.test("lt", at[k], dim_atom(self.group.nest[k].width))):
                inside = test if inside is None else b.let(BOOL, Apply("and", (inside, test)), "inside")
        assert inside is not None
        with b.region() as stms:
            value = self._value(term.value, at)
        zero = zero_of(term.value.type.dtype)
        result = Var("term", term.value.type)
        b.bind([result], If(inside, Body(tuple(stms), (value,)), Body((), (zero,))))
        return result

    def _value(self, value: Atom, at: Sequence[Atom]) -> Atom:
        """What iteration `at` of the nest adds."""
        b = self.b
        if value in self.arrays:
            kept = self.arrays[value]
            return b.index(kept, [At(i) for i in at[: kept.type.rank]], "term")
        renamed = Substitution({}, refresh=True)
        needed = _needed(value, self.group.nest)
        positions = {id(s) for s in needed}
        used = {a for s in needed for a in operands(s.exp)} | {value}
        for sweep, i in zip(self.group.nest, at, strict=True):
            renamed.map[sweep.lam.params[0]] = i
            for p, a in zip(sweep.lam.params[1:], sweep.arrays, strict=True):
                if p in used or any(p in inner.arrays for inner in self.group.nest):
                    source = renamed.atom(a)
                    assert isinstance(source, Var)
                    renamed.map[p] = b.row(source, i, p.name)
            for s in sweep.lam.body.stms:
                if id(s) in positions:
                    b.add(renamed.stm(s))
        return renamed.atom(value)

    # -- scalars

    def plus(self, x: Atom, by: int) -> Atom:
        return self.scalar("add", x, i64(by)) if by else x

    def scalar(self, op: str, x: Atom, y: Atom) -> Var:
        return self.b.let(I64, Apply(op, (x, y)), "t")

    def test(self, op: str, x: Atom, y: Atom) -> Var:
        return self.b.let(BOOL, Apply(op, (x, y)), "inside")
