"""Cosine and sine transforms, by SciPy and by differences."""

import numpy as np
import pytest
import scipy.fft

import tapeless as tp
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401

X = np.sin(np.arange(15.0) * 1.7 + 0.3).reshape(3, 5)


@pytest.mark.thorough
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_values(type):
    def transforms(x):
        return (
            scipy.fft.dct(x, type), scipy.fft.idct(x, type), scipy.fft.dst(x, type), scipy.fft.idst(x, type),
            scipy.fft.dct(x, type, norm="ortho"), scipy.fft.idst(x, type, norm="ortho"), scipy.fft.dst(x, type, norm="forward"),
            scipy.fft.idct(x, type, norm="forward", axis=0), scipy.fft.dct(x, type, n=8), scipy.fft.dst(x, type, 3, axis=0),
            scipy.fft.dct(x, type, norm="ortho", orthogonalize=False), scipy.fft.dst(x, type, orthogonalize=True),
        )  # fmt: skip

    judge(transforms, X, order=0, rtol=1e-11, atol=1e-13)


@pytest.mark.thorough
def test_other_numbers_and_more_axes():
    judge(lambda x: (scipy.fft.dct(x), scipy.fft.idst(x, 4)), X + 1j * X[::-1], order=0, rtol=1e-11)
    judge(lambda x: (scipy.fft.dct(x), scipy.fft.dst(x, 1)), X.astype(np.float32), order=0, rtol=1e-5, atol=1e-6)
    judge(lambda n: scipy.fft.dct(n), np.arange(6), order=0, atol=1e-13)
    judge(
        lambda x: (scipy.fft.dctn(x), scipy.fft.idstn(x, 3, axes=(1,)), scipy.fft.idctn(x, s=(2, 4))),
        X,
        order=0,
        rtol=1e-11,
    )


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_slopes(type):
    tp.check_grads(lambda x: (scipy.fft.dct(x, type) ** 2, scipy.fft.idst(x, type, norm="ortho")), (X[:2],), order=1)


def test_back_and_forth():
    back = tp.function(lambda x: scipy.fft.idct(scipy.fft.dct(x, norm="ortho"), norm="ortho"))
    long = np.sin(np.arange(1009.0))
    np.testing.assert_allclose(back(long), long, atol=1e-12)


def test_errors():
    with pytest.raises((tp.CompileError, ValueError)):
        tp.function(lambda x: scipy.fft.dct(x, 5))(X)
    with pytest.raises(ValueError):
        tp.function(lambda x: scipy.fft.dct(x, 1))(X[:, :1])
    for function in (lambda x: np.fft.fft(x, 0), lambda x: scipy.fft.rfft(x, n=0), lambda x: np.fft.irfft(x, -1)):
        with pytest.raises(ValueError, match="nvalid number of"):
            tp.function(function)(X)
