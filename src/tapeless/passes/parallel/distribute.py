"""Maps whose elements do several parallel things become several maps, for targets that run nests of maps as one.

Takes and gives a verified function; looks at sweeps that the host runs, not at those inside of others. On a GPU a row of
a matrix is too much for one thread, and neighbouring threads would read cells that lie apart. What only the host can do is
a part of its own, too.

Note [Distribution]
The statements of an element are cut where a map over many cells, or a product, stands: each of these is a sweep of its
own, and so is all that comes between two of them. What a later part needs of an earlier one is kept in an array with a row
for each element; numbers and views that cost nothing are made again. An element whose arrays have sizes of its own stays
whole. Each part is a nest that runs over all cells of all elements. An array that is added to an accumulator is added cell
by cell, by such a nest too. An accumulator that each element opens for a map of its own is one for all of them, with a row
for each element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from tapeless.ir.core import (
    Apply,
    At,
    Axis,
    Body,
    Check,
    Copy,
    Full,
    Function,
    Hist,
    Index,
    Lambda,
    Library,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.effects import effects_in
from tapeless.ir.span import Span
from tapeless.ir.types import I64, Type, Var
from tapeless.ir.walk import all_stms, free_in_body, in_regions, map_function, refresh_lambda, type_vars, with_stms
from tapeless.ops.table import TABLE
from tapeless.passes.analysis.free import is_free

WIDE = 32  # cells of a map that is worth it


def distribute(function: Function) -> Function:
    return map_function(function, _body)


def _body(body: Body, inside: AbstractSet[Var] = frozenset()) -> Body:
    """`inside`: variables of elements around."""
    return with_stms(body, [new for stm in body.stms for new in _stm(stm, inside)])


def _stm(stm: Stm, inside: AbstractSet[Var]) -> Sequence[Stm]:
    if isinstance(stm.exp, Sweep):
        lam = stm.exp.lam
        if not _may_be_cut(stm.exp) or stm.exp.width in inside:
            return (stm,)
        own = {*lam.params, *(v for s in lam.body.stms for v in s.vars)}
        exp = replace(stm.exp, lam=replace(lam, body=_body(_by_cells(_floated(lam.body)), inside | own)))
        stm = stm if exp.lam.body is stm.exp.lam.body else replace(stm, exp=exp)
        return _parts(stm, exp) or (stm,)
    return (stm if isinstance(stm.exp, (Hist, Scatter)) else in_regions(stm, _body),)


def _is_wide(stm: Stm) -> bool:
    match stm.exp:
        case Apply():
            return _is_of_host(stm)
        case Sweep(width=width, reduces=(), scans=(), lam=lam):
            return not isinstance(width, int) or width > WIDE or any(map(_is_of_host, all_stms(lam.body)))
        case Library():
            return bool(stm.vars[0].type.shape)
        case WithAcc(arrays=arrays, lam=lam):
            inner = [s for s in lam.body.stms if not _is_free(s)]
            return (
                len(stm.vars) == len(arrays)
                and len(inner) == 1
                and isinstance(inner[0].exp, Sweep)
                and _is_wide(inner[0])
            )
    return False


def _is_of_host(stm: Stm) -> bool:
    return isinstance(stm.exp, Apply) and TABLE[stm.exp.op].only_host


def _is_free(stm: Stm) -> bool:
    return is_free(stm) and not _is_of_host(stm)


def _floated(body: Body) -> Body:
    """What a region of accumulators computes without them comes before it."""
    return with_stms(body, [new for stm in body.stms for new in _before_accumulators(stm)])


def _before_accumulators(stm: Stm) -> list[Stm]:
    exp = stm.exp
    if not isinstance(exp, WithAcc):
        return [stm]
    inner = _floated(exp.lam.body)
    bound, before, rest = set(exp.lam.params), list[Stm](), list[Stm]()
    for s in inner.stms:
        effects = any(not isinstance(e, UpdateAcc) for e in effects_in((s,)))
        if effects or bound & set(free_in_body(Body((s,), ()))):
            rest.append(s)
            bound |= set(s.vars)
        else:
            before.append(s)
    if not before:
        return [stm]
    return [*before, replace(stm, exp=replace(exp, lam=replace(exp.lam, body=Body(tuple(rest), inner.results))))]


def _by_cells(body: Body) -> Body:
    return with_stms(body, [_spread(s, s.exp) if isinstance(s.exp, UpdateAcc) else s for s in body.stms])


def _spread(stm: Stm, exp: UpdateAcc) -> Stm:
    """Adds an array by a nest of maps."""
    value = exp.value
    if not isinstance(value, Var) or not value.type.shape:
        return stm
    indices = [Var("j", I64) for _ in value.type.shape]
    stms: list[Stm] = []
    axes: list[Axis] = []
    left = iter(indices)
    for axis in exp.axes:
        if isinstance(axis, At):
            axes.append(axis)
            continue
        index, far, at = next(left), Var("t", I64), Var("t", I64)
        stms.append(Stm((far,), Apply("mul", (index, axis.step)), stm.span))
        stms.append(Stm((at,), Apply("add", (far, axis.start)), stm.span))
        axes.append(At(at))
    cell = Var("e", Type(value.type.dtype))
    stms.append(Stm((cell,), Index(value, tuple(At(i) for i in indices)), stm.span))
    stms.append(Stm((), UpdateAcc(exp.acc, tuple(axes), cell), stm.span))
    for index, width in zip(reversed(indices), reversed(value.type.shape), strict=True):
        stms = [Stm((), Sweep(width, (), Lambda((index,), Body(tuple(stms), ()))), stm.span)]
    return stms[0]


@dataclass
class _Element:
    """Of a sweep, on its way into parts."""

    stm: Stm
    exp: Sweep
    kept: dict[Var, Var] = field(default_factory=dict)  # what parts have made: the arrays of it
    out: list[Stm] = field(default_factory=list)

    def lam(
        self, own: Sequence[Stm], results: Sequence[Var], inner: Sequence[Stm] = ()
    ) -> tuple[tuple[Var, ...], Lambda]:
        """Statements, the free ones that they need, and those of a region, as a lambda over the arrays of the sweep and
        those that were kept.
        """
        needed = set(free_in_body(Body((*own, *inner), tuple(results))))
        stms: list[Stm] = []
        for s in reversed(self.exp.lam.body.stms):
            if s in own or (_is_free(s) and any(v in needed and v not in self.kept for v in s.vars)):
                stms.append(s)
                needed |= set(free_in_body(Body((s,), ())))
        body = Body((*reversed(stms), *inner), tuple(results))
        used = free_in_body(body)
        index, *rows = self.exp.lam.params
        taken = {p: a for p, a in zip(rows, self.exp.arrays, strict=True) if p in used}
        taken |= {v: array for v, array in self.kept.items() if v in used}
        return tuple(taken.values()), refresh_lambda(Lambda((index, *taken), body))

    def part(self, own: Sequence[Stm], used: AbstractSet[Var], names: Mapping[Var, Var]) -> None:
        """A sweep of its own, with the results that are used; `names` are given to arrays of them."""
        results = [v for s in own for v in s.vars if v in used]
        arrays, lam = self.lam(own, results)
        vars = [names.get(v) or Var(v.name, Type(v.type.dtype, (self.exp.width, *v.type.shape))) for v in results]
        self.kept.update(zip(results, vars, strict=True))
        self.out += _made(tuple(vars), Sweep(self.exp.width, arrays, lam), self.stm.span)

    def accumulated(self, stm: Stm, exp: WithAcc, names: Mapping[Var, Var]) -> None:
        """An accumulator of each element, as one with a row for each."""
        given = dict(zip(self.exp.lam.params[1:], self.exp.arrays, strict=True))
        for array in exp.arrays:
            if array in given:
                self.kept[array] = given[array]
            elif array not in self.kept:
                made = [s for s in self.exp.lam.body.stms if array in s.vars]
                self.part(made, {array}, {})
        rows = {
            acc: Var(acc.name, Type(acc.type.dtype, (self.exp.width, *acc.type.shape), acc.type.acc))
            for acc in exp.lam.params
        }
        body = _in_rows(exp.lam.body, rows, self.exp.lam.params[0])
        arrays, lam = self.lam((), (), body.stms)
        all_of_it = Body((Stm((), Sweep(self.exp.width, arrays, lam), stm.span),), ())
        vars = [names.get(v) or Var(v.name, Type(v.type.dtype, (self.exp.width, *v.type.shape))) for v in stm.vars]
        whole = WithAcc(tuple(self.kept[a] for a in exp.arrays), Lambda(tuple(rows.values()), all_of_it), exp.slopes)
        self.kept.update(zip(stm.vars, vars, strict=True))
        self.out.append(Stm(tuple(vars), whole, stm.span))


def _made(vars: tuple[Var, ...], exp: Sweep, span: Span) -> list[Stm]:
    """A map that fills its rows, or gives those of an array in another form, is the same of all of it."""
    rows = dict(zip(exp.lam.params[1:], exp.arrays, strict=True))
    match exp.lam.body:
        case Body((Stm((v,), Full(shape=shape, value=value)),), (r,)) if r is v and value not in exp.lam.params:
            return [Stm(vars, Full((exp.width, *shape), value), span)]
        case Body((Stm((v,), Reshape(row, shape)),), (r,)) if r is v and row in rows:
            copy = Var(row.name, rows[row].type)
            return [Stm((copy,), Copy(rows[row]), span), Stm(vars, Reshape(copy, (exp.width, *shape)), span)]
        case Body((Stm((v,), Transpose(row, perm)),), (r,)) if r is v and row in rows:
            copy = Var(row.name, rows[row].type)
            turned = Transpose(copy, (0, *(p + 1 for p in perm)))
            return [Stm((copy,), Copy(rows[row]), span), Stm(vars, turned, span)]
    return [Stm(vars, exp, span)]


def _in_rows(body: Body, rows: Mapping[Var, Var], index: Var) -> Body:
    """With accumulators that have a row for each element, in the place of its own."""

    def in_row(stm: Stm) -> Stm:
        if isinstance(stm.exp, UpdateAcc) and stm.exp.acc in rows:
            update = UpdateAcc(rows[stm.exp.acc], (At(index), *stm.exp.axes), stm.exp.value)
            return replace(stm, exp=update)
        return in_regions(stm, lambda inner: _in_rows(inner, rows, index))

    return with_stms(body, [in_row(s) for s in body.stms])


def _parts(stm: Stm, exp: Sweep) -> list[Stm] | None:
    """Note [Distribution]. None where it stays as it is."""
    body = exp.lam.body
    groups = _groups(body.stms)
    combined = sum(len(r.neutral) for r in (*exp.reduces, *exp.scans))
    if not any(_is_wide(s) for g in groups for s in g):
        return None
    if len(groups) == 1 and not combined and set(body.results) == set(groups[0][-1].vars):
        return None
    direct = {r: v for r, v in zip(body.results[combined:], stm.vars[combined:], strict=True) if isinstance(r, Var)}
    if len(direct) < len(stm.vars) - combined:  # one result twice, or a constant
        return None
    element = _Element(stm, exp)
    end = groups.pop() if not _is_wide(groups[-1][-1]) else []
    by_free = {v for s in body.stms if _is_free(s) for v in free_in_body(Body((s,), ()))}
    for k, group in enumerate(groups):
        later = (*(s for g in groups[k + 1 :] for s in g), *end)
        only = group[0]
        if isinstance(only.exp, WithAcc) and _is_wide(only):
            element.accumulated(only, only.exp, direct)
        else:
            element.part(group, by_free | set(free_in_body(Body(later, body.results))), direct)
    left = [(r, v) for r, v in direct.items() if r not in element.kept]
    if not combined and not end:
        for r, v in left:
            arrays, lam = element.lam((), [r])
            element.out += _made((v,), Sweep(exp.width, arrays, lam), stm.span)
    else:
        values = (*body.results[:combined], *(r for r, _ in left))
        arrays, lam = element.lam(end, [v for v in values if isinstance(v, Var)])
        names = iter(lam.body.results)
        given = tuple(next(names) if isinstance(v, Var) else v for v in values)
        last = Sweep(exp.width, arrays, replace(lam, body=Body(lam.body.stms, given)), exp.reduces, exp.scans)
        element.out.append(Stm((*stm.vars[:combined], *(v for _, v in left)), last, stm.span))
    return element.out


def _may_be_cut(exp: Sweep) -> bool:
    """No array of an element has a size of its own. What a test guards may come in a later part: that does not run."""
    body = exp.lam.body
    if any(not isinstance(e, (UpdateAcc, Check, Index, Update)) for e in effects_in(body.stms)):
        return False
    made = {v for s in body.stms for v in s.vars} | set(exp.lam.params)
    if any(a not in made for s in body.stms if isinstance(s.exp, WithAcc) for a in s.exp.arrays):
        return False  # each element begins with the same array
    return not any(d in made for s in body.stms for v in s.vars for d in type_vars(v.type))


def _groups(stms: Sequence[Stm]) -> list[list[Stm]]:
    """Statements that are not free: those that are wide by themselves, all others together as far as they go. Sums of rows
    are apart from what is added to accumulators: several threads take a row, if they do nothing else.
    """
    groups: list[list[Stm]] = []
    joins = False
    for s in stms:
        if _is_free(s):
            continue
        after_sum = isinstance(s.exp, UpdateAcc) and joins and any(isinstance(t.exp, Sweep) for t in groups[-1])
        if _is_wide(s) or not joins or after_sum:
            groups.append([s])
        else:
            groups[-1].append(s)
        joins = not _is_wide(s)
    return groups
