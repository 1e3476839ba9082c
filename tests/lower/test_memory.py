"""Where buffers are allocated: once, in front of the loops that use them, where their size is known there."""

import numpy as np

import tapeless as tp
from tapeless.lower.ir.loopir import For
from tapeless.tools.vectors import loops_inside_out


def steps(x, n):
    for _ in range(n):
        x = x / np.exp(x).sum()
    return x


def triangle(x):
    total = 0.0
    for i in range(len(x)):
        total += np.exp(x[:i]).sum() * np.sort(x[: i + 1])[0]
    return total


def allocated_in_loops(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("    ") and line.strip().startswith("alloc")]


def test_sums_of_threads_are_on_the_stack():
    f, x = tp.function(steps, threads=2), np.linspace(-1.0, 1.0, 30_000)
    text = f.ir(x, 3, stage="loops")
    assert "partial: stack f64[1024]" in text and "{threads}" in text
    assert not allocated_in_loops(text)
    np.testing.assert_allclose(f(x, 3), steps(x, 3), rtol=1e-12)


def test_sizes_that_vary_stay_in_the_loop():
    f, x = tp.function(triangle), np.linspace(1.0, -1.0, 40)
    assert allocated_in_loops(f.ir(x, stage="loops"))
    np.testing.assert_allclose(f(x), triangle(x), rtol=1e-12)


def powers(w, x):
    return np.sum(np.polyval(w[:8], x) ** 2)


def test_arrays_of_branches_that_are_known_before_the_loop_are_outside():
    f = tp.grad(powers, argnums=(0, 1))
    rng = np.random.default_rng(3)
    for length in (0, 1, 5, 12):
        w, x = rng.normal(size=length), rng.normal(size=50)
        text = f.ir(w, x, stage="loops")
        assert "alloc y_kept" in text or length < 2
        assert not [line for line in text.split("\n") if "alloc y_kept" in line and line.startswith(" " * 10)]
        got = f(w, x)
        y = np.polyval(w[:8], x) if length else 0 * x
        degree = min(length, 8) - 1
        want = np.array([np.sum(2 * y * x ** (degree - k)) if k <= degree else 0.0 for k in range(length)])
        np.testing.assert_allclose(got[0], want, rtol=1e-11)


def test_loops_know_their_places():
    """Also those that are made anew to move an allocation out of them."""
    x, first = np.linspace(1.0, -1.0, 40), triangle.__code__.co_firstlineno
    program = tp.function(triangle, threads=1).compiled(x).lowered.program
    outer = next(stm for stm in program.body if isinstance(stm, For))
    assert outer.span.line == first + 2
    inside = [stm for stm in loops_inside_out(outer.body) if isinstance(stm, For)]
    assert inside and {stm.span.line for stm in inside} == {first + 3}


def large(x):
    """So large that its calls stay calls."""
    y = x
    for k in (1.5, 2.5, 3.5, 4.5, 5.5):
        y = (
            np.sin(y) * k
            + np.cos(x * y) * np.exp(-y * y)
            + np.tanh(x) * np.log1p(y * y)
            + np.arctan(y) * np.hypot(x, y)
        )
    return y > -1e300


def by_calls(x, n):
    total = 0.0
    for k in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5):
        total += 1.0 * large(x + k)
    for i in range(n):
        if large(x * i):
            w = np.zeros(n)
            for j in range(n):
                w[(j * 7 + i) % n] += x * j
            for j in range(n):
                total += w[(j * 3 + i) % n] * 0.5
    return total


def test_what_a_call_gives_is_not_known_before_the_loop():
    f = tp.function(by_calls)
    text = f.ir(0.5, 4, stage="loops")
    assert "large(" in text.split("for i", 1)[1]
    np.testing.assert_allclose(f(0.5, 4), by_calls(0.5, 4), rtol=1e-12)
