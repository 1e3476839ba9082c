"""Straight code that runs forwards, and later once more for its backward pass: what the first run keeps for the second.

`forwards` emits a body and gives a `Kept`; `again` emits it once more in another scope, with what was kept.

Note [Kept values]
Running code again costs the most where it divides or calls functions. Such scalars, and the slopes there, are results
of the first run, and are not computed again. Those that the backward pass does not need are dead code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tapeless.ad.reverse import Back, Reverse, with_span
from tapeless.ir.core import Apply, Body, Stm
from tapeless.ir.quiet import quiet
from tapeless.ir.rules import Rules
from tapeless.ir.types import Atom, Const, Var
from tapeless.ops.rows import CHEAP
from tapeless.ops.table import TABLE, unbounded

Special = Callable[[Stm], Back | None]
Resume = Callable[[Reverse, Stm, Sequence[Atom]], Back]
KEEPS: Rules[type, Callable[[Reverse, Stm], tuple[list[Atom], Resume] | None]] = Rules()
# A rule emits a statement that is not run again; it gives what it keeps, the results first, and how it goes back then.
keeps = KEEPS.of


@dataclass
class Kept:
    """Variables of the first run, and those that stand for them in the second."""

    body: Body  # to be run again
    stms: tuple[Stm, ...] = ()  # to be run forwards
    inside: list[Atom] = field(default_factory=list)
    outside: list[Var] = field(default_factory=list)
    values: dict[int, Atom] = field(default_factory=dict)  # by the number of the statement in `body`
    slopes: dict[int, dict[int, Atom]] = field(default_factory=dict)  # and by that of the operand
    wholes: dict[int, tuple[Resume, list[Atom]]] = field(default_factory=dict)  # statements that are not run again

    def keep(self, value: Atom) -> Atom:
        """The value as it is seen outside."""
        if isinstance(value, Const):
            return value
        self.inside.append(value)
        self.outside.append(Var(value.name, value.type))
        return self.outside[-1]

    def named(self, names: Mapping[Var, Var]) -> Kept:
        """The same with other variables for the second run."""
        values = {k: _named(v, names) for k, v in self.values.items()}
        slopes = {k: {n: _named(v, names) for n, v in found.items()} for k, found in self.slopes.items()}
        wholes = {k: (resume, [_named(a, names) for a in atoms]) for k, (resume, atoms) in self.wholes.items()}
        return Kept(self.body, self.stms, self.inside, [names[v] for v in self.outside], values, slopes, wholes)


def _named(a: Atom, names: Mapping[Var, Var]) -> Atom:
    return names.get(a, a) if isinstance(a, Var) else a


def forwards(reverse: Reverse, body: Body) -> Kept:
    b, kept = reverse.b, Kept(quiet(body, shown=True))
    with b.region() as stms:
        whole: dict[Var, tuple[list[Atom], Resume]] = {}
        for s in body.stms:
            found = KEEPS[type(s.exp)](reverse, s) if type(s.exp) in KEEPS else None
            if found is None:
                b.add(s)
            else:
                whole[s.vars[0]] = found
        for k, s in enumerate(kept.body.stms):
            if s.vars and s.vars[0] in whole:
                atoms, resume = whole[s.vars[0]]
                kept.wholes[k] = resume, [kept.keep(a) for a in atoms]
            if not _worth_keeping(s):
                continue
            v, e = s.vars[0], s.exp
            assert isinstance(e, Apply)
            kept.values[k] = kept.keep(v)
            if reverse.active(v):
                slopes = {
                    n: reverse.emit.partial(e.op, n, v, e.args) for n, a in enumerate(e.args) if reverse.active(a)
                }
                kept.slopes[k] = {n: kept.keep(slope) for n, slope in slopes.items() if slope is not None}
    kept.stms = tuple(stms)
    return kept


def _worth_keeping(s: Stm) -> bool:
    if not isinstance(s.exp, Apply) or TABLE[s.exp.op].extremum or not s.vars[0].type.dtype.is_float:
        return False
    return TABLE[s.exp.op].cost > CHEAP and all(a.type.dtype.is_float for a in s.exp.args)


def again(inner: Reverse, kept: Kept, body: Body, special: Special = lambda stm: None) -> list[tuple[Stm, Back]]:
    """`body` is the one of `kept`, or a copy of it. `special` may do without a statement, and say how it goes back."""
    backs: list[tuple[Stm, Back]] = []
    inner.look_at(body)

    def sloped(s: Stm, slopes: dict[int, Atom]) -> None:
        adj = inner.adjoints.take(s.vars[0])
        if adj is not None and isinstance(s.exp, Apply):
            guarded = unbounded(s.exp.op, s.exp.args) or s.vars[0] in inner.chosen
            for n, slope in slopes.items():
                inner.add(s.exp.args[n], inner.emit.slope_times(slope, adj, guarded))

    for k, s in enumerate(body.stms):
        back = special(s)
        if back is not None:
            backs.append((s, back))
        elif k in kept.wholes:
            resume, atoms = kept.wholes[k]
            for v, a in zip(s.vars, atoms, strict=False):
                inner.b.alias(v, a)
            backs.append((s, resume(inner, s, atoms[len(s.vars) :])))
        elif k in kept.values:
            inner.b.bind(s.vars, Apply("identity", (kept.values[k],)))
            slopes = kept.slopes.get(k, {})
            backs.append((s, lambda s=s, slopes=slopes: sloped(s, slopes)))  # type: ignore[misc]
        else:
            with_span(inner.b, s, lambda s=s: backs.append((s, inner.stm(s))))  # type: ignore[misc]
    return backs
