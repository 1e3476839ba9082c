"""Quotients that need not be rounded like a division: when they share a reciprocal."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.printer import print_function
from tapeless.passes.check.verify import verify
from tapeless.passes.tidy.cse import cse
from tapeless.passes.tidy.quotients import settle_quotients
from tests.passes.programs import program, words


def settled(code: str, results: str) -> str:
    g = settle_quotients(program(code, results))
    verify(g)
    return words(print_function(g).split("\n", 1)[1])


@pytest.mark.parametrize(
    "code, result",
    [
        ("t: f64 = quotient a b", "t: f64 = div a b in (t, t)"),
        (
            "t: f64 = quotient a b\n        u: f64 = quotient t b",
            "inverse: f64 = reciprocal b t: f64 = mul a inverse u: f64 = mul t inverse in (t, u)",
        ),
        (
            "t: f64 = reciprocal b\n        u: f64 = quotient a b",
            "t: f64 = reciprocal b u: f64 = mul a t in (t, u)",
        ),
        (
            "t: f64 = quotient a b\n        u: f64 = reciprocal b",
            "inverse: f64 = reciprocal b t: f64 = mul a inverse in (t, inverse)",
        ),
        ("t: f64 = div 1.0 b\n        u: f64 = quotient a b", "t: f64 = div 1.0 b u: f64 = mul a t in (t, u)"),
        ("t: f64 = div 1.0 b\n        u: f64 = div a b", "t: f64 = div 1.0 b u: f64 = div a b in (t, u)"),
        ("t: f64 = quotient a b\n        u: f64 = quotient b a", "t: f64 = div a b u: f64 = div b a in (t, u)"),
    ],
    ids=[
        "one",
        "two",
        "a reciprocal before",
        "a reciprocal after",
        "one over it",
        "a division of the program",
        "other divisors",
    ],
)
def test_quotients(code: str, result: str) -> None:
    assert settled(code, "(t, u)" if "u:" in code else "(t, t)") == result


@pytest.mark.parametrize(
    "code, result",
    [
        (
            "t: c128 = quotient z z\n        u: c128 = quotient t z",
            "inverse: c128 = div (1+0j) z t: c128 = mul z inverse u: c128 = mul t inverse in (t, u)",
        ),
        (
            "t: c128 = quotient (1+0j) z\n        u: c128 = quotient t z",
            "t: c128 = div (1+0j) z u: c128 = mul t t in (t, u)",
        ),
        (
            "t: c128 = reciprocal z\n        u: c128 = quotient t z",
            "t: c128 = reciprocal z u: c128 = div t z in (t, u)",
        ),
    ],
    ids=["two", "one over it", "a reciprocal of the program, which is another row"],
)
def test_complex_quotients(code: str, result: str) -> None:
    assert settled(code, "(t, u)") == result


def test_quotients_in_branches_are_loose_on_the_way_back() -> None:
    def f(x: np.ndarray) -> float:
        return np.sum(tp.map(lambda y: y / (y * y + 2.0) if y > 0 else 3.0 / (y - 1.0), x))

    text = tp.grad(f).ir(np.linspace(-1, 1, 5), stage="optimized")
    assert text.count("div ") + text.count("reciprocal ") <= 2, text


def test_the_slope_of_a_sigmoid_divides_no_more_than_its_value() -> None:
    f = tp.value_and_grad(lambda x: (1.0 / (1.0 + np.exp(-x))).sum())
    x = np.linspace(-3, 3, 9)
    text = f.ir(x, stage="optimized")
    assert text.count("div ") + text.count("reciprocal ") == 1, text
    value = 1.0 / (1.0 + np.exp(-x))
    np.testing.assert_allclose(f(x)[1], value * (1.0 - value), rtol=1e-14)


def test_a_region_takes_the_reciprocal_of_outside() -> None:
    code = """
        t: f64 = quotient a b
        u: f64 = quotient t b
        v: f64 = if c then w1: f64 = quotient u b; in w1 else w2: f64 = quotient b a; in w2
    """
    text = settled(code, "(t, v)")
    assert text.count("reciprocal") == 1 and "mul u inverse" in text and "div b a" in text


def test_the_reciprocal_of_a_region_stays_there() -> None:
    code = """
        v: f64 = if c then w1: f64 = quotient a b; w2: f64 = quotient w1 b; in w2 else (a)
        t: f64 = quotient a b
    """
    assert settled(code, "(t, v)").endswith("t: f64 = div a b in (t, v)")


def test_a_division_that_is_there_is_taken() -> None:
    f = program("t: f64 = div a b\n        u: f64 = quotient a b\n        s1: f64 = add t u", "(s1)")
    assert "quotient" not in print_function(cse(f))
    g = program("t: f64 = quotient a b\n        u: f64 = div a b\n        s1: f64 = add t u", "(s1)")
    assert "div a b" in print_function(cse(g))  # but not the other way around


def test_gradients_divide_once_by_each_number() -> None:
    def loss(x, y):
        r = np.sqrt(x * x + y * y)
        return ((x / r) * np.sin(y / r)).sum()

    x, y = np.random.default_rng(0).normal(size=(2, 9))
    gradient = tp.grad(loss, argnums=(0, 1))
    text = gradient.ir(x, y, stage="optimized")
    assert text.count("div ") + text.count("reciprocal ") == 1, text
    h = 1e-6
    for k, found in enumerate(gradient(x, y)):
        steps = np.eye(9) * h
        moved = [(x + s, y) if k == 0 else (x, y + s) for s in steps]
        back = [(x - s, y) if k == 0 else (x, y - s) for s in steps]
        expected = [(loss(*m) - loss(*b)) / (2 * h) for m, b in zip(moved, back, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_values_that_decide_are_divided() -> None:
    def loss(x, y):
        q = x / y
        return np.where(q < 1.0 / 3.0, q * q, -q).sum()

    text = tp.grad(loss, argnums=(0, 1)).ir(np.ones(3), np.full(3, 3.0), stage="optimized")
    assert "div" in text
    x, y = np.array([1.0, 5.0, 7.0]), np.array([3.0, 15.0, 21.0])  # all on the edge
    np.testing.assert_allclose(tp.grad(loss)(x, y), -1.0 / y, rtol=1e-15)


def test_values_are_divided() -> None:
    both = tp.value_and_grad(lambda x, y: (x / y).sum(), argnums=(0, 1))
    for a in range(1, 40):
        assert both(np.array([float(a)]), np.array([49.0]))[0] == a / 49.0
