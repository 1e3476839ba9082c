"""What all ways of running a sweep have in common: one element of it, and running totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tapeless.ir.core import Apply, Atom, Body, Hist, Lambda, Reduction, Stm, Sweep, Var
from tapeless.ir.types import DType, i64
from tapeless.ir.walk import free_in_lambda
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.control import assign_together
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import BLOCK_THREADS, Atomic, Buffer, Space

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


def partial_results(lo: Lowerer, dtype: DType, count: Atom) -> Loc:
    """Memory for partial results."""
    loc = lo.code.allocate(dtype, (count,), "partial")
    lo.owned[-1].append(loc.buffer)
    return loc


def shared_memory(dtype: DType) -> Loc:
    """A number for each thread of a block."""
    buffer = Buffer("shared", dtype, Space.shared, BLOCK_THREADS)
    return Loc(buffer, dtype, (i64(BLOCK_THREADS),), (ONE,))


def shared_bytes(reductions: Sequence[Reduction]) -> int:
    """For a number of each kind for each thread of a block. Arrays are combined elsewhere."""
    numbers = [r for r in reductions if not any(ne.type.shape for ne in r.neutral)]
    return BLOCK_THREADS * sum(ne.type.dtype.bytes for r in numbers for ne in r.neutral)


def put_totals(lo: Lowerer, places: Sequence[Sequence[Loc]], at: Atom, totals: Sequence[Total]) -> None:
    """Stores running values, which are numbers."""
    for locs, total in zip(places, totals, strict=True):
        for loc, slot in zip(locs, total.slots, strict=True):
            assert isinstance(slot, Var)
            lo.code.store(loc, [at], slot)


def atomic_ops(r: Reduction) -> list[str] | None:
    """For each result the row that combines its cells, if it is one of numbers or of arrays cell by cell."""
    count = len(r.neutral)
    params, made = r.op.params, {v: s.exp for s in r.op.body.stms for v in s.vars}
    found = []
    for k, result in enumerate(r.op.body.results):
        row = _row_between(made.get(result), params[k], params[count + k]) if isinstance(result, Var) else None
        if row is None or (result.type.dtype.is_complex and row != "add"):
            return None
        found.append(row)
    return found


def _row_between(exp: object, left: Var, right: Var) -> str | None:
    match exp:
        case Apply(op=op, args=args) if set(args) == {left, right} and len(args) == 2:
            return op
        case Sweep(arrays=arrays, lam=Lambda((_, a, b), Body((Stm((v,), inner),), (r,))), reduces=(), scans=()):
            return _row_between(inner, a, b) if r is v and set(arrays) == {left, right} else None
    return None


def combine_cells(lo: Lowerer, op: str, target: Loc, value: Atom | Loc) -> None:
    """Into memory that other threads combine into too."""

    def combine(at: list[Atom]) -> None:
        new = lo.code.load(value, at) if isinstance(value, Loc) else value
        lo.code.emit(Atomic(op, target.buffer, lo.code.address(target, at), new))

    lo.code.each(target.shape, combine)


def combine_element(lo: Lowerer, exp: Hist, lam: Lambda, i: Atom, dests: Sequence[Loc], ops: Sequence[str]) -> None:
    """Atomically."""
    bind_rows(lo, lam, i, exp.arrays)

    def run() -> None:
        key, *values = lo.body(lam.body)

        def put() -> None:
            for op, d, v in zip(ops, dests, values, strict=True):
                combine_cells(lo, op, lo.code.inside(d, key), lo.loc(v) if v.type.shape else v)

        when_inside(lo, key, dests[0].shape[0], put)

    lo.scoped(run)


def when_inside(lo: Lowerer, key: Atom, size: Atom, then: Callable[[], None]) -> None:
    code = lo.code
    inside = code.let("and", DType.bool, code.compare("ge", key, ZERO), code.compare("lt", key, size), label="inside")
    code.branch(inside, then)


@dataclass
class AtomicTotal(Total):
    """Of all threads, in memory."""

    ops: Sequence[str]

    def combine(self, values: Sequence[Atom | Loc]) -> None:
        for op, slot, value in zip(self.ops, self.slots, values, strict=True):
            assert isinstance(slot, Loc)
            combine_cells(self.lo, op, slot, value)


# -- elements


def element(
    lo: Lowerer,
    exp: Sweep,
    lam: Lambda,
    i: Atom,
    totals: list[Total],
    running: list[Total],
    outs: Sequence[Loc],
    scanned: int,
    homes: Mapping[int, Loc] = MappingProxyType({}),
) -> None:
    """`homes` are for rows of results that do not go to their places in `outs` at once, by their numbers."""
    code = lo.code
    bind_rows(lo, lam, i, exp.arrays)
    reduced = sum(len(r.neutral) for r in exp.reduces)
    first_mapped = reduced + scanned
    rows = {k: homes.get(k) or row_of(lo, o, i, lam, exp.arrays) for k, o in enumerate(outs) if o.rank > 1}
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


def row_of(lo: Lowerer, out: Loc, i: Atom, lam: Lambda, arrays: Sequence[Var]) -> Loc:
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


def set_aside(lo: Lowerer, exp: Sweep, outs: Sequence[Loc]) -> None:
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


def order_free(reduction: Reduction) -> bool:
    """Whether elements may be combined in any order; an associative operation of two numbers is commutative too."""
    body = reduction.op.body
    single = body.stms[0].exp if len(body.stms) == 1 else None
    return reduction.commutative or (isinstance(single, Apply) and len(single.args) == 2)
