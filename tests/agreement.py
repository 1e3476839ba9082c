"""A program by all stages of the compiler: plain Python is what the others must agree with."""

import numpy as np

from tapeless.testing.compare import compare
from tapeless.testing.stages import outcomes


def agree(function, *args, levels=(0,)):
    """`levels` are LLVM's; each with its own order of parallel loops."""

    def arguments():
        return [a.copy() if isinstance(a, np.ndarray) else a for a in args]

    for level in levels:
        found = outcomes(function, arguments, level=level, seed=level)
        _, python = next(found)
        for stage, outcome in found:
            assert compare(python, outcome) == "", stage
