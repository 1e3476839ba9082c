"""What the writer of random programs knows while it writes: types, variables, and the source so far.

Gives `Num` and `Arr`, the types of values; `Variable`; and `Writer`, which makes choices and keeps scopes and lines.
Sizes are known as the program is written, because a program is written for its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Choose = Callable[[int], int]  # of n: a number below n

# A size: a number, where 1 is one that the compiler knows too; ONE is a size of 1 that only shows at run time, and
# below
# UNKNOWN every number stands for a size of its own that the writer does not know.
Size = int
ONE = -1
UNKNOWN = -100


@dataclass(frozen=True)
class Num:
    """A number: `weak` is one of Python's own, else it is NumPy's."""

    dtype: str
    weak: bool = False

    @property
    def real(self) -> bool:
        return self.dtype not in ("bool", "c128")


@dataclass(frozen=True)
class Arr:
    dtype: str
    shape: tuple[Size, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def element(self) -> Num:
        return Num(self.dtype)


Type = Num | Arr

FLOAT, INT, BOOL = Num("f64", True), Num("i64", True), Num("bool")
F64, F32, I64, I32, C128 = Num("f64"), Num("f32"), Num("i64"), Num("i32"), Num("c128")
NUMPY = {
    "f64": "np.float64",
    "f32": "np.float32",
    "i64": "np.int64",
    "i32": "np.int32",
    "bool": "np.bool_",
    "c128": "np.complex128",
}
DTYPE = {k: np.dtype(v.removeprefix("np.")) for k, v in NUMPY.items()}
NAMES = {v: k for k, v in DTYPE.items()}


def known(size: Size) -> int:
    """The size as a number; only for sizes that are known."""
    assert size > UNKNOWN
    return abs(size)


def promote(a: Num, b: Num) -> Num:
    """NumPy 2's type of `a + b`."""
    weak = a.weak and b.weak
    stand_in = {"f64": 0.0, "i64": 0}
    left, right = (stand_in[t.dtype] if t.weak else DTYPE[t.dtype] for t in (a, b))
    return Num(NAMES[np.result_type(left, right)], weak)


@dataclass(frozen=True)
class Variable:
    """`cell` tells arrays apart that share no memory; `frozen` may be read only; `fixed` is not rebound (counters).

    `lost`: when one of these cells is written, the variable cannot be read any more (it may be that array).
    """

    name: str
    type: Type
    cell: int = 0
    frozen: bool = False
    fixed: bool = False
    lost: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Local:
    """A local function: its name, the types of its parameters and of its result."""

    name: str
    params: tuple[Type, ...]
    result: Type
    procedure: bool = False


@dataclass
class Scope:
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: list[Local] = field(default_factory=list)
    loops: int = 0  # how deep
    leave: bool = False  # whether a break may stand here
    returns: tuple[Type, ...] | None = None  # the types that a return gives; None where there must be none

    def copy(self) -> Scope:
        return replace(self, variables=dict(self.variables), functions=list(self.functions))


class Writer:
    """Choices, scopes and lines. The first of several choices is the simplest: shrinking goes there."""

    def __init__(self, choose: Choose, size: int) -> None:
        self.choose = choose
        self.left = size  # statements that may still be written
        self.lines: list[str] = []
        self.indent = 1
        self.scope = Scope()
        self.count = 0
        self.cells = 0
        self.sizes = UNKNOWN
        self.bold = False  # arrays are rebound and written anywhere: the compiler has to notice what it cannot follow

    # -- choices

    def below(self, n: int) -> int:
        return self.choose(n) if n > 1 else 0

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One of the options, each as often as its weight says."""
        at = self.below(sum(w for w, _ in options))
        for weight, option in options:
            if at < weight:
                return option
            at -= weight
        raise AssertionError("weights are positive")

    # -- names and lines

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def new_cell(self) -> int:
        self.cells += 1
        return self.cells

    def new_size(self) -> Size:
        self.sizes -= 1
        return self.sizes

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, function: bool = False, **changes: Any) -> Iterator[Scope]:
        """An indented block: names bound in it are not used after it. That of a function only reads what is outside."""
        outer = self.scope
        self.scope = inner = replace(outer.copy(), **changes)
        if function:
            inner.variables = {v.name: replace(v, frozen=True, fixed=True) for v in inner.variables.values()}
        self.indent += 1
        start = len(self.lines)
        yield inner
        if len(self.lines) == start:
            self.line("pass")
        self.indent -= 1
        self.scope = outer
        for name, v in [] if function else list(outer.variables.items()):  # what was lost inside is lost
            if name not in inner.variables:
                del outer.variables[name]
            elif inner.variables[name] != v and inner.variables[name].frozen:
                outer.variables[name] = inner.variables[name]

    # -- variables

    def bind(self, name: str, type: Type, cell: int = 0, **more: Any) -> Variable:
        self.scope.variables[name] = v = Variable(name, type, cell, **more)
        return v

    def having(self, test: Callable[[Variable], bool]) -> list[Variable]:
        return [v for v in self.scope.variables.values() if test(v)]

    def numbers(self, t: Num) -> list[Variable]:
        return self.having(lambda v: v.type == t)

    def arrays(self, dtype: str | None = None, rank: int | None = None) -> list[Variable]:
        def fits(v: Variable) -> bool:
            return isinstance(v.type, Arr) and (dtype in (None, v.type.dtype)) and (rank in (None, v.type.rank))

        return self.having(fits)

    def targets(self) -> list[Variable]:
        """Arrays that may be written here."""
        return [v for v in self.arrays() if not v.frozen]

    def rebindable(self) -> list[Variable]:
        """Numbers that may get another value here."""
        return self.having(lambda v: isinstance(v.type, Num) and not v.fixed)

    def wrote(self, cell: int) -> None:
        """Forgets the names that can no longer be read after a write to this array."""
        for v in [] if self.bold else self.having(lambda v: cell in v.lost):
            del self.scope.variables[v.name]
