"""Finding compiled code without tracing.

Beside the code, which the disk cache has by the program that was traced, it keeps for a function and the kinds of its
arguments what earlier traces had read. `recall` reads the same things again: where all of them are what they were, a
trace would give the same program. Whatever is missing or cannot be recognised means that the function is traced.

Note [What a trace depends on]
Options, kinds of arguments, the versions of Python and NumPy and the compiler's own files are in the key. All else comes
in through `from_python`: it leaves a row for each step from the function to the value, with the value's mark. A
function's mark holds its code object and the text of its file, from which it is compiled, so places in messages are right
too. Arrays of the surroundings are told apart by type and layout, not by contents: they are arguments.
"""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapeless.backends.llvm import host
from tapeless.frontend.context import Captured, Options, Watch
from tapeless.frontend.entry import Signature, Spec, StaticSpec, Traced, written_function
from tapeless.frontend.marks import Unknown, tree_mark
from tapeless.frontend.origins import UNRECORDED, Row, recalled
from tapeless.runtime import cache
from tapeless.version import VERSION

KEPT = 16  # traces of one function for one kind of arguments that are remembered
UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError, RecursionError)


@dataclass(frozen=True)
class Memory:
    """One trace: what it had read, the key of the code that came of it, and its pickled signature."""

    rows: tuple[Row, ...]
    code: str
    signature: bytes


def surroundings(options: Options) -> tuple[str, ...]:
    """The part of every key that does not depend on the function."""
    return (VERSION, cache.build(), sys.version, np.__version__, host.identity(), repr(options))


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


def recall(key: str, function: Any, specs: Sequence[Spec]) -> tuple[str, Signature] | None:
    """The key of the code and how to call it."""
    memories = cache.fetch(key, cache.TRACE)
    if not isinstance(memories, list):
        return None
    roots = {"entry": lambda _: function, "argument": lambda k: specs[k].value}  # type: ignore[union-attr]
    for memory in memories:
        if not isinstance(memory, Memory):
            return None
        origins = recalled(memory.rows, roots)
        if origins is None:
            continue
        try:
            signature, hidden = pickle.loads(memory.signature)
        except Exception:  # it refers to something that is no longer there
            continue
        captured = [Captured(origins[k], param, cell, name) for k, param, cell, name in hidden]
        watched = [(origins[k], row.watched) for k, row in enumerate(memory.rows) if row.watched]
        watches = [Watch(origin.get, origin.value, name) for origin, name in watched]
        return memory.code, replace(signature, captured=captured, watches=watches)
    return None


def remember(key: str, traced: Traced, code: str) -> None:
    """Keeps a trace for `recall`, if all that it had read can be recognised again."""
    signature, reads = traced.signature, traced.reads
    if reads.opaque or any(c.origin.number == UNRECORDED for c in signature.captured):
        return
    hidden = [(c.origin.number, c.param, c.cell, c.name) for c in signature.captured]
    try:
        data = pickle.dumps((replace(signature, captured=[], watches=[]), hidden), pickle.HIGHEST_PROTOCOL)
    except UNPICKLABLE:
        return
    new = Memory(tuple(reads.rows), code, data)
    found = cache.fetch(key, cache.TRACE)
    earlier = [m for m in found if isinstance(m, Memory) and m.rows != new.rows] if isinstance(found, list) else []
    cache.store(key, [new, *earlier[: KEPT - 1]], cache.TRACE)
