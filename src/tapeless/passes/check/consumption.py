"""The in-place check: makes every consumption legal, by a copy only where one is needed, and says why.

Takes verified Core; gives Core in which an array that is consumed (by update, hist, scatter, with_acc, or as the start
of a carried array) owns its memory and is not used afterwards, so that lowering may write in place. Copies are
reported.

Note [Versions]
An update gives a new version of the same memory. Each version is a variable of its own; `roots` tells which versions a
view
looks into. A consumption is legal when no view of the consumed version is used later and the version owns its memory:
it was made here, or is a written parameter. Loop parameters own their memory: the loop takes over the memory of the
initial value, or a copy of it.

Note [Parts]
A row or column that was read before an update and is used after it needs its old contents. A copy of that part is
cheaper than one of the array: in a loop it is the difference between n and n^2. Likewise a slice, if it is only one:
several of them, as in stencils, may be more than the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Body,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
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
    Print,
    Progress,
    Range,
    Reshape,
    Scatter,
    Span,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.node import node
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import Atom, Var, i64
from tapeless.ir.walk import free_in_exp, free_in_lambda, map_exp

Roots = frozenset[Var]
NONE: Roots = frozenset()


@node(frozen=True)
class Later:
    """What is used after a place: in its block by the last position that uses it, or after one of the blocks around it.

    One table serves all places of a block: sets for each of them would take time and memory quadratic in its length.
    """

    last: Mapping[Var, int]
    after: int
    outer: Later | None = None

    def __contains__(self, root: Var) -> bool:
        place: Later | None = self
        while place is not None:
            if place.last.get(root, -1) > place.after:
                return True
            place = place.outer
        return False

    def any_of(self, roots: Roots) -> bool:
        return any(root in self for root in roots)


def always(roots: Iterable[Var], outer: Later | None = None) -> Later:
    return Later(dict.fromkeys(roots, 0), -1, outer)


NEVER = always(())


@dataclass(frozen=True)
class Inserted:
    """A copy that the check had to make."""

    span: Span
    name: str
    reason: str


def check_in_place(program: Function) -> tuple[Function, list[Inserted]]:
    """The program, with copies where there have to be some, and those copies."""
    done = [_checked(f) for f in (*program.calls, program)]
    calls = tuple(f for f, _ in done[:-1])
    return replace(done[-1][0], calls=calls), [copy for _, copies in done for copy in copies]


def _checked(function: Function) -> tuple[Function, list[Inserted]]:
    checker = _Checker()
    for p in function.params:
        checker.roots[p] = frozenset({p}) if p.type.shape else NONE
    owned = {function.params[k] for k in function.written}
    body = checker.body(function.body, NEVER, owned)
    return replace(function, body=body), checker.copies


def _all_of(array: Var, axes: Iterable[Axis]) -> bool:
    """Whether these are all positions of an array, in order."""
    return all(a == Range(i64(0), d, i64(1)) for a, d in zip(axes, array.type.shape, strict=True))


def _consumed(exp: Exp) -> tuple[Var, ...]:
    """Arrays that a statement takes over, those of outside that its branches do included."""
    match exp:
        case Update(array=array):
            return (array,)
        case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
            return arrays
        case For(inits=inits) | While(inits=inits):
            return tuple(a for a in inits if isinstance(a, Var) and a.type.shape)
        case If(then=then, orelse=orelse):
            return tuple(a for arm in (then, orelse) for s in arm.stms for a in _consumed(s.exp))
        case Apply() | Index() | UpdateAcc() | Library() | Check() | Print() | Iota() | Full() | ArrayLit() | Reshape():
            return ()
        case Transpose() | Broadcast() | Concat() | Copy() | Call() | Progress() | Sweep():
            return ()
        case _:
            assert_never(exp)


class _Checker:
    def __init__(self) -> None:
        self.roots: dict[Var, Roots] = {}
        self.copies: list[Inserted] = []

    def of(self, atom: Atom) -> Roots:
        return self.roots.get(atom, NONE) if isinstance(atom, Var) else NONE

    def of_all(self, atoms: Iterable[Atom]) -> Roots:
        return NONE.union(*[self.of(a) for a in atoms])

    # -- which versions a variable looks into

    def note(self, stm: Stm) -> None:
        if isinstance(stm.exp, Apply):
            return  # numbers look into nothing
        match stm.exp:
            case Index(array=array) | Reshape(array=array) | Transpose(array=array) | Broadcast(array=array):
                self.roots[stm.vars[0]] = self.of(array) if stm.vars[0].type.shape else NONE
            case _:
                for v in stm.vars:
                    self.roots[v] = frozenset({v}) if v.type.shape else NONE

    # -- regions

    def body(self, body: Body, live_out: Later, owned: set[Var]) -> Body:
        body = self.with_parts_aside(body)
        for stm in body.stms:
            self.note(stm)
        last: dict[Var, int] = {}
        for k, stm in enumerate(body.stms):
            if isinstance(stm.exp, Index):  # most look into one array
                last |= dict.fromkeys(self.of(stm.exp.array), k)
            elif not isinstance(stm.exp, Apply):
                last |= dict.fromkeys(self.of_all(free_in_exp(stm.exp)), k)
        last |= dict.fromkeys(self.of_all(body.results), len(body.stms))
        owned = set(owned)
        stms: list[Stm] = []
        for k, stm in enumerate(body.stms):
            if isinstance(stm.exp, (Apply, Index)):  # which take nothing over
                stms.append(stm)
                continue
            exp = self.exp(stm, Later(last, k, live_out), owned, stms)
            stms.append(stm if exp is stm.exp else Stm(stm.vars, exp, stm.span))
            for v in stm.vars:
                if v.type.shape and v in self.roots.get(v, NONE):
                    owned.add(v)
        return Body(tuple(stms), body.results)

    def with_parts_aside(self, body: Body) -> Body:
        """Note [Parts]: views of single positions that outlive an update of their array become copies."""
        if not any(isinstance(s.exp, Index) and s.vars[0].type.shape for s in body.stms):
            return body
        last: dict[Var, int] = {}
        for k, stm in enumerate(body.stms):
            for v in free_in_exp(stm.exp) if not isinstance(stm.exp, Apply) else ():
                last[v] = k
        for r in body.results:
            if isinstance(r, Var):
                last[r] = len(body.stms)
        origin: dict[Var, Var] = {}  # a view of a part -> the view that took it
        taken: dict[Var, Var] = {}  # that -> its array
        views: dict[Var, list[Var]] = {}  # an array -> the views of its parts
        slices: set[Var] = set()  # of these, those with all axes of the array
        aside: set[Var] = set()

        def look_into(view: Var, part: Var) -> None:
            origin[view] = part
            views.setdefault(taken[part], []).append(view)

        for k, stm in enumerate(body.stms):
            if isinstance(stm.exp, Apply):
                continue
            match stm.exp:
                case Index(array=array, axes=axes) if stm.vars[0].type.shape:
                    if array in origin:
                        look_into(stm.vars[0], origin[array])
                    elif not _all_of(array, axes):
                        taken[stm.vars[0]] = array
                        look_into(stm.vars[0], stm.vars[0])
                        if not any(isinstance(a, At) for a in axes):
                            slices.add(stm.vars[0])
                case Reshape(array=array) | Transpose(array=array) | Broadcast(array=array) if array in origin:
                    look_into(stm.vars[0], origin[array])
            consumed = _consumed(stm.exp) if taken else ()
            for array in consumed:
                if last.get(array, -1) > k:
                    continue  # all of it is needed later
                needed = {origin[v] for v in views.get(array, ()) if last.get(v, -1) > k}
                aside |= needed if len(needed & slices) <= 1 else needed - slices
        if not aside:
            return body
        stms: list[Stm] = []
        for stm in body.stms:
            if stm.vars and stm.vars[0] in aside:
                view = Var(stm.vars[0].name, stm.vars[0].type)
                stms.append(Stm((view,), stm.exp, stm.span))
                stms.append(Stm(stm.vars, Copy(view), stm.span))
                self.copies.append(Inserted(stm.span, view.name, "its array is overwritten while this part is needed"))
            else:
                stms.append(stm)
        return Body(tuple(stms), body.results)

    def lam(self, lam: Lambda, outer: Iterable[Var]) -> Lambda:
        """A region that may run many times: it owns nothing of outside, and all of it is live."""
        for p in lam.params:
            self.roots[p] = frozenset({p}) if p.type.shape else NONE
        return Lambda(lam.params, self.body(lam.body, always(self.of_all(outer)), set()))

    # -- one statement

    def take(self, array: Var, later: Later, owned: set[Var], out: list[Stm], span: Span, also: Roots = NONE) -> Var:
        """`array` itself when it may be overwritten here, else a copy of it."""
        roots = self.of(array)
        reason = ""
        if not roots <= owned:
            reason = "it is not this function's to overwrite"
        elif array not in roots:
            reason = "it is a view of another array"
        elif later.any_of(roots):
            reason = "its old value is used later"
        elif roots & also:
            reason = "it is read by the same operation"
        if not reason:
            return array
        fresh = Var(array.name, array.type)
        out.append(Stm((fresh,), Copy(array), span))
        self.roots[fresh] = frozenset({fresh})
        owned.add(fresh)
        self.copies.append(Inserted(span, array.name, reason))
        return fresh

    def _take_all(
        self, arrays: Iterable[Var], later: Later, owned: set[Var], out: list[Stm], span: Span, read: Roots
    ) -> tuple[Var, ...]:
        """Several arrays at once: each needs memory of its own."""
        taken: list[Var] = []
        for a in arrays:
            new = self.take(a, later, owned, out, span, read)
            read = read | self.of(new) | self.of(a)
            taken.append(new)
        return tuple(taken)

    def exp(self, stm: Stm, later: Later, owned: set[Var], out: list[Stm]) -> Exp:
        span = stm.span
        match stm.exp:
            case Update(array=array, axes=axes, value=value):
                new_value = value
                if isinstance(value, Var) and self.of(value) & self.of(array):
                    new_value = Var(value.name, value.type)
                    out.append(Stm((new_value,), Copy(value), span))
                    self.roots[new_value] = frozenset({new_value})
                    self.copies.append(Inserted(span, value.name, "source and target of the assignment overlap"))
                return Update(self.take(array, later, owned, out, span), axes, new_value)
            case Hist() | Scatter() as exp:
                rest = self.of_all(free_in_exp(replace(exp, dests=())))
                dests = self._take_all(exp.dests, later, owned, out, span, rest)
                return map_exp(replace(exp, dests=dests), lambda a: a, lambda b: b, lambda lam: self.lam(lam, ()))
            case WithAcc(arrays=arrays, lam=lam) as exp:
                inner = self.of_all(free_in_exp(WithAcc((), lam)))
                taken = self._take_all(arrays, later, owned, out, span, inner)
                for p in lam.params:
                    self.roots[p] = NONE
                around = always(
                    self.of_all(taken), later
                )  # it runs once, so it may take over what nobody needs afterwards
                return WithAcc(taken, Lambda(lam.params, self._arm(lam.body, around, owned, span)), exp.slopes)
            case If(cond=cond, then=then, orelse=orelse):
                return If(cond, self._arm(then, later, owned, span), self._arm(orelse, later, owned, span))
            case For(index=index, bound=bound, params=params, inits=inits, body=body, hints=hints):
                new_body = self._loop_body(params, body)
                return For(
                    index, bound, params, self._inits(params, inits, body, later, owned, out, span), new_body, hints
                )
            case While(params=params, inits=inits, cond=test, body=body, hints=hints):
                new_body = self._loop_body(params, body)
                new_test = self.body(test, always(params), set())
                both = Body((*test.stms, *body.stms), (*test.results, *body.results))
                return While(
                    params, self._inits(params, inits, both, later, owned, out, span), new_test, new_body, hints
                )
            case Sweep() as exp:
                return map_exp(exp, lambda a: a, lambda b: b, lambda lam: self.lam(lam, ()))
            case exp:
                return exp

    # -- branches

    def _arm(self, arm: Body, later: Later, owned: set[Var], span: Span) -> Body:
        """An arm of an `if`. An array of outside that it hands on moves into the result; if it is still needed, or not
        ours to give, the result is a copy."""
        new = self.body(arm, later, owned)
        inside = {v for s in new.stms for v in s.vars}
        stms, results = list(new.stms), list(new.results)
        moved: set[Var] = set()
        for k, r in enumerate(results):
            if not isinstance(r, Var) or not r.type.shape:
                continue
            roots = self.of(r)
            if r in roots and r in inside and not roots & moved:
                moved |= roots
                continue
            if r in roots and roots <= owned and not later.any_of(roots) and not roots & moved:
                moved |= roots
                continue
            copy = Var(r.name, r.type)
            stms.append(Stm((copy,), Copy(r), span))
            self.roots[copy] = frozenset({copy})
            results[k] = copy
        return Body(tuple(stms), tuple(results))

    # -- loops

    def _loop_body(self, params: tuple[Var, ...], body: Body) -> Body:
        arrays = {p for p in params if p.type.shape}
        for p in params:
            self.roots[p] = frozenset({p}) if p.type.shape else NONE
        new = self.body(body, NEVER, set(arrays))
        return self._separate_results(new, arrays)

    def _separate_results(self, body: Body, params: set[Var]) -> Body:
        """Each carried array must come back in memory of its own: views and shared results are copied."""
        stms = list(body.stms)
        results: list[Atom] = []
        taken: set[Var] = set()
        span = stms[-1].span if stms else None
        definitions = {v for s in stms for v in s.vars}
        for r in body.results:
            if isinstance(r, Var) and r.type.shape:
                roots = self.of(r)
                own = r in roots and len(roots) == 1
                foreign = r not in definitions and r not in params
                if not own or foreign or roots & taken:
                    copy = Var(r.name, r.type)
                    where = span or NOWHERE
                    stms.append(Stm((copy,), Copy(r), where))
                    self.roots[copy] = frozenset({copy})
                    self.copies.append(Inserted(where, r.name, "a carried array needs memory of its own"))
                    r = copy
                taken |= self.of(r)
            results.append(r)
        return Body(tuple(stms), tuple(results))

    def _inits(
        self, params: tuple[Var, ...], inits: tuple[Atom, ...], body: Body, later: Later, owned: set[Var], out: list[Stm],
        span: Span,
    ) -> tuple[Atom, ...]:  # fmt: skip
        used = self.of_all(free_in_lambda(Lambda(params, body)))
        new: list[Atom] = []
        seen: Roots = NONE
        for a in inits:
            if isinstance(a, Var) and a.type.shape:
                taken = self.take(a, later, owned, out, span, used | seen)
                seen = seen | self.of(taken) | self.of(a)
                new.append(taken)
            else:
                new.append(a)
        return tuple(new)
