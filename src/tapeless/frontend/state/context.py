"""What the parts of the front end share: builder, bindings, where we are in the source, errors, values read from
outside.

Gives `Context`. Relies on `ir`. The other modules of the front end are functions over a Context.
"""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tapeless.errors import CallError, CompileError, InvertibilityError, RecoveryError, ShapeError
from tapeless.frontend.source.liveness import Liveness
from tapeless.frontend.source.marks import peek
from tapeless.frontend.source.origins import Origin, Reads
from tapeless.frontend.source.sources import Source
from tapeless.frontend.state.values import (
    Array,
    Box,
    Builtin,
    Cell,
    Closure,
    Conflict,
    Grown,
    Key,
    Length,
    MaybeUndefined,
    Method,
    Planned,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    State,
    Static,
    Text,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.builder import Builder
from tapeless.ir.core import Check, Stm
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import I64, Atom, Const, Dim, Var, atom_dim, dim_atom


@dataclass(frozen=True)
class Watch:
    """A value read from outside while compiling: `get` reads it again, `seen` is what it was."""

    origin: Origin
    name: str

    @property
    def get(self) -> Callable[[], Any]:
        return self.origin.get

    @property
    def seen(self) -> Any:
        return self.origin.value


@dataclass(frozen=True)
class Captured:
    """An array of the surroundings, passed as a hidden argument at each call."""

    origin: Origin
    param: Var
    cell: Cell
    name: str

    @property
    def get(self) -> Callable[[], Any]:
        return self.origin.get


@dataclass(eq=False)
class Frame:
    """An inlined call: which function, and its liveness."""

    number: int
    source: Source | None
    code: object
    name: str
    liveness: Liveness
    function: Origin  # the function whose globals and closure it sees
    outer: int = -1
    locals: frozenset[str] = frozenset()
    kinds: tuple[Any, ...] = ()  # of the function and its arguments
    library: bool = False  # not the user's code: its statements belong to the call of it


@dataclass(frozen=True)
class Options:
    """What a user may ask of a compiled function."""

    check: bool = False
    unsafe: bool = False
    fastmath: bool = False
    debug_nans: bool = False
    memory: str | None = None  # for backward sweeps
    alone: bool = False  # runs on one thread
    coarsen: bool = True
    device: str = "cpu"
    deterministic: bool = False  # the same bits in each run
    resized: bool = False  # arrays of the surroundings have changed their sizes: any size will do


@dataclass(eq=False)
class Budget:
    """Those of the derivatives in a function, and the parameter for what the `first` one leaves for loops to keep: code
    does not depend on the number of bytes.
    """

    room: Var
    first: int
    smallest: int


class Place:
    """A piece of source that is being compiled; made and entered for every expression."""

    __slots__ = ("before", "ctx", "span")

    def __init__(self, ctx: Context, span: Span) -> None:
        self.ctx, self.span, self.before = ctx, span, ctx.span

    def __enter__(self) -> None:
        self.ctx.span = self.ctx.b.span = self.span

    def __exit__(self, *problem: object) -> None:
        self.ctx.span = self.ctx.b.span = self.before


ELSEWHERE = nullcontext()


@dataclass(eq=False)
class Context:
    """One compilation: where it stands, what it has seen, what it has emitted."""

    options: Options = field(default_factory=Options)
    b: Builder = field(default_factory=Builder)
    state: State = field(default_factory=State)
    frames: dict[int, Frame] = field(default_factory=dict)
    frame: int = -1
    span: Span = NOWHERE
    returned: Span = NOWHERE  # the last `return` seen, where results are refused
    reads: Reads = field(default_factory=Reads)
    watches: dict[tuple[Any, ...], Watch] = field(default_factory=dict)
    captured: dict[int, Captured] = field(default_factory=dict)
    callbacks: list[Any] = field(
        default_factory=list
    )  # functions of Python that it calls: `frontend/operators/callbacks.py`
    sizes: list[Var] = field(default_factory=list)
    budget: Budget | None = None
    short: set[Dim] = field(default_factory=set)  # sizes of slices like x[k:k+1], which are repeated as 1 is
    firsts: dict[Var, Atom] = field(default_factory=dict)  # what a variable of a loop is when the loop begins
    counters: set[Atom] = field(default_factory=set)  # count a loop's iterations: no run takes them past 2**53
    without_axes: set[Atom] = field(default_factory=set)  # arguments that are arrays of no dimension
    calls: list[tuple[Any, ...]] = field(default_factory=list)  # kinds of the open calls
    written_cells: set[Cell] = field(default_factory=set)
    arguments: dict[Cell, int] = field(default_factory=dict)  # their numbers, for `Cell.which`
    read_cells: set[Cell] = field(default_factory=set)
    points: dict[Cell, int] = field(default_factory=dict)  # of which a view without axes was made, and the line
    apart: set[tuple[Cell, Cell]] = field(default_factory=set)  # Note [Shared arrays] in transforms/sharing.py
    found: dict[types.FunctionType, tuple[Source, ast.FunctionDef | ast.Lambda]] = field(default_factory=dict)
    shared: dict[tuple[Any, ...], Any] = field(default_factory=dict)  # Note [Shared functions]
    compiled: set[ast.AST] = field(default_factory=set)  # functions that have been, at a call
    copied: int = 0  # statements of what was compiled again: Note [Copies]
    copying: int | None = None  # how many statements there were when the open copy began
    inside_prelude: int = 0
    in_parallel: int = 0  # loops of tp.prange around
    transforms: int = 0  # derivatives that are being taken of what is traced now
    unseen: bool = False  # loops do not show how far they are: one around them does, or elements come in no order
    rules: list[Any] = field(default_factory=list)  # of functions with derivatives of their own, being traced
    reversing: int = 0  # reversible functions whose own way backwards is being traced
    numbers: Iterator[int] = field(default_factory=itertools.count)
    sources: dict[str, Source] = field(default_factory=dict)
    changed: list[Box] = field(default_factory=list)  # lists that were, in this order: Note [Lists that change]
    lengthened: list[Box] = field(default_factory=list)  # those whose length did
    growing: dict[Box | None, Any] = field(default_factory=dict)  # by the open loops: Note [Lists that grow]
    held: dict[ast.stmt, Key] = field(default_factory=dict)  # the names of what open loops go over
    changed_meanwhile: set[Box] = field(default_factory=set)  # lists over which loops go
    appended: dict[Box | None, Value] = field(default_factory=dict)  # what was appended last, to lists of known length
    doubted: set[Key] = field(default_factory=set)  # names that were read where some paths leave them without a value
    lists_may_meet: bool = True  # where an arm changes the length of one; not in loops that need not be unrolled
    worklists: Any = None  # whose loop is tried out: Note [Worklists]
    lengths: dict[Var, Length] = field(default_factory=dict)  # of lists: how long they are at most
    loops: int = 0  # that are open and known only when they run
    kept_lists: set[Box] = field(default_factory=set)  # which were put into a list that gets longer
    made_readonly: list[Cell] = field(default_factory=list)  # arrays, likewise
    starts: list[State] = field(default_factory=list)  # before the open loops: Note [Counted lists]
    parts: dict[int, list[Stm]] = field(default_factory=dict)  # of open regions, by id: the one around them

    def __post_init__(self) -> None:
        self.b.functions.coarsen = self.options.coarsen

    # -- memory

    def room(self, memory: int) -> tuple[Var, int]:
        """What a budget leaves for loops: a parameter, and how much more than that it is."""
        if self.budget is None:
            self.budget = Budget(Var("room", I64), memory, memory)
        self.budget.smallest = min(memory, self.budget.smallest)
        return self.budget.room, memory - self.budget.first

    # -- where we are

    @contextmanager
    def showing_nothing(self) -> Iterator[None]:
        """Loops inside do not show how far they are."""
        before, self.unseen = self.unseen, True
        try:
            yield
        finally:
            self.unseen = before

    @property
    def in_library(self) -> bool:
        return self.frame in self.frames and self.frames[self.frame].library

    def at(self, node: ast.AST) -> AbstractContextManager[None]:
        """Statements and errors inside belong to this piece of source (in library code: to the call of it)."""
        span = self.span_of(node)
        return ELSEWHERE if span is None else Place(self, span)

    def span_of(self, node: ast.AST) -> Span | None:
        """Where what is made for it belongs, unless that is where the context is."""
        frame = self.frames.get(self.frame)
        source = frame.source if frame is not None and not frame.library else None
        if source is None or self.inside_prelude or not hasattr(node, "lineno"):
            return None
        self.sources[source.file] = source
        return source.span(node)

    def at_span(self, span: Span) -> Place:
        return Place(self, span)

    # -- errors

    def _where(self, span: Span = NOWHERE) -> dict[str, Any]:
        s = span if span.line else self.span
        if s is NOWHERE:
            return {}
        source = self.sources.get(s.file)
        text = source.text(s.line) if source else None
        return {
            "file": s.file, "line": s.line, "column": s.column, "end_line": s.end_line, "end_column": s.end_column,
            "source": text or None,
        }  # fmt: skip

    def fail(self, code: str, reason: str, hint: str = "") -> NoReturn:
        raise CompileError(reason, code=code, hint=hint, **self._where())

    def without_value(self, key: Key) -> NoReturn:
        reason = f"'{key[1]}' is used before it has a value on this path"
        problem = CompileError(reason, code="TP110", hint="assign it first.", **self._where())
        problem.unbound = key
        raise problem

    def call_error(self, reason: str, hint: str = "") -> NoReturn:
        raise CallError(reason, hint=hint, **self._where())

    def shape_error(self, code: str, reason: str, hint: str = "") -> NoReturn:
        raise ShapeError(reason, code=code, hint=hint, **self._where())

    def no_recovery(self, reason: str, span: Span, hint: str = "") -> NoReturn:
        raise RecoveryError(reason, hint=hint, **self._where(span))

    def not_invertible(self, code: str, reason: str, span: Span = NOWHERE, hint: str = "") -> NoReturn:
        raise InvertibilityError(reason, code=code, hint=hint, **self._where(span))

    # -- names

    def key(self, name: str) -> Key:
        return (self.frame, name)

    def bind(self, name: str, value: Value) -> None:
        if isinstance(value, Grown) and value.ref is not None and value.ref.lazy and not name.startswith("<"):
            self.fail(
                "TP101", "the result of map or filter must be used at once here", "make a list of it first: list(...)."
            )
        self.state.names[(self.frame, name)] = value

    def new_cell(self, var: Var, name: str = "", **kinds: Any) -> Array:
        """A new array, referred to as a whole."""
        cell = Cell(name or var.name, named=bool(name), **kinds)
        self.state.cells[cell] = var
        return Array(cell, var.type)

    def use(self, value: Value, name: str = "") -> Value:
        """A value read from a name: refuses what has no value here."""
        match value:
            case Conflict(reason=reason, hint=hint):
                self.fail("TP104", reason, hint)
            case MaybeUndefined(value=inner, defined=defined, none=True):
                self.check(defined, "TypeError", f"'{name}' is None here: test it first, '{name} is None'")
                return inner
            case MaybeUndefined(value=inner, defined=defined):
                self.check(
                    defined,
                    "UnboundLocalError",
                    f"cannot access local variable '{name}' where it is not associated with a value",
                )
                return inner
            case _:
                return value

    # -- regions

    @property
    def home(self) -> list[Stm]:
        """The region around this one, and around those that it is a part of."""
        stms = self.b.stms
        return self.parts.get(id(stms), stms)

    @contextmanager
    def part(self) -> Iterator[list[Stm]]:
        """A region that runs in its turn among the statements around it, as arms and bodies of loops do: what changes
        there is known afterwards.
        """
        home = self.home
        with self.b.region() as stms:
            self.parts[id(stms)] = home
            try:
                yield stms
            finally:
                del self.parts[id(stms)]

    # -- effects

    def check(self, cond: Atom, error: str, message: str, *args: Atom) -> None:
        if isinstance(cond, Const):
            if cond.value:
                return
        self.b.effect(Check(cond, error, message, args))

    # -- sizes

    def first_of(self, atom: Atom) -> Atom:
        """What a number is when the outermost of the loops that carry it begins."""
        while isinstance(atom, Var) and atom in self.firsts:
            atom = self.firsts[atom]
        return atom

    def canon(self, dim: Dim) -> Dim:
        """The representative of a size among those known to be equal."""
        while isinstance(dim, Var) and dim in self.state.equal:
            dim = self.state.equal[dim]
        return dim

    def size_atom(self, dim: Dim) -> Atom:
        return dim_atom(self.canon(dim))

    def dims(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple([self.canon(d) for d in shape])

    def atom_dim(self, atom: Atom) -> Dim:
        return self.canon(atom_dim(atom))

    def fork(self) -> State:
        """The state before a branch; the caller restores it."""
        return self.state.copy()

    def number(self) -> int:
        return next(self.numbers)


def whole_number(ctx: Context, value: int, what: str) -> Value:
    """A Python int. One that only u64 holds is no number until NumPy makes one of it."""
    if not -(2**63) <= value < 2**64:
        ctx.fail("TP109", f"{what} does not fit into 64 bits", "write it as a float.")
    return weak(value) if value < 2**63 else Static(value)


def new_box(ctx: Context) -> Box:
    """Of a list or dict that is made here."""
    return Box(ctx.number(), made_in=ctx.home)


def type_text(value: Value) -> str:
    """How a value is named in messages, with its article."""
    match value:
        case Scalar(atom=atom, weak=weak):
            names = {"f64": "a float", "i64": "an int", "c128": "a complex number", "bool": "a bool"}
            return names[atom.type.dtype.value] if weak else with_article(atom.type.dtype.numpy.name)
        case Array(type=t):
            return f"a {t.rank}-dimensional array of {t.dtype.numpy.name}"
        case Sequence_(ref=ref) | Grown(ref=ref) if ref is not None and ref.deque:
            return "a deque"
        case Sequence_(kind=kind, items=()):
            return f"an empty {kind}"
        case Sequence_(kind="dict", keys=keys):
            return f"a dict of {', '.join(map(repr, keys))}"
        case Sequence_(kind=kind, items=items):
            return f"a {kind} of {len(items)}"
        case Grown():
            return "a list of a length that is known when it runs"
        case Static(value=known):
            return object_text(known)
        case Closure(name=name) | Builtin(name=name):
            return f"the function '{name}'"
        case Method(name=name):
            return f"the method '{name}'"
        case RangeValue():
            return "a range"
        case Planned(iterable=iterable):
            return type_text(iterable)
        case Zipped(start=start):
            return "zip(...)" if start is None else "enumerate(...)"
        case SliceValue():
            return "a slice"
        case Text():
            return "a string that is made when it runs"
        case MaybeUndefined(value=inner):
            return type_text(inner)
        case Conflict(reason=reason):
            return reason


def object_text(known: object) -> str:
    """A Python object that is not a number, as its author would call it."""
    name = peek(known, "__name__")
    match known:
        case None:
            return "None"
        case bool() | int() | float() | complex():
            return f"the number {known!r}"
        case str():
            return f"the string {known!r}"
        case types.ModuleType():
            return f"the module '{name}'"
        case type():
            return f"the type '{name}'"
        case _ if callable(known) and name:
            return f"the function '{name}'"
        case _ if known is Ellipsis:
            return "'...'"
    return with_article(f"object of type {type(known).__name__}")


def with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
