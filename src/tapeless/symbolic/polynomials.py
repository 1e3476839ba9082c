"""Polynomials with integer coefficients over symbols of any kind: the one algebra of sizes, positions and strides.

Symbols are compared as keys of a dictionary are: numbers by value, variables of Core by identity. What follows from the
meaning of a symbol is said elsewhere: `positions.py` reads Core, `affine.py` proves inequalities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

S = TypeVar("S")  # of symbols


class Polynomial(Generic[S]):
    """`const` plus multiples of monomials, which are tuples of symbols in a fixed order. Not changed once made."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: dict[tuple[S, ...], int], const: int) -> None:
        self.terms = terms
        self.const = const

    def __add__(self, other: Polynomial[S]) -> Polynomial[S]:
        return self.plus(other)

    def __sub__(self, other: Polynomial[S]) -> Polynomial[S]:
        return self.plus(other, -1)

    def plus(self, other: Polynomial[S], factor: int = 1) -> Polynomial[S]:
        terms = self.terms.copy()
        for m, a in other.terms.items():
            total = terms.get(m, 0) + a * factor
            if total:
                terms[m] = total
            else:
                terms.pop(m, None)
        return Polynomial(terms, self.const + other.const * factor)

    def shifted(self, by: int) -> Polynomial[S]:
        return Polynomial(self.terms, self.const + by)

    def scaled(self, by: int) -> Polynomial[S]:
        return Polynomial({m: a * by for m, a in self.terms.items()} if by else {}, self.const * by)

    def times(self, other: Polynomial[S]) -> Polynomial[S]:
        if not other.terms:
            return self.scaled(other.const)
        terms: dict[tuple[S, ...], int] = {}
        for m, a in self.parts():
            for n, b in other.parts():
                key = tuple(sorted(m + n, key=hash))  # numbers ascend
                terms[key] = terms.get(key, 0) + a * b
        const = terms.pop((), 0)
        return Polynomial({m: a for m, a in terms.items() if a}, const)

    def parts(self) -> Iterator[tuple[tuple[S, ...], int]]:
        """Monomials with their coefficients, the constant as the empty monomial."""
        yield from self.terms.items()
        if self.const:
            yield (), self.const

    def replace(self, values: Mapping[S, Polynomial[S]]) -> Polynomial[S]:
        """Symbols replaced by polynomials, all at once."""
        touched = [m for m in self.terms if any(s in values for s in m)]
        if not touched:
            return self
        result = Polynomial({m: a for m, a in self.terms.items() if m not in touched}, self.const)
        for m in touched:
            product: Polynomial[S] = number(1)
            for s in m:
                product = (values[s] if s in values else symbol(s)).times(product)
            result = result.plus(product, self.terms[m])
        return result

    def split(self, s: S) -> tuple[Polynomial[S], Polynomial[S]] | None:
        """(c, r) with self = c*s + r and no s in c and r; None if there are higher powers of s."""
        inside: dict[tuple[S, ...], int] = {}
        outside: dict[tuple[S, ...], int] = {}
        slope = 0
        for m, a in self.terms.items():
            match m.count(s):
                case 0:
                    outside[m] = a
                case 1 if len(m) == 1:
                    slope = a
                case 1:
                    inside[tuple(t for t in m if t != s)] = a
                case _:
                    return None
        return Polynomial(inside, slope), Polynomial(outside, self.const)

    def coefficient(self, s: S) -> int:
        """Of the symbol by itself."""
        return self.terms.get((s,), 0)

    def without(self, s: S) -> Polynomial[S]:
        """What is left of a polynomial that is linear in a symbol when that is zero."""
        return Polynomial({m: a for m, a in self.terms.items() if s not in m}, self.const)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def symbols(self) -> set[S]:
        return {s for m in self.terms for s in m}

    @property
    def single(self) -> S | None:
        """The symbol, if the polynomial is just that."""
        if len(self.terms) == 1 and self.const == 0:
            ((m, a),) = self.terms.items()
            if a == 1 and len(m) == 1:
                return m[0]
        return None

    @property
    def key(self) -> tuple[frozenset[tuple[tuple[S, ...], int]], int]:
        return frozenset(self.terms.items()), self.const

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return " + ".join(["*".join([str(a), *map(str, m)]) for m, a in self.parts()]) or "0"


def symbol(s: S) -> Polynomial[S]:
    return Polynomial({(s,): 1}, 0)


def number(value: int) -> Polynomial[S]:
    return Polynomial({}, value)
