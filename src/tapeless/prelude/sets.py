"""What two arrays have in common and what not: their elements in order, each once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import stands_for


@stands_for("np.union1d")
def union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(np.concatenate((ar1, ar2), axis=None))


@stands_for("np.intersect1d")
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    x, y = np.ravel(ar1), np.ravel(ar2)
    if not return_indices:
        joined = np.sort(np.concatenate((_once(x, assume_unique), _once(y, assume_unique))))
        return joined[:-1][joined[1:] == joined[:-1]]
    at_x, at_y = _firsts(x, assume_unique), _firsts(y, assume_unique)
    joined = np.concatenate((x[at_x], y[at_y]))
    order = np.argsort(joined)
    found = joined[order]
    twice = np.flatnonzero(found[1:] == found[:-1])
    return found[twice], at_x[order[twice]], at_y[order[twice + 1] - at_x.shape[0]]


@stands_for("np.setxor1d")
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    x, y = np.ravel(ar1), np.ravel(ar2)
    joined = np.sort(np.concatenate((_once(x, assume_unique), _once(y, assume_unique))))
    alone = np.ones(joined.shape[0] + 1, dtype=bool)
    alone[1:-1] = joined[1:] != joined[:-1]
    return joined[alone[1:] & alone[:-1]]


@stands_for("np.setdiff1d")
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    x = _once(np.ravel(ar1), assume_unique)
    return x[~np.isin(x, np.ravel(ar2))]


def _once(x: Any, assume_unique: Any) -> Any:
    return x if assume_unique else np.unique(x)


def _firsts(x: Any, assume_unique: Any) -> Any:
    return np.arange(x.shape[0]) if assume_unique else np.unique(x, return_index=True)[1]
