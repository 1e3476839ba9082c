"""Lowering of histograms and scatters: a private histogram per chunk where that pays, scatters in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ir.core import Atom, Hist, Lambda, Reduction, Scatter, Var
from tapeless.ir.types import DType, i64
from tapeless.ir.walk import refresh_lambda
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.ir.loopir import Atomic
from tapeless.lower.parallel.block_histograms import few_bins, fill_by_blocks, is_simple
from tapeless.lower.parallel.elements import atomic_ops, bind_rows, combine_element, when_inside
from tapeless.lower.parallel.same_bits import chunks_of, rounds
from tapeless.lower.parallel.work import pieces_of, share, worth_cutting


@lowers(Hist)
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
                when_inside(lo, key, targets[0].shape[0], lambda: _combine_at(lo, exp.op, targets, key, values))

            lo.scoped(run)

    ops = atomic_ops(exp.op) if lo.launches else None
    ordered = lo.schedule.deterministic and ops is not None and any(map(rounds, ops, (d.dtype for d in dests)))
    if ops is not None and not ordered:
        _by_atomics(lo, exp, n, dests, ops)
        return
    in_chunks = lo.launches and (ordered or is_simple(exp.lam, exp.op.op, dests))
    if not in_chunks and not worth_cutting(lo, exp):
        fill(ZERO, n, dests, exp.lam)
        return
    if in_chunks:
        pieces = chunks_of(lo, n, dests)
    else:
        lo.note("parallel on threads, one private histogram each")
        pieces = pieces_of(lo, n, exp.lam, exp.lam.body, 4)
        private_bins = code.mul(dests[0].shape[0], pieces)
        pieces = code.let("select", DType.i64, code.compare("lt", private_bins, n), pieces, ONE, label="pieces")

    def sequential() -> None:
        lo.code.parallel = True
        fill(ZERO, n, dests, refresh_lambda(exp.lam))
        lo.code.parallel = False

    def fill_neutral(targets: Sequence[Loc]) -> None:
        for target, ne in zip(targets, exp.op.neutral, strict=True):
            _fill_neutral(lo, target, ne)

    def cut() -> None:
        private = [code.allocate_apart(d.dtype, pieces, d.shape, "private") for d in dests]
        lam = refresh_lambda(exp.lam)
        if in_chunks:
            fill_neutral(private)
        with code.loop(pieces, tag=lo.schedule.launched, label="piece") as t:
            lo.code.parallel = True
            mine = [code.inside(p, t) for p in private]
            if not in_chunks:
                fill_neutral(mine)
            start, stop = share(lo, t, n, pieces)
            fill(start, stop, mine, lam)
            lo.code.parallel = False
        bins = dests[0].shape[0]

        def join(t: Atom, k: Atom) -> None:
            _combine_locs(lo, exp.op, dests, k, [code.inside(code.inside(p, t), k) for p in private])

        if in_chunks:
            code.parallel = True
            with code.loop(bins, tag=lo.schedule.launched, label="bin") as k, code.loop(pieces, label="piece") as t:
                join(t, k)
            code.parallel = False
        else:
            with code.loop(pieces, label="piece") as t, code.loop(bins, label="bin") as k:
                join(t, k)
        for p in private:
            code.free(p.buffer)

    few = code.compare("le", pieces, ONE)
    if in_chunks and not ordered:
        few = code.compare("ge", code.mul(dests[0].shape[0], pieces), n)
    code.branch(few, sequential, cut)


def _by_atomics(lo: Lowerer, exp: Hist, n: Atom, dests: Sequence[Loc], ops: Sequence[str]) -> None:
    """On a GPU: all elements at once."""
    code = lo.code

    def in_one(lam: Lambda) -> None:
        code.parallel = True
        with code.loop(n, tag=lo.schedule.launched) as i:
            combine_element(lo, exp, lam, i, dests, ops)
        code.parallel = False

    few = few_bins(lo, exp, n, dests)
    if few is None:
        in_one(exp.lam)
    else:
        code.branch(few, lambda: fill_by_blocks(lo, exp, n, dests, ops), lambda: in_one(refresh_lambda(exp.lam)))


def _fill_neutral(lo: Lowerer, target: Loc, ne: Atom) -> None:
    if not ne.type.shape:
        lo.code.fill(target, lo.atom(ne))
        return
    one = lo.loc(ne)
    lo.code.spread(target.shape, lambda i: lo.code.store(target, i, lo.code.load(one, i[len(i) - one.rank :])))


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


@lowers(Scatter)
def lower_scatter(lo: Lowerer, vars: tuple[Var, ...], exp: Scatter) -> None:
    """In order, so that the last of equal positions wins."""
    code = lo.code
    dests = [lo.loc(d) for d in exp.dests]
    for v, d in zip(vars, dests, strict=True):
        lo.arrays[v] = d
    if lo.launches:
        _scatter_at_once(lo, exp, dests)
        return
    with code.loop(lo.dim(exp.width)) as i:
        bind_rows(lo, exp.lam, i, exp.arrays)

        def run() -> None:
            results = lo.body(exp.lam.body)
            key, values = results[0], results[1:]

            def put() -> None:
                for d, v in zip(dests, values, strict=True):
                    _put(lo, d, key, lo.loc(v) if v.type.shape else v)

            when_inside(lo, key, dests[0].shape[0], put)

        lo.scoped(run)


def _scatter_at_once(lo: Lowerer, exp: Scatter, dests: Sequence[Loc]) -> None:
    """On a GPU: for each place first who is the last one to write there, then what it writes."""
    code = lo.code
    n, places = lo.dim(exp.width), dests[0].shape[0]
    last = code.allocate(DType.i64, (places,), "last")
    lo.owned[-1].append(last.buffer)
    code.fill(last, i64(-1))

    def each(then: Callable[[Atom, Atom, Sequence[Atom]], None]) -> None:
        lam = refresh_lambda(exp.lam)
        code.parallel = True
        with code.loop(n, tag=lo.schedule.launched) as i:
            bind_rows(lo, lam, i, exp.arrays)

            def run() -> None:
                key, *values = lo.body(lam.body)
                when_inside(lo, key, places, lambda: then(i, key, values))

            lo.scoped(run)
        code.parallel = False

    def put(i: Atom, key: Atom, values: Sequence[Atom]) -> None:
        def write() -> None:
            for d, v in zip(dests, values, strict=True):
                _put(lo, d, key, lo.loc(v) if v.type.shape else v)

        code.branch(code.compare("eq", code.load(last, [key]), i), write)

    each(lambda i, key, values: code.emit(Atomic("max", last.buffer, key, i)))
    each(put)


def _put(lo: Lowerer, out: Loc, i: Atom, value: Atom | Loc) -> None:
    if isinstance(value, Loc):
        lo.code.copy(value, lo.code.inside(out, i))
    else:
        lo.code.store(out, [i], value)
