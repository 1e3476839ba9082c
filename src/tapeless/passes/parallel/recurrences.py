"""Loops whose carried numbers are linear in what they were: the numbers by a scan, all else for all iterations at once.

`by_scan` takes a `For` statement; gives statements that compute the same, or None. Reverse mode makes such loops of general
scans, and people write them.

Note [Linear recurrences]
v' = M_i v + c_i, where M_i and c_i do not depend on v: steps of this kind can be put together before v is known, so a scan
of (M, c) gives all v. In the first step v is known; it becomes part of c, and M is 0. The loop is then run without its
numbers, each iteration with the v that it starts with; it must be parallel by itself, which also proves that what is read
for M and c has not been written before. What an inner loop adds to accumulators while it makes M and c, it adds there only,
not in the scan. Where a number of the scan is not finite, a product of many M may have been too
large for its type, which in order none would have been: then the loop runs as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, At, Body, For, If, Index, Lambda, Reduction, Stm, Sweep, UpdateAcc, WithAcc
from tapeless.ir.effects import effects_in
from tapeless.ir.types import BOOL, I64, Atom, Const, DType, Type, Var, atom_dim, const, i64
from tapeless.ir.walk import (
    Substitution,
    all_stms,
    free_in_body,
    in_regions,
    refresh_body,
    refresh_lambda,
    with_stms,
)
from tapeless.ops.emit import Emit
from tapeless.passes.analysis.independence import Dependent
from tapeless.passes.parallel.parallelise import parallelise_proved

MOST = 3  # numbers
FEW = 64  # iterations that are not worth it


@dataclass(frozen=True)
class _Form:
    """factors . v + rest; a factor of None is 0."""

    factors: tuple[Atom | None, ...]
    rest: Atom | None


class _Terms(Emit):
    """Sums and products in which None is 0."""

    def sum(self, x: Atom | None, y: Atom | None) -> Atom | None:
        return y if x is None else x if y is None else self("add", x, y)

    def product(self, x: Atom | None, y: Atom | None) -> Atom | None:
        return None if x is None or y is None else self("mul", x, y)

    def negated(self, x: Atom | None) -> Atom | None:
        return None if x is None else self("neg", x)


def by_scan(stm: Stm) -> list[Stm] | None:
    """Note [Linear recurrences]"""
    loop = stm.exp
    assert isinstance(loop, For)
    carried = [k for k, p in enumerate(loop.params) if not p.type.shape]
    kinds = {loop.params[k].type.dtype for k in carried}
    if not 0 < len(carried) <= MOST or len(kinds) > 1 or not all(d.is_float for d in kinds):
        return None
    if isinstance(loop.bound, Const) and loop.bound.value.real <= FEW:
        return None
    steps = _steps(loop, carried)
    if steps is None:
        return None
    scan = _Scan(stm, loop, carried, steps)
    try:
        return scan.stms()
    except Dependent:
        return None


def _steps(loop: For, carried: Sequence[int]) -> tuple[list[Stm], list[_Form]] | None:
    """What makes M and c in an iteration, and these."""
    dtype = loop.params[carried[0]].type.dtype
    emit = _Terms(Builder())
    one = const(1, dtype)
    forms: dict[Var, _Form | None] = {}  # of what depends on v; None where it is not linear
    for j, k in enumerate(carried):
        forms[loop.params[k]] = _Form(tuple(one if i == j else None for i in range(len(carried))), None)
    for s in loop.body.stms:
        used = free_in_body(Body((s,), ()))
        if not any(v in forms for v in used):
            emit.b.add(s)
            continue
        if _is_test(s):
            return None
        form = _form(emit, s, forms) if isinstance(s.exp, Apply) else None
        forms.update(dict.fromkeys(s.vars, form))
    found: list[_Form] = []
    for k in carried:
        result = loop.body.results[k]
        form = forms[result] if isinstance(result, Var) and result in forms else _Form((None,) * len(carried), result)
        if form is None:
            return None
        found.append(form)
    wanted = {a for f in found for a in (*f.factors, f.rest) if isinstance(a, Var)}
    making = _adding_nothing(_needed(emit.b.stms, wanted))
    return None if making is None else (making, found)


def _form(emit: _Terms, s: Stm, forms: Mapping[Var, _Form | None]) -> _Form | None:
    exp = s.exp
    assert isinstance(exp, Apply)
    given = [forms[a] if isinstance(a, Var) and a in forms else a for a in exp.args]
    if any(x is None for x in given):
        return None
    match exp.op, given:
        case "add", [_Form() as x, _Form() as y]:
            return _Form(tuple(map(emit.sum, x.factors, y.factors)), emit.sum(x.rest, y.rest))
        case "add", [_Form() as x, y] | [y, _Form() as x]:
            return _Form(x.factors, emit.sum(x.rest, y))  # type: ignore[arg-type]
        case "sub", [_Form() as x, _Form() as y]:
            return _difference(emit, x, y)
        case "sub", [_Form() as x, Var() | Const() as y]:
            return _Form(x.factors, emit.sum(x.rest, emit.negated(y)))
        case "sub", [Var() | Const() as y, _Form() as x]:
            return _difference(emit, _Form((None,) * len(x.factors), y), x)
        case "mul", [_Form() as x, Var() | Const() as y] | [Var() | Const() as y, _Form() as x]:
            return _Form(tuple(emit.product(f, y) for f in x.factors), emit.product(x.rest, y))
        case "identity", [_Form() as x]:
            return x
        case "neg", [_Form() as x]:
            return _difference(emit, _Form((None,) * len(x.factors), None), x)
    return None


def _difference(emit: _Terms, x: _Form, y: _Form) -> _Form:
    factors = (emit.sum(a, emit.negated(b)) for a, b in zip(x.factors, y.factors, strict=True))
    return _Form(tuple(factors), emit.sum(x.rest, emit.negated(y.rest)))


def _is_test(s: Stm) -> bool:
    return any(not isinstance(e, UpdateAcc) for e in effects_in([s]))


def _needed(stms: Sequence[Stm], wanted: set[Var]) -> list[Stm]:
    found: list[Stm] = []
    for s in reversed(stms):
        if any(v in wanted for v in s.vars) or _is_test(s):  # tests guard what comes after them
            found.append(s)
            wanted |= set(free_in_body(Body((s,), ())))
    return found[::-1]


def _adding_nothing(stms: list[Stm]) -> list[Stm] | None:
    """To accumulators from around. None where an addition tests a position: what comes after it may rely on that."""
    inside = list(all_stms(Body(tuple(stms), ())))
    own = {p for s in inside if isinstance(s.exp, WithAcc) for p in s.exp.lam.params}
    added = [s.exp for s in inside if isinstance(s.exp, UpdateAcc) and s.exp.acc not in own]
    if not added:
        return stms
    if any(isinstance(axis, At) and axis.check for exp in added for axis in exp.axes):
        return None

    def body(b: Body) -> Body:
        return with_stms(b, [stm(s) for s in b.stms if not isinstance(s.exp, UpdateAcc) or s.exp.acc in own])

    def stm(s: Stm) -> Stm:
        return in_regions(s, body)

    return list(map(stm, stms))


class _Scan:
    def __init__(self, stm: Stm, loop: For, carried: Sequence[int], steps: tuple[list[Stm], list[_Form]]) -> None:
        self.stm, self.loop, self.carried, self.span = stm, loop, carried, stm.span
        self.making, self.forms = steps
        self.size = len(carried)
        self.dtype = loop.params[carried[0]].type.dtype
        self.item = Type(self.dtype)

    def stms(self) -> list[Stm]:
        count = Var("count", I64)
        dim = atom_dim(count)
        before = [Stm((count,), Apply("max", (self.loop.bound, i64(0))), self.span)]
        scanned = [Var("step", Type(self.dtype, (dim,))) for _ in range(self.size * (self.size + 1))]
        before.append(Stm(tuple(scanned), Sweep(dim, (), self.element(), (), (self.operator(),)), self.span))
        values = scanned[self.size * self.size :]
        ok, tested = self.all_finite(values)
        at_once = self.at_once(count, values)
        vars = tuple(Var(v.name, v.type) for v in self.stm.vars)
        in_order = refresh_body(Body((Stm(vars, self.loop, self.span),), vars))
        return [*before, *tested, Stm(self.stm.vars, If(ok, at_once, in_order), self.span)]

    def element(self) -> Lambda:
        """M and c of one iteration, by rows."""
        loop, zero = self.loop, const(0, self.dtype)
        starts = {p: a for p, a in zip(loop.params, loop.inits, strict=True) if p.type.shape}
        emit = _Terms(Builder(self.span))
        for s in self.making:
            emit.b.add(s)
        first = emit("eq", loop.index, 0)
        factors: list[Atom] = []
        rests: list[Atom] = []
        for form in self.forms:
            whole = form.rest
            for f, k in zip(form.factors, self.carried, strict=True):
                whole = emit.sum(emit.product(f, loop.inits[k]), whole)
                factors.append(emit("select", first, zero, f) if f is not None else zero)
            rest = form.rest if form.rest is not None else zero
            rests.append(emit("select", first, whole if whole is not None else zero, rest))
        body = Substitution(starts).body(emit.b.body((*factors, *rests)))
        return refresh_lambda(Lambda((loop.index,), body))

    def operator(self) -> Reduction:
        """One step after the other: (M2 M1, M2 c1 + c2)."""
        n = self.size
        emit = _Terms(Builder(self.span))
        sides = [[Var("x", self.item) for _ in range(n * (n + 1))] for _ in range(2)]
        (m1, c1), (m2, c2) = (([s[n * i : n * i + n] for i in range(n)], s[n * n :]) for s in sides)

        def times_m2(i: int, column: Sequence[Var]) -> Atom:
            total: Atom = emit("mul", m2[i][0], column[0])
            for k in range(1, n):
                total = emit("add", total, emit("mul", m2[i][k], column[k]))
            return total

        products = [times_m2(i, [row[j] for row in m1]) for i in range(n) for j in range(n)]
        rests = [emit("add", times_m2(i, c1), c2[i]) for i in range(n)]
        one, zero = const(1, self.dtype), const(0, self.dtype)
        neutral = (*(one if i == j else zero for i in range(n) for j in range(n)), *([zero] * n))
        return Reduction(Lambda((*sides[0], *sides[1]), emit.b.body((*products, *rests))), neutral)

    def all_finite(self, values: Sequence[Var]) -> tuple[Var, list[Stm]]:
        emit = _Terms(Builder(self.span))
        index, rows = Var("i", I64), [Var("e", self.item) for _ in values]
        good: Atom = const(True, DType.bool)
        for row in rows:
            good = emit("and", good, emit("isfinite", row))
        a, b, both = (Var(name, BOOL) for name in "abc")
        op = Lambda((a, b), Body((Stm((both,), Apply("and", (a, b)), self.span),), (both,)))
        all_good = Reduction(op, (const(True, DType.bool),), commutative=True)
        ok = Var("finite", BOOL)
        lam = Lambda((index, *rows), emit.b.body((good,)))
        return ok, [Stm((ok,), Sweep(values[0].type.shape[0], tuple(values), lam, (all_good,)), self.span)]

    def at_once(self, count: Var, values: Sequence[Var]) -> Body:
        """The loop without its numbers; raises Dependent."""
        loop = self.loop
        others = [k for k in range(len(loop.params)) if k not in self.carried]
        starts: list[Stm] = []
        for value, k in zip(values, self.carried, strict=True):
            starts += self.before(loop.params[k], value, loop.index, loop.inits[k])
        body = Body((*starts, *loop.body.stms), tuple(loop.body.results[k] for k in others))
        params = tuple(loop.params[k] for k in others)
        inits = tuple(loop.inits[k] for k in others)
        alone = For(loop.index, loop.bound, params, inits, body, replace(loop.hints, chosen=()))
        made = [Var(self.stm.vars[k].name, self.stm.vars[k].type) for k in others]
        stms = parallelise_proved(Stm(tuple(made), alone, self.span))
        ends: dict[int, Var] = {}
        for value, k in zip(values, self.carried, strict=True):
            ends[k] = Var(self.stm.vars[k].name, self.item)
            stms = [*stms, *self.before(ends[k], value, count, loop.inits[k])]
        ends |= dict(zip(others, made, strict=True))
        return refresh_body(Body(tuple(stms), tuple(ends[k] for k in range(len(loop.params)))))

    def before(self, var: Var, values: Var, at: Atom, start: Atom) -> list[Stm]:
        """The number that iteration `at` starts with."""
        some, last, e = Var("some", BOOL), Var("last", I64), Var("e", self.item)
        inside = Body(
            (
                Stm((last,), Apply("sub", (at, i64(1))), self.span),
                Stm((e,), Index(values, (At(last),)), self.span),
            ),
            (e,),
        )
        test = Stm((some,), Apply("gt", (at, i64(0))), self.span)
        return [test, Stm((var,), If(some, inside, Body((), (start,))), self.span)]
