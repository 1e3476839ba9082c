"""Linear forms of variables with integer coefficients: enough to tell positions of an array apart.

`Linear` is a value; `form_of` follows integer arithmetic backwards. The prover of inequalities is in `affine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tapeless.ir.core import Apply, Atom
from tapeless.ir.types import Const, Var


@dataclass(frozen=True)
class Linear:
    terms: Mapping[Var, int] = field(default_factory=dict)
    constant: int = 0

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def symbols(self) -> set[Var]:
        return set(self.terms)

    def coefficient(self, v: Var) -> int:
        return self.terms.get(v, 0)

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for v, c in other.terms.items():
            terms[v] = terms.get(v, 0) + c
        return Linear({v: c for v, c in terms.items() if c}, self.constant + other.constant)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def scaled(self, by: int) -> Linear:
        return Linear({v: c * by for v, c in self.terms.items()} if by else {}, self.constant * by)


def form_of(atom: Atom, forms: Mapping[Var, Linear]) -> Linear:
    if isinstance(atom, Const):
        return Linear({}, int(atom.value.real))
    return forms.get(atom, Linear({atom: 1}))


def combined(exp: Apply, forms: Mapping[Var, Linear]) -> Linear | None:
    """The form of add, sub, neg and mul by a constant; None for anything else."""
    parts = [form_of(a, forms) for a in exp.args]
    match exp.op:
        case "add":
            return parts[0] + parts[1]
        case "sub":
            return parts[0] - parts[1]
        case "neg":
            return parts[0].scaled(-1)
        case "mul" if parts[0].is_constant:
            return parts[1].scaled(parts[0].constant)
        case "mul" if parts[1].is_constant:
            return parts[0].scaled(parts[1].constant)
    return None
