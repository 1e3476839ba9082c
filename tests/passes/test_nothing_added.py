"""Loops that add multiples of a number that may be 0."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.core import Function, If
from tapeless.ir.walk import all_stms
from tapeless.passes.accumulators.nothing_added import skip_additions_of_nothing
from tapeless.passes.check.verify import verify
from tests.passes.programs import arguments, assert_same, program

CHOSEN = "q: bool = lt a b; u: f64 = select q 0.0 a; v: f64 = mul u -2.0"
LOOP = "map n (\\i -> e: f64 = x[i~]; p: f64 = mul e v; update_acc r_acc[i~] = p; in ())"


def filled(chosen: str, loop: str, kind: str = "{slopes} ") -> Function:
    inner = f"{chosen}; {loop}".replace("; ", "\n      ").replace("-> ", "->\n      ")
    return program(
        f"z0: [n]f64 = full [n] 0.0\n    r: [n]f64 = with_acc {kind}z0 (\\(r_acc: acc<add, [n]f64>) ->\n      {inner}\n      in ())",
        "r",
    )


@pytest.mark.parametrize(
    "chosen, loop",
    [
        (CHOSEN, LOOP),
        (CHOSEN.replace("select q 0.0 a", "select q a 0.0"), LOOP.replace("mul e v", "mul v e")),
        (CHOSEN, LOOP.replace("p: f64 = mul e v", "o: f64 = neg v; w1: f64 = mul e v; p: f64 = add o w1")),
        (CHOSEN, LOOP.replace("p: f64 = mul e v", "w1: f64 = mul e v; l: bool = lt e 0.0; p: f64 = select l w1 0.0")),
        (CHOSEN, LOOP.replace("p: f64 = mul e v", "p: f64 = div v b")),
    ],
    ids=["a product", "the other way round", "a sum of two", "a choice", "a quotient"],
)
def test_loops_that_are_skipped(chosen: str, loop: str) -> None:
    f = filled(chosen, loop)
    g = skip_additions_of_nothing(f)
    verify(g)
    assert any(isinstance(s.exp, If) for s in all_stms(g.body))
    for seed in range(6):
        numbers = [np.nan_to_num(v) if isinstance(v, np.ndarray) else v for v in arguments(seed)]
        assert_same(f, g, numbers)


@pytest.mark.parametrize(
    "chosen, loop",
    [
        (CHOSEN.replace("select q 0.0 a", "select q b a"), LOOP),
        (CHOSEN, LOOP.replace("mul e v", "add e v")),
        (CHOSEN, LOOP.replace("mul e v", "div e v")),
        (CHOSEN, LOOP.replace("mul e v", "mul e b")),
        (CHOSEN, LOOP.replace("i~] = p", "i?] = p")),
        (CHOSEN, LOOP.replace("map n", "map 2")),
        (CHOSEN, LOOP.replace("e: f64 = x[i~]", 'l: bool = lt a 9.0; check l ValueError "no"; e: f64 = x[i~]')),
    ],
    ids=["never 0", "a sum", "a divisor", "another number", "tests its position", "short", "tests"],
)
def test_loops_that_run(chosen: str, loop: str) -> None:
    f = filled(chosen, loop)
    assert skip_additions_of_nothing(f) is f


def test_sums_of_the_program_itself_run() -> None:
    f = filled(CHOSEN, LOOP, "")
    assert skip_additions_of_nothing(f) is f


def weighed(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    out = np.zeros(8)
    for i in tp.prange(len(x)):
        f = np.where(x[i] > 3, x[i], 0.0)
        for j in range(len(w)):
            out[j] += f * np.log(w[j])
    return out


def test_products_with_what_is_infinite_are_those_of_numpy() -> None:
    x, w = np.array([0.5, -1.0, 2.0]), np.array([1.0, 1.0, 0.0, np.inf, np.nan, 1.0, 1.0, 1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(tp.function(weighed)(x, w), weighed(x, w))


def nearest(centres: np.ndarray, x: np.ndarray) -> float:
    def distance(row: np.ndarray) -> float:
        best = np.inf
        for c in range(len(centres)):
            own = 0.0
            for k in range(len(row)):
                own += (row[k] - centres[c, k]) ** 2
            best = min(best, own)
        return best

    return np.sum(tp.map(distance, x))


def test_only_what_was_chosen_has_a_slope() -> None:
    rng = np.random.default_rng(1)
    centres, x = rng.normal(size=(5, 7)), rng.normal(size=(20, 7))
    want = np.zeros_like(centres)
    for row in x:
        c = np.argmin(((row - centres) ** 2).sum(1))
        want[c] += 2 * (centres[c] - row)
    np.testing.assert_allclose(tp.grad(nearest)(centres, x), want, rtol=1e-12)
    assert "ne " in tp.grad(nearest).ir(centres, x, stage="optimized")


def test_what_is_infinite_and_was_not_chosen_passes_nothing_on() -> None:
    def f(w: np.ndarray, x: np.ndarray) -> float:
        best = np.inf
        for r in range(2):
            own = 0.0
            for k in range(len(w)):
                own += w[k] * x[r, k]
            best = min(best, own)
        return best

    x = np.array([[1.0, np.inf, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(tp.grad(f)(np.ones(6), x), x[1])
