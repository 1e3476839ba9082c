"""What a function is made of: the classes of its expressions, the names of its operations, and whether it tests positions.

Takes a body; gives one set for it and all regions in it. Most programs hold few kinds of things, so a pass that is
about others need not walk them: `Pass.about` in `passes/pipeline.py`.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, At, Axis, Body, Index, Update, UpdateAcc
from tapeless.ir.operands import REGIONS

TESTS = "tests"  # an axis that wraps or tests its position; no operation is called so
Kind = type | str


def contents(body: Body) -> set[Kind]:
    found: set[Kind] = set()
    left = [body]
    while left:
        for stm in left.pop().stms:
            exp = stm.exp
            if isinstance(exp, Apply):
                found.add(exp.op)
                continue
            found.add(type(exp))
            if (regions := REGIONS.get(type(exp))) is not None:
                left.extend([r.body for r in regions(exp)])
            elif TESTS not in found and isinstance(exp, (Index, Update, UpdateAcc)) and any(map(_is_tested, exp.axes)):
                found.add(TESTS)
    return found


def _is_tested(axis: Axis) -> bool:
    return isinstance(axis, At) and (axis.wrap or axis.check)
