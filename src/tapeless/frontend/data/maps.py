"""Maps over shapes: what is done with each element of arrays, smaller ones repeated as in NumPy.

`broadcast_shapes` takes shapes and gives that of the result; `map_nest` takes variables of Core and emits the maps. Arrays as
Python sees them are the affair of `arrays`.

Note [Terms of an expression]
Each operator of `a * 0.5 + b * c` would be a map of its own, and so one array for each, made and taken away again by passes: most of
the time for programs that compute with whole arrays. An operand that is itself an operator's result is nobody else's, so the map that
made it is taken back and its statements go to the front of the new one. Only cheap arithmetic is: what takes longer may be there
twice in the program, and can be shared, or taken out of a loop, while it is an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data import atoms
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Scalar
from tapeless.ir.builder import full_axes
from tapeless.ir.core import Apply, At, Body, Check, Index, Sweep
from tapeless.ir.types import Atom, Const, Dim, DType, Var, const, i64, zero_of
from tapeless.ops.rows import DIVIDE
from tapeless.ops.table import op as row

ScalarFunction = Callable[..., Scalar]
LONGEST = 64  # statements of a map that is taken back
NEAR = 8  # statements back
PASSED = (Apply, Check, Index, Sweep)  # what does not mind that a map is made later


def broadcast_shapes(
    ctx: Context, shapes: Sequence[tuple[Dim, ...]], what: str, repeat: bool = False
) -> tuple[Dim, ...]:
    """NumPy's rule; sizes known only at run time must be equal there (a size of 1 in an argument is known). `repeat`:
    but for those of slices like x[k:k+1], which may be 1.
    """
    different = {s for s in shapes if s}
    if len(different) == 1:
        return ctx.dims(*different)
    rank = max((len(s) for s in shapes), default=0)
    result: list[Dim] = []
    for k in range(rank):
        dim: Dim = 1
        sizes = [ctx.canon(s[k - rank]) for s in shapes if len(s) >= rank - k]
        longer = [d for d in sizes if d != 1 and d not in ctx.short] if repeat else []
        for d in sizes:
            if isinstance(d, int) and d == 1:
                continue
            if longer and d in ctx.short:
                repeated(ctx, d, longer[0], what)
                continue
            dim = d if isinstance(dim, int) and dim == 1 else same_size(ctx, dim, d, what)
        result.append(dim)
    return tuple(result)


def repeated(ctx: Context, size: Dim, to: Dim, what: str) -> None:
    """Tests that the size of a slice like x[k:k+1] is 1, or what it would be repeated to."""
    d, n = ctx.size_atom(size), ctx.size_atom(to)
    fits = atoms.apply(ctx, "or", atoms.apply(ctx, "eq", d, i64(1)), atoms.apply(ctx, "eq", d, n))
    ctx.check(fits, "ShapeError", f"{what}: sizes {{0}} and {{1}} do not fit together", n, d)


def only_position(ctx: Context, array: Var, axes: Sequence[int]) -> Var:
    """Without these axes of slices like x[k:k+1]: their only position; anything where there is none."""
    places = [At(i64(0)) if k in axes else a for k, a in enumerate(full_axes(array.type.shape))]
    if len(axes) < array.type.rank:
        return ctx.b.index(array, places, array.name)
    with ctx.b.region() as stms:
        cell = ctx.b.index(array, places, array.name)
    there: Atom = const(True, DType.bool)
    for d in array.type.shape:
        there = atoms.apply(ctx, "and", there, atoms.apply(ctx, "gt", ctx.size_atom(d), i64(0)))
    arms = Body(tuple(stms), (cell,)), Body((), (zero_of(cell.type.dtype),))
    return ctx.b.if_(there, *arms, [Var(array.name, cell.type)])[0]


def map_nest(
    ctx: Context,
    function: ScalarFunction,
    values: Sequence[Var | Scalar],
    shape: tuple[Dim, ...],
    terms: Sequence[bool] = (),
) -> Var:
    """Maps over `shape`; arrays of lower rank or size 1 are repeated. `terms`: which values are used nowhere else."""
    if not shape:
        result = function(*(v if isinstance(v, Scalar) else Scalar(v) for v in values))
        atom = result.atom
        if isinstance(atom, Const):
            return ctx.b.let(atom.type, Apply("identity", (atom,)), "t")
        return atom
    width = shape[0]
    fixed: dict[int, Var | Scalar] = {}
    moving: list[tuple[int, Var]] = []
    for k, v in enumerate(values):
        if isinstance(v, Scalar) or v.type.rank < len(shape):
            fixed[k] = v
        elif v.type.shape[0] == 1 and not (isinstance(width, int) and width == 1):
            fixed[k] = ctx.b.row(v, i64(0), v.name)
        elif v.type.shape[0] in ctx.short and ctx.canon(v.type.shape[0]) != ctx.canon(width):
            row = only_position(ctx, v, [0])
            fixed[k] = row if row.type.shape else Scalar(row)
        else:
            moving.append((k, v))

    taken = {k: made for k, v in reversed(moving) if terms and terms[k] and (made := _taken_back(ctx, v)) is not None}
    own = [v for k, v in moving if k not in taken]

    def body(index: Var, *rows: Var) -> list[Atom]:
        inner: list[Var | Scalar] = [fixed.get(k, v) for k, v in enumerate(values)]
        own_rows = iter(rows)
        for k, _ in moving:
            cell = ctx.b.moved(taken[k].lam.body)[0] if k in taken else next(own_rows)
            inner[k] = Scalar(cell) if cell.type.is_scalar or not isinstance(cell, Var) else cell
        return [map_nest(ctx, function, inner, shape[1:], terms)]

    arrays = [*own, *(a for s in taken.values() for a in s.arrays)]
    return ctx.b.map(width, arrays, body, "m", [p for s in taken.values() for p in s.lam.params[1:]])[0]


def _taken_back(ctx: Context, array: Var) -> Sweep | None:
    """The cheap map that made it, which is not among the statements any more. Note [Terms of an expression]"""
    stms = ctx.b.stms
    for k in range(len(stms) - 1, max(-1, len(stms) - 1 - NEAR), -1):
        exp = stms[k].exp
        if array in stms[k].vars:
            if not isinstance(exp, Sweep) or not _is_cheap(exp.lam.body):
                return None
            del stms[k]
            return exp
        if not isinstance(exp, PASSED):
            return None
    return None


def _is_cheap(body: Body) -> bool:
    if len(body.stms) > LONGEST:
        return False
    for stm in body.stms:
        match stm.exp:
            case Apply(op, _):
                if row(op).cost > DIVIDE:
                    return False
            case Sweep(_, _, lam, (), ()):
                if not _is_cheap(lam.body):
                    return False
            case _:
                return False
    return True
