"""What an eval module is made of.

An eval module has `TASKS`, its functions by the names of the benchmark, and `EXAMPLE`, an input in the form that the
benchmark sends. `define` compiles every task for the example: code depends on element types and ranks and not on sizes,
so it serves the workloads too. Sizes in an example are equal only where they always are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def plain(result: Any, _arguments: tuple[Any, ...]) -> Any:
    """Arrays and numbers as lists and numbers."""
    return np.asarray(result).tolist()


@dataclass(frozen=True)
class Task:
    """A function to compile, its arguments from an input, and an output from its result and arguments."""

    function: Callable[..., Any]
    arguments: Callable[[Any], tuple[Any, ...]]
    output: Callable[[Any, tuple[Any, ...]], Any] = plain


def floats(values: Any) -> np.ndarray:
    return np.array(values, np.float64)


def integers(values: Any) -> np.ndarray:
    return np.array(values, np.int64)
