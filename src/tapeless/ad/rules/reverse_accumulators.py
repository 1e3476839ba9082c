"""Reverse mode of accumulators: what an update adds gets the adjoint of the cell that it went into."""

from __future__ import annotations

from tapeless.ad.reverse import Back, Reverse, adjoint_of
from tapeless.ir.core import Body, Lambda, Stm, UpdateAcc, WithAcc
from tapeless.ir.quiet import unchecked
from tapeless.ir.types import Atom, Var
from tapeless.ir.walk import map_exp


@adjoint_of(WithAcc)
def vjp_with_acc(reverse: Reverse, stm: Stm, exp: WithAcc) -> Back:
    """The lambda is run again and backwards in this scope; an update reads the adjoint of the array it went into."""
    reverse.put(stm)
    count = len(exp.arrays)
    if not any(reverse.active(v) for v in stm.vars):
        return lambda: None

    def back() -> None:
        adjs = [reverse.adjoints.take(v) for v in stm.vars]
        lam = reverse.fresh(exp.lam)
        for p, adj in zip(lam.params, adjs, strict=False):
            if adj is not None and p.type.acc not in ("add", "set"):
                raise NotImplementedError(f"the adjoint of accumulating by {p.type.acc}")
            reverse.sums[p] = adj
        backs = reverse.forward(Body(lam.body.stms, ()))
        for r, adj in zip(lam.body.results, adjs[count:], strict=True):
            reverse.add(r, adj)
        reverse.backward(backs)
        for a, p, adj in zip(exp.arrays, lam.params, adjs, strict=False):
            if adj is None:
                continue
            if p.type.acc == "set" and reverse.active(a):
                adj = _unwritten(reverse, exp, exp.lam.params[exp.arrays.index(a)], _array(adj))
            reverse.add(a, adj)

    return back


def _unwritten(reverse: Reverse, exp: WithAcc, acc: Var, adj: Var) -> Var:
    """The adjoint with zeros where cells were set: the same updates again, of zeros."""
    lam = reverse.fresh(Lambda(exp.lam.params, exp.lam.body))
    mine = lam.params[exp.lam.params.index(acc)]

    def zeroed(body: Body) -> Body:
        stms: list[Stm] = []
        for s in body.stms:
            if isinstance(s.exp, UpdateAcc):
                if s.exp.acc is not mine:
                    continue
                stms.extend(_zero_update(reverse, s, s.exp))
            else:
                new = map_exp(s.exp, lambda a: a, zeroed, lambda inner: Lambda(inner.params, zeroed(inner.body)))
                stms.append(Stm(s.vars, new, s.span))
        return Body(tuple(stms), body.results)

    body = zeroed(lam.body)
    end = Var(f"{adj.name}", adj.type)
    return reverse.b.bind([end], WithAcc((adj,), Lambda((mine,), Body(body.stms, ())), slopes=True))[0]


def _zero_update(reverse: Reverse, stm: Stm, exp: UpdateAcc) -> list[Stm]:
    with reverse.b.region() as stms:
        zero = reverse.emit.zero(exp.value.type)
        reverse.b.effect(UpdateAcc(exp.acc, exp.axes, zero))
    return stms


@adjoint_of(UpdateAcc)
def vjp_update_acc(reverse: Reverse, stm: Stm, exp: UpdateAcc) -> Back:
    reverse.put(stm)
    return lambda: _read_back(reverse, exp)


def _read_back(reverse: Reverse, exp: UpdateAcc) -> None:
    adj = reverse.sums.get(exp.acc)
    if adj is None or not reverse.active(exp.value):
        return
    part: Atom = reverse.b.index(_array(adj), unchecked(exp.axes))
    if part.type.shape and not exp.value.type.shape:
        part = reverse.emit.sum_over(_array(part), tuple(range(part.type.rank)))
    reverse.add(exp.value, part)


def _array(a: Atom) -> Var:
    assert isinstance(a, Var)
    return a
