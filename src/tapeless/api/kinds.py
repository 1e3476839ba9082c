"""Which specialisation serves a call: keys of arguments, sizes that are equal, arrays of the surroundings.

Takes arguments and their specs; gives keys that are equal for calls that the same code serves. Relies on `entry` for specs.
"""

from __future__ import annotations

import types
from dataclasses import replace
from typing import Any

import numpy as np

from tapeless.frontend.entry import ArraySpec, Spec, StaticSpec
from tapeless.frontend.source.plain_objects import refused
from tapeless.frontend.state.context import Captured
from tapeless.runtime.calling import Caller
from tapeless.runtime.device_arrays import interface_of
from tapeless.runtime.native_entry import PLAIN

NUMBERS = frozenset({np.float64, np.float32, np.int64, np.int32, np.bool_})  # of NumPy, with a short way into a call


def fast_key(args: tuple[Any, ...]) -> Any:
    """What decides the specialisation but for sizes, from the arguments as they are; None when there are containers."""
    key: list[Any] = []
    for a in args:
        kind = type(a)
        if kind is float or kind is int or kind is bool:
            key.append(kind)
        elif kind is np.ndarray:
            key += (a.dtype, a.ndim, a.flags.num)
        elif kind in NUMBERS:
            key.append(kind)
        elif (given := interface_of(a)) is not None and given.get("strides") is None:  # on a GPU, in a row
            key += (kind, given["typestr"], len(given["shape"]))
        else:
            return None
    return tuple(key)


def in_a_row(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """All arguments, those by name in the order of their names; and their key."""
    names = (*sorted(kwargs),)
    given = (*args, *[kwargs[n] for n in names])
    key = fast_key(given)
    return given, None if key is None else (names, key)


def all_plain(args: tuple[Any, ...]) -> bool:
    return all(type(a) is not np.ndarray or (a.flags.num & PLAIN == PLAIN and a.dtype.isnative) for a in args)


def loose(spec: Spec) -> Any:
    """The part of a spec that every specialisation is keyed on."""
    match spec:
        case ArraySpec(labels=labels):
            return replace(spec, labels=tuple(x == 1 for x in labels))
        case StaticSpec(value=str() | bytes() | np.dtype() | types.MethodType() | types.BuiltinFunctionType() as value):
            return (type(value), value)
        case StaticSpec(value=value):  # what is equal to it may still have other attributes
            return ("object", id(value))
        case _:
            return spec


def holds(required: tuple[Any, ...], labels: list[tuple[int, ...]]) -> bool:
    """Whether the sizes that a version takes to be equal are equal in this call."""
    seen: dict[int, int] = {}
    for want, have in zip(required, labels, strict=True):
        for w, h in zip(want, have, strict=True):
            if w != 1 and seen.setdefault(w, h) != h:
                return False
    return True


def weakened(specs: list[Spec], earlier: tuple[Any, ...]) -> list[Spec]:
    """Sizes count as equal only when they were in the earlier version too."""
    pairs: dict[tuple[int, int], int] = {}
    new: list[Spec] = []
    for spec, old in zip(specs, earlier, strict=True):
        if isinstance(spec, ArraySpec):
            labels = tuple(
                1 if x == 1 else pairs.setdefault((x, y), 2 + len(pairs)) for x, y in zip(spec.labels, old, strict=True)
            )
            new.append(replace(spec, labels=labels))
        else:
            new.append(spec)
    return new


def resized(caller: Caller) -> bool:
    """Whether an array of the surroundings has another size than the one that this is for."""
    return any(isinstance(now := _now(c), np.ndarray) and not _has_size(now, c) for c in caller.captured)


def _now(captured: Captured) -> object:
    try:
        return captured.get()
    except Exception:  # whatever a foreign object does when it is read
        return None


def _has_size(array: np.ndarray[Any, Any], captured: Captured) -> bool:
    shape = captured.param.type.shape
    return array.ndim == len(shape) and all(
        d == n if isinstance(d, int) else n != 1 for d, n in zip(shape, array.shape, strict=True)
    )


def captures_fit(caller: Caller) -> bool:
    """Whether the arrays of the surroundings still have the types they were compiled for."""
    for c in caller.captured:
        now = _now(c)
        if not isinstance(now, np.ndarray) or refused(now) or now.dtype != c.param.type.dtype.numpy:
            return False
        if not _has_size(now, c):
            return False
        if bool(c.cell.readonly) == now.flags.writeable or c.cell.scattered == now.flags.c_contiguous:
            return False
    return True
