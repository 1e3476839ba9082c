"""Values as bytes and back, for the disk cache: data only, never code.

A `Codec` takes the classes that may occur (dataclasses, NamedTuples and enums) and gives `encode` and `decode`. Besides
them there are plain numbers, texts, bytes and containers. Fields must fit their annotations, both ways; all else raises
`Unplain`.

Note [Layout]
Eight bytes with the length of a text, the text, and then all bytes objects in a row. The text is a JSON list. What is a
list in it is a node: a kind, and the places of its parts, which come earlier. All else is an atom: a text, a small
integer, a bool or null. The last one is the value. So reading is one loop without recursion, and the only names it
looks up are those of members of enums, in the table. What is compared by identity, as variables are, is written once,
however often it occurs, and is one object again afterwards. So is what cannot change and has the same parts; lists,
dicts and sets are not shared.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import struct
import sys
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

ATOMS = (str, int, bool, types.NoneType)
TUPLE, LIST, SET, FROZENSET, DICT, BYTES, INTEGER, FLOAT, COMPLEX, ELLIPSIS, GUEST, FIRST = range(12)
CONTAINERS: dict[type, int] = {tuple: TUPLE, list: LIST, set: SET, frozenset: FROZENSET, dict: DICT}
SETS: dict[int, Callable[[Any], Any]] = {SET: set, FROZENSET: frozenset}
SMALL = 2**63  # integers from here on are written in base 16, which takes linear time
DEEPEST = 200  # containers in containers: Python's own recursion over tuples knows no bound


class Unplain(Exception):
    """A value that cannot be kept, or bytes that are none."""


class Codec:
    """`guests` of the two methods are classes of the surroundings: values hold them by their place in that list."""

    def __init__(self, classes: Sequence[type]) -> None:
        self.classes = tuple(classes)
        self.kinds = {cls: FIRST + k for k, cls in enumerate(classes)}
        self.rows: dict[int, _Row | Mapping[str, Any]] = {}

    def row(self, kind: int) -> _Row | Mapping[str, Any]:
        found = self.rows.get(kind)
        if found is None:  # reading annotations takes a while, so not before it is needed
            cls = self.classes[kind - FIRST]
            found = self.rows[kind] = dict(cls.__members__) if issubclass(cls, enum.Enum) else _Row(cls)
        return found

    def encode(self, value: Any, guests: Sequence[type] = ()) -> bytes:
        try:
            writer = _Writer(self, guests)
            writer.put(value)
            text = json.dumps(writer.entries, separators=(",", ":")).encode()
            return b"".join([struct.pack("<Q", len(text)), text, *writer.blobs])
        except (KeyError, RecursionError) as problem:
            raise Unplain(f"{type(problem).__name__}: {problem}") from None

    def decode(self, data: bytes, guests: Sequence[type] = ()) -> Any:
        try:
            return _Reader(self, data, guests).whole()
        except Exception as problem:  # whatever is wrong with the bytes
            raise Unplain(f"{type(problem).__name__}: {problem}") from None

    def hashed(self, value: Any) -> bool:
        """Whether it may be a key or a member of a set: an atom, or what is compared by identity."""
        cls = type(value)
        return cls in ATOMS or (cls in self.kinds and _by_identity(cls))


# -- what fields may hold: for each class what else to ask of a value of it; None for any value

Ask = Callable[[Any], None]
Shape = Mapping[type, Ask | None] | None


class _Row:
    """A class of the table."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.names: tuple[str, ...] = getattr(cls, "_fields", None) or tuple(f.name for f in dataclasses.fields(cls))
        shapes = [(k, _annotated(cls.__module__, cls.__annotations__[name])) for k, name in enumerate(self.names)]
        self.by_value = issubclass(cls, Hashable) and not _by_identity(cls)
        self.asked = [(k, shape) for k, shape in shapes if shape is not None]

    def check(self, parts: Sequence[Any]) -> None:
        if len(parts) != len(self.names):
            raise Unplain(f"{self.cls.__name__} with {len(parts)} fields")
        for k, shape in self.asked:
            ask = shape[type(parts[k])]  # KeyError: not what the field holds
            if ask is not None:
                ask(parts[k])


def _by_identity(cls: type) -> bool:
    made: object = cls.__hash__
    return made is object.__hash__


def _annotated(module: str, annotation: Any) -> Shape:
    return _written(module, getattr(annotation, "__forward_arg__", annotation))  # that of a NamedTuple is wrapped


@functools.cache
def _written(module: str, text: str) -> Shape:
    """Of an annotation in our own source; `typing.get_type_hints` takes three times as long."""
    return shape_of(eval(text, vars(sys.modules[module])))


def shape_of(hint: Any) -> Shape:
    if hint is Any:
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType or origin is typing.Union:
        shapes = [shape_of(arg) for arg in args]
        return None if None in shapes else {cls: ask for shape in shapes for cls, ask in (shape or {}).items()}
    if origin is None:
        return {hint: None}
    inner = [shape_of(arg) for arg in args if arg is not ...]
    return {origin: None if all(s is None for s in inner) else _asker(origin, inner, ... in args)}


def _fits(shape: Shape, value: Any) -> None:
    if shape is not None:
        ask = shape[type(value)]
        if ask is not None:
            ask(value)


def _asker(origin: type, inner: Sequence[Shape], repeated: bool) -> Ask:
    def each(value: Any) -> None:
        for item in value:
            _fits(inner[0], item)

    def fixed(value: Any) -> None:
        for shape, item in zip(inner, value, strict=True):
            _fits(shape, item)

    def pairs(value: Any) -> None:
        for key, item in value.items():
            _fits(inner[0], key)
            _fits(inner[1], item)

    return pairs if origin is dict else fixed if origin is tuple and not repeated else each


# -- writing and reading


class _Writer:
    def __init__(self, codec: Codec, guests: Sequence[type]) -> None:
        self.codec = codec
        self.guests = {guest: k for k, guest in enumerate(guests)}
        self.entries: list[Any] = []
        self.blobs: list[bytes] = []
        self.places: dict[Any, int] = {}  # of objects by id, of atoms by class and value, of nodes by their parts
        self.depth = 0

    def put(self, value: Any) -> int:
        """Its place."""
        cls = type(value)
        if cls in self.codec.kinds:
            return self.places[id(value)] if id(value) in self.places else self.known(value)
        if cls is int and not -SMALL <= value < SMALL:
            return self.node(INTEGER, [self.atom(f"{value:x}")])
        if cls in ATOMS:
            return self.atom(value)
        if cls in CONTAINERS:
            return self.container(value)
        if cls is bytes:
            self.blobs.append(value)
            return self.node(BYTES, [self.atom(len(value))], shared=False)
        if cls is float:
            return self.node(FLOAT, [self.bits(value)])
        if cls is complex:
            return self.node(COMPLEX, [self.bits(value.real), self.bits(value.imag)])
        if value is ...:
            return self.node(ELLIPSIS, [])
        if isinstance(value, type) and value in self.guests:
            return self.node(GUEST, [self.atom(self.guests[value])])
        raise Unplain(f"an object of type {cls.__name__}")

    def node(self, kind: int, parts: list[int], shared: bool = True) -> int:
        found = self.places.setdefault((kind, *parts), len(self.entries)) if shared else len(self.entries)
        if found == len(self.entries):
            self.entries.append([kind, *parts])
        return found

    def atom(self, value: Any) -> int:
        found = self.places.setdefault((type(value), value), len(self.entries))
        if found == len(self.entries):
            self.entries.append(value)
        return found

    def bits(self, value: float) -> int:
        """All of them: NaN and -0.0 stay what they are."""
        return self.atom(struct.pack("<d", value).hex())

    def container(self, value: Any) -> int:
        kind = CONTAINERS[type(value)]
        if kind not in (TUPLE, LIST) and not all(map(self.codec.hashed, value)):
            raise Unplain("a key or a member of a set that is not a plain one")
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unplain("containers nested too deeply")
        parts = [self.put(item) for item in value]
        if kind == DICT:
            parts += [self.put(item) for item in value.values()]
        self.depth -= 1
        return self.node(kind, sorted(parts) if kind in (SET, FROZENSET) else parts, kind in (TUPLE, FROZENSET))

    def known(self, value: Any) -> int:
        kind = self.codec.kinds[type(value)]
        row = self.codec.row(kind)
        if isinstance(row, _Row):
            fields = [getattr(value, name) for name in row.names]
            row.check(fields)
            before, self.depth = self.depth, 0
            parts = [self.put(field) for field in fields]
            self.depth = before
        else:
            parts = [self.atom(value.name)]
        self.places[id(value)] = found = self.node(kind, parts, not isinstance(row, _Row) or row.by_value)
        return found


class _Reader:
    def __init__(self, codec: Codec, data: bytes, guests: Sequence[type]) -> None:
        self.codec, self.guests, self.data = codec, guests, data
        (length,) = struct.unpack_from("<Q", data)
        self.at = 8 + length  # where the next bytes object begins
        self.depths: dict[int, int] = {}  # of containers, by place

    def whole(self) -> Any:
        values: list[Any] = []
        entries = json.loads(self.data[8 : self.at])
        if type(entries) is not list:
            raise Unplain("no list of entries")
        for entry in entries:
            if type(entry) is not list:
                if type(entry) not in ATOMS:
                    raise Unplain("an odd atom")
                values.append(entry)
                continue
            kind, *places = entry
            parts = [values[k] for k in places]
            if kind >= FIRST:
                values.append(self.known(kind, parts))
            elif kind > DICT:
                values.append(self.scalar(kind, parts))
            else:
                self.depths[len(values)] = depth = 1 + max([self.depths.get(k, 0) for k in places], default=0)
                if depth > DEEPEST:
                    raise Unplain("containers nested too deeply")
                values.append(tuple(parts) if kind == TUPLE else self.container(kind, parts))
        if self.at != len(self.data):
            raise Unplain("bytes are left over")
        return values[-1]

    def known(self, kind: int, parts: list[Any]) -> Any:
        row = self.codec.row(kind)
        if isinstance(row, _Row):
            row.check(parts)
            return row.cls(*parts)
        (name,) = parts
        return row[name]

    def container(self, kind: int, parts: list[Any]) -> Any:
        if kind == LIST:
            return parts
        keys = parts[: len(parts) // 2] if kind == DICT else parts
        if not all(map(self.codec.hashed, keys)):
            raise Unplain("a key or a member of a set that is not a plain one")
        return dict(zip(keys, parts[len(keys) :], strict=True)) if kind == DICT else SETS[kind](keys)

    def scalar(self, kind: int, parts: list[Any]) -> Any:
        match kind, parts:
            case _, [int(length)] if kind == BYTES and 0 <= length <= len(self.data) - self.at:
                self.at += length
                return self.data[self.at - length : self.at]
            case _, [str(text)] if kind == INTEGER:
                return int(text, 16)
            case _, [str(bits)] if kind == FLOAT:
                return _float(bits)
            case _, [str(real), str(imag)] if kind == COMPLEX:
                return complex(_float(real), _float(imag))
            case _, [] if kind == ELLIPSIS:
                return ...
            case _, [int(k)] if kind == GUEST and k >= 0:
                return self.guests[k]
        raise Unplain(f"an odd node of kind {kind}")


def _float(bits: str) -> float:
    (value,) = struct.unpack("<d", bytes.fromhex(bits))
    return float(value)
