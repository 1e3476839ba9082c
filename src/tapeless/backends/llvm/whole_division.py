"""Division of integers that rounds down, as Python's does, in few instructions.

Takes operands as LLVM writes them; gives the quotient or the remainder. By 0 both are 0, and the least integer over -1 is itself,
as in NumPy.
"""

from __future__ import annotations

from tapeless.backends.llvm.writer import Writer


def quotient(w: Writer, kind: str, x: str, y: str) -> str:
    known = _constant(y)
    if known == 0:
        return "0"
    if known == -1:
        return w.op("sub", kind, "0", x)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return w.op("ashr", kind, x, str(known.bit_length() - 1))
    d = y if known is not None else _safe(w, kind, y)
    q = w.op("sdiv", kind, x, d)
    down = w.let(f"sext i1 {_rounds_up(w, kind, w.op('srem', kind, x, d), d, known)} to {kind}")
    found = w.op("add", kind, q, down)
    if known is not None:
        return found
    found = w.select(w.let(f"icmp eq {kind} {y}, -1"), kind, w.op("sub", kind, "0", x), found)
    return w.select(w.let(f"icmp eq {kind} {y}, 0"), kind, "0", found)


def remainder(w: Writer, kind: str, x: str, y: str) -> str:
    known = _constant(y)
    if known in (0, -1):
        return "0"
    if known is not None and known > 0 and known & (known - 1) == 0:
        return w.op("and", kind, x, str(known - 1))
    d = y if known is not None else _safe(w, kind, y)
    r = w.op("srem", kind, x, d)
    return w.op("add", kind, r, w.select(_rounds_up(w, kind, r, d, known), kind, y, "0"))


def _constant(y: str) -> int | None:
    return None if y.startswith("%") else int(y)


def _safe(w: Writer, kind: str, y: str) -> str:
    """A divisor that the machine takes: 1 for 0 and -1."""
    trap = w.let(f"icmp ult {kind} {w.op('add', kind, y, '1')}, 2")
    return w.select(trap, kind, "1", y)


def _rounds_up(w: Writer, kind: str, r: str, d: str, known: int | None) -> str:
    """Is the quotient of the machine, with this remainder, above the one that is rounded down?"""
    if known is not None:
        return w.let(f"icmp {'slt' if known > 0 else 'sgt'} {kind} {r}, 0")
    differ = w.let(f"icmp slt {kind} {w.op('xor', kind, r, d)}, 0")
    return w.op("and", "i1", w.let(f"icmp ne {kind} {r}, 0"), differ)
