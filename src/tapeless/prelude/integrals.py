"""scipy.integrate: integrals of functions that are known at points."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import stands_for

UNEVEN = "If given, length of x along axis must be the same as y."


def _steps(x: Any, axis: int, points: int) -> Any:
    """The distances of the points, along the last axis."""
    where = np.asarray(x)
    along = where if where.ndim == 1 else np.moveaxis(where, axis, -1)
    if along.shape[-1] != points:
        raise ValueError(UNEVEN)
    return np.diff(along)


@stands_for("scipy.integrate.trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    return np.trapezoid(y, x, dx, axis)


@stands_for("scipy.integrate.cumulative_trapezoid")
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Any:
    values = np.moveaxis(np.asarray(y), axis, -1)
    if values.shape[-1] == 0:
        raise ValueError("At least one point is required along `axis`.")
    steps = dx if x is None else _steps(x, axis, values.shape[-1])
    sums = np.cumsum(steps * (values[..., 1:] + values[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        if initial != 0:
            raise ValueError("`initial` must be `None` or `0`.")
        sums = np.concatenate([np.zeros((*sums.shape[:-1], 1), dtype=sums.dtype), sums], axis=-1)
    return np.moveaxis(sums, -1, axis)


@stands_for("scipy.integrate.simpson")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: Any = -1) -> Any:
    values = np.moveaxis(np.asarray(y), axis, -1)
    n = values.shape[-1]
    even = np.ones(max(n - 1, 0), dtype=np.result_type(values.dtype, np.float32))
    steps = dx * even if x is None else _steps(x, axis, n).astype(float)
    if n == 2:
        return 0.5 * steps[..., 0] * (values[..., 1] + values[..., 0])
    m = n - 1 + n % 2  # an odd number of points
    result = _parabolas(values[..., :m], steps[..., : m - 1])
    if n % 2 == 0:
        result = result + _last_step(values[..., -3:], steps[..., -2:])
    return result


def _parabolas(y: Any, h: Any) -> Any:
    """The integral of parabolas through three points each: their area over steps a and b, which is 0 where one of them is."""
    a, b = h[..., ::2], h[..., 1::2]
    flat = (a == 0) | (b == 0)
    ratio = np.where(flat, 1.0, b) / np.where(flat, 1.0, a)
    first = np.where(a == 0, 2.0, np.where(b == 0, 2.0, 2.0 - ratio))
    last = np.where(b == 0, 2.0, np.where(a == 0, 2.0, 2.0 - 1.0 / ratio))
    middle = np.where(flat, 0.0, 2.0 + ratio + 1.0 / ratio)
    areas = (a + b) / 6.0 * (first * y[..., :-2:2] + middle * y[..., 1:-1:2] + last * y[..., 2::2])
    return np.sum(areas, axis=-1)


def _last_step(y: Any, h: Any) -> Any:
    """The integral over the last step of the parabola through the last three points."""
    a, b = h[..., 0], h[..., 1]
    whole, product = a + b, a * (a + b)
    far = np.where(whole == 0, 0.0, (2.0 * b**2 + 3.0 * a * b) / np.where(whole == 0, 1.0, 6.0 * whole))
    near = np.where(a == 0, 0.0, (b**2 + 3.0 * a * b) / np.where(a == 0, 1.0, 6.0 * a))
    back = np.where(product == 0, 0.0, b**3 / np.where(product == 0, 1.0, 6.0 * product))
    return far * y[..., 2] + near * y[..., 1] - back * y[..., 0]
