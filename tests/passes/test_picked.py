"""Dear operands of selections: they run where they are picked, and only those that nothing else needs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.ir.core import Apply, If
from tapeless.ir.walk import all_stms
from tapeless.passes.pipeline import finished
from tapeless.passes.tidy.picked import compute_what_is_picked
from tests.passes.programs import after, program

CHOICE = "q: bool = lt a b\nf1: f64 = gammaln a\nf2: f64 = j0 b\nu: f64 = select q f1 f2"
SLOPE = "q: bool = eq b 0.0\nf1: f64 = digamma a\np: f64 = mul f1 b\nt: bool = isnan p\nq1: bool = and q t\nu: f64 = select q1 0.0 p"


@pytest.mark.parametrize(
    "code, result",
    [
        (CHOICE, "if q then f1: f64 = gammaln a in f1 else f2: f64 = j0 b in f2"),
        (CHOICE.replace("\nu: f64 = select q f1 f2", "\nf3: f64 = add f2 f2\nu: f64 = select q f1 f3"), "in f3"),
        (CHOICE.replace("j0", "sin"), "else f2: f64 = sin b in f2"),
        (CHOICE + "\nq1: bool = lt b 0.0\nv: f64 = select q1 u a", "if q1 then q: bool = lt a b u: f64 = if q then"),
        (SLOPE, "if q then 0.0 else f1: f64 = digamma a p: f64 = mul f1 b in p"),
    ],
    ids=["both", "with what comes after it", "one arm", "in each other", "a product that may be 0 times infinity"],
)
def test_what_is_picked(code: str, result: str) -> None:
    assert result in after(compute_what_is_picked, code, "(v, v)" if "v:" in code else "(u, u)")


@pytest.mark.parametrize(
    "code, results",
    [
        (CHOICE.replace("j0", "sin"), "(u, f1)"),
        (CHOICE.replace("gammaln", "sin").replace("j0", "exp"), "(u, u)"),
        (CHOICE.replace("q f1 f2", "q f1 f1"), "(u, f2)"),
        ("f1: f64 = gammaln a\nq: bool = lt a f1\nu: f64 = select q f1 b", "(u, u)"),
        (SLOPE + "\nv: f64 = neg f1", "(u, v)"),
        (SLOPE.replace("eq b 0.0", "gt b 0.0"), "(u, u)"),
        (SLOPE.replace("eq b 0.0", "eq b 1.0"), "(u, u)"),
        (SLOPE.replace("mul f1 b", "add f1 b"), "(u, u)"),
        (SLOPE.replace("eq b 0.0", "eq w1 0.0").replace("q: bool", "w1: f64 = neg a\nq: bool"), "(u, u)"),
        (
            SLOPE.replace("q: bool = eq b 0.0\nf1: f64 = digamma a", "f1: f64 = digamma a\nq: bool = eq f1 0.0"),
            "(u, u)",
        ),
    ],
    ids=[
        "used elsewhere",
        "cheap",
        "picked either way",
        "compared",
        "a slope used elsewhere",
        "a test for something else",
        "a test for another number",
        "no product",
        "a test of no factor",
        "a slope that is compared",
    ],
)
def test_what_stays(code: str, results: str) -> None:
    f = program(code, results)
    assert compute_what_is_picked(f) is f


def without_nan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = special.digamma(y)
    return np.where((x > 0) & np.isnan(found), 0.0, found)


def test_a_look_for_nan_is_not_taken_for_a_product_with_nothing() -> None:
    x, y = np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, np.nan, 3.0, np.nan])
    np.testing.assert_allclose(tp.function(without_nan)(x, y), without_nan(x, y), rtol=1e-14)


def pieces(x: np.ndarray) -> np.ndarray:
    return np.where(x > 2.0, special.gammaln(x), np.where(x > 1.0, special.j0(x), special.ndtri(x)))


def test_slopes_of_functions_in_pieces() -> None:
    """At 0 the slope of what was not picked is infinite; beyond 1 the value of `ndtri` is NaN."""
    x = np.array([0.25, 0.9, 1.5, 2.5, 7.0])
    core = finished(trace(tp.grad(lambda x: np.sum(pieces(x))), (x,)).core)
    inside = [s for stm in all_stms(core.body) if isinstance(stm.exp, If) for s in all_stms(stm.exp.orelse)]
    assert any(isinstance(s.exp, Apply) and s.exp.op == "digamma" for s in inside)
    tp.check_grads(lambda x: np.sum(pieces(x)), (x,), order=2)
    np.testing.assert_allclose(tp.function(pieces)(x), pieces(x), rtol=1e-14)
