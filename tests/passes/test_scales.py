"""Factors that are powers of 2 leave products, and no bit changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tp
from tapeless.interp.evaluate import evaluate
from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, Function
from tapeless.ir.types import F64, Atom, DType, Var, const
from tapeless.passes.check.verify import verify
from tapeless.passes.tidy.scales import lift_scales

CONSTANTS = [0.5, 2.0, -1.0, -4.0, 3.0, 1.0, 0.0]
BINARY = ["mul", "div", "add", "sub", "quotient", "max"]
UNARY = ["neg", "square", "reciprocal", "abs"]


@st.composite
def straight_lines(draw: st.DrawFn) -> Function:
    params = tuple(Var(name, F64) for name in "xyz")
    b = Builder()
    there: list[Atom] = list(params)
    for _ in range(draw(st.integers(1, 14))):
        if draw(st.booleans()):
            op, count = draw(st.sampled_from(BINARY)), 2
        else:
            op, count = draw(st.sampled_from(UNARY)), 1
        args: list[Atom] = [draw(st.sampled_from(there[-6:])) for _ in range(count)]
        if count == 2 and draw(st.booleans()):
            args[draw(st.integers(0, 1))] = const(draw(st.sampled_from(CONSTANTS)), DType.f64)
        there.append(b.let(F64, Apply(op, tuple(args))))
    results = tuple(draw(st.lists(st.sampled_from(there), min_size=1, max_size=3)))
    return Function("f", (), params, Body(tuple(b.stms), results))


@pytest.mark.thorough
@settings(max_examples=400, deadline=None)
@given(straight_lines(), st.lists(st.sampled_from([0.3, -1.7, 5.0, 0.0, 1e3, -0.0]), min_size=3, max_size=3))
def test_bits_stay(f: Function, point: list[float]) -> None:
    lifted = lift_scales(f)
    verify(lifted)
    assert len(lifted.body.stms) <= len(f.body.stms)
    with np.errstate(all="ignore"):
        before, after = evaluate(f, point), evaluate(lifted, point)
    np.testing.assert_array_equal(np.array(before), np.array(after))
    numbers = ~np.isnan(np.array(before))
    np.testing.assert_array_equal(np.signbit(np.array(before))[numbers], np.signbit(np.array(after))[numbers])


def test_the_slope_of_half_a_square() -> None:
    def energy(x: float, rest: float) -> float:
        return 0.5 * (x - rest) ** 2

    text = tp.grad(energy).ir(1.0, 2.0, stage="optimized")
    assert text.count("=") == 1 and "sub" in text


def test_the_same_object_where_nothing_is_saved() -> None:
    x = Var("x", F64)
    b = Builder()
    f = Function("f", (), (x,), Body((), (b.let(F64, Apply("mul", (x, x))),)))
    f = Function("f", (), (x,), Body(tuple(b.stms), f.body.results))
    assert lift_scales(f) is f


def test_what_is_not_gone_stays_where_it_was_written() -> None:
    """A product without its half may be out of range."""
    f = tp.function(lambda a, b: (a * 0.5) * (-b))
    assert f(1e308, 3.0) == -1.5e308
    assert tp.function(lambda a, b: (0.5 / a) * b)(2.5e-308, 1.2) == (0.5 / 2.5e-308) * 1.2
