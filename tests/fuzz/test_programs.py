"""Generated programs: plain Python, the interpreters of Core and of Loop IR, and native code agree.

TAPELESS_FUZZ_EXAMPLES says how many programs each test draws; without it, some 200 different ones in all, the same
each time, of which `make test` runs a fifth. The slow test draws new programs in every run.
"""

import os
from collections import Counter
from typing import Any

import pytest

from tapeless.errors import CompileError, InternalError, ShapeError
from tapeless.testing.compare import Outcome, Raised, compare, refused
from tapeless.testing.programs import THEMES, Program, programs
from tapeless.testing.stages import outcomes, unstable
from tests.fuzz.drawn import draw

EXAMPLES = int(os.environ.get("TAPELESS_FUZZ_EXAMPLES") or 160)  # hypothesis draws many of them twice
REFUSED_AT_MOST = {"references": 0.6}  # whose programs lose track of their arrays on purpose


def check(program: Program, seen: Counter[str]) -> None:
    """One program by all stages. LLVM optimises every third one, and every second one also runs as Loop IR."""
    number = seen["programs"]
    seen["programs"] += 1
    function = program.load()
    options = {"loops": number % 2 == 0, "level": 3 if number % 3 == 0 else 0, "eager": number % 5 > 0}
    found = outcomes(function, program.arguments, seed=number, **options)
    _, python = next(found)
    try:
        for stage, outcome in found:
            where = compare(python, outcome, any_error=program.parallel, empty=not program.loose)
            if where and program.loose and (refused(python, outcome) or lost(program, python)):
                seen["refused"] += 1
                return
            if where and not unstable(function, program.arguments):
                raise AssertionError(f"plain Python and {stage} differ: {where}")
    except InternalError:
        raise
    except (CompileError, ShapeError):
        seen["refused"] += 1


def lost(program: Program, python: Outcome) -> bool:
    """Whether plain Python failed at an array that has no type there."""
    return program.untyped and isinstance(python, Raised)


def run(theme: str, examples: int, **options: Any) -> None:
    """`options` say which programs are drawn."""
    seen: Counter[str] = Counter()
    known: set[Program] = set()

    def agree(program: Program) -> None:
        if program not in known:
            check(program, seen)
            known.add(program)

    draw(programs(theme), agree, examples, **options)
    assert seen["programs"] >= examples * 3 // 8, seen
    assert seen["refused"] <= REFUSED_AT_MOST.get(theme, 0.3) * seen["programs"], seen


@pytest.mark.thorough
@pytest.mark.sampled(5, each="theme")
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("theme", THEMES)
def test_the_same_programs(theme: str, part: int) -> None:
    run(theme, EXAMPLES // 8, part=part)


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_new_programs(theme: str) -> None:
    run(theme, EXAMPLES)
