"""Matrices by position: eye, triangles, diagonals, grids.

Takes sizes, vectors and matrices, gives new arrays as maps over rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable

from tapeless.frontend.data import scalars
from tapeless.frontend.data.arguments import array, axis, dtype, known, text, vector
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.atoms import apply, select
from tapeless.frontend.data.dimensions import dim_of
from tapeless.frontend.numpy.batch import lanes_last, over_leading
from tapeless.frontend.numpy.elementwise_options import borrowed
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Borrowed, Scalar, Sequence_, Value
from tapeless.ir.core import At
from tapeless.ir.types import Atom, Dim, DType, Var, i64, one_of, zero_of

dtype_argument = dtype  # a parameter of the same name hides it


def by_position(ctx: Context, rows: Dim, columns: Dim, element: Callable[[Atom, Atom], Atom]) -> Array:
    """A matrix from a function of row and column."""

    def row(i: Var) -> list[Atom]:
        return list(ctx.b.map(columns, [], lambda j: [element(i, j)]))

    return ctx.new_cell(ctx.b.map(rows, [], row, "m")[0])


@known("np.eye")
def _eye(ctx: Context, N: Value, M: Value | None = None, k: Value | None = None, dtype: Value | None = None) -> Value:
    rows = dim_of(ctx, N)
    columns = rows if M is None else dim_of(ctx, M)
    kind = dtype_argument(ctx, dtype) or DType.f64
    offset = index_of(ctx, "np.eye", k)

    def element(i: Atom, j: Atom) -> Atom:
        on = apply(ctx, "eq", j, i if offset == i64(0) else apply(ctx, "add", i, offset))
        return select(ctx, on, one_of(kind), zero_of(kind))

    return by_position(ctx, rows, columns, element)


@known("np.identity")
def _identity(ctx: Context, n: Value, dtype: Value | None = None) -> Value:
    return _eye(ctx, n, None, None, dtype)


@known("np.tri")
def _tri(ctx: Context, N: Value, M: Value | None = None, k: Value | None = None, dtype: Value | None = None) -> Value:
    rows = dim_of(ctx, N)
    columns = rows if M is None else dim_of(ctx, M)
    kind = dtype_argument(ctx, dtype) or DType.f64
    offset = index_of(ctx, "np.tri", k)
    return by_position(
        ctx, rows, columns, lambda i, j: select(ctx, _below(ctx, i, j, offset), one_of(kind), zero_of(kind))
    )


def _below(ctx: Context, i: Atom, j: Atom, offset: Atom) -> Atom:
    """On or below the diagonal."""
    return apply(ctx, "le", j, i if offset == i64(0) else apply(ctx, "add", i, offset))


def index_of(ctx: Context, name: str, value: Value | None) -> Atom:
    if value is None:
        return i64(0)
    if not isinstance(value, Scalar):
        ctx.fail("TP104", f"{name}: an integer is needed, not {type_text(value)}")
    return scalars.to_index(ctx, value, f"{name}: the number of the diagonal")


def _triangle(name: str, lower: bool) -> None:
    @known(name)
    def triangle(ctx: Context, m: Value, k: Value | None = None) -> Value:
        matrix = array(ctx, name, m)
        if matrix.type.rank < 2:
            ctx.fail("TP202", f"{name} takes a matrix")
        shift = index_of(ctx, name, k)
        offset = shift if lower else apply(ctx, "sub", shift, i64(1))

        def keep(i: Atom, j: Atom, x: Atom) -> Atom:
            zero = zero_of(x.type.dtype)
            below = _below(ctx, i, j, offset)
            return select(ctx, below, x, zero) if lower else select(ctx, below, zero, x)

        def body(var: Var) -> list[Atom]:
            def row(i: Var, r: Var) -> list[Atom]:
                return list(ctx.b.map(r.type.shape[0], [r], lambda j, x: [keep(i, j, x)]))

            return list(ctx.b.map(var.type.shape[0], [var], row))

        return over_leading(ctx, [(read(ctx, matrix), 2)], body)


_triangle("np.tril", True)
_triangle("np.triu", False)


@known("np.diag")
def diag(ctx: Context, v: Value, k: Value | None = None) -> Value:
    source = array(ctx, "np.diag", v)
    offset = index_of(ctx, "np.diag", k)
    if source.type.rank == 2:
        return diagonal(ctx, source, offset)
    if source.type.rank != 1:
        ctx.fail("TP202", "np.diag takes a vector or a matrix")
    return diagflat(ctx, source, offset)


def diagflat(ctx: Context, source: Array, offset: Atom) -> Array:
    """A square matrix with the vector on a diagonal."""
    var = read(ctx, source)
    n = ctx.canon(source.type.shape[0])
    size = ctx.atom_dim(apply(ctx, "add", ctx.size_atom(n), apply(ctx, "abs", offset))) if offset != i64(0) else n
    zeros = ctx.b.full((size, size), zero_of(var.type.dtype), var.type.dtype)
    down = apply(ctx, "max", apply(ctx, "neg", offset), i64(0)) if offset != i64(0) else i64(0)
    right = apply(ctx, "max", offset, i64(0)) if offset != i64(0) else i64(0)

    def body(i: Var, matrix: Var) -> list[Atom]:
        place = [At(apply(ctx, "add", i, down)), At(apply(ctx, "add", i, right))]
        return [ctx.b.update(matrix, place, ctx.b.row(var, i))]

    return ctx.new_cell(ctx.b.for_(ctx.size_atom(n), [zeros], body, ["m"])[0])


@known("np.diagonal")
def np_diagonal(
    ctx: Context, a: Value, offset: Value | None = None, axis1: Value | None = None, axis2: Value | None = None
) -> Value:
    value = array(ctx, "np.diagonal", a)
    first, second = (
        axis(ctx, "np.diagonal", given, value.type.rank, usual) for given, usual in ((axis1, 0), (axis2, 1))
    )
    if first == second:
        ctx.fail("TP202", "np.diagonal: axis1 and axis2 cannot be the same")
    return diagonal(ctx, value, index_of(ctx, "np.diagonal", offset), first, second)


def diagonal(ctx: Context, source: Array, offset: Atom, first: int = 0, second: int = 1) -> Array:
    """The diagonals of matrices, which NumPy has as a read-only view."""
    rows, columns = (ctx.size_atom(source.type.shape[k]) for k in (first, second))
    down = apply(ctx, "max", apply(ctx, "neg", offset), i64(0)) if offset != i64(0) else i64(0)
    right = apply(ctx, "max", offset, i64(0)) if offset != i64(0) else i64(0)
    if offset == i64(0) and rows == columns:
        count = rows
    else:
        count = apply(ctx, "min", apply(ctx, "sub", rows, down), apply(ctx, "sub", columns, right))
        count = apply(ctx, "max", count, i64(0))

    def line(matrix: Var) -> list[Atom]:
        def element(i: Var) -> list[Atom]:
            r, c = (i if s == i64(0) else apply(ctx, "add", i, s) for s in (down, right))
            return [ctx.b.index(matrix, [At(r), At(c)])]

        return list(ctx.b.map(ctx.atom_dim(count), [], element, "m"))

    made = over_leading(ctx, [(lanes_last(ctx, read(ctx, source), (first, second)), 2)], line)
    assert isinstance(made, Array)
    how = Borrowed("diagonal", (offset, i64(first), i64(second)))
    return borrowed(ctx, made, source, "a diagonal taken from a matrix cannot be written", how)


@known("np.meshgrid")
def _meshgrid(ctx: Context, *xi: Value, indexing: Value | None = None) -> Value:
    order = text(ctx, "np.meshgrid: indexing", indexing, "xy")
    vectors = [vector(ctx, "np.meshgrid", x) for x in xi]
    if any(v.type.rank != 1 for v in vectors):
        ctx.fail("TP202", "np.meshgrid takes vectors")
    places = list(range(len(vectors)))
    if order == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    shape: list[Dim] = [0] * len(vectors)
    for v, p in zip(vectors, places, strict=True):
        shape[p] = ctx.canon(v.type.shape[0])
    grids = [ctx.new_cell(ctx.b.broadcast(read(ctx, v), shape, [p])) for v, p in zip(vectors, places, strict=True)]
    return Sequence_(tuple(grids))
