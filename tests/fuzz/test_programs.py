"""Generated programs: plain Python, the interpreters of Core and of Loop IR, and native code agree.

TAPELESS_FUZZ_EXAMPLES says how many programs each test runs; without it, some 500 in all, the same ones each time.
The slow test draws new programs in every run.
"""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tapeless.errors import CompileError, ShapeError
from tapeless.testing.compare import compare
from tapeless.testing.programs import THEMES, Program, programs
from tapeless.testing.stages import outcomes, unstable

EXAMPLES = int(os.environ.get("TAPELESS_FUZZ_EXAMPLES") or 125)
REFUSED_AT_MOST = 0.3
SETTINGS = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def check(program: Program, seen: Counter[str]) -> None:
    """One program by all stages. Every third one is optimised by LLVM, every fourth one also runs as Loop IR."""
    number = seen["programs"]
    seen["programs"] += 1
    function = program.load()
    found = outcomes(function, program.arguments, loops=number % 4 == 0, level=3 if number % 3 == 0 else 0, seed=number)
    _, python = next(found)
    try:
        for stage, outcome in found:
            where = compare(python, outcome, any_error=program.parallel)
            if where and not unstable(function, program.arguments):
                raise AssertionError(f"plain Python and {stage} differ: {where}")
    except (CompileError, ShapeError) as refused:
        if refused.code == "TP000":
            raise
        seen["refused"] += 1


def check_refused(seen: Counter[str]) -> None:
    assert seen["refused"] <= REFUSED_AT_MOST * seen["programs"], seen


def run(theme: str) -> None:
    seen: Counter[str] = Counter()

    @SETTINGS
    @given(programs(theme))
    def agree(program: Program) -> None:
        check(program, seen)

    agree.hypothesis.inner_test.__qualname__ = theme
    agree()
    check_refused(seen)


def test_all() -> None:
    run("all")


def test_control() -> None:
    run("control")


def test_arrays() -> None:
    run("arrays")


def test_parallel() -> None:
    run("parallel")


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_new_programs(theme: str) -> None:
    seen: Counter[str] = Counter()

    @settings(SETTINGS, derandomize=False)
    @given(programs(theme))
    def agree(program: Program) -> None:
        check(program, seen)

    agree()
    check_refused(seen)
