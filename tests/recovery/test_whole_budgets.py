"""A budget is for the whole call: adjoints and temporary arrays count, threads too; what an error asks for is enough."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

import tapeless as tp
from tapeless.runtime import budgets
from tapeless.runtime.peak import peak_of

NOISE = 2**21  # bytes: pages, Python
U = np.random.default_rng(5).uniform(size=(500, 520))  # two megabytes


def bent(u):
    """A curve whose slope needs u, and which takes little time."""
    return u / (1.0 + 0.2 * u * u)


def step(u, c):
    middle = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    v = u.copy()
    v[1:-1, 1:-1] = middle + c * (around - 4.0 * middle) * (1.0 + middle * middle)
    return v


def heat(u, c, steps):
    for _ in range(steps):
        u = step(u, c)
    return np.sum(u * u)


def coupled(u, steps):
    v = np.zeros_like(u)
    for _ in range(steps):
        v = v * 0.9 - bent(u) * u[0, 0]
        for _ in range(3):
            u = u + 0.01 * v * u
    return np.sum(u * v)


def swept(u, n):
    """Each row has a loop of its own, which keeps states of it."""
    total = 0.0
    for i in tp.prange(len(u)):
        x = u[i]
        for _ in range(n):
            x = bent(x) * (1.0 + x[0])
        total += np.sum(x)
    return total


CALLS = {"heat": (heat, (U, 0.1, 60)), "coupled": (coupled, (U, 20)), "swept": (swept, (U[:8].repeat(60, axis=1), 30))}


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name, threads",
    [("heat", 1), ("swept", 1), ("swept", 2), pytest.param("coupled", 1, marks=pytest.mark.slow)],
)
def test_the_whole_call_stays_below_it(name, threads):
    f, args = CALLS[name]
    if peak_of(lambda: None)[0] is None:
        pytest.skip("the system does not say how much memory a process takes")
    f = tp.function(f, threads=threads)
    expected = tp.grad(f)(*args)
    fitted = 0
    for megabytes in (4, 56, 160):
        gradient = tp.grad(f, memory=f"{megabytes}MB")
        try:
            found = gradient(*args)
        except tp.RecoveryError:
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        taken = min(peak_of(lambda gradient=gradient: gradient(*args))[0] for _ in range(3))
        assert taken - found.nbytes <= 1e6 * megabytes + budgets.SMALL + NOISE
        assert taken <= 1.1 * gradient.explain(*args).peak_bytes + NOISE
        fitted += 1
    assert fitted >= 2


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["heat", "swept"])
def test_what_an_error_asks_for_is_enough_and_no_less(name):
    f, args = CALLS[name]
    f = tp.function(f, threads=1)
    with pytest.raises(tp.RecoveryError) as caught:
        tp.grad(f, memory="1kB")(*args)
    need = int(re.search(r"needs at least (\d+) bytes", str(caught.value)).group(1))
    tp.grad(f, memory=f"{need}B")(*args)
    with pytest.raises(tp.RecoveryError):
        tp.grad(f, memory=f"{need - 1}B")(*args)


@pytest.mark.thorough
def test_more_memory_is_used_where_it_is_allowed():
    kept = []
    for megabytes in (40, 240):
        report = tp.grad(tp.function(heat, threads=1), memory=f"{megabytes}MB").explain(U, 0.1, 90)
        assert report.peak_bytes <= 1e6 * megabytes + budgets.SMALL
        kept.append(report.memory_bytes)
    assert kept[0] < kept[1] == 90 * U.nbytes


def test_small_arrays_are_not_worth_a_refusal():
    x = np.linspace(0.1, 0.9, 100)

    def f(x, n):
        for _ in range(n):
            x = bent(x) * x[0]
        return np.sum(x)

    np.testing.assert_allclose(tp.grad(f, memory="4kB")(x, 50), tp.grad(f)(x, 50), rtol=1e-12)


@pytest.mark.thorough
def test_explain_of_a_budget_that_is_too_small():
    report = tp.grad(heat, memory="1kB").explain(U, 0.1, 90)
    assert report.loops
    needed = r"the call is refused: the backward pass needs at least [0-9]+ bytes, and the memory budget is 1000"
    assert re.search(needed, " ".join(str(report).split()))


@pytest.mark.thorough
def test_budgets_of_two_derivatives_in_one_function():
    def f(u):
        a = tp.grad(heat, memory="80MB")(u, 0.1, 90)
        return a + tp.grad(heat, memory="48MB")(u, 0.2, 90)

    expected = tp.grad(heat)(U, 0.1, 90) + tp.grad(heat)(U, 0.2, 90)
    np.testing.assert_allclose(tp.function(f)(U), expected, rtol=1e-9, atol=1e-12)


FRESH = """
import sys
import numpy as np
import tapeless as tp

def f(u, n):
    for _ in range(n):
        u = np.sin(u) * u[0]
    return np.sum(u)

gradient = tp.grad(tp.function(f, threads=1), memory="3MB")
u = np.linspace(0.1, 0.9, 20_000)
print(np.sum(gradient(u, 60)), "traced" in gradient.compiled(u, 60).__dict__)
try:
    gradient(u.repeat(20), 60)
except tp.RecoveryError as problem:
    print(str(problem).splitlines()[0])
"""


@pytest.mark.thorough
def test_from_the_cache(tmp_path, monkeypatch):
    """The outline is kept with the code: nothing is traced again."""
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "fresh.py"
    file.write_text(FRESH)
    runs = [subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout for _ in "ab"]
    assert runs[0] == runs[1] and " False\n" in runs[1] and " bytes, and the memory budget is 3000000" in runs[1]


def test_numbers_that_decide_nothing_are_not_looked_at_again(monkeypatch):
    def f(x, n):
        for _ in range(n):
            x = math.sin(x)
        return x

    gradient = tp.grad(f, memory="1kB")
    gradient(0.5, 100)
    monkeypatch.setattr(budgets, "footprint", None)
    assert gradient(0.6, 100) == pytest.approx(tp.grad(f)(0.6, 100), rel=1e-12)


# -- what used to be overlooked


def history(u, n):
    h = np.zeros((n + 1, u.size))
    h[0] = u.ravel()
    for t in range(n):
        h[t + 1] = bent(h[t]) * h[t, 0] + 0.5
    return np.sum(h)


def test_it_counts_where_no_loop_keeps_anything():
    gradient = tp.grad(tp.function(history, threads=1), memory="5MB")
    with pytest.raises(tp.RecoveryError, match="TP305.*needs at least [0-9]+ bytes") as caught:
        gradient(U, 12)
    assert caught.value.line
    need = int(re.search(r"needs at least ([0-9]+) bytes", str(caught.value))[1])
    allowed = tp.grad(tp.function(history, threads=1), memory=f"{need}B")
    np.testing.assert_allclose(allowed(U, 12), tp.grad(history)(U, 12))


def large_in_the_middle(u, n):
    x = 1.0
    for i in range(n):
        if i == n // 2:
            w = np.zeros(40 * u.size) + x
            for j in range(1, len(w)):
                w[j] = math.sin(w[j - 1]) + 0.1
            x = w[-1]
        x = math.sin(x) + u[0, 0]
    return x


@pytest.mark.thorough
@pytest.mark.parametrize("n", [9, 1000])
def test_iterations_in_the_middle_count(n):
    with pytest.raises(tp.RecoveryError, match="TP305"):
        tp.grad(tp.function(large_in_the_middle, threads=1), memory="5MB")(U, n)


@pytest.mark.thorough
def test_another_budget_is_the_same_code():
    first, second = (tp.grad(coupled, memory=memory) for memory in ("60MB", "62MB"))
    assert first.ir(U, 20) == second.ir(U, 20)
    np.testing.assert_allclose(first(U, 20), second(U, 20))


# -- lengths that show only when it runs


def inner_lengths_vary(u, n):
    for i in range(n):
        for _ in range(i % 13 + 1):
            u = bent(u) * (1.0 + u[0, 0])
    return np.sum(u)


def until_small(u, n):
    k = 0
    while np.max(u) > 0.4 and k < n:
        u = bent(u) * (1.0 + 0.001 * u[0, 0])
        k += 1
    return np.sum(u)


@pytest.mark.thorough
@pytest.mark.parametrize("f, n", [(inner_lengths_vary, 35), (until_small, 60)])
def test_arrays_of_known_sizes_count(f, n):
    u = U[:100]  # 416 kB
    if peak_of(lambda: None)[0] is None:
        pytest.skip("the system does not say how much memory a process takes")
    f = tp.function(f, threads=1)
    expected = tp.grad(f)(u, n)
    for megabytes in (6, 12):
        gradient = tp.grad(f, memory=f"{megabytes}MB")
        np.testing.assert_allclose(gradient(u, n), expected, rtol=1e-9)
        taken = min(peak_of(lambda gradient=gradient: gradient(u, n))[0] for _ in range(3))
        assert taken - u.nbytes <= 1e6 * megabytes + budgets.SMALL + NOISE / 4
    with pytest.raises(tp.RecoveryError, match="TP305.*needs at least [0-9]+ bytes"):
        tp.grad(f, memory="500kB")(u, n)


def shorter_and_shorter(x, n):
    for i in range(n):
        for _ in range((n - i) * 10_000):
            x = math.sin(x)
        x = x * x + 0.3
    return x


@pytest.mark.thorough
def test_buffers_of_other_lengths_do_not_pile_up():
    if peak_of(lambda: None)[0] is None:
        pytest.skip("the system does not say how much memory a process takes")
    gradient = tp.grad(shorter_and_shorter, memory="6MB")
    gradient(0.3, 60)
    assert min(peak_of(lambda: gradient(0.3, 60))[0] for _ in range(3)) < 6e6 + NOISE


# -- derivatives of derivatives


def spun(w, n):
    for _ in range(n):
        w = np.sin(w) + 0.2 * w[0]
    return np.sum(w)


def squares_in_a_list(x, n):
    xs = []
    for _ in range(n):
        x = math.sin(x) + 0.2
        xs.append(x * x)
    return np.sum(np.array(xs))


W = np.array([0.1, 0.9])


@pytest.mark.thorough
@pytest.mark.parametrize("memory", ["5MB", "1MB"])
def test_less_room_is_not_taken_for_none(memory):
    """What is too much is not all of one loop: a jump to no room at all would compute everything again."""
    assert "checkpoint:2" in str(tp.hessian(spun, memory=memory).explain(W, 100_000))


@pytest.mark.thorough
def test_budgets_around_budgets():
    expected = tp.hessian(spun)(W, 20_000)
    for memory in ("330kB",):
        np.testing.assert_allclose(
            tp.jacrev(tp.grad(spun, memory=memory), memory=memory)(W, 20_000), expected, rtol=1e-9
        )


@pytest.mark.thorough
def test_what_is_asked_for_lists_is_enough():
    with pytest.raises(tp.RecoveryError) as caught:
        tp.grad(squares_in_a_list, memory="1kB")(0.3, 100_000)
    need = re.search(r"needs at least (\d+) bytes", str(caught.value)).group(1)
    tp.grad(squares_in_a_list, memory=f"{need}B")(0.3, 100_000)
