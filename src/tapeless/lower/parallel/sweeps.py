"""Lowering of sweeps: one loop, cut into one chunk per thread when it is worth it.

The outermost sweep of a region is cut; sweeps inside it are plain loops, which LLVM vectorises. Each chunk reduces
into values of its own, which are then combined in order, so an operator only has to be associative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tapeless.ir.core import (
    Apply,
    Atom,
    Lambda,
    Reduction,
    Stm,
    Sweep,
    Var,
)
from tapeless.ir.types import DType, i64
from tapeless.ir.walk import all_stms, free_in_lambda, refresh_lambda
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.control import assign_together
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.ir import loopir
from tapeless.lower.parallel.accumulators import with_private, worth_private
from tapeless.lower.parallel.invariant import once_per_chunk
from tapeless.lower.parallel.work import pieces_of, share, work_of, worth_cutting
from tapeless.passes.analysis.distances import owns_rows

# -- running totals


@dataclass
class Total:
    """The running values of one reduction: variables for scalars, memory for arrays."""

    lo: Lowerer
    reduction: Reduction
    slots: list[Var | Loc]

    def combine(self, values: Sequence[Atom | Loc]) -> None:
        """total = op(total, values)."""
        lo, code = self.lo, self.lo.code
        body = self.reduction.op.body
        single = len(body.stms) == 1 and isinstance(body.stms[0].exp, Apply)
        before, code.reassoc = code.reassoc, code.reassoc or single

        def run() -> None:
            results = lo.inline(self.reduction.op, [*self.slots, *values])
            scalars = [(s, r) for s, r in zip(self.slots, results, strict=True) if isinstance(s, Var)]
            arrays = [(s, lo.loc(r)) for s, r in zip(self.slots, results, strict=True) if isinstance(s, Loc)]
            assign_together(lo, scalars)
            for target, source in arrays:
                code.copy(source, target)

        lo.scoped(run)
        code.reassoc = before


def start_total(lo: Lowerer, reduction: Reduction, homes: Sequence[Loc | None]) -> Total:
    """Running values at the neutral element; arrays in `homes` when given."""
    slots: list[Var | Loc] = []
    for ne, home in zip(reduction.neutral, homes, strict=True):
        if ne.type.shape:
            loc = home if home is not None else lo.allocate(ne.type, "total")
            lo.code.copy(lo.loc(ne), loc)
            slots.append(loc)
        else:
            slots.append(lo.code.declare(lo.atom(ne), "total"))
    return Total(lo, reduction, slots)


# -- sweeps


@lowers(Sweep)
def lower_sweep(lo: Lowerer, vars: tuple[Var, ...], exp: Sweep) -> None:
    n = lo.dim(exp.width)
    reduced = sum(len(r.neutral) for r in exp.reduces)
    scanned = sum(len(r.neutral) for r in exp.scans)
    outs = [lo.place(v) for v in vars[reduced:]]
    _set_aside(lo, exp, outs)
    for v, loc in zip(vars[reduced:], outs, strict=True):
        lo.arrays[v] = loc
    finals = [None if not v.type.shape else lo.place(v) for v in vars[:reduced]]
    accs = [a for a in free_in_lambda(exp.lam) if a in lo.accs and lo.accs[a].op != "set" and not owns_rows(exp.lam, a)]

    def chunk(start: Atom, stop: Atom, totals: list[Total], lam: Lambda) -> None:
        first, each = once_per_chunk(lam)
        if first:
            run = partial(lo.scoped, lambda: elements(start, stop, totals, first, each))
            lo.code.branch(lo.code.compare("lt", start, stop), run)
        else:
            elements(start, stop, totals, first, each)

    def elements(start: Atom, stop: Atom, totals: list[Total], first: Sequence[Stm], each: Lambda) -> None:
        for stm in first:
            lo.stm(stm)
        running = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.scans]
        _loop(lo, exp, each, start, stop, totals, running, outs, scanned)

    def whole(lam: Lambda) -> list[Total]:
        totals, at = [], 0
        for r in exp.reduces:
            totals.append(start_total(lo, r, finals[at : at + len(r.neutral)]))
            at += len(r.neutral)
        chunk(ZERO, n, totals, lam)
        return totals

    if not worth_cutting(lo, exp) or exp.scans:
        if lo.schedule.each and not lo.parallel and not exp.reduces and not exp.scans:
            _each(lo, exp, n, outs)
            return
        if lo.schedule.pieces and not lo.parallel and not exp.scans and _has_no_arrays(exp):
            totals = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.reduces]
            most = lo.code.let("min", DType.i64, n, i64(lo.schedule.pieces), label="pieces")
            _cut(lo, exp, n, lo.code.let("max", DType.i64, most, ONE, label="pieces"), totals, chunk, exp.lam, [])
            _bind(lo, vars[:reduced], totals)
            return
        totals = whole(exp.lam)
        _bind(lo, vars[:reduced], totals)
        return
    lo.note("parallel on threads")
    work = once_per_chunk(exp.lam)[1].body
    pieces = pieces_of(lo, n, exp.lam, work)
    if accs:
        pieces = worth_private(lo, accs, pieces, work_of(lo, n, exp.lam, work))
        results: list[Total] = []
        shared = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.reduces]

        def sequential() -> None:
            lo.parallel = True
            lo.scoped(lambda: chunk(ZERO, n, shared, refresh_lambda(exp.lam)))
            lo.parallel = False

        def cut() -> None:
            with_private(
                lo, accs, pieces, lambda: _cut(lo, exp, n, pieces, shared, chunk, refresh_lambda(exp.lam), accs)
            )

        lo.code.branch(lo.code.compare("le", pieces, ONE), sequential, cut)
        results = shared
        _bind(lo, vars[:reduced], results)
        return
    totals, at = [], 0
    for r in exp.reduces:
        totals.append(start_total(lo, r, finals[at : at + len(r.neutral)]))
        at += len(r.neutral)
    _cut(lo, exp, n, pieces, totals, chunk, exp.lam, [])
    _bind(lo, vars[:reduced], totals)


def _has_no_arrays(exp: Sweep) -> bool:
    """Kernels have no memory to make them in."""
    made = [v for s in all_stms(exp.lam.body) for v in s.vars]
    return all(not v.type.shape for v in made) and all(not ne.type.shape for r in exp.reduces for ne in r.neutral)


def _set_aside(lo: Lowerer, exp: Sweep, outs: Sequence[Loc]) -> None:
    """Note [Written over]: copies the parts of overwritten arrays that other iterations read."""
    inputs = {a: lo.loc(a) for a in exp.arrays}
    read = {v: lo.arrays[v] for v in free_in_lambda(exp.lam) if v in lo.arrays}
    for out in outs:
        for v, loc in [*inputs.items(), *read.items()]:
            own = v not in read and (loc.same_place(out) or loc.strides[0] == out.strides[0])
            if loc.buffer is out.buffer and not own:
                aside = lo.allocate(v.type, v.name)
                lo.code.copy(loc, aside)
                lo.arrays[v] = aside


def _bind(lo: Lowerer, vars: Sequence[Var], totals: Sequence[Total]) -> None:
    slots = [s for t in totals for s in t.slots]
    for v, s in zip(vars, slots, strict=True):
        if isinstance(s, Loc):
            lo.arrays[v] = s
        else:
            lo.scalars[v] = s


def _cut(
    lo: Lowerer,
    exp: Sweep,
    n: Atom,
    pieces: Atom,
    totals: list[Total],
    chunk: Callable[[Atom, Atom, list[Total], Lambda], None],
    lam: Lambda,
    accs: Sequence[Var],
) -> None:
    """One chunk per thread; partial results in memory, combined in order afterwards."""
    code = lo.code
    partial: list[list[Loc]] = []
    for r in exp.reduces:
        partial.append([code.allocate(ne.type.dtype, (pieces, *lo.dims(ne.type.shape)), "partial") for ne in r.neutral])
    with code.loop(pieces, tag=lo.schedule.launched, label="piece") as t:
        lo.parallel = True

        def run() -> None:
            start, stop = share(lo, t, n, pieces)
            for a in accs:
                lo.accs[a] = lo.accs[a].private(lo, t)
            homes = [[code.inside(p, t) if ne.type.shape else None for p, ne in zip(ps, r.neutral, strict=True)]
                     for ps, r in zip(partial, exp.reduces, strict=True)]  # fmt: skip
            mine = [start_total(lo, r, h) for r, h in zip(exp.reduces, homes, strict=True)]
            chunk(start, stop, mine, lam)
            for ps, total in zip(partial, mine, strict=True):
                for p, s in zip(ps, total.slots, strict=True):
                    if isinstance(s, Var):
                        code.store(p, [t], s)

        lo.scoped(run)
        lo.parallel = False
    if exp.reduces:
        with code.loop(pieces, label="piece") as t:
            for ps, total in zip(partial, totals, strict=True):
                total.combine([code.inside(p, t) if p.rank > 1 else code.load(p, [t]) for p in ps])
    for ps in partial:
        for p in ps:
            code.free(p.buffer)


def _loop(
    lo: Lowerer,
    exp: Sweep,
    lam: Lambda,
    start: Atom,
    stop: Atom,
    totals: list[Total],
    running: list[Total],
    outs: Sequence[Loc],
    scanned: int,
) -> None:
    code = lo.code
    with code.nested() as body:
        i = Var("i", lam.params[0].type)
        _element(lo, exp, lam, i, totals, running, outs, scanned)
    free = not running and all(_order_free(r) for r in exp.reduces)
    own = {lo.accs[a].loc.buffer for a in free_in_lambda(lam) if a in lo.accs and owns_rows(lam, a)}
    tag = loopir.Tag.simd if free and _independent(body, own | {o.buffer for o in outs}) else loopir.Tag.seq
    code.emit(loopir.For(i, start, stop, tuple(body), 1, tag, span=code.span))


def _order_free(reduction: Reduction) -> bool:
    """Whether elements may be combined in any order; an associative operation of two numbers is commutative too."""
    body = reduction.op.body
    single = body.stms[0].exp if len(body.stms) == 1 else None
    return reduction.commutative or (isinstance(single, Apply) and len(single.args) == 2)


def _element(
    lo: Lowerer,
    exp: Sweep,
    lam: Lambda,
    i: Var,
    totals: list[Total],
    running: list[Total],
    outs: Sequence[Loc],
    scanned: int,
) -> None:
    code = lo.code
    bind_rows(lo, lam, i, exp.arrays)
    reduced = sum(len(r.neutral) for r in exp.reduces)
    first_mapped = reduced + scanned
    rows = {k: _row(lo, o, i, lam, exp.arrays) for k, o in enumerate(outs) if o.rank > 1}
    lo.plan(lam.body, {first_mapped + k - scanned: row for k, row in rows.items() if k >= scanned})

    def run() -> None:
        results = lo.body(lam.body)
        values: list[Atom | Loc] = [lo.loc(r) if r.type.shape else r for r in results]
        at = 0
        for total in totals:
            total.combine(values[at : at + len(total.slots)])
            at += len(total.slots)
        place = 0
        for total in running:
            total.combine(values[at : at + len(total.slots)])
            for s in total.slots:
                put(place, s)
                place += 1
            at += len(total.slots)
        for k, value in enumerate(values[at:]):
            put(place + k, value)

    def put(k: int, value: Atom | Loc) -> None:
        if isinstance(value, Loc):
            code.copy(value, rows[k])
        else:
            code.store(outs[k], [i], value)

    lo.scoped(run)


def _row(lo: Lowerer, out: Loc, i: Atom, lam: Lambda, arrays: Sequence[Var]) -> Loc:
    """Row i of a result: the same as that of the input it is written over, if any."""
    for p, a in zip(lam.params[1:], arrays, strict=True):
        if p.type.shape and lo.loc(a).same_place(out):
            return lo.loc(p)
    return lo.code.inside(out, i)


def bind_rows(lo: Lowerer, lam: Lambda, i: Atom, arrays: Sequence[Var]) -> None:
    lo.scalars[lam.params[0]] = i
    for p, a in zip(lam.params[1:], arrays, strict=True):
        loc = lo.loc(a)
        if p.type.shape:
            lo.arrays[p] = lo.code.inside(loc, i)
        else:
            lo.scalars[p] = lo.code.load(loc, [i], p.name)


def _independent(body: Sequence[loopir.Stm], outs: set[loopir.Buffer]) -> bool:
    """Whether the iterations only share what they read: then the loop is marked for SIMD."""
    for stm in body:
        match stm:
            case loopir.Let() | loopir.Load() | loopir.Declare() | loopir.Assign():
                continue
            case loopir.Store(buffer=b) if b in outs:
                continue
            case loopir.If(then=then, orelse=orelse) if _independent(then, outs) and _independent(orelse, outs):
                continue
            case _:
                return False
    return True


def _each(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> None:
    """Each element by itself."""
    code = lo.code
    lo.parallel = True
    with code.loop(n, tag=lo.schedule.launched) as i:
        _element(lo, exp, exp.lam, i, [], [], outs, 0)
    lo.parallel = False
