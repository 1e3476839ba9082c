"""Products of every small shape, by tiles, by what is left of them, and by BLAS; operands in any order in memory."""

import itertools

import numpy as np
import pytest

import tapeless as tp

SIZES = (0, 1, 3, 4, 5, 8, 11)


@tp.function
def product(a, b):
    return a @ b


@tp.function
def transposed(a, b):
    return a.T @ b.T


@tp.function
def strided(a, b):
    return a[::2, ::-1] @ b[:, ::3]


def matrices(dtype, m, k, n):
    rng = np.random.default_rng(m + 10 * k + 100 * n)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    if np.issubdtype(dtype, np.complexfloating):
        a, b = a + 1j * rng.normal(size=a.shape), b - 1j * rng.normal(size=b.shape)
    return a.astype(dtype), b.astype(dtype)


def close(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    scale = np.finfo(expected.dtype).eps * 64
    np.testing.assert_allclose(found, expected, rtol=scale, atol=scale)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_sizes(dtype):
    for m, k, n in itertools.product(SIZES, SIZES, SIZES):
        a, b = matrices(dtype, m, k, n)
        close(product(a, b), a @ b)


@pytest.mark.parametrize("size", [4, 7, 16, 17, 40])
def test_layouts(size):
    a, b = matrices(np.float64, size, size, size)
    close(transposed(a, b), a.T @ b.T)
    a, b = matrices(np.float64, 2 * size, size, 3 * size)
    close(strided(a, b), a[::2, ::-1] @ b[:, ::3])


def test_constant_sizes():
    def f(x):
        a, b = np.zeros((6, 5)), np.ones((5, 9))
        for i in range(6):
            for j in range(5):
                a[i, j] = x * i - j
        return a @ b

    close(tp.function(f)(2.0), f(2.0))


def test_nan_and_infinity_spread_as_in_python():
    a, b = np.ones((5, 6)), np.ones((6, 7))
    a[1, 2], b[3, 4] = np.inf, np.nan
    np.testing.assert_array_equal(product(a, b), a @ b)


def chain(matrices, count):
    """The sizes of the matrices are known behind the first product."""
    total = np.eye(3)
    for k in range(count):
        total = total @ (matrices[k] @ np.ones((3, 3)))
    return total @ matrices[0]


def test_sizes_that_a_test_has_shown():
    rng = np.random.default_rng(0)
    f = tp.function(chain)
    a = rng.normal(size=(4, 3, 3))
    for count in (0, 1, 4):
        close(f(a, count), chain(a, count))
    with pytest.raises(tp.ShapeError):
        f(rng.normal(size=(4, 2, 2)), 2)
    assert "dgemm" not in f.ir(a, 4, stage="loops")  # too small for it


def test_a_size_is_known_only_behind_its_test():
    def f(a, flag):
        out = np.zeros(2)
        if flag:
            out[0] = np.sum(a @ np.ones((3, 2)))
        out[1] = np.sum(a @ a)
        return out

    for n in (3, 5, 20):
        a = np.arange(n * n, dtype=float).reshape(n, n)
        close(tp.function(f)(a, n == 3), f(a, n == 3))


# -- views whose rows BLAS cannot walk along: backwards, or all the same

VIEWS = {
    "rows backwards": lambda a, b: a[::-1] @ b,
    "rows backwards by three": lambda a, b: a[::-3] @ b,
    "columns backwards": lambda a, b: a[:, ::-1] @ b,
    "both": lambda a, b: a[::-1, ::-1] @ b,
    "on the right": lambda a, b: a @ b[::-1],
    "turned": lambda a, b: b.T[::-1] @ a.T,
    "turned and backwards": lambda a, b: a[::-1].T @ a,
    "one row": lambda a, b: np.broadcast_to(a[0], (50, a.shape[1])) @ b,
    "one column": lambda a, b: np.broadcast_to(a[:, :1], a.shape) @ b,
    "its own transpose": lambda a, b: a[::-1] @ a[::-1].T,
    "a column of a vector": lambda a, b: a[0][::-1].reshape(-1, 1) @ b[:1],
    "a vector backwards": lambda a, b: b.T @ a[0][::-1],
}


def put_backwards(a, b):
    out = np.zeros((a.shape[0], b.shape[1]))
    out[::-1] = a @ b
    return out


def put_by_two(a, b):
    out = np.zeros((a.shape[0], 2 * b.shape[1]))
    out[:, ::2] = a @ b
    out[:, 1::2] = a[::-1] @ b
    return out


@pytest.mark.parametrize("size", [2, 9, 100])
@pytest.mark.parametrize("f", [*VIEWS.values(), put_backwards, put_by_two], ids=[*VIEWS, "written", "written by two"])
def test_views_that_go_backwards(f, size):
    a, b = matrices(np.float64, size, size + 3, size + 1)
    np.testing.assert_allclose(tp.function(f)(a, b), f(a, b), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", [3, 90])
def test_gradients_of_views_that_go_backwards(size):
    a, b = matrices(np.float64, size, size + 3, size + 1)
    w = np.random.default_rng(0).standard_normal((size, size + 1))
    rows, right = tp.grad(lambda a, b, w: np.sum((a[::-1] @ b[::-1]) * w), argnums=(0, 1))(a, b, w)
    np.testing.assert_allclose(rows, (w @ b[::-1].T)[::-1], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(right, (a[::-1].T @ w)[::-1], rtol=1e-11, atol=1e-11)
