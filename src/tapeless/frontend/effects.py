"""Statements for their effect: assert, raise and print."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from tapeless.frontend.arrays import read
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.expressions import evaluate, truth_of
from tapeless.frontend.names import lookup
from tapeless.frontend.values import (
    Array,
    Scalar,
    Static,
    Value,
)
from tapeless.ir.core import Print
from tapeless.ir.types import Atom, Const, DType


def run_assert(ctx: Context, s: ast.Assert) -> None:
    cond = truth_of(ctx, evaluate(ctx, s.test))
    message = _constant_text(ctx, s.msg) if s.msg is not None else ""
    if isinstance(cond, Const) and not cond.value:
        ctx.check(cond, "AssertionError", _escape(message))
        return
    ctx.check(cond, "AssertionError", _escape(message))


def run_raise(ctx: Context, s: ast.Raise) -> None:
    error, message = "RuntimeError", ""
    match s.exc:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if len(args) <= 1:
            error = name
            message = _constant_text(ctx, args[0]) if args else ""
        case ast.Name(id=name):
            error = name
        case _:
            ctx.fail("TP101", "only 'raise SomeError(\"constant message\")' can be compiled")
    known = lookup(ctx, error)
    raised = known.value if isinstance(known, Static) else None
    if not (isinstance(raised, type) and issubclass(raised, Exception) and getattr(builtins, error, None) is raised):
        ctx.fail("TP101", f"'{error}' is not a built-in exception", "raise ValueError, RuntimeError or the like.")
    ctx.check(Const(False, DType.bool), error, _escape(message))


def _constant_text(ctx: Context, node: ast.expr) -> str:
    value = evaluate(ctx, node)
    if isinstance(value, Static) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return str(value.atom.value)
    ctx.fail("TP101", "the message must be a constant text", "write it as a plain string.")


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def print_values(ctx: Context, args: Sequence[Value]) -> None:
    parts: list[str | int] = []
    atoms: list[Atom] = []
    for k, value in enumerate(args):
        if k:
            parts.append(" ")
        match value:
            case Static(value=str() as text):
                parts.append(text)
            case Scalar(atom=Const() as c, weak=True):
                parts.append(repr(c.value))
            case Scalar(atom=atom):
                parts.append(len(atoms))
                atoms.append(atom)
            case Array() if value.type.rank >= 1:
                parts.append(len(atoms))
                atoms.append(read(ctx, value))
            case _:
                ctx.fail(
                    "TP101",
                    f"{type_text(value)} cannot be printed from compiled code",
                    "print numbers, arrays and texts.",
                )
    ctx.b.effect(Print(tuple(parts), tuple(atoms)))
