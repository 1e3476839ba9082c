"""Lowering of sweeps, histograms, scatters and accumulators: one loop, cut into one chunk a thread when it is worth it.

The outermost sweep of a region is cut; sweeps inside it are plain loops, which LLVM vectorises. Each chunk reduces
into values of its own, which are then combined in order, so an operator only has to be associative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapeless.ir.core import (
    Apply,
    Atom,
    Body,
    For,
    Hist,
    If,
    Lambda,
    Library,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    Var,
    While,
    WithAcc,
)
from tapeless.ir.types import DType, const, i64
from tapeless.ir.walk import free_in_lambda, refresh_lambda, regions
from tapeless.lower import loopir
from tapeless.lower.arrays import view
from tapeless.lower.code import ONE, ZERO, Loc
from tapeless.ops.table import op as row

if TYPE_CHECKING:
    from tapeless.lower.lowering import Lowerer

PARALLEL_WORK = 60_000  # scalar operations below which a region is not worth its start (1 to 2 us)
GUESS = 16  # iterations assumed of a loop whose count is not known


def cost_of(body: Body) -> int:
    """Rough scalar operations of one run."""
    total = 1
    for stm in body.stms:
        inner = sum(cost_of(r.body) for r in regions(stm.exp))
        match stm.exp:
            case Apply(op=name):
                total += row(name).cost
            case Sweep(width=n) | Hist(width=n) | Scatter(width=n):
                total += inner * (n if isinstance(n, int) else GUESS)
            case For() | While():
                total += inner * GUESS
            case If():
                total += inner
            case Library():
                total += 100
            case _:
                total += 1 + inner
    return min(total, 10**9)


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
            from tapeless.lower.control import assign_together

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


def lower_sweep(lo: Lowerer, vars: tuple[Var, ...], exp: Sweep) -> None:
    n = lo.dim(exp.width)
    reduced = sum(len(r.neutral) for r in exp.reduces)
    scanned = sum(len(r.neutral) for r in exp.scans)
    outs = [lo.place(v) for v in vars[reduced:]]
    _set_aside(lo, exp, outs)
    for v, loc in zip(vars[reduced:], outs, strict=True):
        lo.arrays[v] = loc
    finals = [None if not v.type.shape else lo.place(v) for v in vars[:reduced]]
    accs = [a for a in free_in_lambda(exp.lam) if a in lo.accs and lo.accs[a].op != "set"]

    def chunk(start: Atom, stop: Atom, totals: list[Total], lam: Lambda) -> None:
        running = [start_total(lo, r, [None] * len(r.neutral)) for r in exp.scans]
        _loop(lo, exp, lam, start, stop, totals, running, outs, scanned)

    def whole(lam: Lambda) -> list[Total]:
        totals, at = [], 0
        for r in exp.reduces:
            totals.append(start_total(lo, r, finals[at : at + len(r.neutral)]))
            at += len(r.neutral)
        chunk(ZERO, n, totals, lam)
        return totals

    if not _worth_cutting(lo, exp, n) or exp.scans:
        if lo.target == "ptx" and not lo.parallel and not exp.reduces and not exp.scans:
            _grid(lo, exp, n, outs)
            return
        totals = whole(exp.lam)
        _bind(lo, vars[:reduced], totals)
        return
    lo.note("parallel on threads")
    pieces = _pieces(lo, n, exp.lam.body)
    if accs:
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


def _set_aside(lo: Lowerer, exp: Sweep, outs: Sequence[Loc]) -> None:
    """Note [Written over]: copies the parts of overwritten arrays that other iterations read."""
    inputs = {a: lo.loc(a) for a in exp.arrays}
    read = {v: lo.arrays[v] for v in free_in_lambda(exp.lam) if v in lo.arrays}
    for out in outs:
        for v, loc in [*inputs.items(), *read.items()]:
            own = v in inputs and v not in read and loc.strides[0] == out.strides[0]
            if loc.buffer is out.buffer and not loc.same_place(out) and not own:
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


def _worth_cutting(lo: Lowerer, exp: Sweep | Hist, n: Atom) -> bool:
    if lo.parallel or lo.target != "cpu":
        return False
    if isinstance(exp.width, int):
        return exp.width >= 8 and exp.width * cost_of(exp.lam.body) >= PARALLEL_WORK
    return True


def _pieces(lo: Lowerer, n: Atom, body: Body, more: int = 0) -> Atom:
    """How many chunks: one a thread, or one when the work is small."""
    code = lo.code
    enough = code.compare("ge", code.mul(n, _work(lo, body, more)), i64(PARALLEL_WORK))
    most = code.let("min", DType.i64, lo.threads, n, label="pieces")
    return code.let("select", DType.i64, enough, most, ONE, label="pieces")


def _work(lo: Lowerer, body: Body, more: int) -> Atom:
    """Scalar operations of one element, with the sizes of inner sweeps as far as they are known outside."""
    code = lo.code
    inside = {v for s in body.stms for v in s.vars}
    known = cost_of(Body(tuple(s for s in body.stms if not _sized(s, inside)), ())) + more
    total: Atom = i64(known)
    for s in body.stms:
        if _sized(s, inside):
            assert isinstance(s.exp, Sweep)
            total = code.add(total, code.mul(lo.dim(s.exp.width), i64(cost_of(s.exp.lam.body))))
    return code.let("min", DType.i64, total, i64(2**20), label="work")


def _sized(stm: Stm, inside: set[Var]) -> bool:
    return isinstance(stm.exp, Sweep) and isinstance(stm.exp.width, Var) and stm.exp.width not in inside


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
    """One chunk a thread; partial results in memory, combined in order afterwards."""
    code = lo.code
    partial: list[list[Loc]] = []
    for r in exp.reduces:
        partial.append([code.allocate(ne.type.dtype, (pieces, *lo.dims(ne.type.shape)), "partial") for ne in r.neutral])
    with code.loop(pieces, tag="threads", label="piece") as t:
        lo.parallel = True

        def run() -> None:
            start = code.let("floordiv", DType.i64, code.mul(t, n), pieces, label="start")
            stop = code.let("floordiv", DType.i64, code.mul(code.add(t, ONE), n), pieces, label="stop")
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
    tag = "simd" if free and _independent(body, {o.buffer for o in outs}) else "seq"
    stm = loopir.For(i, start, stop, tuple(body), 1, tag)
    code.mark(stm)
    code.emit(stm)


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


def _put(lo: Lowerer, out: Loc, i: Atom, value: Atom | Loc) -> None:
    if isinstance(value, Loc):
        lo.code.copy(value, lo.code.inside(out, i))
    else:
        lo.code.store(out, [i], value)


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


def _grid(lo: Lowerer, exp: Sweep, n: Atom, outs: Sequence[Loc]) -> None:
    """One GPU thread an element."""
    code = lo.code
    lo.parallel = True
    with code.loop(n, tag="grid") as i:
        _element(lo, exp, exp.lam, i, [], [], outs, 0)
    lo.parallel = False


# -- histograms and scatters


def lower_hist(lo: Lowerer, vars: tuple[Var, ...], exp: Hist) -> None:
    code = lo.code
    n = lo.dim(exp.width)
    dests = [lo.loc(d) for d in exp.dests]
    for v, d in zip(vars, dests, strict=True):
        lo.arrays[v] = d

    def fill(start: Atom, stop: Atom, targets: Sequence[Loc], lam: Lambda) -> None:
        with code.loop(stop, start) as i:
            bind_rows(lo, lam, i, exp.arrays)

            def run() -> None:
                results = lo.body(lam.body)
                key, values = results[0], results[1:]
                _guarded(lo, key, targets[0].shape[0], lambda: _combine_at(lo, exp.op, targets, key, values))

            lo.scoped(run)

    if not _worth_cutting(lo, exp, n):
        fill(ZERO, n, dests, exp.lam)
        return
    lo.note("parallel on threads, one private histogram each")
    pieces = _pieces(lo, n, exp.lam.body, 4)
    bins = code.mul(dests[0].shape[0], pieces)
    pieces = code.let("select", DType.i64, code.compare("lt", bins, n), pieces, ONE, label="pieces")

    def sequential() -> None:
        lo.parallel = True
        fill(ZERO, n, dests, refresh_lambda(exp.lam))
        lo.parallel = False

    def cut() -> None:
        private = [code.allocate(d.dtype, (pieces, *d.shape), "private") for d in dests]
        lam = refresh_lambda(exp.lam)
        with code.loop(pieces, tag="threads", label="piece") as t:
            lo.parallel = True
            mine = [code.inside(p, t) for p in private]
            for m, ne in zip(mine, exp.op.neutral, strict=True):
                _fill_neutral(lo, m, ne)
            start = code.let("floordiv", DType.i64, code.mul(t, n), pieces, label="start")
            stop = code.let("floordiv", DType.i64, code.mul(code.add(t, ONE), n), pieces, label="stop")
            fill(start, stop, mine, lam)
            lo.parallel = False
        with code.loop(pieces, label="piece") as t, code.loop(dests[0].shape[0], label="bin") as k:
            rows = [code.inside(code.inside(p, t), k) for p in private]
            _combine_locs(lo, exp.op, dests, k, rows)
        for p in private:
            code.free(p.buffer)

    code.branch(code.compare("le", pieces, ONE), sequential, cut)


def _fill_neutral(lo: Lowerer, target: Loc, ne: Atom) -> None:
    if not ne.type.shape:
        lo.code.fill(target, lo.atom(ne))
        return
    with lo.code.loop(target.shape[0]) as k:
        lo.code.copy(lo.loc(ne), lo.code.inside(target, k))


def _guarded(lo: Lowerer, key: Atom, size: Atom, then: Callable[[], None]) -> None:
    """Runs when the key is inside."""
    code = lo.code
    inside = code.let("and", DType.bool, code.compare("ge", key, ZERO), code.compare("lt", key, size), label="inside")
    code.branch(inside, then)


def _combine_at(lo: Lowerer, op: Reduction, targets: Sequence[Loc], key: Atom, values: Sequence[Atom]) -> None:
    cells = [lo.code.inside(t, key) for t in targets]
    old: list[Atom | Loc] = [c if c.rank else lo.code.load(c, []) for c in cells]
    new: list[Atom | Loc] = [lo.loc(v) if v.type.shape else v for v in values]

    def run() -> None:
        for cell, r in zip(cells, lo.inline(op.op, [*old, *new]), strict=True):
            if cell.rank:
                lo.code.copy(lo.loc(r), cell)
            else:
                lo.code.store(cell, [], r)

    lo.scoped(run)


def _combine_locs(lo: Lowerer, op: Reduction, targets: Sequence[Loc], key: Atom, rows: Sequence[Loc]) -> None:
    cells = [lo.code.inside(t, key) for t in targets]
    args: list[Atom | Loc] = [c if c.rank else lo.code.load(c, []) for c in [*cells, *rows]]

    def run() -> None:
        for cell, r in zip(cells, lo.inline(op.op, args), strict=True):
            if cell.rank:
                lo.code.copy(lo.loc(r), cell)
            else:
                lo.code.store(cell, [], r)

    lo.scoped(run)


def lower_scatter(lo: Lowerer, vars: tuple[Var, ...], exp: Scatter) -> None:
    """In order, so that the last of equal positions wins."""
    code = lo.code
    dests = [lo.loc(d) for d in exp.dests]
    for v, d in zip(vars, dests, strict=True):
        lo.arrays[v] = d
    with code.loop(lo.dim(exp.width)) as i:
        bind_rows(lo, exp.lam, i, exp.arrays)

        def run() -> None:
            results = lo.body(exp.lam.body)
            key, values = results[0], results[1:]

            def put() -> None:
                for d, v in zip(dests, values, strict=True):
                    _put(lo, d, key, lo.loc(v) if v.type.shape else v)

            _guarded(lo, key, dests[0].shape[0], put)

        lo.scoped(run)


# -- accumulators


@dataclass
class Acc:
    """An accumulator in scope: where it accumulates. `shared`: one copy for each chunk, along a first axis."""

    op: str
    loc: Loc
    shared: bool = False

    def private(self, lo: Lowerer, chunk: Atom) -> Acc:
        """The copy of one chunk, empty."""
        mine = lo.code.inside(self.loc, chunk)
        neutral = {"add": 0, "mul": 1}.get(self.op)
        assert neutral is not None, f"no private copies for {self.op}"
        lo.code.fill(mine, const(neutral, mine.dtype))
        return Acc(self.op, mine)


def lower_with_acc(lo: Lowerer, vars: tuple[Var, ...], exp: WithAcc) -> None:
    for p, a in zip(exp.lam.params, exp.arrays, strict=True):
        lo.accs[p] = Acc(p.type.acc, lo.loc(a))
    for v, a in zip(vars, exp.arrays, strict=False):
        lo.arrays[v] = lo.loc(a)
    results = lo.body(exp.lam.body)
    for v, r in zip(vars[len(exp.arrays) :], results, strict=True):
        if v.type.shape:
            lo.arrays[v] = lo.loc(r)
        else:
            lo.scalars[v] = r


def with_private(lo: Lowerer, accs: Sequence[Var], pieces: Atom, run: Callable[[], None]) -> None:
    """Each chunk accumulates into memory of its own, which is added up afterwards."""
    code = lo.code
    outer = {a: lo.accs[a] for a in accs}
    for a, acc in outer.items():
        memory = code.allocate(acc.loc.dtype, (pieces, *acc.loc.shape), "private")
        lo.accs[a] = Acc(acc.op, memory, shared=True)
    private = {a: lo.accs[a].loc for a in accs}
    run()
    for a, acc in outer.items():
        lo.accs[a] = acc

        def add(index: list[Atom], acc: Acc = acc, a: Var = a) -> None:
            part = code.load(private[a], index)
            total = code.load(acc.loc, index[1:])
            code.store(acc.loc, index[1:], code.let(acc.op, acc.loc.dtype, total, part, label="sum"))

        code.each(private[a].shape, add, simd=True)
        code.free(private[a].buffer)


def lower_update_acc(lo: Lowerer, exp: UpdateAcc) -> None:
    code = lo.code
    acc = lo.accs[exp.acc]
    target = view(lo, acc.loc, exp.axes)
    value = exp.value
    if acc.op == "set":
        from tapeless.lower.arrays import write

        write(lo, target, value)
        return
    source = lo.loc(value) if value.type.shape else None

    def combine(index: list[Atom]) -> None:
        new = code.load(source, index) if source is not None else lo.atom(value)
        old = code.load(target, index)
        code.store(target, index, code.let(acc.op, target.dtype, old, new, label="sum"))

    code.each(target.shape, combine)
