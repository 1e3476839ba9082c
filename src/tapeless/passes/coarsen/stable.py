"""Logarithms of sums of exponentials in the form that does not overflow: log(1 + exp(t)) is logaddexp(0, t).

Takes and gives a verified function, which is to be differentiated: the row has a slope that is right far out, where that
of the parts would be 0 times infinity. It takes little longer than a logarithm and an exponential. Only where nobody else
uses the exponentials, so that nothing is computed twice, and where nothing is decided by the value, which may round
otherwise.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, Body, Exp, Function, Stm
from tapeless.ir.types import Atom, Const, Var, const
from tapeless.ir.walk import in_regions, map_function, with_stms
from tapeless.passes.analysis.facts import used_once
from tapeless.passes.coarsen.decisions import deciding


def stable_logs(function: Function) -> Function:
    decided = deciding(function.body)
    return map_function(function, lambda body: _body(body, decided))


def _body(body: Body, decided: set[Var]) -> Body:
    once = used_once(body) if any(_is_log(s) for s in body.stms) else frozenset()
    defs: dict[Var, Exp] = {}  # of what has no other use
    stms: list[Stm] = []
    for stm in body.stms:
        new = in_regions(stm, lambda inner: _body(inner, decided))
        if _is_log(stm) and stm.vars[0] not in decided:
            made = _made_of(stm.exp, defs)  # type: ignore[arg-type]
            new = stm if made is None else Stm(stm.vars, made, stm.span)
        if isinstance(stm.exp, Apply) and stm.vars[0] in once:
            defs[stm.vars[0]] = stm.exp
        stms.append(new)
    return with_stms(body, stms)


def _is_log(stm: Stm) -> bool:
    return isinstance(stm.exp, Apply) and stm.exp.op in ("log", "log1p") and stm.vars[0].type.dtype.is_float


def _made_of(exp: Apply, defs: dict[Var, Exp]) -> Apply | None:
    (sum_,) = exp.args
    if exp.op == "log1p":
        t = _exponent(sum_, defs)
        return None if t is None else Apply("logaddexp", (const(0.0, t.type.dtype), t))
    match defs.get(sum_) if isinstance(sum_, Var) else None:
        case Apply("add", (x, y)):
            s, t = _exponent(x, defs), _exponent(y, defs)
            if s is not None and t is not None:
                return Apply("logaddexp", (s, t))
    return None


def _exponent(a: Atom, defs: dict[Var, Exp]) -> Atom | None:
    """What the exponential of is the atom: 0 for 1."""
    if isinstance(a, Const):
        return const(0.0, a.dtype) if a.value == 1 else None
    match defs.get(a):
        case Apply("exp", (t,)):
            return t
    return None
