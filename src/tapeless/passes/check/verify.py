"""Is this function legal Core? Run after the front end and after every pass.

Takes a function; gives nothing, or raises InvalidCore that names the statement in printed form. It checks that names
are bound once and before their use, types and counts. Whether an array is used after it was consumed is not its matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import NoReturn

from tapeless.ir.calls import operands_of, result_types
from tapeless.ir.core import (
    Body,
    Call,
    For,
    Function,
    Hist,
    If,
    Lambda,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.operands import operands
from tapeless.ir.printer import Printer
from tapeless.ir.types import BOOL, I64, Atom, Dim, Type, Var
from tapeless.ir.walk import Substitution, type_vars
from tapeless.ops.table import TABLE
from tapeless.passes.check import typerules
from tapeless.passes.check.typerules import Illegal, require, require_array, require_dims, require_fit, same_dim

LINES_SHOWN = 12


class InvalidCore(AssertionError):
    """A front end or a pass has made a program that is none."""


def verify(f: Function) -> None:
    """The whole program that it is the entry of."""
    table = {g.name: g for g in f.calls}
    if len(table) < len(f.calls):
        raise InvalidCore(f"{f.name}: two functions of the program have the same name")
    for g in (*f.calls, f):
        Verifier(g, table).function()


class Verifier:
    """`scope` holds the names seen here (`visible` in order), `bound` all names so far, `stms` where we are."""

    def __init__(self, f: Function, table: Mapping[str, Function]) -> None:
        self.f, self.table = f, table
        self.scope: set[Var] = set()
        self.visible: list[Var] = []
        self.bound: set[Var] = set()
        self.stms: list[Stm] = []

    # -- functions, statements, regions

    def function(self) -> None:
        f = self.f
        try:
            for size in f.sizes:
                require_fit(size.type, I64, f"the size {size.name}")
            self.bind([*f.sizes, *f.params])
            for p in f.params:
                require(not p.type.acc, f"the parameter {p.name} is an accumulator")
            results = self.body(f.body)
            self.written(results)
            for name in f.rule.functions if f.rule else ():
                require(not name or name in self.table, f"the program has no function {name}")
        except Illegal as problem:
            self.fail(str(problem))

    def written(self, results: Sequence[Type]) -> None:
        f = self.f
        require(len(set(f.written)) == len(f.written) <= len(results), "each written parameter is a result, once")
        for position, type in zip(f.written, results[len(results) - len(f.written) :], strict=True):
            require(0 <= position < len(f.params), f"there is no parameter {position} to write")
            require_fit(type, f.params[position].type, f"the final value of {f.params[position].name}")

    def fail(self, reason: str) -> NoReturn:
        printer = Printer()
        whole = printer.function(self.f)  # first, so that names are those of the whole function
        text = printer.stm(self.stms[-1], 0) if self.stms else whole
        shown = text.rstrip().split("\n")
        if len(shown) > LINES_SHOWN:
            shown = [*shown[:LINES_SHOWN], "..."]
        place = f" ({self.stms[-1].span})" if self.stms else ""
        raise InvalidCore("\n    ".join([f"{self.f.name}: {reason}{place}", *shown]))

    def body(self, body: Body) -> tuple[Type, ...]:
        """The types of the results. Names bound inside stay in scope: the caller opens a region around it."""
        for stm in body.stms:
            self.stms.append(stm)
            self.stm(stm)
            self.stms.pop()
        for result in body.results:
            self.use(result)
            require(not result.type.acc, f"{result!r} is an accumulator and cannot be a result")
        return tuple(r.type for r in body.results)

    def stm(self, stm: Stm) -> None:
        for atom in operands(stm.exp):
            self.use(atom)
            require(
                not atom.type.acc or isinstance(stm.exp, UpdateAcc), f"{atom!r} is an accumulator and cannot be read"
            )
        types = [v.type for v in stm.vars]
        wanted = self.result_types(stm, types)
        require(len(types) == len(wanted), f"it binds {len(types)} variables to {len(wanted)} results")
        for var, type in zip(stm.vars, wanted, strict=True):
            require_fit(var.type, type, var.name)
        self.bind(stm.vars)

    def use(self, atom: Atom) -> None:
        require(not isinstance(atom, Var) or atom in self.scope, f"{atom!r} is not in scope")

    def bind(self, vars: Sequence[Var]) -> None:
        """The types may use the variables that are bound together with them."""
        for v in vars:
            require(v not in self.bound, f"{v!r} is bound twice")
            self.bound.add(v)
            self.scope.add(v)
            self.visible.append(v)
        for v in vars:
            require_dims(v.type.shape, v.name)
            for d in type_vars(v.type):
                self.use(d)

    @contextmanager
    def region(self, params: Sequence[Var] = ()) -> Iterator[None]:
        outer = len(self.visible)
        self.bind(params)
        yield
        self.scope.difference_update(self.visible[outer:])
        del self.visible[outer:]

    def inner(self, body: Body, params: Sequence[Var] = ()) -> tuple[Type, ...]:
        with self.region(params):
            return self.body(body)

    def lam(self, lam: Lambda, params: Sequence[Type], what: str) -> tuple[Type, ...]:
        """The types of its results. Its parameters must have these types."""
        self.require_all([p.type for p in lam.params], params, f"parameter of {what}")
        return self.inner(lam.body, lam.params)

    def require_all(self, found: Sequence[Type], wanted: Sequence[Type], what: str) -> None:
        require(len(found) == len(wanted), f"{len(wanted)} times a {what} expected, {len(found)} found")
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            require_fit(a, b, f"{what} number {k}")

    # -- expressions

    def result_types(self, stm: Stm, bound: Sequence[Type]) -> Sequence[Type]:
        """The types of an expression's results; `bound` are those of the variables, where only they say it."""
        match stm.exp:
            case If(cond, then, orelse):
                require_fit(cond.type, BOOL, "the condition")
                for branch, word in ((then, "then"), (orelse, "else")):
                    self.require_all(self.inner(branch), bound, f"result of {word}")
                return bound
            case For(index, bound_atom, params, inits, body):
                require_fit(bound_atom.type, I64, "the bound")
                require_fit(index.type, I64, "the index")
                with self.region([index, *params]):
                    return self.carried(params, inits, self.body(body))
            case While(params, inits, cond, body):
                with self.region(params):
                    self.require_all(self.inner(cond), [BOOL], "result of the test")
                    return self.carried(params, inits, self.body(body))
            case Sweep(width, arrays, lam, reduces, scans):
                results = self.swept(width, arrays, lam)
                reduced = list(chain.from_iterable(self.operator(r) for r in reduces))
                scanned = list(chain.from_iterable(self.operator(r) for r in scans))
                operator_count = len(reduced) + len(scanned)
                require(
                    len(results) >= operator_count, f"the lambda gives {len(results)} results, {operator_count} needed"
                )
                self.require_all(results[:operator_count], reduced + scanned, "operand of the operators")
                return reduced + [_array_of(width, t) for t in (*scanned, *results[operator_count:])]
            case Hist(op, dests, width, arrays, lam):
                self.scattered(dests, self.swept(width, arrays, lam))
                self.require_all(self.operator(op), [d.type.row() for d in dests], "operand of the operator")
                return [d.type for d in dests]
            case Scatter(dests, width, arrays, lam):
                self.scattered(dests, self.swept(width, arrays, lam))
                return [d.type for d in dests]
            case WithAcc(arrays, lam):
                return [*(a.type for a in arrays), *self.accumulated(arrays, lam)]
            case Call(name, args):
                return self.called(name, args)
            case exp:
                return typerules.simple_result_types(exp, bound)

    def called(self, name: str, args: Sequence[Atom]) -> Sequence[Type]:
        require(name in self.table, f"the program has no function {name}")
        f = self.table[name]
        require(not f.written, f"{name} writes its parameters")
        wanted = operands_of(f)
        require(len(args) == len(wanted), f"{len(args)} arguments for the {len(wanted)} of {name}")
        known = Substitution(dict(zip(wanted, args, strict=True)))
        self.require_all([a.type for a in args], [known.type(p.type) for p in wanted], f"argument of {name}")
        results = result_types(f, args)
        for t in results:
            for d in type_vars(t):
                require(d in self.scope, f"the size {d!r} of a result is known in {name} only")
        return results

    def carried(self, params: Sequence[Var], inits: Sequence[Atom], results: Sequence[Type]) -> Sequence[Type]:
        types = [p.type for p in params]
        for t in types:
            require(not t.acc, "an accumulator cannot be carried")
        self.require_all([a.type for a in inits], types, "start value")
        self.require_all(results, types, "result of the body")
        return types

    def swept(self, width: Dim, arrays: Sequence[Var], lam: Lambda) -> Sequence[Type]:
        """The types that the lambda gives for each of `width` elements."""
        require_dims([width], "the width")
        for a in arrays:
            require_array(a, "the operand")
            require(same_dim(a.type.shape[0], width), f"{a!r} is not {width!r} long")
        return self.lam(lam, [I64, *(a.type.row() for a in arrays)], "the lambda")

    def operator(self, r: Reduction) -> Sequence[Type]:
        """The types that the operator combines."""
        neutral = [a.type for a in r.neutral]
        require(len(neutral) > 0, "an operator needs a neutral element")
        results = self.lam(r.op, neutral * 2, "the operator")
        self.require_all(results, neutral, "result of the operator")
        return neutral

    def scattered(self, dests: Sequence[Var], results: Sequence[Type]) -> None:
        for d in dests:
            require_array(d, "the destination")
            require(same_dim(d.type.shape[0], dests[0].type.shape[0]), "the destinations differ in length")
        self.require_all(results, [I64, *(d.type.row() for d in dests)], "result of the lambda")

    def accumulated(self, arrays: Sequence[Var], lam: Lambda) -> Sequence[Type]:
        """The types of the lambda's own results."""
        for a in arrays:
            require_array(a, "the operand")
        operators = [p.type.acc for p in lam.params]
        for name in operators:
            known = name == "set" or (name in TABLE and TABLE[name].arity == 2)
            require(known, f"{name or 'nothing'} is no operator of an accumulator")
        require(len(operators) == len(arrays), f"{len(operators)} accumulators of {len(arrays)} arrays")
        accs = [Type(a.type.dtype, a.type.shape, name) for a, name in zip(arrays, operators, strict=True)]
        return self.lam(lam, accs, "the lambda")


def _array_of(width: Dim, type: Type) -> Type:
    return type.with_shape((width, *type.shape))


__all__ = ["InvalidCore", "verify"]
