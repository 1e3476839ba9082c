"""Arrays that a loop fills: what the backward pass reads of them is still there at the end.

`is_live` takes a loop, its iteration backwards and a carried array; says whether the final array may stand for each of
its versions. `frozen` puts it in their place.

Note [Still there]
Let every write of iteration i be at c*i + r on some axis, c > 0. A cell that is read backwards in iteration i at f is
not written any more when f < c*i + r, nor when it is read after all writes of the iteration and f < c*(i + 1) + r; for
c < 0 the other way round. Writes that stay, on another axis, at one place never touch cells elsewhere on it. Positions
are linear forms; loop indices lie between 0 and their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tapeless.ad.recovery.iteration import Region
from tapeless.ir.core import Apply, At, Axis, Body, For, If, Index, Range, Stm, Sweep, Update, While
from tapeless.ir.operands import operands
from tapeless.ir.types import I64, Atom, Const, Var, dim_atom
from tapeless.ir.walk import Substitution, all_stms, free_in_exp, map_regions
from tapeless.passes.tidy.dce import live_part
from tapeless.symbolic.polynomials import symbol
from tapeless.symbolic.positions import Position, combined, form_of

Forms = Mapping[Var, Position]


class _Moved(Exception):
    """An array that is used in another way than by its cells."""


def is_live(exp: For, region: Region, p: Var, known: Forms) -> bool:
    k = exp.params.index(p)
    try:
        writes = _writes(exp.body, p, exp.body.results[k])
        body, versions = _without(region.body, region.params[k])
    except _Moved:
        return False
    if not writes:
        return False
    end = region.again[k]
    after = versions.get(end) if isinstance(end, Var) else None
    live, _ = live_part(body)
    places = Places(known)
    places.learn(exp.body)
    places.learn(live)
    places.bounds[exp.index] = places.bounds[region.index] = form_of(exp.bound, places.forms).shifted(-1)
    order = places.order(exp, writes)
    tags = set(versions.values())
    for s in all_stms(live):
        used = [v for v in free_in_exp(s.exp) if v in tags]
        if not used:
            continue
        if not isinstance(s.exp, Index) or used != [s.exp.array]:
            if any(v in tags for v in operands(s.exp)):
                return False
            continue
        if not places.still_there(order, writes, exp, region.index, s.exp.axes, s.exp.array is after):
            return False
    return True


def frozen(body: Body, root: Var, final: Var) -> Body:
    """The body with the final array for every version of `root`."""
    new, versions = _without(body, root)
    return Substitution(dict.fromkeys(versions.values(), final)).body(new)


# -- writes of the forward body


def _writes(body: Body, root: Var, result: Atom) -> list[tuple[Axis, ...]]:
    versions, found = {root}, list[tuple[Axis, ...]]()

    def walk(body: Body) -> None:
        for s in body.stms:
            match s.exp:
                case Update(array=array, axes=axes) if array in versions:
                    versions.add(s.vars[0])
                    found.append(axes)
                case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                    carried = [j for j, a in enumerate(inits) if a in versions]
                    versions.update(x for j in carried for x in (params[j], s.vars[j]))
                    walk(inner)
                    if any((inner.results[j] in versions) != (j in carried) for j in range(len(params))):
                        raise _Moved
                case If(then=then, orelse=orelse):
                    walk(then)
                    walk(orelse)
                    for v, *ends in zip(s.vars, then.results, orelse.results, strict=True):
                        inside = [e in versions for e in ends]
                        if any(inside) and not all(inside):
                            raise _Moved
                        if all(inside):
                            versions.add(v)
                case Index() | Apply():
                    pass
                case Sweep(arrays=arrays, lam=lam):
                    if any(a in versions for a in arrays):
                        raise _Moved
                    walk(lam.body)
                case exp if any(v in versions for v in free_in_exp(exp)):
                    raise _Moved
                case _:
                    pass

    walk(body)
    if result not in versions:
        raise _Moved
    return found


# -- the backward pass without the versions


def _without(body: Body, root: Var) -> tuple[Body, dict[Var, Var]]:
    """The body without the steps from one version of an array to the next, and a name for each version."""
    names = {root: Var(root.name, root.type)}

    def name(v: Var) -> None:
        names[v] = Var(v.name, v.type)

    def walk(body: Body, drop: Sequence[int] = ()) -> Body:
        stms = [new for s in body.stms if (new := step(s)) is not None]
        return Body(tuple(stms), tuple(r for j, r in enumerate(body.results) if j not in drop))

    def step(s: Stm) -> Stm | None:
        exp = s.exp
        match exp:
            case Apply():
                return s
            case Update(array=array) if array in names:
                name(s.vars[0])
                return None
            case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                gone = [j for j, a in enumerate(inits) if a in names]
                for j in gone:
                    name(params[j])
                    name(s.vars[j])
                new = walk(inner, gone)
                if any(inner.results[j] not in names for j in gone):
                    raise _Moved
                if any(r in names for j, r in enumerate(inner.results) if j not in gone):
                    raise _Moved
                vars, left, starts = (
                    tuple(x for j, x in enumerate(xs) if j not in gone) for xs in (s.vars, params, inits)
                )
                if isinstance(exp, For):
                    return Stm(vars, For(exp.index, exp.bound, left, starts, new, exp.hints), s.span)  # type: ignore[arg-type]
                return Stm(vars, While(left, starts, walk(exp.cond), new, exp.hints), s.span)  # type: ignore[arg-type]
            case If(cond=cond, then=then, orelse=orelse):
                first, second = walk(then), walk(orelse)
                gone = [j for j, r in enumerate(first.results) if r in names or second.results[j] in names]
                if any(not (first.results[j] in names and second.results[j] in names) for j in gone):
                    raise _Moved
                for j in gone:
                    name(s.vars[j])
                keep = [j for j in range(len(s.vars)) if j not in gone]
                arms = [Body(arm.stms, tuple(arm.results[j] for j in keep)) for arm in (first, second)]
                return Stm(tuple(s.vars[j] for j in keep), If(cond, arms[0], arms[1]), s.span)
            case _:
                return Stm(s.vars, map_regions(exp, walk), s.span)

    new = walk(body)
    return Substitution(names).body(new), names


# -- places


@dataclass
class Order:
    """The axis along which the loop writes: c*i + r for some r."""

    axis: int
    c: int
    rests: list[Position]


@dataclass
class Places:
    """Forms of positions, and upper bounds of loop indices, which are at least 0."""

    known: Forms
    forms: dict[Var, Position] = field(default_factory=dict)
    bounds: dict[Var, Position] = field(default_factory=dict)
    sizes: dict[Var, Position] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forms.update(self.known)

    def learn(self, body: Body) -> None:
        for s in all_stms(body):
            match s.exp:
                case Apply(op="max", args=(size, Const(value=0))) if s.vars[0].type == I64:
                    self.sizes[s.vars[0]] = form_of(size, self.forms)  # where a loop of that size runs
                case Apply() if s.vars[0].type == I64 and (form := combined(s.exp, self.forms)) is not None:
                    self.forms[s.vars[0]] = form
                case For(index=index, bound=bound):
                    self.bounds[index] = self._size(bound).shifted(-1)
                case Sweep(width=width, lam=lam):
                    self.bounds[lam.params[0]] = self._size(dim_atom(width)).shifted(-1)
                case _:
                    pass

    def _size(self, bound: Atom) -> Position:
        return self.sizes[bound] if bound in self.sizes and isinstance(bound, Var) else form_of(bound, self.forms)

    def order(self, exp: For, writes: Sequence[tuple[Axis, ...]]) -> Order | None:
        inside = {exp.index, *exp.params, *(v for s in all_stms(exp.body) for v in s.vars)}
        inside |= {s.exp.index for s in all_stms(exp.body) if isinstance(s.exp, For)}
        for axis in range(len(writes[0])):
            at = [w[axis] for w in writes]
            if not all(isinstance(a, At) and not a.wrap for a in at):
                continue
            forms = [form_of(a.index, self.forms) for a in at if isinstance(a, At)]
            c = forms[0].coefficient(exp.index)
            rests = [f.without(exp.index) for f in forms]
            same = all(
                f.coefficient(exp.index) == c and (r - rests[0]).is_constant for f, r in zip(forms, rests, strict=True)
            )
            if c and same and not rests[0].symbols & inside:
                return Order(axis, c, rests)
        return None

    def still_there(
        self,
        order: Order | None,
        writes: Sequence[tuple[Axis, ...]],
        exp: For,
        index: Var,
        axes: Sequence[Axis],
        after: bool,
    ) -> bool:
        """Whether a cell read in iteration `index` is not written any more: Note [Still there]."""
        if any(isinstance(a, At) and a.wrap for a in axes):
            return False
        if order is not None and self._behind(order, index, axes[order.axis], after):
            return True
        return any(self._elsewhere(axis, a, writes, exp) for axis, a in enumerate(axes))

    def _behind(self, order: Order, index: Var, axis: Axis, after: bool) -> bool:
        position = self._last(axis) if order.c > 0 else self._first(axis)
        if position is None:
            return False
        sign = 1 if order.c > 0 else -1
        reached = symbol(index).shifted(1 if after else 0).scaled(order.c)
        return all(self._negative((position - reached - r).scaled(sign)) for r in order.rests)

    def _first(self, axis: Axis) -> Position | None:
        if isinstance(axis, At):
            return form_of(axis.index, self.forms)
        return form_of(axis.start, self.forms) if _steps_by_one(axis) else None

    def _last(self, axis: Axis) -> Position | None:
        if isinstance(axis, At):
            return form_of(axis.index, self.forms)
        if not _steps_by_one(axis):
            return None
        return form_of(axis.start, self.forms) + form_of(dim_atom(axis.length), self.forms).shifted(-1)

    def _negative(self, form: Position) -> bool:
        """Below 0, whatever the loop indices in it are."""
        for _ in range(8):
            above = [v for (v,), c in form.terms.items() if c > 0]
            if not above:
                break
            if above[0] not in self.bounds:
                return False
            factor = form.coefficient(above[0])
            form = form.without(above[0]) + self.bounds[above[0]].scaled(factor)
        return form.const < 0 and all(c < 0 and v in self.bounds for (v,), c in form.terms.items())

    def _elsewhere(self, axis: int, read: Axis, writes: Sequence[tuple[Axis, ...]], exp: For) -> bool:
        """Whether all writes are, on this axis, at places that do not move, and the read at others."""
        inside = {exp.index, *exp.params, *(v for s in all_stms(exp.body) for v in s.vars)}
        inside |= {s.exp.index for s in all_stms(exp.body) if isinstance(s.exp, For)}
        if not isinstance(read, At):
            return False
        place = form_of(read.index, self.forms)
        for w in writes:
            a = w[axis]
            if not isinstance(a, At) or a.wrap:
                return False
            form = form_of(a.index, self.forms)
            gap = place - form
            if form.symbols & inside or not (self._negative(gap) or self._negative(gap.scaled(-1))):
                return False
        return True


def _steps_by_one(axis: Range) -> bool:
    return isinstance(axis.step, Const) and axis.step.value == 1
