"""One sweep out of two: the construction behind fusion. Whether it is legal is for `fuse` to say.

Takes two statements of equal width, gives one statement whose lambda runs the first lambda and then the second. Relies
on Note [Sweep] for the order of results. The second lambda is renamed, the first stays: chains of maps grow at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Hist,
    Index,
    Lambda,
    Range,
    Scatter,
    Stm,
    Sweep,
    WithRegions,
)
from tapeless.ir.node import node
from tapeless.ir.operands import operands, regions
from tapeless.ir.types import Atom, Dim, Var, i64
from tapeless.ir.walk import Substitution, refresh_lambda
from tapeless.passes.analysis.dependence import Footprints

Swept = Sweep | Hist | Scatter
SWEPT = (Sweep, Hist, Scatter)


@node(frozen=True)
class Outputs:
    """The variables that a sweep binds, and what its lambda gives for them."""

    reduced: tuple[tuple[Var, Atom], ...]
    scanned: tuple[tuple[Var, Atom], ...]
    mapped: tuple[tuple[Var, Atom], ...]


def outputs(vars: tuple[Var, ...], sweep: Sweep, results: tuple[Atom, ...]) -> Outputs:
    """`results` are those of the lambda."""
    pairs = tuple(zip(vars, results, strict=True))
    reduced = sum(len(r.neutral) for r in sweep.reduces)
    scanned = reduced + sum(len(r.neutral) for r in sweep.scans)
    return Outputs(pairs[:reduced], pairs[reduced:scanned], pairs[scanned:])


def mapped_vars(stm: Stm) -> list[Var]:
    """The variables of a sweep's mapped results."""
    assert isinstance(stm.exp, Sweep)
    combined = (*stm.exp.reduces, *stm.exp.scans)
    return list(stm.vars[sum(len(r.neutral) for r in combined) :] if combined else stm.vars)


# -- rows


def is_whole(axis: Axis, dim: Dim) -> bool:
    return isinstance(axis, Range) and axis.start == i64(0) and axis.step == i64(1) and axis.length == dim


def is_row(exp: Index, index: Var) -> bool:
    """Does it read, untested, the row that belongs to this element of a sweep, or a part of it?"""
    return exp.axes[0] == At(index)


def reads_rows_only(stm: Stm, array: Var, footprints: Footprints) -> bool:
    """Is each use of the array by the sweep one of its inputs, or `array[i, ...]` with the index of the sweep?"""
    exp = stm.exp
    assert isinstance(exp, SWEPT)
    operators = (*exp.reduces, *exp.scans) if isinstance(exp, Sweep) else (exp.op,) if isinstance(exp, Hist) else ()
    if operators and any(array in r.neutral for r in operators):
        return False
    if not isinstance(exp, Sweep) and array in exp.dests:
        return False
    if array not in footprints.exp(exp).inner:
        return True
    if any(array in footprints.region(r.op).free for r in operators):
        return False
    return _rows_only(exp.lam.body, array, exp.lam.params[0], footprints)


def _rows_only(body: Body, array: Var, index: Var, footprints: Footprints) -> bool:
    if array in body.results:
        return False
    for stm in body.stms:
        exp = stm.exp
        if isinstance(exp, Index) and exp.array is array:
            if not is_row(exp, index):
                return False
        elif array in operands(exp):
            return False
        elif isinstance(exp, WithRegions) and array in footprints.exp(exp).inner:
            if not all(_rows_only(r.body, array, index, footprints) for r in regions(exp)):
                return False
    return True


class RowReads(Substitution):
    """Replaces `array[i, ...]` by a part of the row at hand, for the arrays in `rows`."""

    def __init__(self, rows: dict[Var, Var]) -> None:
        super().__init__({})
        self.rows = rows

    def body(self, body: Body) -> Body:
        stms: list[Stm] = []
        for stm in body.stms:
            exp = stm.exp
            if isinstance(exp, Index) and exp.array in self.rows:
                row, rest = self.rows[exp.array], exp.axes[1:]
                if all(map(is_whole, rest, exp.array.type.shape[1:])):
                    self.map[stm.vars[0]] = row
                    continue
                stm = Stm(stm.vars, Index(row, rest), stm.span)
            stms.append(self.stm(stm))
        return Body(tuple(stms), self.atoms(body.results))


# -- two in one


@node(frozen=True)
class Merged:
    """`same` are the pairs of names that now stand for one thing."""

    stm: Stm
    same: dict[Var, Atom]


def merge(
    first: Stm, second: Stm, kept: Collection[Var], *, inlined: Collection[Var] = (), copy: bool = False
) -> Merged:
    """One statement for both, at which everything that either of them uses is known.

    kept:    the mapped results of the first that somebody else needs.
    inlined: the mapped results of the first whose rows the second reads.
    copy:    the first statement stays as well, so that its lambda is used with fresh names and only for the rows.
    """
    a, b = first.exp, second.exp
    assert isinstance(a, Sweep) and isinstance(b, SWEPT)
    lam = refresh_lambda(a.lam) if copy else a.lam
    index, *params = lam.params
    stms = list(lam.body.stms)

    rows: dict[Var, Var] = {}
    for var, value in zip(first.vars, lam.body.results, strict=True):
        if var in inlined:
            if not isinstance(value, Var):  # a constant cannot stand everywhere
                constant = Var(var.name, value.type)
                stms.append(Stm((constant,), Apply("identity", (value,)), first.span))
                value = constant
            rows[var] = value
    names = RowReads(rows)
    names.map[b.lam.params[0]] = index
    arrays, known = list(a.arrays), dict(zip(a.arrays, params, strict=True)) | rows
    for array, param in zip(b.arrays, b.lam.params[1:], strict=True):
        if array in known:
            names.map[param] = known[array]
        else:
            arrays.append(array)
            params.append(known.setdefault(array, names.bind(param)))
    body = names.body(b.lam.body)
    stms.extend(body.stms)
    same: dict[Var, Atom] = {**names.map, **rows}

    if not isinstance(b, Sweep):
        whole = Lambda((index, *params), Body(tuple(stms), body.results))
        return Merged(Stm(second.vars, replace(b, arrays=tuple(arrays), lam=whole), second.span), same)
    vars, results = second.vars, body.results
    if not copy:
        vars, results = both_outputs((first.vars, a, lam.body.results), (vars, b, results), kept)
    whole = Lambda((index, *params), Body(tuple(stms), results))
    sweep = Sweep(b.width, tuple(arrays), whole, a.reduces + b.reduces, a.scans + b.scans)
    return Merged(Stm(vars, sweep, second.span), same)


Given = tuple[tuple[Var, ...], Sweep, tuple[Atom, ...]]  # the variables of a sweep, and what its lambda gives


def both_outputs(first: Given, second: Given, kept: Collection[Var]) -> tuple[tuple[Var, ...], tuple[Atom, ...]]:
    """The variables and results of one sweep for both; of the mapped ones of the first, those to be kept."""
    (vars, a, results), (more, b, others) = first, second
    if not (a.reduces or a.scans or b.reduces or b.scans):
        places = [k for k, v in enumerate(vars) if v in kept]
        return (*[vars[k] for k in places], *more), (*[results[k] for k in places], *others)
    before, after = outputs(*first), outputs(*second)
    mapped = tuple([(v, r) for v, r in before.mapped if v in kept])
    pairs = before.reduced + after.reduced + before.scanned + after.scanned + mapped + after.mapped
    return tuple([v for v, _ in pairs]), tuple([r for _, r in pairs])
