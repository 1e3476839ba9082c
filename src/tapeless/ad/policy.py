"""What a user says about recoveries: `recover=` and `memory=` of a transform, `recover=` of a loop.

Gives `Policy`, which goes along with a derivative, `Wish`, what holds for one loop, and `NoRecovery`, raised where it
cannot be had.
"""

from __future__ import annotations

from dataclasses import dataclass

from tapeless.ir.span import NOWHERE, Span

NONE, LIVE, CLOSED, INVERT, UNDO, STORE = "none", "live", "closed", "invert", "undo", "store"
AUTO, RECOMPUTE, CHECKPOINT = "auto", "recompute", "checkpoint"
WISHES = (AUTO, RECOMPUTE, CLOSED, INVERT, UNDO, CHECKPOINT, STORE)
KEEP = "keep"  # like auto, without regard to budgets: for the loops that a plan is made of
WITH_NUMBER = (CHECKPOINT, INVERT)  # checkpoint:K is the depth of strips, invert:M re-anchors every M steps
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BINARY = {f"{k[0]}IB": 1 << 10 * n for n, k in enumerate(UNITS) if n}


class NoRecovery(Exception):
    """A recovery that does not apply: the reason in the user's words, and the loop."""

    def __init__(self, reason: str, span: Span = NOWHERE, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.span, self.hint = reason, span, hint


@dataclass(frozen=True)
class Wish:
    """How the values of a loop shall come back. `number`: the depth of `checkpoint`, the distance of `invert`."""

    kind: str = AUTO
    number: int | None = None

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}:{self.number}"


@dataclass(frozen=True)
class Policy:
    """`memory` in bytes is for all that backward sweeps keep."""

    recover: Wish = Wish()
    memory: int | None = None

    def wish(self, plan: str) -> Wish:
        """For a loop with this text: its own, or the transform's."""
        return wish_of(plan) or self.recover


ANY = Policy()


def wish_of(text: str) -> Wish | None:
    """None for texts that are no wish."""
    kind, colon, number = text.partition(":")
    if kind not in (*WISHES, KEEP) or (colon and not (kind in WITH_NUMBER and number.isascii() and number.isdigit())):
        return None
    if colon and int(number) < 1:
        return None
    return Wish(kind, int(number) if colon else None)


def bytes_of(size: str) -> int:
    """'64MB' in bytes, '64MiB' too."""
    text = size.replace(" ", "").upper()
    for unit, factor in sorted({**BINARY, **UNITS}.items(), key=lambda item: -len(item[0])):
        if text.endswith(unit):
            return int(float(text[: -len(unit)]) * factor)
    raise ValueError(f"memory={size!r}: a size like '64MB'")


def policy_of(memory: object, recover: object) -> Policy:
    wish = wish_of(str(recover)) if recover is not None else Wish()
    if wish is None:
        raise ValueError(f"recover={recover!r}: use one of {', '.join(WISHES)}")
    return Policy(wish, None if memory is None else bytes_of(str(memory)))
