"""What a program of this package is: its sizes, its arguments, its value and its derivatives.

Takes a size, gives NumPy arguments. The functions are ordinary Python; whoever runs them says where (`tp.function`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Size = tuple[int | str, ...]
Arguments = tuple[Any, ...]
Random = np.random.Generator
SEED = 1234


@dataclass(frozen=True)
class Case:
    name: str
    about: str  # what one size is, and which derivatives are taken
    sizes: tuple[Size, ...]
    tiny: tuple[Size, ...]  # for tests on a CPU
    draw: Callable[..., Arguments]  # arguments from a generator of random numbers and the numbers of a size
    value: Callable[..., Any]
    gradient: Callable[..., Any]  # takes the arguments of `value`
    benchmark: str = ""  # what others call it, where it is one of several kinds

    def make(self, size: Size) -> Arguments:
        """The same numbers in every run."""
        return self.draw(np.random.default_rng(SEED), *size)

    @property
    def family(self) -> str:
        return self.benchmark or self.name
