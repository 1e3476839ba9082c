"""Where an element is in an array of several axes, given its number.

Note [Quotients by products]
A kernel over all elements of a nest divides by the sizes of its axes, which a GPU does in some thirty instructions. These
sizes are the same for all threads. So the host makes of each size d a factor, with which the quotient of all numbers x
below 2^62 is (x * factor) >> s:

    s = 62 + l with d <= 2^l and 1 <= l,   factor = 2^s // d + 1

Then factor * d exceeds 2^s by at most d <= 2^l, which x multiplies to less than 2^s: too little for the next quotient.
The product is the upper half of 2 x * factor, both without a sign, which is shifted by l - 1 more. As 2^s is no number of
64 bits, the factor is made of 2^62 // d and the rest, with as many bits more as are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from tapeless.ir.types import Atom, Const, DType, Var, i64
from tapeless.lower.ir.loopir import Tag

BITS = 62
ONE = i64(1)


class Numbers(Protocol):
    """Writes arithmetic: `Code` of `code.py`."""

    def let(self, name: str, dtype: DType, *args: Atom, label: str = "t", exact: bool = False) -> Atom: ...
    def sub(self, a: Atom, b: Atom) -> Atom: ...
    def mul(self, a: Atom, b: Atom) -> Atom: ...
    def size(self, shape: Sequence[Atom]) -> Atom: ...
    def declare(self, init: Atom, label: str = "v") -> Var: ...
    def assign(self, var: Var, value: Atom) -> None: ...
    def loop(
        self,
        hi: Atom,
        lo: Atom | None = None,
        tag: Tag = Tag.seq,
        label: str = "i",
        vectorize: bool = True,
        step: int = 1,
    ) -> AbstractContextManager[Var]: ...


@dataclass(frozen=True)
class Places:
    """Made by the host for all elements of a shape."""

    code: Numbers
    shape: tuple[Atom, ...]
    divisors: tuple[tuple[Atom, ...], ...]  # of all axes but the first: operands of `quotient_by`, or a constant

    def of(self, number: Atom) -> list[Atom]:
        code = self.code
        indices: list[Atom] = []
        for divisor in reversed(self.divisors):
            if len(divisor) == 1:
                rest = code.let("floordiv", DType.i64, number, *divisor, label="rest", exact=True)
            else:
                rest = code.let("quotient_by", DType.i64, number, *divisor, label="rest", exact=True)
            indices.append(code.sub(number, code.mul(rest, divisor[0])))
            number = rest
        return [number, *reversed(indices)][: len(self.shape)]


def places(code: Numbers, shape: Sequence[Atom]) -> Places:
    """Note [Quotients by products]"""
    divisors = tuple((d,) if isinstance(d, Const) else (d, *_by_product(code, d)) for d in shape[1:])
    return Places(code, tuple(shape), divisors)


def _by_product(code: Numbers, d: Atom) -> tuple[Atom, Atom]:
    def let(name: str, *args: Atom) -> Atom:
        return code.let(name, DType.i64, *args)

    positive = let("max", let("min", d, i64(1 << BITS)), ONE)
    filled = let("sub", positive, ONE)
    for step in (1, 2, 4, 8, 16, 32):
        filled = let("or", filled, let("shr", filled, i64(step)))
    bits = let("max", let("count_bits", filled), ONE)
    quotient = let("floordiv", i64(1 << BITS), positive)
    rest = let("sub", i64(1 << BITS), let("mul", quotient, positive))
    missing = bits
    for _ in range(2):  # of all bits at once that there is room for, which are all for sizes below 2^41
        some = let("min", missing, let("sub", i64(BITS), bits))
        longer = let("shl", rest, some)
        more = let("floordiv", longer, positive)
        quotient, rest = let("add", let("shl", quotient, some), more), let("sub", longer, let("mul", more, positive))
        missing = let("sub", missing, some)
    found, left = code.declare(quotient, "quotient"), code.declare(rest, "rest")
    with code.loop(missing, vectorize=False):
        twice, beyond = let("add", found, found), let("sub", let("add", left, left), positive)
        goes = code.let("ge", DType.bool, beyond, i64(0))
        code.assign(left, let("select", goes, beyond, let("add", beyond, positive)))
        code.assign(found, let("select", goes, let("add", twice, ONE), twice))
    return let("add", found, ONE), let("sub", bits, ONE)
