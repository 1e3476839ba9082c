"""Where values of the surroundings come from.

Gives `Origin`, a value with the way to read it again in this process, and `Reads`, the record of all that one trace has
read: steps from the function that is compiled to each value, and what it was (`frontend.source.marks`). Another process
follows the same steps with `recalled`; it gets its own origins, or None when anything is not as it was.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tapeless.frontend.source.foreign_arrays import array_of
from tapeless.frontend.source.marks import FIXED, Keys, Mark, Unknown, by_identity, mark_of

Get = Callable[[], Any]
UNRECORDED = -1
NUMBERS = {bool, int, float, complex}


@dataclass(frozen=True, eq=False)
class Origin:
    """A value, how to read it again, and its row in the record. `kind` and `key` are the last step, from `parent`."""

    number: int
    value: Any
    get: Get
    parent: Origin | None = None
    kind: str = ""
    key: Any = None

    @cached_property
    def path(self) -> tuple[Any, ...]:
        """What tells it from others: where it begins and all steps from there."""
        if self.parent is None:
            return (id(self.value),)
        return (*self.parent.path, self.kind, self.key)


def stays(origin: Origin) -> bool:
    """Whether it can never be another value: of our own objects, through nothing but tuples."""
    if origin.kind in OWN:
        return True
    parent = origin.parent
    inside = origin.kind == "type" or (origin.kind in ("item", "length") and isinstance(parent and parent.value, tuple))
    return inside and parent is not None and stays(parent)


def made_here(value: Any) -> Origin:
    """What the compiler made itself, or what is covered by the state of its own files."""
    return Origin(UNRECORDED, value, lambda: value)


class Row(NamedTuple):
    """One step. `mark` is None where only later steps count; `watched` is its name when it may change from call to
    call.
    """

    parent: int
    kind: str
    key: Any
    mark: Mark | None = None
    watched: str = ""


# -- steps


def _cell(origin: Origin, name: str) -> Get:
    function = origin.value
    cell = function.__closure__[function.__code__.co_freevars.index(name)]
    return lambda: cell.cell_contents


def _global(origin: Origin, name: str) -> Get:
    """A global, or else a builtin, as Python looks it up: the one may hide the other at any time."""
    table, builtin = origin.value.__globals__, origin.value.__builtins__
    return lambda: table[name] if name in table else builtin[name]


def _default(origin: Origin, k: int) -> Get:
    function = origin.value
    return lambda: function.__defaults__[k]


def _keyword_default(origin: Origin, name: str) -> Get:
    function = origin.value
    return lambda: function.__kwdefaults__[name]


def _attribute(origin: Origin, name: str) -> Get:
    holder = origin.value
    return lambda: getattr(holder, name)


def _method(origin: Origin, name: str) -> Get:
    """The function behind a method, which an attribute of the object itself may hide at any time."""
    holder = origin.value

    def get() -> Any:
        found = getattr(holder, name)
        return found.__func__ if found.__self__ is holder else None

    return get


def _getter(origin: Origin, name: str) -> Get:
    """The function of a property."""
    holder = origin.value
    return lambda: next(vars(c)[name].fget for c in type(holder).__mro__ if name in vars(c))


def _own_item(origin: Origin, key: Any) -> Get:
    holder = origin.value
    return lambda: holder[key]


def _numbers(origin: Origin, _: Any) -> Get:
    """A text that stands for all numbers of a tuple or list, with their types. Found once for the same tuple."""
    last: list[Any] = [None, ""]

    def get() -> str:
        now = origin.get()
        if now is not last[0] or type(now) is not tuple:
            kinds = set(map(type, now))
            data = marshal.dumps(now, 2) if kinds <= NUMBERS and type(now) in (tuple, list) else b""
            last[:] = now, hashlib.sha256(data).hexdigest()
        return str(last[1])

    return get


# What is inside a container is read through it, since the container may be replaced. Our own objects never change.
STEPS: Mapping[str, Callable[[Origin, Any], Get]] = {
    "cell": _cell,
    "global": _global,
    "default": _default,
    "keyword default": _keyword_default,
    "attribute": _attribute,
    "method": _method,
    "getter": _getter,
    "own attribute": _attribute,
    "own item": _own_item,
    "field": lambda origin, name: lambda: getattr(origin.get(), name),
    "item": lambda origin, key: lambda: origin.get()[key],
    "length": lambda origin, _: lambda: len(origin.get()),
    "numbers": _numbers,
    "keys": lambda origin, _: lambda: Keys(origin.get()),
    "array": lambda origin, _: lambda: array_of(origin.get()),
    "number": lambda origin, _: lambda: origin.get()[()],
    "type": lambda origin, _: lambda: type(origin.get()),
    "truth": lambda origin, _: lambda: bool(origin.get()),
    "code": lambda origin, _: lambda: origin.value.__code__,
    "defaults": lambda origin, _: lambda: origin.value.__defaults__,
    "keyword defaults": lambda origin, _: lambda: Keys(origin.value.__kwdefaults__),
}
OWN = ("own attribute", "own item")
ROOTS: Mapping[str, Callable[[str], Any]] = {
    "module": lambda name: sys.modules[name],
}

# -- the record


class Reads:
    """What a trace has read. `opaque` names a value that nobody could recognise again, if there was one."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.opaque = ""
        self._numbers: dict[tuple[int, str, Any], int] = {}
        self._origins: dict[int, Origin] = {}  # of objects whose parts may be read later, by id
        self._first: dict[int, Origin] = {}  # where an object was met first, by id
        self.numbers: dict[
            int, tuple[Any, Any]
        ] = {}  # long tuples and lists of numbers by id, and what stands for them
        self.arrays: dict[int, tuple[Any, Origin]] = {}  # of other libraries, by id, and how NumPy sees them
        self.constants: dict[Any, Any] = {}  # arrays of numbers that are known: Note [Rows] in rows.py

    def root(self, kind: str, key: Any, value: Any) -> Origin:
        return Origin(self._number(UNRECORDED, kind, key), value, lambda: value)

    def step(self, origin: Origin, kind: str, key: Any = None) -> Origin:
        get = STEPS[kind](origin, key)
        recorded = origin.number != UNRECORDED
        number = self._number(origin.number, kind, key) if recorded else UNRECORDED
        return Origin(number, get(), get, origin, kind, key)

    def _number(self, parent: int, kind: str, key: Any) -> int:
        found = self._numbers.setdefault((parent, kind, key), len(self.rows))
        if found == len(self.rows):
            self.rows.append(Row(parent, kind, key))
        return found

    def saw(self, origin: Origin, text: str | None = None) -> None:
        """Keeps what the value is; `text` is the digest of a function's source."""
        k = origin.number
        if k == UNRECORDED or self.rows[k].mark is not None:
            return
        try:
            mark = mark_of(origin.value, text)
        except Unknown as unknown:
            self.opaque = self.opaque or str(unknown)
            return
        if by_identity(mark):
            mark = (*mark, self._first.setdefault(id(origin.value), origin).number)
        self.rows[k] = self.rows[k]._replace(mark=mark)

    def watch(self, origin: Origin, name: str) -> None:
        if origin.number != UNRECORDED:
            self.rows[origin.number] = self.rows[origin.number]._replace(watched=name)

    def remember(self, origin: Origin) -> None:
        """For an object whose parts may be read later."""
        self._origins.setdefault(id(origin.value), origin)

    def origin_of(self, value: Any) -> Origin:
        """Where a remembered object came from."""
        found = self._origins.get(id(value))
        if found is None:
            found = made_here(value)
            if not _is_fixed(value):
                self.opaque = self.opaque or f"an object of type {type(value).__name__}"
        return found

    def module(self, module: types.ModuleType) -> Origin:
        if sys.modules.get(module.__name__) is module:
            return self.root("module", module.__name__, module)
        self.opaque = self.opaque or f"the module {module.__name__}"
        return made_here(module)


def _is_fixed(value: Any) -> bool:
    """Whether what an object consists of is given by the version of its library."""
    owner = value if isinstance(value, type) else type(value)
    return owner.__module__.partition(".")[0] in FIXED


def recalled(rows: Iterable[Row], roots: Mapping[str, Callable[[Any], Any]]) -> list[Origin] | None:
    """The origins of this process, row by row; None when one is missing or is not what it was."""
    found: list[Origin] = []
    first: dict[int, int] = {}
    known = {**ROOTS, **roots}
    try:
        for k, row in enumerate(rows):
            if row.parent == UNRECORDED:
                value = known[row.kind](row.key)
                origin = Origin(k, value, lambda value=value: value)  # type: ignore[misc]
            else:
                parent = found[row.parent]
                get = STEPS[row.kind](parent, row.key)
                origin = Origin(k, get(), get, parent, row.kind, row.key)
            found.append(origin)
            if row.mark is not None:
                mark = mark_of(origin.value)
                if by_identity(mark):
                    mark = (*mark, first.setdefault(id(origin.value), k))
                if mark != row.mark:
                    return None
    except Exception:  # whatever a foreign object does when it is read: it is not what it was
        return None
    return found
