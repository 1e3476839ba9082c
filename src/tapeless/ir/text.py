"""The words of Core's text form: reserved names, unique names of variables, constants.

Takes variables and constants; gives their text, and constants back from it. The printer and the parser rely on it.
"""

from __future__ import annotations

import re

import numpy as np

from tapeless.ir.types import Const, DType, Var, const

# Words that the parser, or a person, could take for something else than a variable.
RESERVED = frozenset({
    "_", "def", "do", "else", "false", "for", "if", "in", "inf", "inff32",
    "loop", "nan", "nanf32", "then", "true", "while",
})  # fmt: skip
NAME = r"[^\W\d]\w*(?:\.\w+)*"
FUNCTION = rf"(?:{NAME}|<\w+>)(?:\.<\w+>(?:\.\w+)*)*"  # f, f.<locals>.g, <lambda>
INTEGER = r"-?\d+(?:[iu](?:8|16|32|64))?"
REAL = r"-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf|nan)(?:f32|f64)?"
_PART = r"(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf|nan)"
COMPLEX = rf"\(-?{_PART}[+-]{_PART}j\)(?:c64|c128)?"


class Names:
    """Gives each variable a name of its own, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}
        self._taken: set[str] = set(RESERVED)
        self._next: dict[str, int] = {}

    def __call__(self, var: Var) -> str:
        name = self._names.get(var)
        if name is None:
            name = self._names[var] = self._unused(readable(var.name))
        return name

    def _unused(self, base: str) -> str:
        name, number = base, self._next.get(base, 1)
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._next[base] = number
        self._taken.add(name)
        return name


def readable(name: str, pattern: str = NAME) -> str:
    """A name that the parser takes for a name."""
    if re.fullmatch(pattern, name):
        return name
    word = re.sub(r"\W+", "_", name).strip("_")
    return word if re.fullmatch(NAME, word) else f"t{word}"


def const_text(c: Const) -> str:
    """1.0 is f64, 3 is i64, (1+2j) is c128; the other element types are named."""
    value = complex(c.value)
    match c.dtype:
        case DType.bool:
            return "true" if c.value else "false"
        case DType.i64:
            return str(int(c.value.real))
        case dtype if dtype.is_int:
            return f"{int(c.value.real)}{dtype!r}"
        case DType.f64:
            return repr(value.real)
        case DType.f32:
            return f"{_single(value.real)}f32"
        case DType.c64:
            return f"({_short(_single(value.real))}{_signed(_single(value.imag))}j)c64"
    return f"({_short(repr(value.real))}{_signed(repr(value.imag))}j)"


def _single(value: float) -> str:
    """The shortest text that is read back as the same f32."""
    with np.errstate(over="ignore"):
        return str(np.float32(value))


def _short(text: str) -> str:
    return text.removesuffix(".0")


def _signed(text: str) -> str:
    return _short(text) if text.startswith("-") else "+" + _short(text)


def read_const(text: str) -> Const | None:
    """The constant that a word means; None if it is none."""
    if text in ("true", "false"):
        return Const(text == "true", DType.bool)
    if re.fullmatch(INTEGER, text):
        found = re.fullmatch(r"(-?\d+)(\w*)", text)
        assert found
        return Const(int(found[1]), DType(found[2]) if found[2] else DType.i64)
    if re.fullmatch(REAL, text):
        digits = text.removesuffix("f32").removesuffix("f64")
        return const(float(digits), DType.f32 if text.endswith("f32") else DType.f64)
    if re.fullmatch(COMPLEX, text):
        digits, _, width = text.partition(")")
        found = re.fullmatch(rf"\((-?{_PART})([+-]{_PART})j", digits)
        assert found
        value = complex(float(found[1]), float(found[2]))
        return const(value, DType.c64 if width == "c64" else DType.c128)
    return None
