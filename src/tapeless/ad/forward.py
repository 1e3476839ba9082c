"""Forward mode: every statement with the tangents of what it makes.

`jvp_body` takes a body and the tangents of its free variables, and emits the body's statements with those of the
tangents; a variable without a tangent does not vary. Loops carry tangents beside their values, sweeps take rows of
them, operators of reductions become operators on pairs. Partials come from the ops table.

Note [Lanes]
Many tangents at once are one more axis, the last one: the tangent of a scalar is a vector of `lanes`. Values are computed
once for all of them, and an axis of constant length becomes SIMD registers. Library operations and rules of the user go lane
by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tapeless.ad.activity import varied
from tapeless.ad.emit import Emit, differentiable, unchecked, whole
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
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
    Range,
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
from tapeless.ir.types import Atom, Dim, DType, Type, Var
from tapeless.ops.partials import FIRST_WINS


def jvp_body(
    b: Builder, body: Body, tangents: Mapping[Var, Atom], lanes: tuple[Dim, ...] = ()
) -> tuple[tuple[Atom, ...], tuple[Atom | None, ...]]:
    """Emits the body; its results and their tangents, None for those that do not vary. `lanes`: Note [Lanes]."""
    forward = Forward(b, dict(tangents), varied(body, tangents), lanes)
    forward.run(body)
    return body.results, tuple(forward.tangent(r) for r in body.results)


class Forward:
    def __init__(self, b: Builder, tangents: dict[Var, Atom], varied: set[Var], lanes: tuple[Dim, ...] = ()) -> None:
        self.b, self.emit, self.tangents, self.varied, self.lanes = b, Emit(b), tangents, varied, lanes
        self.guarded = False  # in the operator of a product: infinite factors are left out where the others do not move

    # -- lanes

    def lifted(self, type: Type) -> Type:
        """The type of a tangent."""
        return Type(type.dtype, (*type.shape, *self.lanes), type.acc)

    def twin(self, v: Var) -> Var:
        """A variable for the tangent of another."""
        return Var(f"{v.name}_t", self.lifted(v.type))

    def lifted_axes(self, axes: Sequence[Axis]) -> tuple[Axis, ...]:
        return (*unchecked(axes), *full_axes(self.lanes))

    def by_lane(self, run: Callable[[Callable[[Atom], Atom]], Sequence[Atom | None]]) -> list[Atom | None]:
        """`run` for one tangent at a time, given how to take a lane; its results with lanes again."""
        if not self.lanes:
            return list(run(lambda t: t))
        given: list[bool] = []

        def one(lane: Var) -> tuple[Atom, ...]:
            found = run(lambda t: self.b.index(_var(t), (*whole(Type(t.type.dtype, t.type.shape[:-1])), At(lane))))
            given.extend(t is not None for t in found)
            return tuple(t for t in found if t is not None)

        made = iter(self.b.map(self.lanes[0], [], one, "lanes"))
        return [self._lanes_last(next(made)) if g else None for g in given]

    def _lanes_last(self, array: Var) -> Var:
        rank = array.type.rank
        return array if rank == 1 else self.b.transpose(array, (*range(1, rank), 0))

    def inside(self, tangents: Mapping[Var, Atom]) -> Forward:
        """For a region, with the tangents of its parameters."""
        return Forward(self.b, {**self.tangents, **tangents}, self.varied, self.lanes)

    def wanted(self, vars: Sequence[Var]) -> list[bool]:
        return [v in self.varied and differentiable(v.type) for v in vars]

    # -- tangents

    def tangent(self, a: Atom) -> Atom | None:
        return self.tangents.get(a) if isinstance(a, Var) else None

    def full_tangent(self, a: Atom) -> Atom:
        """The tangent, with zeros written out."""
        found = self.tangent(a)
        return self.emit.zero(self.lifted(a.type)) if found is None else found

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
                    self.b.effect(UpdateAcc(twin, self.lifted_axes(axes), self._filling(axes, value)))
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
            return self.b.let(self.lifted(v.type), new, f"{v.name}_t")

        match exp:
            case Index(array=array, axes=axes) if self.tangent(array) is not None:
                return let(Index(self.array_tangent(array), self.lifted_axes(axes)))
            case Update(array=array, axes=axes, value=value) if any(self.active([array, value])):
                return let(Update(self.array_tangent(array), self.lifted_axes(axes), self._filling(axes, value)))
            case Full(shape=shape, value=value) if value is not None and self.tangent(value) is not None:
                return self.emit.broadcast(self.full_tangent(value), shape)
            case ArrayLit(items=items) if any(self.active(items)):
                return let(ArrayLit(tuple(self.full_tangent(a) for a in items)))
            case Concat(arrays=arrays, axis=axis) if any(self.active(arrays)):
                return let(Concat(tuple(self.array_tangent(a) for a in arrays), axis))
            case Reshape(array=array, shape=shape) if self.tangent(array) is not None:
                return let(Reshape(self.array_tangent(array), (*shape, *self.lanes)))
            case Transpose(array=array, perm=perm) if self.tangent(array) is not None:
                last = range(len(perm), len(perm) + len(self.lanes))
                return let(Transpose(self.array_tangent(array), (*perm, *last)))
            case Broadcast(array=array, shape=shape, axes=places) if self.tangent(array) is not None:
                last = range(len(shape), len(shape) + len(self.lanes))
                return let(Broadcast(self.array_tangent(array), (*shape, *self.lanes), (*places, *last)))
            case Copy(array=array) if self.tangent(array) is not None:
                return let(Copy(self.array_tangent(array)))
            case _:
                pass
        return None

    def _filling(self, axes: Sequence[Axis], value: Atom) -> Atom:
        """The tangent of what is written; a number that fills a range is repeated where it has lanes."""
        found = self.full_tangent(value)
        lengths = [a.length for a in axes if isinstance(a, Range)]
        return self.emit.broadcast(found, lengths) if self.lanes and lengths and not value.type.shape else found

    def apply(self, v: Var, exp: Apply) -> Atom | None:
        """The tangent of a row of the ops table."""
        if not differentiable(v.type) or not any(self.active(exp.args)):
            return None
        emit, name, args = self.emit, exp.op, exp.args
        each = emit.elementwise
        first = self.tangent(args[0])
        match name:
            case "identity":
                return first
            case "convert":
                assert first is not None
                return self._converted(first, v.type.dtype)
            case "select":
                return each("select", args[0], self.full_tangent(args[1]), self.full_tangent(args[2]))
            case _ if name in FIRST_WINS:
                chosen = FIRST_WINS[name](emit, args[0], args[1])
                return each("select", chosen, self.full_tangent(args[0]), self.full_tangent(args[1]))
            case "real" | "imag" | "conj":
                assert first is not None
                return each(name, first)
            case "complex":
                return each("complex", self.full_tangent(args[0]), self.full_tangent(args[1]))
            case "angle" | "abs" if args[0].type.dtype.is_complex:
                assert first is not None
                return self._of_parts(v, exp, {p: each(p, first) for p in ("real", "imag")})
        emit.note_root(v, exp)
        if (own := emit.own_root(exp)) is not None:
            x, root = own
            return emit.slope_times(emit("mul", root, 1.5), self.full_tangent(x), False)
        total: Atom | None = None
        for k, a in enumerate(args):
            tangent = self.tangent(a)
            if tangent is None:
                continue
            term = emit.term(name, k, v, args, tangent, self.guarded)
            if term is None:
                continue
            total = term if total is None else each("add", total, term)
        return total

    def _of_parts(self, v: Var, exp: Apply, tangents: Mapping[str, Atom]) -> Atom:
        """That of a row of a complex number that is another one of its parts."""
        name, parts, args = self.emit.of_parts(exp)
        terms = [self.emit.term(name, k, v, args, tangents[p]) for k, p in enumerate(parts)]
        assert terms[0] is not None and terms[1] is not None
        return self.emit.elementwise("add", terms[0], terms[1])

    def _converted(self, t: Atom, dtype: DType) -> Atom:
        if not t.type.shape:
            return self.emit.convert(t, dtype)
        return self.b.map(t.type.shape[0], [_var(t)], lambda _, row: (self._converted(row, dtype),))[0]


def _var(a: Atom) -> Var:
    assert isinstance(a, Var)
    return a
