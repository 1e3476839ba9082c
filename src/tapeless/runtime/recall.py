"""Finding compiled code without tracing.

Beside the code, which the disk cache has by the program that was traced, it keeps for a function and the kinds of its
arguments what earlier traces had read. `recall` reads the same things again: where all of them are what they were, a
trace would give the same program. Whatever is missing or cannot be recognised means that the function is traced.

Note [What a trace depends on]
Options, kinds of arguments, the versions of Python, NumPy, SciPy and the C library and the compiler's own files are in
the key. All else comes in through `from_python`: it leaves a row for each step from the function to the value, with the
value's mark. A function's mark holds its code object and the text of its file, from which it is compiled, so places in
messages are right too. Arrays of the surroundings are told apart by type and layout, not by contents: they are
arguments.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapeless.backends.cpu import libraries
from tapeless.backends.cuda.driver import driver
from tapeless.backends.llvm import host
from tapeless.frontend.entry import Signature, Spec, StaticSpec, Traced, written_function
from tapeless.frontend.source.marks import Unknown, tree_mark
from tapeless.frontend.source.origins import UNRECORDED, Origin, Row, recalled
from tapeless.frontend.state.context import Captured, Options, Watch
from tapeless.frontend.state.values import Cell
from tapeless.ir import containers, pytree
from tapeless.ir.pytree import TreeDef
from tapeless.runtime import cache
from tapeless.runtime.kept import CODEC, Called, ForCall, Hidden, Memory
from tapeless.runtime.numbers import numbers_of
from tapeless.runtime.plain import Unplain
from tapeless.version import VERSION

KEPT = 16  # traces of one function for one kind of arguments that are remembered


def surroundings(options: Options) -> tuple[str, ...]:
    """The part of every key that does not depend on the function."""
    return (
        VERSION,
        cache.build(),
        sys.version,
        np.__version__,
        libraries.scipy_build(),
        host.identity(),
        driver().identity if options.device == "cuda" else "",
        repr(options),
    )


def key_of(function: Any, specs: Sequence[Spec], tree: Any, options: Options) -> str | None:
    """Where traces of this function for such arguments are kept; None when it cannot be told."""
    written = written_function(function)
    if not isinstance(written, types.FunctionType):
        return None
    code = written.__code__
    kinds = ["static" if isinstance(s, StaticSpec) else repr(s) for s in specs]
    try:
        structure = repr(tree_mark(tree))
    except Unknown:
        return None
    place = f"{code.co_filename}:{code.co_firstlineno}:{code.co_name}:{function.__name__}"
    return cache.key_of("trace", *surroundings(options), place, structure, *kinds)


@dataclass(frozen=True)
class Recalled:
    """The key of the code, how to call it, and which calls it is for."""

    code: str
    signature: Signature
    call: ForCall | None


def recall(
    key: str, function: Any, specs: Sequence[Spec], tree: TreeDef, leaves: Sequence[Any] | None
) -> Recalled | None:
    """`leaves` are the arguments of the call."""
    memories = cache.fetch(key, cache.TRACE)
    if not isinstance(memories, list) or not all(isinstance(m, Memory) for m in memories):
        return None
    for memory in memories:
        origins = _origins(memory.rows, function, specs)
        if origins is None:
            continue
        try:
            called = CODEC.decode(memory.signature, _classes(origins, tree))
        except Unplain:
            continue
        if not isinstance(called, Called) or any(h.row >= len(origins) for h in called.hidden):
            continue
        captured = [_captured(h, origins[h.row]) for h in called.hidden]
        watched = [(origins[k], row.watched) for k, row in enumerate(memory.rows) if row.watched]
        watches = [Watch(origin, name) for origin, name in watched]
        signature = replace(called.signature, captured=captured, watches=watches)
        if memory.call is None or _is_for(memory.call, signature, leaves):
            return Recalled(memory.code, signature, memory.call)
    return None


def _is_for(call: ForCall, signature: Signature, leaves: Sequence[Any] | None) -> bool:
    if leaves is None:
        return False
    numbers = numbers_of(signature, leaves)
    return len(call.numbers) == len(numbers) and all(
        a is None or (type(a) is type(b) and a == b) for a, b in zip(call.numbers, numbers, strict=True)
    )


def remember(
    key: str,
    function: Any,
    specs: Sequence[Spec],
    tree: TreeDef,
    traced: Traced,
    code: str,
    call: ForCall | None = None,
) -> None:
    """Keeps a trace for `recall`, if all that it had read can be recognised again."""
    signature, reads = traced.signature, traced.reads
    if reads.opaque or any(c.origin.number == UNRECORDED for c in signature.captured):
        return
    origins = _origins(reads.rows, function, specs)
    if origins is None:  # it has changed since
        return
    hidden = tuple(_hidden(c) for c in signature.captured)
    try:
        data = CODEC.encode(Called(replace(signature, captured=[], watches=[]), hidden), _classes(origins, tree))
    except Unplain:
        return
    new = Memory(tuple(reads.rows), code, data, call)
    found = cache.fetch(key, cache.TRACE)
    memories = found if isinstance(found, list) else []
    earlier = [m for m in memories if isinstance(m, Memory) and (m.rows, m.call) != (new.rows, new.call)]
    cache.store(key, [new, *earlier[: KEPT - 1]], cache.TRACE)


def _hidden(array: Captured) -> Hidden:
    cell = array.cell
    return Hidden(array.origin.number, array.param, array.name, cell.readonly, cell.scattered)


def _captured(array: Hidden, origin: Origin) -> Captured:
    cell = Cell(array.name, readonly=array.readonly, scattered=array.scattered)
    return Captured(origin, array.param, cell, array.name)


def _origins(rows: Sequence[Row], function: Any, specs: Sequence[Spec]) -> list[Origin] | None:
    return recalled(rows, {"entry": lambda _: function, "argument": lambda k: specs[k].value})


def _classes(origins: Sequence[Origin], tree: TreeDef) -> list[type]:
    """Those of containers that a result may have, in an order that is the same for the same rows: they are kept by
    their place.
    """
    read = [o.value if isinstance(o.value, type) else type(o.value) for o in origins]
    return list(dict.fromkeys(cls for cls in (*read, *_in_tree(tree)) if _is_container(cls)))


def _is_container(cls: type) -> bool:
    named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return named or dataclasses.is_dataclass(cls) or containers.is_registered(cls)


def _in_tree(tree: TreeDef) -> Iterator[type]:
    cls = pytree.class_of(tree)
    if cls is not None:
        yield cls
    for child in tree.children:
        yield from _in_tree(child)
