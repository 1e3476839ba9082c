"""Counting: np.histogram, np.digitize, np.bincount, np.isin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.histogram_bin_edges")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _edges(_sample(a, weights), bins, range)


@stands_for("np.histogram")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    sample = _sample(a, weights)
    edges = _edges(sample, bins, range)
    factors = np.ones(1, dtype=np.int64) if weights is None else np.ravel(weights)
    if np.ndim(bins) == 0:
        counts = _counted(sample, edges, factors, weights is not None)
    else:
        counts = _searched(sample, edges, factors, weights is not None)
    if density is not None and density:
        widths = (edges[1:] - edges[:-1]).astype(float)
        return counts / widths / np.sum(counts), edges
    return counts, edges


def _sample(a: Any, weights: Any) -> Any:
    if weights is not None:
        if np.ndim(weights) != np.ndim(a):
            raise ValueError("weights should have the same shape as a.")
        for k in tuple(range(np.ndim(a))):
            if np.shape(weights)[k] != np.shape(a)[k]:
                raise ValueError("weights should have the same shape as a.")
    sample = np.ravel(a)
    if sample.dtype.kind == "c":
        refuse("histograms take real numbers", "use np.abs first.")
    return sample.astype(np.int64) if sample.dtype.kind == "b" else sample


def _edges(a: Any, bins: Any, limits: Any) -> Any:
    if isinstance(bins, str):
        refuse("rules for the number of bins cannot be compiled", "give a number, or the edges.")
    if np.ndim(bins) == 1:
        given = np.asarray(bins)
        if np.any(given[:-1] > given[1:]):
            raise ValueError("`bins` must increase monotonically, when an array")
        return given
    if np.ndim(bins) != 0:
        raise ValueError("`bins` must be 1d, when an array")
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if limits is None:
        if a.shape[0] == 0:
            first, last = np.zeros(1, dtype=a.dtype)[0], np.ones(1, dtype=a.dtype)[0]
        else:
            first, last = np.min(a), np.max(a)
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError("autodetected range is not finite")
    else:
        first, last = limits
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError("supplied range is not finite")
    kind = np.float32 if a.dtype == np.float32 and limits is None else np.float64
    if a.dtype == np.float32 and limits is not None:
        kind = (a[:0] + first + last).dtype
    same = 0.5 if first == last else 0.0
    return np.linspace(first - same, last + same, bins + 1).astype(kind)


def _counted(a: Any, edges: Any, factors: Any, weighted: Any) -> Any:
    """For edges of equal distance: a guess by division, and a look at the edges."""
    n = edges.shape[0] - 1
    counts = np.zeros(n, dtype=factors.dtype)
    first, last = edges[0], edges[n]
    for i in range(a.shape[0]):
        x = a[i]
        if x >= first and x <= last:
            k = min(int((x - first) / (last - first) * n), n - 1)
            if x < edges[k]:
                k -= 1
            elif k != n - 1 and x >= edges[k + 1]:
                k += 1
            counts[k] += factors[i if weighted else 0]
    return counts


def _searched(a: Any, edges: Any, factors: Any, weighted: Any) -> Any:
    n = edges.shape[0] - 1
    counts = np.zeros(max(n, 0), dtype=factors.dtype)
    places = np.searchsorted(edges, a, side="right")
    for i in range(a.shape[0]):
        if n > 0 and a[i] >= edges[0] and a[i] <= edges[n]:
            counts[min(places[i], n) - 1] += factors[i if weighted else 0]
    return counts


@stands_for("np.digitize")
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    edges = np.asarray(bins)
    steps = edges[1:] - edges[:-1]
    falling = np.any(steps < 0)
    if falling and np.any(steps > 0):
        raise ValueError("bins must be monotonically increasing or decreasing")
    ordered = np.where(falling, edges[::-1], edges)
    places = np.searchsorted(ordered, x, side="left" if right else "right")
    return np.where(falling, edges.shape[0] - places, places)


@stands_for("np.bincount")
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    numbers = np.asarray(x)
    if numbers.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if numbers.dtype.kind not in "iub" or numbers.dtype == np.uint64:
        raise TypeError("Cannot cast array data to dtype('int64') according to the rule 'safe'")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    size = minlength
    for i in range(numbers.shape[0]):
        if numbers[i] < 0:
            raise ValueError("'list' argument must have no negative elements")
        size = max(size, int(numbers[i]) + 1)
    if weights is None:
        counts = np.zeros(size, dtype=np.int64)
        for i in range(numbers.shape[0]):
            counts[int(numbers[i])] += 1
        return counts
    factors = np.asarray(weights)
    if factors.dtype.kind == "c":
        refuse("np.bincount takes real weights", "take the real and the imaginary part.")
    if factors.shape[0] != numbers.shape[0]:
        raise ValueError("The weights and list don't have the same length.")
    sums = np.zeros(size)
    for i in range(numbers.shape[0]):
        sums[int(numbers[i])] += factors[i]
    return sums


@stands_for("np.isin", "np.in1d")
def isin(element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False) -> Any:
    wanted, given = np.asarray(element), np.ravel(test_elements)
    kind = np.result_type(wanted.dtype, given.dtype)
    if kind == np.bool_:
        kind = np.dtype(np.int64)
    if kind.kind in "iu" and kind != np.uint64:
        found = _among_integers(wanted.astype(np.int64), given.astype(np.int64))
    else:
        found = _among(wanted.astype(kind), given.astype(kind))
    return ~found if invert else found


def _among(wanted: Any, given: Any) -> Any:
    table = np.sort(given)
    places = np.searchsorted(table, wanted)
    ended = np.concatenate([table, np.zeros(1, dtype=table.dtype)])
    return (places < table.shape[0]) & (ended[places] == wanted)


def _among_integers(wanted: Any, given: Any) -> Any:
    """By a table of all integers between the least and the greatest, if there are few of them."""
    low, high = np.min(given, initial=2**62), np.max(given, initial=-(2**62))
    if low <= high and low > -(2**61) and high < 2**61 and high - low < 8 * (wanted.size + given.size):
        there = np.zeros(high - low + 1, dtype=bool)
        there[given - low] = True
        found = (wanted >= low) & (wanted <= high) & there[np.clip(wanted, low, high) - low]
    else:
        found = _among(wanted, given)
    return found
