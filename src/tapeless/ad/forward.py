"""Forward mode: every statement with the tangents of what it makes.

`jvp_body` takes a body and the tangents of its free variables, and emits the body's statements with those of the
tangents; a variable without a tangent does not vary. Loops carry tangents beside their values, sweeps take rows of
them, operators of reductions become operators on pairs. Partials come from the ops table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tapeless.ad.activity import varied
from tapeless.ad.emit import Emit, differentiable, unchecked
from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Body,
    Broadcast,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Hist,
    If,
    Index,
    Iota,
    Library,
    Print,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.types import Atom, Var
from tapeless.ops.partials import FIRST_WINS


def jvp_body(b: Builder, body: Body, tangents: Mapping[Var, Atom]) -> tuple[tuple[Atom, ...], tuple[Atom | None, ...]]:
    """Emits the body; its results and their tangents, None for those that do not vary."""
    forward = Forward(b, dict(tangents), varied(body, tangents))
    forward.run(body)
    return body.results, tuple(forward.tangent(r) for r in body.results)


class Forward:
    def __init__(self, b: Builder, tangents: dict[Var, Atom], varied: set[Var]) -> None:
        self.b, self.emit, self.tangents, self.varied = b, Emit(b), tangents, varied

    def inside(self, tangents: Mapping[Var, Atom]) -> Forward:
        """For a region, with the tangents of its parameters."""
        return Forward(self.b, {**self.tangents, **tangents}, self.varied)

    def wanted(self, vars: Sequence[Var]) -> list[bool]:
        return [v in self.varied and differentiable(v.type) for v in vars]

    # -- tangents

    def tangent(self, a: Atom) -> Atom | None:
        return self.tangents.get(a) if isinstance(a, Var) else None

    def full_tangent(self, a: Atom) -> Atom:
        """The tangent, with zeros written out."""
        found = self.tangent(a)
        return self.emit.zero(a.type) if found is None else found

    def array_tangent(self, a: Atom) -> Var:
        found = self.full_tangent(a)
        assert isinstance(found, Var)
        return found

    def set(self, v: Var, tangent: Atom | None) -> None:
        if tangent is not None:
            self.tangents[v] = tangent

    def active(self, atoms: Sequence[Atom]) -> list[bool]:
        return [self.tangent(a) is not None for a in atoms]

    # -- statements

    def run(self, body: Body) -> None:
        for stm in body.stms:
            before = self.b.span
            self.b.span = stm.span if stm.span.line else before
            self.stm(stm)
            self.b.span = before

    def stm(self, stm: Stm) -> None:
        from tapeless.ad import forward_regions as regions
        from tapeless.ad.custom import jvp_custom
        from tapeless.ad.library import jvp_library

        exp = stm.exp
        match exp:
            case Apply():
                self.b.add(stm)
                self.set(stm.vars[0], self.apply(stm.vars[0], exp))
            case If():
                regions.jvp_if(self, stm, exp)
            case For() | While():
                regions.jvp_loop(self, stm, exp)
            case Sweep():
                regions.jvp_sweep(self, stm, exp)
            case Hist():
                regions.jvp_hist(self, stm, exp)
            case Scatter():
                regions.jvp_scatter(self, stm, exp)
            case WithAcc():
                regions.jvp_with_acc(self, stm, exp)
            case UpdateAcc(acc=acc, axes=axes, value=value):
                self.b.add(stm)
                twin = self.tangent(acc)
                if isinstance(twin, Var) and (self.tangent(value) is not None or acc.type.acc == "set"):
                    self.b.effect(UpdateAcc(twin, unchecked(axes), self.full_tangent(value)))
            case Library(name="custom"):
                jvp_custom(self, stm, exp)
            case Library():
                self.b.add(stm)
                for v, t in zip(stm.vars, jvp_library(self, stm.vars, exp), strict=True):
                    self.set(v, t)
            case Iota() | Check() | Print():
                self.b.add(stm)
            case _:
                self.b.add(stm)
                v = stm.vars[0]
                if differentiable(v.type):
                    self.set(v, self.structural(v, exp))

    def structural(self, v: Var, exp: Exp) -> Atom | None:
        """Operations that only move values: the same on the tangents."""

        def let(new: Exp) -> Var:
            return self.b.let(v.type, new, f"{v.name}_t")

        match exp:
            case Index(array=array, axes=axes) if self.tangent(array) is not None:
                return let(Index(self.array_tangent(array), unchecked(axes)))
            case Update(array=array, axes=axes, value=value) if any(self.active([array, value])):
                return let(Update(self.array_tangent(array), unchecked(axes), self.full_tangent(value)))
            case Full(shape=shape, value=value) if value is not None and self.tangent(value) is not None:
                return let(Full(shape, self.tangent(value)))
            case ArrayLit(items=items) if any(self.active(items)):
                return let(ArrayLit(tuple(self.full_tangent(a) for a in items)))
            case Concat(arrays=arrays, axis=axis) if any(self.active(arrays)):
                return let(Concat(tuple(self.array_tangent(a) for a in arrays), axis))
            case Reshape(array=array) | Transpose(array=array) | Broadcast(array=array) | Copy(array=array):
                if self.tangent(array) is not None:
                    return let(replace(exp, array=self.array_tangent(array)))
            case _:
                pass
        return None

    def apply(self, v: Var, exp: Apply) -> Atom | None:
        """The tangent of a row of the ops table."""
        if not differentiable(v.type) or not any(self.active(exp.args)):
            return None
        emit, name, args = self.emit, exp.op, exp.args
        t = [self.tangent(a) for a in args]
        match name:
            case "identity":
                return t[0]
            case "convert":
                assert t[0] is not None
                return emit.convert(t[0], v.type.dtype)
            case "select":
                return emit("select", args[0], self.full_tangent(args[1]), self.full_tangent(args[2]))
            case _ if name in FIRST_WINS:
                first = FIRST_WINS[name](emit, args[0], args[1])
                return emit("select", first, self.full_tangent(args[0]), self.full_tangent(args[1]))
            case "real" | "imag" | "conj":
                assert t[0] is not None
                return emit(name, t[0])
            case "complex":
                return emit("complex", self.full_tangent(args[0]), self.full_tangent(args[1]))
            case "angle":
                assert t[0] is not None
                turned = emit("imag", emit("mul", emit("conj", args[0]), t[0]))
                size = emit("abs", args[0])
                return emit("div", turned, emit("mul", size, size))
            case "abs" if args[0].type.dtype.is_complex:
                assert t[0] is not None
                grown = emit("real", emit("mul", emit("conj", args[0]), t[0]))
                zero = emit("eq", v, 0.0)
                return emit("select", zero, 0.0, emit("div", grown, emit("select", zero, 1.0, v)))
        total: Atom | None = None
        for k, ta in enumerate(t):
            if ta is None:
                continue
            factor = emit.partial(name, k, v, args)
            if factor is None:
                continue
            term = emit("mul", factor, ta)
            total = term if total is None else emit("add", total, term)
        return total


def twin(v: Var) -> Var:
    """A variable for the tangent of another."""
    return Var(f"{v.name}_t", v.type)
