"""Slices of one array that are written one after the other: when one map does it, and that each bit stays."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tapeless as tp
from tapeless.interp.evaluate import evaluate
from tapeless.ir.printer import print_function
from tapeless.ir.target import Target
from tapeless.passes.accumulators.written_slices import write_at_once
from tapeless.passes.pipeline import finished
from tapeless.testing.stages import trace
from tests.passes.programs import after, program

joined = partial(after, write_at_once)

SIZES = "less: i64 = add n -2; m: i64 = max less 0"


def added(number: int, array: str, start: int, value: str, op: str = "add p q") -> str:
    return (
        f"e{number}: [m]f64 = {array}[{start}:+m]; "
        f"t{number}: [m]f64 = map m (\\i p q -> r{number}: f64 = {op}; in r{number}) e{number} {value}; "
        f"a{number}: [n]f64 = update {array}[{start}:+m] = t{number}; "
    )


VALUES = f"{SIZES}; v: [m]f64 = y[1:+m]; "


def test_sums_and_writes_become_one_map() -> None:
    code = VALUES + added(1, "y", 0, "v") + added(2, "a1", 2, "v", "sub q p") + "a3: [n]f64 = update a2[1:+m] = v"
    text = joined(code, "(a3)")
    assert "update" not in text and text.count("map n") == 1 and text.count("if ") == 3


@pytest.mark.parametrize(
    ("code", "results"),
    [
        (VALUES + added(1, "y", 0, "v"), "a1"),
        (VALUES + added(1, "y", 0, "v") + added(2, "a1", 2, "v"), "a1, a2"),
        (VALUES + added(1, "y", 0, "v") + "part: [m]f64 = a1[1:+m]; " + added(2, "a1", 2, "part"), "a2"),
        (VALUES + "one: [n]f64 = update y[0:+1] = 1.0; two: [n]f64 = update one[1:+1] = 2.0", "two"),
        (
            VALUES
            + "h: i64 = floordiv n 2; part: [h]f64 = y[0:+h]; one: [n]f64 = update y[0:+h] = part; two: [n]f64 = update one[1:+h] = part",
            "two",
        ),
    ],
    ids=["one", "others read one in between", "the second depends on the first", "two cells", "half of it"],
)
def test_what_stays(code: str, results: str) -> None:
    f = program(code, f"({results})")
    assert write_at_once(f) is f


def heat(u, steps):
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
        new = u.copy()
        new[1:-1, 1:-1] += 0.2 / (1 + inner * inner) * around
        u = new
    return np.sum(u * u)


@pytest.mark.parametrize("n", [0, 2, 3, 7])
def test_the_adjoint_of_a_stencil_is_one_map(n: int) -> None:
    u = np.random.default_rng(0).normal(size=(n, n))
    core = trace(tp.grad(heat), (u, 3)).core
    plain, ours = finished(core), finished(core, target=Target.ptx)
    assert (print_function(ours).count("update"), print_function(plain).count("update")) == (2, 7)
    np.testing.assert_array_equal(evaluate(plain, [u, 3])[0], evaluate(ours, [u, 3])[0])
