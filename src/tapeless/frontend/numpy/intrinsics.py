"""The functions of `prelude.intrinsics` in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeless.frontend.data.arguments import array, with_signature
from tapeless.frontend.data.arrays import elementwise, read
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.leaves import atom_of, leaves_of, rebuilt, value_of
from tapeless.frontend.numpy.batch import over_leading
from tapeless.frontend.numpy.elementwise import Row, apply_row
from tapeless.frontend.numpy.library_calls import library, ordered, together
from tapeless.frontend.numpy.reductions import all_
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import BY_ID, call_numpy, call_value
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value
from tapeless.ir.types import Atom, Var
from tapeless.ops.promotion import float_dtype
from tapeless.prelude import intrinsics


def stands_for(function: Callable[..., Any]) -> Callable[[Callable[..., Value]], None]:
    def decorate(body: Callable[..., Value]) -> None:
        BY_ID[id(function)] = (function, with_signature(function.__name__, body))

    return decorate


def _atom(ctx: Context, value: Value) -> Atom:
    assert isinstance(value, (Scalar, Array))
    return atom_of(ctx, value)


@stands_for(intrinsics.each_matrix)
def _each_matrix(ctx: Context, function: Value, a: Value) -> Value:
    matrices = array(ctx, "each_matrix", a)
    if matrices.type.rank < 2:
        ctx.fail("TP202", f"a matrix is wanted here, not {type_text(matrices)}", "make it one with reshape.")
    shape: list[Value] = []  # of the result

    def lane(matrix: Var) -> list[Atom]:
        found = call_value(ctx, function, [ctx.new_cell(matrix)])
        shape[:] = [found]
        return [_atom(ctx, leaf) for leaf in leaves_of(found)]

    if matrices.type.rank == 2:
        return call_value(ctx, function, [matrices])
    made = over_leading(ctx, [(read(ctx, matrices), 2)], lane)
    return rebuilt(shape[0], list(made.items)) if isinstance(made, Sequence_) else made


@stands_for(intrinsics.each_row)
def _each_row(ctx: Context, function: Value, a: Value, *shared: Value) -> Value:
    rows = array(ctx, "each_row", a)

    def lane(row: Var) -> list[Atom]:
        return [_atom(ctx, call_value(ctx, function, [ctx.new_cell(row), *shared]))]

    if rows.type.rank == 1:
        return call_value(ctx, function, [rows, *shared])
    return over_leading(ctx, [(read(ctx, rows), 1)], lane)


# What NumPy says where there is an infinity or NaN, in which LAPACK may go astray.
NOT_FINITE = {
    "eigh": "Eigenvalues did not converge",
    "eig": "Array must not contain infs or NaNs",
    "svd": "SVD did not converge",
}


def _test(ctx: Context, name: str, a: Array, b: Array | None = None) -> None:
    """Sizes that fit, and numbers that are finite."""
    if name in ("eigh", "eig", "solve_lower", "solve_upper"):
        same_size(ctx, a.type.shape[0], a.type.shape[1], "a square matrix")
    if name in ("solve_lower", "solve_upper"):
        assert b is not None
        same_size(ctx, a.type.shape[0], b.type.shape[0], "the matrix and the right side")
    if name in NOT_FINITE:
        finite = all_(ctx, call_numpy(ctx, "isfinite", [a]))
        assert isinstance(finite, Scalar)
        ctx.check(finite.atom, "LinAlgError", NOT_FINITE[name])


def _of_library(name: str, function: Callable[..., Any]) -> None:
    def body(ctx: Context, a: Value, b: Value | None = None) -> Value:
        given = [array(ctx, name, v) for v in (a, b) if v is not None]
        _test(ctx, name, *given)
        operands = [read(ctx, v) for v in given] if name == "svd" else together(ctx, name, *given)
        made = [value_of(ctx, v) for v in library(ctx, name, *operands)]
        return made[0] if len(made) == 1 else Sequence_(tuple(made))

    stands_for(function)(body)


for _name in ("eigh", "eig", "svd", "qr", "fft_table", "fft", "ifft", "solve_lower", "solve_upper"):
    _of_library(_name, getattr(intrinsics, _name))


@stands_for(intrinsics.borrowed)
def _borrowed(ctx: Context, name: Value, *args: Value) -> Value:
    assert isinstance(name, Static)
    row = Row(name.value, floating=float_dtype)
    full = f"scipy.special.{name.value}"
    return elementwise(ctx, lambda *s: apply_row(ctx, full, row, *s), args, full)


@stands_for(intrinsics.ranked)
def _ranked(ctx: Context, x: Value, ranks: Value) -> Value:
    row, wanted = array(ctx, "ranked", x), array(ctx, "ranked", ranks)
    if row.type.dtype.is_complex:
        order = call_numpy(ctx, "argsort", [row])
        assert isinstance(order, Array)
        return get_item(ctx, order, wanted)
    return value_of(ctx, library(ctx, "ranked", ordered(ctx, read(ctx, row)), read(ctx, wanted))[0])
