"""`tp.inverse` of an ordinary function: its statements solved for the arguments, from the results.

The results stand in the place of the first arguments; the others are known. A function that returns nothing and writes
arrays is undone in place. What cannot be solved raises `InvertibilityError` with the line that stands in the way.

Note [There and back]
Statements are solved as if no factor were 0, and the domain of each function is not looked at; what the function tests
has no place in its inverse. So the function is run on what was found, with its own tests, and must give what was to be
undone, up to a tolerance. Derivatives of an inverse go without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tapeless.ad.transform import prepared
from tapeless.frontend.data.arrays import as_numeric, write
from tapeless.frontend.data.atoms import apply, convert, select
from tapeless.frontend.data.leaves import atom_of, leaves_of, own, rebuilt, type_of, value_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy, call_value, operator
from tapeless.frontend.state.values import Array, Builtin, Cell, Scalar, Static, Value, weak
from tapeless.ir.core import Apply, Body, For, If, Lambda, Library, Stm, Sweep, Update, While
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import Atom, DType, Type, Var, const
from tapeless.ir.walk import free_in_exp
from tapeless.passes.inline import inline_here
from tapeless.reversible.solve import Solver
from tapeless.transforms.reversible_checks import compare
from tapeless.transforms.traced import Arguments, Keywords, parameters_of

TOLERANCE = 1e-8  # relative
NOT_BACK = "there is no such argument: the function gives {0} for what was found, and was to give {1}"
SHAPE = "return as many values as there are arguments to be found, of their types."


@operator("inverse")
def op_inverse(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    if len(args) != 1 or keywords:
        ctx.fail("TP112", "tp.inverse takes a function")
    (function,) = args
    if isinstance(function, Static) and getattr(function.value, "__tapeless_reversible__", False):
        return Builtin("tp.inverse", lambda ctx, a, k: call_value(ctx, _inverse_of(ctx, function), a, k))

    def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        return _Inversion(ctx, function, args, keywords).run()

    return Builtin("tp.inverse", run, parameters_of(function))


def _inverse_of(ctx: Context, function: Static) -> Value:
    origin = ctx.reads.step(ctx.reads.origin_of(function.value), "own attribute", "inverse")
    ctx.reads.remember(origin)
    return Static(origin.value)


class _Inversion:
    """One call."""

    def __init__(self, ctx: Context, function: Value, args: Arguments, keywords: Keywords) -> None:
        self.ctx, self.function, self.args, self.keywords = ctx, function, args, keywords
        self.params: list[Var] = []  # of the numbers among the arguments
        self.given: list[Atom] = []  # what stands for them at the call
        self.cells: list[Cell | None] = []

    def fresh(self, leaf: Value) -> Value:
        """A name for a number that is not known yet."""
        type = type_of(leaf)
        if type is None:
            return leaf
        assert isinstance(leaf, (Scalar, Array))
        name = leaf.cell.name if isinstance(leaf, Array) else getattr(leaf.atom, "name", "x")
        p = Var(name, Type(type.dtype, self.ctx.dims(type.shape)))
        self.params.append(p)
        self.given.append(atom_of(self.ctx, leaf))
        if isinstance(leaf, Scalar):
            self.cells.append(None)
            return Scalar(p, leaf.weak)
        made = self.ctx.new_cell(p, name)
        self.cells.append(made.cell)
        return made

    def run(self) -> Value:
        ctx = self.ctx
        values = [rebuilt(a, [self.fresh(leaf) for leaf in leaves_of(a)]) for a in self.args]
        state, written = ctx.state.copy(), set(ctx.written_cells)
        ctx.transforms += 1
        ctx.reversing += 1
        with ctx.b.region() as stms:
            result = call_value(ctx, self.function, values, self.keywords)
            in_place = result == Static(None)
            if in_place:
                ends: list[Atom] = [self._content(k) for k in range(len(self.params))]
            else:
                numbers = [leaf for leaf in leaves_of(result) if isinstance(leaf, (Scalar, Array))]
                ends = [atom_of(ctx, leaf) for leaf in numbers]
        ctx.reversing -= 1
        ctx.transforms -= 1
        ctx.state, ctx.written_cells = state, written
        if not in_place:
            self._fits(result, ends)
        body = inline_here(Body(tuple(stms), tuple(ends)), ctx.b.functions, everything=True)
        solver = self._solved(prepared(Lambda(tuple(self.params), body), ctx.b.functions).body, len(ends))
        found = [solver.atom(p) for p in self.params]
        count = len(self.params) if in_place else len(ends)
        if not ctx.transforms and not ctx.options.unsafe:
            self._there_and_back(found, self.given[:count], in_place)
        return self._written(found) if in_place else self._returned(result, found[:count])

    def _there_and_back(self, found: Sequence[Atom], wanted: Sequence[Atom], in_place: bool) -> None:
        """Note [There and back]"""
        ctx, atoms, given = self.ctx, iter(found), list[Value]()

        def with_found(leaf: Value) -> Value:
            if type_of(leaf) is None:
                return leaf
            given.append(value_of(ctx, next(atoms), isinstance(leaf, Scalar) and leaf.weak))
            return given[-1]

        values = [rebuilt(a, [with_found(leaf) for leaf in leaves_of(a)]) for a in self.args]
        named = {k: own(ctx, v) for k, v in self.keywords.items()}
        result = call_value(ctx, self.function, values, named)
        ends = given if in_place else [v for v in leaves_of(result) if isinstance(v, (Scalar, Array))]
        size = _size_of(ctx, found)
        for now, first in zip(ends, wanted, strict=True):
            pair = [as_numeric(ctx, v, "tp.inverse") for v in (now, value_of(ctx, first))]
            compare(ctx, pair[0], pair[1], TOLERANCE, NOT_BACK, size)

    def _content(self, k: int) -> Atom:
        cell = self.cells[k]
        return self.params[k] if cell is None else self.ctx.state.cells[cell]

    def _fits(self, result: Value, ends: Sequence[Atom]) -> None:
        """The results are of the kinds of the first arguments."""
        kinds = [(a.type.dtype, a.type.rank) for a in ends]
        if not ends or kinds != [(p.type.dtype, p.type.rank) for p in self.params[: len(ends)]]:
            self.ctx.fail("TP407", f"the function returns {type_text(result)} for these arguments", SHAPE)

    def _solved(self, body: Body, count: int) -> Solver:
        solver = Solver(self.ctx.b, body, self.params, exact=False)
        for p, value in zip(self.params[count:], self.given[count:], strict=True):
            solver.learn(p, value)
        for end, value in zip(body.results, self.given, strict=False):
            solver.learn(end, value)
        solver.run()
        lost = next((p for p in self.params if not solver.knows(p)), None)
        if lost is not None:
            _refuse(self.ctx, solver, self.params, lost)
        return solver

    def _returned(self, result: Value, found: Sequence[Atom]) -> Value:
        values = iter(found)
        leaves = [
            value_of(self.ctx, next(values), isinstance(leaf, Scalar) and leaf.weak)
            if isinstance(leaf, (Scalar, Array))
            else leaf
            for leaf in leaves_of(result)
        ]
        return rebuilt(result, leaves)

    def _written(self, found: Sequence[Atom]) -> Value:
        arrays = [leaf for a in self.args for leaf in leaves_of(a) if type_of(leaf) is not None]
        for leaf, value in zip(arrays, found, strict=True):
            if isinstance(leaf, Array):
                write(self.ctx, leaf, value)
        return Static(None)


def _size_of(ctx: Context, found: Sequence[Atom]) -> Atom:
    """Of the largest number: what is added to it and taken away again is rounded by its last digit."""
    largest: Atom = const(0.0, DType.f64)
    for a in found:
        if not (a.type.dtype.is_float or a.type.dtype.is_complex):
            continue
        size = call_numpy(ctx, "abs", [value_of(ctx, a)])
        if isinstance(size, Array):
            size = call_numpy(ctx, "max", [call_numpy(ctx, "append", [size, weak(0.0)])])  # it may be empty
        assert isinstance(size, Scalar)
        largest = apply(ctx, "max", largest, convert(ctx, size.atom, DType.f64))
    return select(ctx, apply(ctx, "isfinite", largest), largest, const(0.0, DType.f64))


# -- what stands in the way


def _refuse(ctx: Context, solver: Solver, params: Sequence[Var], lost: Var) -> NoReturn:
    span, reason = _obstacle(solver, params, lost)
    ctx.not_invertible("TP407", f"the function has no inverse: {reason}", span)


def _obstacle(solver: Solver, params: Sequence[Var], lost: Var) -> tuple[Span, str]:
    """The last statement whose result is known, but not what it was made of."""
    for stm in reversed(solver.body.stms):
        unknown = [v for v in free_in_exp(stm.exp) if not solver.knows(v)]
        if unknown and stm.vars and any(solver.knows(v) for v in stm.vars):
            return stm.span, _why(stm, unknown, params)
    return NOWHERE, f"'{lost.name}' does not show in the results"


def _why(stm: Stm, unknown: Sequence[Var], params: Sequence[Var]) -> str:
    """Names what the user has named for certain."""
    known = set(unknown[:2]) <= set(params)
    names = " and ".join(f"'{v.name}'" for v in unknown[:2]) if known else "what it is made of"
    match stm.exp:
        case If():
            return "which branch was taken does not show in the results"
        case While():
            return "how often the loop went around does not show in the results"
        case For():
            return f"an iteration cannot be solved for {names}"
        case Sweep(reduces=reduces) if reduces:
            return f"a sum does not say what was added: {names}"
        case Update():
            return f"what was overwritten is lost: {names}"
        case Apply() | Sweep() if len(unknown) > 1:
            return f"{names} cannot {'both ' if known else ''}be found from one value"
        case Library(name=name):
            return f"'{name}' is not undone"
        case _:
            return f"{names} cannot be found from the value of this"
