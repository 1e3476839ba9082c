"""Where a piece of a program stands in the user's source.

Gives `Span` and `NOWHERE`. Relies on nothing. Lines count from 1 and columns from 0, as in Python's `ast`.
"""

from __future__ import annotations

from tapeless.ir.node import node


@node(frozen=True, slots=True)
class Span:
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE = Span("<built in>", 0, 0, 0, 0)
