"""Drawing programs from a strategy until one disagrees."""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

from tapeless.ad.policy import NoRecovery
from tapeless.errors import CompileError, InternalError, RecoveryError, ShapeError

REFUSALS = (CompileError, ShapeError, NoRecovery, RecoveryError)


def draw(strategy: Any, check: Callable[[Any], None], examples: int, part: int | None = None) -> None:
    """The same examples each time for a `part`, other ones for each part; without one, new ones each time."""
    quiet = settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    drawing = quiet(given(strategy)(check))
    (drawing if part is None else seed(part)(drawing))()


def drawn(
    strategy: Any,
    disagreement: Callable[[Any, int], str],
    *,
    few: int,
    refused_at_most: float,
    part: int | None = None,
) -> None:
    """`disagreement` takes a program and its number, and says where results differ. `few` programs are drawn unless
    TAPELESS_FUZZ_EXAMPLES says how many; no more than a share of them may be refused.
    """
    count = int(os.environ.get("TAPELESS_FUZZ_EXAMPLES") or few)
    seen: Counter[str] = Counter()

    def agree(program: Any) -> None:
        number = seen["programs"]
        seen["programs"] += 1
        try:
            found = disagreement(program, number)
        except InternalError:
            raise
        except REFUSALS:
            seen["refused"] += 1
            return
        assert found == ""

    draw(strategy, agree, count, part)
    assert seen["refused"] <= refused_at_most * seen["programs"], seen
