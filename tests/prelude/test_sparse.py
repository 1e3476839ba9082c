"""Sparse matrices of SciPy in compiled code, judged by SciPy and by differences of it; their gradients have the same structure."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

RNG = np.random.default_rng(3)
DENSE = np.where(RNG.random((4, 3)) < 0.6, RNG.normal(size=(4, 3)), 0.0)
U, V, W = RNG.normal(size=3), RNG.normal(size=4), RNG.normal(size=(3, 2))
KINDS = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def everything(a):
    """All that gives dense arrays."""
    return (
        a @ U, a @ W, a.T @ V, V @ a, W.T @ a.T, a.dot(U), (2.0 * a / 3.0).toarray(), (-a).toarray(), (a * 2).T.toarray(), a.diagonal(),
        a.diagonal(1), a.diagonal(-2), a.diagonal(-7), a.sum(), a.shape, a.ndim, a.transpose() @ V,
    )  # fmt: skip


def energy(a):
    return (
        np.sum((a @ U) ** 3)
        + np.sum(np.sin(V @ a)) * a.sum()
        + np.sum(a.diagonal() ** 2)
        + np.sum((a.T * 2.0).toarray() ** 2)
    )


def duplicated(kind):
    """Entries that come twice, in no order."""
    rows, columns = np.array([3, 0, 1, 3, 0, 2]), np.array([2, 1, 1, 2, 0, 0])
    a = sp.coo_array((RNG.normal(size=6), (rows, columns)), shape=(4, 3))
    return (
        a
        if kind is sp.coo_array
        else kind((a.data, np.array([2, 1, 1, 2, 0, 0]), np.array([0, 2, 3, 3, 6])), shape=(4, 3))
    )


def with_data(a, data):
    made = a.copy()
    made.data[:] = data
    return made


def differences(f, a, step=1e-5):
    found = []
    for k in range(len(a.data)):
        move = np.zeros(len(a.data))
        move[k] = step
        found.append((f(with_data(a, a.data + move)) - f(with_data(a, a.data - move))) / (2 * step))
    return np.array(found)


def same(found, expected):
    assert type(found) is type(expected) or not hasattr(expected, "__len__")
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.thorough
@pytest.mark.sampled(2)
@each_kind
def test_values_and_gradients(kind):
    a = kind(DENSE)
    for found, expected in zip(tp.function(everything)(a), everything(a), strict=True):
        same(found, expected)
    same(tp.function(lambda a: a.data * a.nnz)(a), a.data * a.nnz)
    gradient = tp.grad(energy)(a)
    assert type(gradient) is kind and gradient.shape == a.shape
    np.testing.assert_allclose(gradient.data, differences(energy, a), rtol=1e-7)
    assert (gradient != 0).nnz <= a.nnz and not np.shares_memory(gradient.data, a.data)
    step = with_data(a, RNG.normal(size=a.nnz))
    value, slope = tp.jvp(energy, (a,), (step,))
    np.testing.assert_allclose(slope, gradient.data @ step.data, rtol=1e-12)
    bent = tp.hvp(energy, (a,), (step,))[1]
    expected = differences(lambda b: tp.grad(energy)(b).data @ step.data, a)
    np.testing.assert_allclose(bent.data, expected, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_array], ids=lambda kind: kind.__name__)
def test_entries_that_come_twice(kind):
    a = duplicated(kind)
    for found, expected in zip(tp.function(everything)(a), everything(a.copy()), strict=True):
        same(found, expected)
    np.testing.assert_allclose(tp.grad(energy)(a).data, differences(energy, a), rtol=1e-7)


def test_numbers_that_are_not_finite_stay_where_they_are():
    a = sp.csr_array(np.array([[np.inf, 0.0], [0.0, 1.0]]))
    same(tp.function(lambda a: a.toarray())(a), a.toarray())


def test_kinds_of_numbers_and_sums():
    for dtype in (np.int32, np.int64, np.float32, np.complex128):
        a = sp.csr_array(np.arange(6).reshape(2, 3).astype(dtype))
        f = tp.function(lambda a: (a.sum(), a.sum(axis=0), a.sum(1), a @ np.ones(3, np.float32), a.toarray()))
        for found, expected in zip(f(a), f.python(a), strict=True):
            assert found.dtype == expected.dtype
            same(found, expected)


def test_results_and_containers():
    a = sp.csr_array(DENSE)
    turned = tp.function(lambda a: (a * 2).T)(a)
    assert type(turned) is sp.csc_array and abs(turned - 2 * a.T).max() == 0
    value, pull = tp.vjp(lambda a: a * np.sum(a.data), a)
    assert abs(value - a * a.data.sum()).max() < 1e-15
    np.testing.assert_allclose(pull(a)[0].data, a.data * a.data.sum() + a.data @ a.data)
    np.testing.assert_allclose(tp.linearize(lambda a: a * 3.0, a)[1](a).data, 3 * a.data)
    gradient = tp.grad(lambda p: np.sum((p["a"] @ p["x"]) ** 2))({"a": a, "x": U, "n": 3})
    np.testing.assert_allclose(gradient["x"], 2 * DENSE.T @ (DENSE @ U))
    moved = tp.tree_map(lambda p, g: p - 0.1 * g, {"a": a, "x": U, "n": 3}, gradient)
    np.testing.assert_allclose(moved["a"].data, a.data - 0.1 * gradient["a"].data)
    np.testing.assert_array_equal(moved["a"].indices, a.indices)
    whole = sp.csr_array(DENSE.astype(int))
    assert tp.grad(lambda p: np.sum(p[0] @ p[1]))((whole, U))[0] is None


def test_of_the_surroundings():
    held = sp.csc_array(DENSE)
    f = tp.function(lambda x: held @ x if isinstance(held, sp.csc_array) and sp.issparse(held) else x)
    same(f(U), held @ U)
    held.data *= 2.0  # read at each call
    same(f(U), held @ U)
    held = sp.csc_array(DENSE[:2])
    same(f(U), held @ U)
    np.testing.assert_allclose(tp.grad(lambda x: np.sum((held @ x) ** 2))(U), 2 * held.T @ (held @ U))


@pytest.mark.thorough
@pytest.mark.sampled(2)
@each_kind
def test_made_in_compiled_code(kind):
    a = kind(DENSE)
    places = (a.row, a.col) if "coo" in kind.__name__ else (a.indices, a.indptr)

    def f(data):
        parts = (data, places) if "coo" in kind.__name__ else (data, *places)
        return kind(parts, shape=(4, 3))

    found = tp.function(f)(a.data * 2)
    assert type(found) is kind and abs(found - 2 * a).max() == 0
    tp.check_grads(lambda data: np.sum((f(data * data) @ U) ** 2), (a.data,))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(threads):
    a, x = sp.random_array((3000, 2000), density=0.01, format="csr", rng=RNG), RNG.normal(size=2000)
    error = np.abs(tp.function(lambda a, x: a @ x, threads=threads)(a, x) - a @ x)
    assert np.all(error <= 1e-14 * (abs(a) @ abs(x)))  # terms cancel
    found = tp.grad(lambda a, x: np.sum((a @ x) ** 2), (0, 1), threads=threads)(a, x)
    np.testing.assert_allclose(found[1], 2 * a.T @ (a @ x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found[0].data, 2 * np.repeat(a @ x, np.diff(a.indptr)) * x[a.indices], rtol=1e-10)


@pytest.mark.parametrize(
    "f, reason",
    [
        (lambda a: a @ a.T, "the product of two sparse matrices cannot be compiled"),
        (lambda a: a * U, "element by element, cannot be compiled"),
        (lambda a: a @ 2.0, "multiplied by vectors and matrices only"),
        (lambda a: a + a, "cannot be compiled"),
        (lambda a: a[0, 1], "cannot be compiled"),
        (lambda a: tp.jacobian(lambda b: b @ U)(a), "tp.jacobian by or of a sparse matrix"),
        (lambda a: sp.csr_matrix.sum(a, 0), "cannot be compiled"),
        (lambda a: sp.csr_array(a.toarray()), r"made of \(data, indices, indptr\)"),
    ],
)
def test_refused(f, reason):
    with pytest.raises(tp.CompileError, match=reason):
        tp.function(f)(sp.csr_array(DENSE))


def test_what_does_not_fit():
    a = sp.csr_array(DENSE)
    with pytest.raises(ValueError, match="dimension mismatch: a size of 3 meets one of 4"):
        tp.function(lambda a: a @ V)(a)
    other = sp.csr_array(DENSE[::-1].copy())
    for attempt in (
        lambda: tp.jvp(lambda a: a @ U, (a,), (other,)),
        lambda: tp.linearize(lambda a: a @ U, a)[1](other),
        lambda: tp.vjp(lambda a: a * 2.0, a)[1](other),
    ):
        with pytest.raises(ValueError, match="has other indices or another shape|has size"):
            attempt()
    with pytest.raises(tp.ArgumentError, match="1 dimensions is not supported"):
        tp.function(lambda a: a.data)(sp.coo_array(U))
    with pytest.raises(ValueError, match="index pointer size 5 should be 4"):
        tp.function(lambda a: sp.csr_array((a.data, a.indices, a.indptr), shape=(3, 3)))(a)
    with pytest.raises(ValueError, match="exceeds matrix dimensions"):
        tp.function(lambda a: sp.coo_array((a.data, (a.indices, a.indices)), shape=(2, 3)))(a)
    with pytest.raises(tp.CompileError, match=r"np\.matrix"):
        tp.function(lambda a: a.sum(0))(sp.csr_matrix(DENSE))
    same(tp.function(lambda a: a * U)(sp.csr_matrix(DENSE)), sp.csr_matrix(DENSE) * U)
