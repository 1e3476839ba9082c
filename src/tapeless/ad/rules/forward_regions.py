"""Forward mode of branches, loops, sweeps, histograms and accumulators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tapeless.ad.forward import Forward, tangent_of
from tapeless.ad.reductions import EXTREMA, is_infinite, is_product, is_sum, single_row
from tapeless.ir.core import (
    At,
    Body,
    For,
    Hist,
    If,
    Index,
    Lambda,
    Print,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.types import Atom, Var, dim_atom, i64
from tapeless.ir.walk import Substitution, all_stms
from tapeless.ops.emit import differentiable, whole

Twins = dict[Var, Var]


def _chosen(vars: Iterable[Atom], wanted: Sequence[bool]) -> list[Atom]:
    return [v for v, w in zip(vars, wanted, strict=True) if w]


def _twins(forward: Forward, params: Sequence[Var], wanted: Sequence[bool]) -> Twins:
    return {p: forward.twin(p) for p, w in zip(params, wanted, strict=True) if w}


def _with_tangents(forward: Forward, body: Body, twins: Twins, wanted: Sequence[bool], guarded: bool = False) -> Body:
    """The body, with the tangents of its wanted results as further results."""
    inner = forward.inside(twins)
    inner.guarded = guarded
    with forward.b.region() as stms:
        inner.run(body)
        more = [inner.full_tangent(r) for r in _chosen(body.results, wanted)]
    return Body(tuple(stms), (*body.results, *more))


def _bind(forward: Forward, vars: Sequence[Var], wanted: Sequence[bool]) -> list[Var]:
    """Variables for the tangents of the wanted ones."""
    twins = _twins(forward, vars, wanted)
    for v, t in twins.items():
        forward.set(v, t)
    return list(twins.values())


@tangent_of(If)
def jvp_if(forward: Forward, stm: Stm, exp: If) -> None:
    wanted = forward.wanted(stm.vars)
    then, orelse = (_with_tangents(forward, arm, {}, wanted) for arm in (exp.then, exp.orelse))
    forward.b.bind((*stm.vars, *_bind(forward, stm.vars, wanted)), If(exp.cond, then, orelse))


@tangent_of(For, While)
def jvp_loop(forward: Forward, stm: Stm, exp: For | While) -> None:
    wanted = forward.wanted(exp.params)
    twins = _twins(forward, exp.params, wanted)
    starts = [forward.full_tangent(a) for a in _chosen(exp.inits, wanted)]
    body = _with_tangents(forward, exp.body, twins, wanted)
    new = replace(exp, params=(*exp.params, *twins.values()), inits=(*exp.inits, *starts), body=body)
    forward.b.bind((*stm.vars, *_bind(forward, stm.vars, wanted)), new)


# -- sweeps


def _starts(forward: Forward, reduction: Reduction, wanted: Sequence[bool]) -> list[Atom]:
    """The tangents of the neutral elements, made where these are: outside of the sweep."""
    return [forward.full_tangent(n) for n in _chosen(reduction.neutral, wanted)]


def _pairs(forward: Forward, reduction: Reduction, wanted: Sequence[bool], starts: Sequence[Atom]) -> Reduction:
    """The operator on values and tangents: (left, left tangents, right, right tangents)."""
    k = len(reduction.neutral)
    op = reduction.op
    left, right = _twins(forward, op.params[:k], wanted), _twins(forward, op.params[k:], wanted)
    body = _with_tangents(forward, op.body, {**left, **right}, wanted, is_product(reduction))
    params = (*op.params[:k], *left.values(), *op.params[k:], *right.values())
    return Reduction(Lambda(params, body), (*reduction.neutral, *starts), reduction.commutative)


def _rows(forward: Forward, lam: Lambda, arrays: Sequence[Var]) -> tuple[Twins, tuple[Var, ...]]:
    """Twins of the rows that vary, and the tangents that they are rows of."""
    moving = [forward.tangent(a) is not None for a in arrays]
    twins = _twins(forward, lam.params[1:], moving)
    return twins, tuple(forward.array_tangent(a) for a in _chosen(arrays, moving))


class _Groups:
    """The results of a new sweep: operands of one operator after the other."""

    def __init__(self) -> None:
        self.operators: list[Reduction] = []
        self.operands: list[Atom] = []
        self.vars: list[Var] = []

    def put(self, operator: Reduction, operands: Sequence[Atom], vars: Sequence[Var]) -> None:
        self.operators.append(operator)
        self.operands.extend(operands)
        self.vars.extend(vars)


@tangent_of(Sweep)
def jvp_sweep(forward: Forward, stm: Stm, exp: Sweep) -> None:
    twins, tangents = _rows(forward, exp.lam, exp.arrays)
    inner = forward.inside(twins)
    groups = {"reduce": _Groups(), "scan": _Groups()}
    operators = [*(("reduce", r) for r in exp.reduces), *(("scan", s) for s in exp.scans)]
    sums: dict[Var, Reduction] = {}
    at = 0
    starts: list[list[Atom]] = []
    for _, operator in operators:
        vars = stm.vars[at : at + len(operator.neutral)]
        wanted = forward.wanted(vars)
        starts.append(_starts(forward, operator, wanted))
        if is_sum(operator) and any(wanted):
            sums[vars[0]] = forward.emit.sum_of(forward.lifted(operator.neutral[0].type))
        at += len(operator.neutral)
    with forward.b.region() as stms:
        inner.run(exp.lam.body)
        at = 0
        for (kind, operator), start in zip(operators, starts, strict=True):
            k = len(operator.neutral)
            vars, operands = stm.vars[at : at + k], exp.lam.body.results[at : at + k]
            wanted = forward.wanted(vars)
            more = [inner.full_tangent(o) for o in _chosen(operands, wanted)]
            if is_sum(operator) and any(wanted):  # the sum of the tangents is a sum of its own
                groups[kind].put(operator, operands, vars)
                groups[kind].put(sums[vars[0]], more, _bind(forward, vars, wanted))
            else:
                paired = _pairs(forward, operator, wanted, start) if any(wanted) else operator
                groups[kind].put(paired, [*operands, *more], [*vars, *_bind(forward, vars, wanted)])
            at += k
        mapped, vars = exp.lam.body.results[at:], stm.vars[at:]
        wanted = forward.wanted(vars)
        more = [inner.full_tangent(r) for r in _chosen(mapped, wanted)]
        results = (*groups["reduce"].operands, *groups["scan"].operands, *mapped, *more)
    bound = [*groups["reduce"].vars, *groups["scan"].vars, *vars, *_bind(forward, vars, wanted)]
    lam = Lambda((*exp.lam.params, *twins.values()), Body(tuple(stms), results))
    reduces, scans = tuple(groups["reduce"].operators), tuple(groups["scan"].operators)
    forward.b.bind(bound, Sweep(exp.width, (*exp.arrays, *tangents), lam, reduces, scans))
    for k, operator in enumerate(exp.reduces):
        _first_of_neutral(forward, stm, exp, k, operator)


def _first_of_neutral(forward: Forward, stm: Stm, exp: Sweep, k: int, operator: Reduction) -> None:
    """Where no element beats the start value of an extremum, the first one is it, as it is in reverse mode."""
    b, emit, start = forward.b, forward.emit, operator.neutral[0]
    simple = all(single_row(r) for r in exp.reduces)  # one result for each
    if (
        not simple
        or single_row(operator) not in EXTREMA
        or not is_infinite(start)
        or forward.tangent(stm.vars[k]) is None
    ):
        return
    if any(isinstance(s.exp, (UpdateAcc, Print)) for s in all_stms(exp.lam.body)):
        return
    names = Substitution({exp.lam.params[0]: i64(0)}, refresh=True)
    with b.region() as stms:
        inner = forward.inside({})
        rows = [
            Stm((p,), Index(a, (At(i64(0)), *whole(p.type))), stm.span)
            for p, a in zip(exp.lam.params[1:], exp.arrays, strict=True)
        ]
        body = names.body(Body((*rows, *exp.lam.body.stms), (exp.lam.body.results[k],)))
        forward.varied.update(n for v, n in names.map.items() if v in forward.varied and isinstance(n, Var))
        inner.run(body)
        first = inner.full_tangent(body.results[0])
    usual = forward.full_tangent(stm.vars[k])
    neutral = emit("and", emit("eq", stm.vars[k], start), emit("gt", dim_atom(exp.width), 0))
    chosen = If(neutral, Body(tuple(stms), (first,)), Body((), (usual,)))
    forward.set(stm.vars[k], b.let(usual.type, chosen, f"{stm.vars[k].name}_t"))


# -- histograms, scatters, accumulators


def _keyed(
    forward: Forward, exp: Hist | Scatter, wanted: Sequence[bool]
) -> tuple[tuple[Var, ...], tuple[Var, ...], Lambda]:
    """Destinations, arrays and lambda, each with what belongs to the tangents."""
    twins, tangents = _rows(forward, exp.lam, exp.arrays)
    values = [False, *wanted]  # the key has none
    body = _with_tangents(forward, exp.lam.body, twins, values)
    starts = tuple(forward.array_tangent(d) for d in _chosen(exp.dests, wanted))
    return (*exp.dests, *starts), (*exp.arrays, *tangents), Lambda((*exp.lam.params, *twins.values()), body)


@tangent_of(Hist)
def jvp_hist(forward: Forward, stm: Stm, exp: Hist) -> None:
    wanted = forward.wanted(stm.vars)
    if not any(wanted):
        forward.b.add(stm)
        return
    dests, arrays, lam = _keyed(forward, exp, wanted)
    operator = _pairs(forward, exp.op, wanted, _starts(forward, exp.op, wanted))
    forward.b.bind((*stm.vars, *_bind(forward, stm.vars, wanted)), Hist(operator, dests, exp.width, arrays, lam))


@tangent_of(Scatter)
def jvp_scatter(forward: Forward, stm: Stm, exp: Scatter) -> None:
    wanted = forward.wanted(stm.vars)
    dests, arrays, lam = _keyed(forward, exp, wanted)
    forward.b.bind((*stm.vars, *_bind(forward, stm.vars, wanted)), Scatter(dests, exp.width, arrays, lam))


@tangent_of(WithAcc)
def jvp_with_acc(forward: Forward, stm: Stm, exp: WithAcc) -> None:
    """A second accumulator for the tangents of each that anything varying is put into."""
    count = len(exp.arrays)
    arrays, others = stm.vars[:count], stm.vars[count:]
    wanted = [v in forward.varied and differentiable(v.type) for v in arrays]
    for p in _chosen(exp.lam.params, wanted):
        if p.type.acc not in ("add", "set"):
            raise NotImplementedError(f"the derivative of accumulating by {p.type.acc}")
    accs = _twins(forward, exp.lam.params, wanted)
    results = forward.wanted(others)
    body = _with_tangents(forward, exp.lam.body, accs, results)
    starts = tuple(forward.array_tangent(a) for a in _chosen(exp.arrays, wanted))
    vars = (*arrays, *_bind(forward, arrays, wanted), *others, *_bind(forward, others, results))
    lam = Lambda((*exp.lam.params, *accs.values()), body)
    forward.b.bind(vars, WithAcc((*exp.arrays, *starts), lam, exp.slopes))
