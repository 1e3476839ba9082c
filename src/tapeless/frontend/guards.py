"""Whether what a trace has read from outside is still what it was.

`guard` takes the watches of a trace and gives a function without arguments that says so; it runs at each call. Relies
on the steps of `frontend.source.origins`.

Note [Guards]
A guard is Python text. Names of a module are read by a function whose globals are that module: the interpreter keeps
the place of a global in the bytecode, so such a read takes a third of the time of one through the dict, and a builtin
is found as Python finds it, unless a global hides it. Functions are asked for their code. What lies in containers is
compared one by one, but not where a tuple is the very same.
"""

from __future__ import annotations

import keyword
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.frontend.source.marks import Keys
from tapeless.frontend.source.origins import Origin
from tapeless.frontend.state.context import Watch

Guard = Callable[[], bool]
HELD: dict[str, str] = {"cell": "cell_contents", "code": "__code__", "defaults": "__defaults__"}
INSIDE = ("item", "length", "type", "field", "number")  # steps into what may have been replaced since


def same(now: Any, seen: Any) -> bool:
    """Whether a trace would see the same: 0.0 is not -0.0, 1 is not True. Objects must be the very same."""
    if now is seen:
        return True
    kind = type(seen)
    if type(now) is not kind:
        return False
    if kind is float or kind is complex:  # NaN is NaN
        return repr(now) == repr(seen)
    if kind is str or kind is int:
        return bool(now == seen)
    if isinstance(seen, np.generic):
        return bool(now.dtype == seen.dtype and now.tobytes() == seen.tobytes())
    if kind is tuple or kind is Keys:
        return len(now) == len(seen) and all(map(same, now, seen))
    if kind is types.MethodType:  # made anew each time
        return now.__self__ is seen.__self__ and now.__func__ is seen.__func__
    if kind is types.BuiltinMethodType:  # of a ufunc, likewise
        return now.__self__ is seen.__self__ and now.__name__ == seen.__name__
    return False


def holds(watches: Sequence[Watch]) -> bool:
    """The same as a guard, one by one."""
    try:
        return all(same(w.get(), w.seen) for w in watches)
    except Exception:  # whatever a foreign object does when it is read: it is not what it was
        return False


def guard(watches: Sequence[Watch]) -> Guard:
    tables: dict[int, _Tests] = {}
    rest: list[Watch] = []
    tuples: dict[Any, list[Watch]] = {}

    def table(names: dict[str, Any]) -> _Tests:
        return tables.setdefault(id(names), _Tests(names))

    for w in watches:
        origin = w.origin
        whole = _tuple_of(origin)
        if whole is not None:
            tuples.setdefault(whole.path, []).append(w)
        elif origin.kind == "default" and _is_immutable(w.seen):
            continue  # goes with the tuple of all defaults
        elif not _add(table, origin):
            rest.append(w)
    for inside in tuples.values():
        whole = _tuple_of(inside[0].origin)
        assert whole is not None
        if not _add(table, whole, inside):
            rest += inside
    first, *others = tables.values() or [_Tests({})]
    first.texts += [f"{first.value(t.function())}()" for t in others]
    if rest:
        first.texts.append(f"_tapeless_1({first.value(rest)})")
    return first.function()


class _Tests:
    """Tests that are made where the names of one module are globals."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names, self.texts = names, list[str]()
        self.values: list[Any] = [same, holds]

    def value(self, value: Any) -> str:
        self.values.append(value)
        return f"_tapeless_{len(self.values) - 1}"

    def add(self, read: str, seen: Any, inside: Sequence[Watch] | None) -> None:
        text = f"{read} is {self.value(seen)}"
        if inside is not None:
            text = f"({text} or _tapeless_1({self.value(inside)}))"
        elif isinstance(seen, (int, float, complex, str, np.generic)):
            text = f"({text} or _tapeless_0({read}, {self.value(seen)}))"
        self.texts.append(text)

    def function(self) -> Guard:
        given = ", ".join(f"_tapeless_{k}=None" for k in range(len(self.values)))
        text = f"def guard({given}):\n try:\n  return {' and '.join(self.texts) or 'True'}\n except Exception:\n  return False"
        made: dict[str, Any] = {}
        exec(compile(text, "<tapeless guard>", "exec"), made)
        return types.FunctionType(made["guard"].__code__, self.names, "guard", tuple(self.values))


def _add(table: Callable[[dict[str, Any]], _Tests], origin: Origin, inside: Sequence[Watch] | None = None) -> bool:
    """Adds the test of one value; False for those that have no text."""
    parent = origin.parent
    if parent is None:
        return False
    holder, key = parent.value, origin.key
    if origin.kind == "global" and _is_name(key):
        table(holder.__globals__).add(key, origin.value, inside)
    elif origin.kind == "attribute" and isinstance(holder, types.ModuleType) and _is_name(key) and key in vars(holder):
        table(vars(holder)).add(key, origin.value, inside)
    elif origin.kind in HELD:
        tests = table(_globals_of(holder))
        if origin.kind == "cell":
            holder = holder.__closure__[holder.__code__.co_freevars.index(key)]
        tests.add(f"{tests.value(holder)}.{HELD[origin.kind]}", origin.value, inside)
    else:
        return False
    return True


def _globals_of(function: Any) -> dict[str, Any]:
    names: dict[str, Any] = function.__globals__
    return names


def _is_name(key: Any) -> bool:
    return (
        isinstance(key, str) and key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("_tapeless_")
    )


def _tuple_of(origin: Origin) -> Origin | None:
    """The outermost tuple that a value lies in, through nothing but tuples: it has not changed if that is the very
    same.
    """
    found = None
    while origin.kind in INSIDE and origin.parent is not None and isinstance(origin.parent.value, tuple):
        found = origin = origin.parent
    return found


def _is_immutable(value: Any) -> bool:
    return isinstance(value, (int, float, complex, str, np.generic, types.BuiltinFunctionType, type, types.NoneType))
