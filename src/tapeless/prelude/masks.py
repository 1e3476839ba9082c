"""Arrays whose size depends on the data: what a mask chooses, and what is different."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.flatnonzero")
def flatnonzero(a: Any) -> Any:
    """The places of what is not 0, counted first: the array has their number."""
    chosen = np.ravel(a) != 0
    found = np.empty(np.count_nonzero(chosen), dtype=np.int64)
    k = 0
    for i in range(chosen.shape[0]):
        if chosen[i]:
            found[k] = i
            k += 1
    return found


@stands_for("np.nonzero")
def nonzero(a: Any) -> Any:
    a = np.asarray(a)
    if a.ndim == 0:
        refuse("np.nonzero takes an array here", "use np.atleast_1d.")
    at = flatnonzero(a)
    found: tuple[Any, ...] = ()
    for size in a.shape[:0:-1]:
        found = (at % size, *found)
        at = at // size
    return (at, *found)


@stands_for("np.argwhere")
def argwhere(a: Any) -> Any:
    return np.stack(nonzero(a), axis=-1)


@stands_for("np.compress")
def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    chosen = np.asarray(condition)
    a = np.asarray(a)
    if axis is None:
        return np.take(a.ravel(), flatnonzero(chosen))
    return np.take(a, flatnonzero(chosen), axis=axis)


@stands_for("np.extract")
def extract(condition: Any, arr: Any) -> Any:
    return np.take(np.ravel(arr), flatnonzero(condition))


@stands_for("np.place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """The values in order, again from the first when they are used up."""
    given = np.ravel(vals)
    at = flatnonzero(mask)
    arr[np.unravel_index(at, arr.shape)] = given[np.arange(at.shape[0]) % given.shape[0]]


@stands_for("np.unique")
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None
) -> Any:
    if axis is not None:
        refuse("np.unique: axis cannot be compiled", "leave it out if its default is meant.")
    a = np.asarray(ar)
    flat = a.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    first = np.ones(flat.shape[0], dtype=bool)
    if np.issubdtype(flat.dtype, np.floating):  # NaN are one, at the end
        both = np.isnan(ordered[1:]) & np.isnan(ordered[:-1])
        first[1:] = (ordered[1:] != ordered[:-1]) & ~both
    else:
        first[1:] = ordered[1:] != ordered[:-1]
    at = flatnonzero(first)
    found: tuple[Any, ...] = (ordered[at],)
    if return_index:
        found = (*found, order[at])
    if return_inverse:
        places = np.zeros(flat.shape[0], dtype=np.int64)
        places[order] = np.cumsum(first) - 1
        found = (*found, places.reshape(a.shape))
    if return_counts:
        ends = np.concatenate([at[1:], np.full(1, flat.shape[0])])[: at.shape[0]]
        found = (*found, ends - at)
    return found if len(found) > 1 else found[0]
