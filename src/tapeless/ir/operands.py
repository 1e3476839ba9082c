"""What each node of Core uses and holds: its operands and its regions, in the order in which it is written.

Gives `operands` and `regions`, by a table with an entry for each class: walkers ask for them far more often than they rebuild
a node, so they do not go through `walk.map_exp`. A test holds both to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Print,
    Progress,
    Reduction,
    Reshape,
    Scatter,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.types import Atom, Dim, Var


def operands(exp: Exp) -> list[Atom]:
    """The atoms that the expression itself uses, dimensions included, those inside its regions excluded."""
    return OPERANDS[type(exp)](exp)


def regions(exp: Exp) -> list[Lambda]:
    """The regions of an expression, bodies as lambdas without parameters. The test of a `while` binds its
    parameters.
    """
    held = REGIONS.get(type(exp))
    return held(exp) if held is not None else []


def _dims(dims: Sequence[Dim]) -> list[Atom]:
    return [d for d in dims if isinstance(d, Var)]


def _axes(axes: Sequence[Axis]) -> list[Atom]:
    found: list[Atom] = []
    for a in axes:
        if isinstance(a, At):
            found.append(a.index)
        elif isinstance(a.length, Var):
            found += (a.start, a.length, a.step)
        else:
            found += (a.start, a.step)
    return found


def _neutral(reductions: Sequence[Reduction]) -> list[Atom]:
    return [a for r in reductions for a in r.neutral]


def _of_sweep(sweep: Sweep) -> list[Atom]:
    found: list[Atom] = [sweep.width, *sweep.arrays] if isinstance(sweep.width, Var) else list(sweep.arrays)
    return [*found, *_neutral(sweep.reduces), *_neutral(sweep.scans)] if sweep.reduces or sweep.scans else found


OPERANDS: dict[type, Callable[[Any], list[Atom]]] = {
    Apply: lambda e: list(e.args),
    Index: lambda e: [e.array, *_axes(e.axes)],
    Update: lambda e: [e.array, *_axes(e.axes), e.value],
    If: lambda e: [e.cond],
    For: lambda e: [e.bound, *e.inits],
    While: lambda e: list(e.inits),
    Iota: lambda e: _dims((e.length,)),
    Full: lambda e: [*_dims(e.shape), *(() if e.value is None else (e.value,))],
    ArrayLit: lambda e: list(e.items),
    Reshape: lambda e: [e.array, *_dims(e.shape)],
    Transpose: lambda e: [e.array],
    Broadcast: lambda e: [e.array, *_dims(e.shape)],
    Concat: lambda e: list(e.arrays),
    Copy: lambda e: [e.array],
    Sweep: _of_sweep,
    Hist: lambda e: [*e.op.neutral, *e.dests, *_dims((e.width,)), *e.arrays],
    Scatter: lambda e: [*e.dests, *_dims((e.width,)), *e.arrays],
    WithAcc: lambda e: list(e.arrays),
    UpdateAcc: lambda e: [e.acc, *_axes(e.axes), e.value],
    Library: lambda e: list(e.args),
    Call: lambda e: list(e.args),
    Check: lambda e: [e.cond, *e.args],
    Print: lambda e: list(e.args),
    Progress: lambda e: [e.done, e.total],
}

REGIONS: dict[type, Callable[[Any], list[Lambda]]] = {
    If: lambda e: [Lambda((), e.then), Lambda((), e.orelse)],
    For: lambda e: [Lambda((e.index, *e.params), e.body)],
    While: lambda e: [Lambda(e.params, e.cond), Lambda(e.params, e.body)],
    Sweep: lambda e: [e.lam, *[r.op for r in (*e.reduces, *e.scans)]] if e.reduces or e.scans else [e.lam],
    Hist: lambda e: [e.op.op, e.lam],
    Scatter: lambda e: [e.lam],
    WithAcc: lambda e: [e.lam],
}
