"""Loops whose step makes each row of the carried arrays from that row and a few rows that all of them read.

Takes a `For`; gives a `RowStep`, which says how, or None. Such a step is a map over the rows: some numbers first, then
one map over the cells of the row. Relies on `simplify` and `fuse` having brought programs into that form.

Note [Notes]
The way back of such a loop may need to know what the step decided for each cell. Then the loop carries an array more, whose row
at the number of the step is written and which nobody reads: it takes notes. They are results of the map over cells, packed
into words or as they are, and belong to the step, not to the row that is carried.

Note [Rounded alike]
A step that is done in another place shall round as it did. Operations of the machine do; library functions have vector
forms that do not. A product that a sum takes up at once is not rounded by itself, but only where both are in one
straight piece of code. So a product may go into a sum only where both are in a map over cells, and where it depends on
the cell: others are moved out of that loop. It must have no other use, and the sum no other product, or LLVM might
choose otherwise. Nor may a cell be a product: the next step could take it up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Body,
    Broadcast,
    Copy,
    For,
    Full,
    Index,
    Iota,
    Library,
    Reshape,
    Stm,
    Sweep,
    Transpose,
    Update,
)
from tapeless.ir.types import Atom, Var, i64
from tapeless.ir.walk import free_in_exp, free_in_lambda, size_of
from tapeless.ops.op import Foreign, Libm
from tapeless.ops.table import DIVIDE, TABLE
from tapeless.passes.facts import is_effect, is_view, used_by
from tapeless.passes.sweeps import is_whole

LARGEST = 40  # statements of a step
VIEWS_AND_MAPS = (ArrayLit, Broadcast, Copy, Full, Index, Iota, Reshape, Transpose, Sweep)
PRODUCTS = ("mul", "square", "deg2rad", "rad2deg")
SUMS = ("add", "sub")


@dataclass(frozen=True)
class Cell:
    """The cell of carried array `k` at `column`, in the row at hand."""

    k: int
    column: Atom


@dataclass(frozen=True)
class Note:
    """Parameter `k` of the loop takes notes of a result of the map over cells. `pack` is what packs it."""

    k: int
    result: int
    pack: Stm | None


@dataclass
class RowStep:
    """arrays:  the carried arrays, without those that take notes
    before:  what is computed once a step
    shared:  those of it that read one row of a carried array, or a part of that row: the number of the array
    each:    the map over rows
    rows:    the parameters of `each` that are the row of an array
    cells:   those that are one cell of it, and the variables of `scalars` that are
    scalars: what is computed once a row
    inner:   the map over the cells of a row
    order:   which result of `inner` is the new row of an array
    notes:   Note [Notes]
    """

    loop: For
    arrays: tuple[Var, ...]
    each: Sweep
    inner: Sweep
    order: tuple[int, ...]
    before: list[Stm] = field(default_factory=list)
    shared: dict[Var, int] = field(default_factory=dict)
    rows: dict[Var, int] = field(default_factory=dict)
    cells: dict[Var, Cell] = field(default_factory=dict)
    scalars: list[Stm] = field(default_factory=list)
    notes: tuple[Note, ...] = ()


def row_step(loop: For, least: int) -> RowStep | None:
    """`least`: rows, and cells of a row, that there must be where their number is known."""
    if not loop.params or (loop.plan and ": " not in loop.plan) or size_of(loop) > LARGEST:
        return None
    notes = _notes(loop)
    arrays = tuple(p for k, p in enumerate(loop.params) if k not in notes)
    if not arrays or len(arrays[0].type.shape) != 2:
        return None
    shape = arrays[0].type.shape
    if any(p.type.shape != shape for p in arrays) or any(isinstance(d, int) and d < least for d in shape):
        return None
    try:
        step = _found(loop, arrays, notes)
    except _NotRowwise:
        return None
    return step if _rounded_alike(step) else None


def _notes(loop: For) -> dict[int, Stm]:
    """The parameters that take notes, and how. Note [Notes]"""
    updates = {s.vars[0]: s for s in loop.body.stms if isinstance(s.exp, Update) and s.exp.array in loop.params}
    if not updates:
        return {}
    uses = Counter(v for s in loop.body.stms for v in free_in_exp(s.exp)) + Counter(loop.body.results)
    found = {}
    for k, (p, r) in enumerate(zip(loop.params, loop.body.results, strict=True)):
        stm = updates.get(r) if isinstance(r, Var) else None
        if stm is None or not isinstance(stm.exp, Update) or stm.exp.array is not p or uses[p] > 1 or uses[r] > 1:
            continue
        at, *rest = stm.exp.axes
        if at == At(loop.index) and all(map(is_whole, rest, p.type.shape[1:])) and isinstance(stm.exp.value, Var):
            found[k] = stm
    return found


class _NotRowwise(Exception):
    pass


def _require(condition: bool) -> None:
    if not condition:
        raise _NotRowwise


def _found(loop: For, arrays: tuple[Var, ...], notes: dict[int, Stm]) -> RowStep:
    rows, columns = arrays[0].type.shape
    before, each, made = _map_at_the_end(_without_notes(loop, notes), arrays)
    own = [p for p, a in zip(each.lam.params[1:], each.arrays, strict=True) if a in arrays]
    of_cells, packs = _without_packs(each.lam.body)
    scalars, inner, order = _map_at_the_end(of_cells, own)
    _require(each.width == rows and inner.width == columns)
    results = [(order[k], packs.get(k)) for k in made]
    _require(all(pack is None for _, pack in results[: len(arrays)]))
    taken = tuple(Note(k, *result) for k, result in zip(notes, results[len(arrays) :], strict=True))
    step = RowStep(loop, arrays, each, inner, tuple(k for k, _ in results[: len(arrays)]), notes=taken)
    views = _once_a_step(step, before)
    _once_a_row(step, scalars, views)
    row_arrays = {*step.rows, *(p for p in step.cells if p.type.shape)}
    _require(not any(a in row_arrays and a not in step.rows for a in inner.arrays))
    _require(not any(v in row_arrays for v in free_in_lambda(inner.lam)))
    _require(all(isinstance(s.exp, Apply | Index) and not is_effect(s.exp) for s in inner.lam.body.stms))
    return step


def _without_notes(loop: For, notes: dict[int, Stm]) -> Body:
    """The body with what notes are made of as its last results."""
    values: list[Atom] = []
    for stm in notes.values():
        assert isinstance(stm.exp, Update)
        values.append(stm.exp.value)
    left_out = [id(stm) for stm in notes.values()]
    results = [r for k, r in enumerate(loop.body.results) if k not in notes]
    return Body(tuple(s for s in loop.body.stms if id(s) not in left_out), (*results, *values))


def _without_packs(body: Body) -> tuple[Body, dict[int, Stm]]:
    """The body with what is packed for its results, and what packs them, by the number of the result."""
    makers: dict[Atom, Stm] = {s.vars[0]: s for s in body.stms if isinstance(s.exp, Library) and s.exp.name == "pack"}
    packs = {k: makers[r] for k, r in enumerate(body.results) if r in makers}
    results = [makers[r].exp.args[0] if k in packs else r for k, r in enumerate(body.results)]  # type: ignore[union-attr]
    return Body(tuple(s for s in body.stms if s not in packs.values()), tuple(results)), packs


def _map_at_the_end(body: Body, over: Sequence[Var]) -> tuple[list[Stm], Sweep, tuple[int, ...]]:
    """The statements in front of the map that makes all results, the map, and which of its results they are. Arrays of
    `over` may be written over as a whole with them.
    """
    stms, results = list(body.stms), list(body.results)
    while stms and isinstance(update := stms[-1].exp, Update):
        _require(update.array in over and all(map(is_whole, update.axes, update.array.type.shape)))
        _require(update.value.type == update.array.type)
        results = [update.value if r is stms[-1].vars[0] else r for r in results]
        stms.pop()
    _require(bool(stms))
    *before, last = stms
    exp = last.exp
    if not isinstance(exp, Sweep) or exp.reduces or exp.scans:
        raise _NotRowwise
    made = [v for r in results for v in last.vars if v is r]
    _require(len(made) == len(results) == len(set(made)))
    return before, exp, tuple(last.vars.index(v) for v in made)


def _once_a_step(step: RowStep, stms: Iterable[Stm]) -> dict[Var, Cell]:
    """Sorts what is in front of the map over rows; gives the columns of carried arrays, each as the cell of a row."""
    params = {p: k for k, p in enumerate(step.arrays)}
    columns: dict[Var, Cell] = {}
    for s in stms:
        match s.exp:
            case Index(array, (At(), _)) if array in params:
                _require(_plain(s.exp.axes))
                step.shared[s.vars[0]] = params[array]
                step.before.append(s)
            case Index(array, (rows, At(column))) if array in params:
                _require(_plain(s.exp.axes) and is_whole(rows, array.type.shape[0]))
                columns[s.vars[0]] = Cell(params[array], column)
            case Reshape(array, (_, 1)) if array in columns:
                columns[s.vars[0]] = columns[array]
            case exp:
                _require(isinstance(exp, (Apply, *VIEWS_AND_MAPS)) and not _may_fail_or_reduce(exp))
                _require(not any(v in params or v in columns for v in free_in_exp(exp)))
                _require(is_view(exp) or all(_is_row(v, step) for v in s.vars))
                step.before.append(s)
    return columns


def _once_a_row(step: RowStep, stms: Iterable[Stm], columns: dict[Var, Cell]) -> None:
    """Sorts what the map over rows takes and what is in front of the map over cells."""
    params = {p: k for k, p in enumerate(step.arrays)}
    lam = step.each.lam
    _require(not any(v in params or v in columns for v in free_in_lambda(lam)))
    for p, array in zip(lam.params[1:], step.each.arrays, strict=True):
        if array in params:
            step.rows[p] = params[array]
        elif array in columns:
            step.cells[p] = columns[array]
    for s in stms:
        match s.exp:
            case Index(array, (At(column),)) if array in step.rows:
                _require(_plain(s.exp.axes))
                step.cells[s.vars[0]] = Cell(step.rows[array], column)
                step.scalars.append(s)
            case Index(array, (At(place),)) if array in step.cells:
                _require(place == i64(0))
                step.cells[s.vars[0]] = step.cells[array]
                step.scalars.append(s)
            case Apply() | Index() as exp:
                _require(not is_effect(exp))
                _require(not any(v.type.shape and (v in step.rows or v in step.cells) for v in free_in_exp(exp)))
                step.scalars.append(s)
            case _:
                raise _NotRowwise


def _is_row(v: Var, step: RowStep) -> bool:
    """A number, or no more of them than a row or a column has: every thread makes them for itself."""
    shape = v.type.shape
    return not shape or (len(shape) == 1 and shape[0] in step.arrays[0].type.shape)


def _plain(axes: tuple[Axis, ...]) -> bool:
    return not any(isinstance(a, At) and (a.wrap or a.check) for a in axes)


def _may_fail_or_reduce(exp: object) -> bool:
    if isinstance(exp, Sweep):
        stms = exp.lam.body.stms
        return bool(exp.reduces or exp.scans) or not all(
            isinstance(s.exp, Apply | Index) and not is_effect(s.exp) for s in stms
        )
    return isinstance(exp, Index) and is_effect(exp)


# -- Note [Rounded alike]


def _rounded_alike(step: RowStep) -> bool:
    once = [s for s in (*step.before, *step.scalars) if isinstance(s.exp, Apply)]
    maps = [step.inner, *(s.exp for s in step.before if isinstance(s.exp, Sweep))]
    products = _products(once)
    if not _are_of_the_machine(once) or _sums_up(once, products):
        return False
    for exp in maps:
        body = exp.lam.body
        varying = {*exp.lam.params}
        for s in body.stms:
            if any(v in varying for v in free_in_exp(s.exp)):
                varying.update(s.vars)
        inside = _products(body.stms)
        moved = {v for v in inside if v not in varying}
        uses = Counter(a for s in body.stms for a in used_by(s.exp))
        shared = {v for v in inside if uses[v] > 1}
        if not _are_of_the_machine(body.stms) or _sums_up(body.stms, products | moved | shared):
            return False
        if any(len(inside.intersection(sum.args)) > 1 for sum in _sums(body.stms)):
            return False
        if exp is step.inner and any(r in inside or r in products for r in body.results):
            return False
    return True


def _products(stms: Iterable[Stm]) -> set[Atom]:
    """Products of floating-point numbers, and such with the other sign."""
    found: set[Atom] = set()
    for s in stms:
        if isinstance(s.exp, Apply) and s.vars[0].type.dtype.is_float:
            turned = s.exp.op in ("neg", "identity") and s.exp.args[0] in found
            if turned or s.exp.op in PRODUCTS:
                found.add(s.vars[0])
    return found


def _sums_up(stms: Iterable[Stm], products: set[Atom]) -> bool:
    return any(not products.isdisjoint(sum.args) for sum in _sums(stms))


def _sums(stms: Iterable[Stm]) -> list[Apply]:
    return [s.exp for s in stms if isinstance(s.exp, Apply) and s.exp.op in SUMS]


def _are_of_the_machine(stms: Iterable[Stm]) -> bool:
    """Are all of them operations of the machine?"""
    for s in stms:
        if not isinstance(s.exp, Apply):
            continue
        row = TABLE[s.exp.op]
        types = {a.type.dtype for a in (*s.exp.args, *s.vars)}
        if any(t.is_complex for t in types):
            return False
        if any(t.is_float for t in types) and (isinstance(row.llvm, Foreign | Libm) or row.cost > DIVIDE):
            return False
    return True
