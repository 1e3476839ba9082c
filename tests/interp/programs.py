"""Ways to make tiny functions for the tests of the evaluator, and the arrays they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tapeless.interp.evaluate import evaluate
from tapeless.ir.builder import Builder
from tapeless.ir.core import Apply, Atom, Body, Function, Lambda, Reduction
from tapeless.ir.span import Span
from tapeless.ir.types import F64, I64, Const, Dim, DType, Type, Var

SPAN = Span("f.py", 7, 4, 7, 9)
N, M = Var("n", I64), Var("m", I64)
ZERO, ONE = Const(0.0), Const(1.0)


def array(*dims: Dim, dtype: DType = DType.f64, name: str = "x") -> Var:
    return Var(name, Type(dtype, dims))


def function(params: Sequence[Var], make: Callable[..., Iterable[Atom]]) -> Function:
    """`make(builder, *params)` gives the results."""
    b = Builder(SPAN)
    results = make(b, *params)
    sizes = dict.fromkeys(d for p in params for d in p.type.shape if isinstance(d, Var))
    return Function("f", tuple(sizes), tuple(params), b.body(results))


def apply(b: Builder, op: str, *args: Atom, type: Type | None = None) -> Var:
    return b.let(type or args[0].type, Apply(op, args))


def operator(b: Builder, op: str, row: Type = F64, neutral: Atom = ZERO, commutative: bool = True) -> Reduction:
    """A row of the ops table as a reduction."""
    params = [Var("a", row), Var("b", row)]
    return Reduction(b.lam(params, lambda x, y: [apply(b, op, x, y)]), (neutral,), commutative)


def rows(b: Builder, arrays: Sequence[Var], make: Callable[..., Iterable[Atom]]) -> Lambda:
    return b.lam([Var("i", I64), *(Var(a.name, a.type.row()) for a in arrays)], make)


def region(b: Builder, make: Callable[[], Iterable[Atom]]) -> Body:
    return b.lam([], make).body


def run(params: Sequence[Var], make: Callable[..., Iterable[Atom]], *args: object, **options: object) -> list[object]:
    return list(evaluate(function(params, make), args, **options))  # type: ignore[arg-type]


X = np.array([3.0, -1.0, 4.0, 1.5])
A = np.arange(12.0).reshape(3, 4)
