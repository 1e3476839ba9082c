"""What a user says about recoveries: `recover=` and `memory=` of a transform, `recover=` of a loop.

Gives `Policy`, which goes along with a derivative, and `NoRecovery`, raised where it cannot be had;
`NoDerivative`, where there is no derivative.
"""

from __future__ import annotations

from dataclasses import dataclass

from tapeless.ir.hints import Hints, Recovery, unknown, wish_of
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import Var

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
PLENTY = 2**56  # bytes: nobody has more, and sums of several such sizes are still numbers of 64 bits
BINARY = {f"{k[0]}IB": 1 << 10 * n for n, k in enumerate(UNITS) if n}


class NoRecovery(Exception):
    """A recovery that does not apply: the reason in the user's words, and the loop."""

    def __init__(self, reason: str, span: Span = NOWHERE, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.span, self.hint = reason, span, hint


class NoDerivative(Exception):
    """What has none stands in the way of one."""

    def __init__(self, reason: str, span: Span, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.span, self.hint = reason, span, hint


AS_IT_COMES = Recovery()


@dataclass(frozen=True)
class Policy:
    """`memory` in bytes is for the whole call. Where a call says what that leaves for loops to keep, it is `room` and
    `more`.
    """

    recover: Recovery = AS_IT_COMES
    memory: int | None = None
    room: Var | None = None
    more: int = 0

    def wish(self, hints: Hints) -> Recovery:
        """For a loop with these hints: its own, or the transform's."""
        return hints.wish or self.recover


DEFAULT = Policy()


def bytes_of(size: str) -> int:
    """'64MB' in bytes, '64MiB' too; at most `PLENTY`."""
    text = size.replace(" ", "").upper()
    for unit, factor in sorted({**BINARY, **UNITS}.items(), key=lambda item: -len(item[0])):
        if text.endswith(unit):
            return int(min(float(text[: -len(unit)]) * factor, PLENTY))
    raise ValueError(f"memory={size!r}: a size like '64MB'")


def policy_of(memory: object, recover: object) -> Policy:
    wish = Recovery() if recover is None else wish_of(recover)
    if wish is None:
        raise ValueError(unknown(recover))
    return Policy(wish, None if memory is None else bytes_of(str(memory)))
