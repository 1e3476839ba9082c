"""Operators on a GPU by the interpreter of Loop IR, kernels in random order, with its detector of races."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.ir import core as core_ir
from tapeless.ir.target import Target
from tapeless.ir.types import i64
from tapeless.ir.walk import all_stms
from tapeless.lower.ir.loopir import Alloc, Atomic, Barrier, For, Kernel, Launch, Tag
from tapeless.lower.ir.walk import is_blocked, walk
from tapeless.lower.parallel import accumulators
from tapeless.passes.parallel import summed
from tapeless.passes.pipeline import finished
from tapeless.testing.compare import Returned
from tapeless.testing.stages import on_device
from tests.lower.device import recurrence, run, sums, turned

RNG = np.random.default_rng(3)


def by_one_thread(kernel: Kernel) -> bool:
    return kernel.loop.hi == i64(1) and not is_blocked(kernel.loop)


def composed(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    return tp.reduce(turned, (1.0, 0.0), (x, y))


def extrema(x: np.ndarray, y: np.ndarray) -> tuple[float, int, float]:
    return np.max(x), np.argmin(y), np.sum(x * y)


def counted(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    keys = (np.abs(x) * 3).astype(np.int64) - 1
    return tp.hist(lambda a, b: a + b, 0.0, 4, keys, y), tp.hist(max, -np.inf, 3, keys, y)


def rows_counted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    rows = np.outer(x, y[:3])
    keys = (np.abs(x) * 3).astype(np.int64)
    return tp.hist(lambda a, b: a + b, np.zeros(3), 4, keys, rows)


def scattered(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    keys = (np.abs(x) * 4).astype(np.int64) - 1  # several go to one place: the last one stays
    return tp.scatter(np.zeros(5), keys, y)


def nested(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.exp(-((x[:, None] - y[None, :]) ** 2)) * x[:, None]


def with_memory(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each iteration has arrays of its own, of a size that is not known at compile time; two of them change places."""
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        a, b = x * y[i], np.zeros(len(x))
        for k in range(3):
            b = np.cos(a) + k
            a, b = b, a
        out[i] = np.sum(a) + b[0]
    return out


def with_sizes_of_its_own(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        a = np.zeros(i + 1)
        for k in range(i + 1):
            a[k] = x[k] * y[i]
        out[i] = a[i // 2]
    return out


OPERATORS = [recurrence, composed, sums, extrema, counted, rows_counted, scattered, nested, with_memory]


@pytest.mark.thorough
@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("f", OPERATORS, ids=lambda f: f.__name__)
def test_operators(f: Any, count: int) -> None:
    program = run(f, count)
    kernels = [s.kernel for s in walk(program.body) if isinstance(s, Launch)]
    assert not any(isinstance(s, Alloc) for k in kernels for s in walk(k.block))
    assert any(k.loop.hi != k.loop.lo and not k.name.endswith("part1") for k in kernels)


def sum_of_sizes_of_its_own(x: np.ndarray, y: np.ndarray) -> float:
    total = 0.0
    for i in tp.prange(len(x)):
        a = np.sort(x[: i + 1]) * y[i]
        total += a[i // 2]
    return total


@pytest.mark.parametrize("f", [with_sizes_of_its_own, sum_of_sizes_of_its_own], ids=lambda f: f.__name__)
def test_sizes_of_its_own_run_in_order(f: Any) -> None:
    program = run(f, 6)
    kernels = [s.kernel for s in walk(program.body) if isinstance(s, Launch)]
    assert not any(isinstance(s, Alloc) for k in kernels for s in walk(k.block))


def test_adjoints_are_added_up_by_atomics() -> None:
    f = tp.grad(lambda x, k: np.sum(x[k] ** 2)).python
    x, k = np.arange(4.0), np.array([1, 1, 3, 0, 1])
    outcome, lowered = on_device(f, lambda: [x.copy(), k.copy()])
    assert isinstance(outcome, Returned)
    np.testing.assert_allclose(outcome.result, 2 * x * np.array([1, 3, 0, 1]))
    assert any(isinstance(s, Atomic) for s in walk(lowered.program.body))


def test_a_sum_of_sums_is_one() -> None:
    x = RNG.normal(size=(7, 300))
    outcome, lowered = on_device(lambda y: np.sum(np.sin(y + y[:, :1])), lambda: [x.copy()])
    assert isinstance(outcome, Returned)
    np.testing.assert_allclose(outcome.result, np.sum(np.sin(x + x[:, :1])))
    loops = [s for s in lowered.program.body if isinstance(s, For)]
    assert not any(isinstance(inner, Launch) for s in loops for inner in walk(s.body))
    kernels = [s.kernel for s in walk(lowered.program.body) if isinstance(s, Launch)]
    assert len(kernels) == 2  # of all elements, and of blocks


def chosen(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    new = np.empty((3, len(x)))
    for i in tp.prange(len(x)):
        for q in range(3):
            if y[i] > 0.0:
                new[q, i] = x[i] * q
            else:
                new[q, i] = x[(i + q) % len(x)]
    return new


def test_branches_that_write_one_cell_are_parallel_on_the_way_back() -> None:
    f = tp.grad(lambda x, y: np.sum(chosen(x, y) ** 2)).python
    args = [RNG.normal(size=9), RNG.normal(size=9)]
    outcome, lowered = on_device(f, lambda: copy.deepcopy(args))
    assert isinstance(outcome, Returned)
    np.testing.assert_allclose(outcome.result, tp.grad(lambda x, y: np.sum(chosen(x, y) ** 2))(*args))
    kernels = [s.kernel for s in walk(lowered.program.body) if isinstance(s, Launch)]
    assert not any(map(by_one_thread, kernels))


def shared_by_rows(x: np.ndarray, y: np.ndarray) -> float:
    """Of x all rows, and of y all matrices, take the same numbers; the last ones take them backwards."""
    rows = np.outer(y, x) + np.arange(len(y))[:, None]
    z = np.sin(rows * x) + x[::-1]
    cube = rows[:, :, None] * y[None, None, : len(y)]
    return np.sum(z**2) + np.sum(np.cos(cube))


@pytest.mark.thorough
@pytest.mark.parametrize("threads", [1, 7, 1 << 17])
def test_gradients_by_what_rows_share(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed, "THREADS", threads)
    slope = tp.grad(shared_by_rows, argnums=(0, 1))
    args = [RNG.normal(size=4), RNG.normal(size=5)]
    outcome, lowered = on_device(slope.python, lambda: copy.deepcopy(args))
    assert isinstance(outcome, Returned)
    for got, want in zip(outcome.result, slope(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    assert any(isinstance(s, Atomic) for s in walk(lowered.program.body))


def test_a_sum_of_sums_with_a_map_beside() -> None:
    f = tp.value_and_grad(lambda y: np.sum(np.sin(y) ** 2)).python
    x = RNG.normal(size=(4, 90))
    outcome, _ = on_device(f, lambda: [x.copy()])
    assert isinstance(outcome, Returned)
    value, slope = outcome.result
    np.testing.assert_allclose(value, np.sum(np.sin(x) ** 2))
    np.testing.assert_allclose(slope, np.sin(2 * x))


def softmax(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a = np.outer(x, np.concatenate((y, y, y, y, y, y, y, y, y, y, y, y)))
    e = np.exp(a - np.max(a, axis=1)[:, None])
    return e / np.sum(e, axis=1)[:, None]


def gated(x: np.ndarray, y: np.ndarray) -> float:
    """Parts of rows that have nothing in common but the row."""
    w = np.concatenate((y, y, y, y, y, y, y, y, y, y, y, y))
    a, half = np.outer(x, w), len(w) // 2
    left, right = 1.0 / (1.0 + np.exp(-a[:, :half])), np.tanh(a[:, half:])
    return np.sum(left[:, : half // 2] * right[:, : half // 2])


def triangles(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each element fills a matrix of its own, from parallel loops."""

    def one(k: int) -> np.ndarray:
        matrix = np.zeros((len(y), len(y)))
        for j in range(len(y)):
            matrix[j, j] = np.exp(y[j])
            for i in range(j + 1, len(y)):
                matrix[i, j] = x[k] * y[i]
        return matrix

    return tp.map(one, len(x))


def test_accumulators_of_elements_are_one() -> None:
    """No thread does a whole matrix: the loop over its columns is in the grid."""
    kernels = [s.kernel for s in walk(run(triangles, 5).body) if isinstance(s, Launch)]
    loops = [s for k in kernels for s in walk(k.loop.body) if isinstance(s, For)]
    assert not any(isinstance(s, For) for loop in loops for s in walk(loop.body))


@pytest.mark.parametrize("f", [softmax, gated], ids=lambda f: f.__name__)
def test_rows_are_distributed(f: Any) -> None:
    program = run(f, 5)
    loops = [s for s in walk(program.body) if isinstance(s, Launch) and s.kernel.name.find("kernel") > 0]
    widest = [k for k in loops if not any(isinstance(s, For) for s in walk(k.kernel.loop.body))]
    assert len(widest) >= 2  # over all cells


def filled_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each element goes on with a row of its own, and with one that all of them begin with."""
    a, first = np.outer(x, y), np.sin(y)
    b = np.zeros((len(x), len(y)))
    for i in tp.prange(len(x)):
        for j in range(len(y)):
            a[i, j] = x[i] + y[j]
        a[i, 1:3] *= 2.0
        b[i] = changed(first, x[i])
    return a + b


def changed(row: np.ndarray, by: float) -> np.ndarray:
    row = row.copy()
    for j in range(1, len(row)):
        row[j] = by * row[0]
    return row


@pytest.mark.thorough
@pytest.mark.parametrize("count", [3, 40])
def test_rows_that_elements_fill(count: int) -> None:
    run(filled_rows, count)


@pytest.mark.thorough
@pytest.mark.parametrize("f", [softmax, gated, triangles, filled_rows], ids=lambda f: f.__name__)
def test_their_gradients(f: Any) -> None:
    g = tp.grad(lambda x, y: np.sum(np.sin(f(x, y))), argnums=(0, 1))
    args = [RNG.normal(size=4), RNG.normal(size=4)]
    outcome, _ = on_device(g.python, lambda: copy.deepcopy(args))
    assert isinstance(outcome, Returned)
    for got, want in zip(outcome.result, g(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def spreads(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of rows and of columns; the second sum needs the first."""
    a = np.outer(x, np.sin(x)) + y[0]
    means = np.sum(a, axis=1) / len(x)
    return np.sqrt(np.sum((a - means[:, None]) ** 2, axis=1)) + np.max(np.abs(a), axis=0)


def norms(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of rows that belong to pairs."""
    w = np.arange(70.0)
    return tp.map(lambda a: tp.map(lambda b: np.sum((a * b + w) ** 2) + np.max(a - w * b), y), x)


@pytest.mark.thorough
@pytest.mark.parametrize(("f", "count"), [(spreads, 3), (spreads, 70), (norms, 3), (norms, 9)])
def test_rows_are_summed_by_several_threads(f: Any, count: int) -> None:
    program = run(f, count)
    blocks = [s for s in walk(program.body) if isinstance(s, For) and s.tag is Tag.block]
    assert len(blocks) >= (2 if f is spreads else 1) and all(
        any(isinstance(s, Barrier) for s in walk(b.body)) for b in blocks
    )


def filtered(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """A recurrence as people write it."""
    out, s = np.empty(len(x)), 0.3
    for i in range(len(x)):
        s = 0.9 * s + x[i] - 0.1 * y[i] * s
        out[i] = s * y[i]
    return out, s


def swinging(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Two numbers."""
    out, p, v = np.empty(len(x)), 1.0, 0.0
    for i in range(len(x)):
        a = x[i] - 0.2 * p
        p, v = p + 0.1 * v, v - a * 0.1
        out[i] = p - v
    return out, p


def too_large(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Products of many factors have no number, in order none is needed."""
    out, s = np.empty(len(x)), 0.0
    for i in range(len(x)):
        s = 1e200 * s + 0.0 * x[i]
        out[i] = s
    return out, s


@pytest.mark.thorough
@pytest.mark.parametrize("count", [0, 1, 5, 80])
@pytest.mark.parametrize("f", [filtered, swinging, too_large], ids=lambda f: f.__name__)
def test_linear_recurrences(f: Any, count: int) -> None:
    program = run(f, count)
    assert count == 1 or any(isinstance(s, Barrier) for s in walk(program.body))  # a scan


@pytest.mark.thorough
@pytest.mark.parametrize("f", [filtered, swinging], ids=lambda f: f.__name__)
def test_linear_recurrences_go_back_by_a_scan(f: Any) -> None:
    g = tp.grad(lambda x, y: np.sum(f(x, y)[0] ** 2) + f(x, y)[1], argnums=(0, 1))
    args = [RNG.normal(size=50), RNG.normal(size=50)]
    outcome, lowered = on_device(g.python, lambda: copy.deepcopy(args))
    assert isinstance(outcome, Returned)
    for got, want in zip(outcome.result, g(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    launches = [s for s in walk(lowered.program.body) if isinstance(s, Launch)]
    blocks = [s for s in launches if any(isinstance(e, Barrier) for e in walk(s.kernel.loop.body))]
    assert len(blocks) >= 3  # the sum, and the totals of the scans there and back


def plain_loop(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[len(x) - 1 - i] = np.sin(x[i]) * y[i]
        s += out[len(x) - 1 - i] if x[i] > 0 else 0.0
    return out, s


def last_wins(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Iterations that meet."""
    out, s = np.zeros(3), 0.0
    for i in range(len(x)):
        out[i % 3] = x[i]
        s = out[(i + 1) % 3] - s * s * 0.01
    return out, s


def moved(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each iteration reads what the one before has written."""
    out = x.copy()
    for i in range(1, len(x)):
        out[i] = out[i - 1] * 0.5 + y[i]
    return out


@pytest.mark.parametrize("count", [1, 7, 90])
@pytest.mark.parametrize("f", [plain_loop, last_wins, moved], ids=lambda f: f.__name__)
def test_loops_without_a_promise(f: Any, count: int) -> None:
    run(f, count)


def test_independent_iterations_run_at_once() -> None:
    program = run(lambda x, y: plain_loop(x, y)[0] * 1.0, 8)
    kernels = [s.kernel for s in walk(program.body) if isinstance(s, Launch)]
    assert kernels and not any(map(by_one_thread, kernels))


def looked_up(table, number, x):
    """Many elements, few cells: of a row, and of one number that all of them share."""
    return np.sum(tp.map(lambda k, v: np.sum(table[k] * v) ** 2 + np.max(table[k] - v), number, x))


def drawn(table, number):
    return np.sum(np.sin(table[number]) * number)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(
    ("loss", "width", "others"),
    [
        (looked_up, 2, lambda n: (np.arange(n) % 7 % 5, np.linspace(-1, 1, n))),
        (drawn, 0, lambda n: (np.arange(n) % 5,)),
    ],
)
def test_few_cells_have_copies(loss, width, others, rows, monkeypatch) -> None:
    monkeypatch.setattr(accumulators, "CROWD", 64)
    table = np.sin(np.arange(5.0 * max(width, 1))).reshape((5, width) if width else 5)
    number, *rest = others(20 * rows)
    gradient = tp.value_and_grad(loss)
    outcome, lowered = on_device(
        gradient.python, lambda: [table.copy(), number.copy(), *copy.deepcopy(rest)], seed=rows
    )
    assert isinstance(outcome, Returned)
    for got, want in zip(outcome.result, gradient(table, number, *rest), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    kept = {s.buffer.name for s in walk(lowered.program.body) if isinstance(s, Atomic)}
    assert "copies" in kept and len(kept) > 1  # both ways are there


def counted_by_threes(k):
    g = np.zeros(3)
    for i in tp.prange(len(k)):
        g[k[i] % 3] += 2.0 * i
    return g


def test_copies_of_a_few_cells_are_added_by_many_threads(monkeypatch) -> None:
    monkeypatch.setattr(accumulators, "CROWD", 64)
    k = np.arange(200) % 5
    outcome, lowered = on_device(counted_by_threes, lambda: [k.copy()], seed=3)
    assert isinstance(outcome, Returned)
    np.testing.assert_allclose(outcome.result, counted_by_threes(k))
    copied = [s.kernel for s in walk(lowered.program.body) if isinstance(s, Launch)]
    copied = [kernel for kernel in copied if any("copies" in getattr(p, "name", "") for p in kernel.params)]
    assert copied and not any(map(by_one_thread, copied))


def power(s: float, a: float, n: int) -> float:
    for _ in range(n):
        s = s * a
    return s


def test_loops_whose_powers_are_out_of_range_run_in_order() -> None:
    """A product of all factors would be infinite, and the value after the loop is 0."""
    core = finished(tp.function(power).compiled(0.0, 10.0, 400).traced.core, target=Target.ptx)
    kinds = {type(s.exp) for s in all_stms(core.body)}
    assert core_ir.For in kinds and core_ir.Sweep not in kinds


def handed_on(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that elements give in another form; one of the results is written later."""
    rows = np.outer(x, y)

    def element(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        more = np.sin(row) * y
        return row.reshape(-1, 1), more.reshape(1, -1)

    tall, wide = tp.map(element, rows)
    tall[0] = 7.0
    return rows, tall, wide


def test_rows_in_another_form_are_not_copied_one_by_one() -> None:
    run(handed_on, 5)
    core = finished(trace(handed_on, (np.zeros(3), np.zeros(3))).core, target=Target.ptx)
    maps = [s.exp for s in all_stms(core.body) if isinstance(s.exp, core_ir.Sweep)]
    bodies = [[type(s.exp) for s in m.lam.body.stms] for m in maps]
    assert maps and [core_ir.Reshape] not in bodies
