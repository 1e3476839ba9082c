"""The functions that compiled code may call, and the ways to call a value: tables that the modules of the rules fill.

`register` takes a handler of a function by its dotted name ("np.sum", "math.sin", "len"), `operator` that of an
operator of the package, `bound_to` one for methods of objects of a type, `called` the rule for a kind of value.
`find_handler` and `call_value` look them up.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator as python_operators
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.frontend.source.marks import peek
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Builtin, Value
from tapeless.ir.rules import Rules

Handler = Callable[[Context, list[Value], dict[str, Value]], Value]


MODULES: dict[str, Any] = {"np": np, "math": math, "cmath": cmath, "operator": python_operators}


BY_NAME: dict[str, Handler] = {}


BY_ID: dict[int, tuple[object, Handler]] = {}  # the object is kept, so that its id stays its own


BY_METHOD: dict[tuple[int, str], tuple[object, Handler]] = {}  # methods are made anew each time: by their object


# What to do once somebody has imported a module: SciPy takes longer to import than all the rest.
_waiting: dict[str, list[Callable[[], None]]] = {}


def when_imported(module: str, act: Callable[[], None]) -> None:
    _waiting.setdefault(module, []).append(act)


def register(name: str, handler: Handler) -> None:
    if name.startswith("special."):
        name = f"scipy.{name}"
    BY_NAME[name] = handler
    if name.startswith("scipy."):
        library = ".".join(name.split(".")[:2])
        when_imported(library, lambda: _enter(name, handler))
    else:
        _enter(name, handler)


def _enter(name: str, handler: Handler) -> None:
    target = resolve(name)
    if isinstance(target, types.MethodType):
        owner = target.__self__
        BY_METHOD[id(owner), target.__name__] = (owner, handler)
    elif target is not None:
        BY_ID[id(target)] = (target, handler)
    else:
        del BY_NAME[name]


def handler_of(obj: object) -> Handler | None:
    """What is registered for a function."""
    while ready := [m for m in _waiting if m in sys.modules]:  # what is done may wait for the same module
        for module in ready:
            for act in _waiting.pop(module):
                act()
    if isinstance(obj, types.MethodType):
        found = BY_METHOD.get((id(obj.__self__), obj.__name__))
    else:
        found = BY_ID.get(id(obj))
    return found[1] if found is not None else None


def resolve(name: str) -> object | None:
    """The object of a dotted name; a name without a module is a built-in."""
    module, *path = name.split(".")
    if module == "scipy":
        found: Any = sys.modules[f"scipy.{path[0]}"]
        path = path[1:]
    else:
        found = MODULES[module] if path else builtins
        path = path or [module]
    for part in path:
        found = getattr(found, part, None)
    return found  # type: ignore[no-any-return]


# -- what is found by its object

OPERATORS: Rules[str, Handler] = Rules()  # by the mark `__tapeless__` of the function
operator = OPERATORS.of
BOUND: Rules[type, Callable[[Any, str], Handler | None]] = (
    Rules()
)  # finds methods of objects, by the type of the object
bound_to = BOUND.of  # it takes the object and the name


OF_CLASS: Rules[type, Callable[[Any], Handler]] = Rules()  # for objects of a class of ours
handles = OF_CLASS.of


def find_handler(obj: Any) -> Handler | None:
    found = handler_of(obj)
    if found is not None:
        return found
    make = OF_CLASS.get(type(obj))
    if make is not None:
        return make(obj)
    made = peek(obj, "__tapeless_handler__")
    if made is not None and not isinstance(obj, type):
        own: Handler = made()
        return own
    mark = peek(obj, "__tapeless__")
    if isinstance(mark, str):
        return OPERATORS.get(mark)
    if isinstance(obj, (types.BuiltinMethodType, types.MethodType)):
        for kind, find in BOUND.items():
            if isinstance(obj.__self__, kind):
                return find(obj.__self__, obj.__name__)
    return None


def call_numpy(ctx: Context, name: str, args: list[Value]) -> Value:
    return BY_NAME[f"np.{name}"](ctx, args, {})


# -- calls of a value

Call = Callable[[Context, Any, list[Value], dict[str, Value]], Value]
CALLED: Rules[type, Call] = Rules()  # by the class of the value
called = CALLED.of


def call_value(
    ctx: Context, function: Value, args: Sequence[Value], keywords: Mapping[str, Value] | None = None
) -> Value:
    rule = CALLED.get(type(function))
    if rule is None:
        ctx.fail("TP104", f"{type_text(function)} cannot be called")
    return rule(ctx, function, list(args), dict(keywords or {}))


@called(Builtin)
def _call_builtin(ctx: Context, function: Builtin, args: list[Value], keywords: dict[str, Value]) -> Value:
    return function.handler(ctx, args, keywords)
