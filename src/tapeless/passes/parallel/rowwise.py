"""Loops that read and write one row of an array in each iteration, as code that has just that row.

`RowTarget` describes the rows of one carried array, `Rows` rewrites the body. Relies on `independence` for the proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    Apply,
    At,
    Atom,
    Axis,
    Body,
    Check,
    For,
    If,
    Index,
    Lambda,
    Range,
    Stm,
    Update,
    While,
)
from tapeless.ir.operands import regions
from tapeless.ir.span import Span
from tapeless.ir.types import BOOL, I64, Var, atom_dim, dim_atom, i64
from tapeless.ir.walk import map_exp
from tapeless.passes.analysis.independence import Accesses, forms_of, own_rows
from tapeless.symbolic.positions import Position


class RowTarget:
    """A carried array of which each iteration reads and writes one row: the view of those rows, and a test that
    they exist.
    """

    def __init__(self, loop: For, k: int, width: Atom, span: Span) -> None:
        self.k, self.param = k, loop.params[k]
        init = loop.inits[k]
        assert isinstance(init, Var)
        self.init = init
        self.row = Var(self.param.name, self.param.type.row())
        accesses = Accesses(self.param)
        accesses.collect(loop.body)
        form = own_rows(loop, accesses, forms_of(loop))
        assert form is not None
        scale = form.coefficient(loop.index)
        rest = form.without(loop.index)
        b = Builder(span)
        start = _emit(b, rest)
        size = dim_atom(init.type.shape[0])
        last = b.let(I64, Apply("mul", (b.let(I64, Apply("sub", (width, i64(1)))), i64(scale))))
        last = b.let(I64, Apply("add", (last, start)))
        low, high = b.let(BOOL, Apply("ge", (start, i64(0)))), b.let(BOOL, Apply("lt", (last, size)))
        fits = b.let(BOOL, Apply("and", (low, high)))
        none = b.let(BOOL, Apply("le", (width, i64(0))))
        b.effect(
            Check(
                b.let(BOOL, Apply("or", (none, fits))), "IndexError",
                "index {0} is out of bounds for axis 0 with size {1}", (last, size),
            )
        )  # fmt: skip
        self.axes: tuple[Axis, ...] = (Range(start, atom_dim(width), i64(scale)), *full_axes(init.type.shape[1:]))
        self.source = b.index(init, self.axes, init.name)
        self.before = list(b.stms)


def _emit(b: Builder, form: Position) -> Atom:
    total: Atom = i64(form.const)
    for (v,), c in form.terms.items():
        part: Atom = v if c == 1 else b.let(I64, Apply("mul", (v, i64(c))))
        total = part if total == i64(0) else b.let(I64, Apply("add", (total, part)))
    return total


class Rows:
    """Rewrites a body that accesses one row of an array into one that has just that row."""

    def __init__(self, param: Var, row: Var) -> None:
        self.now: dict[Var, Atom] = {param: row}  # version of the array -> version of the row
        self.values: dict[Var, Atom] = {}

    def body(self, body: Body) -> Body:
        stms = [new for s in body.stms for new in self.stm(s)]
        return Body(tuple(stms), tuple(self.atom(r) for r in body.results))

    def atom(self, a: Atom) -> Atom:
        if isinstance(a, Var):
            return self.now.get(a, self.values.get(a, a))
        return a

    def stm(self, s: Stm) -> list[Stm]:
        match s.exp:
            case Index(array=a, axes=axes) if a in self.now:
                row = self.now[a]
                if not row.type.shape:
                    self.values[s.vars[0]] = row
                    return []
                assert isinstance(row, Var)
                return [Stm(s.vars, Index(row, tuple(self.axis(x) for x in axes[1:])), s.span)]
            case Update(array=a, axes=axes, value=value) if a in self.now:
                row = self.now[a]
                if not row.type.shape:
                    self.now[s.vars[0]] = self.atom(value)
                    return []
                assert isinstance(row, Var)
                new = Var(row.name, row.type)
                self.now[s.vars[0]] = new
                return [Stm((new,), Update(row, tuple(self.axis(x) for x in axes[1:]), self.atom(value)), s.span)]
        for v in (*s.vars, *(p for r in regions(s.exp) for p in r.params)):
            if v.type.shape and self._is_version(v, s):
                self.now[v] = Var(v.name, v.type.row())
        exp = map_exp(s.exp, self.atom, self.body, lambda lam: Lambda(self.params(lam.params), self.body(lam.body)))
        return [Stm(self.params(s.vars), exp, s.span)]

    def axis(self, x: Axis) -> Axis:
        if isinstance(x, At):
            return At(self.atom(x.index), x.wrap, x.check)
        return Range(self.atom(x.start), x.length, self.atom(x.step))

    def params(self, vars: Sequence[Var]) -> tuple[Var, ...]:
        return tuple(v for v in (self.atom(p) if p in self.now else p for p in vars) if isinstance(v, Var))

    def _is_version(self, v: Var, s: Stm) -> bool:
        """Whether a loop or branch carries the array under this name."""
        match s.exp:
            case For(params=params, inits=inits) | While(params=params, inits=inits):
                places = dict(zip((*params, *s.vars), (*inits, *inits), strict=True))
                return places.get(v) in self.now
            case If(then=then, orelse=orelse):
                if v not in s.vars:
                    return False
                k = s.vars.index(v)
                return any(self._reaches(arm, arm.results[k]) for arm in (then, orelse))
        return False

    def _reaches(self, body: Body, result: Atom) -> bool:
        definitions = {v: t for t in body.stms for v in t.vars}
        while isinstance(result, Var) and result not in self.now:
            made = definitions.get(result)
            if made is None:
                return False
            match made.exp:
                case Update(array=a):
                    result = a
                case For(inits=inits) | While(inits=inits):
                    result = inits[made.vars.index(result)]
                case If(then=then):
                    k = made.vars.index(result)
                    return self._reaches(then, then.results[k]) or self._reaches(
                        made.exp.orelse, made.exp.orelse.results[k]
                    )
                case _:
                    return False
        return isinstance(result, Var)
