"""Two divisions by one number in a `while` loop are one division of two numbers, to the last bit the same."""

from __future__ import annotations

import math

import pytest

import tapeless as tp


def from_outside(a, b, n):
    s, t, k = 0.0, 0.0, 1.0
    while s + t < n:
        s += a / k
        t += b / k
        k += 1.0
    return s + 3.0 * t


def reciprocal_first(a, b, n):
    s, k = 0.0, 1.0
    while s < n:
        r = 1.0 / k
        s += a / k + math.sin(r)
        k += b
    return s


def three(a, b, n):
    s, k = 0.0, 1.0
    while s < n:
        s += a / k - b / k + 7.0 / k
        k += 1.0
    return s


def one_of_the_other(a, b, n):
    s, k = 0.0, 1.0
    while s < n:
        q = a / k
        s += q + q / k + b / k
        k += 1.0
    return s


def with_a_branch_between(a, b, n):
    s, c, k = 0.0, b, 1.0
    while s < n:
        s += a / k
        if s > 2.0:
            c = c + 1.0 / s
        s += c / k
        k += 1.0
    return s


def other_divisors(a, b, n):
    s, k = 0.0, 1.0
    while s < n:
        s += a / k
        k += 1.0
        s += b / k
    return s


PAIRED = [from_outside, reciprocal_first, three]


@pytest.mark.parametrize("f", [*PAIRED, one_of_the_other, with_a_branch_between, other_divisors])
def test_results_are_those_of_python(f) -> None:
    compiled = tp.function(f)
    for a, b in [(1.7, 0.9), (0.3, 1.1), (2.1, 1.3)]:
        found, expected = compiled(a, b, 4.0), f(a, b, 4.0)
        assert math.isclose(found, expected, rel_tol=1e-15)
    assert compiled(0.0, 1.0, -1.0) == f(0.0, 1.0, -1.0)


def test_each_is_rounded_as_alone() -> None:
    def both(a, b, k, n):
        s = t = 0.0
        while k < n:
            s = a / k
            t = b / k
            k *= 2.0
        return s, t

    compiled = tp.function(both)
    for k in range(1, 60):
        assert compiled(1.1, 0.7, float(k), k + 0.5) == (1.1 / k, 0.7 / k)
    assert math.isnan(compiled(0.0, math.nan, 1.0, 1.5)[1])
    with pytest.raises(ZeroDivisionError):
        compiled(1.0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize("f", PAIRED)
def test_pairs_are_found(f) -> None:
    text = tp.function(f).ir(1.7, 0.9, 4.0, stage="llvm")
    assert "<2 x double>" in text


@pytest.mark.parametrize("f", [one_of_the_other, with_a_branch_between, other_divisors])
def test_slopes(f) -> None:
    found = tp.grad(tp.function(f), argnums=(0, 1))(1.7, 0.9, 4.0)
    h = 1e-6
    expected = [
        (f(1.7 + h, 0.9, 4.0) - f(1.7 - h, 0.9, 4.0)) / (2 * h),
        (f(1.7, 0.9 + h, 4.0) - f(1.7, 0.9 - h, 4.0)) / (2 * h),
    ]
    assert all(math.isclose(x, y, rel_tol=1e-6) for x, y in zip(found, expected, strict=True))
