"""Making Core: a builder collects statements, names results and infers their types.

Takes operands and expressions, gives variables. Relies on `ops.table` through the callers for scalar result types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tapeless.ir.calls import Functions, in_place_of, result_types
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Body,
    Broadcast,
    Call,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    If,
    Index,
    Iota,
    Lambda,
    Range,
    Reshape,
    Stm,
    Sweep,
    Transpose,
    Update,
)
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import I64, Atom, Dim, DType, Type, Var, i64
from tapeless.ir.walk import apply_lambda

if TYPE_CHECKING:
    from collections.abc import Iterator


def fresh(name: str, type: Type) -> Var:
    """A new variable; the printer makes names unique, the number only helps a person in a debugger."""
    return Var(name or "t", type)


class Builder:
    """Collects the statements of the region under construction. `span` is put on each statement.

    `functions` are those of the program that it writes.
    """

    def __init__(self, span: Span = NOWHERE, functions: Functions | None = None) -> None:
        self.span = span
        self.functions = Functions() if functions is None else functions
        self.again = False  # what is made now is differentiated once more
        self._scopes: list[list[Stm]] = [[]]
        self.made = 0  # how many statements, those of regions that were given up included

    # -- regions

    @contextmanager
    def region(self) -> Iterator[list[Stm]]:
        """Statements made inside go into the yielded list instead of the current region."""
        stms: list[Stm] = []
        self._scopes.append(stms)
        try:
            yield stms
        finally:
            self._scopes.pop()

    @property
    def stms(self) -> list[Stm]:
        return self._scopes[-1]

    def definition(self, a: Atom) -> Exp | None:
        """The expression of a variable that was bound here or around."""
        return next((s.exp for stms in reversed(self._scopes) for s in stms if a in s.vars), None)

    def body(self, results: Iterable[Atom]) -> Body:
        return Body(tuple(self.stms), tuple(results))

    def lam(self, params: Sequence[Var], make: Callable[..., Iterable[Atom]]) -> Lambda:
        stms: list[Stm] = []
        self._scopes.append(stms)
        try:  # `region` takes longer
            results = tuple(make(*params))
        finally:
            self._scopes.pop()
        return Lambda(tuple(params), Body(tuple(stms), results))

    # -- statements

    def add(self, stm: Stm) -> None:
        self.made += 1
        self._scopes[-1].append(stm)

    def bind(self, vars: Sequence[Var], exp: Exp) -> tuple[Var, ...]:
        self.add(Stm(tuple(vars), exp, self.span))
        return tuple(vars)

    def let(self, type: Type, exp: Exp, name: str = "t") -> Var:
        var = Var(name, type)
        self.add(Stm((var,), exp, self.span))
        return var

    def effect(self, exp: Exp) -> None:
        self.add(Stm((), exp, self.span))

    # -- arrays; a number is an array without axes

    def index(self, array: Var, axes: Sequence[Axis], name: str = "e") -> Var:
        if not array.type.shape:
            return array
        return self.let(indexed_type(array.type, axes), Index(array, tuple(axes)), name)

    def row(self, array: Var, index: Atom, name: str = "row") -> Var:
        """array[index], known to be inside."""
        return self.index(array, [At(index), *full_axes(array.type.shape[1:])], name)

    def update(self, array: Var, axes: Sequence[Axis], value: Atom, name: str = "") -> Var:
        return self.let(array.type, Update(array, tuple(axes), value), name or array.name)

    def full(self, shape: Sequence[Dim], value: Atom | None, dtype: DType, name: str = "full") -> Var:
        return self.let(Type(dtype, tuple(shape)), Full(tuple(shape), value), name)

    def keep(self, shape: Sequence[Dim], dtype: DType, name: str) -> Var:
        """Room for what a loop keeps of the value `name` for the backward pass."""
        return self.let(Type(dtype, tuple(shape)), Full(tuple(shape), None, kept=True), f"{name}_kept")

    def iota(self, length: Dim, name: str = "iota") -> Var:
        return self.let(Type(DType.i64, (length,)), Iota(length), name)

    def array(self, items: Sequence[Atom], name: str = "array") -> Var:
        item = items[0].type
        return self.let(Type(item.dtype, (len(items), *item.shape)), ArrayLit(tuple(items)), name)

    def reshape(self, array: Var, shape: Sequence[Dim], name: str = "") -> Var:
        if not shape:
            return self.index(array, [At(i64(0))] * array.type.rank, name or array.name)
        if not array.type.shape:
            return self.full(shape, array, array.type.dtype, name or array.name)
        return self.let(array.type.with_shape(shape), Reshape(array, tuple(shape)), name or array.name)

    def transpose(self, array: Var, perm: Sequence[int], name: str = "") -> Var:
        if not perm:
            return array
        shape = tuple(array.type.shape[p] for p in perm)
        return self.let(array.type.with_shape(shape), Transpose(array, tuple(perm)), name or array.name)

    def broadcast(self, array: Var, shape: Sequence[Dim], axes: Sequence[int], name: str = "") -> Var:
        if not array.type.shape:
            return self.reshape(array, shape, name)
        return self.let(array.type.with_shape(shape), Broadcast(array, tuple(shape), tuple(axes)), name or array.name)

    def concat(self, arrays: Sequence[Var], axis: int, length: Dim, name: str = "concat") -> Var:
        shape = list(arrays[0].type.shape)
        shape[axis] = length
        return self.let(arrays[0].type.with_shape(shape), Concat(tuple(arrays), axis), name)

    def copy(self, array: Var, name: str = "") -> Var:
        if not array.type.shape:
            return array
        return self.let(array.type, Copy(array), name or array.name)

    def alias(self, new: Var, old: Atom) -> None:
        """Another name for a value, which simplification takes away."""
        if new.type.shape:
            assert isinstance(old, Var)
            self.bind([new], Index(old, tuple(full_axes(new.type.shape))))
        else:
            self.bind([new], Apply("identity", (old,)))

    def inline(self, lam: Lambda, args: Sequence[Atom]) -> tuple[Atom, ...]:
        """The body of a lambda here, with names of its own; its results."""
        return self._here(apply_lambda(lam, args))

    def call(
        self, name: str, args: Sequence[Atom], effects: bool, types: Sequence[Type] | None = None
    ) -> tuple[Var, ...]:
        """Calls a function of the program. `types`: those of its results, if it is not complete yet."""
        if types is not None:
            return self.bind([Var("c", t) for t in types], Call(name, tuple(args), effects))
        f = self.functions[name]
        names = [r.name if isinstance(r, Var) else "c" for r in f.body.results]
        made = [Var(n, t) for n, t in zip(names, result_types(f, args), strict=True)]
        return self.bind(made, Call(name, tuple(args), effects))

    def inline_call(self, name: str, args: Sequence[Atom], effects: bool) -> tuple[Atom, ...]:
        """The body of a function here; its results."""
        return self._here(in_place_of(self.functions[name], args, effects))

    def _here(self, body: Body) -> tuple[Atom, ...]:
        self.made += len(body.stms)
        return self.moved(body)

    def moved(self, body: Body) -> tuple[Atom, ...]:
        """The statements of a body here, which were made elsewhere and are there no more; its results."""
        self.stms.extend(body.stms)
        return body.results

    # -- regions as expressions

    def if_(self, cond: Atom, then: Body, orelse: Body, vars: Sequence[Var]) -> tuple[Var, ...]:
        return self.bind(vars, If(cond, then, orelse))

    def map(
        self,
        width: Dim,
        arrays: Sequence[Var],
        make: Callable[..., Iterable[Atom]],
        name: str = "m",
        rows: Sequence[Var] = (),
    ) -> tuple[Var, ...]:
        """`make(index, *rows)` gives the mapped results. `rows`: of the last arrays, which are there already."""
        own = arrays[: len(arrays) - len(rows)]
        params = [Var("i", I64), *(Var(a.name, a.type.row()) for a in own), *rows]
        lam = self.lam(params, make)
        vars = [Var(name, Type(t.dtype, (width, *t.shape))) for t in lam.result_types]
        return self.bind(vars, Sweep(width, tuple(arrays), lam))

    def for_(
        self, bound: Atom, inits: Sequence[Atom], make: Callable[..., Iterable[Atom]], names: Sequence[str] = ()
    ) -> tuple[Var, ...]:
        """`make(index, *params)` gives the next values."""
        labels = list(names) or [getattr(a, "name", "p") for a in inits]
        index = Var("i", I64)
        params = tuple(Var(n, a.type) for n, a in zip(labels, inits, strict=True))
        with self.region() as stms:
            results = tuple(make(index, *params))
        vars = [Var(p.name, p.type) for p in params]
        return self.bind(vars, For(index, bound, params, tuple(inits), Body(tuple(stms), results)))


def full_axes(shape: Sequence[Dim]) -> list[Axis]:
    """All of each axis."""
    return [Range(i64(0), d, i64(1)) for d in shape]


def indexed_type(type: Type, axes: Sequence[Axis]) -> Type:
    """The type of `index`: the range axes remain."""
    return Type(type.dtype, tuple(a.length for a in axes if isinstance(a, Range)))
