"""Loops with calls of the C library have a form for few iterations: both are right, at any length."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm.host import host


def waves(x):
    return np.exp(x) * np.sin(x)


def total(x):
    return np.exp(-x).sum()


def line(x):
    return 2.0 * x + 1.0


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 14, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_length(length: int, dtype: type) -> None:
    x = np.linspace(-2.0, 3.0, length).astype(dtype)
    rtol = 16 * np.finfo(dtype).eps
    around = np.full(length + 2, 7.0, dtype)
    around[1:-1] = tp.function(waves)(x)
    np.testing.assert_allclose(around[1:-1], waves(x.astype(np.float64)), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(tp.function(total)(x), total(x.astype(np.float64)), rtol=rtol)


def test_special_values_in_the_last_vector() -> None:
    x = np.array([1.0] * 9 + [np.nan, np.inf, -np.inf, 800.0, -800.0])
    np.testing.assert_allclose(tp.function(waves)(x[:9]), waves(x[:9]), rtol=1e-15)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tp.function(lambda x: np.exp(x))(x), np.exp(x), rtol=1e-15)


@pytest.mark.skipif(not host().vector_width, reason="no vectors here")
def test_only_loops_with_calls_have_two_forms() -> None:
    x = np.ones(14)
    assert "llvm.masked.store" in tp.function(waves).ir(x, stage="llvm")
    assert "llvm.masked.store" in tp.function(lambda x: np.logaddexp(x, 0.5)).ir(x, stage="llvm")
    assert "llvm.masked.store" not in tp.function(line).ir(x, stage="llvm")
