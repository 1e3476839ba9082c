"""Gradients of generated loops do not depend on how values come back.

TAPELESS_FUZZ_EXAMPLES says how many programs each test draws; without it a few, the same each time. The slow tests draw new
programs in every run, and try more recoveries and more numbers of trips on each.
"""

import os
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tapeless.ad.policy import NoRecovery, policy_of
from tapeless.errors import CompileError, InternalError, RecoveryError, ShapeError
from tapeless.testing import derivatives, recoveries
from tapeless.testing.nests import Nest, nests
from tapeless.testing.programs import Program, programs
from tapeless.testing.recoveries import TRIPS, WAYS

EXAMPLES = int(os.environ.get("TAPELESS_FUZZ_EXAMPLES") or 30)
SETTINGS = settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
POLICIES = [policy_of(w.memory, w.recover) for w in WAYS if w.kind != "invert"]  # which is not exact


def some(options: tuple, number: int, count: int) -> list:
    """So many of them, others for each number."""
    return [options[(number * 5 + k * 3) % len(options)] for k in range(count)]


def run_nests(derandomize: bool, ways: int, trips: int) -> None:
    seen: Counter[str] = Counter()

    @settings(SETTINGS, derandomize=derandomize)
    @given(nests(7))
    def agree(nest: Nest) -> None:
        number = seen["programs"]
        seen["programs"] += 1
        try:
            function = nest.load()
            chosen, lengths = some(WAYS, number, ways), some(TRIPS, number, trips)
            found = recoveries.disagreement(function, nest.arguments, (0, 1, 2, 3), chosen, lengths)
        except InternalError:
            raise
        except (CompileError, ShapeError):
            seen["refused"] += 1
            return
        assert found == ""

    agree()
    assert seen["refused"] <= 0.1 * seen["programs"], seen


def run_programs(theme: str, derandomize: bool, policies: int) -> None:
    """Programs of the language at large, whose loops are short."""

    seen: Counter[str] = Counter()

    @settings(SETTINGS, derandomize=derandomize)
    @given(programs(theme, 10))
    def agree(program: Program) -> None:
        number = seen["programs"]
        seen["programs"] += 1
        for policy in some(tuple(POLICIES), number, policies):
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = derivatives.disagreement(program.load(), program.arguments, number, policy)
            except InternalError:
                raise
            except (CompileError, ShapeError, NoRecovery, RecoveryError):
                continue
            assert found == "", policy

    agree()


def test_the_same_nests() -> None:
    run_nests(derandomize=True, ways=2, trips=3)


@pytest.mark.parametrize("theme", ["control", "arrays"])
def test_the_same_programs(theme: str) -> None:
    run_programs(theme, derandomize=True, policies=1)


@pytest.mark.slow
def test_new_nests() -> None:
    run_nests(derandomize=False, ways=6, trips=5)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["all", "control", "arrays", "parallel"])
def test_new_programs(theme: str) -> None:
    run_programs(theme, derandomize=False, policies=3)
