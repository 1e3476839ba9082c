"""`tp.progress` as plain Python: a range that shows how far a loop over it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tapeless.runtime.progress import counted


@dataclass(frozen=True)
class Shown:
    values: range
    name: str

    def __iter__(self) -> Iterator[int]:
        return counted(self.name, self.values)

    def __reversed__(self) -> Iterator[int]:
        return counted(self.name, self.values[::-1])

    def __len__(self) -> int:
        return len(self.values)


def progress(iterable: range) -> Shown:
    """The range itself. A loop over it shows a bar on the terminal or in the notebook when it takes long, forward and
    backward; `TAPELESS_PROGRESS=0` turns it off. In derivatives it means the range.
    """
    if not isinstance(iterable, range):
        raise TypeError(f"tp.progress takes a range, not {type(iterable).__name__}")
    return Shown(iterable, sys._getframe(1).f_code.co_name)


progress.__tapeless__ = "progress"  # type: ignore[attr-defined]  # the front end recognises it by this mark
