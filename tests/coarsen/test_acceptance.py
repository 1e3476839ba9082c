"""Programs of the literature on coarsening, with the numbers and the operation counts that are known for them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.core import Apply, Check, For, If
from tapeless.ir.operands import operands
from tapeless.ir.types import Var
from tapeless.ir.walk import all_stms


def operations(f: Any, *args: Any) -> Counter[str]:
    """Of the compiled function, those of its tests of domains left out."""
    stms = list(all_stms(f.compiled(*args).optimized.body))
    tested = {a for s in stms if isinstance(s.exp, Check) for a in operands(s.exp) if isinstance(a, Var)}
    found: Counter[str] = Counter()
    used = Counter(a for s in stms for a in operands(s.exp) if isinstance(a, Var))
    for s in reversed(stms):
        if isinstance(s.exp, Apply) and s.vars[0] in tested and used[s.vars[0]] <= 1:
            tested.update(a for a in s.exp.args if isinstance(a, Var))
        elif isinstance(s.exp, Apply) and s.exp.op not in ("identity", "convert"):
            found[s.exp.op] += 1
        elif isinstance(s.exp, If):
            found["if"] += 1
    return found


def made(path: Path, text: str) -> Callable[..., Any]:
    file = path / "made.py"
    file.write_text("from math import *\n" + text)
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    found: Callable[..., Any] = space["f"]
    return found


# -- branches


def same_arms(x: float, c: bool) -> float:
    return x * x if c else x * x  # noqa: RUF034


def sign_and_square(x: float) -> float:
    t = x if x > 0 else -x
    return t * t


def figure_3(x: float, p: float, q: float) -> float:
    d = p + q * x
    if d > 0:
        a = math.sqrt(d)
        z = a if a > 50 else d * math.sin(a)
    else:
        z = math.log(1 + math.exp(d))
    return z * (1 + math.exp(d))


def test_b1_equal_arms() -> None:
    assert operations(tp.value_and_grad(same_arms), 3.0, True).total() == 2
    assert tp.grad(same_arms)(3.0, False) == 6.0


@pytest.mark.parametrize("x", [-2.0, 0.0, 3.0])
def test_b2_slopes_at_the_kink(x: float) -> None:
    assert tp.grad(lambda x: x if x > 0 else 0.0)(x) == float(x > 0)
    assert tp.grad(lambda x: abs(x))(x) == np.sign(x)


def test_b3_the_square_of_a_size() -> None:
    assert tp.value_and_grad(sign_and_square)(-3.0) == (9.0, -6.0)
    assert operations(tp.value_and_grad(sign_and_square), 3.0)["select"] == 0


def two_questions(a: float, b: float, c: float, p: float, q: float) -> float:
    if p > 0:
        return a if q > 0 else b
    return a if q > 0 else c


@pytest.mark.parametrize("p", [-1.0, 1.0])
@pytest.mark.parametrize("q", [-1.0, 1.0])
def test_b4_two_questions(p: float, q: float) -> None:
    numbers = (2.0, 3.0, 5.0)
    value, slopes = tp.value_and_grad(two_questions, argnums=(0, 1, 2))(*numbers, p, q)
    assert value == two_questions(*numbers, p, q)
    assert slopes == tuple(float(n == value) for n in numbers)
    assert operations(tp.function(two_questions), *numbers, p, q)["select"] == 2


def test_b5_the_example_of_the_paper() -> None:
    value, slope = tp.value_and_grad(figure_3)(0.7, 1.0, 0.5)
    assert value == pytest.approx(6.0169104254377, rel=1e-13)
    assert slope == pytest.approx(5.1785863880566, rel=1e-13)
    assert operations(tp.value_and_grad(figure_3), 0.7, 1.0, 0.5).total() <= 32 + 6  # that, and guards at infinity


def test_b6_what_is_not_taken_raises_nothing() -> None:
    value, slope = tp.value_and_grad(figure_3)(-9.0, 1.0, 0.5)
    assert math.isfinite(value) and math.isfinite(slope)


def test_b7_nested_branches_grow_linearly(tmp_path: Path) -> None:
    def program(count: int) -> str:
        lines = ["def f(x):"]
        for k in range(count):
            lines += [f"    if x > {k}.5: x = x * 1.5", f"    else: x = x + sin(x) * {k}"]
        return "\n".join([*lines, "    return x\n"])

    sizes = []
    for count in (5, 10):
        folder = tmp_path / str(count)
        folder.mkdir()
        sizes.append(operations(tp.value_and_grad(made(folder, program(count))), 0.3).total())
    assert sizes[1] <= 2.3 * sizes[0]


# -- loops


def triangular(x: np.ndarray, n: int) -> float:
    s = 0.0
    for i in range(n):
        for j in range(i + 1):
            s += x[j]
    return s


def test_l4_factors_that_change() -> None:
    def f(p: float) -> float:
        for i in range(4):
            p = (i + 1) * p + i
        return p

    assert tp.value_and_grad(f)(1.0) == (47.0, 24.0)


@pytest.mark.parametrize("a, p, value", [(2.0, 1.0, 128.0), (3.0, 2.0, 559872.0)])
def test_l5_powers_of_the_value(a: float, p: float, value: float) -> None:
    def f(a: float, p: float) -> float:
        for _ in range(3):
            p = a * p * p
        return p

    got, (in_a, in_p) = tp.value_and_grad(f, argnums=(0, 1))(a, p)
    assert got == value
    assert in_a == pytest.approx(7 * value / a, rel=1e-14) and in_p == pytest.approx(8 * value / p, rel=1e-14)


def test_l7_triangular_sums() -> None:
    x = np.arange(1.0, 7.0)
    np.testing.assert_array_equal(tp.grad(triangular)(x, 6), [6, 5, 4, 3, 2, 1])


CONDITIONS = {
    "i < m": lambda i, m: i < m,
    "i <= m": lambda i, m: i <= m,
    "i > m": lambda i, m: i > m,
    "m <= i": lambda i, m: m <= i,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_l9_a_condition_on_the_number_splits_the_range(condition: str) -> None:
    here = CONDITIONS[condition]

    def f(x: float, y: float, n: int, m: int) -> float:
        s = 0.5
        for i in range(n):
            if here(i, m):
                s += x
            else:
                s -= y * i
        return s

    stms = all_stms(tp.function(f).compiled(1.5, 0.25, 9, 4).optimized.body)
    assert all(s.exp.hints.few for s in stms if isinstance(s.exp, For))  # where something is infinite
    found = tp.value_and_grad(f, argnums=(0, 1))
    for n in (-2, 0, 1, 5, 40):
        for m in (-(2**63), -3, -1, 0, 1, 4, 5, 6, 39, 2**63 - 1):
            below = [i for i in range(n) if here(i, m)]
            others = [i for i in range(n) if not here(i, m)]
            assert found(1.5, 0.25, n, m)[1] == (len(below), -sum(others))
            assert found(1.5, 0.25, n, m)[0] == 0.5 + 1.5 * len(below) - 0.25 * sum(others)


def test_l9_powers_on_both_sides() -> None:
    def f(a: float, p: float, n: int, m: int) -> float:
        for i in range(n):
            p = a * p + 0.1 if i < m else p * 0.5 + a
        return p

    for n, m in ((0, 3), (1, 3), (1000, 300), (1000, 1), (500, 700)):
        got = tp.value_and_grad(f, argnums=(0, 1))(0.99, 0.3, n, m)
        want = tp.value_and_grad(f, argnums=(0, 1), coarsen=False)(0.99, 0.3, n, m)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("steps, pushed", [(4, 0.4), (401, 0.0)])
def test_l13_a_clamp(steps: int, pushed: float) -> None:
    def f(m: float) -> float:
        s = 0.0
        for _ in range(steps):
            s = 3.0 if s > 3.0 else s + m * 0.1
        return s

    assert tp.grad(f)(1.0) == pytest.approx(pushed)


# -- counts


@pytest.mark.parametrize("count, most", [(8, 19), (16, 43), (32, 91)])
def test_l6_products(tmp_path: Path, count: int, most: int) -> None:
    names = [f"x{k}" for k in range(count)]
    f = made(tmp_path, f"def f({', '.join(names)}):\n    return {' * '.join(names)}\n")
    g = tp.value_and_grad(f, argnums=tuple(range(count)))
    point = [1.5] * count
    assert operations(g, *point).total() <= most
    point[3] = 0.0
    value, slopes = g(*point)
    assert value == 0.0 and slopes[3] == pytest.approx(1.5 ** (count - 1)) and not any(slopes[:3])


CART = """
    r = 9*a{i}+.045*x3*x3*sin(x2)
    q = (9.8*sin(x2)-r*cos(x2))/(.65-.4*cos(x2)**2)
    p = r-.045*q*cos(x2)
    x0, x1, x2, x3 = x0+.02*x1, x1+.02*p, x2+.02*x3, x3+.02*q
    l = .5-max(0.0,(2.4-abs(x0))*(.21-abs(x2)))
    L += l*l
"""


@pytest.mark.parametrize("steps, most", [(1, 31), (2, 122), (3, 213), (6, 486), (8, 668), (10, 850)])
def test_s3_cart_pole(tmp_path: Path, steps: int, most: int) -> None:
    actions = ", ".join(f"a{i}" for i in range(steps))
    text = f"def f(x0, x1, x2, x3, {actions}):\n    L = 0.0\n" + "".join(CART.format(i=i) for i in range(steps))
    f = made(tmp_path, text + "    return L\n")
    gradient = tp.value_and_grad(f, argnums=tuple(range(4, 4 + steps)))
    assert operations(gradient, 0.1, 0.2, 0.05, 0.1, *[0.3] * steps).total() <= most
    assert gradient(0.1, 0.2, 0.05, 0.1, *[0.3] * steps)[1][-1] == 0.0  # two steps until an action is felt


def test_s4_a_chain_of_sines(tmp_path: Path) -> None:
    f = made(tmp_path, "def f(y):\n" + "    y = sin(y) * y\n" * 100 + "    return y\n")
    assert operations(tp.value_and_grad(f), 0.5).total() <= 698


def spring_energy(px: Any, py: Any, first: Any, second: Any, rest: Any) -> float:
    energy = 0.0
    for e in range(len(first)):
        dx, dy = px[first[e]] - px[second[e]], py[first[e]] - py[second[e]]
        energy += 0.5 * (np.sqrt(dx * dx + dy * dy + 1e-6) - rest[e]) ** 2
    return energy


def test_l8_a_condition_that_does_not_change() -> None:
    def f(a: float, b: float, c: float, p: float, n: int) -> float:
        for _ in range(n):
            if c > 0.5:
                p = a * p + b
            else:
                p = b * p + a
        return p

    for c in (1.0, 0.0):
        for n in (0, 1, 7, 129, 1000):
            got = tp.value_and_grad(f, argnums=(0, 1, 3))(0.9, 0.2, c, 0.3, n)
            want = tp.value_and_grad(f, argnums=(0, 1, 3), coarsen=False)(0.9, 0.2, c, 0.3, n)
            np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
            np.testing.assert_allclose(got[1], want[1], rtol=1e-10, atol=1e-300)
    (segment,) = tp.function(f).compiled(0.9, 0.2, 1.0, 0.3, 5).segments
    assert segment.closed_form is not None and "by doubling" in segment.closed_form
    assert math.isfinite(tp.grad(f)(0.999999, 1e-6, 1.0, 0.3, 10**12))


def test_l8_a_condition_that_changes_keeps_its_loop() -> None:
    def f(a: float, p: float, n: int) -> float:
        for i in range(n):
            if i > 3:
                p = a * p + 0.1
            else:
                p = p + 1.0
        return p

    def g(a: float, p: float, n: int) -> float:
        for _ in range(n):
            if p > 0.5:
                p = a * p
            else:
                p = p + 0.3
        return p

    for h in (f, g):
        for n in (0, 3, 5, 200):
            got, want = (tp.value_and_grad(h, argnums=(0, 1), coarsen=c)(0.9, 0.3, n) for c in (True, False))
            np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
            np.testing.assert_allclose(got[1], want[1], rtol=1e-14)


def test_k2_springs_without_their_energy() -> None:
    args = (np.arange(5.0), np.arange(5.0) ** 2, np.array([0, 1, 2]), np.array([3, 4, 1]), np.ones(3))
    assert operations(tp.grad(spring_energy, argnums=(0, 1)), *args).total() <= 14


def test_k4_softplus_far_out() -> None:
    def f(t: float) -> float:
        return np.logaddexp(0.0, t)

    def as_written(t: float) -> float:
        return np.log(1.0 + np.exp(t))

    def with_log1p(t: float) -> float:
        return np.log1p(np.exp(t))

    for g in (f, as_written, with_log1p):
        assert tp.value_and_grad(g)(800.0) == (800.0, 1.0) and tp.value_and_grad(g)(-800.0) == (0.0, 0.0)
        assert tp.jvp(g, (800.0,), (1.0,)) == (800.0, 1.0)
        assert tp.hvp(g, (800.0,), (1.0,)) == (1.0, 0.0)
        np.testing.assert_array_equal(tp.grad(lambda t, g=g: np.sum(g(t)))(np.array([800.0, -800.0])), [1.0, 0.0])


def test_k4_the_larger_of_two_exponents() -> None:
    def f(a: float, b: float) -> float:
        return np.log(np.exp(a) + np.exp(b))

    value, slopes = tp.value_and_grad(f, argnums=(0, 1))(800.0, 799.0)
    assert value == pytest.approx(800.0 + math.log1p(math.exp(-1.0)))
    np.testing.assert_allclose(slopes, [1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(1.0))], rtol=1e-12)


def test_k4_exponentials_that_are_used_stay() -> None:
    def f(t: float) -> float:
        e = np.exp(t)
        return np.log(1.0 + e) + e

    assert "logaddexp" not in operations(tp.grad(f), 0.5)
    assert tp.grad(f)(0.5) == pytest.approx(1 / (1 + math.exp(-0.5)) + math.exp(0.5))


# -- programs

VERTICES = [(0, 0), (1, 0), (2, 0.5), (1, 1), (1.5, 2), (2, -1), (0, -1), (1, -2)]
EDGES = "01 03 13 12 23 34 24 15 56 60 61 65 57 67"
REST = [1, 1.3, 1.4, 1.5, 2, 1.4, 1.4, 1.3, 1, 0.8, 1, 1, 1, 0.9]


def test_g1_springs_come_to_rest() -> None:
    place = np.array(VERTICES, dtype=float)
    first, second = (np.array([int(e[k]) for e in EDGES.split()]) for k in (0, 1))
    pull = tp.grad(spring_energy, argnums=(0, 1))
    for _ in range(100):
        place -= 0.005 * np.stack(pull(place[:, 0].copy(), place[:, 1].copy(), first, second, np.array(REST)), 1)
    np.testing.assert_allclose(place[0], (0.019129606, -0.07035651), rtol=0, atol=2e-6)
    np.testing.assert_allclose(place[7], (0.971294, -1.8557358), rtol=0, atol=2e-6)


def test_g2_the_fastest_wire() -> None:
    def time(y: np.ndarray) -> float:
        total, before, speed = 0.0, 1.0, 0.0
        for i in range(len(y) + 1):
            here = y[i] if i < len(y) else 0.0
            now = math.sqrt(19.6 * (1.0 - here))
            total += 2.0 * math.sqrt((4.0 / (len(y) + 1)) ** 2 + (here - before) ** 2) / (speed + now)
            before, speed = here, now
        return total

    y = np.linspace(1.0, 0.0, 101)[1:-1]
    slope = tp.grad(time)
    assert tp.function(time)(y) == pytest.approx(1.862629, abs=1e-6)
    for _ in range(400):
        y -= 0.1 * slope(y)
    assert tp.function(time)(y) == pytest.approx(1.387572, abs=1e-4)  # steps that long swing, and rounding with them


@pytest.mark.parametrize("rows, columns", [(100, 1), (1000, 2), (800, 3)])
def test_g3_logistic_regression(rows: int, columns: int) -> None:
    def posterior(beta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        u = 0.0
        for i in range(len(y)):
            z = 0.0
            for j in range(len(beta)):
                z += x[i, j] * beta[j]
            u += z * (y[i] - 1.0) - np.log(1.0 + np.exp(-z))
        return u - np.sum(beta * beta) / 2000.0

    rng = np.random.default_rng(rows)
    x, beta = rng.normal(size=(rows, columns)), np.full(columns, 0.3)
    y = (rng.normal(size=rows) > 0).astype(float)
    slope = tp.grad(posterior)
    np.testing.assert_allclose(slope(beta, x, y), x.T @ (y - 1 / (1 + np.exp(-x @ beta))) - beta / 1000.0, rtol=1e-12)
    counted = operations(slope, beta, x, y)
    assert counted["exp"] + counted["expit"] == 1 and not counted["log"] and not counted["logaddexp"]
