"""Strings with values in them: f-strings, `str`, `format`, messages of errors, what is printed.

What is known at compile time is written by Python itself; numbers that are not become holes of a `Text`, which native code
fills by Python's own formatting. What would be written otherwise there than in Python is refused.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.frontend.data.arguments import known, text
from tapeless.frontend.data.arrays import read
from tapeless.frontend.python.rules import evaluate, expression
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Format, Scalar, Sequence_, Static, Text, Value
from tapeless.ir.core import Print, Shown
from tapeless.ir.types import Atom, Const, DType

Piece = str | tuple[Format, Scalar]
HELD = 3  # numbers that an error keeps of the place where it was raised
BRACKETS = {"tuple": ("(", ")"), "list": ("[", "]"), "dict": ("{", "}")}
CONVERTED: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
CONVERSIONS = {-1: "", ord("s"): "s", ord("r"): "r", ord("a"): "a"}


@expression(ast.JoinedStr)
def _joined(ctx: Context, node: ast.JoinedStr) -> Value:
    pieces: list[Piece] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            pieces.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            with ctx.at(part):
                value = evaluate(ctx, part.value)
                spec = "" if part.format_spec is None else constant_text(ctx, evaluate(ctx, part.format_spec))
                pieces += written(ctx, value, CONVERSIONS[part.conversion], spec)
    return text_value(pieces)


def text_value(pieces: Sequence[Piece]) -> Value:
    """A string as a value: a constant where it is known."""
    joined: list[str | Format] = []
    numbers: list[Value] = []
    for p in pieces:
        if not isinstance(p, str):
            joined.append(p[0])
            numbers.append(p[1])
        elif joined and isinstance(joined[-1], str):
            joined[-1] += p
        elif p:
            joined.append(p)
    return Text(tuple(joined), tuple(numbers)) if numbers else Static("".join(p for p in joined if isinstance(p, str)))


def constant_text(ctx: Context, value: Value) -> str:
    if isinstance(value, Static) and isinstance(value.value, str):
        return value.value
    ctx.fail("TP101", "a format must be known at compile time", "write it as a constant, like {x:.3f}.")


def pieces_of(value: Text) -> list[Piece]:
    numbers = iter(value.numbers)
    found: list[Piece] = []
    for piece in value.pieces:
        if isinstance(piece, str):
            found.append(piece)
            continue
        number = next(numbers)
        assert isinstance(number, Scalar)
        found.append((piece, number))
    return found


def written(ctx: Context, value: Value, conversion: str = "", spec: str = "") -> list[Piece]:
    """A value as it is written in a text: `conversion` is "r", "s", "a" or none."""
    match value:
        case Static(value=known) if known is None or isinstance(known, (str, type, np.dtype)):
            return [_formatted(ctx, known, conversion, spec)]
        case Scalar(atom=Const(value=number), weak=weak):
            return [_formatted(ctx, number if weak else value.dtype.numpy.type(number), conversion, spec)]
        case Scalar():
            return _hole(ctx, value, conversion, spec)
        case Text() if conversion in ("", "s") and not spec:
            return pieces_of(value)
        case Sequence_(kind="tuple" | "list" | "dict", cls=None) if not spec:
            return _container(ctx, value)
        case Array():
            ctx.fail(
                "TP101",
                f"{type_text(value)} cannot be part of a text in compiled code",
                "write its elements one by one, or print it as an argument of its own.",
            )
        case _:
            ctx.fail("TP101", f"{type_text(value)} cannot be part of a text in compiled code", "write numbers.")


def _formatted(ctx: Context, known: Any, conversion: str, spec: str) -> str:
    converted = CONVERTED[conversion](known) if conversion else known
    try:
        return format(converted, spec)
    except (TypeError, ValueError) as problem:
        ctx.fail("TP112", str(problem))


def _hole(ctx: Context, number: Scalar, conversion: str, spec: str) -> list[Piece]:
    dtype = number.dtype
    if dtype.is_complex:
        ctx.fail("TP101", "a complex number cannot be part of a text in compiled code", "write .real and .imag.")
    if dtype is DType.f32 and (conversion or not spec):
        ctx.fail(
            "TP101", "a np.float32 cannot be part of a text without a format in compiled code", "give one: {x:.6g}."
        )
    if any(c in spec for c in "{}c"):  # the last: characters, which not all integers are
        ctx.fail("TP101", f"the format '{spec}' cannot be compiled", "use one of numbers, like .3f or 5d.")
    around = ("", "")
    if conversion in ("r", "a") and not number.weak:
        if spec or dtype is DType.bool:
            ctx.fail("TP101", f"the repr of {type_text(number)} cannot be compiled", "leave '!r' out.")
        around = (f"np.{dtype.numpy.name}(", ")")
    _formatted(ctx, dtype.numpy.type(1).item(), conversion, spec)  # Python's words, where the format does not fit
    field = f"{{!s:{spec}}}" if spec and conversion else f"{{:{spec}}}" if spec else "{}"
    return [around[0], (Format(field), number), around[1]]


def _container(ctx: Context, value: Sequence_) -> list[Piece]:
    first, last = BRACKETS[value.kind]
    found: list[Piece] = [first]
    for k, item in enumerate(value.items):
        if k:
            found.append(", ")
        if value.kind == "dict":
            found.append(f"{value.keys[k]!r}: ")
        found += written(ctx, item, "r")
    return [*found, ",)" if value.kind == "tuple" and len(value.items) == 1 else last]


# -- functions


@known("str")
def _str(ctx: Context, *object: Value) -> Value:
    return text_value(written(ctx, object[0], "s")) if object else Static("")


@known("repr")
def _repr(ctx: Context, *obj: Value) -> Value:
    if len(obj) != 1:
        ctx.call_error(f"repr() takes exactly one argument ({len(obj)} given)")
    return text_value(written(ctx, obj[0], "r"))


@known("format")
def _format(ctx: Context, value: Value, format_spec: Value | None = None) -> Value:
    return text_value(written(ctx, value, "", text(ctx, "format", format_spec)))


def format_method(ctx: Context, pattern: str, args: Sequence[Value], keywords: dict[str, Value]) -> Value:
    """ "...".format(...) with plain fields: {}, {0}, {name}."""
    pieces: list[Piece] = []
    automatic = iter(range(len(args)))
    try:
        fields = list(string.Formatter().parse(pattern))
    except ValueError as problem:
        ctx.fail("TP112", str(problem))
    for before, name, spec, conversion in fields:
        pieces.append(before)
        if name is None:
            continue
        place = next(automatic, len(args)) if not name else int(name) if name.isdecimal() else -1
        value = args[place] if 0 <= place < len(args) else keywords.get(name)
        if value is None:
            ctx.fail("TP101", f"the field '{{{name}}}' of this text has no value here", "use an f-string.")
        pieces += written(ctx, value, conversion or "", spec or "")
    return text_value(pieces)


def joined_texts(a: Value, b: Value) -> Value | None:
    """a + b where one of them is a text that is made when it runs."""
    if not (isinstance(a, Text) or isinstance(b, Text)):
        return None
    pieces: list[Piece] = []
    for v in (a, b):
        if isinstance(v, Text):
            pieces += pieces_of(v)
        elif isinstance(v, Static) and isinstance(v.value, str):
            pieces.append(v.value)
        else:
            return None
    return text_value(pieces)


# -- messages


def message_of(ctx: Context, value: Value) -> tuple[str, list[Atom]]:
    """The message of an error as a Check has it: a pattern, and the numbers in it."""
    pattern = ""
    held: list[Atom] = []
    for piece in written(ctx, value):
        if isinstance(piece, str):
            pattern += piece.replace("{", "{{").replace("}", "}}")
            continue
        how, number = piece
        if number.atom not in held:
            held.append(number.atom)
        pattern += f"{{{held.index(number.atom)}{how.field[1:]}"
    if len(held) > HELD:
        ctx.fail(
            "TP101",
            f"this message has {len(held)} numbers that are known when it runs, and an error keeps {HELD}",
            "leave some of them out.",
        )
    return pattern, held


# -- print


@known("print")
def _print(
    ctx: Context,
    *values: Value,
    sep: Value | None = None,
    end: Value | None = None,
    flush: Value | None = None,
    file: Value | None = None,
) -> Value:
    if file is not None:
        ctx.fail("TP112", "print: the argument 'file' cannot be compiled", "leave it out if its default is meant.")
    between, last = _text_or_none(ctx, "sep", sep, " "), _text_or_none(ctx, "end", end, "\n")
    parts: list[str | Shown] = []
    atoms: list[Atom] = []
    for k, value in enumerate(values):
        if k:
            parts.append(between)
        for piece in _printed(ctx, value):
            if isinstance(piece, str):
                parts.append(piece)
            else:
                field, atom = piece
                parts.append(Shown(len(atoms), field))
                atoms.append(atom)
    ctx.b.effect(Print((*parts, last), tuple(atoms)))
    return Static(None)


def _text_or_none(ctx: Context, name: str, value: Value | None, otherwise: str) -> str:
    return text(ctx, f"print: {name}", None if value == Static(None) else value, otherwise)


def _printed(ctx: Context, value: Value) -> list[str | tuple[str, Atom]]:
    """Texts, and what is written by a field of `Shown`."""
    if isinstance(value, Array) and value.type.rank >= 1:
        return [("", read(ctx, value))]
    if isinstance(value, Scalar) and not isinstance(value.atom, Const):
        return [("", value.atom)]
    if not isinstance(value, (Scalar, Static, Text, Sequence_)):
        ctx.fail(
            "TP101",
            f"{type_text(value)} cannot be printed from compiled code",
            "print numbers, arrays and strings.",
        )
    return [p if isinstance(p, str) else (p[0].field, p[1].atom) for p in written(ctx, value)]
