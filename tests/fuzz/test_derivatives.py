"""Derivatives of generated programs: forward and reverse mode agree with each other and with differences.

TAPELESS_FUZZ_EXAMPLES says how many programs each test draws. The slow test draws new programs in every run.
"""

import numpy as np
import pytest

from tapeless.testing.derivatives import disagreement
from tapeless.testing.programs import THEMES, Program, programs
from tests.fuzz.drawn import drawn


def differs(program: Program, number: int) -> str:
    with np.errstate(all="ignore"):
        return disagreement(program.load(), program.arguments, number)


def run(theme: str, few: int = 60, part: int | None = None) -> None:
    drawn(programs(theme), differs, few=few, part=part, refused_at_most=0.6)


@pytest.mark.thorough
@pytest.mark.sampled(6, each="theme")
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("theme", THEMES)
def test_the_same_programs(theme: str, part: int) -> None:
    run(theme, 10, part)


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_new_programs(theme: str) -> None:
    run(theme)
