"""The reference evaluator of Core: what a program means, one Python step for each scalar operation.

Takes a verified function and its arguments, gives the results as new NumPy values; the arguments stay as they are.
The rules of the nodes are in modules of their own and register themselves with `evaluates`. Simple rather than fast.

Note [Judging updates in place]
Arrays are values here: an update makes a copy, so the results are right whether or not code may update in place.
With `consume=True` the evaluator also asks whether it may. `update`, `hist`, `scatter` and `with_acc` then take over
the memory of the arrays that they consume, and `UseAfterConsume` is raised where that memory is looked at again,
under whichever name. Ranges of `index`, `reshape`, `transpose`, `broadcast`, rows of a sweep, carried values and
results of regions share the memory of what they came from. `copy`, `concat`, array literals, results of sweeps and
running values of reductions have memory of their own. What is read while the array is being written (the value of an
update; the arrays and the lambda of a histogram or a scatter) counts as a later use.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapeless.interp.values import (
    Accumulator,
    Array,
    IllTyped,
    Place,
    Scalar,
    UseAfterConsume,
    Value,
    argument,
    bind_sizes,
    constant,
    fits,
    fresh,
    owner,
)
from tapeless.ir.core import At, Axis, Body, Function, Lambda, Stm
from tapeless.ir.rules import Rules
from tapeless.ir.types import Atom, Const, Dim, Var
from tapeless.ops import callbacks


def evaluate(
    function: Function, args: Sequence[object], *, consume: bool = False, order: str = "forward"
) -> tuple[Scalar | Array, ...]:
    """The results of the function; the last ones are the final values of the parameters that it writes.

    consume: see Note [Judging updates in place].
    order:   "forward", "reverse" or "shuffle:SEED": how sweeps run whose result must not depend on it.
    """
    evaluator = Evaluator(consume, order)
    with np.errstate(all="ignore"), callbacks.during(keeps=True):
        return evaluator.function(function, args)


Rule = Callable[["Evaluator", Stm, Any], Sequence[Value]]
RULES: Rules[type, Rule] = Rules()
evaluates = RULES.of  # a rule gives the values of the variables that the statement binds


class Evaluator:
    """One run. `env` holds the names in scope, `consumed` the memory that statements took over, by id."""

    def __init__(self, consume: bool = False, order: str = "forward") -> None:
        self.env: dict[Var, Value] = {}
        self.functions: dict[str, Function] = {}
        self.judge = consume
        self.consumed: dict[int, tuple[weakref.ref[Array], Stm]] = {}
        self.stm: Stm | None = None  # the innermost statement being evaluated
        kind, _, seed = order.partition(":")
        if kind not in ("forward", "reverse", "shuffle") or (kind == "shuffle") != bool(seed):
            raise ValueError(f'order is "forward", "reverse" or "shuffle:SEED", not "{order}"')
        self.order = kind
        self.random = random.Random(seed)

    # -- functions, regions, statements

    def function(self, function: Function, args: Sequence[object]) -> tuple[Scalar | Array, ...]:
        if len(args) != len(function.params):
            raise TypeError(f"{function.name}() takes {len(function.params)} arguments, {len(args)} given")
        values = [argument(p, a) for p, a in zip(function.params, args, strict=True)]
        lengths: dict[Var, int] = {}
        for param, value in zip(function.params, values, strict=True):
            bind_sizes(param, value.shape, lengths)
        if missing := [size for size in function.sizes if size not in lengths]:
            raise IllTyped(f"{missing} are sizes of {function.name} and in no shape of its parameters")
        self.functions = {f.name: f for f in function.calls}
        self.bind(function.sizes, [np.int64(lengths[size]) for size in function.sizes])
        self.bind(function.params, values)
        return tuple(fresh(r) for r in self.body(function.body))

    def body(self, body: Body) -> list[Value]:
        """The results of a region. Names bound in it are gone afterwards."""
        outer = self.stm
        for stm in body.stms:
            self.stm = stm
            self.bind(stm.vars, RULES[type(stm.exp)](self, stm, stm.exp))
        self.stm = outer  # the statement that holds the region uses its results
        results = [self.get(a) for a in body.results]
        for stm in body.stms:
            self.unbind(stm.vars)
        return results

    def call(self, lam: Lambda, args: Sequence[Value]) -> list[Value]:
        self.bind(lam.params, args)
        results = self.body(lam.body)
        self.unbind(lam.params)
        return results

    def bind(self, vars: Sequence[Var], values: Sequence[Value]) -> None:
        for var, value in zip(vars, values, strict=True):
            if var in self.env:
                raise IllTyped(f"{var} is bound twice{self.where()}")
            self.env[var] = value
        for var, value in zip(vars, values, strict=True):  # a type may mention a variable that is bound with it
            type = var.type
            if not fits(value, type, self.shape(type.shape) if type.shape else ()):
                got = value.array if isinstance(value, Accumulator) else value
                raise IllTyped(f"{var} is bound to {got.dtype}{list(got.shape)}{self.where()}")

    def unbind(self, vars: Iterable[Var]) -> None:
        for var in vars:
            del self.env[var]

    def positions(self, width: int) -> Sequence[int]:
        """The elements of a sweep whose result must not depend on their order."""
        forward = range(width)
        if self.order == "shuffle":
            return self.random.sample(forward, width)
        return forward[::-1] if self.order == "reverse" else forward

    # -- operands

    def get(self, atom: Atom) -> Value:
        if isinstance(atom, Const):
            return constant(atom)
        value = self.env.get(atom)
        if value is None:
            raise IllTyped(f"{atom} is not in scope{self.where()}")
        if self.consumed and isinstance(value, np.ndarray) and (taken := self.consumed.get(id(owner(value)))):
            raise UseAfterConsume(f"{atom.name} is used{self.where()} after {describe(taken[1])} consumed its memory")
        return value

    def scalar(self, atom: Atom) -> Scalar:
        value = self.get(atom)
        if isinstance(value, (Accumulator, np.ndarray)):
            raise IllTyped(f"{atom} is not a scalar{self.where()}")
        return value

    def readable(self, atom: Atom) -> Scalar | Array:
        value = self.get(atom)
        if isinstance(value, Accumulator):
            raise IllTyped(f"{atom} is an accumulator and cannot be read{self.where()}")
        return value

    def array(self, var: Var) -> Array:
        value = self.get(var)
        if not isinstance(value, np.ndarray):
            raise IllTyped(f"{var} is not an array{self.where()}")
        return value

    def integer(self, atom: Atom) -> int:
        return int(self.scalar(atom))

    def shape(self, dims: Iterable[Dim]) -> tuple[int, ...]:
        return tuple(self.dim(d) for d in dims)

    def dim(self, dim: Dim) -> int:
        return self.integer(dim) if isinstance(dim, Var) else dim

    def places(self, axes: Iterable[Axis]) -> list[Place]:
        return [
            Place(a, self.integer(a.index))
            if isinstance(a, At)
            else Place(a, self.integer(a.start), self.dim(a.length), self.integer(a.step))
            for a in axes
        ]

    def rows(self, arrays: Iterable[Var], width: int) -> list[Array]:
        """The arrays of a sweep, each with one row for each element."""
        found = [self.array(a) for a in arrays]
        if any(len(a) != width for a in found):
            raise IllTyped(f"arrays of lengths {[len(a) for a in found]} are swept in {width} steps{self.where()}")
        return found

    def take(self, var: Var, stm: Stm) -> Array:
        """A copy of an array that the statement consumes."""
        array = self.array(var)
        if self.judge:
            memory = owner(array)
            key = id(memory)  # of another array once this one is gone, hence the callback
            self.consumed[key] = (weakref.ref(memory, lambda _: self.consumed.pop(key, None)), stm)
        return array.copy()

    def where(self) -> str:
        return f" in {describe(self.stm)}" if self.stm else " in the results of the function"


def describe(stm: Stm) -> str:
    names = ", ".join(v.name for v in stm.vars)
    return f"`{names}{' = ' if names else ''}{type(stm.exp).__name__.lower()}` ({stm.span})"
