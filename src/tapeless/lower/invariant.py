"""What all elements of a sweep would make alike is made once a chunk.

Takes the lambda of a sweep; gives the statements to run first and the lambda without them.

Note [Once a chunk]
An array that does not depend on the element is made before the loop over the elements. The optimiser has left it in
the lambda where the sweep may have no elements (Note [What may run unasked] in `passes/hoist.py`); a chunk knows whether
it has some. Each thread makes its own: nobody waits for another one, and the array comes from the thread's own cache.
Arrays that are written or handed on are made anew for each element, and what follows a test stays behind it.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Broadcast, Copy, Full, Index, Iota, Lambda, Reshape, Stm, Sweep, Transpose
from tapeless.ir.walk import all_stms, free_in_exp, type_vars
from tapeless.passes.facts import Taken, is_effect

MADE = (Sweep, Copy)  # what is worth it
MOVED = (Apply, Broadcast, Copy, Full, Index, Iota, Reshape, Sweep, Transpose)


def once_a_chunk(lam: Lambda) -> tuple[list[Stm], Lambda]:
    """Note [Once a chunk]."""
    if not any(isinstance(s.exp, MADE) for s in lam.body.stms[:-1]):
        return [], lam
    first: list[Stm] = []
    rest: list[Stm] = []
    own = set(lam.params)
    taken = Taken()
    taken.mark(lam.body.results)
    taken.body(lam.body)
    tested = False
    for s in lam.body.stms:
        tested = tested or any(is_effect(inner.exp) for inner in all_stms(Body((s,), ())))
        used = [*free_in_exp(s.exp), *(d for v in s.vars for d in type_vars(v.type))]
        stays = tested or not isinstance(s.exp, MOVED) or any(v in own for v in used)
        if stays or any(v in taken.vars for v in s.vars):
            rest.append(s)
            own.update(s.vars)
        else:
            first.append(s)
    if not any(isinstance(s.exp, MADE) for s in first):
        return [], lam
    return first, Lambda(lam.params, Body(tuple(rest), lam.body.results))
