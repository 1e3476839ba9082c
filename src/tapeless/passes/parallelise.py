"""Sequential loops whose iterations are independent become sweeps: what `tp.prange` promises, proved.

Takes a `For` statement; gives statements that compute the same in parallel, or `Dependent` with the reason why not. A carried
scalar must be a reduction; a carried array must be written in cells of the iteration's own, or be added to only.

Note [Own cells]
Iterations write disjoint cells when on one axis every write is at c*i + r, with one c other than 0 and remainders r that
differ by less than |c| in absolute value: two iterations then never meet. If the loop also reads the array, every access
must be at the same position of the first axis; the row is then taken in, changed and handed back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapeless.errors import CompileError
from tapeless.ir.core import (  # isort: skip
    Apply, At, Atom, Axis, Body, Check, Exp, For, Function, If, Index, Lambda, Print, Range, Reduction, Stm, Sweep, Update, UpdateAcc,
    While, WithAcc,
)  # fmt: skip
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.types import BOOL, I64, Const, Type, Var, atom_dim, const, dim_atom, i64
from tapeless.ir.walk import Substitution, free_in_exp, free_in_lambda, map_exp, map_regions, regions
from tapeless.passes.linear import Linear, combined, form_of

# operator of the update -> (operator of the reduction, neutral element)
CHAINS: dict[str, tuple[str, float]] = {"add": ("add", 0), "sub": ("add", 0), "mul": ("mul", 1)}


class Dependent(Exception):
    """The iterations depend on each other. `name` is the variable in the way."""

    def __init__(self, name: str, reason: str, span: object = None) -> None:
        super().__init__(reason)
        self.name, self.reason, self.span = name, reason, span


@dataclass(frozen=True)
class _Total:
    """A carried scalar that is only added to (or multiplied)."""

    k: int
    op: str


@dataclass(frozen=True)
class _Target:
    """A carried array that is only written (`set`) or only added to (`add`)."""

    k: int
    op: str


MARK = "prange"  # the plan of loops that the user says are parallel


def parallelise_marked(function: Function) -> Function:
    """All loops over tp.prange, inner ones first; CompileError TP111 for one that is not parallel."""

    def on_body(body: Body) -> Body:
        stms: list[Stm] = []
        for s in body.stms:
            s = Stm(s.vars, map_regions(s.exp, on_body), s.span) if regions(s.exp) else s
            if isinstance(s.exp, For) and s.exp.plan == MARK:
                stms.extend(_proved(s))
            else:
                stms.append(s)
        return Body(tuple(stms), body.results)

    return replace(function, body=on_body(function.body))


def _proved(stm: Stm) -> list[Stm]:
    try:
        return parallelise(stm)
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


def parallelise(stm: Stm) -> list[Stm]:
    """The loop as a sweep."""
    loop = stm.exp
    assert isinstance(loop, For)
    _no_output(loop.body)
    totals: list[_Total] = []
    targets: list[_Target] = []
    forms = _forms(loop)
    for k, p in enumerate(loop.params):
        if not p.type.shape:
            totals.append(_Total(k, _reduction(loop, k)))
        else:
            targets.append(_Target(k, _array_kind(loop, k, forms)))
    return _build(stm, loop, totals, targets)


def _no_output(body: Body) -> None:
    for s in body.stms:
        if isinstance(s.exp, Print):
            raise Dependent("print", "printing has an order, which a parallel loop does not keep")
        for r in regions(s.exp):
            _no_output(r.body)


# -- carried scalars


def _reduction(loop: For, k: int) -> str:
    """The operator of a scalar that is carried around; raises when its value is used otherwise."""
    p = loop.params[k]
    found: set[str] = set()

    def chain(body: Body, start: Var, end: Atom) -> None:
        """From `start` to `end` only by steps of one operator."""
        versions = {start}
        for s in body.stms:
            used = [v for v in free_in_exp(s.exp) if v in versions]
            if not used:
                continue
            if len(used) > 1:
                raise _scalar_error(p, s)
            match s.exp:
                case Apply(op=op, args=(a, b)) if op in CHAINS and a in versions and b not in versions:
                    found.add(CHAINS[op][0])
                case Apply(op=op, args=(a, b)) if op in ("add", "mul") and b in versions and a not in versions:
                    found.add(op)
                case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                    places = [j for j, a in enumerate(inits) if a in versions]
                    if len(places) != 1 or any(v in free_in_lambda(Lambda(params, inner)) for v in versions):
                        raise _scalar_error(p, s)
                    if isinstance(s.exp, While) and params[places[0]] in free_in_lambda(Lambda((), s.exp.cond)):
                        raise _scalar_error(p, s)
                    chain(inner, params[places[0]], inner.results[places[0]])
                    versions.add(s.vars[places[0]])
                    continue
                case If(cond=cond, then=then, orelse=orelse) if cond not in versions:
                    places = [j for j, v in enumerate(s.vars) if _reaches(then, used[0], j) or _reaches(orelse, used[0], j)]
                    if len(places) != 1:
                        raise _scalar_error(p, s)
                    for arm in (then, orelse):
                        chain(arm, used[0], arm.results[places[0]])
                    versions.add(s.vars[places[0]])
                    continue
                case _:
                    raise _scalar_error(p, s)
            versions.update(s.vars)
        if end not in versions:
            raise Dependent(p.name, f"'{p.name}' keeps the value of the last iteration", body.stms[-1].span if body.stms else None)
        if sum(1 for r in body.results if r in versions) > 1:
            raise Dependent(p.name, f"'{p.name}' of one iteration is used by the next one")

    chain(loop.body, p, loop.body.results[k])
    for j, r in enumerate(loop.body.results):
        if j != k and r is p:
            raise Dependent(p.name, f"'{p.name}' of one iteration is used by the next one")
    if len(found) > 1:
        raise Dependent(p.name, f"'{p.name}' is both added to and multiplied")
    return found.pop() if found else "add"


def _reaches(body: Body, start: Var, j: int) -> bool:
    """Whether result j of an arm comes from `start`."""
    versions: set[Atom] = {start}
    for s in body.stms:
        if any(v in versions for v in free_in_exp(s.exp)):
            versions.update(s.vars)
    return body.results[j] in versions


def _scalar_error(p: Var, s: Stm) -> Dependent:
    return Dependent(p.name, f"'{p.name}' of one iteration is used by the next one", s.span)


# -- carried arrays


def _forms(loop: For) -> dict[Var, Linear]:
    """Integer variables of the body as affine forms of what is outside and of the index."""
    forms: dict[Var, Linear] = {}

    def walk(body: Body) -> None:
        for s in body.stms:
            match s.exp:
                case Apply() if s.vars[0].type == I64:
                    form = combined(s.exp, forms)
                    if form is not None:
                        forms[s.vars[0]] = form
                case _:
                    pass
            for r in regions(s.exp):
                walk(r.body)

    walk(loop.body)
    return forms


class _Accesses:
    """All reads and writes of the versions of one carried array."""

    def __init__(self, param: Var) -> None:
        self.param = param
        self.versions: set[Var] = {param}
        self.reads: list[tuple[Stm, tuple[Axis, ...]]] = []
        self.writes: list[tuple[Stm, tuple[Axis, ...]]] = []
        self.adds: list[Stm] = []
        self.old_values: dict[Var, Stm] = {}

    def collect(self, body: Body) -> None:
        for s in body.stms:
            used = [v for v in free_in_exp(s.exp) if v in self.versions]
            if not used:
                continue
            match s.exp:
                case Index(array=a, axes=axes) if a in self.versions and used == [a]:
                    self.reads.append((s, axes))
                    self.old_values[s.vars[0]] = s
                case Update(array=a, axes=axes, value=value) if a in self.versions and value not in self.versions:
                    self.writes.append((s, axes))
                    self.versions.add(s.vars[0])
                case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                    for j, a in enumerate(inits):
                        if a in self.versions:
                            self.versions.add(params[j])
                            self.versions.add(s.vars[j])
                    if isinstance(s.exp, While):
                        self.collect(s.exp.cond)
                    self.collect(inner)
                    self._check_results(inner, params, s)
                case If(then=then, orelse=orelse):
                    self.collect(then)
                    self.collect(orelse)
                    for j, v in enumerate(s.vars):
                        if then.results[j] in self.versions or orelse.results[j] in self.versions:
                            self.versions.add(v)
                            for arm in (then, orelse):
                                if arm.results[j] not in self.versions:
                                    raise self.error(s, "is replaced as a whole")
                case Sweep():
                    for r in regions(s.exp):
                        self.collect(r.body)
                    if any(a in self.versions for a in s.exp.arrays):
                        raise self.error(s, "is read as a whole while iterations write it")
                case _:
                    raise self.error(s, "is used as a whole")

    def _check_results(self, body: Body, params: Sequence[Var], s: Stm) -> None:
        for p, r in zip(params, body.results, strict=True):
            if (p in self.versions) != (r in self.versions):
                raise self.error(s, "is replaced as a whole")

    def error(self, s: Stm, what: str) -> Dependent:
        return Dependent(self.param.name, f"'{self.param.name}' {what}", s.span)


def _array_kind(loop: For, k: int, forms: dict[Var, Linear]) -> str:
    """"set", "add" or "row": how iterations share a carried array."""
    p = loop.params[k]
    accesses = _Accesses(p)
    accesses.collect(loop.body)
    if loop.body.results[k] not in accesses.versions:
        raise Dependent(p.name, f"'{p.name}' is replaced as a whole in each iteration")
    for j, r in enumerate(loop.body.results):
        if j != k and r in accesses.versions:
            raise Dependent(p.name, f"'{p.name}' changes places with another array")
    if accesses.writes and _only_added_to(loop.body, accesses):
        return "add"
    if not accesses.reads and _disjoint(loop, accesses, forms):
        return "set"
    if _own_rows(loop, accesses, forms) is not None:
        return "row"
    where = (accesses.reads or accesses.writes)[0][0]
    if accesses.reads:
        raise Dependent(p.name, f"'{p.name}' is read where another iteration may have written it", where.span)
    raise Dependent(p.name, f"two iterations may write the same element of '{p.name}'", where.span)


def _only_added_to(body: Body, accesses: _Accesses) -> bool:
    """Each write is `a[k] += e`: the old value of the cell plus something."""
    uses: dict[Var, int] = {}
    definitions: dict[Var, Stm] = {}

    def count(b: Body) -> None:
        for s in b.stms:
            for v in s.vars:
                definitions[v] = s
            for v in free_in_exp(s.exp):
                uses[v] = uses.get(v, 0) + 1
            for r in regions(s.exp):
                count(r.body)
        for r in b.results:
            if isinstance(r, Var):
                uses[r] = uses.get(r, 0) + 1

    count(body)
    matched = 0
    for s, axes in accesses.writes:
        assert isinstance(s.exp, Update)
        value = s.exp.value
        made = definitions.get(value) if isinstance(value, Var) else None
        if made is None or not isinstance(made.exp, Apply) or made.exp.op not in ("add", "sub"):
            return False
        old = made.exp.args[0] if made.exp.args[0] in accesses.old_values else made.exp.args[1]
        if made.exp.op == "sub" and old is not made.exp.args[0]:
            return False
        if old not in accesses.old_values or not isinstance(old, Var):
            return False
        read = accesses.old_values[old]
        assert isinstance(read.exp, Index)
        if read.exp.array is not s.exp.array or not _same_axes(read.exp.axes, axes) or uses[old] != 1:
            return False
        if isinstance(value, Var) and uses[value] != 1:
            return False
        matched += 1
    return matched == len(accesses.writes) == len(accesses.reads)


def _same_axes(a: Sequence[Axis], b: Sequence[Axis]) -> bool:
    return all(isinstance(x, At) and isinstance(y, At) and x.index == y.index for x, y in zip(a, b, strict=True))


def _disjoint(loop: For, accesses: _Accesses, forms: dict[Var, Linear]) -> bool:
    """Note [Own cells]."""
    outside = _outside(loop)
    for axis in range(accesses.param.type.rank):
        found: list[Linear] = []
        for _, axes in accesses.writes:
            a = axes[axis]
            if not isinstance(a, At):
                break
            form = form_of(a.index, forms)
            if a.wrap and not _nonnegative(form, loop.index):
                break
            found.append(form)
        if len(found) != len(accesses.writes) or not found:
            continue
        scale = found[0].coefficient(loop.index)
        if scale == 0 or any(f.coefficient(loop.index) != scale for f in found):
            continue
        rests = [f - Linear({loop.index: 1}).scaled(scale) for f in found]
        if not rests[0].symbols <= outside:
            continue
        gaps = [r - rests[0] for r in rests]
        if not all(g.is_constant for g in gaps):
            continue
        spread = [g.constant for g in gaps]
        if max(spread) - min(spread) < abs(scale):
            return True
    return False


def _nonnegative(form: Linear, index: Var) -> bool:
    """Wrapped positions may meet; forms of the index with nothing negative in them do not wrap."""
    return form.constant >= 0 and form.coefficient(index) > 0 and all(form.coefficient(s) >= 0 for s in form.symbols)


def _outside(loop: For) -> set[Var]:
    return set(free_in_lambda(Lambda((loop.index, *loop.params), loop.body)))


def _own_rows(loop: For, accesses: _Accesses, forms: dict[Var, Linear]) -> Linear | None:
    """The position c*i + r of the first axis at which every access is; None when they differ."""
    found: list[Linear] = []
    for _, axes in (*accesses.reads, *accesses.writes):
        first = axes[0]
        if not isinstance(first, At):
            return None
        form = form_of(first.index, forms)
        if first.wrap and not _nonnegative(form, loop.index):
            return None
        found.append(form)
    scale = found[0].coefficient(loop.index)
    rest = found[0] - Linear({loop.index: 1}).scaled(scale)
    if scale <= 0 or not rest.symbols <= _outside(loop):
        return None
    return found[0] if all((f - found[0]).is_constant and (f - found[0]).constant == 0 for f in found) else None


# -- building


def _build(stm: Stm, loop: For, totals: list[_Total], targets: list[_Target]) -> list[Stm]:
    """with_acc around a sweep: totals are its reductions, arrays of "set" and "add" accumulators, rows go in and out."""
    span = stm.span
    written = [t for t in targets if t.op in ("set", "add")]
    rows = [t for t in targets if t.op == "row"]
    before: list[Stm] = []
    width = loop.bound
    if not isinstance(width, Const):
        count = Var("count", I64)
        before.append(Stm((count,), Apply("max", (width, i64(0))), span))
        width = count
    accs = {t.k: Var(loop.params[t.k].name, _acc_type(loop.params[t.k].type, t.op)) for t in written}
    starts = {loop.params[t.k]: const(CHAINS[t.op][1], loop.params[t.k].type.dtype) for t in totals}
    taken = [RowTarget(loop, t.k, width, span) for t in rows]
    rewriter = _Rewriter({loop.params[k]: acc for k, acc in accs.items()})
    body = rewriter.body(loop.body, [j for j in range(len(loop.params)) if j not in accs])
    names = [j for j in range(len(loop.params)) if j not in accs]
    for target in taken:
        before += target.before
        body = Rows(target.param, target.row).body(body)
    body = Substitution(starts).body(body)
    by = dict(zip(names, body.results, strict=True))
    lam = Lambda((loop.index, *(t.row for t in taken)), Body(body.stms, tuple(by[t.k] for t in (*totals, *rows))))
    partial = [Var(loop.params[t.k].name, loop.params[t.k].type) for t in totals]
    mapped = [Var(t.param.name, Type(t.param.type.dtype, (atom_dim(width), *t.param.type.shape[1:]))) for t in taken]
    reductions = tuple(_operator(loop.params[t.k].type, t.op) for t in totals)
    sweep = Sweep(atom_dim(width), tuple(t.source for t in taken), lam, reductions)
    after: list[Stm] = []
    for t, v in zip(totals, partial, strict=True):
        after.append(Stm((stm.vars[t.k],), Apply(t.op, (loop.inits[t.k], v)), span))
    for target, v in zip(taken, mapped, strict=True):
        after.append(Stm((stm.vars[target.k],), Update(target.init, target.axes, v), span))
    bound = (*partial, *mapped)
    if not written:
        return [*before, Stm(bound, sweep, span), *after]
    arrays = tuple(a for a in (loop.inits[t.k] for t in written) if isinstance(a, Var))
    inner = tuple(Var(v.name, v.type) for v in bound)
    lam_accs = Lambda(tuple(accs[t.k] for t in written), Body((Stm(inner, sweep, span),), inner))
    outer = Stm((*(stm.vars[t.k] for t in written), *bound), WithAcc(arrays, lam_accs), span)
    return [*before, outer, *after]


def _acc_type(type: Type, op: str) -> Type:
    return Type(type.dtype, type.shape, op)


class RowTarget:
    """A carried array of which each iteration reads and writes one row: the view of those rows, and a test that they exist."""

    def __init__(self, loop: For, k: int, width: Atom, span: Span) -> None:
        self.k, self.param = k, loop.params[k]
        init = loop.inits[k]
        assert isinstance(init, Var)
        self.init = init
        self.row = Var(self.param.name, self.param.type.row())
        accesses = _Accesses(self.param)
        accesses.collect(loop.body)
        form = _own_rows(loop, accesses, _forms(loop))
        assert form is not None
        scale = form.coefficient(loop.index)
        rest = form - Linear({loop.index: 1}).scaled(scale)
        b = Builder(span)
        start = _emit(b, rest)
        size = dim_atom(init.type.shape[0])
        last = b.let(I64, Apply("mul", (b.let(I64, Apply("sub", (width, i64(1)))), i64(scale))))
        last = b.let(I64, Apply("add", (last, start)))
        low, high = b.let(BOOL, Apply("ge", (start, i64(0)))), b.let(BOOL, Apply("lt", (last, size)))
        fits = b.let(BOOL, Apply("and", (low, high)))
        none = b.let(BOOL, Apply("le", (width, i64(0))))
        b.effect(
            Check(
                b.let(BOOL, Apply("or", (none, fits))), "IndexError",
                "index {0} is out of bounds for axis 0 with size {1}", (last, size),
            )
        )  # fmt: skip
        self.axes: tuple[Axis, ...] = (Range(start, atom_dim(width), i64(scale)), *full_axes(init.type.shape[1:]))
        self.source = b.index(init, self.axes, init.name)
        self.before = list(b.stms)


def _emit(b: Builder, form: Linear) -> Atom:
    total: Atom = i64(form.constant)
    for v, c in form.terms.items():
        part: Atom = v if c == 1 else b.let(I64, Apply("mul", (v, i64(c))))
        total = part if total == i64(0) else b.let(I64, Apply("add", (total, part)))
    return total


class Rows:
    """Rewrites a body that accesses one row of an array into one that has just that row."""

    def __init__(self, param: Var, row: Var) -> None:
        self.now: dict[Var, Atom] = {param: row}  # version of the array -> version of the row
        self.values: dict[Var, Atom] = {}

    def body(self, body: Body) -> Body:
        stms = [new for s in body.stms for new in self.stm(s)]
        return Body(tuple(stms), tuple(self.atom(r) for r in body.results))

    def atom(self, a: Atom) -> Atom:
        if isinstance(a, Var):
            return self.now.get(a, self.values.get(a, a))
        return a

    def stm(self, s: Stm) -> list[Stm]:
        match s.exp:
            case Index(array=a, axes=axes) if a in self.now:
                row = self.now[a]
                if not row.type.shape:
                    self.values[s.vars[0]] = row
                    return []
                assert isinstance(row, Var)
                return [Stm(s.vars, Index(row, tuple(self.axis(x) for x in axes[1:])), s.span)]
            case Update(array=a, axes=axes, value=value) if a in self.now:
                row = self.now[a]
                if not row.type.shape:
                    self.now[s.vars[0]] = self.atom(value)
                    return []
                assert isinstance(row, Var)
                new = Var(row.name, row.type)
                self.now[s.vars[0]] = new
                return [Stm((new,), Update(row, tuple(self.axis(x) for x in axes[1:]), self.atom(value)), s.span)]
        for v in (*s.vars, *(p for r in regions(s.exp) for p in r.params)):
            if v.type.shape and self._is_version(v, s):
                self.now[v] = Var(v.name, v.type.row())
        exp = map_exp(s.exp, self.atom, self.body, lambda lam: Lambda(self.params(lam.params), self.body(lam.body)))
        return [Stm(self.params(s.vars), exp, s.span)]

    def axis(self, x: Axis) -> Axis:
        if isinstance(x, At):
            return At(self.atom(x.index), x.wrap, x.check)
        return Range(self.atom(x.start), x.length, self.atom(x.step))

    def params(self, vars: Sequence[Var]) -> tuple[Var, ...]:
        return tuple(v for v in (self.atom(p) if p in self.now else p for p in vars) if isinstance(v, Var))

    def _is_version(self, v: Var, s: Stm) -> bool:
        """Whether a loop or branch carries the array under this name."""
        match s.exp:
            case For(params=params, inits=inits) | While(params=params, inits=inits):
                places = {p: a for p, a in zip(params, inits, strict=True)} | dict(zip(s.vars, inits, strict=True))
                return places.get(v) in self.now
            case If(then=then, orelse=orelse):
                if v not in s.vars:
                    return False
                k = s.vars.index(v)
                return any(self._reaches(arm, arm.results[k]) for arm in (then, orelse))
        return False

    def _reaches(self, body: Body, result: Atom) -> bool:
        definitions = {v: t for t in body.stms for v in t.vars}
        while isinstance(result, Var) and result not in self.now:
            made = definitions.get(result)
            if made is None:
                return False
            match made.exp:
                case Update(array=a):
                    result = a
                case For(inits=inits) | While(inits=inits):
                    result = inits[made.vars.index(result)]
                case If(then=then):
                    k = made.vars.index(result)
                    return self._reaches(then, then.results[k]) or self._reaches(made.exp.orelse, made.exp.orelse.results[k])
                case _:
                    return False
        return isinstance(result, Var)


def _operator(type: Type, op: str) -> Reduction:
    a, b, r = Var("a", type), Var("b", type), Var("r", type)
    lam = Lambda((a, b), Body((Stm((r,), Apply(op, (a, b)), NOWHERE),), (r,)))
    return Reduction(lam, (const(CHAINS[op][1], type.dtype),), True)


class _Rewriter:
    """Turns updates of carried arrays into updates of accumulators, and stops carrying them."""

    def __init__(self, accs: dict[Var, Var]) -> None:
        self.acc_of: dict[Var, Var] = dict(accs)
        self.dropped: set[Var] = set()

    def body(self, body: Body, keep: Sequence[int]) -> Body:
        stms: list[Stm] = []
        sums: dict[Var, tuple[Atom, str]] = {}
        for s in body.stms:
            stms.extend(self.stm(s, sums))
        return Body(tuple(stms), tuple(body.results[j] for j in keep))

    def stm(self, s: Stm, sums: dict[Var, tuple[Atom, str]]) -> list[Stm]:
        match s.exp:
            case Index(array=a) if a in self.acc_of and self.acc_of[a].type.acc == "add":
                self.dropped.add(s.vars[0])
                return []
            case Apply(op=op, args=(a, b)) if a in self.dropped or b in self.dropped:
                sums[s.vars[0]] = (b if a in self.dropped else a, op)
                return []
            case Update(array=a, axes=axes, value=value) if a in self.acc_of:
                acc = self.acc_of[a]
                self.acc_of[s.vars[0]] = acc
                before: list[Stm] = []
                if acc.type.acc == "add":
                    assert isinstance(value, Var)
                    value, op = sums[value]
                    if op == "sub":
                        negative = Var("t", value.type)
                        before.append(Stm((negative,), Apply("neg", (value,)), s.span))
                        value = negative
                return [*before, Stm((), UpdateAcc(acc, axes, value), s.span)]
            case For() | While() | If():
                return [self._region(s)]
            case Sweep():
                return [s]
            case _:
                return [s]

    def _region(self, s: Stm) -> Stm:
        exp: Exp = s.exp
        match exp:
            case For(params=params, inits=inits, body=inner):
                keep = self._carried(params, inits, s.vars)
                new = self.body(inner, keep)
                return Stm(tuple(s.vars[j] for j in keep), For(
                    exp.index, exp.bound, tuple(params[j] for j in keep), tuple(inits[j] for j in keep), new, exp.plan
                ), s.span)  # fmt: skip
            case While(params=params, inits=inits, body=inner):
                keep = self._carried(params, inits, s.vars)
                new = self.body(inner, keep)
                return Stm(tuple(s.vars[j] for j in keep), While(
                    tuple(params[j] for j in keep), tuple(inits[j] for j in keep), exp.cond, new, exp.plan
                ), s.span)  # fmt: skip
            case If(cond=cond, then=then, orelse=orelse):
                all_results = list(range(len(s.vars)))
                first, second = self.body(then, all_results), self.body(orelse, all_results)
                keep = []
                for j, v in enumerate(s.vars):
                    r = first.results[j]
                    if isinstance(r, Var) and r in self.acc_of:
                        self.acc_of[v] = self.acc_of[r]
                    else:
                        keep.append(j)
                trim = [Body(b.stms, tuple(b.results[j] for j in keep)) for b in (first, second)]
                return Stm(tuple(s.vars[j] for j in keep), If(cond, trim[0], trim[1]), s.span)
        raise AssertionError(type(exp).__name__)

    def _carried(self, params: Sequence[Var], inits: Sequence[Atom], vars: Sequence[Var]) -> list[int]:
        keep = []
        for j, a in enumerate(inits):
            if isinstance(a, Var) and a in self.acc_of:
                self.acc_of[params[j]] = self.acc_of[a]
                self.acc_of[vars[j]] = self.acc_of[a]
            else:
                keep.append(j)
        return keep


