"""Scalars as text, for reports: names, numbers, and the rows that they are made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.ir.core import Apply, Stm
from tapeless.ir.types import Atom, Const, Var
from tapeless.ops.table import TABLE

DEEP = 4  # rows in each other that a reader follows


class Words:
    """`made` are the statements to look through; all other variables are named."""

    def __init__(self, made: Sequence[Stm]) -> None:
        self.defs: Mapping[Var, Apply] = {s.vars[0]: s.exp for s in made if isinstance(s.exp, Apply)}

    def of(self, a: Atom | float, depth: int = DEEP) -> str:
        """A name, a number or something in parentheses."""
        if isinstance(a, Const) or not isinstance(a, Var):
            value = a.value.real if isinstance(a, Const) else a
            text = f"{value:.6g}"
            return text if value >= 0 else f"({text})"
        exp = self.defs.get(a)
        if exp is None:
            return a.name
        if not depth:
            return "(...)"
        args = [self.of(x, depth - 1) for x in exp.args]
        row = TABLE[exp.op]
        if exp.op in ("identity", "convert"):
            return args[0]
        if row.symbol and len(args) == 2:
            return f"({args[0]} {row.symbol} {args[1]})"
        return f"({row.symbol}{args[0]})" if row.symbol else f"{row.name}({', '.join(args)})"

    def factor(self, a: Atom | float) -> str:
        """To be multiplied: a product needs no parentheses."""
        product = isinstance(a, Var) and a in self.defs and self.defs[a].op == "mul"
        return self.plain(a) if product else self.of(a)

    def plain(self, a: Atom | float) -> str:
        """Without parentheses around it."""
        text = self.of(a)
        return text[1:-1] if text.startswith("(") and _closes_last(text) else text


def _closes_last(text: str) -> bool:
    """Is the first parenthesis the one that the last one closes?"""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            return k == len(text) - 1
    return False
