"""Which expressions of Core have effects, and must run even if nobody uses their results.

Note [Effects]
`check`, `print`, `update_acc` and a callback that runs are effects, so is an index or an update that tests its position, since Python raises
IndexError whether or not the element is used, and so is a call of a function with effects. Everything else is there for
its results only. A `while` counts as ending, and a library routine that fails on its operands fails only if its result
is wanted. `progress` is none: Note [Progress].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from tapeless.ir.core import Apply, At, Body, Call, Check, Exp, Index, Library, Print, Progress, Stm, Update, UpdateAcc
from tapeless.ir.walk import all_stms


def is_effect(exp: Exp) -> bool:
    """Must it run even if nobody uses its results? Regions are not looked at. Note [Effects]."""
    if isinstance(exp, Apply):
        return False
    if isinstance(exp, (Index, Update)):
        return any(isinstance(a, At) and a.check for a in exp.axes)
    if isinstance(exp, Library):
        return runs_python(exp)
    return isinstance(exp, (Check, Print, UpdateAcc)) or (isinstance(exp, Call) and exp.effects)


def effects_in(stms: Iterable[Stm]) -> Iterator[Exp]:
    """The effects of statements, those of their regions too."""
    return (s.exp for s in all_stms(Body(tuple(stms), ())) if is_effect(s.exp))


def runs_python(exp: Exp) -> bool:
    """A callback, but for one that asks again for what it gave: Note [Callbacks] in `ops/callbacks.py`."""
    return is_callback(exp) and not exp.attr("again")


def is_callback(exp: Exp) -> TypeGuard[Library]:
    return isinstance(exp, Library) and exp.name == "callback"


def has_effects(body: Body) -> bool:
    """Does a function with this body test or print something, or show how far it is?"""
    return tests_or_prints(body) or any(isinstance(s.exp, Progress) for s in all_stms(body))


def tests_or_prints(body: Body) -> bool:
    return any(not isinstance(e, UpdateAcc) for e in effects_in(body.stms))
