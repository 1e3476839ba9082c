"""Reverse mode of sweeps, histograms and scatters.

A sweep goes back as a sweep: each element's lambda is run again and backwards, rows of adjoints go in and come out,
adjoints of scalars of outside are summed, those of arrays of outside are accumulated. Sums, products by division
(`ad.rules.reverse_products`) and extrema by the place of the winner have rules of their own; other reductions, scans
and histograms have become sequential loops before (`ad.unfold`).

Note [Results that are there]
A map of costly results (exp, tanh, ...) that was run forwards once has left them in an array. In the backward pass its
elements are taken from there: reading one is cheaper than computing it again. That holds for what a function computes
outside of loops and lambdas, and for the rows of that; what is run again in the backward pass makes no array of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tapeless.ad.bodies import loosened
from tapeless.ad.reductions import is_infinite, is_product, is_sum, single_row
from tapeless.ad.reverse import Back, Reverse, adjoint_of
from tapeless.ad.rules.reverse_products import Others, others_of_hist, others_of_sweep
from tapeless.ad.rules.single import forwards
from tapeless.ir.core import (
    Apply,
    At,
    Body,
    Hist,
    If,
    Index,
    Lambda,
    Range,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    WithRegions,
)
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import I64, Atom, Dim, DType, Type, Var, dim_atom, i64
from tapeless.ops.emit import sum_operator, whole
from tapeless.ops.partials import FIRST_WINS
from tapeless.ops.rows import CALL
from tapeless.ops.table import TABLE

NOTHING: Mapping[int, Var] = {}
Seeds = Callable[["Reverse", Lambda, Sequence[Var]], Sequence[Atom | None]]


def elements_back(
    reverse: Reverse,
    width: Dim,
    arrays: Sequence[Var],
    lam: Lambda,
    adjs: Sequence[Var],
    seeds: Seeds,
    there: Mapping[int, Var] = NOTHING,
) -> None:
    """Runs `lam` again and backwards for each element.

    `adjs` are further arrays to take rows of; `seeds(inner, lam, rows)` gives the adjoints of the lambda's results from
    these. there: arrays of results of the lambda, by their number. Note [Results that are there]
    """
    b = reverse.b
    lam = reverse.fresh(lam)
    lam = Lambda(lam.params, loosened(lam.body))
    free = reverse.free(lam.body, lam.params)
    scalars = [v for v in free if not v.type.shape]
    rows = {p: a for p, a in zip(lam.params[1:], arrays, strict=True) if reverse.active(a)}
    mapped = [p for p, a in rows.items() if a not in reverse.scope.accs and a not in free]
    added = [p for p in rows if p not in mapped]
    through = [v for v in free if v.type.shape] + [rows[p] for p in added if rows[p] not in free]
    before = {p: reverse.adjoints.get(rows[p]) for p in mapped}
    olds = [p for p in mapped if before[p] is not None]
    known = {_array(lam.body.results[k]): Var(a.name, a.type.row()) for k, a in there.items()}

    def run(accs: dict[Var, Var]) -> list[Atom]:
        inner = reverse.inside(accs, swept=True)
        adj_rows = [Var(f"{a.name}", a.type.row()) for a in adjs]
        old_rows = {p: Var(f"{p.name}_adj", p.type) for p in olds}
        with b.region() as stms:
            backs = inner.forward(lam.body, known) if known else forwards(inner, lam.body)
            for r, seed in zip(lam.body.results, seeds(inner, lam, adj_rows), strict=True):
                inner.add(r, seed)
            inner.backward(backs)
            for p in added:
                adj = inner.adjoint(p)
                if adj is not None:
                    axes = (At(lam.params[0]), *whole(p.type))
                    b.effect(UpdateAcc(inner.scope.accs[rows[p]], axes, adj))
            sums = [inner.full_adjoint(v) for v in scalars]
            outs: list[Atom] = []
            for p in mapped:
                grown = inner.full_adjoint(p)
                outs.append(inner.emit.add(old_rows[p], grown) if p in old_rows else grown)
        operators = tuple(sum_operator(v.type.dtype) for v in scalars)
        vars = [Var(f"{v.name}_adj", v.type) for v in scalars]
        vars += [Var(f"{p.name}_adj", Type(p.type.dtype, (width, *p.type.shape))) for p in mapped]
        inputs = (*arrays, *adjs, *(_array(before[p]) for p in olds), *there.values())
        params = (*lam.params, *adj_rows, *old_rows.values(), *known.values())
        new = Sweep(width, inputs, Lambda(params, Body(tuple(stms), (*sums, *outs))), operators)
        return list(b.bind(vars, new))

    given = reverse.with_accumulators(list(dict.fromkeys(through)), run)
    for v, adj in zip(scalars, given, strict=False):
        reverse.add(v, adj)
    for p, adj in zip(mapped, given[len(scalars) :], strict=True):
        reverse.adjoints.put(rows[p], adj)


def _array(a: Atom | None) -> Var:
    assert isinstance(a, Var)
    return a


def _costly(body: Body, result: Atom) -> bool:
    """Whether the result is that of a function call, or an array of such."""
    made = next((s for s in body.stms if s.vars == (result,)), None)
    match made:
        case Stm(_, Apply(op)):
            return TABLE[op].cost >= CALL and result.type.dtype.is_float
        case Stm(_, Sweep(_, _, lam, (), ())):
            return _costly(lam.body, lam.body.results[0])
    return False


# -- sweeps


@adjoint_of(Sweep)
def vjp_sweep(reverse: Reverse, stm: Stm, exp: Sweep) -> Back:
    reverse.put(stm)
    if reverse.scope.once:
        reverse.there.update(stm.vars)
    return lambda: _sweep_back(reverse, stm, exp)


def _sweep_back(reverse: Reverse, stm: Stm, exp: Sweep) -> None:
    reduced = sum(len(r.neutral) for r in exp.reduces)
    scanned = sum(len(r.neutral) for r in exp.scans)
    adjs = [reverse.adjoints.take(v) for v in stm.vars]
    operators = [r for r in (*exp.reduces, *exp.scans) for _ in r.neutral]  # of result k
    constant: dict[int, Atom] = {}  # adjoints that every element gets
    extrema: list[tuple[int, Reduction, Atom]] = []
    products: dict[int, tuple[Atom, Others]] = {}
    rows: dict[int, Var] = {}
    for k, adj in enumerate(adjs):
        if adj is None:
            continue
        if k >= reduced + scanned:
            rows[k] = _array(adj)
        elif k >= reduced:
            rows[k] = _summed_from_the_end(reverse, _array(adj))
        elif is_sum(operators[k]):
            constant[k] = adj
            reverse.add(operators[k].neutral[0], adj)
        elif is_product(operators[k]):
            products[k] = adj, others_of_sweep(reverse, exp, k, stm.vars[k])
        else:
            extrema.append((k, operators[k], adj))
    if constant or products or rows or reverse.accumulates(exp.lam.body):

        def seeds(inner: Reverse, lam: Lambda, given: Sequence[Var]) -> list[Atom | None]:
            found: list[Atom | None] = [None] * len(lam.body.results)
            for k, value in constant.items():
                found[k] = value
            for k, (value, others) in products.items():
                factor = others.of(inner, lam.params[0], stm.vars[k], lam.body.results[k])
                found[k] = inner.emit.slope_times(factor, value, True)
            for k, row in zip(rows, given, strict=True):
                found[k] = row
            return found

        there = {
            k: v
            for k, v in enumerate(stm.vars)
            if k >= reduced + scanned and v in reverse.there and _costly(exp.lam.body, exp.lam.body.results[k])
        }
        elements_back(reverse, exp.width, exp.arrays, exp.lam, list(rows.values()), seeds, there)
    for k, operator, adj in extrema:
        _extremum_back(reverse, exp, k, operator, adj, stm.vars[k])


def _summed_from_the_end(reverse: Reverse, adj: Var) -> Var:
    """For a running sum: what each operand adds to."""
    turned = _turned(reverse, adj)
    item = Type(adj.type.dtype)
    i, e = Var("i", I64), Var("e", item)
    total = Var("sum", adj.type)
    lam = Lambda((i, e), Body((), (e,)))
    reverse.b.bind([total], Sweep(adj.type.shape[0], (turned,), lam, (), (sum_operator(item.dtype),)))
    return _turned(reverse, total)


def _turned(reverse: Reverse, array: Var) -> Var:
    """The first axis backwards."""
    length = array.type.shape[0]
    last = reverse.emit("sub", dim_atom(length), 1)
    return reverse.b.index(array, [Range(last, length, i64(-1)), *whole(array.type.row())])


def _extremum_back(reverse: Reverse, exp: Sweep, k: int, operator: Reduction, adj: Atom, result: Var) -> None:
    """The first of the winning elements gets the adjoint, and only that one is run backwards."""
    b, emit = reverse.b, reverse.emit
    where = _winner(reverse, exp, k, operator, result)
    lam = reverse.fresh(Lambda(exp.lam.params, reverse.without_updates(exp.lam.body)))
    rows = dict(zip(lam.params[1:], exp.arrays, strict=True))
    free = reverse.free(lam.body, lam.params)
    scalars = [v for v in free if not v.type.shape]
    arrays = [v for v in free if v.type.shape] + [a for a in exp.arrays if reverse.active(a)]
    neutral = operator.neutral[0]

    def run(accs: dict[Var, Var]) -> list[Atom]:
        inner = reverse.inside(accs, swept=True)
        with b.region() as stms:
            inner_rows = []
            for p, a in rows.items():
                axes = (At(where), *whole(p.type))
                b.bind([p], Index(a, axes))
                inner_rows.append((p, a, axes))
            b.bind([lam.params[0]], Apply("identity", (where,)))
            backs = forwards(inner, lam.body)
            inner.add(lam.body.results[k], adj)
            inner.backward(backs)
            for p, a, axes in inner_rows:
                row = inner.adjoint(p)
                if row is not None:
                    inner.add_at(a, axes, row)
            results = [inner.full_adjoint(v) for v in scalars]
        zeros = [emit.zero(v.type) for v in scalars]
        found = emit("ge", where, 0)
        vars = [Var(f"{v.name}_adj", v.type) for v in scalars]
        return list(b.bind(vars, If(found, Body(tuple(stms), tuple(results)), Body((), tuple(zeros)))))

    given = reverse.with_accumulators(list(dict.fromkeys(arrays)), run)
    for v, value in zip(scalars, given, strict=True):
        reverse.add(v, value)
    if reverse.active(neutral):
        reverse.add(neutral, emit("select", emit("lt", where, 0), adj, emit.zero(adj.type)))


def _winner(reverse: Reverse, exp: Sweep, k: int, operator: Reduction, result: Var) -> Var:
    """The place of the element that the extremum is, -1 when there is none or it is the start value.

    That is the first one equal to the result. Where the operand is computed again it may differ in its last bits; then
    the operator is run again, on places too. So it is at once where an operand is much work: the result itself may not
    be needed, and then each operand is computed once.
    """
    b, emit = reverse.b, reverse.emit
    start = operator.neutral[0]
    never_wins = is_infinite(start)
    if never_wins and any(isinstance(s.exp, WithRegions) for s in exp.lam.body.stms):
        return _place_by_operator(reverse, exp, k, operator)
    lam = reverse.fresh(Lambda(exp.lam.params, reverse.without_updates(exp.lam.body)))
    beyond = dim_atom(exp.width)
    with b.region() as stms:
        for s in lam.body.stms:
            b.add(s)
        operand = lam.body.results[k]
        same = emit("eq", operand, result)
        if result.type.dtype.is_float:
            same = emit("or", same, emit("and", emit("isnan", operand), emit("isnan", result)))
        place = emit("select", same, lam.params[0], beyond)
    first = Var("first", I64)
    smallest = _row_operator("min", i64(2**63 - 1))
    b.bind([first], Sweep(exp.width, exp.arrays, Lambda(lam.params, Body(tuple(stms), (place,))), (smallest,)))
    found = emit("lt", first, beyond)
    with b.region() as other:
        slow = _place_by_operator(reverse, exp, k, operator)
    where = b.bind([Var("where", I64)], If(found, Body((), (first,)), Body(tuple(other), (slow,))))[0]
    if never_wins:
        return where
    return _array(emit("select", emit("eq", result, start), i64(-1), where))


def _row_operator(name: str, neutral: Atom) -> Reduction:
    left, right, both = (Var(n, neutral.type) for n in ("x", "y", "t"))
    stm = Stm((both,), Apply(name, (left, right)), NOWHERE)
    return Reduction(Lambda((left, right), Body((stm,), (both,))), (neutral,), commutative=True)


def _place_by_operator(reverse: Reverse, exp: Sweep, k: int, operator: Reduction) -> Var:
    b, emit = reverse.b, reverse.emit
    lam = reverse.fresh(Lambda(exp.lam.params, reverse.without_updates(exp.lam.body)))
    item = operator.neutral[0].type
    a, i, c, j = Var("a", item), Var("i", I64), Var("c", item), Var("j", I64)
    with b.region() as stms:
        first = FIRST_WINS[single_row(operator)](emit, a, c)
        keep = emit("or", emit("and", emit("ge", i, 0), first), emit("lt", j, 0))
        value, place = emit("select", keep, a, c), emit("select", keep, i, j)
    op = Reduction(Lambda((a, i, c, j), Body(tuple(stms), (value, place))), (operator.neutral[0], i64(-1)))
    best, where = Var("best", item), Var("where", I64)
    body = Body(lam.body.stms, (lam.body.results[k], lam.params[0]))
    b.bind([best, where], Sweep(exp.width, exp.arrays, Lambda(lam.params, body), (op,)))
    return where


# -- histograms and scatters


def _inside(reverse: Reverse, key: Atom, size: Dim) -> Atom:
    emit = reverse.emit
    return emit("and", emit("ge", key, 0), emit("lt", key, dim_atom(size)))


def _taken(reverse: Reverse, array: Var, key: Atom, found: Atom) -> Atom:
    """array[key] where the key was found to be inside, else 0."""
    b = reverse.b
    item = array.type.row()
    with b.region() as stms:
        e = b.index(array, [At(key), *whole(item)])
    with b.region() as other:
        zero = reverse.emit.zero(item)
    return b.bind([Var("e", item)], If(found, Body(tuple(stms), (e,)), Body(tuple(other), (zero,))))[0]


@adjoint_of(Hist)
def vjp_hist(reverse: Reverse, stm: Stm, exp: Hist) -> Back:
    reverse.put(stm)

    def back() -> None:
        adj = reverse.adjoints.take(stm.vars[0])
        if adj is None:
            return
        array = _array(adj)
        others = None if is_sum(exp.op) else others_of_hist(reverse, exp, stm.vars[0])

        def seeds(inner: Reverse, lam: Lambda, given: Sequence[Var]) -> list[Atom | None]:
            key, operand = lam.body.results
            found = _inside(inner, key, array.type.shape[0])
            value = _taken(inner, array, key, found)
            if others is not None:
                product = _taken(inner, stm.vars[0], key, found)
                factor = others.of(inner, lam.params[0], product, operand)
                value = inner.emit.slope_times(factor, value, True)
            return [None, value]

        elements_back(reverse, exp.width, exp.arrays, exp.lam, [], seeds)
        if others is None:
            reverse.add(exp.dests[0], array)

    return back


@adjoint_of(Scatter)
def vjp_scatter(reverse: Reverse, stm: Stm, exp: Scatter) -> Back:
    """Of several elements with one place the last one is there: it has the adjoint."""
    reverse.put(stm)
    b, emit = reverse.b, reverse.emit

    def back() -> None:
        adjs = [reverse.adjoints.take(v) for v in stm.vars]
        if all(adj is None for adj in adjs):
            return
        size = exp.dests[0].type.shape[0]
        writers = b.full((size,), i64(-1), DType.i64, "writer")
        again = reverse.fresh(exp.lam)
        last = b.bind(
            [Var("writer", writers.type)],
            Scatter(
                (writers,),
                exp.width,
                exp.arrays,
                Lambda(again.params, Body(again.body.stms, (again.body.results[0], again.params[0]))),
            ),
        )[0]

        def seeds(inner: Reverse, lam: Lambda, given: Sequence[Var]) -> list[Atom | None]:
            key = lam.body.results[0]
            found = _inside(inner, key, size)
            writer = _taken(inner, last, key, found)
            wrote = inner.emit("and", found, inner.emit("eq", writer, lam.params[0]))
            return [None, *(None if adj is None else _taken(inner, _array(adj), key, wrote) for adj in adjs)]

        elements_back(reverse, exp.width, exp.arrays, exp.lam, [], seeds)
        for d, adj in zip(exp.dests, adjs, strict=True):
            if adj is not None and reverse.active(d):
                zeroing = reverse.fresh(exp.lam)
                item = _array(adj).type.row()
                with b.region() as stms:
                    for s in zeroing.body.stms:
                        b.add(s)
                    zero = emit.zero(item)
                body = Body(tuple(stms), (zeroing.body.results[0], zero))
                rest = Scatter((_array(adj),), exp.width, exp.arrays, Lambda(zeroing.params, body))
                reverse.add(d, b.bind([Var(f"{d.name}_adj", d.type)], rest)[0])

    return back
