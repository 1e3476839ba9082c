"""What answering Ctrl-C costs: the workloads of benchmarks.primal with and without polls, in turns, on one thread.

python -m benchmarks.polls [NAME ...]
"""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import tapeless as tp
from benchmarks.timing import Runner, geometric_mean, race
from benchmarks.workloads import WORKLOADS
from tapeless.api import shared
from tapeless.backends.llvm import optimize

ROUNDS, SECONDS = 20, 4.0


def compiled(function: Callable[..., Any], args: Any, polls: bool) -> Callable[..., Any]:
    """Compiled in a cache of its own. Without polls the code is compiled as if there were nobody to stop it."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as changes:
        changes.enter_context(patch.dict(os.environ, TAPELESS_CACHE_DIR=folder))
        changes.enter_context(patch.object(shared, "_place", lambda function: None))
        if not polls:
            changes.enter_context(patch.object(optimize, "add_polls", lambda text: text))
        made = tp.function(function, threads=1)
        made(*args)
    return made


def main(names: list[str]) -> None:
    print(f"{'workload':16}{'ms without':>12}{'ms with':>12}{'ratio':>9}")
    ratios = []
    for workload in WORKLOADS:
        if names and workload.name not in names:
            continue
        args = workload.make_inputs()
        runners = [Runner(str(polls), 1, compiled(workload.tapeless(), args, polls)) for polls in (False, True)]
        race(runners, args, rounds=ROUNDS, budget=SECONDS)
        without, polled = (runner.best for runner in runners)
        ratios.append(polled / without)
        print(f"{workload.name:16}{1e3 * without:12.3f}{1e3 * polled:12.3f}{ratios[-1]:9.3f}", flush=True)
    print(f"{'geometric mean':40}{geometric_mean(ratios):9.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
