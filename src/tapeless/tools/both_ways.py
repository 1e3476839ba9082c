"""A reversible function and its inverse, side by side: the first part of its `explain`."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tapeless.tools.report import make_console


def show(forward: str, backward: str | None, undecided: int = 0) -> None:
    """`backward` is None for a function that cannot be undone, because of the step at the line `undecided`."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("forward")
    table.add_column("backward" if backward is not None else "")
    table.add_row(Text(forward.rstrip()), Text((backward or "").rstrip()))
    console = make_console()
    console.print(table)
    if backward is None:
        console.print(f"kept for gradients: what was decided at line {undecided}, and what its steps used\n")
    else:
        console.print("kept for gradients: nothing\n")
