"""Ways to run a loop forwards and back. A `Way` emits both; in between it has what the forward loop has kept.

`ad.recovery.kept` follows a plan. `Again` runs from the start for each
iteration. `Choice` holds two ways of which sizes at run time choose one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tapeless.ad.recovery.by.undo import Stack
from tapeless.ad.recovery.iteration import Region, trips
from tapeless.ad.recovery.plan import Plan
from tapeless.ad.recovery.sizes import bytes_of
from tapeless.ad.reverse import Reverse
from tapeless.ir.core import Apply, Body, For, Full, If, Lambda, Stm
from tapeless.ir.hints import NONE, Hints, How, Recovery
from tapeless.ir.quiet import quiet
from tapeless.ir.types import I64, Atom, Dim, Type, Var, atom_dim, dim_atom, i64
from tapeless.ir.walk import refresh_lambda

Found = tuple[dict[int, Atom], dict[Var, Atom]]  # adjoints of the initial values, and of scalars of outside


class Way(ABC):
    """`active` are the numbers of the carried values with adjoints, `accs` the accumulators of the region."""

    def __init__(self, reverse: Reverse, stm: Stm, exp: For, region: Region, accs: dict[Var, Var]) -> None:
        self.reverse, self.stm, self.exp, self.region, self.accs = reverse, stm, exp, region, accs
        self.restored: dict[int, Var] = {}  # by number: carried arrays, put back to how they were before the loop

    @property
    def active(self) -> list[int]:
        return list(self.region.ends)

    @property
    def scalars(self) -> list[Var]:
        return self.region.scalars

    @property
    def keeps(self) -> bool:
        """Whether the forward loop leaves anything for the backward pass."""
        return False

    @abstractmethod
    def kept_types(self) -> list[Type]:
        """Of one iteration, in slots."""

    def length(self) -> Dim:
        """How many of them are kept."""
        return trips(self.reverse, self.exp.bound)

    def stacks(self) -> list[Stack]:
        """What is kept besides."""
        return []

    def sized(self, when: Atom | None = None) -> None:
        """To be called once, in front of the loop: emits the sizes of stacks. They are 0 unless `when` holds."""
        reverse = self.reverse
        for stack in self.stacks():
            cells = stack.total if when is None else reverse.emit("select", when, stack.total, 0)
            reverse.b.bind([stack.cells], Apply("identity", (cells,)))
            reverse.sizes.add(stack.cells)

    def total_bytes(self) -> Atom:
        """Of all that is kept."""
        emit, stacks = self.reverse.emit, self.stacks()
        slots = emit("mul", dim_atom(self.length()), bytes_of(emit, self.kept_types()))
        return self._with_stacks(slots, [s.total for s in stacks])

    def most_bytes(self) -> Atom:
        """That one iteration keeps at the most."""
        return self._with_stacks(bytes_of(self.reverse.emit, self.kept_types()), [s.most for s in self.stacks()])

    def _with_stacks(self, total: Atom, cells: Sequence[Atom]) -> Atom:
        emit = self.reverse.emit
        for stack, count in zip(self.stacks(), cells, strict=True):
            total = emit("add", total, emit("mul", count, bytes_of(emit, stack.types)))
        return total

    @property
    def steps(self) -> Atom:
        """How often the backward pass goes around."""
        return dim_atom(trips(self.reverse, self.exp.bound))

    @abstractmethod
    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        """Emits the loop, binding its results; what it keeps, `length` of each (all, unless said)."""

    @abstractmethod
    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        """Emits the backward pass. `finals`: the loop's results, where they have other names here."""

    def countdown(
        self,
        ends: Mapping[int, Atom],
        carried: Sequence[Var],
        inits: Sequence[Atom],
        iteration: Callable[[Var], Sequence[Atom]],
    ) -> tuple[Found, Sequence[Var]]:
        """The loop backwards. `iteration` emits one, given how many were before it, and gives the next values of
        `carried`; what these end as comes second.
        """
        b, emit, region = self.reverse.b, self.reverse.emit, self.region
        totals = [Var(f"{v.name}_adj", v.type) for v in region.scalars]
        step, count = Var("j", I64), len(region.ends)
        with b.region() as stms:
            nexts = iteration(step)
            found = region.live.results
            sums = [emit("add", t, s) for t, s in zip(totals, found[count:], strict=True)]
        params = (*region.ends.values(), *totals, *carried)
        starts = (*ends.values(), *(emit.zero(t.type) for t in totals), *inits)
        body = Body(tuple(stms), (*found[:count], *sums, *nexts))
        given = b.bind([Var(p.name, p.type) for p in params], For(step, self.steps, params, starts, body))
        adjoints: Found = (
            dict(zip(region.ends, given, strict=False)),
            dict(zip(region.scalars, given[count:], strict=False)),
        )
        return adjoints, given[count + len(totals) :]

    def _bind_index(self, step: Var) -> None:
        last = self.reverse.emit("sub", self.exp.bound, 1)
        self.reverse.b.bind([self.region.index], Apply("sub", (last, step)))


class Again(Way):
    """Running from the start, for each iteration: no memory, quadratic work."""

    def __init__(self, reverse: Reverse, stm: Stm, exp: For, region: Region, plan: Plan, accs: dict[Var, Var]) -> None:
        super().__init__(reverse, stm, exp, region, accs)
        self.plan = plan

    def kept_types(self) -> list[Type]:
        return []

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        exp = replace(
            self.exp, body=self.reverse.without_updates(self.exp.body), hints=self.plan.hints(Recovery(How.recompute))
        )
        self.reverse.b.bind(vars, exp)
        return []

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        def iteration(step: Var) -> list[Atom]:
            self._bind_index(step)
            advance(self.reverse, self.exp, i64(0), self.region.index, self.exp.inits, self.region.params)
            for s in self.region.live.stms:
                self.reverse.b.add(s)
            return []

        return self.countdown(ends, [], [], iteration)[0]


def advance(
    reverse: Reverse,
    exp: For,
    first: Atom,
    last: Atom,
    inits: Sequence[Atom],
    vars: Sequence[Var],
    hints: Hints = NONE,
    again: bool = True,
) -> None:
    """Iterations `first` to before `last`, from these values, forwards only; binds the values they lead to.

    The first time (not `again`) with their tests and output.
    """
    b = reverse.b
    body = reverse.without_updates(exp.body)
    lam = Lambda((exp.index, *exp.params), quiet(body) if again else body)
    lam = reverse.fresh(lam) if again else refresh_lambda(lam)
    r = Var(exp.index.name, I64)
    with b.region() as stms:
        b.bind([lam.params[0]], Apply("add", (first, r)))
        for s in lam.body.stms:
            b.add(s)
    count = reverse.emit("sub", last, first)
    b.bind(vars, For(r, count, lam.params[1:], tuple(inits), Body(tuple(stms), lam.body.results), hints))


class Choice(Way):
    """Two ways, the first where `cond` holds."""

    def __init__(self, cond: Atom, first: Way, second: Way) -> None:
        super().__init__(first.reverse, first.stm, first.exp, first.region, first.accs)
        self.cond, self.first, self.second = cond, first, second
        self.lengths: list[Dim] = []

    def sized(self, when: Atom | None = None) -> None:
        emit = self.reverse.emit
        other = emit("not", self.cond)
        for c, way in ((self.cond, self.first), (other, self.second)):
            taken = c if when is None else emit("and", c, when)
            way.sized(taken)
            self.lengths.append(atom_dim(emit("select", taken, dim_atom(way.length()), 0)))

    @property
    def keeps(self) -> bool:
        return True

    def kept_types(self) -> list[Type]:
        return []

    def forwards(self, vars: Sequence[Var], length: Dim | None = None) -> list[Var]:
        b = self.reverse.b
        kept: list[list[Var]] = []
        arms: list[tuple[list[Stm], list[Var]]] = []
        for way, length in zip((self.first, self.second), self.lengths, strict=True):
            mine = [Var(v.name, v.type) for v in vars]
            with b.region() as stms:
                kept.append(way.forwards(mine, length))
            arms.append((stms, mine))
        bodies = []
        for which, (stms, mine) in enumerate(arms):
            with b.region() as blanks:
                others = [b.let(v.type, Full(v.type.shape, None, kept=True), v.name) for v in kept[1 - which]]
            results = [*kept[0], *others] if which == 0 else [*others, *kept[1]]
            bodies.append(Body((*stms, *blanks), (*mine, *results)))
        outside = [Var(v.name, v.type) for many in kept for v in many]
        b.bind((*vars, *outside), If(self.cond, bodies[0], bodies[1]))
        self.split = len(kept[0])
        return outside

    def backwards(self, kept: Sequence[Var], ends: Mapping[int, Atom], finals: Sequence[Var] = ()) -> Found:
        b = self.reverse.b
        parts = (kept[: self.split], kept[self.split :])
        bodies = []
        for way, mine in zip((self.first, self.second), parts, strict=True):
            with b.region() as stms:
                starts, sums = way.backwards(mine, ends, finals or self.stm.vars)
            bodies.append(Body(tuple(stms), (*(starts[k] for k in ends), *(sums[v] for v in self.scalars))))
        names = [*(f"{self.exp.params[k].name}_adj" for k in ends), *(f"{v.name}_adj" for v in self.scalars)]
        vars = [Var(name, r.type) for name, r in zip(names, bodies[0].results, strict=True)]
        found = b.bind(vars, If(self.cond, bodies[0], bodies[1]))
        return dict(zip(ends, found, strict=False)), dict(zip(self.scalars, found[len(ends) :], strict=True))
