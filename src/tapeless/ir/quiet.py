"""Core that runs a second time, or of which only the results are wanted: without tests and output of the user;
callbacks give what they gave before.

Where it is also what takes the time (`shown`), it still says how far it is: Note [Progress].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.ir.core import Apply, At, Axis, Body, Call, Check, Index, Library, Print, Progress, Stm, Update, UpdateAcc
from tapeless.ir.walk import in_regions, map_regions, with_stms


def unchecked(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The same positions, which the original program has tested already."""
    return tuple(At(a.index, a.wrap) if isinstance(a, At) else a for a in axes)


def quiet(body: Body, shown: bool = False) -> Body:
    return Body(tuple(_quiet(s, shown) for s in body.stms if not _heard(s, shown)), body.results)


def unshown(body: Body) -> Body:
    """For elements that come in no order: nobody says how far they are."""
    stms = tuple(in_regions(s, unshown) for s in body.stms if not isinstance(s.exp, Progress))
    return with_stms(body, stms)


def _heard(stm: Stm, shown: bool) -> bool:
    """Tests of budgets (`ad.recovery.budget`) are not the user's."""
    match stm.exp:
        case Print():
            return True
        case Progress():
            return not shown
        case Check(error=error):
            return error != "RecoveryError"
        case Library(name="callback"):
            return not stm.vars
        case _:
            return False


def _quiet(stm: Stm, shown: bool) -> Stm:
    exp = stm.exp
    match exp:
        case Index(array=array, axes=axes):
            exp = Index(array, unchecked(axes))
        case Update(array=array, axes=axes, value=value):
            exp = Update(array, unchecked(axes), value)
        case UpdateAcc(acc=acc, axes=axes, value=value):
            exp = UpdateAcc(acc, unchecked(axes), value)
        case Call():
            exp = replace(exp, effects=False)
        case Library(name="callback", attrs=attrs):
            exp = replace(exp, attrs=tuple((name, name == "again" or value) for name, value in attrs))
        case Apply():
            pass
        case _:
            exp = map_regions(exp, lambda body: quiet(body, shown))
    return stm if exp is stm.exp else Stm(stm.vars, exp, stm.span)
