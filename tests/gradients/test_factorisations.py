"""Back through factorisations, over several blocks, and triangular solves in native code."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.builder import Builder
from tapeless.ir.core import Body, Function, Library
from tapeless.ir.types import DType, Type, Var
from tapeless.lower.core.triangles import BLOCK
from tapeless.lower.lowering import lower
from tapeless.passes.check.consumption import check_in_place
from tests.backends.native import call, prepare


def positive(n, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, n))
    return x @ x.T + n * np.eye(n)


def weighted(a, w):
    return np.sum(np.linalg.cholesky(a) * w)


def turned(a, w):
    return np.sum(np.linalg.cholesky(a.T).T * w[::-1])


def expected(a, w):
    factor = np.linalg.cholesky(a)
    inner = np.tril(factor.T @ np.tril(w))
    inner -= 0.5 * np.diag(np.diag(inner))
    whole = np.linalg.solve(factor.T, np.linalg.solve(factor.T, inner).T).T
    both = np.tril(whole + whole.T)
    return both - 0.5 * np.diag(np.diag(both))


@pytest.mark.parametrize("n", [1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5, 200])
@pytest.mark.parametrize("kind, digits", [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_cholesky_over_blocks(n, kind, digits):
    a, w = positive(n), np.random.default_rng(1).standard_normal((n, n))
    want = expected(a, w)
    found = tp.grad(weighted)(a.astype(kind), w.astype(kind))
    assert found.dtype == kind
    np.testing.assert_allclose(found, want, rtol=0, atol=digits * np.abs(want).max())


def test_the_upper_triangle_does_not_matter():
    a, w = positive(BLOCK + 3), np.ones((BLOCK + 3, BLOCK + 3))
    wild = np.tril(a) + np.triu(np.full_like(a, np.nan), 1)
    np.testing.assert_array_equal(tp.grad(weighted)(wild, w), tp.grad(weighted)(a, w))


def test_matrices_in_other_orders():
    a, w = positive(BLOCK + 9), np.random.default_rng(2).standard_normal((BLOCK + 9, BLOCK + 9))
    upper = expected(a, w[::-1].T).T
    np.testing.assert_allclose(tp.grad(turned)(a, w), upper, atol=1e-12)


def test_an_empty_matrix():
    assert tp.grad(weighted)(np.zeros((0, 0)), np.zeros((0, 0))).shape == (0, 0)


def squares(a, w):
    return np.sum(np.linalg.cholesky(a) ** 2 * w)


@pytest.mark.thorough
def test_second_derivatives_in_every_nesting():
    a, w = positive(4, 3), np.random.default_rng(4).standard_normal((4, 4))
    tp.check_grads(squares, (a, w), order=2)
    there = tp.jacfwd(tp.grad(squares))(a, w)
    for back in (tp.jacrev(tp.grad(squares)), tp.jacrev(tp.jacfwd(squares)), tp.hessian(squares)):
        np.testing.assert_allclose(back(a, w), there, atol=1e-12)


def solved(name, a, b):
    """By a triangle of the matrix, or of its transpose."""
    kinds = {np.dtype("f4"): DType.f32, np.dtype("f8"): DType.f64}
    left, right = (Var(v, Type(kinds[x.dtype], x.shape)) for v, x in (("a", a), ("b", b)))
    builder = Builder()
    matrix = builder.transpose(left, (1, 0)) if name.endswith("turned") else left
    found = builder.let(right.type, Library(name.removesuffix(" turned"), (matrix, right)), "x")
    core = Function("f", (), (left, right), Body(tuple(builder.stms), (found,)))
    program = lower(check_in_place(core)[0]).program
    out = np.empty_like(b)
    native, function = prepare(program)
    return call(program, native, function, a, b, out), out


TRIANGLES = {
    "solve_lower": lambda a: np.tril(a),
    "solve_upper": lambda a: np.triu(a),
    "solve_lower turned": lambda a: np.tril(a.T),
    "solve_upper turned": lambda a: np.triu(a.T),
}


@pytest.mark.parametrize("name", TRIANGLES)
@pytest.mark.parametrize("columns", [(), (1,), (4,)])
@pytest.mark.parametrize("kind, digits", [("f8", 1e-12), ("f4", 1e-4)])
def test_solves_by_triangles(name, columns, kind, digits):
    rng = np.random.default_rng(5)
    a = (rng.standard_normal((6, 6)) + 4 * np.eye(6)).astype(kind)
    b = rng.standard_normal((6, *columns)).astype(kind)
    outcome, x = solved(name, a, b)
    assert outcome.code == 0
    np.testing.assert_allclose(TRIANGLES[name](a) @ x, b, atol=digits)


@pytest.mark.parametrize("name", TRIANGLES)
def test_a_zero_on_the_diagonal_is_refused(name):
    a = np.ones((3, 3))
    a[1, 1] = 0.0
    outcome, _ = solved(name, a, np.ones(3))
    assert outcome.code != 0
