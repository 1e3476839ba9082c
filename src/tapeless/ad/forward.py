"""Forward mode: every statement with the tangents of what it makes.

`jvp_body` takes a body and the tangents of its free variables, and emits the body's statements with those of the
tangents; a variable without a tangent does not vary. Loops carry tangents beside their values, sweeps take rows of
them, operators of reductions become operators on pairs. Partials come from the ops table.

Note [Lanes]
Many tangents at once are one more axis, the last one: the tangent of a scalar is a vector of `lanes`. Values are
computed once for all of them, and an axis of constant length becomes SIMD registers. Library operations and rules of
the user go lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tapeless.ad.activity import varied
from tapeless.ad.bodies import slopes_in
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    At,
    Axis,
    Body,
    Stm,
)
from tapeless.ir.quiet import unchecked
from tapeless.ir.rules import Rules
from tapeless.ir.types import Atom, Dim, Type, Var
from tapeless.ops.emit import Emit, differentiable, whole


def jvp_body(
    b: Builder, body: Body, tangents: Mapping[Var, Atom], lanes: tuple[Dim, ...] = (), guarded: bool = False
) -> tuple[tuple[Atom, ...], tuple[Atom | None, ...]]:
    """Emits the body; its results and their tangents, None for those that do not vary. `lanes`: Note [Lanes]."""
    forward = Forward(b, dict(tangents), varied(body, tangents), lanes)
    forward.guarded = guarded
    forward.emit.level = slopes_in(body).level
    forward.run(body)
    return body.results, tuple(forward.tangent(r) for r in body.results)


RULES: Rules[type, Callable[[Forward, Stm, Any], None]] = Rules()
tangent_of = RULES.of  # a rule emits the statement, and sets the tangents of what it makes


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
        inner = Forward(self.b, {**self.tangents, **tangents}, self.varied, self.lanes)
        inner.emit.level = self.emit.level
        return inner

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
        RULES[type(stm.exp)](self, stm, stm.exp)


def _var(a: Atom) -> Var:
    assert isinstance(a, Var)
    return a
