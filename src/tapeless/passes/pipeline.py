"""The order of the passes.

Takes a verified function and gives one that computes the same, with less. Relies on a pass giving the same object back
when it has nothing to do: a pass is not run again on what it left alone, and the rounds end when all do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from tapeless.ir.core import Function
from tapeless.passes.alongside import merge_loops
from tapeless.passes.branches import merge_branches
from tapeless.passes.cse import cse
from tapeless.passes.dce import dce
from tapeless.passes.hoist import hoist
from tapeless.passes.simplify import simplify
from tapeless.passes.verify import verify as check_function

ROUNDS = 4  # so many times at most is the list gone through


@dataclass(frozen=True)
class Pass:
    """`name` is what times are recorded under."""

    name: str
    run: Callable[[Function], Function]


# Before differentiation, and wherever the result may still be differentiated.
PASSES: tuple[Pass, ...] = (
    Pass("simplify", simplify),
    Pass("cse", cse),
    Pass("branches", merge_branches),
    Pass("hoist", hoist),
    Pass("dce", dce),
)

# The last time, before lowering: see Note [Branches as selections] in `simplify`. Loops are merged only here, so that
# each is differentiated by itself.
FINAL_PASSES: tuple[Pass, ...] = (
    Pass("simplify", partial(simplify, speculate=True)),
    Pass("loops", merge_loops),
    *PASSES[1:],
)

# After passes that say where statements shall stand.
TIDYING = tuple(p for p in PASSES if p.name in ("simplify", "cse", "dce"))


def optimize(
    function: Function,
    *,
    verify: bool = False,
    times: dict[str, float] | None = None,
    passes: Sequence[Pass] = PASSES,
) -> Function:
    """Runs the passes until none of them changes anything, or for ROUNDS rounds.

    verify: check the function after every pass that changed it.
    times:  seconds spent in each pass are added under its name, those of the verifier under "verify".
    """
    left_alone: dict[int, Function] = {}  # by the number of the pass, what it had nothing to do with
    for _ in range(ROUNDS):
        before = function
        for number, step in enumerate(passes):
            if left_alone.get(number) is function:
                continue
            start = perf_counter()
            new = step.run(function)
            _add(times, step.name, start)
            if new is function:
                left_alone[number] = function
            elif verify:
                start = perf_counter()
                check_function(new)
                _add(times, "verify", start)
            function = new
        if function is before:
            break
    return function


def _add(times: dict[str, float] | None, name: str, start: float) -> None:
    if times is not None:
        times[name] = times.get(name, 0.0) + perf_counter() - start
