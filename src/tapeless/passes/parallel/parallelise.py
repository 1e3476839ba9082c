"""Sequential loops whose iterations are independent become sweeps: what `tp.prange` promises, proved.

Takes a `For` statement; gives statements that compute the same in parallel, or `Dependent` with the reason why not. A
carried
scalar must be a reduction; a carried array must be written in cells of the iteration's own, or be added to only.

"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tapeless.errors import CompileError
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    Apply,
    At,
    Atom,
    Axis,
    Body,
    Check,
    For,
    Function,
    Index,
    Lambda,
    Print,
    Reduction,
    Stm,
    Sweep,
    Update,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.effects import runs_python
from tapeless.ir.operands import regions
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import BOOL, I64, Const, Type, Var, atom_dim, dim_atom, i64
from tapeless.ir.walk import Substitution, in_regions, map_function, map_regions, refresh_body, with_stms
from tapeless.passes.analysis.independence import (
    Dependent,
    Sharing,
    Within,
    forms_of,
    neutral,
    reduction_of,
    sharing_of,
)
from tapeless.passes.parallel.array_sums import addend_of
from tapeless.passes.parallel.rowwise import Rows, RowTarget
from tapeless.passes.parallel.uncarried import Uncarried


@dataclass(frozen=True)
class _Total:
    """A carried scalar that is only added to, multiplied, or the largest or smallest of what was met."""

    k: int
    op: str


@dataclass(frozen=True)
class _Target:
    """A carried array that is only written (`set`), only added to (`add`), or of which each iteration has a `row`."""

    k: int
    sharing: Sharing

    @property
    def op(self) -> str:
        return self.sharing.kind


def parallelise_derivable(function: Function) -> Function:
    """The same for a function to be differentiated: a loop that may set a cell twice in one iteration stays a loop,
    which knows which of the values was the last.
    """
    return parallelise_marked(function, once=True)


def parallelise_marked(function: Function, once: bool = False) -> Function:
    """All loops over tp.prange, inner ones first; CompileError TP111 for one that is not parallel."""

    def on_body(body: Body) -> Body:
        stms: list[Stm] = []
        for s in body.stms:
            inner = in_regions(s, on_body)
            if isinstance(s.exp, For) and s.exp.hints.parallel:
                stms.extend(_proved(s, inner, once))
            else:
                stms.append(inner)
        return with_stms(body, stms)

    return map_function(function, on_body)


def _unmarked(body: Body) -> Body:
    """Loops over tp.prange inside become ordinary ones."""
    stms = []
    for s in body.stms:
        exp = map_regions(s.exp, _unmarked) if regions(s.exp) else s.exp
        if isinstance(exp, For) and exp.hints.parallel:
            exp = replace(exp, hints=replace(exp.hints, parallel=False))
        stms.append(Stm(s.vars, exp, s.span))
    return Body(tuple(stms), body.results)


def _proved(stm: Stm, inner: Stm, once: bool) -> list[Stm]:
    """The loop with its inner ones parallel too where that works, else with those in order."""
    in_order = Body((Stm(stm.vars, map_regions(stm.exp, _unmarked), stm.span),), ())
    try:
        return parallelise(inner, once)
    except (Dependent, SetTwice):
        pass
    try:
        return parallelise(in_order.stms[0], once)
    except SetTwice:
        return list(_unmarked(in_order).stms)
    except Dependent as found:
        span = found.span if isinstance(found.span, Span) and found.span.line else stm.span
        raise CompileError(
            f"the iterations of this parallel loop depend on each other: {found.reason}",
            code="TP111",
            hint="write only cells that belong to the iteration, use += for sums, or use range.",
            file=span.file,
            line=span.line,
            column=span.column,
            end_line=span.end_line,
            end_column=span.end_column,
        ) from None


class SetTwice(Exception):
    """An iteration may set a cell twice, in a loop that is to be differentiated."""


def parallelise(stm: Stm, once: bool, proved: bool = False) -> list[Stm]:
    """The loop as a sweep. `proved`: without tests of what the user promised."""
    loop = stm.exp
    assert isinstance(loop, For)
    _no_output(loop.body)
    totals: list[_Total] = []
    targets: list[_Target] = []
    forms = forms_of(loop)
    for k, p in enumerate(loop.params):
        if not p.type.shape:
            totals.append(_Total(k, reduction_of(loop, k)))
        else:
            targets.append(_Target(k, sharing_of(loop, k, forms)))
    if proved and any(t.sharing.within is not None for t in targets):
        raise Dependent("within", "only a test could tell that its iterations do not meet")
    if once and not all(t.sharing.once for t in targets):
        raise SetTwice
    return _build(stm, loop, totals, targets)


def parallelise_proved(stm: Stm) -> list[Stm]:
    """A loop that is parallel without a promise, upwards or downwards: loops of reverse mode go back."""
    try:
        return parallelise(stm, once=False, proved=True)
    except Dependent:
        return parallelise(_mirrored(stm), once=False, proved=True)


def _mirrored(stm: Stm) -> Stm:
    """The last iteration first."""
    loop = stm.exp
    assert isinstance(loop, For)
    index, last = Var(loop.index.name, I64), Var("last", I64)
    turning = (
        Stm((last,), Apply("sub", (loop.bound, i64(1))), stm.span),
        Stm((loop.index,), Apply("sub", (last, index)), stm.span),
    )
    body = refresh_body(Body((*turning, *loop.body.stms), loop.body.results))
    return Stm(stm.vars, replace(loop, index=index, body=body), stm.span)


def _no_output(body: Body) -> None:
    for s in body.stms:
        if isinstance(s.exp, Print):
            raise Dependent("print", "printing has an order, which a parallel loop does not keep")
        if runs_python(s.exp):
            raise Dependent("callback", "callbacks have an order, which a parallel loop does not keep")
        for r in regions(s.exp):
            _no_output(r.body)


# -- building


def _build(stm: Stm, loop: For, totals: list[_Total], targets: list[_Target]) -> list[Stm]:
    """with_acc around a sweep: totals are its reductions, arrays of "set" and "add" accumulators, rows go in
    and out.
    """
    span = stm.span
    written = [t for t in targets if t.op in ("set", "add")]
    rows = [t for t in targets if t.op == "row"]
    before: list[Stm] = []
    width = loop.bound
    if not isinstance(width, Const):
        count = Var("count", I64)
        before.append(Stm((count,), Apply("max", (width, i64(0))), span))
        width = count
    for target in written:
        if target.sharing.within is not None:
            before += _meets_nothing(loop.params[target.k], target.sharing.within, width, span)
    accs = {t.k: Var(loop.params[t.k].name, _acc_type(loop.params[t.k].type, t.op)) for t in written}
    starts = {loop.params[t.k]: neutral(t.op, loop.params[t.k].type.dtype) for t in totals}
    taken = [RowTarget(loop, t.k, width, span) for t in rows]
    rewriter = _Rewriter({loop.params[k]: acc for k, acc in accs.items()})
    body = rewriter.body(loop.body, [j for j in range(len(loop.params)) if j not in accs])
    names = [j for j in range(len(loop.params)) if j not in accs]
    for rowed in taken:
        before += rowed.before
        body = Rows(rowed.param, rowed.row).body(body)
    body = Substitution(starts).body(body)
    by = dict(zip(names, body.results, strict=True))
    lam = Lambda(
        (loop.index, *(t.row for t in taken)), Body(body.stms, (*(by[t.k] for t in totals), *(by[t.k] for t in rows)))
    )
    partial = [Var(loop.params[t.k].name, loop.params[t.k].type) for t in totals]
    mapped = [Var(t.param.name, Type(t.param.type.dtype, (atom_dim(width), *t.param.type.shape[1:]))) for t in taken]
    reductions = tuple(_operator(loop.params[t.k].type, t.op) for t in totals)
    sweep = Sweep(atom_dim(width), tuple(t.source for t in taken), lam, reductions)
    after: list[Stm] = []
    for t, v in zip(totals, partial, strict=True):
        after.append(Stm((stm.vars[t.k],), Apply(t.op, (loop.inits[t.k], v)), span))
    for rowed, v in zip(taken, mapped, strict=True):
        after.append(Stm((stm.vars[rowed.k],), Update(rowed.init, rowed.axes, v), span))
    bound = (*partial, *mapped)
    if not written:
        return [*before, Stm(bound, sweep, span), *after]
    arrays = tuple(a for a in (loop.inits[t.k] for t in written) if isinstance(a, Var))
    inner = tuple(Var(v.name, v.type) for v in bound)
    lam_accs = Lambda(tuple(accs[t.k] for t in written), Body((Stm(inner, sweep, span),), inner))
    outer = Stm((*(stm.vars[t.k] for t in written), *bound), WithAcc(arrays, lam_accs), span)
    return [*before, outer, *after]


def _meets_nothing(param: Var, within: Within, width: Atom, span: Span) -> list[Stm]:
    """A test that positions which count from the end are not met by others: Note [Own cells] in `independence`."""
    b = Builder(span)
    steps = b.let(I64, Apply("sub", (width, i64(1))))
    reach = b.let(I64, Apply("add", (b.let(I64, Apply("mul", (steps, i64(within.scale)))), i64(within.spread))))
    apart = b.let(BOOL, Apply("lt", (reach, dim_atom(param.type.shape[within.axis]))))
    none = b.let(BOOL, Apply("le", (width, i64(0))))
    message = f"two iterations of this parallel loop write the same element of '{param.name}'"
    b.effect(Check(b.let(BOOL, Apply("or", (none, apart))), "IndexError", message))
    return b.stms


def _acc_type(type: Type, op: str) -> Type:
    return Type(type.dtype, type.shape, op)


def _operator(type: Type, op: str) -> Reduction:
    a, b, r = Var("a", type), Var("b", type), Var("r", type)
    lam = Lambda((a, b), Body((Stm((r,), Apply(op, (a, b)), NOWHERE),), (r,)))
    return Reduction(lam, (neutral(op, type.dtype),), True)


class _Rewriter(Uncarried):
    """Turns updates of carried arrays into updates of accumulators, which stand for all their versions."""

    def __init__(self, accs: dict[Var, Var]) -> None:
        super().__init__(accs)
        self.sums: dict[Var, tuple[Atom, str, tuple[Axis, ...]]] = {}
        self.dropped: dict[Var, tuple[Axis, ...]] = {}  # what was read of them, and where

    def stm(self, s: Stm) -> list[Stm]:
        match s.exp:
            case Index(array=a) if a in self.stands_for and self.stands_for[a].type.acc == "add":
                self.dropped[s.vars[0]] = s.exp.axes
                return []
            case Apply(op=op, args=(a, b)) if a in self.dropped or b in self.dropped:
                old, other = (a, b) if a in self.dropped else (b, a)
                assert isinstance(old, Var)
                self.sums[s.vars[0]] = other, op, self.dropped[old]
                return []
            case Sweep(arrays=arrays) if any(a in self.dropped for a in arrays):
                (old,) = (a for a in arrays if a in self.dropped)
                addend = addend_of(s, old)
                assert addend is not None
                self.sums[s.vars[0]] = addend.vars[0], "add", self.dropped[old]
                return [addend]
            case Sweep(arrays=arrays) if any(a in self.stands_for for a in arrays):
                (old,) = (a for a in arrays if a in self.stands_for)
                acc = self.stands_for[s.vars[0]] = self.stands_for[old]
                addend = addend_of(s, old)
                assert addend is not None
                axes = tuple(full_axes(acc.type.shape))
                return [addend, Stm((), UpdateAcc(acc, axes, addend.vars[0]), s.span)]
            case Update(array=a, axes=axes, value=value) if a in self.stands_for:
                acc = self.stands_for[s.vars[0]] = self.stands_for[a]
                before: list[Stm] = []
                if acc.type.acc == "add":
                    assert isinstance(value, Var)
                    value, op, read = self.sums[value]
                    axes = _tested(axes, read)
                    if op == "sub":
                        negative = Var("t", value.type)
                        before.append(Stm((negative,), Apply("neg", (value,)), s.span))
                        value = negative
                return [*before, Stm((), UpdateAcc(acc, axes, value), s.span)]
            case _:
                return super().stm(s)


def _tested(axes: tuple[Axis, ...], read: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The same cell was read before, and is not any more: what was tested then is tested now."""
    return tuple(
        replace(a, check=a.check or b.check) if isinstance(a, At) and isinstance(b, At) else a
        for a, b in zip(axes, read, strict=True)
    )
