"""What statements with regions mean: branches, loops, parallel operators, and accumulators with their updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from tapeless.interp.evaluate import Evaluator, evaluates
from tapeless.interp.values import Accumulator, Array, IllTyped, Value, fresh, select, store, uninitialised
from tapeless.ir.core import For, Hist, If, Lambda, Scatter, Stm, Sweep, UpdateAcc, While, WithAcc
from tapeless.ops.table import TABLE

# -- branches and loops


@evaluates(If)
def choice(evaluator: Evaluator, stm: Stm, exp: If) -> Sequence[Value]:
    return evaluator.body(exp.then if evaluator.scalar(exp.cond) else exp.orelse)


@evaluates(For)
def for_loop(evaluator: Evaluator, stm: Stm, exp: For) -> Sequence[Value]:
    state: Sequence[Value] = [evaluator.get(a) for a in exp.inits]
    step = Lambda((exp.index, *exp.params), exp.body)
    for i in range(evaluator.integer(exp.bound)):
        state = evaluator.call(step, [np.int64(i), *state])
    return state


@evaluates(While)
def while_loop(evaluator: Evaluator, stm: Stm, exp: While) -> Sequence[Value]:
    state: Sequence[Value] = [evaluator.get(a) for a in exp.inits]
    test, step = Lambda(exp.params, exp.cond), Lambda(exp.params, exp.body)
    while True:
        (go_on,) = evaluator.call(test, state)
        if not go_on:
            return state
        state = evaluator.call(step, state)


# -- parallel operators


@evaluates(Sweep)
def sweep(evaluator: Evaluator, stm: Stm, exp: Sweep) -> Sequence[Value]:
    width = evaluator.dim(exp.width)
    arrays = evaluator.rows(exp.arrays, width)
    # A running value is memory of its own: an operator may consume its operands, or hand one of them on.
    reduced = [[fresh(evaluator.get(a)) for a in r.neutral] for r in exp.reduces]
    scanned = [[fresh(evaluator.get(a)) for a in r.neutral] for r in exp.scans]
    arrays_out = stm.vars[sum(map(len, reduced)) :]
    outputs = [uninitialised((width, *evaluator.shape(v.type.shape[1:])), v.type.dtype) for v in arrays_out]
    in_order = exp.scans or not all(r.commutative for r in exp.reduces)
    for i in range(width) if in_order else evaluator.positions(width):
        results = iter(evaluator.call(exp.lam, [np.int64(i), *(a[i] for a in arrays)]))
        for reduction, running in zip((*exp.reduces, *exp.scans), (*reduced, *scanned), strict=True):
            operands = [next(results) for _ in running]
            running[:] = map(fresh, evaluator.call(reduction.op, [*running, *operands]))
        for output, row in zip(outputs, chain(*scanned, results), strict=True):
            store(output, i, row)
    return [*chain(*reduced), *outputs]


@evaluates(Hist)
def hist(evaluator: Evaluator, stm: Stm, exp: Hist) -> Sequence[Value]:
    dests = [evaluator.take(d, stm) for d in exp.dests]
    for key, values in writes(evaluator, exp, dests):
        cells = [fresh(d[key]) for d in dests]
        for dest, cell in zip(dests, evaluator.call(exp.op.op, [*cells, *values]), strict=True):
            store(dest, key, cell)
    return dests


@evaluates(Scatter)
def scatter(evaluator: Evaluator, stm: Stm, exp: Scatter) -> Sequence[Value]:
    dests = [evaluator.take(d, stm) for d in exp.dests]
    for key, values in writes(evaluator, exp, dests):
        for dest, value in zip(dests, values, strict=True):
            store(dest, key, value)
    return dests


def writes(evaluator: Evaluator, exp: Hist | Scatter, dests: Sequence[Array]) -> Iterator[tuple[int, list[Value]]]:
    """Key and values of each element, without those whose key is outside."""
    length = len(dests[0])
    if any(len(d) != length for d in dests):
        raise IllTyped(f"destinations have lengths {[len(d) for d in dests]}{evaluator.where()}")
    width = evaluator.dim(exp.width)
    arrays = evaluator.rows(exp.arrays, width)
    for i in range(width):
        key, *values = evaluator.call(exp.lam, [np.int64(i), *(a[i] for a in arrays)])
        if not isinstance(key, np.integer):
            raise IllTyped(f"{key!r} is not a key{evaluator.where()}")
        if 0 <= key < length:
            yield int(key), values


# -- accumulators


@evaluates(WithAcc)
def with_acc(evaluator: Evaluator, stm: Stm, exp: WithAcc) -> Sequence[Value]:
    pairs = zip(exp.lam.params, exp.arrays, strict=True)
    accs = [Accumulator(p.type.acc, evaluator.take(a, stm)) for p, a in pairs]
    results = evaluator.call(exp.lam, accs)
    return [*(acc.array for acc in accs), *results]


@evaluates(UpdateAcc)
def update_acc(evaluator: Evaluator, stm: Stm, exp: UpdateAcc) -> Sequence[Value]:
    acc = evaluator.get(exp.acc)
    if not isinstance(acc, Accumulator):
        raise IllTyped(f"{exp.acc} is not an accumulator{evaluator.where()}")
    combine = None if acc.op == "set" else TABLE[acc.op].numpy
    places = select(acc.array, evaluator.places(exp.axes), stm.span)
    store(acc.array, places, evaluator.readable(exp.value), fill=True, combine=combine)
    return []
