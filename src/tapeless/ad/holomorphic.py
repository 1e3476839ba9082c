"""Whether a region is differentiable in the complex sense, so that one complex number is its derivative.

Takes a body with the variables that vary; gives the operation that is not, or nothing: one that conjugates, or that
gives real numbers of complex ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ad.activity import useful, varied
from tapeless.ir.core import Apply, Body
from tapeless.ir.operands import regions
from tapeless.ir.span import Span
from tapeless.ir.types import Var
from tapeless.ir.walk import free_in_exp


def conjugates(body: Body, wrt: Sequence[Var], outs: int) -> tuple[str, Span] | None:
    """The first operation between `wrt` and the first `outs` results that is not holomorphic."""
    active = varied(body, wrt) & useful(body, body.results[:outs])
    return _first(body, active)


def _first(body: Body, active: set[Var]) -> tuple[str, Span] | None:
    for s in body.stms:
        for r in regions(s.exp):
            found = _first(r.body, active)
            if found is not None:
                return found
        if regions(s.exp) or not any(v in active for v in s.vars):
            continue
        taken = [v for v in free_in_exp(s.exp) if v in active and v.type.dtype.is_complex]
        real = any(v in active and not v.type.dtype.is_complex for v in s.vars)
        name = s.exp.op if isinstance(s.exp, Apply) else type(s.exp).__name__.lower()
        if taken and (real or name == "conj"):
            return name, s.span
    return None
