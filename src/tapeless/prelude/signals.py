"""Convolution and correlation of vectors, finite differences, phases, windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import cut, place, places
from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.convolve")
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = _vectors(a, v)
    short = min(x.shape[0], y.shape[0])
    return _slid(x, y, mode, (short - 1) // 2)


@stands_for("np.correlate")
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    x, y = _vectors(a, v)
    if y.dtype.kind == "c":
        y = np.conj(y)
    n, m = x.shape[0], y.shape[0]
    return _slid(x, y[::-1], mode, (m - 1) // 2 if m <= n else n // 2)


def _vectors(a: Any, v: Any) -> Any:
    x, y = [np.ravel(u) if np.ndim(u) == 0 else np.asarray(u) for u in (a, v)]
    if x.ndim != 1 or y.ndim != 1:
        refuse("np.convolve and np.correlate take vectors", "loop over the rows.")
    if x.shape[0] == 0:
        raise ValueError("a cannot be empty")
    if y.shape[0] == 0:
        raise ValueError("v cannot be empty")
    return x, y


def _slid(a: Any, v: Any, mode: Any, middle: int) -> Any:
    """All sums of a[k - j] v[j] over j, from the first k that the mode wants."""
    n, m = a.shape[0], v.shape[0]
    kind = np.result_type(a, v)
    if mode == "full":
        start, length = 0, n + m - 1
    elif mode == "same":
        start, length = middle, max(n, m)
    elif mode == "valid":
        start, length = min(n, m) - 1, max(n, m) - min(n, m) + 1
    else:
        refuse("np.convolve and np.correlate have the modes 'full', 'same' and 'valid'", "use one of them.")
    result = np.zeros(length, dtype=kind)
    if kind == np.bool_:
        for k in range(length):
            for j in range(max(0, k + start - n + 1), min(m, k + start + 1)):
                result[k] = result[k] or (a[k + start - j] and v[j])
        return result
    for k in range(length):
        total = result[k]
        for j in range(max(0, k + start - n + 1), min(m, k + start + 1)):
            total += a[k + start - j] * v[j]
        result[k] = total
    return result


# -- differences


@stands_for("np.ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = np.ravel(ary)
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts = [np.ravel(to_begin).astype(flat.dtype), *parts]
    if to_end is not None:
        parts = [*parts, np.ravel(to_end).astype(flat.dtype)]
    return np.concatenate(parts)


@stands_for("np.unwrap")
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586) -> Any:
    x = np.asarray(p)
    k = place(axis, x.ndim)
    step = np.diff(x, axis=k)
    if x.dtype.kind == "i" and isinstance(period, int):
        half = period // 2
        ambiguous = period % 2 == 0
        low = -half
    else:
        x = x * 1.0
        half = period / 2
        ambiguous = True
        low = -half
    near = np.mod(step - low, period) + low
    if ambiguous:
        near = np.where((near == low) & (step > 0), half, near)
    jump = np.where(np.abs(step) < (half if discont is None else discont), 0, near - step)
    first = x[cut(x.ndim, k, slice(0, 1))]
    rest = x[cut(x.ndim, k, slice(1, None))]
    return np.concatenate([first, rest + np.cumsum(jump, axis=k).astype(x.dtype)], axis=k)


@stands_for("np.gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    x = np.asarray(f)
    if x.dtype.kind == "i" or x.dtype.kind == "b":
        x = x.astype(float)
    wanted = places(axis, x.ndim)
    if len(varargs) > 1 and len(varargs) != len(wanted):
        raise TypeError("invalid number of arguments")
    if edge_order != 1 and edge_order != 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings: Any = varargs
    if len(varargs) < 2:
        spacings = [1.0 if len(varargs) == 0 else varargs[0] for _ in wanted]
    found = tuple([_slopes(x, spacings[i], wanted[i], edge_order) for i in range(len(wanted))])
    return found[0] if len(wanted) == 1 else found


def _slopes(f: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    y = np.moveaxis(f, axis, -1)
    if np.ndim(spacing) == 0:
        inner = (y[..., 2:] - y[..., :-2]) / (2.0 * spacing)
        left = right = spacing
        next_left = next_right = spacing
    elif np.ndim(spacing) == 1:
        at = np.asarray(spacing) * 1.0
        if at.shape[0] != n:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        before, after = at[1:-1] - at[:-2], at[2:] - at[1:-1]
        inner = (
            -(after / (before * (before + after))) * y[..., :-2]
            + (after - before) / (before * after) * y[..., 1:-1]
            + before / (after * (before + after)) * y[..., 2:]
        )
        left, right = at[1] - at[0], at[-1] - at[-2]
        if edge_order == 2:
            next_left, next_right = at[2] - at[1], at[-2] - at[-3]
    else:
        refuse("np.gradient takes numbers and vectors as distances", "give a vector of coordinates for each axis.")
    if edge_order == 1:
        first, last = (y[..., 1] - y[..., 0]) / left, (y[..., -1] - y[..., -2]) / right
    else:
        first = _at_end(y[..., 0], y[..., 1], y[..., 2], left, next_left)
        last = -_at_end(y[..., -1], y[..., -2], y[..., -3], right, next_right)
    ends = [np.asarray(end)[..., None] for end in (first, last)]
    return np.moveaxis(np.concatenate([ends[0], inner, ends[1]], axis=-1), -1, axis).astype(f.dtype)


def _at_end(y0: Any, y1: Any, y2: Any, near: Any, far: Any) -> Any:
    """The slope at the first of three points by the parabola through them."""
    both = near + far
    return -(2.0 * near + far) / (near * both) * y0 + both / (near * far) * y1 - near / (far * both) * y2


@stands_for("np.bartlett")
def bartlett(M: Any) -> Any:
    return _window(M, lambda k, n: np.where(k <= 0, 1 + k / (n - 1), 1 - k / (n - 1)))


@stands_for("np.hanning")
def hanning(M: Any) -> Any:
    return _window(M, lambda k, n: 0.5 + 0.5 * np.cos(np.pi * k / (n - 1)))


@stands_for("np.hamming")
def hamming(M: Any) -> Any:
    return _window(M, lambda k, n: 0.54 + 0.46 * np.cos(np.pi * k / (n - 1)))


@stands_for("np.blackman")
def blackman(M: Any) -> Any:
    return _window(M, lambda k, n: 0.42 + 0.5 * np.cos(np.pi * k / (n - 1)) + 0.08 * np.cos(2.0 * np.pi * k / (n - 1)))


def _window(M: Any, height: Any) -> Any:
    """The places of a window of M points are 1 - M, 3 - M, ..., M - 1."""
    k = np.arange(1 - M, M, 2, dtype=float)
    return np.ones(k.shape[0]) if M <= 1 else height(k, float(M))
