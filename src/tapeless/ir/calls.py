"""The functions of a program under construction, and what a call of one means: its types, and its body put in place.

`Functions` is shared by all builders that write one program. See Note [Calls] in `core`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tapeless.ir.core import Body, Call, Function, Lambda, Rule
from tapeless.ir.quiet import quiet
from tapeless.ir.segments import Segment
from tapeless.ir.types import Atom, Type, Var
from tapeless.ir.walk import Substitution, all_stms, apply_lambda, free_in_lambda, type_vars

SMALL = 60  # statements of a function that is worth a copy for each call
BUDGET = 500  # statements that all copies of a larger one may be together


@dataclass
class Functions:
    """By their names. `derived` has what their derivatives are, by what these were made for."""

    by_name: dict[str, Function] = field(default_factory=dict)
    derived: dict[Hashable, object] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # names
    coarsen: bool = True  # before derivatives are taken
    segments: list[Segment] = field(default_factory=list)  # what that replaced

    def __getitem__(self, name: str) -> Function:
        return self.by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def reserve(self, base: str) -> str:
        """A name for a function to come."""
        name, number = base, 1
        while name in self.taken:
            name, number = f"{base}_{number}", number + 1
        self.taken.add(name)
        return name

    def add(self, function: Function) -> None:
        self.by_name[function.name] = function

    def program(self, entry: Function) -> Function:
        """The entry with all that it calls, callees before their callers."""
        found: dict[str, Function] = {}

        def visit(name: str) -> None:
            if name not in found and name not in open_:
                open_.add(name)
                f = self.by_name[name]
                for other in mentioned(f):
                    visit(other)
                found[name] = f

        open_: set[str] = set()
        for name in mentioned(entry):
            visit(name)
        return replace(entry, calls=tuple(found.values()))


def called_in(body: Body) -> Iterator[str]:
    """The name in each call."""
    return (s.exp.function for s in all_stms(body) if isinstance(s.exp, Call))


def mentioned(f: Function) -> Iterator[str]:
    """The functions that it calls, and those of its rule."""
    yield from called_in(f.body)
    if f.rule is not None:
        yield from f.rule.functions


def operands_of(f: Function) -> tuple[Var, ...]:
    """What a call gives arguments for."""
    return (*f.sizes, *f.params)


def result_types(f: Function, args: Sequence[Atom]) -> list[Type]:
    """The types of a call's results."""
    known = Substitution(dict(zip(operands_of(f), args, strict=True)))
    return [known.type(t) for t in f.result_types]


def in_place_of(f: Function, args: Sequence[Atom], effects: bool) -> Body:
    """The function's body for these arguments, with names of its own."""
    return apply_lambda(Lambda(operands_of(f), f.body if effects else quiet(f.body)), args)


@dataclass(frozen=True)
class Outside:
    """What lambdas use of outside: as a size of their parameters or of each other, or otherwise."""

    sizes: tuple[Var, ...]
    others: tuple[Var, ...]

    def around(self, args: Sequence[Atom]) -> tuple[Atom, ...]:
        """The arguments of a call."""
        return (*self.sizes, *args, *self.others)


def outside_of(lams: Sequence[Lambda]) -> Outside:
    found = dict.fromkeys(v for lam in lams for v in free_in_lambda(lam))
    dims = dict.fromkeys(d for v in (*found, *(p for lam in lams for p in lam.params)) for d in type_vars(v.type))
    bound = {p for lam in lams for p in lam.params}
    return Outside(tuple(d for d in dims if d not in bound), tuple(v for v in found if v not in dims))


def closed(name: str, lam: Lambda, outside: Outside, rule: Rule | None = None) -> Function:
    """The lambda as a function that sees its parameters only: sizes of outside are its sizes, the rest follows its
    parameters.
    """
    renamed = Substitution({}, refresh=True)
    sizes, params, others = (tuple(map(renamed.bind, vs)) for vs in (outside.sizes, lam.params, outside.others))
    return Function(name, sizes, (*params, *others), renamed.body(lam.body), rule=rule)
