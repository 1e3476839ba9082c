"""Every recovery that applies gives the same gradient, for numbers of trips around powers; the others say so."""

import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)
from tests.recovery.gallery import loop
from tests.recovery.same import ALWAYS, TRIPS, Loop, quietly, same


@pytest.mark.sampled(6)
@loop.all
def test_storing_everything_against_differences(program: Loop) -> None:
    for n in (0, 1, 8) if program.smooth else ():
        program.against_differences(n)


@pytest.mark.sampled(8, each="program")
@pytest.mark.parametrize("recover", ALWAYS)
@loop.all
def test_always(program: Loop, recover: str) -> None:
    program.check(recover=recover)


@pytest.mark.thorough
@pytest.mark.sampled(8)
@loop.all
def test_budget(program: Loop) -> None:
    """Where the budget is enough: one code for both."""
    for memory in ("300B", "3KB"):
        found = program.gradients(memory=memory)
        for n in TRIPS:
            try:
                gradient = found(n)
            except tp.RecoveryError:
                if memory == "3KB":
                    raise
                continue
            same(gradient, program.expected(n))


@pytest.mark.sampled(8)
@loop.all
def test_budget_of_one_call(programs_for_calls: None, program: Loop) -> None:
    same(program.gradients(memory="3KB")(27), program.expected(27))


@pytest.mark.sampled(8)
@loop.all
def test_undo(program: Loop) -> None:
    if program.undo:
        program.check(recover="undo")
    else:
        with pytest.raises(tp.RecoveryError, match="replaced as a whole"):
            program.check((3,), recover="undo")


@pytest.mark.sampled(3)
@loop.all
def test_invert(program: Loop) -> None:
    if program.inverts:
        trips = tuple(n for n in TRIPS if n <= program.inverts)
        quietly(lambda: program.check(trips, 1e-4 if program.inverts < 65 else 1e-9, recover="invert"))
    else:
        with pytest.raises(tp.RecoveryError, match="cannot be solved for"):
            program.check((3,), recover="invert")


@pytest.mark.sampled(3)
@loop.having(lambda program: program.inverts > 0)
def test_invert_with_states_in_between(program: Loop) -> None:
    quietly(
        lambda: program.check(
            (0, 1, 2, 3, 7, 8, 9, 26, 27, 28), 1e-9 if program.inverts == 65 else 1e-5, recover="invert:3"
        )
    )


def test_trips_below_zero_are_none() -> None:
    program = next(p for p in loop.loops if p.function.__name__ == "one_cell")
    for options in (
        {"recover": "checkpoint"},
        {"recover": "checkpoint:3"},
        {"recover": "recompute"},
        {"memory": "3KB"},
    ):
        same(program.gradients(**options)(-5), program.expected(0), 0.0, str(options))
