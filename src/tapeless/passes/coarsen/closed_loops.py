"""Loops whose values have a closed form in the number of trips.

Takes a verified function, gives one in which carried floats that follow a linear recurrence with constant coefficients
are computed at once, and loops that carry nothing else are gone:

    s = s + x             s + n x
    s = s + c i + x       s + n x + c n (n - 1) / 2
    s = A s + b           by doubling (`powers`), for one value or a few that depend on each other
    s = s + x if k < m else s + y    as two loops, where both have closed forms (`split_ranges`)

Values that other statements of the loop look at stay, and values that decide something (`decisions`) keep their bits.
Relies on `tidy` having moved out what does not change.

Note [Few trips]
Doubling takes longer than a few trips of the loop, and forms of it are code too. Where the number of trips is not
known, both are there. Sums take less than two trips.

Note [Out of range]
The power of a factor may be out of range though the values of the loop are not: 0 times 10, a thousand times. So the
forms by doubling are tried first, on numbers that derivatives do not look at; where something is too large in the end,
the loop runs. Too large is what the third power of has no place in the range: a derivative multiplies values by powers
of the factor and by values that they were made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Body, For, Function, If, Progress, Stm, While
from tapeless.ir.effects import effects_in
from tapeless.ir.segments import Segment
from tapeless.ir.types import Atom, Const, DType, Type, Var
from tapeless.ir.walk import all_stms, free_in_exp
from tapeless.ops.emit import Emit
from tapeless.ops.op import FLOATS
from tapeless.passes.coarsen.by_loops import ByLoops, Report
from tapeless.passes.coarsen.forms import Coefficient, Form, Forms, total
from tapeless.passes.coarsen.powers import Powers
from tapeless.passes.coarsen.split_ranges import in_two
from tapeless.passes.coarsen.wording import Words
from tapeless.symbolic.formulas.expressions import Expression, add, fresh
from tapeless.symbolic.formulas.text import latex_of, text_of

FEW = 128  # trips for each value that doubling takes longer than
MOST = 3  # values that depend on each other


def close_loops(function: Function, report: Report = lambda segment: None) -> Function:
    return _Closer(function, report).changed()


@dataclass(frozen=True)
class _Found:
    """A carried value, by its position, with the form of its next value."""

    position: int
    form: Form

    def coefficient(self, of: Var | None) -> Coefficient:
        return self.form.get(of, Coefficient(0))


class _Closer(ByLoops):
    def loop(self, stm: Stm, exp: For) -> list[Stm]:
        closed = self.closed(stm, exp)
        same = len(closed) == 1 and closed[0] is stm
        return self.by_ranges(stm, exp) if same and not exp.hints.few else closed

    def by_ranges(self, stm: Stm, exp: For) -> list[Stm]:
        """Two loops, if both have closed forms."""
        halves = in_two(stm, exp) if self.deciding.isdisjoint(stm.vars) else None
        if halves is None:
            return [stm]
        reported: list[Segment] = []
        report, self.report = self.report, reported.append
        found: list[Stm] = []
        for half in halves:
            assert isinstance(half.stm.exp, For)
            found += [*half.before, *self.closed(half.stm, half.stm.exp)]
        self.report = report
        if any(isinstance(s.exp, For) and not s.exp.hints.few for s in all_stms(Body(tuple(found), ()))):
            return [stm]
        for segment in reported:
            self.report(segment)
        return found

    def closed(self, stm: Stm, exp: For) -> list[Stm]:
        carried = [p for p in exp.params if p.type.is_scalar and p.type.dtype in FLOATS]
        shown = any(isinstance(s.exp, Progress) for s in all_stms(exp.body))
        if not carried or shown or exp.hints.wish is not None or exp.hints.few:
            return [stm]
        reading = _Reading(exp, carried, stm)
        found = reading.found
        decide = [f for f in found if stm.vars[f.position] in self.deciding]
        if decide:
            self.left(stm, reading, decide, "a branch or a test hangs on its last bit")
            found = reading.independent([f for f in found if f not in decide])
        simple = reading.not_needed([f for f in found if reading.is_simple(f)])
        if len(found) == len(exp.params) and not reading.effects and len(simple) < len(found):
            return self.gone(stm, exp, reading, found)
        if any(map(reading.slope_of, simple)):
            if len(simple) == len(exp.params) and not reading.effects:
                return self.unless_infinite(stm, exp, reading, simple)
            simple = reading.not_needed([f for f in simple if reading.slope_of(f) is None])
        return self.without(stm, exp, reading, simple) if simple else [stm]

    # -- sums and powers

    def without(self, stm: Stm, exp: For, reading: _Reading, found: list[_Found]) -> list[Stm]:
        """The loop without values that are computed in front of it."""
        b = Builder(stm.span)
        for s in reading.constants:
            b.add(s)
        ends = self.sums(b, stm, exp, reading, found)
        gone = {f.position for f in found}
        left = [k for k in range(len(exp.params)) if k not in gone]
        if left or reading.effects:
            closed = {exp.params[k] for k in gone}
            body = _without_uses(exp.body, closed, left)
            new = replace(
                exp,
                params=tuple(exp.params[k] for k in left),
                inits=tuple(exp.inits[k] for k in left),
                body=body,
            )
            b.add(Stm(tuple(stm.vars[k] for k in left), new, stm.span))
        for f, end in zip(found, ends, strict=True):
            b.alias(stm.vars[f.position], end)
            self.note(stm, reading, f, 5)
        return b.stms

    def sums(self, b: Builder, stm: Stm, exp: For, reading: _Reading, found: list[_Found]) -> list[Atom]:
        emit = Emit(b)
        if isinstance(exp.bound, Const) and exp.bound.value.real > 0:
            return [self.simple(emit, exp, reading, f) for f in found]
        with b.region() as some:
            ends = [self.simple(emit, exp, reading, f) for f in found]
        starts = [exp.inits[f.position] for f in found]
        made = [Var(stm.vars[f.position].name, stm.vars[f.position].type) for f in found]
        b.bind(made, If(emit("gt", exp.bound, 0), Body(tuple(some), tuple(ends)), Body((), tuple(starts))))
        return list(made)

    def unless_infinite(self, stm: Stm, exp: For, reading: _Reading, found: list[_Found]) -> list[Stm]:
        """No loop, but where something times the number of the trip is added that is infinite, or becomes so: 0 times the one
        is NaN, if it was written so, and so may be the sum with the other.
        """
        b = Builder(stm.span)
        emit = Emit(b)
        for s in reading.constants:
            b.add(s)
        slopes = [slope.rest for f in found if (slope := reading.slope_of(f)) is not None]
        if all(rest is None for rest in slopes):
            return self.without(stm, exp, reading, found)
        last = emit.convert(emit("sub", exp.bound, 1), DType.f64)
        terms = [emit("mul", last, emit.convert(emit("stop_gradient", r), DType.f64)) for r in slopes if r is not None]
        finite = [emit("isfinite", term) for term in terms]
        good = reduce(lambda x, y: emit("and", x, y), finite)
        found = sorted(found, key=lambda f: f.position)
        with b.region() as closed:
            ends = self.sums(b, stm, exp, reading, found)
        few = tuple(Var(v.name, v.type) for v in stm.vars)
        loop = replace(exp, hints=replace(exp.hints, few=True))
        b.bind(stm.vars, If(good, Body(tuple(closed), tuple(ends)), Body((Stm(few, loop, stm.span),), few)))
        for f in found:
            self.note(stm, reading, f, 9)
        return b.stms

    def simple(self, emit: Emit, exp: For, reading: _Reading, f: _Found) -> Atom:
        """In two halves: the product with all trips may be out of range though the sum is not. To what is infinite already
        no product is added, which may be infinite though its factor is not.
        """
        param = exp.params[f.position]
        end, more = emit.convert(exp.inits[f.position], DType.f64), f.coefficient(None).rest
        steps: list[Atom] = []
        if more is not None:
            trips = emit.convert(exp.bound, DType.f64)
            each = emit.convert(more, DType.f64)
            steps.append(emit("mul", emit("mul", trips, 0.5), _unless_beyond(emit, end, each, each)))
        slope = reading.slope_of(f)
        if slope is not None:
            each = emit.convert(total(emit, slope, param.type.dtype), DType.f64)
            last = emit("mul", emit.convert(emit("sub", exp.bound, 1), DType.f64), each)
            steps.append(emit("mul", emit("mul", _pairs(emit, exp.bound), 0.5), _unless_beyond(emit, end, each, last)))
        for step in (*steps, *steps):
            end = emit("add", end, step)
        return emit.convert(end, param.type.dtype)

    # -- powers and systems

    def gone(self, stm: Stm, exp: For, reading: _Reading, found: list[_Found]) -> list[Stm]:
        """No loop at all, if there are enough trips and all goes well: Note [Out of range]."""
        b = Builder(stm.span)
        emit = Emit(b)
        enough = FEW * len(found)
        if isinstance(exp.bound, Const) and exp.bound.value.real <= enough:
            self.left(stm, reading, found, f"with {exp.bound.value.real} trips the loop is faster")
            return [stm]
        for s in reading.constants:
            b.add(s)
        with b.region() as trying:
            good = self.in_range(emit, *self.at_once(b, exp, reading, found, lambda a: emit("stop_gradient", a)))
        tested = Var("good", Type(DType.bool))
        never = Body((), (Const(False, DType.bool),))
        b.bind([tested], If(emit("gt", exp.bound, enough), Body(tuple(trying), (good,)), never))
        with b.region() as stms:
            ends, _ = self.at_once(b, exp, reading, found, lambda a: a)
        few = [Var(v.name, v.type) for v in stm.vars]
        loop = replace(exp, hints=replace(exp.hints, few=True))
        otherwise = Body((Stm(tuple(few), loop, stm.span),), tuple(few))
        b.bind(stm.vars, If(tested, Body(tuple(stms), tuple(ends)), otherwise))
        for f in found:
            steps = sum(len(x.exp.body.stms) for x in stms if isinstance(x.exp, While))
            self.note(stm, reading, f, len(stms) + steps)
        return b.stms

    def at_once(
        self, b: Builder, exp: For, reading: _Reading, found: list[_Found], taken: Callable[[Atom], Atom]
    ) -> tuple[list[Atom], list[Atom]]:
        """The values, and the numbers that they were made with. `taken`: how numbers of outside come in."""

        def part(c: Coefficient) -> Coefficient:
            return c if c.rest is None or isinstance(c.rest, Const) else Coefficient(c.whole, taken(c.rest))

        params = [exp.params[f.position] for f in found]
        matrix = [[part(f.coefficient(p)) for p in params] for f in found]
        shift = [total(Emit(b), part(f.coefficient(None)), params[0].type.dtype) for f in found]
        starts = [a if isinstance(a, Const) else taken(a) for a in (exp.inits[f.position] for f in found)]
        ends, used = Powers(b, params[0].type).trips(matrix, shift, starts, exp.bound)
        return ends, [*starts, *used]

    def in_range(self, emit: Emit, *numbers: list[Atom]) -> Atom:
        """Note [Out of range]"""
        single = numbers[0][0].type.dtype is DType.f32
        limit = float(np.finfo(np.float32 if single else np.float64).max) ** (1 / 3)
        good: Atom = Const(True, DType.bool)
        for a in (a for each in numbers for a in each if not isinstance(a, Const)):
            small = emit("lt", emit("abs", a), limit)
            good = small if isinstance(good, Const) else emit("and", good, small)
        return good

    def note(self, stm: Stm, reading: _Reading, f: _Found, after: int) -> None:
        with fresh():
            text, latex = reading.texts(f)
        self.report(Segment(stm.span, stm.vars[f.position].name, reading.operations, after, text, latex))

    def left(self, stm: Stm, reading: _Reading, found: list[_Found], why: str) -> None:
        for f in found:
            self.report(Segment(stm.span, stm.vars[f.position].name, reading.operations, 0, why=why))


class _Reading:
    """A loop's body in terms of its carried floats."""

    def __init__(self, exp: For, carried: list[Var], stm: Stm) -> None:
        self.exp = exp
        b = Builder(stm.span)
        self.index = self._float_index(exp)
        symbols = carried if self.index is None else [*carried, self.index]
        self.forms = Forms(Emit(b), symbols)
        kept: list[Stm] = []
        with b.region() as made:
            for s in exp.body.stms:
                if s.vars != (self.index,) and not self.forms.take(s):
                    kept.append(s)
        self.kept = kept
        self.effects = any(effects_in(exp.body.stms))
        changing = {exp.index, *exp.params, *(v for s in exp.body.stms for v in s.vars)}
        self.constants: list[Stm] = []
        for s in made:
            if any(v in changing for v in free_in_exp(s.exp)):
                changing.update(s.vars)
            else:
                self.constants.append(s)
        self.changing = changing
        self.words = Words(self.constants)
        self.found = self._recurrences(carried)

    @property
    def operations(self) -> int:
        return sum(not isinstance(s.exp, If) for s in all_stms(self.exp.body))

    def _float_index(self, exp: For) -> Var | None:
        for s in exp.body.stms:
            match s.exp:
                case Apply("convert", (i,)) if i is exp.index and s.vars[0].type.dtype in FLOATS:
                    return s.vars[0]
        return None

    def _recurrences(self, carried: list[Var]) -> list[_Found]:
        found: list[_Found] = []
        for k, (p, r) in enumerate(zip(self.exp.params, self.exp.body.results, strict=True)):
            if p not in carried:
                continue
            form = self.forms.of(r)
            if form is None or any(c.rest in self.changing for c in form.values() if c.rest is not None):
                continue
            if self.index is not None and self.index in form and not form.get(p, Coefficient(0)).is_one:
                continue
            found.append(_Found(k, form))
        return self.independent([f for f in found if not self._is_looked_at(self.exp.params[f.position])])

    def independent(self, found: list[_Found]) -> list[_Found]:
        """Those that depend on none but themselves and each other, of one type, few enough."""
        while True:
            there = {self.exp.params[f.position] for f in found}
            left = [f for f in found if all(s is None or s is self.index or s in there for s in f.form)]
            if len(left) == len(found):
                break
            found = left
        coupled = [f for f in found if not self.is_simple(f)]
        types: set[Type] = {self.exp.params[f.position].type for f in found}
        indexed = self.index is not None and any(self.index in f.form for f in found)
        if coupled and (len(found) > MOST or len(types) > 1 or indexed):
            return [f for f in found if self.is_simple(f)]
        return found

    def texts(self, f: _Found) -> tuple[str, str]:
        """The value after the loop, in Python's notation and in LaTeX."""
        trips, start = self.words.of(self.exp.bound), self.words.of(self.exp.inits[f.position])
        if len(self.found) > 1 and not self.is_simple(f):
            values = ", ".join(self.exp.params[g.position].name for g in self.found)
            n, times = text_of(trips), latex_of(trips)
            return f"A**{n} ({values}) + ..., by doubling", rf"A^{{{times}}} ({values})^T + \ldots"
        own, step = f.coefficient(self.exp.params[f.position]), f.coefficient(None).rest
        if own.is_one:
            slope = self.slope_of(f)
            form = self.words.sum_of(start, trips, step, None if slope is None else self._words_of(slope))
            return text_of(form), latex_of(form)
        form = self.words.powers_of(self._words_of(own), start, trips, step)
        return f"{text_of(form)}, by doubling", latex_of(form)

    def _words_of(self, c: Coefficient) -> Expression:
        whole = self.words.of(c.whole)
        return whole if c.rest is None else add(whole, self.words.of(c.rest))

    def slope_of(self, f: _Found) -> Coefficient | None:
        """What is added times the number of the trip."""
        found = None if self.index is None else f.form.get(self.index)
        return found if found is not None and (found.whole or found.rest is not None) else None

    def is_simple(self, f: _Found) -> bool:
        """A sum, of no other value."""
        param = self.exp.params[f.position]
        others = {s for s in f.form if s is not param and s is not None and s is not self.index}
        return not others and f.coefficient(param).is_one

    def not_needed(self, found: list[_Found]) -> list[_Found]:
        """Those that nothing else that the loop carries is made of."""
        while True:
            closed = {self.exp.params[f.position] for f in found}
            others = [r for p, r in zip(self.exp.params, self.exp.body.results, strict=True) if p not in closed]
            used = {s for r in others for s in self.forms.of(r) or ()}
            left = [f for f in found if self.exp.params[f.position] not in used]
            if len(left) == len(found):
                return found
            found = left

    def _is_looked_at(self, param: Var) -> bool:
        """Does a statement that is no part of a form, or that is needed besides, use the value?"""
        seen: set[Var] = {param}
        for s in self.exp.body.stms:
            if any(v in seen for v in free_in_exp(s.exp)):
                if any(v in self.forms.lost for v in s.vars) or not s.vars:
                    return True
                seen.update(s.vars)
        return False


def _unless_beyond(emit: Emit, start: Atom, more: Atom, last: Atom) -> Atom:
    """What is added, with its slopes; 0 if the start is infinite and nothing is that is added, the last being the largest."""
    start, value, last = (emit("stop_gradient", a) for a in (start, more, last))
    beyond = emit("and", emit("not", emit("isfinite", start)), emit("isfinite", last))
    return emit("sub", more, emit("select", beyond, value, 0.0))


def _pairs(emit: Emit, n: Atom) -> Atom:
    """n (n - 1) / 2. One of the factors is even: n // 2 times n - 1, or that with 1 as its last bit."""
    odd = emit("or", emit("sub", n, 1), 1)
    return emit("mul", emit.convert(emit("shr", n, 1), DType.f64), emit.convert(odd, DType.f64))


def _without_uses(body: Body, closed: set[Var], left: list[int]) -> Body:
    """Without statements that use these values, which only they themselves hang on."""
    gone = set(closed)
    stms: list[Stm] = []
    for s in body.stms:
        if any(a in gone for a in free_in_exp(s.exp)):
            gone.update(s.vars)
        else:
            stms.append(s)
    return Body(tuple(stms), tuple(body.results[k] for k in left))
