"""Distribution functions of scipy.special, with slopes by their shapes.

Each is SciPy's own function, which has a slope by its last argument alone, plus a function that is 0 and has the slopes by the shapes:
Note [Slopes by shapes] of shape_slopes.py. Forward mode is the transpose of the rule for adjoints, so that a shape that does not
move costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.prelude import intrinsics, shape_slopes
from tapeless.prelude.registry import Ruled, stands_for


def _fitting(value: Any, *args: Any) -> Any:
    """As arrays of double precision, of the shape of the value."""
    return tuple([np.broadcast_to(np.asarray(a).astype(float), np.shape(value)) for a in args])


def _nothing_with_slope(slope: Callable[[Any, Any], Any]) -> Ruled:
    """0, with this slope by the first of two arguments."""

    def nothing(shape: Any, x: Any) -> Any:
        return np.zeros_like(x)

    def fwd(shape: Any, x: Any) -> Any:
        return found(shape, x), (shape, x)

    def bwd(kept: Any, adjoint: Any) -> Any:
        shape, x = kept
        return slope(shape, x) * adjoint, None

    found = Ruled(nothing, None, fwd, bwd)
    return found


# -- the gamma distribution


def _gamma_slope(a: Any, x: Any) -> Any:
    """0 at the ends of x, NaN outside of the domain."""
    inside = (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf)
    found = shape_slopes.gamma_slope(np.where(inside, a, 1.0), np.where(inside, x, 1.0))
    return np.where(inside, found, np.where((a > 0) & (x >= 0), 0.0, np.nan))


gamma = _nothing_with_slope(_gamma_slope)


@stands_for("scipy.special.gammainc")
def gammainc(a: Any, x: Any) -> Any:
    value = intrinsics.borrowed("gammainc", a, x)
    return value + gamma(*_fitting(value, a, x)).astype(value.dtype)


@stands_for("scipy.special.gammaincc")
def gammaincc(a: Any, x: Any) -> Any:
    value = intrinsics.borrowed("gammaincc", a, x)
    return value - gamma(*_fitting(value, a, x)).astype(value.dtype)


# -- the beta distribution


def _beta_slopes(a: Any, b: Any, x: Any) -> Any:
    """By both shapes: the second one is the first for 1 - x."""
    some = (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf)
    inside = some & (x > 0) & (x < 1)
    c, d, p = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
    q = 1 - p
    found = shape_slopes.beta_slope(np.stack([c, d]), np.stack([d, c]), np.stack([p, q]), np.stack([q, p]))
    outside = np.where(some & (x >= 0) & (x <= 1), 0.0, np.nan)
    return np.where(inside, found[0], outside), np.where(inside, -found[1], outside)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return np.zeros_like(x)


def _beta_fwd(a: Any, b: Any, x: Any) -> Any:
    return beta(a, b, x), (a, b, x)


def _beta_bwd(kept: Any, adjoint: Any) -> Any:
    a, b, x = kept
    first, second = _beta_slopes(a, b, x)
    return first * adjoint, second * adjoint, None


beta = Ruled(_beta, None, _beta_fwd, _beta_bwd)


@stands_for("scipy.special.betainc")
def betainc(a: Any, b: Any, x: Any) -> Any:
    value = intrinsics.borrowed("betainc", a, b, x)
    return value + beta(*_fitting(value, a, b, x)).astype(value.dtype)


@stands_for("scipy.special.betaincc")
def betaincc(a: Any, b: Any, x: Any) -> Any:
    value = intrinsics.borrowed("betaincc", a, b, x)
    return value - beta(*_fitting(value, a, b, x)).astype(value.dtype)


# -- Student's distribution


def _student_slope(v: Any, t: Any) -> Any:
    inside = (v > 0) & (v < np.inf) & np.isfinite(t)
    found = shape_slopes.student_slope(np.where(inside, v, 1.0), np.where(inside, t, 0.0))
    return np.where(inside, found, np.where((v > 0) & (t == t), 0.0, np.nan))


student = _nothing_with_slope(_student_slope)


@stands_for("scipy.special.stdtr")
def stdtr(df: Any, t: Any) -> Any:
    value = intrinsics.borrowed("stdtr", df, t)
    return value + student(*_fitting(value, df, t)).astype(value.dtype)
