"""Whether the iterations of a loop are independent, and how they share what they carry.

Takes a `For`; gives for each carried scalar the operator of its reduction, and for each carried array "set", "add" or
"row". Raises `Dependent` with the reason otherwise.

Note [Largest and smallest]
max(m, e) skips a NaN e, and keeps a NaN m for ever. An iteration that starts from m = -inf never gives NaN, so its
result may be combined with others in any order, and with the value before the loop last. max(e, m) is taken over by a
NaN and then by what comes next: that has an order, so it is refused, but for integers.

Note [Own cells]
Iterations write disjoint cells when on one axis every write is at c*i + r, with one c other than 0 and remainders r
that differ by less than |c| in absolute value: two iterations then never meet. Positions that may count from the end
could meet others that do not: a test before the loop sees that all of them lie within one length of the axis.
If the loop also reads the array, or writes a cell again, every access must be at the same position of the first axis;
the row is then taken in, changed and handed back. Only where that does not work may a cell be "set" more than once in
an iteration, and derivatives are then taken of the loop as it stands (`parallelise_derivable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapeless.ir.core import (
    Apply,
    At,
    Atom,
    Axis,
    Body,
    For,
    If,
    Index,
    Lambda,
    Stm,
    Sweep,
    Update,
    While,
)
from tapeless.ir.operands import regions
from tapeless.ir.types import I64, Const, DType, Var
from tapeless.ir.walk import free_in_exp, free_in_lambda
from tapeless.ops.op import Nan
from tapeless.ops.table import TABLE
from tapeless.passes.analysis.written_once import written_once
from tapeless.passes.parallel.array_sums import addend_of
from tapeless.symbolic.positions import Position, combined, form_of

# operator of the update -> operator of the reduction
CHAINS = {"sub": "add", **{name: name for name, row in TABLE.items() if row.extremum or name in ("add", "mul")}}


def neutral(op: str, dtype: DType) -> Const:
    """The value from which each iteration starts."""
    unit = TABLE[op].unit
    assert unit and unit.left, f"{op} has no neutral element"
    return unit.of(dtype)


def _takes_over_nan(op: str) -> bool:
    """Note [Largest and smallest]."""
    extremum = TABLE[op].extremum
    return extremum is not None and extremum.nan is Nan.first_wins


class Dependent(Exception):
    """The iterations depend on each other. `name` is the variable in the way."""

    def __init__(self, name: str, reason: str, span: object = None) -> None:
        super().__init__(reason)
        self.name, self.reason, self.span = name, reason, span


# -- carried scalars


def reduction_of(loop: For, k: int) -> str:
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
            match s.exp:
                case Apply(op="select", args=(cond, a, b)) if cond not in versions and a in versions and b in versions:
                    versions.update(s.vars)  # an `if` around a step
                    continue
            if len(used) > 1:
                raise _scalar_error(p, s)
            match s.exp:
                case Apply(op=op, args=(a, b)) if op in CHAINS and a in versions and b not in versions:
                    found.add(CHAINS[op])
                case Apply(op=op, args=(a, b)) if b in versions and b.type.dtype.is_float and _takes_over_nan(op):
                    reason = (
                        f"with '{p.name}' second, {op} takes over a NaN and what comes after it: put '{p.name}' first"
                    )
                    raise Dependent(p.name, reason, s.span)  # Note [Largest and smallest]
                case Apply(op=op, args=(a, b)) if op in CHAINS and op != "sub" and b in versions and a not in versions:
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
                    places = [
                        j for j, v in enumerate(s.vars) if _reaches(then, used[0], j) or _reaches(orelse, used[0], j)
                    ]
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
            raise Dependent(
                p.name, f"'{p.name}' keeps the value of the last iteration", body.stms[-1].span if body.stms else None
            )
        if sum(1 for r in body.results if r in versions) > 1:
            raise Dependent(p.name, f"'{p.name}' of one iteration is used by the next one")

    chain(loop.body, p, loop.body.results[k])
    for j, r in enumerate(loop.body.results):
        if j != k and r is p:
            raise Dependent(p.name, f"'{p.name}' of one iteration is used by the next one")
    if len(found) > 1:
        raise Dependent(
            p.name, f"'{p.name}' is changed by both {' and '.join(sorted(TABLE[op].symbol or op for op in found))}"
        )
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


def forms_of(loop: For) -> dict[Var, Position]:
    """Integer variables of the body as affine forms of what is outside and of the index."""
    forms: dict[Var, Position] = {}

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


class Accesses:
    """All reads and writes of the versions of one carried array."""

    def __init__(self, param: Var) -> None:
        self.param = param
        self.versions: set[Var] = {param}
        self.reads: list[tuple[Stm, tuple[Axis, ...]]] = []
        self.writes: list[tuple[Stm, tuple[Axis, ...]]] = []
        self.sums: list[Stm] = []  # that add something to the whole array
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
                    for j, init in enumerate(inits):
                        if init in self.versions:
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
                case Sweep() if len(used) == 1 and addend_of(s, used[0]) is not None:
                    self.sums.append(s)
                    self.versions.update(s.vars)
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


@dataclass(frozen=True)
class Sharing:
    """How iterations share a carried array: by "set", "add" or "row"."""

    kind: str
    once: bool = True  # no iteration sets a cell twice
    within: Within | None = None


@dataclass(frozen=True)
class Within:
    """What must hold for iterations not to meet: scale * (iterations - 1) + spread is less than the axis is long."""

    axis: int
    scale: int
    spread: int


def sharing_of(loop: For, k: int, forms: dict[Var, Position]) -> Sharing:
    p = loop.params[k]
    accesses = Accesses(p)
    accesses.collect(loop.body)
    if loop.body.results[k] not in accesses.versions:
        raise Dependent(p.name, f"'{p.name}' is replaced as a whole in each iteration")
    for j, r in enumerate(loop.body.results):
        if j != k and r in accesses.versions and not accesses.sums:
            raise Dependent(p.name, f"'{p.name}' changes places with another array")
    alone = sum(r in accesses.versions for r in loop.body.results) == 1
    if (accesses.writes or accesses.sums) and alone and _only_added_to(loop.body, accesses):
        return Sharing("add")
    if accesses.sums:
        raise accesses.error(accesses.sums[0], "is read as a whole while iterations write it")
    apart = None if accesses.reads else _disjoint(loop, accesses, forms)
    once = apart is not None and written_once(loop, accesses.versions, forms)
    if apart is not None and once:
        return apart
    if own_rows(loop, accesses, forms) is not None:
        return Sharing("row")
    if apart is not None:
        return replace(apart, once=False)
    where = (accesses.reads or accesses.writes)[0][0]
    if accesses.reads:
        raise Dependent(p.name, f"'{p.name}' is read where another iteration may have written it", where.span)
    raise Dependent(p.name, f"two iterations may write the same element of '{p.name}'", where.span)


def _only_added_to(body: Body, accesses: Accesses) -> bool:
    """Each write is `a[k] += e`: the old value of the cell plus something."""
    uses: dict[Var, int] = {}
    definitions: dict[Var, Stm] = {}

    def count(b: Body) -> None:
        for s in b.stms:
            for v in s.vars:
                definitions[v] = s
            for v in free_in_exp(s.exp):
                uses[v] = uses.get(v, 0) + 1
            for region in regions(s.exp):
                count(region.body)
        for r in b.results:
            if isinstance(r, Var):
                uses[r] = uses.get(r, 0) + 1

    count(body)
    matched = 0
    for s, axes in accesses.writes:
        assert isinstance(s.exp, Update)
        value = s.exp.value
        made = definitions.get(value) if isinstance(value, Var) else None
        old = _added_to(made, accesses) if made is not None else None
        if old is None:
            return False
        read = accesses.old_values[old]
        assert isinstance(read.exp, Index)
        if read.exp.array is not s.exp.array or not same_axes(read.exp.axes, axes) or uses[old] != 1:
            return False
        if isinstance(value, Var) and uses[value] != 1:
            return False
        matched += 1
    return matched == len(accesses.writes) == len(accesses.reads)


def _added_to(stm: Stm, accesses: Accesses) -> Var | None:
    """The old value to which this adds something, or from which it subtracts."""
    olds = [v for v in free_in_exp(stm.exp) if v in accesses.old_values]
    if len(olds) != 1:
        return None
    match stm.exp:
        case Apply(op="add", args=(a, b)) if a is not b:
            pass
        case Apply(op="sub", args=(a, b)) if a is olds[0] and a is not b:
            pass
        case Sweep():
            pass
        case _:
            return None
    return None if isinstance(stm.exp, Sweep) and addend_of(stm, olds[0]) is None else olds[0]


def same_axes(a: Sequence[Axis], b: Sequence[Axis]) -> bool:
    return all(
        x.index == y.index if isinstance(x, At) and isinstance(y, At) else x == y for x, y in zip(a, b, strict=True)
    )


def _disjoint(loop: For, accesses: Accesses, forms: dict[Var, Position]) -> Sharing | None:
    """Note [Own cells]."""
    outside = _outside(loop)
    for axis in range(accesses.param.type.rank):
        places = [axes[axis] for _, axes in accesses.writes]
        found = [form_of(a.index, forms) for a in places if isinstance(a, At)]
        if len(found) != len(places) or not found:
            continue
        scale = found[0].coefficient(loop.index)
        if scale == 0 or any(f.coefficient(loop.index) != scale for f in found):
            continue
        rests = [f.without(loop.index) for f in found]
        if not rests[0].symbols <= outside:
            continue
        gaps = [r - rests[0] for r in rests]
        if not all(g.is_constant for g in gaps):
            continue
        spread = max(g.const for g in gaps) - min(g.const for g in gaps)
        if spread < abs(scale):
            wraps = any(
                isinstance(a, At) and a.wrap and not _nonnegative(f, loop.index)
                for a, f in zip(places, found, strict=True)
            )
            return Sharing("set", within=Within(axis, abs(scale), spread) if wraps else None)
    return None


def _nonnegative(form: Position, index: Var) -> bool:
    """Wrapped positions may meet; forms of the index with nothing negative in them do not wrap."""
    return form.const >= 0 and form.coefficient(index) > 0 and form.symbols == {index}


def _outside(loop: For) -> set[Var]:
    return set(free_in_lambda(Lambda((loop.index, *loop.params), loop.body)))


def own_rows(loop: For, accesses: Accesses, forms: dict[Var, Position]) -> Position | None:
    """The position c*i + r of the first axis at which every access is; None when they differ."""
    found: list[Position] = []
    for _, axes in (*accesses.reads, *accesses.writes):
        first = axes[0]
        if not isinstance(first, At):
            return None
        form = form_of(first.index, forms)
        if first.wrap and any(c < 0 for c in (form.const, *form.terms.values())):
            return None
        found.append(form)
    scale = found[0].coefficient(loop.index)
    rest = found[0].without(loop.index)
    if scale <= 0 or not rest.symbols <= _outside(loop):
        return None
    return found[0] if all((f - found[0]).is_constant and (f - found[0]).const == 0 for f in found) else None
