"""What fusion compares sweeps by: their widths, and the work that they do."""

from __future__ import annotations

from collections import Counter

from tapeless.ir.core import Apply, Exp, Sweep, WithAcc
from tapeless.ir.types import Dim
from tapeless.ir.walk import all_stms
from tapeless.ops.table import TABLE

COPIED = 2  # operations of a lambda that is rather copied than kept in memory


def same(a: Dim, b: Dim) -> bool:
    return a is b or (isinstance(a, int) and a == b)


def are_alike(a: Exp, b: Exp) -> bool:
    """Sweeps of one width, with scans or without: the lambda of a scan may run twice, so others stay out of it."""
    return isinstance(a, Sweep) and isinstance(b, Sweep) and same(a.width, b.width) and bool(a.scans) == bool(b.scans)


def is_cheap(sweep: Sweep) -> bool:
    """May its lambda run again rather than its results be kept?"""
    stms = sweep.lam.body.stms
    if len(stms) > COPIED or sweep.reduces or sweep.scans:
        return False
    return sum(TABLE[s.exp.op].cost if isinstance(s.exp, Apply) else COPIED + 1 for s in stms) <= COPIED


def works_again(sweep: Exp, exp: WithAcc) -> bool:
    """Does a sweep of the same width in the lambda do all the costly operations of this one, too?"""
    assert isinstance(sweep, Sweep)
    for s in exp.lam.body.stms:
        if are_alike(sweep, s.exp) and isinstance(s.exp, Sweep) and costly(sweep) <= costly(s.exp):
            return True
    return False


def costly(sweep: Sweep) -> Counter[str]:
    """How often a sweep has each of the operations that take long."""
    found = [s.exp.op for s in all_stms(sweep.lam.body) if isinstance(s.exp, Apply)]
    return Counter(op for op in found if TABLE[op].cost > COPIED)
