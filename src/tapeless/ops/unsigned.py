"""Rows of the ops table for u64, in rows for i64: those that see the highest bit as a sign.

Gives `UNSIGNED`. Takes i64 operands that hold the bits of u64, gives i64 or bool. Sums, products and what works bit by
bit are the same for both, and are not here. Note [Stored integers] of ir/types.py.
"""

from __future__ import annotations

from collections.abc import Callable

from tapeless.ir.types import Atom, DType, const
from tapeless.ops.op import Scalars

LOWEST, HIGHEST = const(DType.i64.lowest, DType.i64), const(DType.i64.highest, DType.i64)


def _compare(op: str) -> Callable[..., Atom]:
    """With the highest bit turned, the order of i64 is that of u64."""
    return lambda b, x, y: b(op, b("xor", x, LOWEST), b("xor", y, LOWEST))


less, at_least = _compare("lt"), _compare("ge")


def _half(b: Scalars, x: Atom) -> Atom:
    return b("and", b("shr", x, 1), HIGHEST)


def _shr(b: Scalars, x: Atom, places: Atom) -> Atom:
    """Zeros come in from above; 64 places and more leave nothing."""
    few = less(b, places, const(64, DType.i64))
    used = b("select", few, places, const(0, DType.i64))
    kept = b("not", b("shl", const(-1, DType.i64), b("sub", const(64, DType.i64), used)))
    return b("select", few, b("and", b("shr", x, used), kept), const(0, DType.i64))


def _floordiv(b: Scalars, x: Atom, y: Atom) -> Atom:
    """Half of x is an i64: twice its quotient is at most one too small. A divisor of 2**63 or more goes once or not at
    all. Nothing divided by zero is zero, as in NumPy.
    """
    quotient = b("shl", b("floordiv", _half(b, x), y), 1)
    rest = b("sub", x, b("mul", quotient, y))
    near = b("add", quotient, _one_if(b, at_least(b, rest, y)))
    large = b("lt", y, 0)
    found = b("select", large, _one_if(b, at_least(b, x, y)), near)
    return b("select", b("eq", y, 0), const(0, DType.i64), found)


def _mod(b: Scalars, x: Atom, y: Atom) -> Atom:
    rest = b("sub", x, b("mul", _floordiv(b, x, y), y))
    return b("select", b("eq", y, 0), const(0, DType.i64), rest)


def _one_if(b: Scalars, cond: Atom) -> Atom:
    return b("select", cond, const(1, DType.i64), const(0, DType.i64))


def _ipow(b: Scalars, x: Atom, n: Atom) -> Atom:
    """By half of the exponent, which is an i64 for sure."""
    root = b("ipow", x, _half(b, n))
    odd = b("ne", b("and", n, 1), 0)
    return b("mul", b("mul", root, root), b("select", odd, x, const(1, DType.i64)))


def _larger(b: Scalars, x: Atom, y: Atom) -> Atom:
    return b("select", less(b, x, y), y, x)


def _smaller(b: Scalars, x: Atom, y: Atom) -> Atom:
    return b("select", less(b, y, x), y, x)


UNSIGNED: dict[str, Callable[..., Atom]] = {
    "lt": less,
    "le": _compare("le"),
    "gt": _compare("gt"),
    "ge": at_least,
    "floordiv": _floordiv,
    "mod": _mod,
    "shr": _shr,
    "ipow": _ipow,
    "abs": lambda b, x: x,
    "sign": lambda b, x: _one_if(b, b("ne", x, 0)),
    "reciprocal": lambda b, x: _one_if(b, b("eq", x, 1)),
    **dict.fromkeys(("maximum", "fmax", "max"), _larger),
    **dict.fromkeys(("minimum", "fmin", "min"), _smaller),
}
