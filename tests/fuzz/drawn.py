"""Drawing programs from a strategy until one disagrees."""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings

from tapeless.ad.policy import NoRecovery
from tapeless.errors import CompileError, InternalError, RecoveryError, ShapeError

REFUSALS = (CompileError, ShapeError, NoRecovery, RecoveryError)


def drawn(
    strategy: Any, disagreement: Callable[[Any, int], str], *, few: int, derandomize: bool, refused_at_most: float
) -> None:
    """`disagreement` takes a program and its number, and says where results differ. `few` programs are drawn unless
    TAPELESS_FUZZ_EXAMPLES says how many; no more than a share of them may be refused.
    """
    count = int(os.environ.get("TAPELESS_FUZZ_EXAMPLES") or few)
    seen: Counter[str] = Counter()

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=derandomize,
    )
    @given(strategy)
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

    agree()
    assert seen["refused"] <= refused_at_most * seen["programs"], seen
