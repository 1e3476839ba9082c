"""Sums that are gathered in cells which have just been set to zero are written there.

Takes and gives verified Core; runs before `gather`, whose sweeps it writes. A box of cells is set to zero and the updates
of a nest are then added around it: the adjoint of a stencil that writes into another array, step by step.

Note [Zeros late]
With `v[1:-1] = f(u)` and u and v exchanged after each step, the iteration backwards adds to one adjoint and sets the inside of the
other to zero, for the next iteration to add to. That may as well set it to zero itself: an array of zeros, which the
loop starts with, is not changed by it, and behind the loop it is done once more. Then zeros and sums meet.

Note [Written sums]
Along an axis, a nest sets the cells i + o to zero for i = 0 .. n-1, and one over the same i adds at i + c for c from `least`
to `most`. With o between these, the cells that are gathered without tests (Note [Gathering]) are all zero. Their sums are
written, as 0 + sum, and only the others of the box, `most` - o in front and o - `least` at the end, are set to zero.
What arrives there and around the box is added as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Body, Exp, For, Full, Function, Lambda, Stm, Sweep, UpdateAcc, WithAcc
from tapeless.ir.types import I64, Atom, Type, Var, dim_atom, i64, zero_of
from tapeless.ir.walk import Substitution, all_stms, free_in_body, free_in_exp, in_regions, map_function, with_stms
from tapeless.passes.accumulators.gather import Gatherer, Group, Rest, groups_of, is_cheap
from tapeless.passes.analysis.distances import distance
from tapeless.passes.tidy.algebra import is_zero

PROGRAMS = ("heat'",)  # all of the collection that it changes: `tests/passes/test_firings.py`


def write_over_zeros(function: Function) -> Function:
    if not any(isinstance(s.exp, WithAcc) for s in all_stms(function.body)):
        return function
    return map_function(function, _body)


def _body(body: Body) -> Body:
    zeros = {s.vars[0] for s in body.stms if isinstance(s.exp, Full) and s.exp.value and is_zero(s.exp.value, 1.0)}
    stms: list[Stm] = []
    for stm in body.stms:
        stm = in_regions(stm, _body)
        late = _zeroing_late(stm, stm.exp, zeros) if isinstance(stm.exp, For) else None
        stms.extend(late or [stm])
    return _written(with_stms(body, stms))


# -- boxes of zeros


@dataclass(frozen=True)
class Box:
    """Cells of an array that a nest sets to zero: for each axis a width and an offset, or a position."""

    array: Var
    axes: tuple[tuple[Atom, int] | Atom, ...]


def _box(exp: Exp) -> Box | None:
    if not isinstance(exp, WithAcc) or len(exp.arrays) != 1 or exp.lam.params[0].type.acc != "set":
        return None
    widths: dict[Var, Atom] = {}
    defs: dict[Var, Exp] = {}
    body = exp.lam.body
    while True:
        if body.results:
            return None
        rest = [s for s in body.stms if not isinstance(s.exp, Apply)]
        defs.update({s.vars[0]: s.exp for s in body.stms if isinstance(s.exp, Apply)})
        match [s.exp for s in rest]:
            case [Sweep(width, (), lam, (), ())]:
                widths[lam.params[0]] = dim_atom(width)
                body = lam.body
            case [For(index, bound, (), (), inner)]:
                widths[index] = bound
                body = inner
            case [UpdateAcc(acc, axes, value)] if acc is exp.lam.params[0] and is_zero(value, 1.0):
                break
            case _:
                return None
    found: list[tuple[Atom, int] | Atom] = []
    met: set[Var] = set()
    for axis in axes:
        if not isinstance(axis, At) or axis.wrap or axis.check:
            return None
        place = distance(axis.index, defs)
        if place is not None and place[0] in widths:
            met.add(place[0])
            found.append((widths[place[0]], place[1]))
        elif axis.index in defs:
            return None
        else:
            found.append(axis.index)
    inner_names = {*widths, *defs}
    whole = len(met) == len(widths) == sum(isinstance(a, tuple) for a in found)
    return Box(exp.arrays[0], tuple(found)) if whole and not any(w in inner_names for w in widths.values()) else None


# -- Note [Zeros late]


def _zeroing_late(stm: Stm, exp: For, zeros: set[Var]) -> list[Stm] | None:
    """The loop with zeros set at the start of an iteration, where sums are written over them, and what follows it."""
    bound = {exp.index, *exp.params, *(v for s in exp.body.stms for v in s.vars)}
    for k, (param, init, result) in enumerate(zip(exp.params, exp.inits, exp.body.results, strict=True)):
        made = next((s for s in exp.body.stms if s.vars == (result,)), None)
        box = _box(made.exp) if made is not None and init in zeros else None
        if made is None or box is None or not _is_carried_over(exp, k, box.array):
            continue
        if any(v in bound for v in free_in_exp(made.exp) if v is not box.array):
            continue
        clean, raw = Var(param.name, param.type), Var(stm.vars[k].name, stm.vars[k].type)
        inner = Substitution({param: clean}).body(Body(tuple(s for s in exp.body.stms if s is not made), ()))
        first = _set_again(made, box.array, param, clean)
        results = tuple(box.array if j == k else r for j, r in enumerate(exp.body.results))
        body = Body((first, *inner.stms), results)
        written = _written(body)
        if written is not body:
            vars = tuple(raw if j == k else v for j, v in enumerate(stm.vars))
            last = _set_again(made, box.array, raw, stm.vars[k])
            return [Stm(vars, replace(exp, body=written), stm.span), last]
    return None


def _is_carried_over(exp: For, k: int, source: Var) -> bool:
    """Is result k, made of the parameter `source`, needed for nothing else, and is neither parameter another result?"""
    result, param = exp.body.results[k], exp.params[k]
    users = [s for s in exp.body.stms if result in free_in_exp(s.exp)]
    given = [r for r in exp.body.results if r in (result, source, param)]
    return source in exp.params and source is not param and source.type == param.type and not users and len(given) == 1


def _set_again(zeroing: Stm, array: Var, other: Var, result: Var) -> Stm:
    """The same cells of another array."""
    return Stm((result,), Substitution({array: other}, refresh=True).stm(zeroing).exp, zeroing.span)


# -- Note [Written sums]


def _written(body: Body) -> Body:
    stms: list[Stm] = list(body.stms)
    for zeroing in body.stms:
        box = _box(zeroing.exp)
        users = [s for s in stms if zeroing.vars[0] in free_in_exp(s.exp)] if box is not None else []
        if box is None or len(users) != 1 or zeroing.vars[0] in body.results:
            continue
        new = _sums_in_box(users[0], zeroing, box)
        if new is not None:
            at = stms.index(users[0])
            stms[at : at + 1] = new
            stms.remove(zeroing)
    return with_stms(body, stms)


def _sums_in_box(stm: Stm, zeroing: Stm, box: Box) -> list[Stm] | None:
    """The zeros with the sums written among them, and the statement that adds the others."""
    exp = stm.exp
    if not isinstance(exp, WithAcc) or exp.arrays.count(zeroing.vars[0]) != 1:
        return None
    acc = exp.lam.params[exp.arrays.index(zeroing.vars[0])]
    users = [s for s in exp.lam.body.stms if acc in free_in_exp(s.exp)]
    if len(users) != 1 or not isinstance(users[0].exp, Sweep):
        return None
    nest = users[0]
    groups = [g for g in groups_of(users[0].exp) if g.acc is acc]
    offsets = _offsets(groups[0], box) if len(groups) == 1 else None
    if offsets is None or not all(is_cheap(t.value, groups[0].nest) for t in groups[0].terms):
        return None
    b = Builder(stm.span)
    zeros_acc = Var("zeros", Type(acc.type.dtype, acc.type.shape, "set"))
    with b.region() as fill:
        Filler(b, groups[0], offsets, zeros_acc).run()
    own = {zeroing.vars[0], box.array, *exp.lam.params, *(v for s in exp.lam.body.stms for v in s.vars)}
    if any(v in own for v in free_in_body(Body(tuple(fill), ()))):
        return None
    written = Stm(zeroing.vars, WithAcc((box.array,), Lambda((zeros_acc,), Body(tuple(fill), ()))), zeroing.span)
    left, _ = Rest({acc}, []).without(nest, users[0].exp)
    with b.region() as ends:
        Gatherer(b, groups[0], {}, tests_only=True).run()
    at = exp.lam.body.stms.index(nest)
    inner = (*exp.lam.body.stms[:at], left, *ends, *exp.lam.body.stms[at + 1 :])
    lam = Lambda(exp.lam.params, Body(inner, exp.lam.body.results))
    return [written, Stm(stm.vars, replace(exp, lam=lam), stm.span)]


def _offsets(group: Group, box: Box) -> list[int] | None:
    """Of the box, by depth of the nest, where it has the nest's widths and lies between the offsets of its updates."""
    found: dict[int, int] = {}
    for place, axis in zip(group.places, box.axes, strict=True):
        if isinstance(place, int) and isinstance(axis, tuple):
            reached = [t.offsets[place] for t in group.terms]
            width, found[place] = axis
            if width != dim_atom(group.nest[place].width) or not min(reached) <= found[place] <= max(reached):
                return None
        elif isinstance(place, int) or isinstance(axis, tuple) or place != axis:
            return None
    return [found[k] for k in range(len(group.nest))]


class Filler(Gatherer):
    """Writes the cells of a box: sums where every offset reaches, zeros elsewhere."""

    def __init__(self, b: Builder, group: Group, offsets: Sequence[int], acc: Var) -> None:
        super().__init__(b, group, {})
        self.offsets, self.acc = offsets, acc

    def run(self) -> None:
        self._fill([], True)

    def _fill(self, cell: list[Atom], reached: bool) -> None:
        k = len(cell)
        zero = zero_of(self.acc.type.dtype)
        if k == len(self.group.nest):
            total: Atom = zero
            if reached:
                total = self.b.let(Type(zero.dtype), Apply("add", (zero, self.sum_at(cell, None))), "sum")
            self.b.effect(UpdateAcc(self.acc, self.axes(cell), total))
            return
        width, offset = self.group.nest[k].width, self.offsets[k]
        reach = self.most[k] - self.least[k]
        if not reached or reach == 0:
            self.sweep(width, lambda i: self._fill([*cell, self.plus(i, offset)], reached))
            return
        n = dim_atom(width)
        middle = self.scalar("max", self.scalar("sub", n, i64(reach)), i64(0))

        def at_end(i: Var) -> None:
            in_front = self.test("lt", i, i64(self.most[k] - offset))
            at = self.b.let(I64, Apply("select", (in_front, i, self.scalar("add", i, middle))), "at")
            self._fill([*cell, self.plus(at, offset)], False)

        self.sweep(middle, lambda i: self._fill([*cell, self.plus(i, self.most[k])], True))
        self.few(self.scalar("min", n, i64(reach)), at_end)
