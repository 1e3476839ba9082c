"""What the plain form of a reversible function calls: copies, and the tests that it could be run backwards.

These run in Python; compiled code has handlers for them by their marks (`transforms/reversible_checks.py`). A test that
fails says where, and shows both values.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tapeless.errors import InvertibilityError
from tapeless.reversible.dialect.words import rot

F = TypeVar("F", bound=Callable[..., Any])

BRANCH = "behind the branch its second condition is {0}, in front of it the first one was {1}"
ENTRY = "in front of the loop its second condition holds already: it is {0}"
AGAIN = "behind an iteration the second condition of the loop does not hold: it is {0}"
DIRTY = "the ancilla '{name}' is {{0}} at the end of its block, and was {{1}}"
FACTOR = "a number that is multiplied or divided by {0} does not come back"
EMPTY = "nothing is on the stack: it holds {0} values"
OCCUPIED = "what is taken from a stack would overwrite {0}, and must find 0"
ABSOLUTE = " (absolute values)"
NO_SCALING = "'{name}' is {kind}: a product of integers does not come back, use a float"
NO_ADDING = "'{name}' is {kind}: a sum of truth values does not come back, use ^="
SHARED = "'{one}' and '{other}' are the same cell: its index is {{0}}"


def tolerance_for(tolerance: float, bytes: int) -> float:
    """Numbers of single precision have half of the digits."""
    return tolerance if bytes >= 8 else float(np.sqrt(tolerance))


def _marked(name: str) -> Callable[[F], F]:
    def mark(function: F) -> F:
        function.__tapeless__ = f"reversible.{name}"  # type: ignore[attr-defined]
        return function

    return mark


def _fail(message: str, *values: Any) -> None:
    frame = sys._getframe(2)
    text = message.format(*values)
    raise InvertibilityError(text, file=frame.f_code.co_filename, line=frame.f_lineno)


@_marked("fresh")
def fresh(value: Any) -> Any:
    """A value of its own."""
    is_array = isinstance(value, np.ndarray) or hasattr(type(value), "__tapeless_tangent__")
    return value.copy() if is_array else value


@_marked("branch")
def branch(after: Any, before: Any) -> None:
    if bool(after) != bool(before):
        _fail(BRANCH, bool(after), bool(before))


@_marked("entry")
def entry(after: Any) -> None:
    if after:
        _fail(ENTRY, True)


@_marked("again")
def again(after: Any) -> None:
    if not after:
        _fail(AGAIN, False)


@_marked("clean")
def clean(name: str, now: Any, first: Any, tolerance: float) -> None:
    """An ancilla is what it was. NaN is nothing that comes back."""
    now_, first_ = np.asarray(now), np.asarray(first)
    if now_.dtype.kind in "fc":
        bad = ~(
            np.abs(now_ - first_) <= tolerance_for(tolerance, now_.dtype.itemsize) * np.maximum(np.abs(first_), 1.0)
        )
    else:
        bad = now_ != first_
    if np.any(bad):
        where = np.unravel_index(int(np.argmax(bad)), bad.shape) if bad.shape else ()
        _fail(DIRTY.format(name=name), now_[where], np.broadcast_to(first_, now_.shape)[where])


@_marked("undoable")
def undoable(name: str, target: Any, value: Any, scales: bool) -> None:
    """What is added to, or multiplied: products of whole numbers and sums of truth values lose something."""
    if not all(isinstance(x, (bool, int, np.ndarray, np.generic)) for x in (target, value)):
        return
    kinds = {np.asarray(x).dtype.kind for x in (target, value)}
    if (scales and kinds <= set("biu")) or (kinds == {"b"} and not isinstance(target, bool)):
        text = (NO_SCALING if scales else NO_ADDING).format(name=name, kind=np.asarray(target).dtype.name)
        frame = sys._getframe(1)
        raise InvertibilityError(text, code="TP401", file=frame.f_code.co_filename, line=frame.f_lineno)


@_marked("factor")
def factor(value: Any) -> None:
    """What something is multiplied or divided by."""
    found = np.asarray(value)
    bad = (found == 0) | ~np.isfinite(found)
    if np.any(bad):
        _fail(FACTOR, found[bad][0] if found.shape else found[()])


@_marked("apart")
def apart(one: str, other: str, size: Any, here: Any, there: Any, or_same: bool) -> None:
    """Two subscripts of one array, which must not meet. Tuples of integers and, for slices, tuples. `or_same`: a cell or a
    row may meet itself.
    """
    cells = or_same and len(here) == len(there) and all(map(_is_index, (*here, *there)))
    if not cells and _meet(size, here, there):
        _fail(SHARED.format(one=one, other=other), there)


def _meet(shape: tuple[int, ...], here: tuple[Any, ...], there: tuple[Any, ...]) -> bool:
    return all(set(_cells(n, a)) & set(_cells(n, b)) for n, a, b in zip(shape, here, there, strict=False))


def _is_index(index: Any) -> bool:
    return not isinstance(index, tuple) and np.ndim(index) == 0


def _cells(n: int, index: Any) -> range | list[int]:
    if isinstance(index, tuple):
        return range(n)[slice(*index)]
    return [int(k) % n for k in np.atleast_1d(index)]


@_marked("distinct")
def distinct(names: tuple[str, ...], constants: tuple[str, ...], *values: Any) -> None:
    """Arrays of the state share no memory with others."""
    arrays = [(n, a) for n, v in zip((*names, *constants), values, strict=True) for a in _arrays(v)]
    for k, (name, array) in enumerate(arrays):
        for other, before in arrays[:k]:
            if not {name, other} <= set(constants) and np.shares_memory(array, before):
                raise InvertibilityError(f"'{other}' and '{name}' share memory", code="TP402")


def _arrays(value: Any) -> list[Any]:
    """Those of a value, which may hold several."""
    if isinstance(value, np.ndarray):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [a for field in dataclasses.fields(value) for a in _arrays(getattr(value, field.name))]
    if isinstance(value, (tuple, list)):
        return [a for item in value for a in _arrays(item)]
    return []


@dataclasses.dataclass
class Stack:
    """Room for values that are put away, and how many of them there are."""

    data: np.ndarray[Any, Any]
    top: int


def stack(capacity: int, dtype: Any = float) -> Stack:
    """An empty stack for `tp.push` and `tp.pop`."""
    return Stack(np.zeros(capacity, dtype), 0)


@_marked("filled")
def filled(top: int) -> None:
    """A stack from which something is taken. It is tested always, as cells are: below it lies other memory."""
    if top < 1:
        _fail(EMPTY, top)


@_marked("vacant")
def vacant(value: Any) -> None:
    """What the value on top of a stack is to take the place of."""
    if np.any(np.asarray(value) != 0):
        _fail(OCCUPIED, value)


@_marked("nothing")
def nothing(value: Any) -> Any:
    """What is left where a value was taken away."""
    return np.zeros_like(value) if isinstance(value, np.ndarray) else type(value)(0)


@_marked("put")
def put(whole: Any, name: str, value: Any) -> Any:
    """A dataclass with another value in one of its fields."""
    return dataclasses.replace(whole, **{name: value})


@_marked("tested")
def tested(function: Any) -> Any:
    """A reversible function with its tests, in one that has its own."""
    return function.checked if function.check else function.unchecked


@_marked("undone")
def undone(items: Any, *names: str) -> Any:
    """What a loop that undoes another runs over; the names of what it undoes, for reports."""
    return items


def prange(count: int) -> range:
    return range(count)


prange.__tapeless__ = "prange"  # type: ignore[attr-defined]


def zeros(value: Any) -> Any:
    """Only in compiled code, as those below."""
    raise NotImplementedError


def pull(function: Any, targets: Any, adjoints: Any, *operands: Any) -> Any:
    raise NotImplementedError


def back(function: Any, state: Any, adjoints: Any, **keywords: Any) -> Any:
    raise NotImplementedError


def seen(trail: Any, places: Any) -> Any:
    raise NotImplementedError


def left(trail: Any, slots: Any, before: Any, places: Any) -> Any:
    raise NotImplementedError


def found(trail: Any, slots: Any, after: Any, places: Any) -> Any:
    raise NotImplementedError


def back_to(trail: Any) -> Any:
    raise NotImplementedError


def joined(trail: Any, of_block: Any) -> Any:
    raise NotImplementedError


def rows(count: int, slots: int) -> Any:
    raise NotImplementedError


def row_of(rows: Any, index: int) -> Any:
    raise NotImplementedError


def keep_row(rows: Any, index: int, trail: Any) -> None:
    raise NotImplementedError


for _function in (zeros, pull, back, seen, left, found, back_to, joined, rows, row_of, keep_row):
    _marked(_function.__name__)(_function)

__all__ = ["again", "apart", "branch", "clean", "distinct", "entry", "factor", "fresh", "rot"]
