"""What a Python expression stands for while its function is being compiled.

Gives the value classes and `State`, the bindings at one point of the program. Relies on `ir` only.

Note [References]
A Python name refers to an array; writes through one name are seen through another. Core has only values. So an array
value here is a `Cell` (the array that Python would have in memory) with a view into it, and the state says which
Core variable holds the cell's contents now. A write replaces that variable; every name that refers to the cell,
through whatever view, reads the new contents. Where paths bind a name to different arrays, what it refers to
afterwards is a
new cell that lists the ones it `may_be`. Such a cell can be read. A write to a cell makes every other one that may be
the same array stale: reading those is refused. A write that may have to reach the caller's memory is refused.

Note [Memory order]
NumPy decides by strides whether `reshape` and the like give a view or a copy. Core keeps every array in order, so a
cell says whether Python may have it otherwise (`scattered`): arguments by their flags, results that take over the order
of a transposed operand, arrays that were views on one path. What is then made of it by `reshape` may be read, not
written.

Note [Lists that change]
A list or dict that compiled code makes has a `Box`, its identity. Values are immutable all the same: each reference to a
list holds what is in it now. A change puts the new contents into every value of the state that refers to the box
(`frontend/python/references.py`), and under a hidden name of the box's own, so that contents are joined after branches and
carried by loops as those of any name are. Values that an expression has already read when a part of it changes a
list are brought up to date before they are used. A reference that may be one of several lists has a box that lists
them, like a cell: it cannot be changed, and has no value once one of them was. Lists without a box are not ours to change:
those of the caller, and those of the surroundings.

Note [Lists of lists]
The rows of a list of lists that a loop or a comprehension makes are the rows of one array. `m[i]` is a view of one, as Python's is
a reference, so `m[i][j] = x` and `row = m[i]; row[j] = x` write the array. That is right as long as nothing else refers to
the rows: not those that had a name when they were put in (`Rows.own`), and not those of a list that has been copied, for the copy has the same
rows in Python and others here. A copy after a write is refused, and a write after a copy. Where the rows move (`.pop()`, then another one
in its place; a longer array) there must be no views of them.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tapeless.ir.core import Axis
from tapeless.ir.hints import Recovery
from tapeless.ir.node import node
from tapeless.ir.types import Atom, Const, Dim, DType, Type, Var


@dataclass(eq=False)
class Rows:
    """The lists in a list. What has been done with them so far."""

    own: bool = True  # nothing else refers to them
    seen: bool = False  # there are views of them
    written: bool = False
    copied: bool = False  # another list refers to them too


@dataclass(eq=False)
class Cell:
    """An array as Python sees it; compared by identity. `readonly` holds the reason why it must not be written."""

    name: str
    may_be: set[Cell] = field(default_factory=set)
    readonly: str = ""
    argument: bool = False
    scattered: bool = False  # Note [Memory order]
    rows: Rows | None = None  # of a list of lists: Note [Lists of lists]
    item: bool = False  # of a list that has grown in a loop: in Python it is the array that was put there
    stands_for: Cell | None = None  # under a transform: the array that it was made of
    seen_through: tuple[Array, Reshaped | Borrowed] | None = (
        None  # NumPy may have it as a view, of this array by this step
    )
    which: Atom | None = None  # where it may be an argument: the number of that, known when it runs, or -1
    named: bool = True  # by the user; a new array gets its name where it is first bound
    was: set[Cell] = field(default_factory=set)  # arrays that no name has any more: one of them is this one now

    @property
    def possible(self) -> set[Cell]:
        """The arrays that this may be: two cells with none in common are different arrays."""
        return {self} | self.may_be

    @property
    def roots(self) -> set[Cell]:
        """The arrays outside of all transforms that this may be or stand for."""
        return {r for c in self.possible for r in c.behind}

    @property
    def behind(self) -> set[Cell]:
        """What it stands for, whatever else it may be."""
        return {self} if self.stands_for is None else self.stands_for.roots


@node(frozen=True)
class Strided:
    """A view by basic indexing: `axes` of the array below, then its remaining axes in `order` (None: a new axis)."""

    axes: tuple[Axis, ...]
    order: tuple[int | None, ...]


@node(frozen=True)
class Reshaped:
    """A view of the elements in order, in another shape."""

    shape: tuple[Dim, ...]


@node(frozen=True)
class Borrowed:
    """What NumPy has, or may have, as a view that compiled code cannot write. `returned.CALLS` has the names."""

    name: str
    args: tuple[Atom, ...] = ()


Step = Strided | Reshaped


@node(frozen=True)
class Scalar:
    """A number. `weak`: a Python number, which adopts the precision of what it meets (NumPy 2)."""

    atom: Atom
    weak: bool = False

    @property
    def dtype(self) -> DType:
        return self.atom.type.dtype

    @property
    def static(self) -> bool:
        return isinstance(self.atom, Const)


@node(frozen=True)
class Array:
    """A reference: a cell seen through a view. `type` is that of the view."""

    cell: Cell
    type: Type
    view: tuple[Step, ...] = ()


@dataclass(eq=False)
class Box:
    """A list or dict as Python sees it; compared by identity: Note [Lists that change]. `made_in`: the region of
    statements where it was made.
    """

    number: int
    may_be: frozenset[Box] = frozenset()
    made_in: Any = None
    since: int = 0  # changes of lists that had been when it was made, of one that may be several
    deque: bool = False
    lazy: bool = False  # of a map, filter or generator, whose items Python makes when they are asked for

    @property
    def possible(self) -> frozenset[Box]:
        return self.may_be or frozenset({self})

    @property
    def key(self) -> Key:
        """The name of its contents."""
        return (LISTS, f"<list {self.number}>")


LISTS = -2  # in place of a frame


@node(frozen=True)
class Sequence_:
    """A tuple, list, dict, NamedTuple or dataclass of known length. `keys` for dicts and named fields."""

    items: tuple[Value, ...]
    kind: str = "tuple"  # tuple | list | dict | namedtuple | dataclass
    keys: tuple[Any, ...] = ()
    cls: Any = None
    ref: Box | None = field(default=None, compare=False)


Columns = tuple[tuple[DType, bool], ...]  # types of numbers, and whether they are Python's


@node(frozen=True)
class Grown:
    """A list whose length is known when it runs: `length` rows of `array`, from the one at `first`. Without an array its items
    are not known yet. `weak`: they are Python numbers.
    """

    array: Array | None
    length: Scalar
    weak: bool = False
    first: Scalar | None = None  # 0; others where items are taken from the front
    added: int = 0  # in this iteration of the loop that fills it
    form: str = ""  # what its items are if they are no arrays: tuple, list, or mixed, of several types
    columns: Columns = ()  # of tuples: the types of their numbers, which the array has as its own. Others cannot be read if mixed
    table: Box | None = field(default=None, compare=False)  # the list of which it is a row: Note [Lists of lists]
    mixed: bool = field(default=False, compare=False)  # its items were of several types
    ref: Box | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Length:
    """An integer, and the operation that makes it."""

    atom: Atom
    op: str = ""
    args: tuple[Length, ...] = ()


@node(frozen=True)
class Static:
    """A Python object known at compile time: a module, a type, a built-in function, a string, None."""

    value: Any


@node(frozen=True)
class Never(Static):
    """What a call gives that always raises: nothing comes after it. Where that does not matter, it is None."""


@node(frozen=True)
class Closure:
    """A function of the user: its syntax tree with the bindings it sees."""

    node: ast.FunctionDef | ast.Lambda
    source: Any  # frontend.source.sources.Source
    frame: int  # bindings of enclosing compiled functions; -1 when there are none
    defaults: tuple[tuple[str, Value], ...]
    name: str
    python: types.FunctionType | None = None


@node(frozen=True)
class Builtin:
    """A function that the compiler knows: `handler(compiler, args, keywords)`."""

    name: str
    handler: Callable[..., Value]
    parameters: tuple[str, ...] = ()  # what its arguments are called, where that is known
    python: Any = field(default=None, compare=False)  # the object of Python that it is, where there is one


@node(frozen=True)
class Method:
    """`receiver.name`, to be called."""

    receiver: Value
    name: str


@node(frozen=True)
class RangeValue:
    """range(...), tp.prange(...) or tp.progress(range(...)), where a loop shows how far it is."""

    start: Scalar
    stop: Scalar
    step: Scalar
    parallel: bool = False
    shown: bool = False


@node(frozen=True)
class Planned:
    """tp.loop(...): what to go over, and how the values of the loop shall come back in the backward pass. `chosen`: how
    they do, by their names, in a loop that is one.
    """

    iterable: Value
    wish: Recovery | None
    chosen: tuple[tuple[str, Recovery], ...] = ()


@node(frozen=True)
class Zipped:
    """zip(...) or enumerate(...): `start` is given for enumerate."""

    parts: tuple[Value, ...]
    start: Scalar | None = None


@node(frozen=True)
class Text:
    """A string with numbers in it that are known when it runs. `pieces` are texts and, for each of the numbers in turn, the
    format that it is written in: "{}", "{:.3f}".
    """

    pieces: tuple[str | Format, ...]
    numbers: tuple[Value, ...]


@node(frozen=True)
class Format:
    """How a number is written in a text: str.format of this."""

    field: str = "{}"


@node(frozen=True)
class SliceValue:
    """start:stop:step inside brackets, or slice(...)."""

    start: Value | None
    stop: Value | None
    step: Value | None


@node(frozen=True)
class MaybeUndefined:
    """A variable that some paths leave unbound, or None (`none`); `defined` is true where it has the value."""

    value: Value
    defined: Atom
    none: bool = False


@node(frozen=True)
class Conflict:
    """A name that different paths bind to things that have no common type; using it is an error with this reason."""

    reason: str
    hint: str = ""


Value = (
    Scalar
    | Array
    | Sequence_
    | Grown
    | Static
    | Closure
    | Builtin
    | Method
    | RangeValue
    | Planned
    | Zipped
    | SliceValue
    | Text
    | MaybeUndefined
    | Conflict
)

Key = tuple[int, str]


@dataclass
class State:
    """The bindings at one point: names by (frame, name), cell contents, cells that must not be read, what is
    known of sizes.
    """

    names: dict[Key, Value] = field(default_factory=dict)
    cells: dict[Cell, Var] = field(default_factory=dict)
    stale: dict[Cell, str] = field(default_factory=dict)
    equal: dict[Var, Dim] = field(default_factory=dict)
    sizes: dict[tuple[str, Atom, Atom], Atom] = field(default_factory=dict)  # arithmetic of sizes done so far
    views: dict[tuple[Var, Step], Var] = field(default_factory=dict)  # contents seen through views so far

    def copy(self) -> State:
        return State(
            dict(self.names), dict(self.cells), dict(self.stale), dict(self.equal), dict(self.sizes), dict(self.views)
        )


PYTHON = {bool: DType.bool, int: DType.i64, float: DType.f64, complex: DType.c128}


def weak(value: bool | int | float | complex) -> Scalar:
    """A Python number as a value."""
    for kind in type(value).__mro__:
        if kind in PYTHON:
            return Scalar(Const(value, PYTHON[kind]), weak=True)
    raise AssertionError(f"not a number: {value!r}")
