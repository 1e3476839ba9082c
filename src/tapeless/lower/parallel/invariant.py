"""What all elements of a sweep would make alike is made once per chunk.

Takes the lambda of a sweep; gives the statements to run first and the lambda without them.

Note [Once per chunk]
An array that does not depend on the element is made before the loop over the elements. The optimiser has left it in the
lambda where the sweep may have no elements (Note [What may run unasked] in `passes/tidy/hoist.py`); a chunk knows
whether it has some. Each thread makes its own: nobody waits for another one, and the array comes from the thread's own
cache. Arrays that are written or handed on are made anew for each element, and what follows a test stays behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tapeless.ir.core import Apply, Body, Broadcast, Copy, Full, Index, Iota, Lambda, Reshape, Stm, Sweep, Transpose
from tapeless.ir.effects import effects_in
from tapeless.ir.operands import operands
from tapeless.ir.types import Var
from tapeless.ir.walk import free_in_exp, type_vars
from tapeless.passes.analysis.facts import Taken

MADE = (Sweep, Copy)  # what is worth it
MOVED = (Apply, Broadcast, Copy, Full, Index, Iota, Reshape, Sweep, Transpose)


def once_per_chunk(lam: Lambda) -> tuple[list[Stm], Lambda]:
    """Note [Once per chunk]."""
    if not _may_have_some(lam):
        return [], lam
    first: list[Stm] = []
    rest: list[Stm] = []
    own = set(lam.params)
    taken = Taken()
    taken.mark(lam.body.results)
    taken.body(lam.body)
    tested = False
    for s in lam.body.stms:
        tested = tested or any(effects_in([s]))
        stays = tested or not isinstance(s.exp, MOVED) or any(v in own for v in _used(s))
        if stays or any(v in taken.vars for v in s.vars):
            rest.append(s)
            own.update(s.vars)
        else:
            first.append(s)
    if not any(isinstance(s.exp, MADE) for s in first):
        return [], lam
    return first, Lambda(lam.params, Body(tuple(rest), lam.body.results))


def _may_have_some(lam: Lambda) -> bool:
    """A quick look: most lambdas have none."""
    if not any(isinstance(s.exp, MADE) for s in lam.body.stms):
        return False
    own = set(lam.params)
    for s in lam.body.stms:
        if isinstance(s.exp, MOVED) and not any(v in own for v in _used(s)):
            if isinstance(s.exp, MADE):
                return True
        else:
            own.update(s.vars)
    return False


def _used(stm: Stm) -> Iterator[Var]:
    if isinstance(stm.exp, Sweep):
        yield from free_in_exp(stm.exp)
    else:
        yield from (a for a in operands(stm.exp) if isinstance(a, Var))
    for v in stm.vars:
        yield from type_vars(v.type)
