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


def assert_alike(got: Any, want: Any) -> None:
    if isinstance(want, Sequence):
        for x, y in zip(got, want, strict=True):
            assert_alike(x, y)
    else:
        got = got.get() if hasattr(got, "get") else got
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", PROGRAMS)
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


RNG = np.random.default_rng(5)
SQUARE, TALL, WIDE = RNG.normal(size=(40, 40)), RNG.normal(size=(40, 7)), RNG.normal(size=(7, 90))
SYSTEMS = RNG.normal(size=(50, 4, 4)) + 3 * np.eye(4)
ALGEBRA = {
    "products": (lambda a, b: np.sum(np.sin(a @ b)), (TALL, WIDE)),
    "turned products": (lambda a, b: np.sum((a.T @ a) @ (b @ b.T) @ b), (TALL, WIDE)),
    "integers": (lambda a, b: np.sum(a @ b), (np.arange(12).reshape(3, 4), np.arange(20).reshape(4, 5))),
    "vectors": (lambda a, x: (a @ x) @ (x @ a) + x @ x, (SQUARE, SQUARE[0])),
    "systems": (lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), (SQUARE, TALL)),
    "a system": (lambda a, b: np.sum(np.linalg.solve(a, b[:, 0]) ** 2), (SQUARE, TALL)),
    "inverses": (lambda a: np.sum(np.linalg.inv(a) ** 2), (SQUARE,)),
    "determinants": (lambda a: np.linalg.slogdet(a)[1] + np.linalg.det(a / 5.0), (SQUARE,)),
    "roots": (lambda a: np.sum(np.sin(np.linalg.cholesky(a @ a.T + np.eye(len(a))))), (SQUARE,)),
    "many systems": (lambda a, b: sum_of_solutions(a, b), (SYSTEMS, SYSTEMS[:, 0])),
}


def sum_of_solutions(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for k in tp.prange(len(a)):
        x = np.linalg.solve(a[k], b[k]) + np.linalg.inv(a[k]) @ b[k]
        total += np.sum(x * x) + np.linalg.cholesky(a[k] @ a[k].T)[2, 1]
    return total


@pytest.mark.parametrize("name", ALGEBRA)
def test_algebra(name: str) -> None:
    f, args = ALGEBRA[name]
    assert_alike(tp.function(f, device="cuda")(*args), tp.function(f)(*args))
    if args[0].dtype == np.float64:
        assert_alike(tp.grad(f, device="cuda")(*args), tp.grad(f)(*args))


def test_a_system_without_a_solution() -> None:
    f = tp.function(lambda a, b: np.linalg.solve(a, b), device="cuda")
    with pytest.raises(np.linalg.LinAlgError):
        f(np.ones((3, 3)), np.ones(3))
    np.testing.assert_allclose(f(np.eye(3), np.ones(3)), np.ones(3))


def layered(x: np.ndarray) -> np.ndarray:
    return np.sin(x) * x[:, :1] + np.cos(x[0])


@pytest.mark.parametrize("shape", [(3, 5), (1, 1000), (1000, 1), (0, 4), (4, 0), (64, 3000)])
def test_nests_of_maps(shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape)
    if 0 not in shape:
        assert_alike(tp.function(layered, device="cuda")(x), layered(x))
    for count in (np.sum, np.prod, np.size):
        assert_alike(tp.function(lambda y, count=count: count(y) + 1, device="cuda")(x), count(x) + 1)


@pytest.mark.parametrize("count", [0, 1, 31, 255, 256, 257, 2049, 300_000, 5_000_000])
def test_sums_of_all_sizes(count: int) -> None:
    x = RNG.integers(-5, 6, size=count).astype(float)
    f = tp.function(lambda y: (np.sum(y), np.argmax(y * 1.5) if len(y) else 0), device="cuda")
    assert f(x) == (np.sum(x), np.argmax(x) if count else 0)


def chaotic(x: np.ndarray, n: int) -> float:
    for _ in range(n):
        x = 3.9 * x * (1.0 - x)
    return np.sum(x)


def test_a_budget_of_memory_holds() -> None:
    x = np.linspace(0.1, 0.9, 1000)
    want = tp.grad(chaotic)(x, 60)
    for memory in ("1MB", "200kB"):
        f = tp.grad(chaotic, device="cuda", memory=memory)
        np.testing.assert_allclose(f(x, 60), want, rtol=1e-6)
    with pytest.raises(tp.RecoveryError):
        tp.grad(chaotic, device="cuda", memory="10kB")(x, 60)


def test_code_comes_from_the_cache() -> None:
    f = tp.function(lambda y: np.sum(np.exp(y)), device="cuda")
    again = tp.function(lambda y: np.sum(np.exp(y)), device="cuda")
    x = np.linspace(0, 1, 50)
    assert f(x) == again(x) == pytest.approx(np.sum(np.exp(x)))


def test_errors_have_their_line_and_the_next_call_works() -> None:
    f = tp.function(outside, device="cuda")
    with pytest.raises(IndexError):
        f(np.ones(4), 7)
    assert f(np.ones(4), 2) == 2.0


def test_streams_wait_for_each_other() -> None:
    """Streams that do not wait for the default one by themselves; the caller gets by without a word to the GPU."""
    cupy = pytest.importorskip("cupy")
    f = tp.function(scaled)
    x = cupy.zeros(1 << 24)
    f(x, x)  # compiled
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(20):
            x = cupy.zeros(1 << 24)
            for _ in range(40):
                x += 1.0
            found = f(x, x) + 0.0
            del x
    assert_alike(found[:9], np.full(9, np.sin(40.0) * 40.0 + 1.0))
    assert_alike(found[-9:], np.full(9, np.sin(40.0) * 40.0 + 1.0))


def test_streams_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    f = tp.function(scaled)
    x = torch.zeros(1 << 24, dtype=torch.float64, device="cuda")
    f(x, x)
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.zeros(1 << 24, dtype=torch.float64, device="cuda")
        for _ in range(100):
            x += 1.0
        found = (f(x, x) + 0.0).cpu().numpy()
    assert_alike(found, np.full(1 << 24, np.sin(100.0) * 100.0 + 1.0))


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 1_000_001])
def test_sorts(count: int) -> None:
    x = RNG.integers(-1000, 1000, size=count) / 8.0
    values, order = tp.function(lambda y: (np.sort(y), np.argsort(y)), device="cuda")(x)
    np.testing.assert_array_equal(values, np.sort(x))
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))


def gathered(table: np.ndarray, places: np.ndarray, x: np.ndarray) -> float:
    total = 0.0
    for i in tp.prange(len(places)):
        total += np.sin(table[places[i]]) * x[i]
    return total


@pytest.mark.parametrize("cells", [1, 30, 100_000])
def test_the_same_bits_in_each_run(cells: int) -> None:
    table, x, places = RNG.normal(size=cells), RNG.normal(size=300_000), RNG.integers(0, cells, 300_000)
    f = tp.grad(gathered, device="cuda", deterministic=True)
    first = f(table, places, x)
    assert_alike(first, tp.grad(gathered)(table, places, x))
    assert all(f(table, places, x).tobytes() == first.tobytes() for _ in range(5))
