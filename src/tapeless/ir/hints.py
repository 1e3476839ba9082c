"""What is known or wished of a loop beside what it computes: `Hints`, which `For` and `While` carry.

Takes what the user wrote (`wish_of`) or Core's text (`read_hints`); `str` gives the text back. The meaning of a program
does not depend on them: interpreters do not look.

    hints    ::= hint, ...
    hint     ::= recovery | parallel | alike                    a wish, and what is known
               | name: recovery                                 what reverse mode chose for a carried value
    recovery ::= store | checkpoint:2 | ...
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from tapeless.ir.text import NAME


class How(StrEnum):
    """How a carried value is there in the backward pass: `ad.recovery.plan`."""

    none = "none"
    live = "live"
    closed = "closed"
    invert = "invert"
    undo = "undo"
    store = "store"
    decisions = "decisions"  # only what comparisons of the value said; may be chosen, not wished for
    auto = "auto"
    recompute = "recompute"
    checkpoint = "checkpoint"
    snapshots = "snapshots"  # in a number of slots: `tp.treeverse`
    keep = "keep"  # like auto, without regard to budgets: for the loops that a plan is made of


WISHES = (How.auto, How.recompute, How.closed, How.invert, How.undo, How.checkpoint, How.store)
WITH_NUMBER = {How.checkpoint: "K", How.invert: "M"}  # the depth of strips; starts afresh every M iterations
MOST = 2**60  # iterations


@dataclass(frozen=True)
class Recovery:
    kind: How = How.auto
    number: int | None = None

    def __str__(self) -> str:
        return self.kind.value if self.number is None else f"{self.kind}:{self.number}"


@dataclass(frozen=True)
class Hints:
    """`wish`: how values shall come back, unless the transform decides. `chosen`: what reverse mode decided, by the
    names of the values, also those that became closed forms and are not carried any more.

    parallel: the user says that its iterations are independent (`tp.prange`).
    few:      it makes few trips: other code is there for many.
    alike:    it shall give the same bits as its other run: no vector forms of library functions.
    """

    wish: Recovery | None = None
    chosen: tuple[tuple[str, Recovery], ...] = ()
    parallel: bool = False
    alike: bool = False
    few: bool = False

    def __str__(self) -> str:
        wish = [str(self.wish)] if self.wish else []
        flags = [name for name in FLAGS if getattr(self, name)]
        return ", ".join([*wish, *flags, *(f"{_name(name)}: {how}" for name, how in self.chosen)])


NONE = Hints()
FLAGS = ("parallel", "alike", "few")
_HINT = re.compile(rf'(?:(?P<name>{NAME}|"(?:[^"\\]|\\.)*"): )?(?P<word>[a-z]+(?::[0-9]+)?)(?:, |$)')


def read_hints(text: str) -> Hints:
    """ValueError for what is no text of hints."""
    wish, chosen, flags, position = None, [], set(), 0
    while position < len(text):
        found = _HINT.match(text, position)
        if found is None:
            raise ValueError(f"cannot read {text[position:]!r} as a hint")
        name, word = found["name"], found["word"]
        if name is not None:
            chosen.append((json.loads(name) if name.startswith('"') else name, _recovery(word)))
        elif word in FLAGS:
            flags.add(word)
        else:
            wish = _recovery(word)
        position = found.end()
    return Hints(wish, tuple(chosen), **dict.fromkeys(flags, True))


def _name(name: str) -> str:
    return name if re.fullmatch(NAME, name) else json.dumps(name)


def _recovery(text: str) -> Recovery:
    kind, colon, number = text.partition(":")
    return Recovery(How(kind), int(number) if colon else None)


def wish_of(text: object) -> Recovery | None:
    """None for what is no wish of a user."""
    kind, colon, number = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind not in WISHES:
        return None
    if not colon:
        return Recovery(How(kind))
    digits = number.lstrip("0")
    good = kind in WITH_NUMBER and number.isascii() and number.isdigit() and digits
    return Recovery(How(kind), min(int(digits[:20]), MOST)) if good else None


def unknown(recover: object) -> str:
    """What to say of a text that is no wish of a user."""
    known = [w for how in WISHES for w in ([how, f"{how}:{WITH_NUMBER[how]}"] if how in WITH_NUMBER else [how])]
    return f"recover={recover!r}: use one of {', '.join(known)} (K and M positive integers)"
