"""What is called like a function without being one: transforms, methods, partial functions, objects.

Gives `Transform`, what compiled code calls instead of a function; `as_function`, a function in place of another
callable; `Bound`, the method that a compiled function of a class body is. Relies on the front end for reading them.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from tapeless.frontend.source.marks import Keys, peek
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import OPERATORS, call_value
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Value


class Transform:
    """A transform of a function with its options. Called in compiled code, it is the derived function."""

    def __init__(self, name: str, function: Any, options: dict[str, Any], direct: bool = False) -> None:
        self.name, self.function, self.options, self.direct = name, function, options, direct

    def __tapeless_handler__(self) -> Callable[[Context, list[Value], dict[str, Value]], Value]:
        def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
            reads = ctx.reads
            own = reads.origin_of(self)
            function = from_python(ctx, reads.step(own, "own attribute", "function"), f"tp.{self.name} of")
            given = reads.step(own, "own attribute", "options")
            options = {k: from_python(ctx, reads.step(given, "own item", k), k) for k in self.options}
            if self.direct:
                return OPERATORS[self.name](ctx, [function, *args], {**options, **keywords})
            return call_value(ctx, OPERATORS[self.name](ctx, [function], options), args, keywords)

        return handler

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return (self.name, self.direct, Keys(self.options))


def is_callable_object(called: Any) -> bool:
    """Whether it can be compiled without being a function: what the package makes, methods, partial functions, what
    `functools.lru_cache` makes, objects with a `__call__`.
    """
    if isinstance(called, (types.FunctionType, type, types.BuiltinFunctionType)) or not callable(called):
        return False
    if peek(called, "__tapeless__") or hasattr(type(called), "__tapeless_handler__"):
        return True
    if isinstance(called, (types.MethodType, functools.partial, functools._lru_cache_wrapper)):
        return True
    own = inspect.getattr_static(type(called), "__call__")
    return isinstance(own, types.FunctionType) or isinstance(peek(own, "python"), types.FunctionType)


def as_function(called: Any) -> Callable[..., Any]:
    """A function that calls it; compiled code calls the object itself."""

    def run(*args: Any, **keywords: Any) -> Any:
        return called(*args, **keywords)

    named = called
    while isinstance(named, functools.partial):
        named = named.func
    run.__name__ = run.__qualname__ = getattr(named, "__name__", type(named).__name__)
    functools.update_wrapper(run, called, updated=())
    run.__tapeless_transform__ = Transform("call", called, {})  # type: ignore[attr-defined]
    return run


class Bound:  # A compiled function of a class body, bound to an object, as a method is: that is its first argument.
    __tapeless__ = "bound"
    __slots__ = ("__func__", "__self__", "__weakref__")
    __doc__ = property(lambda self: self.__func__.__doc__)

    def __init__(self, function: Any, receiver: Any) -> None:
        self.__func__, self.__self__ = function, receiver

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.__func__(self.__self__, *args, **keywords)

    def __getattr__(self, name: str) -> Any:
        """Names and texts are those of the function."""
        return getattr(self.__func__, name)

    @property
    def python(self) -> Callable[..., Any]:
        """The method as plain Python."""
        return types.MethodType(self.__func__.python, self.__self__)

    def ir(self, *args: Any, **keywords: Any) -> str:
        """The program as text: see `tp.function`."""
        found: str = self.__func__.ir(self.__self__, *args, **keywords)
        return found

    def explain(self, *args: Any, **keywords: Any) -> Any:
        """Prints a report about the code for these arguments, and returns it."""
        return self.__func__.explain(self.__self__, *args, **keywords)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(types.MethodType(self.__func__, self.__self__))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self.__self__ is other.__self__ and self.__func__ is other.__func__

    def __hash__(self) -> int:
        return hash((id(self.__self__), id(self.__func__)))

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self.__func__.__name__)


# -- pickling


def by_name(thing: Any) -> Any:
    """What its module has under the name of a function or of what was made of it; None without such a thing."""
    found: Any = sys.modules.get(peek(thing, "__module__") or "")
    for part in (peek(thing, "__qualname__") or "?").split("."):
        found = peek(found, part)
    return found


HELD = (("python",), ("transform", "function"), ("function",))  # where what a decorator has made keeps the function


def pickled_function(function: Any) -> tuple[Any, tuple[str, ...]]:
    """A function in a form that pickle finds: one that a decorator has replaced under its name, through that."""
    found = by_name(function)
    for path in HELD:
        if found is not function and functools.reduce(peek, path, found) is function:
            return found, path
    return function, ()


def unpickled_function(holder: Any, path: tuple[str, ...]) -> Any:
    return functools.reduce(getattr, path, holder)
