"""Loops whose steps each sweep over the rows of an array: several steps go over a row at once.

Takes a `For` whose carried arrays are made anew row by row; gives a loop that does STEPS steps at a time and one for the
steps that are left. Relies on `rowwise_steps` for what a step does to a row. Cells get the same operations in the same order.

Note [Jam]
`for k: d = minimum(d, d[:, k, None] + d[k])` reads and writes all of `d` in each step, and with threads each step is a
parallel region of its own. But row i of the next `d` depends on row i and row k only. So the rows that everybody reads
in the next STEPS steps are made first, each as it will be when its step comes: that of step u has been through the u
steps before it. Then one sweep takes each row through all steps, and a cell through FUSED of them in registers. What a
step reads of its own row at one position (`d[i, k]`) is a cell that goes through the steps before by itself. That is
more work for few or short rows, where the loop stays as it is. Notes that steps take (Note [Notes] in `rowwise_steps`) are
results of the sweep, one for each step.

The rows that everybody reads are made in the lambda: Note [Once a chunk] in `lower/invariant.py`. Since they are made of
the old array, that cannot be written over while threads still read it, and the new one takes the memory of the one
before. Made in front of the sweep instead, by one thread, they would go to the other ones by way of its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import Apply, At, Body, For, Function, Index, Lambda, Library, Stm, Sweep
from tapeless.ir.plans import JAMMED
from tapeless.ir.types import BOOL, I64, Atom, Type, Var, i64
from tapeless.ir.walk import Substitution, in_regions, map_function, with_stms
from tapeless.passes.rowwise_steps import Note, RowStep, row_step

STEPS = 6  # that are done in one sweep
FUSED = 3  # that a cell goes through in registers
LEAST = 128  # rows, and cells of a row, from which on that pays


def jam(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body) -> Body:
    stms: list[Stm] = []
    for stm in body.stms:
        step = row_step(stm.exp, LEAST) if isinstance(stm.exp, For) else None
        if step is None:
            stms.append(in_regions(stm, _body))
        else:
            stms.extend(_jammed(stm, step))
    return with_stms(body, stms)


def _jammed(stm: Stm, step: RowStep) -> list[Stm]:
    loop, b = step.loop, Builder(stm.span)
    steps = b.let(I64, Apply("max", (loop.bound, i64(0))), "steps")
    rounds = b.let(I64, Apply("floordiv", (steps, i64(STEPS))), "rounds")
    for size in dict.fromkeys(step.arrays[0].type.shape):
        if isinstance(size, Var):
            many = b.let(BOOL, Apply("ge", (size, i64(LEAST))), "many")
            rounds = b.let(I64, Apply("select", (many, rounds, i64(0))), "rounds")
    index = Var(loop.index.name, I64)
    params = tuple(Var(p.name, p.type) for p in loop.params)
    with b.region() as inside:
        first = b.let(I64, Apply("mul", (index, i64(STEPS))), loop.index.name)
        results = _Round(b, step, params).run(first)
    between = tuple(Var(v.name, v.type) for v in stm.vars)
    b.bind(between, For(index, rounds, params, loop.inits, Body(tuple(inside), results), JAMMED))
    done = b.let(I64, Apply("mul", (rounds, i64(STEPS))), "done")
    left = b.let(I64, Apply("sub", (steps, done)), "left")
    return [*b.stms, Stm(stm.vars, _rest(loop, done, left, between), stm.span)]


def _rest(loop: For, done: Atom, left: Atom, inits: tuple[Var, ...]) -> For:
    """The steps from `done` on, by the loop as it was."""
    index = Var(loop.index.name, I64)
    now = Var(loop.index.name, I64)
    body = Substitution({loop.index: now}).body(loop.body)
    first = Stm((now,), Apply("add", (done, index)), loop.body.stms[0].span)
    return For(index, left, loop.params, inits, Body((first, *body.stms), body.results), JAMMED)


@dataclass(frozen=True)
class _Step:
    """A step whose numbers and shared rows are made: what stands for the names of the loop's body."""

    names: dict[Var, Atom]


Read = Callable[[Var], Atom]  # of one row, the cell at the column at hand


@dataclass(frozen=True)
class _Row:
    """A row on its way through the steps: as it was, and the maps over its cells so far. An array that such a map reads
    is a number if it is the row itself, of that carried array.
    """

    start: tuple[Var, ...]
    maps: tuple[tuple[Lambda, tuple[int | Var, ...]], ...] = ()


class _Round:
    """STEPS steps at once, in the body of a loop with these parameters."""

    def __init__(self, b: Builder, step: RowStep, params: tuple[Var, ...]) -> None:
        self.b, self.step = b, step
        notes = [note.k for note in step.notes]
        self.params = tuple(p for k, p in enumerate(params) if k not in notes)
        self.books = {k: params[k] for k in notes}
        self.steps: list[_Step] = []

    def run(self, first: Var) -> tuple[Var, ...]:
        """What the parameters become."""
        b, books = self.b, dict(self.books)
        numbers = [b.let(I64, Apply("add", (first, i64(u))), first.name) if u else first for u in range(STEPS)]

        def each(i: Var, *start: Var) -> tuple[Var, ...]:
            for now in numbers:
                self.steps.append(self._step(now))
            notes: list[Var] = []
            return *self._made(self._through(i, start, notes), notes), *notes

        made = b.map(self.params[0].type.shape[0], self.params, each)
        arrays, notes = iter(made[: len(self.params)]), iter(made[len(self.params) :])
        for now in numbers:
            for k, book in books.items():
                books[k] = b.update(book, [At(now), *full_axes(book.type.shape[1:])], next(notes))
        return tuple(books[k] if k in books else next(arrays) for k in range(len(self.step.loop.params)))

    def _step(self, now: Var) -> _Step:
        b, loop = self.b, self.step.loop
        names = Substitution({loop.index: now}, refresh=True)
        shared: dict[Atom, tuple[Var, ...]] = {}
        for s in self.step.before:
            k = self.step.shared.get(s.vars[0]) if s.vars else None
            if k is None:
                b.add(names.stm(s))
                continue
            assert isinstance(s.exp, Index)
            at, *rest = s.exp.axes
            assert isinstance(at, At)
            place = names.atom(at.index)
            if place not in shared:
                shared[place] = self._shared_rows(place)
            b.add(names.stm(Stm(s.vars, Index(shared[place][k], tuple(rest)), s.span)))
        return _Step(names.map)

    def _shared_rows(self, place: Atom) -> tuple[Var, ...]:
        """The row of each array at this place, as the step at hand finds it."""
        b = self.b
        start = tuple(b.row(p, place, p.name) for p in self.params)
        if not self.steps:
            return tuple(b.copy(row) for row in start)
        return self._made(self._through(place, start))

    # -- one row

    def _through(self, place: Atom, start: Sequence[Var], notes: list[Var] | None = None) -> _Row:
        """The row at `place` through the steps that are there."""
        row = _Row(tuple(start))
        for step in self.steps:
            if len(row.maps) == FUSED:
                row = _Row(self._made(row, notes))
            row = self._after(step, place, row)
        return row

    def _after(self, step: _Step, place: Atom, row: _Row) -> _Row:
        b, each, inner = self.b, self.step.each, self.step.inner
        names = Substitution({**step.names, each.lam.params[0]: place}, refresh=True)
        cells = self.step.cells
        for p, array in zip(each.lam.params[1:], each.arrays, strict=True):
            if p in cells and not p.type.shape:
                names.map[p] = self._cell(row, cells[p].k, names.atom(cells[p].column))
            elif p not in cells and p not in self.step.rows:
                source = names.atom(array)
                assert isinstance(source, Var)
                names.map[p] = b.row(source, place, p.name)
        for s in self.step.scalars:
            if (cell := cells.get(s.vars[0])) is not None:
                names.map[s.vars[0]] = self._cell(row, cell.k, names.atom(cell.column))
            else:
                b.add(names.stm(s))
        arrays: list[int | Var] = []
        for a in inner.arrays:
            source = names.atom(a)
            assert isinstance(source, Var)
            arrays.append(self.step.rows.get(a, source))
        return replace(row, maps=(*row.maps, (names.lam(inner.lam), tuple(arrays))))

    def _cell(self, row: _Row, k: int, column: Atom) -> Atom:
        return self._cells(row, column, lambda array: self.b.index(array, [At(column)]))[0][k]

    def _cells(self, row: _Row, column: Atom, read: Read) -> tuple[tuple[Atom, ...], list[Atom]]:
        """The cell at the column, in each array, and the notes of the maps so far."""
        cells, notes = tuple(read(r) for r in row.start), []
        for lam, arrays in row.maps:
            made = self.b.inline(lam, [column, *(cells[a] if isinstance(a, int) else read(a) for a in arrays)])
            cells = tuple(made[k] for k in self.step.order)
            notes += [made[note.result] for note in self.step.notes]
        return cells, notes

    def _made(self, row: _Row, notes: list[Var] | None = None) -> tuple[Var, ...]:
        """The row as the maps so far make it. Their notes go to `notes`, if they are asked for."""
        b, column = self.b, Var("j", I64)
        params: dict[Var, Var] = {}

        def read(array: Var) -> Var:
            return params.setdefault(array, Var(array.name, array.type.row()))

        with b.region() as stms:
            cells, noted = self._cells(row, column, read)
        if notes is None:
            noted = []
        lam = Lambda((column, *params.values()), Body(tuple(stms), (*cells, *noted)))
        width = row.start[0].type.shape[0]
        vars = [Var(v.name, v.type) for v in row.start]
        taken = [Var("note", Type(a.type.dtype, (width,))) for a in noted]
        b.bind([*vars, *taken], Sweep(width, tuple(params), lam))
        if notes is not None:
            notes += [self._packed(v, note) for v, note in zip(taken, self.step.notes * len(row.maps), strict=True)]
        return tuple(vars)

    def _packed(self, values: Var, note: Note) -> Var:
        if note.pack is None:
            return values
        assert isinstance(note.pack.exp, Library)
        return self.b.let(note.pack.vars[0].type, replace(note.pack.exp, args=(values,)), note.pack.vars[0].name)
