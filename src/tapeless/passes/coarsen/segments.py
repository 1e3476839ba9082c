"""What coarsening did, for `explain`."""

from __future__ import annotations

from dataclasses import dataclass

from tapeless.ir.span import Span


@dataclass(frozen=True)
class Segment:
    """A piece of the program that was replaced. `form` is what it comes to; `before` and `after` count operations, the
    former for each trip of a loop.
    """

    span: Span
    name: str
    form: str
    before: int
    after: int
