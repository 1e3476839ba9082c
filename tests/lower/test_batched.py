"""Maps of products and of Fourier transforms on a GPU: one call for all elements, by the interpreter of Loop IR."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.ir.loopir import Call
from tapeless.lower.ir.walk import walk
from tapeless.testing.compare import Returned
from tapeless.testing.stages import on_device

RNG = np.random.default_rng(3)


def products(a, b):
    return tp.map(lambda x, y: x @ y, a, b)


def turned(a, b):
    return tp.map(lambda x, y: y.T @ x.T, a, b)


def with_one_factor(a, b):
    return tp.map(lambda x: x @ b[0], a)


def of_stacks(a, b):
    return a @ b + 1.0


def turned_stacks(a, b):
    return np.swapaxes(b, 1, 2) @ np.swapaxes(a, 1, 2)


def vectors_first(a, b):
    return tp.map(lambda x, y: x[0] @ y, a, b)


def vectors_last(a, b):
    return tp.map(lambda x, y: x @ y[:, 0], a, b)


def every_other(a, b):
    return tp.map(lambda x, y: x @ y, a[::2, :, ::-1], b[::2])


def loss(a, b):
    return np.sum(tp.map(lambda x, y: np.sum((x - 1.0) @ y), a, b) ** 2)


FUNCTIONS = [
    products, turned, with_one_factor, of_stacks, turned_stacks, vectors_first, vectors_last, every_other, tp.grad(loss, (0, 1)).python,
]  # fmt: skip


@pytest.mark.sampled(2, each="function")
@pytest.mark.parametrize("sides", [(2, 3, 2), (9, 12, 7)], ids=["small", "large"])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_products(function, dtype, sides):
    m, k, n = sides
    a, b = RNG.normal(size=(4, m, k)).astype(dtype), RNG.normal(size=(4, k, n)).astype(dtype)
    if dtype == "c16":
        if function is FUNCTIONS[-1]:
            pytest.skip("the loss is a real number")
        a, b = a + 0.5j * a[::-1], b - 1j
    found, lowered = on_device(function, lambda: (a.copy(), b.copy()))
    assert isinstance(found, Returned), found
    expected = tp.function(function)(a.copy(), b.copy())
    both = (r if isinstance(r, tuple) else (r,) for r in (found.result, expected))
    for x, y in zip(*both, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    calls = {s.name for s in walk(lowered.program.body) if isinstance(s, Call)}
    assert f"{'z' if dtype == 'c16' else 'd'}gemm_batched" in calls


def test_products_that_a_thread_does():
    """Of sizes that are known to be small."""
    a, b = RNG.normal(size=(50, 9)), RNG.normal(size=(50, 9))
    found, lowered = on_device(
        lambda a, b: tp.map(lambda x, y: x.reshape(3, 3) @ y.reshape(3, 3), a, b), lambda: (a.copy(), b.copy())
    )
    assert isinstance(found, Returned), found
    np.testing.assert_allclose(found.result, a.reshape(-1, 3, 3) @ b.reshape(-1, 3, 3), rtol=1e-12)
    assert not any(isinstance(s, Call) for s in walk(lowered.program.body))
