"""Products of tiny numbers: as exact as BLAS, without its slowness. Note [Tiny factors] in backends/cpu/products.py."""

import ctypes
import time

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu import engine, libraries, products

NAMES = {np.float32: "sgemm", np.float64: "dgemm", np.complex64: "cgemm", np.complex128: "zgemm"}


def call(address, a, b, transposed=(False, False)):
    """C = A B by the routine at the address; operands may lie transposed in memory."""
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    lie = lambda x, turned: np.ascontiguousarray(x) if turned else np.asfortranarray(x)
    a, b = lie(a, transposed[0]), lie(b, transposed[1])
    c = np.empty((m, n), a.dtype, order="F")
    whole = lambda value: np.array([value], np.int32)
    letter = lambda turned: whole(ord("T" if turned else "N"))
    lda, ldb = (k if transposed[0] else m), (n if transposed[1] else k)
    given = [letter(transposed[0]), letter(transposed[1]), whole(m), whole(n), whole(k), np.ones(1, a.dtype)]
    given += [a, whole(lda), b, whole(ldb), np.zeros(1, a.dtype), c, whole(m)]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(address)(*(x.ctypes.data for x in given))
    return c


def both(a, b, transposed=(False, False)):
    name = NAMES[a.dtype.type]
    return tuple(call(f(name), a, b, transposed) for f in (engine.resolve, libraries.address))


def numbers(shape, dtype, low, seed):
    """Of sizes from 2**low to 1, evenly spread over the exponents."""
    rng = np.random.default_rng(seed)
    sizes = np.ldexp(rng.uniform(0.5, 1, shape), rng.integers(low, 1, shape)) * rng.choice([-1, 1], shape)
    if np.issubdtype(dtype, np.complexfloating):
        sizes = sizes + 1j * np.ldexp(rng.uniform(0.5, 1, shape), rng.integers(low, 1, shape))
    return sizes.astype(dtype)


def low(dtype):
    return -1074 if np.finfo(dtype).bits == 64 else -149


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", list(NAMES))
def test_scaled_products_have_the_same_digits(dtype, transposed):
    a, b = numbers((37, 50), dtype, -3, 0), numbers((50, 29), dtype, low(dtype), 1)
    guarded, plain = both(a, b, transposed)
    np.testing.assert_array_equal(guarded, plain)
    guarded, plain = both(b.T.copy(), a.T.copy(), transposed)
    np.testing.assert_array_equal(guarded, plain)


def test_sums_of_tiny_terms_are_rounded_once():
    rng = np.random.default_rng(2)
    left, right = rng.integers(-8, 8, (20, 30)), rng.integers(-8, 8, (30, 20))
    guarded, plain = both(left / 16, right * 2.0**-1074)
    exact = np.rint(left @ right / 16) * 2.0**-1074
    np.testing.assert_array_equal(guarded, exact)
    assert not np.array_equal(plain, exact)  # BLAS rounds at every step; if it no longer does, the guard is idle here


@pytest.mark.parametrize("largest", [1e308, np.inf, np.nan])
def test_nothing_is_scaled_that_would_overflow(largest):
    a, b = numbers((20, 30), np.float64, -3, 3), numbers((30, 20), np.float64, -1074, 4)
    a[3, 4] = largest
    guarded, plain = both(a, b)
    np.testing.assert_array_equal(guarded, plain)
    b[4, 3] = -1e300
    np.testing.assert_array_equal(*both(a, b))


def test_both_operands_may_be_tiny():
    a, b = numbers((20, 30), np.float64, -1074, 5), numbers((30, 20), np.float64, -1074, 6)
    guarded, plain = both(a, b)
    np.testing.assert_allclose(guarded, plain, rtol=1e-14, atol=0)


def test_views_and_odd_sizes():
    @tp.function
    def product(a, b):
        return a[:, 3:40] @ b[1:38]

    a, b = numbers((33, 41), np.float64, -3, 7), numbers((39, 17), np.float64, -1074, 8)
    np.testing.assert_allclose(product(a, b), a[:, 3:40] @ b[1:38], rtol=1e-13, atol=0)


def test_tiny_factors_are_not_slow():
    def least(b):
        routine, best = engine.resolve("dgemm"), np.inf
        for _ in range(20):
            start = time.perf_counter()
            call(routine, a, b)
            best = min(best, time.perf_counter() - start)
        return best

    a, b = numbers((256, 256), np.float64, -3, 9), numbers((256, 256), np.float64, -3, 10)
    usual = least(b)
    tiny = b.copy()
    tiny[::9] *= 2.0**-1060
    assert least(tiny) < 3 * usual  # ten times as long without the guard


def test_every_kind_is_guarded():
    assert all(products.is_guarded(name) for name in NAMES.values())


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", list(NAMES))
def test_small_products_of_all_shapes(dtype, transposed):
    rng = np.random.default_rng(11)
    for shape in [(1, 1, 1), (8, 4, 8), (16, 16, 16), (7, 9, 5), (9, 1, 6), (1, 40, 3), (33, 2, 3), (3, 300, 4)]:
        (m, k, n) = shape
        a, b = numbers((m, k), dtype, -3, rng), numbers((k, n), dtype, -3, rng)
        found = call(engine.resolve(NAMES[dtype]), a, b, transposed)
        exact = a.astype(np.result_type(dtype, np.float64)) @ b.astype(np.result_type(dtype, np.float64))
        np.testing.assert_allclose(found, exact, rtol=0, atol=k * 4 * np.finfo(dtype).eps)


def test_small_products_spread_what_is_not_finite():
    a, b = np.ones((5, 6)), np.ones((6, 7))
    a[2, 3], b[3, 1], b[0, 4] = np.inf, 0.0, np.nan
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(call(engine.resolve("dgemm"), a, b), a @ b)


def test_products_without_anything_to_add():
    @tp.function
    def product(a, b):
        return a @ b

    for m, k, n in [(3, 0, 4), (0, 3, 4), (3, 4, 0)]:
        np.testing.assert_array_equal(product(np.ones((m, k)), np.ones((k, n))), np.zeros((m, n)))
