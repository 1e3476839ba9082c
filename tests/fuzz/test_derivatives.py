"""Derivatives of generated programs: forward and reverse mode agree with each other and with differences.

TAPELESS_FUZZ_EXAMPLES says how many programs each test draws. The slow test draws new programs in every run.
"""

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tapeless.errors import CompileError, InternalError, ShapeError
from tapeless.testing.derivatives import disagreement
from tapeless.testing.programs import THEMES, Program, programs

EXAMPLES = int(os.environ.get("TAPELESS_FUZZ_EXAMPLES") or 60)
SETTINGS = settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def run(theme: str, derandomize: bool) -> None:
    seen: Counter[str] = Counter()

    @settings(SETTINGS, derandomize=derandomize)
    @given(programs(theme))
    def agree(program: Program) -> None:
        seen["programs"] += 1
        try:
            with np.errstate(all="ignore"):
                found = disagreement(program.load(), program.arguments, seen["programs"])
        except InternalError:
            raise
        except (CompileError, ShapeError):
            seen["refused"] += 1
            return
        assert found == ""

    agree()
    assert seen["refused"] <= 0.6 * seen["programs"], seen


@pytest.mark.parametrize("theme", THEMES)
def test_the_same_programs(theme: str) -> None:
    run(theme, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_new_programs(theme: str) -> None:
    run(theme, derandomize=False)
