"""Loop invariants: what a loop or a sweep would compute anew for each element is computed once before it.

Takes and gives a verified function, in one walk. Relies on `facts` for effects and for which arrays must be made anew
(Note [Taken arrays]). Nothing is moved out of a branch for its own sake, only together with the loop around it.

Note [Where a statement goes]
Regions have a depth, variables that of the region that binds them. A statement depends on the depths of its operands,
a set of bits. It goes in front of the outermost loop that is deeper than all of them.

Note [What may run unasked]
A loop may make no trip, a branch may not be taken. Rows of the ops table are total, and so are views of constant
size, so these may run unasked. An access may be outside and a symbolic shape wrong if the program does not come to
them, and a sweep or a library routine is too dear: they only leave a region that runs for *certain* (a constant number
of trips, at least one), and if no effect comes before them in it, since a check may be what keeps them right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Body,
    Broadcast,
    Call,
    Concat,
    Exp,
    For,
    Full,
    Function,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    While,
    WithAcc,
    WithRegions,
)
from tapeless.ir.effects import is_effect
from tapeless.ir.operands import operands
from tapeless.ir.types import Atom, Const, Dim, Var
from tapeless.ir.walk import map_exp, map_function
from tapeless.passes.analysis.facts import is_inside, taken_arrays


def hoist(function: Function) -> Function:
    return map_function(function, Hoister(function).top)


@dataclass(slots=True)
class Frame:
    """A region being walked. `uses` has the bit of each depth that statements in it depend on."""

    bit: int
    is_loop: bool
    certain: bool
    loops: int  # around statements of this region
    out: list[Stm] = field(default_factory=list)
    uses: int = 0
    effects: bool = False  # so far
    below: bool = False  # effects in the regions of the statement that is being walked


class Hoister:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.bits: dict[Var, int] = {}  # 1 << depth; variables of depth 0 are left out
        self.frames: list[Frame] = [Frame(1, False, True, 0)]
        self._taken: set[Var] | None = None

    @property
    def taken(self) -> set[Var]:
        if self._taken is None:
            self._taken = taken_arrays(self.function)
        return self._taken

    def top(self, body: Body) -> Body:
        """The function's own statements stay; a new one may come before a loop."""
        out = self.frames[0].out
        for stm in body.stms:
            out.append(self.inside(stm)[0] if isinstance(stm.exp, WithRegions) else stm)
        return _closed(body, out)

    # -- regions

    def region(self, body: Body, params: Sequence[Var], is_loop: bool, certain: bool) -> tuple[Body, Frame]:
        outer = self.frames[-1]
        frame = Frame(outer.bit << 1, is_loop, certain, outer.loops + is_loop)
        self.frames.append(frame)
        self.bind(params, frame)
        for stm in body.stms:
            self.stm(stm, frame)
        self.note(body.results, frame)
        self.frames.pop()
        outer.below = outer.below or frame.effects
        return _closed(body, frame.out), frame

    def bind(self, vars: Sequence[Var], frame: Frame) -> None:
        for v in vars:
            if frame.bit > 1:
                self.bits[v] = frame.bit
            if v.type.shape:
                self.note([d for d in v.type.shape if isinstance(d, Var)], frame)

    def note(self, atoms: Sequence[Atom], frame: Frame) -> None:
        for a in atoms:
            if isinstance(a, Var):
                frame.uses |= self.bits.get(a, 1)

    def inside(self, stm: Stm) -> tuple[Stm, int]:
        """The statement with its regions walked, and the depths that these depend on outside of themselves."""
        exp = stm.exp
        below = self.frames[-1].bit * 2 - 1
        uses = 0

        def walk(body: Body, params: Sequence[Var], is_loop: bool, certain: bool) -> Body:
            nonlocal uses
            new, frame = self.region(body, params, is_loop, certain)
            uses |= frame.uses & below
            return new

        new: Exp
        if isinstance(exp, For):
            inner = walk(exp.body, (exp.index, *exp.params), True, _runs(exp.bound))
            new = exp if inner is exp.body else replace(exp, body=inner)
        elif isinstance(exp, While):
            test = walk(exp.cond, exp.params, True, True)
            inner = walk(exp.body, exp.params, True, False)
            self.frames[-1].below = True  # what comes after may never come
            new = exp if inner is exp.body and test is exp.cond else replace(exp, cond=test, body=inner)
        elif isinstance(exp, Sweep) and not exp.reduces and not exp.scans:  # the most frequent one
            lam = exp.lam
            inner = walk(lam.body, lam.params, True, _runs(exp.width))
            new = exp if inner is lam.body else Sweep(exp.width, exp.arrays, Lambda(lam.params, inner))
        else:
            certain = isinstance(exp, WithAcc) or (isinstance(exp, (Sweep, Hist, Scatter)) and _runs(exp.width))
            changed = False
            own = exp.lam if isinstance(exp, (Sweep, Hist, Scatter, WithAcc)) else None

            def on_body(body: Body) -> Body:
                nonlocal changed
                inner = walk(body, (), False, False)
                changed = changed or inner is not body
                return inner

            def on_lambda(lam: Lambda) -> Lambda:
                nonlocal changed
                inner = walk(lam.body, lam.params, not isinstance(exp, WithAcc), certain and lam is own)
                changed = changed or inner is not lam.body
                return lam if inner is lam.body else Lambda(lam.params, inner)

            made = map_exp(exp, _same_atom, on_body, on_lambda)
            new = made if changed else exp
        return (stm if new is exp else Stm(stm.vars, new, stm.span)), uses

    # -- statements of regions

    def stm(self, stm: Stm, frame: Frame) -> None:
        bits = self.bits
        uses, effect = 0, False
        if isinstance(stm.exp, WithRegions):
            frame.below = False
            stm, uses = self.inside(stm)
            effect = frame.below
        elif not isinstance(stm.exp, Apply):
            effect = is_effect(stm.exp)
        for a in operands(stm.exp):
            if isinstance(a, Var):
                uses |= bits.get(a, 1)
        for v in stm.vars:
            if v.type.shape:
                for d in v.type.shape:
                    if isinstance(d, Var) and d not in stm.vars:
                        uses |= bits.get(d, 1)
        if frame.loops and stm.vars and uses < frame.bit:
            frame = self.target(stm, uses, effect)
        frame.out.append(stm)
        frame.uses |= uses
        frame.effects = frame.effects or effect
        if frame.bit > 1:
            for v in stm.vars:
                bits[v] = frame.bit

    def target(self, stm: Stm, uses: int, effect: bool) -> Frame:
        """Note [Where a statement goes]. If it may not leave the outermost of these loops, perhaps the next one."""
        frames = self.frames
        for depth in range(uses.bit_length(), len(frames)):
            if frames[depth].is_loop:
                if all(f.certain and not f.effects for f in frames[depth:]):
                    may_move = self.may_run_once(stm, effect)
                else:
                    may_move = not effect and self.may_run_unasked(stm)
                if may_move:
                    return frames[depth - 1]
        return frames[-1]

    def may_run_unasked(self, stm: Stm) -> bool:
        match stm.exp:
            case Apply() | Transpose():
                return True
            case Index() as exp:
                return is_inside(exp)
            case Reshape(array, shape):
                return _constant(shape) and _constant(array.type.shape)
            case Broadcast(array, shape):
                return _constant(shape) and _constant(array.type.shape)
            case Iota(length):
                return _constant((length,)) and self.is_read_only(stm)
            case Full(shape, value):
                return value is not None and _constant(shape) and self.is_read_only(stm)
            case ArrayLit():
                return self.is_read_only(stm)
        return False

    def may_run_once(self, stm: Stm, effect: bool) -> bool:
        """May it run before the first trip instead of in every one?"""
        match stm.exp:
            case Index() | Reshape() | Broadcast():
                return True
            case Full(_, value):
                return value is not None and self.is_read_only(stm)
            case Iota() | ArrayLit() | Concat():
                return self.is_read_only(stm)
            case Library() | Sweep() | For() | If() | Call():
                return not effect and self.is_read_only(stm)
        return not effect and self.may_run_unasked(stm)

    def is_read_only(self, stm: Stm) -> bool:
        return self.taken.isdisjoint(stm.vars)


def _runs(bound: Atom | Dim) -> bool:
    count = bound.value.real if isinstance(bound, Const) else bound
    return not isinstance(count, Var) and count >= 1


def _constant(shape: Sequence[Dim]) -> bool:
    return all(isinstance(d, int) for d in shape)


def _closed(body: Body, stms: list[Stm]) -> Body:
    same = len(stms) == len(body.stms) and all(map(is_, stms, body.stms))
    return body if same else Body(tuple(stms), body.results)


def _same_atom(atom: Atom) -> Atom:
    return atom
