"""Positions in arrays and sizes of arrays as polynomials of Core's variables.

`combined` follows integer arithmetic forwards and stays linear, which is enough to tell positions apart; `elements`
counts. The prover of inequalities is in `affine.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tapeless.ir.core import Apply, Atom
from tapeless.ir.types import Const, Dim, Var
from tapeless.symbolic.polynomials import Polynomial, number, symbol

Position: TypeAlias = Polynomial[Var]


def form_of(atom: Atom, forms: Mapping[Var, Position]) -> Position:
    if isinstance(atom, Const):
        return number(int(atom.value.real))
    return forms.get(atom) or symbol(atom)


def combined(exp: Apply, forms: Mapping[Var, Position], linear: bool = True) -> Position | None:
    """The form of add, sub, neg and mul, by a constant if it shall stay `linear`; None for anything else."""
    parts = [form_of(a, forms) for a in exp.args]
    match exp.op:
        case "add":
            return parts[0] + parts[1]
        case "sub":
            return parts[0] - parts[1]
        case "neg":
            return parts[0].scaled(-1)
        case "mul" if not linear or parts[0].is_constant or parts[1].is_constant:
            return parts[0].times(parts[1])
    return None


def elements(shape: Iterable[Dim]) -> Position:
    """How many elements an array of a shape has."""
    total: Position = number(1)
    for d in shape:
        total = total.times(symbol(d)) if isinstance(d, Var) else total.scaled(d)
    return total
