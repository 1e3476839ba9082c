"""What a loop's `plan` may say before derivatives are taken: how its values shall come back, as the user wishes.

Gives `Wish` and its reader. After differentiation the same attribute says what became of it ("x: store, k: closed").
"""

from __future__ import annotations

from dataclasses import dataclass

NONE, LIVE, CLOSED, INVERT, UNDO, STORE = "none", "live", "closed", "invert", "undo", "store"
DECISIONS = "decisions"  # only what comparisons of the value said; a plan may say so, a wish cannot
AUTO, RECOMPUTE, CHECKPOINT = "auto", "recompute", "checkpoint"
KEEP = "keep"  # like auto, without regard to budgets: for the loops that a plan is made of
ALIKE = "alike"  # shall give the same bits as its other run: no vector forms of library functions
RECOVERIES = (AUTO, RECOMPUTE, CLOSED, INVERT, "invert:M", UNDO, CHECKPOINT, "checkpoint:K", STORE)
MOST = 2**60  # iterations
WITH_NUMBER = (CHECKPOINT, INVERT)  # checkpoint:K is the depth of strips, invert:M starts afresh every M iterations


@dataclass(frozen=True)
class Wish:
    kind: str = AUTO
    number: int | None = None

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}:{self.number}"


def wish_of(text: object) -> Wish | None:
    """None for what is no wish."""
    kind, colon, number = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not colon:
        return Wish(kind) if kind in RECOVERIES or kind == KEEP else None
    digits = number.lstrip("0")
    good = kind in WITH_NUMBER and number.isascii() and number.isdigit() and digits
    return Wish(kind, min(int(digits[:20]), MOST)) if good else None


def unknown(recover: object) -> str:
    """What to say of a text that is no wish of a user."""
    return f"recover={recover!r}: use one of {', '.join(RECOVERIES)} (K and M positive integers)"
