"""Sweeps over one number with loops inside: forward mode within the backward pass.

Note [One number]
A lambda whose results are scalars and depend on one active scalar has one slope per result. Run together with its
tangent it gives them at once: one run with twice the work, nothing kept. Where there are loops in it, which a sweep
runs again for each element in the backward pass, that beats any recovery.
"""

from __future__ import annotations

from tapeless.ad.forward import jvp_body
from tapeless.ad.reverse import Back, Reverse
from tapeless.ir.core import Body, For, Stm, While
from tapeless.ir.hints import How
from tapeless.ir.types import Var, one_of
from tapeless.ir.walk import all_stms, free_in_body


def forwards(reverse: Reverse, body: Body) -> list[tuple[Stm, Back]]:
    """Like `Reverse.forward`, for the lambda of a sweep."""
    x = _only_input(reverse, body)
    if x is None:
        return reverse.forward(body)
    _, slopes = jvp_body(reverse.b, body, {x: one_of(x.type.dtype)}, ())

    def back() -> None:
        for r, slope in dict(zip(body.results, slopes, strict=True)).items():
            if isinstance(r, Var) and r is not x and slope is not None:
                adj = reverse.adjoints.take(r)
                if adj is not None:
                    reverse.add(x, reverse.emit.slope_times(slope, adj, True))

    return [(body.stms[-1], back)]


def _only_input(reverse: Reverse, body: Body) -> Var | None:
    """The number that the lambda depends on, when it is one: Note [One number]."""
    loops = [s.exp for s in all_stms(body) if isinstance(s.exp, (For, While)) and any(map(reverse.active, s.vars))]
    if (
        not loops
        or any(reverse.scope.policy.wish(loop.hints).kind != How.auto for loop in loops)
        or reverse.accumulates(body)
    ):
        return None
    inputs = [v for v in free_in_body(body) if reverse.active(v)]
    results = [r for r in body.results if reverse.active(r)]
    if len(inputs) != 1 or any(v.type.shape or not v.type.dtype.is_float for v in (*inputs, *results)):
        return None
    return inputs[0]
