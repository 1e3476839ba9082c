"""Comparing what two stages of the compiler made of one program.

`agree` takes two results (numbers, arrays, containers) and says whether they are the same; `difference` says where they
are not, in words. Floats agree up to rounding, since stages sum in different orders and contract; all else is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapeless.errors import ShapeError

TOLERANCE: dict[str, float] = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4}


@dataclass(frozen=True)
class Returned:
    """A call that came back: its result, and the arguments as they were afterwards."""

    result: Any
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Raised:
    """A call that raised. Arguments are left in a state that nobody may rely on."""

    error: BaseException


Outcome = Returned | Raised


def agree(a: Any, b: Any, *, kinds: bool = True) -> bool:
    """Whether two results are the same; with `kinds=False` a Python number may stand for a NumPy one of its type."""
    return not difference(a, b, kinds=kinds)


def difference(a: Any, b: Any, *, kinds: bool = True, empty: bool = True, path: str = "result") -> str:
    """Where two results differ; nothing when they agree."""
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return _containers(a, b, kinds, empty, path)
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return f"{path}: keys {list(a)} and {list(b)}"
        return _first(difference(a[k], b[k], kinds=kinds, empty=empty, path=f"{path}[{k!r}]") for k in a)
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return "" if type(a) is type(b) and a == b else f"{path}: {a!r} and {b!r}"
    if not empty and not np.size(a) and not np.size(b):
        return ""
    return _numbers(a, b, kinds, path)


def _containers(a: Any, b: Any, kinds: bool, empty: bool, path: str) -> str:
    if type(a) is not type(b):
        return f"{path}: {type(a).__name__} and {type(b).__name__}"
    if len(a) != len(b):
        return f"{path}: {len(a)} and {len(b)} elements"
    pairs = enumerate(zip(a, b, strict=True))
    return _first(difference(x, y, kinds=kinds, empty=empty, path=f"{path}[{k}]") for k, (x, y) in pairs)


def _first(found: Any) -> str:
    return next((text for text in found if text), "")


def kind_of(value: Any) -> str:
    """What a number is for Python. The two bools count as one: comparisons of NumPy numbers give NumPy's."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    return type(value).__name__


def _numbers(a: Any, b: Any, kinds: bool, path: str) -> str:
    x, y = np.asarray(a), np.asarray(b)
    if kinds and kind_of(a) != kind_of(b):
        return f"{path}: {kind_of(a)} and {kind_of(b)}"
    if x.dtype != y.dtype:
        return f"{path}: {x.dtype} and {y.dtype}"
    if x.shape != y.shape:
        return f"{path}: shapes {x.shape} and {y.shape}"
    wrong = ~close(x, y)
    if not wrong.any():
        return ""
    where = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{path}{list(where) if where else ''}: {x[where]!r} and {y[where]!r}"


def close(x: Any, y: Any) -> Any:
    """Element by element: equal, both NaN, or within the tolerance of the type."""
    tolerance = TOLERANCE.get(x.dtype.name)
    if tolerance is None:
        return np.asarray(x == y)
    with np.errstate(all="ignore"):
        if np.iscomplexobj(x):
            return close(x.real, y.real) & close(x.imag, y.imag)
        scale = np.maximum(1.0, np.minimum(np.abs(x), np.abs(y)))
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        return np.asarray(same | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance * scale)))


def compare(a: Outcome, b: Outcome, *, kinds: bool = True, any_error: bool = False, empty: bool = True) -> str:
    """Where two calls differ. Errors must be of one class; with `any_error`, that both raised is enough.

    Without `empty`, two empty arrays agree: in plain Python, what was mapped over nothing has no type.
    """
    match a, b:
        case Returned(), Returned():
            found = difference(a.result, b.result, kinds=kinds, empty=empty)
            return found or _arguments(a.arguments, b.arguments)
        case Raised(), Raised():
            return "" if any_error or same_error(a.error, b.error) else f"raised {a.error!r} and {b.error!r}"
        case Raised(), _:
            return f"the first raised {a.error!r}, the second returned"
        case _, Raised():
            return f"the first returned, the second raised {b.error!r}"
    raise AssertionError("an outcome is Returned or Raised")


def _arguments(a: Sequence[Any], b: Sequence[Any]) -> str:
    return _first(difference(x, y, path=f"argument {k}") for k, (x, y) in enumerate(zip(a, b, strict=True)))


def refused(a: Outcome, b: Outcome) -> bool:
    """Whether the second call was refused for the sizes of its arrays, which the first could work with."""
    return isinstance(a, Returned) and isinstance(b, Raised) and isinstance(b.error, ShapeError)


def same_error(a: BaseException, b: BaseException) -> bool:
    """Of one class, or one a refinement of the other: our ShapeError is a ValueError."""
    return isinstance(a, type(b)) or isinstance(b, type(a))
