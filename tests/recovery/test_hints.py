"""`recover=` of a loop: on the inner or on the outer one, against that of the transform; what `plans` say of it."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.recovery.gallery import cell_and_number, counters, leapfrog, nonlinear_with_a_sum_and_a_counter
from tests.recovery.same import plans, same

X = np.array([0.7, -0.3, 0.2, 0.9])
TRIPS = (0, 1, 2, 8, 9, 27)
HINTS = ("store", "undo", "checkpoint", "checkpoint:3", "recompute")


def outer_hint(hint: str):
    def f(x, a, n):
        for i in tp.loop(range(n), recover=hint):
            for j in range(3):
                x = math.sin(x) + a * j
            x *= 0.5
        return x

    return f


def inner_hint(hint: str):
    def f(x, a, n):
        for i in range(n):
            for j in tp.loop(range(3), recover=hint):
                x = math.sin(x) + a * j
            x *= 0.5
        return x

    return f


def both_hints(outer: str, inner: str):
    def f(x, a, n):
        for i in tp.loop(range(n), recover=outer):
            for j in tp.loop(range(i % 4), recover=inner):
                x = math.sin(x) + a * j
            x *= 0.5
        return x

    return f


def both_plain(x, a, n):
    for i in range(n):
        for j in range(i % 4):
            x = math.sin(x) + a * j
        x *= 0.5
    return x


def check(f, plain, **options) -> None:
    found, expected = tp.grad(f, (0, 1), **options), tp.grad(plain, (0, 1), recover="store")
    for n in TRIPS:
        same(found(0.7, 0.3, n), expected(0.7, 0.3, n), 1e-12, f"{n} trips")


@pytest.mark.parametrize("hint", HINTS)
def test_on_the_outer_loop(hint: str) -> None:
    check(outer_hint(hint), outer_hint("auto"))


@pytest.mark.parametrize("hint", HINTS)
def test_on_the_inner_loop(hint: str) -> None:
    check(inner_hint(hint), inner_hint("auto"))


@pytest.mark.parametrize("inner", ["checkpoint:3", "recompute"])
@pytest.mark.parametrize("outer", ["checkpoint", "recompute", "store"])
def test_on_both(outer: str, inner: str) -> None:
    check(both_hints(outer, inner), both_plain)


@pytest.mark.parametrize("of_all", ["checkpoint:3", "recompute"])
def test_the_loops_own_goes_first(of_all: str) -> None:
    assert plans(outer_hint("store"), 0.7, 0.3, 5, recover=of_all)[0] == "x: store"
    assert plans(inner_hint("store"), 0.7, 0.3, 5, recover="recompute")[0] == "x: recompute"
    check(outer_hint("store"), outer_hint("auto"), recover=of_all)
    check(inner_hint("undo"), inner_hint("auto"), recover=of_all)


@pytest.mark.thorough
def test_a_hint_under_a_budget() -> None:
    check(inner_hint("checkpoint"), inner_hint("auto"), memory="400B")
    check(outer_hint("recompute"), outer_hint("auto"), memory="400B")
    check(outer_hint("checkpoint"), outer_hint("auto"), memory="400B")


def test_hints_in_a_mapped_function() -> None:
    def hinted(x, n):
        def run(y):
            for i in tp.loop(range(n), recover="checkpoint:3"):
                y = math.sin(y) + x[0]
            return y

        return np.sum(tp.map(run, x))

    def plain(x, n):
        def run(y):
            for i in range(n):
                y = math.sin(y) + x[0]
            return y

        return np.sum(tp.map(run, x))

    for n in TRIPS:
        same(tp.grad(hinted)(X, n), tp.grad(plain)(X, n))


def test_hints_in_functions_that_are_called() -> None:
    def step(x, n):
        for i in tp.loop(range(n), recover="recompute"):
            x = math.sin(x)
        return x

    def f(x, n):
        for i in range(3):
            x = step(x, n) * 1.1
        return x

    assert "recompute" in plans(f, 0.7, 5)
    for n in TRIPS:
        same(tp.grad(f)(0.7, n), tp.grad(f, recover="store")(0.7, n))


def test_a_hint_by_a_name() -> None:
    how = "recompute"

    def f(x, n):
        for i in tp.loop(range(n), recover=how):
            x = math.sin(x)
        return x

    assert plans(f, 0.7, 5) == ["x: recompute"]


def test_hints_of_other_ranges() -> None:
    def f(x, n):
        for i in tp.loop(range(2, 2 + 3 * n, 3), recover="checkpoint:3"):
            x = math.sin(x) * i
        for i in tp.loop(range(n, 0, -1), recover="checkpoint"):
            x = math.cos(x) / i
        return x

    def plain(x, n):
        for i in range(2, 2 + 3 * n, 3):
            x = math.sin(x) * i
        for i in range(n, 0, -1):
            x = math.cos(x) / i
        return x

    for n in TRIPS:
        same(tp.grad(f)(0.7, n), tp.grad(plain)(0.7, n), 1e-11)


# -- plans, as people read them


def test_plans_of_several_values() -> None:
    assert plans(nonlinear_with_a_sum_and_a_counter, 0.7, 1.1, 5) == ["s: none, x: store, k: closed"]
    assert plans(cell_and_number, X, 5) == ["x: undo, y: store"]
    assert plans(counters, 0.3, 5)[0].startswith("x: store, ")
    assert plans(counters, 0.3, 5)[0].count("closed") == 4


def test_plans_of_a_wish() -> None:
    args = (0.3, 0.2, 0.1, 5)
    assert plans(leapfrog, *args, argnums=(0, 1, 2), recover="invert") == ["v: invert, x: invert"]
    assert plans(leapfrog, *args, argnums=(0, 1, 2), recover="recompute") == ["v: recompute, x: recompute"]
    assert plans(leapfrog, *args, argnums=(0, 1, 2), recover="checkpoint:3")[0] == "v: checkpoint:3, x: checkpoint:3"
