"""Large functions that are called more than once: compiled once, and called.

`shared_call` takes a call of a function of the user, with how to compile it in place, and gives its value: most functions
are compiled into their callers.

Note [Shared functions]
The first call of a function is compiled in place. If that made many statements, the second call with arguments of the
same kind makes a function of the program, and from then on calls are calls. Kinds are all that is known of arguments at
compile time: constants, types, which sizes are equal, the containers.

A function that gives back an array of its caller, or an array of a size that only it knows, is compiled in place: what
such a call means is not in its results. So is one that writes an array of its caller, for another reason: passes see
which cells each iteration of a loop writes. Behind a call it would be the whole array, no loop around it would be
parallel, and going backwards would keep an array for each iteration in place of a cell.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tapeless.errors import CompileError, InternalError
from tapeless.frontend.data.arrays import read, turned
from tapeless.frontend.data.leaves import atom_of, leaves_of, rebuilt, value_of
from tapeless.frontend.state.code_copies import attempt
from tapeless.frontend.state.context import Context, new_box
from tapeless.frontend.state.values import Array, Box, Cell, Closure, Scalar, Sequence_, State, Static, Value
from tapeless.ir import calls
from tapeless.ir.calls import closed, outside_of
from tapeless.ir.core import Body, Lambda
from tapeless.ir.effects import has_effects
from tapeless.ir.span import Span
from tapeless.ir.types import I64, Atom, Const, Dim, Type, Var, dim_atom
from tapeless.ir.walk import type_vars

Run = Callable[[Mapping[str, Value]], Value]  # compiles the function in place, for these arguments


@dataclass(frozen=True)
class Shared:
    """A function of the program, and how to call it. `sizes` are numbers of sizes of the arguments, or sizes of
    outside.
    """

    name: str
    effects: bool
    sizes: tuple[int | Var, ...]
    reads: tuple[bool, ...]  # of each array among the arguments, whether it is read
    others: tuple[tuple[Cell, Var], ...]  # arrays of outside, with their contents
    result: Value
    returned: Span


def shared_call(ctx: Context, function: Closure, bound: Mapping[str, Value], run: Run) -> Value:
    """The value of a call. Note [Shared functions]"""
    kinds = None if ctx.inside_prelude or ctx.in_library or ctx.rules else _kinds(ctx, function, bound)
    if kinds is None:
        return run(bound)
    key, sizes = kinds
    known = ctx.shared.get(key)
    if known is None:
        before = ctx.b.made
        found = run(bound)
        if key not in ctx.shared and ctx.b.made - before > calls.SMALL:
            ctx.shared[key] = Mark.large
        return found
    if known is Mark.large:
        known = ctx.shared[key] = _made(ctx, function, bound, sizes, run)
    if not isinstance(known, Shared) or any(ctx.state.cells.get(cell) is not v for cell, v in known.others):
        return run(bound)
    return _call(ctx, known, bound, sizes)


@dataclass(frozen=True)
class _Same:
    """An object that is compared by identity, and stays as long as this does."""

    what: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.what is other.what

    def __hash__(self) -> int:
        return id(self.what)


class Mark(enum.Enum):
    """In place of a function: it was large when it was compiled in place, or it cannot be one of the program."""

    large = enum.auto()
    never = enum.auto()


Sizes = list[Dim]


def _kinds(ctx: Context, function: Closure, bound: Mapping[str, Value]) -> tuple[tuple[Any, ...], Sizes] | None:
    """What is known of a function and its arguments at compile time, and the sizes among them. None if they are not of
    the kind.
    """
    if function.python is None:
        return None
    sizes: dict[Dim, int] = {}
    found: list[Any] = [function.node, function.python, ctx.transforms > 0, ctx.unseen]

    def size(d: Dim) -> tuple[Any, ...]:
        d = ctx.canon(d)
        return (d,) if isinstance(d, int) else (sizes.setdefault(d, len(sizes)), d in ctx.short)

    for name, value in bound.items():
        leaves = leaves_of(value)
        found.append((name, rebuilt(value, [Static(None) for _ in leaves])))
        for leaf in leaves:
            match leaf:
                case Scalar(atom=Const(value=number, dtype=dtype), weak=weak):
                    found.append((dtype, weak, repr(number)))
                case Scalar(atom=atom, weak=weak):
                    found.append((atom.type.dtype, weak, atom in ctx.without_axes))
                case Array(type=type):
                    found.append((type.dtype, *map(size, type.shape), _out_of_order(leaf)))
                case Static(value=known):
                    found.append(_Same(known))
                case Closure(python=python) if python is not None and not leaf.defaults:
                    found.append((leaf.node, python))
                case _:
                    return None
    cells = [leaf.cell for value in bound.values() for leaf in leaves_of(value) if isinstance(leaf, Array)]
    if len(set(cells)) < len(cells):
        return None
    return tuple(found), list(sizes)


def _out_of_order(leaf: Array) -> bool:
    """Whether NumPy may have the elements in another order."""
    return turned(leaf) or leaf.cell.scattered


def _made(ctx: Context, function: Closure, bound: Mapping[str, Value], sizes: Sizes, run: Run) -> Shared | Mark:
    """The function, compiled for arguments of this kind."""
    fresh: dict[Dim, Var] = {d: Var(getattr(d, "name", "n"), I64) for d in sizes}
    params: list[Var] = []
    cells: dict[Cell, Var] = {}
    state = State(cells=dict(ctx.state.cells))

    def param(leaf: Value) -> Value:
        if isinstance(leaf, Scalar) and isinstance(leaf.atom, Var):
            params.append(Var(leaf.atom.name, leaf.atom.type))
            if leaf.atom in ctx.without_axes:
                ctx.without_axes.add(params[-1])
            return Scalar(params[-1], leaf.weak)
        if isinstance(leaf, Array):
            shape = tuple(fresh.get(ctx.canon(d), ctx.canon(d)) for d in leaf.type.shape)
            params.append(Var(leaf.cell.name, Type(leaf.type.dtype, shape)))
            cell = Cell(leaf.cell.name, argument=True, scattered=_out_of_order(leaf))
            state.cells[cell] = cells[cell] = params[-1]
            return Array(cell, params[-1].type)
        return leaf

    given = {name: rebuilt(v, [param(leaf) for leaf in leaves_of(v)]) for name, v in bound.items()}
    ctx.counters.update(fresh.values())
    ctx.short.update(v for d, v in fresh.items() if d in ctx.short)
    with _elsewhere(ctx, state), ctx.b.region() as stms:
        before = dict(state.cells)
        result = attempt(ctx, lambda: run(given))
        if isinstance(result, InternalError):
            raise result
        if isinstance(result, CompileError):
            return Mark.never
        leaves = leaves_of(result)
        if not all(isinstance(leaf, (Scalar, Static)) or _is_own(leaf, before) for leaf in leaves):
            return Mark.never
        if not _lists_are_own(result):
            return Mark.never
        if any(ctx.state.cells.get(cell) is not v for cell, v in before.items()):
            return Mark.never
        atoms = [atom_of(ctx, leaf) for leaf in leaves if isinstance(leaf, (Scalar, Array))]
        reads = tuple(cell in ctx.read_cells for cell in cells)
        returned = ctx.returned
    lam = Lambda(tuple(params), Body(tuple(stms), tuple(atoms)))
    outside = outside_of([lam])
    inside = {*params, *outside.sizes}
    contents = {v: cell for cell, v in ctx.state.cells.items()}
    known = all(d in inside for a in atoms for d in type_vars(a.type)) and all(v in contents for v in outside.others)
    if not known or not all(d in fresh.values() or d in ctx.sizes for d in outside.sizes):
        return Mark.never
    made = closed(ctx.b.functions.reserve(function.name), lam, outside)
    ctx.b.functions.add(made)
    numbers = {v: k for k, v in enumerate(fresh.values())}
    places = tuple(numbers.get(v, v) for v in outside.sizes)
    others = tuple((contents[v], v) for v in outside.others)
    return Shared(made.name, has_effects(made.body), places, reads, others, result, returned)


@contextmanager
def _elsewhere(ctx: Context, state: State) -> Iterator[None]:
    """What is compiled inside leaves no traces here."""
    before = ctx.state, ctx.written_cells, ctx.read_cells, ctx.apart, ctx.points, ctx.returned
    counts = ctx.copied, ctx.copying, ctx.transforms
    ctx.state, ctx.written_cells, ctx.read_cells = state, set(), set()
    ctx.apart, ctx.points = set(ctx.apart), dict(ctx.points)
    try:
        yield
    finally:
        ctx.state, ctx.written_cells, ctx.read_cells, ctx.apart, ctx.points, ctx.returned = before
        ctx.copied, ctx.copying, ctx.transforms = counts


def _is_own(leaf: Value, before: Mapping[Cell, Var]) -> bool:
    """Whether it is an array that the function made, and nothing else."""
    if not isinstance(leaf, Array) or leaf.view or leaf.cell in before:
        return False
    cell = leaf.cell
    return not (cell.may_be or cell.readonly or cell.argument or cell.stands_for or cell.seen_through)


def _lists_are_own(value: Value) -> bool:
    """Whether it holds no lists of the caller: those have no identity here."""
    if not isinstance(value, Sequence_):
        return True
    others = value.kind in ("list", "dict") and (value.ref is None or bool(value.ref.may_be))
    return not others and all(map(_lists_are_own, value.items))


def _with_lists(ctx: Context, made: Value, like: Value, boxes: dict[Box, Box]) -> Value:
    """Its lists and dicts are new ones at each call."""
    if not isinstance(made, Sequence_) or not isinstance(like, Sequence_):
        return made
    items = tuple(_with_lists(ctx, m, v, boxes) for m, v in zip(made.items, like.items, strict=True))
    ref = None if like.ref is None else boxes.setdefault(like.ref, new_box(ctx))
    return replace(made, items=items, ref=ref)


def _call(ctx: Context, shared: Shared, bound: Mapping[str, Value], sizes: Sizes) -> Value:
    reads = iter(shared.reads)
    args: list[Atom] = []
    for leaf in (leaf for value in bound.values() for leaf in leaves_of(value)):
        if isinstance(leaf, Scalar) and isinstance(leaf.atom, Var):
            args.append(leaf.atom)
        elif isinstance(leaf, Array):
            used = next(reads)
            args.append(read(ctx, leaf) if used or leaf.view else ctx.state.cells[leaf.cell])
    first = [dim_atom(sizes[s]) if isinstance(s, int) else s for s in shared.sizes]
    others = [v for _, v in shared.others]
    ctx.read_cells.update(cell for cell, _ in shared.others)
    found = iter(ctx.b.call(shared.name, [*first, *args, *others], shared.effects))
    ctx.returned = shared.returned
    leaves: list[Value] = []
    made: dict[Cell, Array] = {}
    for leaf in leaves_of(shared.result):
        if isinstance(leaf, Array):
            cell, var = leaf.cell, next(found)
            if cell not in made:
                made[cell] = ctx.new_cell(var, cell.name if cell.named else "", scattered=cell.scattered)
            leaves.append(made[cell])
        elif isinstance(leaf, Scalar):
            leaves.append(value_of(ctx, next(found), leaf.weak))
        else:
            leaves.append(leaf)
    return _with_lists(ctx, rebuilt(shared.result, leaves), shared.result, {})
