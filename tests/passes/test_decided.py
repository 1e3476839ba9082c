"""Extrema that choose by a decision computed beside them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tapeless as tp
from tapeless.passes.decided import choose_by_decisions
from tests.passes.programs import after, program

chosen = partial(after, choose_by_decisions)

DECISION = "least: bool = le a b; no: bool = isnan a; first: bool = or least no"


def test_the_decision_goes_first() -> None:
    code = f"m: f64 = minimum a b; {DECISION}"
    assert chosen(code, "(m, first)").endswith(
        "least: bool = le a b no: bool = isnan a t: bool = not least t_1: bool = not no t_2: bool = and t t_1 "
        "first: bool = not t_2 m: f64 = select t_2 b a in (m, first)"
    )


def test_a_decision_that_is_there_already() -> None:
    text = chosen(f"{DECISION}; m: f64 = minimum a b; o: f64 = minimum a b", "(m, o, first)")
    assert "first: bool = not t_2 m: f64 = select t_2 b a o: f64 = select t_2 b a" in text


def test_a_decision_that_is_an_opposite() -> None:
    text = chosen("less: bool = lt b a; first: bool = not less; m: f64 = min a b", "(m, first)")
    assert text.endswith("less: bool = lt b a first: bool = not less m: f64 = select less b a in (m, first)")


@pytest.mark.parametrize(
    "code",
    [
        "m: f64 = minimum b a; least: bool = le a b; no: bool = isnan a; first: bool = or least no",
        "m: f64 = maximum a b; least: bool = le a b; no: bool = isnan a; first: bool = or least no",
        "m: f64 = minimum a b; least: bool = le a b; no: bool = isnan b; first: bool = or least no",
        "m: f64 = minimum a b; least: bool = lt a b; no: bool = isnan a; first: bool = or least no",
    ],
    ids=["of the other order", "of the other end", "of the other NaN", "without ties"],
)
def test_other_decisions(code: str) -> None:
    f = program(code, "(m, first)")
    assert choose_by_decisions(f) is f


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
X, Y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))


@pytest.mark.parametrize("extremum", [np.minimum, np.maximum, np.fmin, np.fmax])
def test_values_and_slopes(extremum) -> None:
    """Values as without the derivative, bit for bit where they are numbers; the winner has slope 1."""

    def both(x, y):
        return tp.map(lambda a, b: tp.value_and_grad(extremum, argnums=(0, 1))(a, b), x, y)

    values, (by_x, by_y) = tp.function(both)(X, Y)
    assert f"= {extremum.__name__} " not in tp.function(both).ir(X, Y, stage="optimized")
    plain = tp.function(lambda x, y: extremum(x, y))(X, Y)
    np.testing.assert_array_equal(values, plain)
    numbers = ~np.isnan(plain)
    np.testing.assert_array_equal(np.signbit(values[numbers]), np.signbit(plain[numbers]))
    np.testing.assert_array_equal(by_x + by_y, 1.0)
    np.testing.assert_array_equal(np.where(by_x == 1.0, X, Y), values)
