"""Loops with closed forms: what they give, to how many digits, and which are left alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401


def total(a: float, x: float, n: int) -> float:
    for _ in range(n):
        a += x
    return a


def ramp(a: float, x: float, n: int) -> float:
    for i in range(n):
        a += x * i + 1.0
    return a


def power(a: float, x: float, n: int) -> float:
    for _ in range(n):
        a *= x
    return a


def affine(a: float, b: float, p: float, n: int) -> float:
    for _ in range(n):
        p = a * p + b
    return p


def descent(r: float, p: float, n: int) -> float:
    for _ in range(n):
        p = p - r * (p - 1.0)
    return p


def oscillator(k: float, x: float, n: int) -> float:
    v = 0.0
    for _ in range(n):
        v = v - 0.01 * k * x
        x = x + 0.01 * v
    return x


def chosen(c: bool, a: float, x: float, n: int) -> float:
    for _ in range(n):
        a = a + (x if c else 2.0 * x)
    return a


COUNTS = [0, 1, 2, 3, 128, 129, 130, 257, 1000, -4]


@pytest.mark.sampled(5, each="f")
@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize(
    "f, args",
    [
        (total, (1.5, 0.25)), (ramp, (1.5, 0.25)), (power, (1.5, 0.99)), (power, (1.5, -1.001)),
        (affine, (0.9, 0.5, 2.0)), (affine, (-1.0, 0.5, 2.0)), (affine, (1.0, 0.5, 2.0)), (affine, (0.0, 0.5, 2.0)),
        (descent, (0.1, 3.0)), (oscillator, (1.3, 1.0)), (chosen, (True, 1.0, 0.5)), (chosen, (False, 1.0, 0.5)),
    ],
)  # fmt: skip
def test_value_and_slopes_are_those_of_the_loop(f: Callable[..., float], args: tuple[float, ...], n: int) -> None:
    floats = tuple(k for k, a in enumerate(args) if isinstance(a, float))
    value, slopes = tp.value_and_grad(f, argnums=floats)(*args, n)
    plain_value, plain_slopes = tp.value_and_grad(f, argnums=floats, coarsen=False)(*args, n)
    assert value == pytest.approx(f(*args, n), rel=1e-12)
    assert plain_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes, plain_slopes, rtol=1e-11, atol=1e-12)
    moving = [args[k] for k in floats]
    _, tangent = tp.jvp(lambda *x: f(*args[: floats[0]], *x, n), tuple(moving), (0.7,) * len(moving))
    assert tangent == pytest.approx(0.7 * sum(plain_slopes), rel=1e-10, abs=1e-10)


def test_no_loop_is_left() -> None:
    assert "loop" not in tp.value_and_grad(total).ir(1.0, 0.1, 100, stage="optimized")
    assert "loop" in tp.value_and_grad(total, coarsen=False).ir(1.0, 0.1, 100, stage="optimized")


def test_a_loop_is_left_for_what_is_infinite() -> None:
    found = [line for line in tp.function(ramp).ir(1.0, 0.1, 100, stage="optimized").splitlines() if "loop" in line]
    assert len(found) == 1 and found[0].endswith("{few}")


def test_second_derivatives() -> None:
    second = tp.grad(tp.grad(affine))
    assert second(0.9, 0.5, 2.0, 200) == pytest.approx(
        tp.grad(tp.grad(affine, coarsen=False), coarsen=False)(0.9, 0.5, 2.0, 200), rel=1e-9
    )


def exact_affine(a: float, b: float, p: float, n: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The value and its slope in a, by doubling with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.matrix([[a, b, 0], [0, 1, 0], [0, 0, 0]])
        value = (x[:2, :2] ** n)[0, 0] * p + (x[:2, :2] ** n)[0, 1]
        h = mpmath.mpf(10) ** -25
        moved = mpmath.matrix([[a + h, b], [0, 1]]) ** n
        return value, (moved[0, 0] * p + moved[0, 1] - value) / h


def ulps(found: float, exact: mpmath.mpf) -> float:
    return float(abs(found - exact) / math.ulp(float(exact)))


@pytest.mark.parametrize("a", [1 - 1e-10, 1 + 1e-10, 1 - 1e-6, 0.999, -0.9999, 1.0001, -1 + 1e-9, 0.5])
@pytest.mark.parametrize("n", [130, 4097, 100_000])
def test_digits(a: float, n: int) -> None:
    """Never more than 4 ulp worse than the loop, at powers of many factors too."""
    value, slope = exact_affine(a, 0.3, 1.7, n)
    got, grown = tp.value_and_grad(affine)(a, 0.3, 1.7, n)
    plain, plain_slope = tp.value_and_grad(affine, coarsen=False)(a, 0.3, 1.7, n)
    assert ulps(got, value) <= ulps(plain, value) + 4
    assert ulps(grown, slope) <= ulps(plain_slope, slope) + 64  # the loop's own error varies as much from n to n


def test_a_power_out_of_range_whose_product_is_not() -> None:
    assert tp.function(power)(1e-300, 10.0, 400) == pytest.approx(1e100, rel=1e-12)
    assert tp.function(power)(1e300, 0.1, 400) == pytest.approx(1e-100, rel=1e-12)


def test_what_decides_keeps_its_bits() -> None:
    def f(x: float, n: int) -> float:
        t = 0.0
        for _ in range(n):
            t += x
        return 1.0 if t < 1.0 else 2.0

    assert tp.function(f)(0.1, 10) == f(0.1, 10) == 1.0  # 10 * 0.1 is 1, ten times 0.1 is less
    (left,) = tp.function(f).explain(0.1, 10).segments
    assert left.closed_form is None and "hangs on its last bit" in left.why


def test_what_the_loop_looks_at_stays() -> None:
    def f(x: float, n: int) -> float:
        t, s = 0.0, 0.0
        for _ in range(n):
            s += math.sin(t)
            t += x
        return s

    assert tp.function(f)(0.1, 50) == pytest.approx(f(0.1, 50), rel=1e-14)
    assert tp.grad(f)(0.1, 50) == pytest.approx(tp.grad(f, coarsen=False)(0.1, 50), rel=1e-13)


def test_a_step_that_is_infinite_and_not_taken() -> None:
    def f(x: float, n: int) -> float:
        s = 1.0
        for _ in range(n):
            s += 1.0 / np.float64(x)
        return s

    assert tp.function(f)(0.0, 0) == 1.0 and tp.grad(f)(0.0, 0) == 0.0


def test_explain_has_the_closed_form() -> None:
    (found,) = tp.function(total).explain(1.0, 0.1, 100).segments
    assert found.closed_form == "a + n * x" and found.ops_before == 1 and found.ops_after <= 5
    (found,) = tp.function(power).explain(1.0, 0.1, 100).segments
    assert found.closed_form == "a * x**n, by doubling"
    assert found.latex == r"a \, x^{n}"
    assert found.line == power.__code__.co_firstlineno + 1


STEPS = ["s = s + {c}", "s = s - {c} * x", "s = {c} * s", "s = s * 0.5 + x", "t = t + s", "s = s - 0.1 * t", "t = t * x", "u = u + x * t",
         "u = max(u, s)", "t = t if t > s else s", "s = s + i * {c}", "u = u + math.sin(s)",
         "s = s + ({c} if i < 60 else x)", "t = t * (0.9 if 3 <= i else x)"]  # fmt: skip


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.sampled_from(["0.5", "x", "0.9", "y"])), min_size=1, max_size=4
    ),
    n=st.sampled_from([0, 1, 5, 70, 200, 300, 500]),
    x=st.floats(-1.1, 1.1),
    end=st.sampled_from(["s + t + u", "u if s > t else s", "s * t"]),
)
def test_generated_loops(
    steps: list[tuple[str, str]], n: int, x: float, end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Coarsened and not: the same values and gradients."""
    lines = ["import math", "def f(x, y, n):", "    s, t, u = x, 1.0, y", "    for i in range(n):"]
    lines += ["        " + step.format(c=c) for step, c in steps]
    lines += [f"    return {end}"]
    path = tmp_path_factory.mktemp("loops") / "made.py"
    path.write_text("\n".join(lines) + "\n")
    space: dict[str, Callable[..., float]] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)  # type: ignore[arg-type]
    f = space["f"]
    value, slopes = tp.value_and_grad(f, argnums=(0, 1), cache=False)(x, 0.7, n)
    plain, plain_slopes = tp.value_and_grad(f, argnums=(0, 1), cache=False, coarsen=False)(x, 0.7, n)
    if math.isfinite(plain) and abs(plain) < 1e200:
        np.testing.assert_allclose(value, plain, rtol=1e-9, atol=1e-9)
        finite = np.isfinite(plain_slopes) & (np.abs(plain_slopes) < 1e200)
        np.testing.assert_allclose(np.array(slopes)[finite], np.array(plain_slopes)[finite], rtol=1e-7, atol=1e-7)


# -- what stands beside the value, inside of branches


def beside_a_raise(a: float, x: float, v: np.ndarray, n: int, tested: bool) -> float:
    for _ in range(n):
        a += x
        if tested:
            for j in range(len(v)):
                if v[j] > 100.0:
                    raise ValueError("too large")
    return a


def beside_a_position(a: float, x: float, v: np.ndarray, n: int, tested: bool) -> float:
    for i in range(n):
        a += x
        if tested:
            v[i]
    return a


def beside_a_print(a: float, x: float, v: np.ndarray, n: int, tested: bool) -> float:
    for i in range(n):
        a += x
        if tested:
            print("trip", i, len(v))
    return a


@pytest.mark.parametrize("f, error", [(beside_a_raise, ValueError), (beside_a_position, IndexError)])
def test_errors_in_branches_are_raised(f: Callable[..., float], error: type[Exception]) -> None:
    compiled, v = tp.function(f), np.array([1.0, 200.0])
    assert compiled(1.0, 0.5, v, 4, False) == 3.0
    with pytest.raises(error):
        compiled(1.0, 0.5, v, 4, True)


def test_prints_in_branches_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert tp.function(beside_a_print)(1.0, 0.5, np.ones(7), 2, True) == 2.0
    assert capfd.readouterr().out == "trip 0 7\ntrip 1 7\n"


@pytest.mark.thorough
def test_adjoints_are_added_in_branches() -> None:
    def f(a: float, b: float, x: np.ndarray) -> float:
        c = np.sin(0.25 + 1.0 / (2.0 + x[0] ** 2))
        for _ in range(3):
            a += c
            if a > 0.1:
                b += 0.125 * np.sum(x)
        return a + b * b + np.sum(x * x)

    args = 0.27, -0.46, np.array([-0.92, -0.97, 0.63, 0.83])
    tp.check_grads(f, args)
    np.testing.assert_allclose(tp.grad(f, argnums=2)(*args), tp.grad(f, argnums=2, coarsen=False)(*args), rtol=1e-12)


def taken_off(s: float, x: float, n: int) -> float:
    for _ in range(n):
        s -= x
    return s


def put_on(s: float, x: float, n: int) -> float:
    for _ in range(n):
        s += x
    return s


def put_on_more_and_more(s: float, x: float, n: int) -> float:
    for i in range(n):
        s += x * i
    return s


@pytest.mark.parametrize("f", [taken_off, put_on, put_on_more_and_more], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 2, 15, 200])
def test_sums_at_the_ends_of_the_range(f: Any, n: int) -> None:
    """Products with the number of trips are infinite where no step of the loop is."""
    closed, slopes = tp.function(f), tp.value_and_grad(f, argnums=(0, 1))
    by_the_loop = tp.value_and_grad(tp.function(f, coarsen=False), argnums=(0, 1))
    for s in (0.0, 1e308, -1e308, math.inf, -math.inf, math.nan):
        for x in (0.0, 1.0, 1e307, -1e307, 1e308, -1e308, math.inf, -math.inf, math.nan):
            if f is put_on_more_and_more and abs(x * (n - 1)) > 1e308:
                continue  # fused products and sums are allowed there
            np.testing.assert_allclose(closed(s, x, n), f(s, x, n), rtol=1e-14)
            value, pair = slopes(s, x, n)
            np.testing.assert_allclose(value, f(s, x, n), rtol=1e-14)
            np.testing.assert_allclose(pair, by_the_loop(s, x, n)[1], rtol=1e-14)
