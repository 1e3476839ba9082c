"""What statements without regions mean: scalars, places of arrays, calls, checks and prints."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tapeless import errors
from tapeless.interp.evaluate import Evaluator, evaluates
from tapeless.interp.values import Value, fresh, select, store
from tapeless.ir.calls import operands_of
from tapeless.ir.core import Apply, Call, Check, Index, Lambda, Library, Print, Progress, Stm, Update
from tapeless.ir.quiet import quiet
from tapeless.ir.span import Span
from tapeless.ops.library import LIBRARY
from tapeless.ops.table import TABLE


@evaluates(Apply)
def apply(evaluator: Evaluator, stm: Stm, exp: Apply) -> Sequence[Value]:
    to = [stm.vars[0].type.dtype.numpy] if exp.op == "convert" else []
    return [TABLE[exp.op].evaluate(*[evaluator.scalar(a) for a in exp.args], *to)]


@evaluates(Index)
def index(evaluator: Evaluator, stm: Stm, exp: Index) -> Sequence[Value]:
    array = evaluator.array(exp.array)
    return [array[select(array, evaluator.places(exp.axes), stm.span)]]


@evaluates(Update)
def update(evaluator: Evaluator, stm: Stm, exp: Update) -> Sequence[Value]:
    places = evaluator.places(exp.axes)
    changed = evaluator.take(exp.array, stm)
    store(changed, select(changed, places, stm.span), evaluator.readable(exp.value), fill=True)
    return [changed]


@evaluates(Library)
def library(evaluator: Evaluator, stm: Stm, exp: Library) -> Sequence[Value]:
    return [fresh(v) for v in LIBRARY[exp.name].numpy([evaluator.readable(a) for a in exp.args], dict(exp.attrs))]


@evaluates(Call)
def call(evaluator: Evaluator, stm: Stm, exp: Call) -> Sequence[Value]:
    f = evaluator.functions[exp.function]
    lam = Lambda(operands_of(f), f.body if exp.effects else quiet(f.body))
    return [fresh(v) for v in evaluator.call(lam, [evaluator.get(a) for a in exp.args])]


@evaluates(Check)
def check(evaluator: Evaluator, stm: Stm, exp: Check) -> Sequence[Value]:
    if not evaluator.scalar(exp.cond):
        fail(exp.error, exp.message.format(*map(evaluator.readable, exp.args)), stm.span)
    return []


def fail(error: str, message: str, span: Span) -> None:
    """Raises the error that a check names. Warnings are given."""
    kind: Any = errors.named(error)
    if error in errors.WARNINGS:
        warnings.warn(kind(f"{message} ({span})"), stacklevel=2)
        return
    if issubclass(kind, errors.SourceError):  # shows file and line itself
        place = {"file": span.file, "line": span.line, "column": span.column}
        raise kind(message, **place, end_line=span.end_line, end_column=span.end_column)
    raise kind(f"{message} ({span})")


@evaluates(Print)
def show(evaluator: Evaluator, stm: Stm, exp: Print) -> Sequence[Value]:
    values = [evaluator.readable(arg) for arg in exp.args]
    print("".join(p if isinstance(p, str) else p.text(values[p.position]) for p in exp.parts), end="")
    return []


@evaluates(Progress)
def progress(evaluator: Evaluator, stm: Stm, exp: Progress) -> Sequence[Value]:
    return []
