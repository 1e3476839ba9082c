"""All passes together: random programs keep their meaning, and large ones do not take long."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.builder import Builder
from tapeless.ir.contents import contents
from tapeless.ir.core import Apply, Atom, Function
from tapeless.ir.types import F64, I64, Const, DType, Type, Var
from tapeless.ir.walk import all_stms
from tapeless.passes.check.verify import InvalidCore, verify
from tapeless.passes.pipeline import (
    FINISHING,
    NO_CHECKS,
    PREPARING,
    TIDY,
    TIDY_FINALLY,
    Pass,
    Pipeline,
    Repeated,
    finished,
    passes_in,
    tidied,
)
from tests.passes.programs import assert_same, calls_of, program, random_arguments, random_function

SEEDS = range(40)


@pytest.mark.parametrize("step", [*TIDY.passes, TIDY_FINALLY.passes[0]], ids=lambda step: step.name)
def test_each_pass_keeps_the_meaning(step: Pass) -> None:
    for seed in SEEDS:
        f = random_function(seed)
        g = step.run(f)
        verify(g)
        assert_same(f, g, random_arguments(seed))


@pytest.mark.thorough
@pytest.mark.parametrize("steps", [(TIDY,), (TIDY_FINALLY,)], ids=["usual", "final"])
def test_all_passes_keep_the_meaning(steps: tuple[Repeated, ...]) -> None:
    for seed in SEEDS:
        f = random_function(seed, 20)
        g = Pipeline(verify=True).run(steps, f)
        for k in range(3):
            assert_same(f, g, random_arguments(seed + 1000 * k))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 2100, 200))
def test_many_random_programs(start: int) -> None:
    for seed in range(start, start + 200):
        f = random_function(seed, 25)
        g = Pipeline(verify=True).run((TIDY_FINALLY,), f)
        for k in range(3):
            assert_same(f, g, random_arguments(seed + 10_000 * k))


def test_a_finished_program_is_left_alone() -> None:
    for seed in range(20):
        f = tidied(tidied(random_function(seed)))  # four rounds are enough for nearly all, not for all
        assert all(step.run(f) is f for step in TIDY.passes)


def test_what_is_finished_is_not_made_anew() -> None:
    """Passes that have nothing to do give the same object: only so are they not run again."""
    for seed in range(20):
        f = finished(random_function(seed))
        for p in passes_in(FINISHING):
            g = p.run(f)
            assert g is f or g != f, p.name


def test_passes_leave_functions_alone_that_hold_nothing_they_are_about() -> None:
    steps = list(passes_in((*PREPARING, *FINISHING, NO_CHECKS)))
    met = set()
    for seed in SEEDS:
        f = random_function(seed, 5)
        held = contents(f.body)
        for step in steps:
            if step.about is not None and step.about.isdisjoint(held) and step.otherwise is None:
                assert step.run(f) is f, step.name
                met.add(step.name)
    assert met >= {"branches", "hoist", "ranges", "fuse", "recognise", "version", "tiles"}


def test_nothing_grows() -> None:
    for seed in range(20):
        f = random_function(seed, 20)
        # Composed ranges add index arithmetic; everything else removes statements.
        assert sum(1 for _ in all_stms(tidied(f).body)) <= 1.2 * sum(1 for _ in all_stms(f.body))


def test_times_and_verification() -> None:
    f = program("t: f64 = add 1.0 2.0; u: f64 = mul t a", "u")
    times: dict[str, float] = {}
    Pipeline(times, verify=True).run((TIDY,), f)
    assert set(times) == {"simplify", "cse", "branches", "repeated loops", "hoist", "dce", "verify"}
    assert all(seconds >= 0 for seconds in times.values())

    def wrong(f: Function) -> Function:
        return Function(f.name, f.sizes, f.params, type(f.body)((), (Var("nobody", F64),)))

    with pytest.raises(InvalidCore):
        Pipeline(verify=True).run((Pass("wrong", wrong),), f)


def large(size: int) -> Function:
    """Two nested loops of many operations."""
    choose, b = random.Random(0).choice, Builder()
    n = Var("n", I64)
    x = Var("x", Type(DType.f64, (n,)))

    def block(index: Var, known: list[Atom]) -> list[Atom]:
        for _ in range(size // 2):
            args = (choose(known[-20:]), choose(known[-20:]))
            known.append(
                b.row(x, index) if choose(range(8)) == 0 else b.let(F64, Apply(choose(["add", "mul", "div"]), args))
            )
        return known[-8:]

    def total(atoms: list[Atom]) -> list[Atom]:
        result = atoms[0]
        for a in atoms[1:]:
            result = b.let(F64, Apply("add", (result, a)))
        return [result]

    def outer(i: Var, s: Var) -> list[Atom]:
        kept = block(i, [s, Const(1.0), Const(0.5)])
        return list(b.for_(n, total(kept), lambda j, t: total([t, *block(j, [t, Const(1.0), *kept])])))

    results = b.for_(n, [Const(0.0)], outer)
    return Function("f", (n,), (x,), b.body(results))


def test_work_grows_with_the_size_of_the_program() -> None:
    def work(size: int) -> int:
        f = large(size)
        return calls_of(lambda: tidied(f))

    assert work(8000) < 4.5 * work(2000)


def scattered(x: np.ndarray, n: int) -> np.ndarray:
    """That `k` is 1 shows when the first loop is simplified for the second time."""
    k = 1
    for _ in range(n):
        k = k * 1
    for i in tp.prange(len(x)):
        x[i * k] = 2.0 * i
    return x


def test_what_a_pass_has_made_is_simplified_again() -> None:
    np.testing.assert_array_equal(tp.function(scattered)(np.zeros(5), 3), 2.0 * np.arange(5))
