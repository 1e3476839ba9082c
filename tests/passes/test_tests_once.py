"""Loops that only test, the same in each iteration."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tapeless as tp
from tapeless.passes.bounds.tests_once import test_once as once
from tests.passes.programs import after, program

shortened = partial(after, once)
CHECK = 'l: bool = lt a 9e9; check l ValueError "no"'


def test_a_map_that_does_the_same_each_time() -> None:
    text = shortened(
        f"map n (\\i -> {CHECK}; in ())".replace("; ", "\n          ").replace("-> ", "->\n          "), "a"
    )
    assert "map" not in text and text.startswith("some: bool = gt n 0 if some then l: bool")


def test_what_is_not_used_of_an_access_is_its_tests() -> None:
    code = "for_all: i64 = add k 0\n        map n (\\i ->\n          e: f64 = w[i~, 1?]\n          in ())"
    assert "map" not in shortened(code, "a")


@pytest.mark.parametrize(
    "code",
    [
        'map n (\\i ->\n          l: bool = lt i 99\n          check l ValueError "no"\n          in ())',
        "map n (\\i ->\n          e: f64 = x[i?]\n          in ())",
        'map n (\\i ->\n          print ("it")\n          in ())',
    ],
    ids=["tests the counter", "tests the position", "prints"],
)
def test_loops_that_stay(code: str) -> None:
    f = program(code, "a")
    assert once(f) is f


def test_positions_in_a_table_are_tested_once_in_the_gradient() -> None:
    def f(w: np.ndarray, values: np.ndarray, column: np.ndarray) -> float:
        def largest(v: float) -> float:
            best = -np.inf
            for c in range(len(w)):
                own = 0.0
                for e in range(len(column)):
                    own += values[e] * w[c, column[e]] * v
                best = max(best, own)
            return best

        return np.sum(tp.map(largest, values))

    rng = np.random.default_rng(1)
    w, values, column = rng.normal(size=(3, 4)), rng.normal(size=5), np.array([0, 3, 1, -1, 2])
    want = tp.jacfwd(f)(w, values, column)
    np.testing.assert_allclose(tp.grad(f)(w, values, column), want, rtol=1e-12)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 1 with size 4"):
        tp.grad(f)(w, values, np.array([0, 3, 4, -1, 9]))
    for nothing in (w[:0], w):
        assert np.isfinite(tp.grad(f)(nothing, values[: len(nothing)], column[: len(nothing)])).all()
