"""Which expressions of Core have effects, and must run even if nobody uses their results.

Note [Effects]
`check`, `print` and `update_acc` are effects, so is an index or an update that tests its position, since Python raises
IndexError whether or not the element is used, and so is a call of a function with effects. Everything else is there for
its results only. A `while` counts as ending, and a library routine that fails on its operands fails only if its result
is wanted. `progress` is none: Note [Progress].
"""

from __future__ import annotations

from tapeless.ir.core import Apply, At, Body, Call, Check, Exp, Index, Print, Progress, Update, UpdateAcc
from tapeless.ir.walk import all_stms


def is_effect(exp: Exp) -> bool:
    """Must it run even if nobody uses its results? Regions are not looked at. Note [Effects]."""
    if isinstance(exp, Apply):
        return False
    if isinstance(exp, (Index, Update)):
        return any(isinstance(a, At) and a.check for a in exp.axes)
    return isinstance(exp, (Check, Print, UpdateAcc)) or (isinstance(exp, Call) and exp.effects)


def has_effects(body: Body) -> bool:
    """Does a function with this body test or print something, or show how far it is?"""
    return tests_or_prints(body) or any(isinstance(s.exp, Progress) for s in all_stms(body))


def tests_or_prints(body: Body) -> bool:
    return any(is_effect(s.exp) and not isinstance(s.exp, UpdateAcc) for s in all_stms(body))
