"""One iteration of a loop, backwards: the region that every recovery of loops runs.

`make_region` differentiates a copy of the body: run again from the values at the start of the iteration, then
backwards. What its live part reads of those values decides what has to come back (`ad.recovery.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tapeless.ad.reverse import Reverse
from tapeless.ir.core import Body, For, Lambda, Sweep
from tapeless.ir.quiet import quiet, unshown
from tapeless.ir.types import Atom, Const, Dim, Type, Var, atom_dim
from tapeless.ir.walk import refresh_lambda
from tapeless.ops.emit import sum_operator
from tapeless.passes.tidy.dce import live_part

NOTHING: Mapping[int, Var] = {}


@dataclass(frozen=True)
class Region:
    """`body` for the index, the values at the start and the adjoints at the end of the iteration.

    Its results are the adjoints at the start, then what scalars of outside get.
    """

    index: Var
    params: tuple[Var, ...]  # values at the start
    ends: dict[int, Var]  # adjoints at the end, by the number of the carried value
    scalars: list[Var]
    body: Body
    again: tuple[Atom, ...]  # results of the iteration run again
    forward: Body  # its part that is run again, with tests and output
    restored: Mapping[Var, Var] = field(default_factory=dict)  # arrays that its backward pass leaves as they were

    @cached_property
    def _live(self) -> tuple[Body, set[Var]]:
        return live_part(self.body)

    @property
    def live(self) -> Body:
        return self._live[0]

    @property
    def needed(self) -> set[int]:
        """The numbers of the carried values whose contents at the start the backward pass reads."""
        return {k for k, p in enumerate(self.params) if p in self._live[1]}

    def copy(self) -> Region:
        """With names of its own."""
        given = (self.index, *self.params, *self.ends.values())
        lam = refresh_lambda(Lambda(given, Body(self.body.stms, (*self.body.results, *self.again))))
        count, at = len(self.body.results), 1 + len(self.params)
        ends = dict(zip(self.ends, lam.params[at:], strict=True))
        body = Body(lam.body.stms, lam.body.results[:count])
        again = lam.body.results[count:]
        return Region(lam.params[0], lam.params[1:at], ends, self.scalars, body, again, Body((), ()))

    @property
    def is_sweep(self) -> bool:
        """Whether adjoints do not change from step to step."""
        results = self.live.results
        return all(results[n] is end for n, end in enumerate(self.ends.values()))


def accumulators_of(reverse: Reverse, exp: For) -> dict[Var, Var]:
    """For the adjoints of arrays of outside that have none yet."""
    arrays = [v for v in reverse.free(exp.body, (exp.index, *exp.params)) if v.type.shape]
    return {
        a: Var(f"{a.name}_acc", Type(a.type.dtype, a.type.shape, "add")) for a in arrays if a not in reverse.scope.accs
    }


def make_region(reverse: Reverse, exp: For, accs: Mapping[Var, Var], trips: Mapping[int, Var] = NOTHING) -> Region:
    """`trips`: how often `while` loops of the body go around, by the number of the statement, where that will be known."""
    b = reverse.b
    lam = reverse.fresh(Lambda((exp.index, *exp.params), exp.body), loud=True)
    index, params = lam.params[0], lam.params[1:]
    ends = {k: Var(f"{p.name}_adj", p.type) for k, p in enumerate(params) if reverse.active(p)}
    scalars = [v for v in reverse.free(lam.body, lam.params) if not v.type.shape]
    inner = reverse.inside(accs)
    known = {id(lam.body.stms[k]): v for k, v in trips.items()}
    inner.scope = replace(inner.scope, looped=True, trips=known)
    with b.region() as stms:
        backs = inner.forward(lam.body)
        forward = Body(tuple(stms), lam.body.results)
        stms[:] = quiet(forward).stms  # the first time it was run with tests
        for k, end in ends.items():
            inner.add(lam.body.results[k], end)
        inner.backward(backs)
        starts = [inner.full_adjoint(params[k]) for k in ends]
        sums = [inner.full_adjoint(v) for v in scalars]
    body = Body(tuple(stms), (*starts, *sums))
    return Region(index, params, ends, scalars, body, lam.body.results, forward, inner.restored)


def state_of(exp: For, needed: set[Var]) -> list[Var]:
    """The carried values that these are computed from, over all iterations."""
    state = set(needed)
    while True:
        results = tuple(r for p, r in zip(exp.params, exp.body.results, strict=True) if p in state)
        _, vars = live_part(quiet(Body(exp.body.stms, results)))
        more = state | {p for p in exp.params if p in vars or any(r is p for r in results)}
        if more == state:
            return [p for p in exp.params if p in state]
        state = more


def trips(reverse: Reverse, bound: Atom) -> Dim:
    """The bound of a loop as a size: never negative."""
    if isinstance(bound, Const):
        return max(0, int(bound.value.real))
    if bound in reverse.sizes:
        return bound
    found = reverse.emit("max", bound, 0, label="trips")
    if isinstance(found, Var):
        reverse.sizes.add(found)
    return atom_dim(found)


def as_sweep(reverse: Reverse, exp: For, region: Region, ends: Mapping[int, Atom]) -> list[Atom]:
    """Iterations that do not see each other, in any order; what scalars of outside get."""
    b, body = reverse.b, unshown(region.live)
    with b.region() as stms:
        for k, end in region.ends.items():
            b.alias(end, ends[k])
        for s in body.stms:
            b.add(s)
    sums = body.results[len(region.ends) :]
    vars = [Var(f"{v.name}_adj", v.type) for v in region.scalars]
    operators = tuple(sum_operator(v.type.dtype) for v in region.scalars)
    lam = Lambda((region.index,), Body(tuple(stms), sums))
    return list(b.bind(vars, Sweep(trips(reverse, exp.bound), (), lam, operators)))
