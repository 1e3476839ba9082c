"""Routines of BLAS and LAPACK as loops: what NumPy says, for all that lowering asks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapeless.ir.types import I64, Atom, DType, Var, const, i64
from tapeless.lower.ir.interp import run_program
from tapeless.lower.ir.loopir import Buffer, Call, Pointer, Program, Return, Space
from tapeless.lower.routines_by_loops import by_loops

TOLERANCES = {DType.f64: 1e-11, DType.f32: 1e-3, DType.c128: 1e-11}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
N, T, U, L, R = (i64(ord(c)) for c in "NTULR")
SIZE = 5
n = i64(SIZE)


@pytest.fixture
def numbers() -> Callable[..., Any]:
    rng = np.random.default_rng(3)

    def make(rows: int, columns: int, dtype: DType) -> Any:
        x = rng.normal(size=(rows, columns))
        return np.asarray(x + 1j * rng.normal(size=(rows, columns)) if dtype.is_complex else x, dtype.numpy)

    return make


def run(name: str, make: Callable[..., tuple[Atom | Pointer, ...]], *arrays: Any) -> tuple[int, list[Any]]:
    """The answer of the routine, and what the matrices are after it. They lie by columns."""
    kinds = {d.numpy: d for d in DType}
    params = tuple(Buffer(f"x{k}", kinds[a.dtype], Space.param) for k, a in enumerate(arrays))
    info = Var("info", I64)
    body = by_loops(Call(name, make(*(Pointer(b, i64(0)) for b in params)), info))
    assert body is not None
    program = Program("f", params, Var("threads", I64), (DType.i64,), (), (*body, Return(0, info)))
    flat = [a.reshape(-1, order="F").copy() for a in arrays]
    scalars, _ = run_program(program, flat)
    return int(scalars[0]), [f.reshape(a.shape, order="F") for a, f in zip(arrays, flat, strict=True)]


def assert_close(got: Any, want: Any, dtype: DType) -> None:
    np.testing.assert_allclose(got, want, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@DTYPES
@pytest.mark.parametrize("left", [N, T])
@pytest.mark.parametrize("right", [N, T])
@pytest.mark.parametrize("beta", [0, 1])
def test_products(dtype: DType, left: Atom, right: Atom, beta: int, numbers: Any) -> None:
    a, b, c = (
        numbers(*((3, 4) if left is N else (4, 3)), dtype),
        numbers(*((4, 2) if right is N else (2, 4)), dtype),
        numbers(3, 2, dtype),
    )
    one, more = const(-2.0, dtype), const(beta, dtype)
    lda, ldb = i64(a.shape[0]), i64(b.shape[0])
    _, (_, _, got) = run(
        "xgemm", lambda p, q, r: (left, right, i64(3), i64(2), i64(4), one, p, lda, q, ldb, more, r, i64(3)), a, b, c
    )
    assert_close(got, -2.0 * (a if left is N else a.T) @ (b if right is N else b.T) + beta * c, dtype)


@DTYPES
@pytest.mark.parametrize("turned", [N, T])
def test_a_product_with_itself(dtype: DType, turned: Atom, numbers: Any) -> None:
    a, c = numbers(SIZE, SIZE, dtype), numbers(SIZE, SIZE, dtype)
    ends = (const(0, dtype),)
    _, (_, got) = run("xsyrk", lambda p, q: (U, turned, n, n, const(1, dtype), p, n, *ends, q, n), a, c)
    assert_close(np.triu(got), np.triu(a @ a.T if turned is N else a.T @ a), dtype)


@DTYPES
@pytest.mark.parametrize("side", [L, R])
@pytest.mark.parametrize("part", [U, L])
@pytest.mark.parametrize("turned", [N, T])
def test_triangles(dtype: DType, side: Atom, part: Atom, turned: Atom, numbers: Any) -> None:
    a = numbers(SIZE, SIZE, dtype) + 4 * np.eye(SIZE, dtype=dtype.numpy)
    b = numbers(*((SIZE, 3) if side is L else (3, SIZE)), dtype)
    sizes = (i64(b.shape[0]), i64(b.shape[1]))
    triangle = np.triu(a) if part is U else np.tril(a)
    triangle = triangle if turned is N else triangle.T
    one = const(1, dtype)
    _, (_, got) = run("xtrsm", lambda p, q: (side, part, turned, N, *sizes, one, p, n, q, sizes[0]), a, b)
    assert_close(triangle @ got if side is L else got @ triangle, b, dtype)


@DTYPES
@pytest.mark.parametrize("turned", [N, T])
def test_systems_and_inverses(dtype: DType, turned: Atom, numbers: Any) -> None:
    a, b = numbers(SIZE, SIZE, dtype), numbers(SIZE, 2, dtype)
    a[0, 0] = 0.0  # rows change places
    info, (lu, pivots) = run("xgetrf", lambda p, q: (n, n, p, n, q), a, np.zeros((SIZE, 1), np.int32))
    assert info == 0
    _, (_, _, x) = run("xgetrs", lambda p, q, r: (turned, n, i64(2), p, n, q, r, n), lu, pivots, b)
    assert_close((a if turned is N else a.T) @ x, b, dtype)
    info, (inverse, _, _) = run("xgetri", lambda p, q, r: (n, p, n, q, r, n), lu, pivots, numbers(SIZE, 1, dtype))
    assert info == 0
    assert_close(a @ inverse, np.eye(SIZE), dtype)


def test_a_system_without_a_solution() -> None:
    a = np.ones((3, 3))
    three = i64(3)
    info, (lu, pivots) = run("xgetrf", lambda p, q: (three, three, p, three, q), a, np.zeros((3, 1), np.int32))
    assert info == 2
    info, _ = run("xgetri", lambda p, q, r: (three, p, three, q, r, three), lu, pivots, np.ones((3, 1)))
    assert info == 2


@DTYPES
def test_roots_of_matrices(dtype: DType, numbers: Any) -> None:
    x = numbers(SIZE, SIZE, dtype)
    a = x @ x.conj().T + np.eye(SIZE, dtype=dtype.numpy)
    info, (root,) = run("xpotrf", lambda p: (U, n, p, n), a)
    assert info == 0
    assert_close(np.triu(root).conj().T @ np.triu(root), a, dtype)
    a[2, 2] = -1.0
    assert run("xpotrf", lambda p: (U, n, p, n), a)[0] == 3


def test_a_routine_that_is_not_known() -> None:
    assert by_loops(Call("dgeev", ())) is None
