"""How control leaves a block, and the Core `if` that joins two ways to go on.

`Flow` is one kind of exit, or a number that says at run time which of several was taken. Relies on `merge`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tapeless.frontend.data import atoms
from tapeless.frontend.python.merge import Arm, join
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Scalar
from tapeless.ir.types import Atom, i64

FULL = "full"  # there is no room for an iteration: Note [Worklists]
CODES = {"next": 0, "break": 1, "continue": 2, "return": 3, FULL: 4}
FLOW, RETURN = "<flow>", "<return>"


@dataclass(frozen=True)
class Flow:
    """How control may leave a block; `atom` holds the code of the exit taken when there are several."""

    kinds: frozenset[str]
    atom: Atom | None = None

    @property
    def code(self) -> Atom:
        if self.atom is not None:
            return self.atom
        (kind,) = self.kinds
        return i64(CODES.get(kind, 0))

    @property
    def diverges(self) -> bool:
        return self.kinds == {"raise"}


def flow(*kinds: str) -> Flow:
    return Flow(frozenset(kinds))


NEXT = flow("next")


def branch(ctx: Context, cond: Atom, then: Callable[[], Flow], orelse: Callable[[], Flow]) -> Flow:
    """A Core `if` around two ways to go on."""
    before = ctx.state
    arms: list[Arm] = []
    flows: list[Flow] = []
    for run in (then, orelse):
        ctx.state = before.copy()
        with ctx.part() as stms:
            result = run()
        ctx.bind(FLOW, Scalar(result.code))
        arms.append(Arm(stms, ctx.state, result.diverges))
        flows.append(result)
    if not join(ctx, cond, before, (arms[0], arms[1])):
        return flow("raise")
    code = ctx.state.names.pop(ctx.key(FLOW))
    kinds = frozenset().union(*(f.kinds for f in flows)) - {"raise"}
    if len(kinds) == 1:
        return Flow(kinds)
    assert isinstance(code, Scalar)
    return Flow(kinds, code.atom)


def guarded(ctx: Context, so_far: Flow, rest: Callable[[], Flow]) -> Flow:
    """`rest` when control falls through; otherwise the exit that was taken stays."""
    if so_far.kinds == {"next"}:
        return rest()
    if so_far.atom is None:
        return so_far
    falls = atoms.apply(ctx, "eq", so_far.atom, i64(0))
    others = Flow(so_far.kinds - {"next"}, so_far.atom)
    return branch(ctx, falls, rest, lambda: others)
