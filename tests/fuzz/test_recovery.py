"""Gradients of generated loops do not depend on how values come back.

TAPELESS_FUZZ_EXAMPLES says how many programs each test draws; without it a few, the same each time, of which `make test` runs a third. The slow tests draw new
programs in every run, and try more recoveries and more numbers of trips on each.
"""

import warnings

import numpy as np
import pytest

from tapeless.ad.policy import policy_of
from tapeless.testing import derivatives, recoveries
from tapeless.testing.nests import Nest, nests
from tapeless.testing.programs import Program, programs
from tapeless.testing.recoveries import TRIPS, WAYS
from tests.fuzz.drawn import REFUSALS, drawn

POLICIES = [policy_of(w.memory, w.recover) for w in WAYS if w.kind != "invert"]  # which is not exact


def some(options: tuple, number: int, count: int) -> list:
    """So many of them, others for each number."""
    return [options[(number * 5 + k * 3) % len(options)] for k in range(count)]


def run_nests(ways: int, trips: int, few: int = 10, part: int | None = None) -> None:
    def differs(nest: Nest, number: int) -> str:
        chosen, lengths = some(WAYS, number, ways), some(TRIPS, number, trips)
        return recoveries.disagreement(nest.load(), nest.arguments, (0, 1, 2, 3), chosen, lengths)

    drawn(nests(7), differs, few=few, part=part, refused_at_most=0.1)


def run_programs(theme: str, policies: int, few: int = 30, part: int | None = None) -> None:
    """Programs of the language at large, whose loops are short. One that no policy could be tried on counts as refused."""

    def differs(program: Program, number: int) -> str:
        refusal = None
        for policy in some(tuple(POLICIES), number, policies):
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = derivatives.disagreement(program.load(), program.arguments, number, policy)
            except REFUSALS as problem:
                refusal = problem
                continue
            if found:
                return f"{policy}: {found}"
            refusal = None
        if refusal is not None:
            raise refusal
        return ""

    drawn(programs(theme, 10), differs, few=few, part=part, refused_at_most=0.6)


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_the_same_nests(part: int) -> None:
    run_nests(2, 3, 4, part)


@pytest.mark.thorough
@pytest.mark.sampled(3, each="theme")
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("theme", ["control", "arrays"])
def test_the_same_programs(theme: str, part: int) -> None:
    run_programs(theme, 1, 10, part)


@pytest.mark.slow
def test_new_nests() -> None:
    run_nests(6, 5)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["all", "control", "arrays", "parallel"])
def test_new_programs(theme: str) -> None:
    run_programs(theme, 3)
