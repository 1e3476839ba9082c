"""Loops cut into strips: a loop of loops that does the same, so that each level keeps its own few states.

`strips` gives a nest of `depth` loops for one; `spans` the lengths of its strips. Going back, each level runs the ones
inside again from the state it kept: depth k keeps about k times the k-th root of the trips, and runs k times forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ir.builder import Builder
from tapeless.ir.core import Body, For
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.types import I64, Atom, Const, DType, Var, i64
from tapeless.ir.walk import Substitution
from tapeless.ops.emit import Emit

Activate = Callable[[Var, Var], None]


def strips(b: Builder, exp: For, lengths: Sequence[Atom], inner: Hints, activate: Activate) -> For:
    """The loop as a nest: strips of lengths[0] iterations, in each of them strips of lengths[1], and so on.

    `inner` are the hints of the innermost loops. States and the results of loops are as active as the carried values
    that they stand for.
    """

    def level(depth: int, length: Atom, offset: Atom | None, inits: tuple[Atom, ...]) -> For:
        emit = Emit(b)
        if depth == len(lengths):
            return part(b, exp, offset, length, inits, inner, activate)
        span = lengths[depth]
        count = ceil_div(emit, length, span)
        strip, params = Var("strip", I64), _like(exp.params, activate)
        with b.region() as stms:
            start = emit("mul", strip, span)
            left = emit("min", span, emit("sub", length, start))
            first = start if offset is None else emit("add", offset, start)
            loop = level(depth + 1, left, first, params)
            results = b.bind(_like(exp.params, activate), loop)
        return For(strip, count, params, inits, Body(tuple(stms), results), Hints(Recovery(How.store)))

    return level(0, exp.bound, None, exp.inits)


def part(
    b: Builder, exp: For, first: Atom | None, count: Atom, inits: tuple[Atom, ...], hints: Hints, activate: Activate
) -> For:
    """So many iterations of the loop, from `first` on (or the start)."""
    r, params = Var(exp.index.name, I64), _like(exp.params, activate)
    with b.region() as stms:
        index = r if first is None else Emit(b)("add", first, r)
        body = _renamed(exp, index, params, activate)
        for s in body.stms:
            b.add(s)
    return For(r, count, params, inits, Body(tuple(stms), body.results), hints)


def _like(vars: Sequence[Var], activate: Activate) -> tuple[Var, ...]:
    new = tuple(Var(v.name, v.type) for v in vars)
    for old, mine in zip(vars, new, strict=True):
        activate(old, mine)
    return new


def _renamed(exp: For, index: Atom, params: Sequence[Var], activate: Activate) -> Body:
    names = Substitution({exp.index: index, **dict(zip(exp.params, params, strict=True))}, refresh=True)
    body = names.body(exp.body)
    for old, new in names.map.items():
        if isinstance(new, Var):
            activate(old, new)
    return body


def ceil_div(emit: Emit, a: Atom, b: Atom) -> Atom:
    """For b > 0; at least 0."""
    rounded = emit("floordiv", emit("add", a, emit("sub", b, 1)), b)
    return emit("max", rounded, 0)


def spans(emit: Emit, bound: Atom, depth: int) -> list[Atom]:
    """Lengths of strips for `depth` levels that keep about as many states each: m**(depth - 1), ..., m."""
    m = root_above(emit, emit("max", bound, 1), depth)
    found: list[Atom] = [m]
    while len(found) < depth - 1:
        found.insert(0, emit("mul", found[0], m))
    return found


def root_above(emit: Emit, n: Atom, k: int) -> Atom:
    """The least m with m**k >= n, for n >= 1: a guess in floating point, put right with integers."""
    if isinstance(n, Const):
        return i64(_root(int(n.value.real), k))
    real = emit("pow", emit.convert(n, DType.f64), Const(1.0 / k, DType.f64))
    m = emit("max", emit("convert", emit("floor", real), dtype=DType.i64), 1)
    for _ in range(2):  # the guess is at most one off to either side
        m = emit("add", m, emit.convert(emit("lt", _power(emit, m, k), n), DType.i64))
    lower = emit("max", emit("sub", m, 1), 1)
    return emit("select", emit("ge", _power(emit, lower, k), n), lower, m)


def _power(emit: Emit, m: Atom, k: int) -> Atom:
    found = m
    for _ in range(k - 1):
        found = emit("mul", found, m)
    return found


def _root(n: int, k: int) -> int:
    m: int = max(1, round(n ** (1.0 / k)))
    while m**k < n:
        m += 1
    while m > 1 and (m - 1) ** k >= n:
        m -= 1
    return m
