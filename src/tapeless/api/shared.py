"""What was compiled for a function serves again, however often it is wrapped: `tp.grad(f)(x)` written in a loop.

`shared` takes the function that was written, what is asked of it, and how to make that; gives an object that has all
its compiled code in common with others for which the same was asked. Relies on nothing but the function's own
`__dict__`.

Note [Where compiled code is kept]
Compiled code refers to its function, to read its surroundings again; a table outside, even with weak keys, would keep
both for ever. So the table is in the function's `__dict__` and goes with it. `functools.wraps` copies that to other
functions, so a table knows whose it is; copied in any other way it is empty. What is made of a `tp.function` or of a
derivative is in a table that its copies share, so that `tp.grad(tp.grad(f))` is found too; it is in a slot, as all that
belongs to such an object, because `functools.wraps` takes what is in its `__dict__` as well. A method is made anew each
time that it is asked for, so what was made of it is in the `__dict__` of its object. Callables without a place of their
own share nothing.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Self, TypeVar

from tapeless.api.callables import Bound
from tapeless.api.operators import Vmapped
from tapeless.frontend.state.handlers import BY_ID

MOST = 64  # things that were asked of one function: `memory=` may be any number
NAME = "__tapeless_shared__"


class Table:
    """Objects by what was asked for. Users get copies of them. Note [Where compiled code is kept]"""

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner
        self.made: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[type[Table], tuple[()]]:
        return Table, ()


class Shareable:
    """Has a table of what was made of it, in common with its copies."""

    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table = Table()

    def copy(self) -> Self:
        """Another object with the same compiled code, also of calls to come."""
        new = object.__new__(type(self))
        new._table = self._table
        return new


T = TypeVar("T", bound=Shareable)
_of_libraries: dict[int, Table] = {}  # tables of functions that never go, by id


def shared(function: Any, asked: tuple[Any, ...], make: Callable[[], T]) -> T:
    found = _place(function)
    if found is None:
        return make()
    table, before = found
    key = (*before, *asked)
    try:
        known: T | None = table.made.get(key)
    except TypeError:  # an option without a hash
        return make()
    if known is None:
        known = table.made.setdefault(key, make())
        for oldest in list(table.made)[:-MOST]:
            table.made.pop(oldest, None)
    return known.copy()


def _place(function: Any) -> tuple[Table, tuple[Any, ...]] | None:
    """The table for a function, and the first part of keys in it."""
    if isinstance(function, Vmapped):
        found = _place(function.f)
        return None if found is None else (found[0], (*found[1], "vmap", function.in_axes, function.out_axes))
    if id(function) in BY_ID:
        return _of_libraries.setdefault(id(function), Table()), ()
    if isinstance(function, Shareable):
        return function._table, ()
    if isinstance(function, (types.MethodType, Bound)):  # made anew each time: what was made of it is with its object
        table = own_table(function.__self__)
        return None if table is None else (table, ("method", function.__func__))
    table = own_table(function)
    return None if table is None else (table, ())


def own_table(holder: Any) -> Table | None:
    """The table in the `__dict__` of an object; None where it has none of its own."""
    own = holder.__dict__ if type(holder).__dictoffset__ else None  # else it might be that of another object
    if not isinstance(own, dict):
        return None
    table: Table | None = own.get(NAME)
    if table is None or table.owner is not holder:
        table = own[NAME] = Table(holder)
    return table
