"""What is dear and only one operand of a selection needs is computed only where that operand is picked.

Takes and gives a verified function; comes after the last `simplify`, which makes selections of small branches. Relies on
rows being total and without effects, and on `dce`: what is used is needed.

Note [Dear operands]
`np.where(x > 2, f(x), g(x))` means both functions of every x, and so do products of slopes that are 0 wherever the
other arm was taken. Most rows cost less than a branch that the processor cannot foresee, and vector instructions serve
them best side by side. Those that are called one by one, for one element each, are worth a branch. A product with t
that is taken for 0 where t is 0 and it is NaN (Note [Zero times infinity]) is a selection by t == 0 alone, up to the sign of the 0: only
then, since a program may look for NaN on its own account. Integers stay where they are: they may be sizes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tapeless.ir.core import Apply, Body, Exp, Function, If, Stm
from tapeless.ir.types import Atom, Var, zero_of
from tapeless.ir.walk import in_regions, map_function, use_counts, with_stms
from tapeless.ops.rows import HEAVY
from tapeless.ops.table import TABLE


def compute_what_is_picked(function: Function) -> Function:
    return map_function(function, _branched)


def _branched(body: Body) -> Body:
    if any(_is_dear(s) for s in body.stms) and any(
        isinstance(s.exp, Apply) and s.exp.op == "select" for s in body.stms
    ):
        body = _Picking(body).body()
    return with_stms(body, [in_regions(s, _branched) for s in body.stms])


def _is_dear(stm: Stm) -> bool:
    exp = stm.exp
    return isinstance(exp, Apply) and TABLE[exp.op].cost >= HEAVY and TABLE[exp.op].one_by_one


@dataclass(frozen=True)
class _Choice:
    """Of two atoms by a condition. `tested`: whether there was a look at the second, and in which statements."""

    cond: Var
    arms: tuple[Atom, Atom]
    tested: tuple[int, ...] = ()


@dataclass
class _Picking:
    whole: Body
    uses: Counter[Atom] = field(init=False)
    made: dict[Var, int] = field(init=False)  # by a row, in which statement
    moved: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.uses = use_counts(self.whole)
        self.made = {s.vars[0]: k for k, s in enumerate(self.whole.stms) if isinstance(s.exp, Apply)}

    def body(self) -> Body:
        stms = list(self.whole.stms)
        for k in range(len(stms) - 1, -1, -1):
            choice = None if k in self.moved else self.choice(k)
            if choice is None:
                continue
            arms = [self.only_for(arm, 1 + bool(choice.tested)) for arm in choice.arms]
            if not any(_is_dear(stms[j]) for arm in arms for j in arm):
                continue
            then, orelse = (
                Body(tuple(stms[j] for j in sorted(arm)), (result,))
                for arm, result in zip(arms, choice.arms, strict=True)
            )
            stms[k] = Stm(stms[k].vars, If(choice.cond, then, orelse), stms[k].span)
            self.moved.update(choice.tested, *arms)
        return with_stms(self.whole, [s for k, s in enumerate(stms) if k not in self.moved])

    def row(self, atom: Atom) -> Exp | None:
        """What makes it, if that is a row."""
        return self.whole.stms[self.made[atom]].exp if isinstance(atom, Var) and atom in self.made else None

    def only_use(self, atom: Atom, name: str) -> tuple[Atom, ...] | None:
        """The operands of the row of this name that gives it, if nothing else uses it."""
        exp = self.row(atom) if self.uses[atom] == 1 else None
        return exp.args if isinstance(exp, Apply) and exp.op == name else None

    def choice(self, k: int) -> _Choice | None:
        exp = self.whole.stms[k].exp
        if not isinstance(exp, Apply) or exp.op != "select":
            return None
        cond, first, second = exp.args
        if not isinstance(cond, Var):
            return None
        match self.only_use(cond, "and"):
            case Var() as still, Var() as nan if self.only_use(nan, "isnan") == (second,):
                if first == zero_of(second.type.dtype) and self.is_nothing(second, still):
                    return _Choice(still, (first, second), (self.made[cond], self.made[nan]))
        return _Choice(cond, (first, second))

    def is_nothing(self, product: Atom, still: Var) -> bool:
        """Whether the condition says that a factor of the product is 0."""
        match self.row(still), self.row(product):
            case Apply("eq", (factor, zero)), Apply("mul" | "times", factors):
                return factor in factors and zero == zero_of(factor.type.dtype)
        return False

    def only_for(self, root: Atom, uses: int) -> set[int]:
        """The statements that nothing but this operand needs, if it has so many uses that go away."""
        found: Counter[Atom] = Counter({root: uses})
        cone: set[int] = set()
        left = [root]
        while left:
            atom = left.pop()
            j = self.made.get(atom, -1) if isinstance(atom, Var) else -1
            if j < 0 or j in self.moved or j in cone or found[atom] != self.uses[atom] or atom.type.dtype.is_int:
                continue
            cone.add(j)
            exp = self.whole.stms[j].exp
            assert isinstance(exp, Apply)
            found.update(exp.args)
            left.extend(exp.args)
        return cone
