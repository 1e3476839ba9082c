"""Linear algebra: products of vectors and matrices, np.linalg, norms.

Takes arrays, gives numbers and new arrays. Products and factorisations are `library` operations of Core on single
vectors and matrices; stacks of them are maps. Sizes that do not fit raise ShapeError, which is a ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tapeless.frontend.data.arguments import array, axes, axis, integer, known, numeric, optional_number
from tapeless.frontend.data.arrays import cast, elementwise, read
from tapeless.frontend.data.atoms import apply, convert, same_size
from tapeless.frontend.data.dimensions import total_size
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.python_operators import binary_rule, binary_values
from tapeless.frontend.numpy.batch import over_leading
from tapeless.frontend.numpy.creation import at_least
from tapeless.frontend.numpy.einsum import contract, summed
from tapeless.frontend.numpy.elementwise import ROWS, apply_row, common_dtype, conj
from tapeless.frontend.numpy.library_calls import library, tested, together
from tapeless.frontend.numpy.matrices import diagonal, index_of
from tapeless.frontend.numpy.reductions import fold, max_, min_, over_lanes, refuse_empty, sum_, widened
from tapeless.frontend.numpy.shapes import flat, moveaxis, reshaped, stack
from tapeless.frontend.numpy.statistics import absolute_square, flat_at_ends, root
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import BY_NAME
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import Atom, DType, Var, const, zero_of
from tapeless.ops.promotion import float_dtype

axis_argument = axis  # a parameter of the same name hides it


# -- products


@binary_rule("MatMult")
def matmul(ctx: Context, a: Value, b: Value) -> Value:
    """a @ b."""
    x, y = numeric(ctx, "@", a), numeric(ctx, "@", b)
    if isinstance(x, Scalar) or isinstance(y, Scalar):
        ctx.fail("TP104", f"'@' takes arrays, not {type_text(x)} and {type_text(y)}", "use * for numbers.")
    same_size(ctx, x.type.shape[-1], y.type.shape[max(0, y.type.rank - 2)], "operands of @")
    left, right = together(ctx, "@", x, y)
    lanes = [(left, min(2, left.type.rank)), (right, min(2, right.type.rank))]
    return over_leading(ctx, lanes, lambda u, v: [_product(ctx, u, v)], "operands of @")


def _product(ctx: Context, u: Var, v: Var) -> Atom:
    """Of two vectors or matrices."""
    if not tested(ctx, u.type.dtype):
        return library(ctx, "matmul", u, v)[0]
    left, right = ["i", "j"][-u.type.rank :], ["j", "k"][: v.type.rank]
    return summed(ctx, [(u, left), (v, right)], [c for c in (*left, *right) if c != "j"])


@known("np.matmul")
def np_matmul(ctx: Context, x1: Value, x2: Value) -> Value:
    return matmul(ctx, x1, x2)


@known("np.dot")
def dot(ctx: Context, a: Value, b: Value) -> Value:
    x, y = numeric(ctx, "np.dot", a), numeric(ctx, "np.dot", b)
    if isinstance(x, Scalar) or isinstance(y, Scalar):
        return elementwise(ctx, lambda u, v: apply_row(ctx, "np.dot", ROWS["multiply"], u, v), [x, y], "np.dot")
    if x.type.rank <= 2 and y.type.rank <= 2:
        return matmul(ctx, x, y)
    place = max(0, y.type.rank - 2)
    return tensordot(ctx, x, y, Sequence_((Sequence_((weak(-1),)), Sequence_((weak(place),)))))


@known("np.vdot")
def vdot(ctx: Context, a: Value, b: Value) -> Value:
    x, y = array(ctx, "np.vdot", a), array(ctx, "np.vdot", b)
    if x.type.dtype.is_complex:
        made = elementwise(ctx, lambda s: conj(ctx, s), [x], "np.vdot")
        assert isinstance(made, Array)
        x = made
    return matmul(ctx, flat(ctx, x), flat(ctx, y))


@known("np.inner")
def inner(ctx: Context, a: Value, b: Value) -> Value:
    x, y = numeric(ctx, "np.inner", a), numeric(ctx, "np.inner", b)
    if isinstance(x, Scalar) or isinstance(y, Scalar):
        return dot(ctx, x, y)
    return tensordot(ctx, x, y, Sequence_((Sequence_((weak(-1),)), Sequence_((weak(-1),)))))


@known("np.outer")
def outer(ctx: Context, a: Value, b: Value) -> Value:
    x, y = flat(ctx, array(ctx, "np.outer", a)), flat(ctx, array(ctx, "np.outer", b))
    column = reshaped(ctx, x, [ctx.canon(x.type.shape[0]), 1])
    return elementwise(ctx, lambda u, v: apply_row(ctx, "np.outer", ROWS["multiply"], u, v), [column, y], "np.outer")


@known("np.tensordot")
def tensordot(ctx: Context, a: Value, b: Value, axes: Value | None = None) -> Value:
    """As an einsum: the letters of the axes that are summed over are shared."""
    x, y = array(ctx, "np.tensordot", a), array(ctx, "np.tensordot", b)
    if isinstance(axes, Sequence_):
        pairs = []
        for v, side in zip((x, y), axes.items, strict=True):
            items = side.items if isinstance(side, Sequence_) else (side,)
            pairs.append([axis_argument(ctx, "np.tensordot", i, v.type.rank) for i in items])
    else:
        count = integer(ctx, "np.tensordot: axes", axes, 2)
        if count > min(x.type.rank, y.type.rank):
            ctx.shape_error("TP202", f"np.tensordot: there are no {count} axes to sum over")
        pairs = [list(range(x.type.rank - count, x.type.rank)), list(range(count))]
    if len(pairs[0]) != len(pairs[1]):
        ctx.fail("TP112", "np.tensordot takes as many axes of one array as of the other")
    left = [chr(ord("A") + k) for k in range(x.type.rank)]
    right = [chr(ord("a") + k) for k in range(y.type.rank)]
    for i, j in zip(*pairs, strict=True):
        right[j] = left[i]
    shared = {left[i] for i in pairs[0]}
    result = [c for c in (*left, *right) if c not in shared]
    return contract(ctx, "np.tensordot", [(x, left), (y, right)], result)


@known("np.cross")
def cross(
    ctx: Context, a: Value, b: Value, axisa: Value | None = None, axisb: Value | None = None,
    axisc: Value | None = None, axis: Value | None = None,
) -> Value:  # fmt: skip
    x, y = array(ctx, "np.cross", a), array(ctx, "np.cross", b)
    if any(v is not None for v in (axisa, axisb, axisc, axis)):
        of_a, of_b, of_c = (axis or v or weak(-1) for v in (axisa, axisb, axisc))
        last = weak(-1)
        product = cross(ctx, moveaxis(ctx, x, of_a, last), moveaxis(ctx, y, of_b, last))
        return moveaxis(ctx, product, last, of_c)
    for v in (x, y):
        axis_argument(ctx, "np.cross", weak(-1), v.type.rank)
        same_size(ctx, 3, v.type.shape[-1], "np.cross takes vectors of 3 elements")

    def at(v: Array, k: int) -> Value:
        return get_item(ctx, v, Sequence_((Static(Ellipsis), weak(k % 3))))

    parts = []
    for k in range(3):
        plus = binary_values(ctx, "Mult", at(x, k + 1), at(y, k + 2))
        parts.append(binary_values(ctx, "Sub", plus, binary_values(ctx, "Mult", at(x, k + 2), at(y, k + 1))))
    return stack(ctx, Sequence_(tuple(parts), "list"), weak(-1))


@known("np.kron")
def kron(ctx: Context, a: Value, b: Value) -> Value:
    both = [array(ctx, "np.kron", v) for v in (a, b)]
    rank = max(v.type.rank for v in both)
    x, y = (array(ctx, "np.kron", at_least(ctx, v, rank)) for v in both)
    spread = [(ctx.canon(d), 1) for d in x.type.shape]
    packed = [(1, ctx.canon(d)) for d in y.type.shape]
    left = reshaped(ctx, x, [d for pair in spread for d in pair])
    right = reshaped(ctx, y, [d for pair in packed for d in pair])
    made = elementwise(ctx, lambda u, v: apply_row(ctx, "np.kron", ROWS["multiply"], u, v), [left, right], "np.kron")
    made = array(ctx, "np.kron", made)
    sizes = [total_size(ctx, pair) for pair in zip(x.type.shape, y.type.shape, strict=True)]
    return ctx.new_cell(ctx.b.reshape(read(ctx, made), [ctx.atom_dim(s) for s in sizes]))


@known("np.trace", "np.linalg.trace")
def trace(ctx: Context, a: Value, offset: Value | None = None) -> Value:
    matrix = array(ctx, "np.trace", a)
    if matrix.type.rank != 2:
        ctx.fail("TP202", "np.trace takes a matrix here", "map over the matrices.")
    kind = widened(matrix.type.dtype)
    line = read(ctx, diagonal(ctx, matrix, index_of(ctx, "np.trace", offset)))
    return Scalar(fold(ctx, "add", [line], lambda x: convert(ctx, x, kind)))


# -- np.linalg


def matrices(ctx: Context, name: str, value: Value) -> Array:
    """A matrix or a stack of them: square, and of floats or complex numbers."""
    found = array(ctx, name, value)
    if found.type.rank < 2:
        ctx.fail("TP202", f"{name} takes a matrix, not {type_text(found)}")
    same_size(ctx, found.type.shape[-2], found.type.shape[-1], f"{name} takes a square matrix")
    kind = float_dtype(found.type.dtype)
    return found if kind is found.type.dtype else ctx.new_cell(cast(ctx, read(ctx, found), kind))


def _of_matrix(name: str) -> None:
    @known(f"np.linalg.{name}")
    def body(ctx: Context, a: Value) -> Value:
        matrix = matrices(ctx, f"np.linalg.{name}", a)
        result = over_leading(ctx, [(read(ctx, matrix), 2)], lambda m: library(ctx, name, m))
        if isinstance(result, Sequence_):
            return Sequence_(result.items, "namedtuple", ("sign", "logabsdet"), _slogdet_result())
        return result


def _slogdet_result() -> type:
    """NumPy's NamedTuple of sign and logabsdet."""
    return type(np.linalg.slogdet(np.eye(1)))


for _name in ("inv", "det", "slogdet", "cholesky"):
    _of_matrix(_name)


@known("np.linalg.solve")
def solve(ctx: Context, a: Value, b: Value) -> Value:
    name = "np.linalg.solve"
    matrix, right = matrices(ctx, name, a), array(ctx, name, b)
    kind = float_dtype(common_dtype([Scalar(const(0, v.type.dtype)) for v in (matrix, right)]))
    lane = 1 if right.type.rank == 1 else 2
    axis_argument(ctx, name, weak(-lane), right.type.rank)
    same_size(ctx, matrix.type.shape[-1], right.type.shape[-lane], name)
    operands = [(cast(ctx, read(ctx, matrix), kind), 2), (cast(ctx, read(ctx, right), kind), lane)]
    return over_leading(ctx, operands, lambda m, v: library(ctx, "solve", m, v), name)


@known("np.linalg.matrix_power")
def matrix_power(ctx: Context, a: Value, n: Value) -> Value:
    exponent = integer(ctx, "np.linalg.matrix_power: the exponent", n)
    matrix = array(ctx, "np.linalg.matrix_power", a)
    if exponent < 1 or exponent > 64:
        ctx.fail("TP112", "np.linalg.matrix_power takes constant exponents from 1 to 64 here", "multiply in a loop.")
    result: Value | None = None
    square: Value = matrix
    while exponent:
        if exponent % 2:
            result = square if result is None else matmul(ctx, result, square)
        exponent //= 2
        square = matmul(ctx, square, square) if exponent else square
    assert result is not None
    return result


# -- norms

Norm = Callable[[Context, Var, DType], Atom]


def _euclidean(ctx: Context, lane: Var, kind: DType) -> Atom:
    """An infinite norm has the slope 0 by each element, which `times` does not multiply by infinity."""
    product = "times" if ctx.transforms else "mul"
    return root(ctx, fold(ctx, "add", [lane], lambda x: absolute_square(ctx, convert(ctx, x, kind), product)))


def _size(ctx: Context, x: Atom, kind: DType) -> Atom:
    return apply(ctx, "abs", convert(ctx, x, kind))


def _of_order(order: float) -> Norm:
    def norm(ctx: Context, lane: Var, kind: DType) -> Atom:
        def power(x: Atom, exponent: float) -> Atom:
            return flat_at_ends(ctx, x, exponent > 0, lambda y: apply(ctx, "pow", y, const(exponent, kind.real)))

        total = fold(ctx, "add", [lane], lambda x: power(_size(ctx, x, kind), order))
        return power(total, 1 / order)

    return norm


def _largest(ctx: Context, lane: Var, kind: DType) -> Atom:
    """0 for no elements, which is the least that there is."""
    found = fold(ctx, "maximum", [lane], lambda x: _size(ctx, x, kind))
    return apply(ctx, "maximum", found, zero_of(kind.real))


def _smallest(ctx: Context, lane: Var, kind: DType) -> Atom:
    refuse_empty(
        ctx, total_size(ctx, lane.type.shape), "zero-size array to reduction operation minimum which has no identity"
    )
    return fold(ctx, "minimum", [lane], lambda x: _size(ctx, x, kind))


VECTOR_NORMS: dict[float, Norm] = {
    2.0: _euclidean,
    1.0: lambda ctx, lane, kind: fold(ctx, "add", [lane], lambda x: _size(ctx, x, kind)),
    math.inf: lambda ctx, lane, kind: _largest(ctx, lane, kind),
    -math.inf: lambda ctx, lane, kind: _smallest(ctx, lane, kind),
    0.0: lambda ctx, lane, kind: fold(
        ctx, "add", [lane], lambda x: convert(ctx, convert(ctx, x, DType.bool), kind.real)
    ),
}


@known("np.linalg.norm")
def norm(
    ctx: Context, x: Value, ord: Value | None = None, axis: Value | None = None, keepdims: Value | None = None
) -> Value:
    name = "np.linalg.norm"
    value = array(ctx, name, x)
    kind = float_dtype(value.type.dtype)
    frobenius = isinstance(ord, Static) and ord.value == "fro"
    nuclear = isinstance(ord, Static) and ord.value == "nuc"
    order = None if frobenius or nuclear else optional_number(ctx, f"{name}: ord", ord)
    where = axes(ctx, name, axis, value.type.rank)
    if len(where) == 2 and axis is None and keepdims is None and (nuclear or (order is not None and abs(order) == 2)):
        values = BY_NAME["np.linalg.svd"](ctx, [value], {"compute_uv": weak(False)})
        return (sum_ if nuclear else max_ if order == 2 else min_)(ctx, values)
    if order is None:
        if (axis is not None and len(where) > 2) or (frobenius and len(where) != 2):
            ctx.fail("TP202", f"{name}: the norm of {len(where)} axes is not defined")
        return over_lanes(ctx, name, value, where, keepdims, lambda lane: [_euclidean(ctx, lane, kind)])
    if len(where) == 1:
        rule = VECTOR_NORMS.get(float(order)) or _of_order(float(order))
        return over_lanes(ctx, name, value, where, keepdims, lambda lane: [rule(ctx, lane, kind)])
    if len(where) != 2 or abs(order) not in (1, math.inf) or axis is not None or keepdims is not None:
        ctx.fail(
            "TP112",
            f"{name}: this norm of a matrix cannot be compiled",
            "use 'fro', 'nuc', 1, 2 or np.inf, without axis.",
        )
    sizes = elementwise(ctx, lambda s: apply_row(ctx, name, ROWS["abs"], Scalar(convert(ctx, s.atom, kind))), [value])
    sums = sum_(ctx, sizes, weak(0 if abs(order) == 1 else 1))
    return (max_ if order > 0 else min_)(ctx, sums)
