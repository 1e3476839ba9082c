"""Large programs in pieces: the same results, errors and memory as in one function; equal pieces are written once."""

import math

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm import host, pieces
from tapeless.backends.llvm.emit import emit
from tests.agreement import agree

U = np.random.default_rng(3).uniform(0.2, 0.9, size=(7, 9))

pytestmark = pytest.mark.usefixtures("compiled_anew")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "LARGE", 4)
    monkeypatch.setattr(pieces, "PIECE", 3)


def read_inside(x, n):
    """Scalars of runs, read by loops in them that are pieces themselves."""
    s = 0.5
    a = math.sin(x)
    for i in range(n):
        if s > 0.3:
            s = s * 0.9 + a
            s = math.sin(s) + 0.1 * i
    b = math.cos(x + s)
    c = b * b + 0.5
    for i in range(n):
        if s > 0.2:
            s = s * 0.8 + a * b
            s = math.sin(s) + 0.1 * c
    d = math.sin(c + s)
    e = d * a + 0.25
    for i in range(n):
        if s > 0.1:
            s = s * 0.7 + d * b
            s = math.sin(s) + 0.1 * e
    f = math.cos(e + s)
    return a + b * c + d + e * f + s


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("length", [5, 8, 600])
def test_pieces_inside_runs(monkeypatch, length) -> None:
    monkeypatch.setattr(pieces, "RUN", length)
    x, h = 0.7, 1e-6
    assert tp.function(read_inside, cache=False)(x, 4) == pytest.approx(read_inside(x, 4), rel=1e-12)
    slope = (read_inside(x + h, 4) - read_inside(x - h, 4)) / (2 * h)
    for memory in (None, "1kB"):
        assert tp.grad(read_inside, memory=memory, cache=False)(x, 4) == pytest.approx(slope, rel=1e-7)


def nested(x, m):
    s, z = 0.0, 1j
    for i in range(len(x)):
        t = x.copy()
        for j in range(len(x)):
            if t[j] > 0.4:
                t[j] = math.sin(t[j] + s)
                z = z * 1j + t[j]
            else:
                m[j, i] += t[j]
                while s > 1.0:
                    s *= 0.5
        s += np.sum(t * m[i, :])
    return s, z, x.shape[0], s > 0.5


def exchanged(u, n):
    v = np.zeros_like(u)
    for _ in range(n):
        v[1:-1] = u[2:] * u[:-2] + 0.1
        u, v = v, u
    return u


def sums(u):
    total = np.zeros(u.shape[1])
    largest = -np.inf
    for i in tp.prange(len(u)):
        row = u[i] * 2.0
        for j in range(len(row)):
            if row[j] > 0.5:
                row[j] = math.cos(row[j])
        total += row
        largest = max(largest, np.max(row))
    return total, largest


def fails(x, n):
    for i in range(n):
        y = np.zeros(3)
        if x[i % 2] > 0:
            y[i] = x[0]
            x = x + y[0]
    return x


def test_the_same_results():
    agree(nested, U[0].copy(), np.ones((9, 9)))
    agree(exchanged, U[0].copy(), 5)
    agree(sums, U)
    many = np.tile(U, (400, 1))
    np.testing.assert_allclose(tp.function(sums, threads=2, cache=False)(many)[0], sums(many)[0])


def test_errors_leave_all_pieces():
    agree(fails, U[0].copy(), 2)
    with pytest.raises(IndexError, match="3") as caught:
        tp.function(fails, cache=False)(U[0].copy(), 5)
    assert f"{__file__}:{fails.__code__.co_firstlineno + 4}" in str(caught.value)


def simulated(x, m, n):
    s = 0.0
    for i in range(n):
        for j in range(len(x)):
            x[j] = math.sin(x[j] + s)
            for k in range(len(x)):
                m[j, k] += math.sin(m[k, i % 3] * x[j])
                s = math.tanh(s + m[k, k])
    return s


@pytest.mark.sampled(3)
@pytest.mark.parametrize("memory", [None, "100kB", "900B"])
def test_gradients_with_several_ways_back(memory):
    gradient = tp.grad(tp.function(simulated, cache=False), (0, 1), memory=memory)
    x, m = U[0, :4].copy(), U[:4, :4].copy()
    for n in (0, 1, 5):
        for found, expected in zip(gradient(x, m, n), numeric(x, m, n), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def numeric(x, m, n):
    """Central differences of plain Python."""
    found = []
    for which, a in enumerate((x, m)):
        slopes = np.zeros_like(a)
        for at in np.ndindex(a.shape):
            ends = []
            for step in (1e-6, -1e-6):
                args = [x.copy(), m.copy()]
                args[which][at] += step
                ends.append(simulated(*args, n))
            slopes[at] = (ends[0] - ends[1]) / 2e-6
        found.append(slopes)
    return found


def twice(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) * x[i]
    t = 0.0
    for i in range(len(x)):
        t += np.sin(x[i]) * x[i]
        x[i] = t
    for i in range(len(x)):
        t += np.sin(x[i]) * x[i]
        x[i] = t
    return s * t


def test_equal_pieces_are_written_once():
    compiled = tp.function(twice, cache=False).compiled(U[0].copy())
    emitted = emit(compiled.lowered.program, host.host())
    assert all(unit.large for unit in emitted.units)
    assert emitted.text.count("define internal void @tp_twice.piece") == 2
    assert emitted.text.count("call void @tp_twice.piece") == 3
    agree(twice, U[0].copy())
