"""All passes over a program that goes to the machine next.

Takes traced (or differentiated) Core; gives Core for the in-place check and lowering. The list is the compiler's policy.
"""

from __future__ import annotations

import os
import time

from tapeless.ir.core import Function
from tapeless.passes.parallelise import parallelise_marked
from tapeless.passes.pipeline import FINAL_PASSES, optimize
from tapeless.passes.ranges import eliminate_checks


VERIFY = bool(os.environ.get("TAPELESS_VERIFY"))  # check the program after every pass


def optimized(function: Function, *, unsafe: bool = False, times: dict[str, float] | None = None) -> Function:
    times = times if times is not None else {}
    function = optimize(function, verify=VERIFY, times=times)
    function = parallelise_marked(function)
    function = optimize(function, verify=VERIFY, times=times)
    start = time.perf_counter()
    function = eliminate_checks(function, unsafe=unsafe)
    times["ranges"] = times.get("ranges", 0.0) + time.perf_counter() - start
    return optimize(function, verify=VERIFY, times=times, passes=FINAL_PASSES)


