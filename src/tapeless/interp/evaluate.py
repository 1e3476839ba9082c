"""The reference evaluator of Core: what a program means, one Python step for each scalar operation.

Takes a verified function and its arguments, gives the results as new NumPy values; the arguments stay as they are.
Relies on the ops table and the library registry for what an operation computes. Simple rather than fast.

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

import builtins
import math
import random
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import assert_never

import numpy as np

from tapeless import errors
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
    broadcast,
    constant,
    fits,
    fresh,
    owner,
    select,
    store,
    uninitialised,
)
from tapeless.ir.calls import operands_of
from tapeless.ir.core import (
    Apply,
    Arranging,
    ArrayLit,
    At,
    Axis,
    Body,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
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
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.quiet import quiet
from tapeless.ir.span import Span
from tapeless.ir.types import Atom, Const, Dim, DType, Var
from tapeless.ops.library import LIBRARY
from tapeless.ops.table import TABLE


def evaluate(
    function: Function, args: Sequence[object], *, consume: bool = False, order: str = "forward"
) -> tuple[Scalar | Array, ...]:
    """The results of the function; the last ones are the final values of the parameters that it writes.

    consume: see Note [Judging updates in place].
    order:   "forward", "reverse" or "shuffle:SEED": how sweeps run whose result must not depend on it.
    """
    evaluator = Evaluator(consume, order)
    with np.errstate(all="ignore"):
        return evaluator.function(function, args)


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
            self.bind(stm.vars, self.statement(stm))
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
            if not fits(value, var.type, self.shape(var.type.shape)):
                got = value.array if isinstance(value, Accumulator) else value
                raise IllTyped(f"{var} is bound to {got.dtype}{list(got.shape)}{self.where()}")

    def unbind(self, vars: Iterable[Var]) -> None:
        for var in vars:
            del self.env[var]

    # -- operands

    def get(self, atom: Atom) -> Value:
        if isinstance(atom, Const):
            return constant(atom)
        if atom not in self.env:
            raise IllTyped(f"{atom} is not in scope{self.where()}")
        value = self.env[atom]
        if self.consumed and isinstance(value, np.ndarray) and (taken := self.consumed.get(id(owner(value)))):
            raise UseAfterConsume(f"{atom.name} is used{self.where()} after {describe(taken[1])} consumed its memory")
        return value

    def scalar(self, atom: Atom) -> Scalar:
        value = self.get(atom)
        if isinstance(value, Accumulator | np.ndarray):
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

    # -- expressions

    def statement(self, stm: Stm) -> Sequence[Value]:
        """The values of the variables that the statement binds."""
        match stm.exp:
            case Apply("convert", (x,)):
                return [TABLE["convert"].numpy(self.scalar(x), stm.vars[0].type.dtype.numpy)]
            case Apply(op, args):
                return [TABLE[op].numpy(*[self.scalar(a) for a in args])]
            case Index(array, axes):
                whole = self.array(array)
                return [whole[select(whole, self.places(axes), stm.span)]]
            case Update(array, axes, value):
                places = self.places(axes)
                changed = self.take(array, stm)
                store(changed, select(changed, places, stm.span), self.readable(value), fill=True)
                return [changed]
            case If(cond, then, orelse):
                return self.body(then if self.scalar(cond) else orelse)
            case For() as loop:
                return self.for_loop(loop)
            case While() as loop:
                return self.while_loop(loop)
            case Sweep() as sweep:
                return self.sweep(sweep, stm)
            case Hist() as hist:
                return self.hist(hist, stm)
            case Scatter() as scatter:
                return self.scatter(scatter, stm)
            case WithAcc(arrays, lam):
                accs = [Accumulator(p.type.acc, self.take(a, stm)) for p, a in zip(lam.params, arrays, strict=True)]
                results = self.call(lam, accs)
                return [*(acc.array for acc in accs), *results]
            case UpdateAcc(acc, axes, value):
                self.update_acc(acc, axes, value, stm.span)
                return []
            case Check(cond, error, message, args):
                if not self.scalar(cond):
                    fail(error, message.format(*map(self.readable, args)), stm.span)
                return []
            case Print(parts, args):
                print("".join(part if isinstance(part, str) else str(self.readable(args[part])) for part in parts))
                return []
            case Library(name, args, attrs):
                return [fresh(v) for v in LIBRARY[name].numpy([self.readable(a) for a in args], dict(attrs))]
            case Call(name, args, effects):
                f = self.functions[name]
                lam = Lambda(operands_of(f), f.body if effects else quiet(f.body))
                return [fresh(v) for v in self.call(lam, [self.get(a) for a in args])]
            case exp:
                return [self.rearrange(exp, stm.vars[0].type.dtype)]

    def rearrange(self, exp: Arranging, dtype: DType) -> Array:
        match exp:
            case Iota(length):
                return np.arange(self.dim(length), dtype=np.int64)
            case Full(shape, value):
                if value is None:
                    return uninitialised(self.shape(shape), dtype)
                item = self.scalar(value)
                return np.full(self.shape(shape), item, item.dtype)
            case ArrayLit(items):
                return np.stack([self.readable(a) for a in items])
            case Reshape(array, shape):
                whole, dims = self.array(array), self.shape(shape)
                if whole.size != math.prod(dims) or any(d < 0 for d in dims):
                    raise IllTyped(f"an array of shape {list(whole.shape)} becomes one of {list(dims)}{self.where()}")
                return whole.reshape(dims)
            case Transpose(array, perm):
                return self.array(array).transpose(perm)
            case Broadcast(array, shape, axes):
                return broadcast(self.readable(array), self.shape(shape), axes)
            case Concat(arrays, axis):
                return np.concatenate([self.array(a) for a in arrays], axis)
            case Copy(array):
                return self.array(array).copy()
            case _:
                assert_never(exp)

    # -- loops

    def for_loop(self, loop: For) -> Sequence[Value]:
        state: Sequence[Value] = [self.get(a) for a in loop.inits]
        step = Lambda((loop.index, *loop.params), loop.body)
        for i in range(self.integer(loop.bound)):
            state = self.call(step, [np.int64(i), *state])
        return state

    def while_loop(self, loop: While) -> Sequence[Value]:
        state: Sequence[Value] = [self.get(a) for a in loop.inits]
        test, step = Lambda(loop.params, loop.cond), Lambda(loop.params, loop.body)
        while True:
            (go_on,) = self.call(test, state)
            if not go_on:
                return state
            state = self.call(step, state)

    # -- parallel operators

    def sweep(self, sweep: Sweep, stm: Stm) -> Sequence[Value]:
        width = self.dim(sweep.width)
        arrays = self.rows(sweep.arrays, width)
        # A running value is memory of its own: an operator may consume its operands, or hand one of them on.
        reduced = [[fresh(self.get(a)) for a in r.neutral] for r in sweep.reduces]
        scanned = [[fresh(self.get(a)) for a in r.neutral] for r in sweep.scans]
        arrays_out = stm.vars[sum(map(len, reduced)) :]
        outputs = [uninitialised((width, *self.shape(v.type.shape[1:])), v.type.dtype) for v in arrays_out]
        for i in self.positions(sweep, width):
            results = iter(self.call(sweep.lam, [np.int64(i), *(a[i] for a in arrays)]))
            for reduction, running in zip((*sweep.reduces, *sweep.scans), (*reduced, *scanned), strict=True):
                operands = [next(results) for _ in running]
                running[:] = map(fresh, self.call(reduction.op, [*running, *operands]))
            for output, row in zip(outputs, chain(*scanned, results), strict=True):
                store(output, i, row)
        return [*chain(*reduced), *outputs]

    def positions(self, sweep: Sweep, width: int) -> Sequence[int]:
        forward = range(width)
        if self.order == "forward" or sweep.scans or not all(r.commutative for r in sweep.reduces):
            return forward
        return forward[::-1] if self.order == "reverse" else self.random.sample(forward, width)

    def hist(self, hist: Hist, stm: Stm) -> Sequence[Value]:
        dests = [self.take(d, stm) for d in hist.dests]
        for key, values in self.writes(hist, dests):
            cells = [fresh(d[key]) for d in dests]
            for dest, cell in zip(dests, self.call(hist.op.op, [*cells, *values]), strict=True):
                store(dest, key, cell)
        return dests

    def scatter(self, scatter: Scatter, stm: Stm) -> Sequence[Value]:
        dests = [self.take(d, stm) for d in scatter.dests]
        for key, values in self.writes(scatter, dests):
            for dest, value in zip(dests, values, strict=True):
                store(dest, key, value)
        return dests

    def writes(self, exp: Hist | Scatter, dests: Sequence[Array]) -> Iterator[tuple[int, list[Value]]]:
        """Key and values of each element, without those whose key is outside."""
        length = len(dests[0])
        if any(len(d) != length for d in dests):
            raise IllTyped(f"destinations have lengths {[len(d) for d in dests]}{self.where()}")
        width = self.dim(exp.width)
        arrays = self.rows(exp.arrays, width)
        for i in range(width):
            key, *values = self.call(exp.lam, [np.int64(i), *(a[i] for a in arrays)])
            if not isinstance(key, np.integer):
                raise IllTyped(f"{key!r} is not a key{self.where()}")
            if 0 <= key < length:
                yield int(key), values

    def update_acc(self, var: Var, axes: Iterable[Axis], value: Atom, span: Span) -> None:
        acc = self.get(var)
        if not isinstance(acc, Accumulator):
            raise IllTyped(f"{var} is not an accumulator{self.where()}")
        combine = None if acc.op == "set" else TABLE[acc.op].numpy
        store(acc.array, select(acc.array, self.places(axes), span), self.readable(value), fill=True, combine=combine)


# -- words for people


def describe(stm: Stm) -> str:
    names = ", ".join(v.name for v in stm.vars)
    return f"`{names}{' = ' if names else ''}{type(stm.exp).__name__.lower()}` ({stm.span})"


def fail(error: str, message: str, span: Span) -> None:
    """Raises the error that a check names: a class of tapeless.errors or a builtin one. Warnings are given."""
    kind = getattr(errors, error, None) or getattr(builtins, error)
    if error in errors.WARNINGS:
        warnings.warn(kind(f"{message} ({span})"), stacklevel=2)
        return
    if issubclass(kind, errors.SourceError):  # shows file and line itself
        place = {"file": span.file, "line": span.line, "column": span.column}
        raise kind(message, **place, end_line=span.end_line, end_column=span.end_column)
    raise kind(f"{message} ({span})")
