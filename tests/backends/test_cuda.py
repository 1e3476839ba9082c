"""Programs on a GPU, where there is one: the answers of the CPU, for arrays of NumPy and of the device."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from benchmarks.gradients import GRADIENTS
from benchmarks.workloads import WORKLOADS
from tapeless.backends.cuda.driver import available

pytestmark = pytest.mark.skipif(not available(), reason="no GPU")

PROGRAMS = {w.name: (w.tapeless(), w.make_inputs(small=True)) for w in WORKLOADS}
PROGRAMS |= {
    f"{g.name}'": (tp.value_and_grad(g.loss(), g.argnums).python, g.make_inputs(small=True)) for g in GRADIENTS
}
LATER = {"gmm": "library", "gmm'": "library"}  # what these need is not there yet


def assert_alike(got: Any, want: Any) -> None:
    if isinstance(want, Sequence):
        for x, y in zip(got, want, strict=True):
            assert_alike(x, y)
    else:
        got = got.get() if hasattr(got, "get") else got
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in LATER])
def test_programs_of_the_benchmarks(name: str) -> None:
    function, args = PROGRAMS[name]
    python = getattr(function, "python", function)
    want = tp.function(python)(*copy.deepcopy(list(args)))
    got = tp.function(python, device="cuda")(*copy.deepcopy(list(args)))
    assert_alike(got, want)


def scaled(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sin(x) * y + 1.0


def total(x: np.ndarray) -> float:
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
    return s


def write(x: np.ndarray, k: int) -> None:
    for i in tp.prange(len(x)):
        x[i] = x[i] * k


def outside(x: np.ndarray, k: int) -> float:
    return x[k] * 2.0


def test_arrays_of_the_device_stay_there() -> None:
    cupy = pytest.importorskip("cupy")
    x, y = np.linspace(0, 1, 1000), np.linspace(1, 2, 1000)
    dx, dy = cupy.asarray(x), cupy.asarray(y)
    found = tp.function(scaled)(dx, dy)
    assert isinstance(found, cupy.ndarray)
    assert_alike(found, scaled(x, y))
    slope = tp.grad(lambda a, b: np.sum(scaled(a, b)))(dx, dy)
    assert isinstance(slope, cupy.ndarray)
    assert_alike(slope, np.cos(x) * y)
    tp.function(write)(dx, 3)
    assert_alike(dx, 3 * x)
    tp.function(write)(dy[::2], 2)
    assert_alike(dy[::2], 2 * y[::2])


def test_tensors_stay_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.linspace(0, 1, 100, dtype=torch.float64, device="cuda")
    found = tp.function(scaled)(x, x)
    assert isinstance(found, torch.Tensor) and found.is_cuda
    assert_alike(found.cpu().numpy(), scaled(x.cpu().numpy(), x.cpu().numpy()))


def test_numbers_come_back() -> None:
    x = np.linspace(0, 1, 100)
    assert tp.function(total, device="cuda")(x) == pytest.approx(total(x), rel=1e-13)
    np.testing.assert_allclose(tp.grad(total, device="cuda")(x), 2 * x)


def test_what_does_not_run_there_says_so() -> None:
    with pytest.raises(tp.DeviceError, match="does not run on a GPU yet"):
        tp.function(lambda a, b: a @ b, device="cuda")(np.ones((3, 3)), np.ones((3, 3)))
    with pytest.raises(tp.DeviceError, match="memory= does not hold on a GPU yet"):
        tp.grad(total, device="cuda", memory="1MB")(np.ones(3))


def test_errors_have_their_line_and_the_next_call_works() -> None:
    f = tp.function(outside, device="cuda")
    with pytest.raises(IndexError):
        f(np.ones(4), 7)
    assert f(np.ones(4), 2) == 2.0
