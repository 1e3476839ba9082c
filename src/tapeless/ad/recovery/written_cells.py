"""The cells of a carried array that an iteration of a loop writes, where they follow from its index alone.

`written_cells` takes a loop and one of its arrays; gives a lambda of the index and the array, as the iteration leaves
it, whose results are those cells and slices. None where the array is made anew, or where the places depend on the
state.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ad.recovery.updates import Step, trace_updates
from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Axis, Body, For, If, Index, Lambda, Range, Stm, Update
from tapeless.ir.types import I64, Atom, Var, dim_atom, i64
from tapeless.ir.walk import all_stms
from tapeless.ops.emit import Emit


def written_cells(exp: For, p: Var) -> Lambda | None:
    steps = trace_updates(exp.body, exp.body.results[exp.params.index(p)], p)
    updates = None if steps is None else _updates(steps, False)
    if not updates:
        return None
    index, array = Var(exp.index.name, I64), Var(p.name, p.type)
    places = _Places(exp, index)
    b = places.b
    with b.region() as stms:
        found = []
        for axes, conditional in updates:
            new = places.axes(axes, conditional, array)
            if new is None:
                return None
            found.append(b.index(array, new))
    return Lambda((index, array), Body(tuple(stms), tuple(found)))


def _updates(steps: Sequence[Step], conditional: bool) -> list[tuple[tuple[Axis, ...], bool]] | None:
    """Their places, and whether they are always reached."""
    found = []
    for step in steps:
        match step.stm.exp:
            case Update(axes=axes):
                found.append((axes, conditional))
            case If():
                for arm in step.arms:
                    inner = _updates(arm, True)
                    if inner is None:
                        return None
                    found += inner
            case _:
                return None
    return found


class _Places:
    """Computes places again, from the index and from outside."""

    def __init__(self, exp: For, index: Var) -> None:
        self.b = Builder()
        self.emit = Emit(self.b)
        self.known: dict[Var, Atom] = {exp.index: index}
        self.above = {v: s for s in exp.body.stms for v in s.vars}
        self.definitions = {v: s for s in all_stms(exp.body) for v in s.vars}
        self.carried = set(exp.params)

    def axes(self, axes: Sequence[Axis], conditional: bool, array: Var) -> list[Axis] | None:
        new: list[Axis] = []
        for a, d in zip(axes, array.type.shape, strict=True):
            match a:
                case At(index=index, wrap=wrap):
                    at = self.atom(index)
                    if at is None:
                        return None
                    if conditional:  # it may lie outside where it is not reached: any cell does then
                        last = self.emit("sub", dim_atom(d), 1)
                        at = self.emit(
                            "max", self.emit("min", at, last), self.emit("neg", dim_atom(d)) if wrap else i64(0)
                        )
                    new.append(At(at, wrap))
                case Range(start=start, length=length, step=step):
                    if conditional or any(self.atom(x) is not x for x in (start, dim_atom(length), step)):
                        return None
                    new.append(a)
        return new

    def atom(self, a: Atom) -> Atom | None:
        """The same number here; None where it depends on the state."""
        if not isinstance(a, Var) or a in self.known:
            return self.known.get(a, a) if isinstance(a, Var) else a
        if a in self.carried:
            return None
        stm = self.definitions.get(a)
        if stm is None:
            return a
        found = self._again(stm)
        if found is not None:
            self.known[a] = found
        return found

    def _again(self, stm: Stm) -> Atom | None:
        v = stm.vars[0]
        match stm.exp:
            case Apply(op=op, args=args):
                given = [self.atom(x) for x in args]
                if any(x is None for x in given):
                    return None
                return self.b.let(v.type, Apply(op, tuple(x for x in given if x is not None)), v.name)
            case Index(array=array, axes=axes) if v in self.above and array not in self.definitions:
                if array in self.carried or not all(isinstance(x, At) for x in axes):
                    return None
                places = [self.atom(x.index) for x in axes if isinstance(x, At)]
                if any(x is None for x in places):
                    return None
                wraps = [x.wrap for x in axes if isinstance(x, At)]
                return self.b.index(array, [At(x, w) for x, w in zip(places, wraps, strict=True) if x is not None])
        return None
