"""The short way into native code serves repeated arrays, NumPy's numbers and BLAS, and tells them apart."""

import itertools
import threading

import numpy as np
import pytest

import tapeless as tp
from tapeless.runtime import blas


def one_array(a, b):
    return 1.0 if a is b else 2.0


def test_whether_two_arguments_are_one_array_is_asked_in_each_call():
    f = tp.function(one_array)
    x, y = np.ones(3), np.ones(3)
    assert [f(x, y), f(x, x), f(y, x), f(y, y)] == [2.0, 1.0, 2.0, 1.0]


def which(a, b, c, d, e):
    return (a is b) + 2 * (b is c) + 4 * (c is d) + 8 * (d is e) + 16 * (a is e) + 32 * (b is e)


def test_of_many_arguments():
    f = tp.function(which)
    arrays = [np.ones(2) for _ in range(5)]
    for chosen in itertools.islice(itertools.product(arrays[:3], repeat=5), 0, None, 23):
        for args in (chosen, arrays):
            assert f(*args) == which(*args)


def moves(a, b):
    a[0] += b[1]
    return a[0] + b[0]


def test_arrays_that_are_written():
    f = tp.function(moves)
    u, v = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    w, z = u.copy(), v.copy()
    for _ in range(3):
        assert f(u, v) == moves(w, z)
        assert f(u, u) == moves(w, w)
    np.testing.assert_array_equal(u, w)


NUMBERS = [2, True, 2.5, np.float64(2.5), np.float32(2.5), np.int64(-3), np.int32(7), np.bool_(True)]


@pytest.mark.parametrize("second", NUMBERS, ids=repr)
def test_numbers_of_numpy(second):
    def f(a, x, y):
        return a * x + y, x * y

    compiled = tp.function(f)
    a = np.ones(2)
    for first in NUMBERS:
        for _ in range(2):
            for found, expected in zip(compiled(a, first, second), f(a, first, second), strict=True):
                assert type(found) is type(expected)
                np.testing.assert_array_equal(found, expected)
                assert np.asarray(found).dtype == np.asarray(expected).dtype


def test_products_take_the_short_way_and_leave_the_threads_of_blas_as_they_were():
    f = tp.function(lambda a, b: a @ b)
    a = np.random.default_rng(0).standard_normal((70, 70))
    found = blas.setting()
    before = found[0]() if found else 0
    for _ in range(3):
        np.testing.assert_allclose(f(a, a), a @ a)
        assert blas.gate[blas.USERS] == 0
    assert not found or found[0]() == before


def test_an_error_inside_gives_blas_back():
    f = tp.function(lambda a, b: np.linalg.solve(a @ a, b))
    a, b = np.eye(3), np.ones(3)
    f(a, b)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            f(0 * a, b)
        assert blas.gate[blas.USERS] == 0


@pytest.mark.thorough
def test_products_from_several_threads():
    f = tp.function(lambda a, b: a @ b)
    a = np.random.default_rng(1).standard_normal((90, 90))
    f(a, a.copy())
    found = []

    def run():
        for _ in range(20):
            found.append(np.allclose(f(a, a), a @ a))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 60
    assert blas.gate[blas.USERS] == 0


@pytest.mark.parametrize("n", [1, 30, 800])
@pytest.mark.parametrize("kind", ["f8", "f4", "c16", "i8"])
def test_products_with_vectors_near_and_far(n, kind):
    f = tp.function(lambda a, x: (a @ x, a.T @ x, x @ a, a[:, ::-1] @ x[::-1]))
    rng = np.random.default_rng(n)
    a, x = (10 * rng.standard_normal((n, n))).astype(kind), (10 * rng.standard_normal(n)).astype(kind)
    for found, expected in zip(f(a, x), (a @ x, a.T @ x, x @ a, a[:, ::-1] @ x[::-1]), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(
            found, expected, rtol=1e-3 if kind == "f4" else 1e-9, atol=1e-2 if kind == "f4" else 1e-9
        )


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1), (5, 40), (90, 30)])
@pytest.mark.parametrize("kind", ["f8", "f4", "c16"])
def test_products_with_the_own_transpose(shape, kind):
    f = tp.function(lambda a: (a.T @ a, a @ a.T, a[::2] @ a[::2].T, (a.T @ a)[::-1]))
    a = np.random.default_rng(3).standard_normal(shape).astype(kind)
    a = a * (1 + 2j) if kind == "c16" else a
    for found, expected in zip(f(a), (a.T @ a, a @ a.T, a[::2] @ a[::2].T, (a.T @ a)[::-1]), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(
            found, expected, rtol=1e-4 if kind == "f4" else 1e-11, atol=1e-4 if kind == "f4" else 1e-11
        )
