"""What coarsening did, or left alone, for `explain`."""

from __future__ import annotations

from dataclasses import dataclass

from tapeless.ir.span import Span


@dataclass(frozen=True)
class Segment:
    """A piece of the program that came into question: the value `name` of the statement at `span`.

    ops_before, ops_after: operations of a trip of the loop, and of what takes the place of all trips; of that, those of
                           one step where there are more trips than steps
    closed_form, latex:    what it comes to, as text and in LaTeX; None where it was left alone
    why:                   the reason for that
    """

    span: Span
    name: str
    ops_before: int
    ops_after: int
    closed_form: str | None = None
    latex: str | None = None
    why: str = ""

    @property
    def line(self) -> int:
        return self.span.line

    def __str__(self) -> str:
        if self.closed_form is None:
            return f"line {self.line}: {self.name} is left alone: {self.why}"
        return f"line {self.line}: {self.name} = {self.closed_form} ({self.ops_before} operations a trip before, {self.ops_after} now)"
