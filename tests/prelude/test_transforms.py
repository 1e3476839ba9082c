"""Fourier transforms: every kind of length, axes, sizes and norms, and their derivatives."""

import numpy as np
import pytest
import scipy.fft

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

RNG = np.random.default_rng(11)
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 30, 49, 53, 64, 97, 100, 106, 128, 303, 1000, 1024, 2310)
REAL, MATRIX = RNG.normal(size=6), RNG.normal(size=(3, 4))
COMPLEX = RNG.normal(size=(2, 5)) + 1j * RNG.normal(size=(2, 5))
TOLERANCE = {"rtol": 1e-12, "atol": 1e-13}


def size(z):
    """A function of all of a transform that has slopes everywhere."""
    return z.real**2 + 2 * z.imag


@tp.function
def transform(x):
    return np.fft.fft(x)


@tp.function
def back(x):
    return np.fft.ifft(x)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n):
    x = RNG.normal(size=n) + 1j * RNG.normal(size=n)
    for mine, numpys in ((transform, np.fft.fft), (back, np.fft.ifft)):
        wanted = numpys(x)
        np.testing.assert_allclose(mine(x), wanted, rtol=0, atol=1e-14 * np.abs(wanted).max())
    single = transform(x.astype(np.complex64))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, np.fft.fft(x.astype(np.complex64)), rtol=0, atol=3e-6 * np.abs(single).max())


REAL_CASES = {
    "fft": (lambda x: size(np.fft.fft(x)), REAL),
    "fft of integers": (lambda x: np.fft.fft(x), np.arange(5)),
    "fft along an axis, cut": (lambda x: size(np.fft.fft(x, n=2, axis=0, norm="ortho")), MATRIX),
    "fft with zeros": (lambda x: size(np.fft.fft(x, 8, norm="forward")), MATRIX),
    "ifft": (lambda x: size(np.fft.ifft(x, axis=0)), MATRIX),
    "rfft, even": (lambda x: size(np.fft.rfft(x)), REAL),
    "rfft, odd": (lambda x: size(np.fft.rfft(x, 5)), REAL),
    "irfft of rfft": (lambda x: np.fft.irfft(np.fft.rfft(x) * np.arange(4)), REAL),
    "irfft, odd": (lambda x: np.fft.irfft(np.fft.rfft(x) ** 2, 7), REAL),
    "hfft": (lambda x: np.fft.hfft(np.fft.ihfft(x) * 1j, 6), REAL),
    "fft2": (lambda x: size(np.fft.fft2(x)), MATRIX),
    "ifft2 with sizes": (lambda x: size(np.fft.ifft2(x, s=(4, 3))), MATRIX),
    "fftn": (lambda x: size(np.fft.fftn(x, axes=(0,))), MATRIX),
    "rfft2": (lambda x: size(np.fft.rfft2(x)), MATRIX),
    "irfftn of rfftn": (lambda x: np.fft.irfftn(np.fft.rfftn(x) ** 2, s=(3, 4)), MATRIX),
    "scipy": (lambda x: size(scipy.fft.fft(x)) + size(scipy.fft.ifft(x, norm="ortho")), MATRIX),
    "scipy, several axes": (lambda x: scipy.fft.irfft2(scipy.fft.rfft2(x), s=(3, 4)), MATRIX),
    "shifts": (lambda x: (np.fft.fftshift(x), scipy.fft.ifftshift(x, axes=0)), MATRIX),
    "frequencies": (lambda x: np.fft.fftfreq(6, 0.5) * x + np.sum(scipy.fft.rfftfreq(6)), REAL),
}


def cases():
    """Several transforms in a row take seconds to compile, and go by the same rules as one."""
    long = ("irfftn of rfftn", "scipy, several axes")
    return [pytest.param(n, marks=pytest.mark.thorough if n in long else ()) for n in REAL_CASES]


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", cases())
def test_values_and_slopes(name):
    function, *args = REAL_CASES[name]
    judge(function, *args, order=0 if args[0].dtype == int else 1, **TOLERANCE)


def test_transforms_of_rows():
    """Their sizes are known before the rows are gone through."""
    judge(lambda x: size(tp.map(lambda r: np.fft.fft(r), x)), MATRIX, **TOLERANCE)
    judge(lambda x: (tp.vmap(np.fft.rfft)(x), tp.vmap(np.fft.irfft)(x)), MATRIX, order=0, **TOLERANCE)


@pytest.mark.thorough
def test_halves_of_even_and_odd_length():
    """What is imaginary in the first number, and in the one in the middle, does not count."""
    for n in (1, 2, 3, 4, 5, 8, 9, None):
        judge(lambda x, n=n: np.fft.irfft(x, n), COMPLEX, order=0, **TOLERANCE)


def test_complex_numbers():
    judge(lambda x: (np.fft.fft(x), np.fft.ifft(x, axis=0), np.fft.irfft(x)), COMPLEX, order=0, **TOLERANCE)


@pytest.mark.exhaustive
def test_second_derivatives():
    tp.check_grads(lambda x: size(np.fft.fft(x)) * x, (REAL,), order=2)


def test_the_adjoint_is_a_transform():
    x, weights = RNG.normal(size=53), RNG.normal(size=53)
    found = tp.grad(lambda x: np.sum((weights * np.fft.fft(x)).real))(x)
    np.testing.assert_allclose(found, np.fft.fft(weights).real, rtol=1e-10)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Invalid number of FFT data points"):
        tp.function(lambda x: np.fft.fft(x))(np.zeros(0))
    with pytest.raises(tp.CompileError, match="norm of a Fourier transform"):
        tp.function(lambda x: np.fft.fft(x, norm="other"))(REAL)
