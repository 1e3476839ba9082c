"""Sequences of numbers: np.logspace and np.geomspace, windows, frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import places
from tapeless.prelude.registry import refuse, stands_for

# Chebyshev series of I0(x) / exp(x): for x up to 8 in x / 2 - 2, and beyond times sqrt(x) in 32 / x - 2. From Cephes.
NEAR = (
    -4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16, 1.71539128555513303061e-15,
    -1.16853328779934516808e-14, 7.67618549860493561688e-14, -4.85644678311192946090e-13, 2.95505266312963983461e-12,
    -1.72682629144155570723e-11, 9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-09,
    -1.30002500998624804212e-08, 6.04699502254191894932e-08, -2.67079385394061173391e-07, 1.11738753912010371815e-06,
    -4.41673835845875056359e-06, 1.64484480707288970893e-05, -5.75419501008210370398e-05, 1.88502885095841655729e-04,
    -5.76375574538582365885e-04, 1.63947561694133579842e-03, -4.32430999505057594430e-03, 1.05464603945949983183e-02,
    -2.37374148058994688156e-02, 4.93052842396707084878e-02, -9.49010970480476444210e-02, 1.71620901522208775349e-01,
    -3.04682672343198398683e-01, 6.76795274409476084995e-01,
)  # fmt: skip
FAR = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
    -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
    -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
    1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-09, 2.26666899049817806459e-08,
    2.04891858946906374183e-07, 2.89137052083475648297e-06, 6.88975834691682398426e-05, 3.36911647825569408990e-03,
    8.04490411014108831608e-01,
)  # fmt: skip


@stands_for("np.i0")
def i0(x: Any) -> Any:
    value = np.asarray(x)
    if value.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    if value.dtype.kind != "f":
        value = value.astype(float)
    size = np.abs(value)
    near, far = np.minimum(size, 8), np.maximum(size, 8)
    return np.where(
        size <= 8, np.exp(near) * _series(near / 2 - 2, NEAR), np.exp(far) * _series(32 / far - 2, FAR) / np.sqrt(far)
    )


def _series(x: Any, coefficients: Any) -> Any:
    b0, b1, b2 = x * 0 + coefficients[0], x * 0, x * 0
    for c in coefficients[1:]:
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return (b0 - b2) / 2


@stands_for("np.kaiser")
def kaiser(M: Any, beta: Any) -> Any:
    middle = (M - 1) / 2
    offset = (np.arange(0, M) - middle) / (1.0 if M <= 1 else middle)
    return np.i0(beta * np.sqrt(1 - offset**2)) / np.i0(float(beta))


@stands_for("np.logspace")
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None) -> Any:
    powers = np.power(base, np.linspace(start, stop, num=num, endpoint=endpoint))
    return powers if dtype is None else powers.astype(dtype)


@stands_for("np.geomspace")
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None) -> Any:
    if np.ndim(start) > 0 or np.ndim(stop) > 0:
        refuse("np.geomspace takes two numbers", "use broadcasting for arrays of ends.")
    if np.asarray(start).dtype.kind == "c" or np.asarray(stop).dtype.kind == "c":
        refuse("np.geomspace takes real numbers", "use np.exp of np.linspace.")
    if start == 0 or stop == 0:
        raise ValueError("Geometric sequence cannot include zero")
    sign = np.where(np.asarray(start) < 0, -1.0, 1.0)
    first, last = start * sign, stop * sign
    points = np.power(10.0, np.linspace(np.log10(first), np.log10(last), num=num, endpoint=endpoint))
    i = np.arange(num)
    points = np.where(i == 0, first, points)  # the ends are exact
    if endpoint:
        points = np.where((i == num - 1) & (i > 0), last, points)
    points = points * sign
    return points if dtype is None else points.astype(dtype)


@stands_for("np.fft.fftfreq")
def fftfreq(n: Any, d: Any = 1.0) -> Any:
    i = np.arange(n)
    return np.where(i < (n + 1) // 2, i, i - n) * (1.0 / (n * d))


@stands_for("np.fft.rfftfreq")
def rfftfreq(n: Any, d: Any = 1.0) -> Any:
    return np.arange(0, n // 2 + 1) * (1.0 / (n * d))


@stands_for("np.fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Any:
    a = np.asarray(x)
    for k in places(axes, a.ndim):
        a = np.roll(a, a.shape[k] // 2, axis=k)
    return a


@stands_for("np.fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    a = np.asarray(x)
    for k in places(axes, a.ndim):
        a = np.roll(a, -(a.shape[k] // 2), axis=k)
    return a


@stands_for("np.ndindex")
def ndindex(*shape: Any) -> Any:
    if len(shape) == 1 and isinstance(shape[0], tuple):
        shape = shape[0]
    return zip(*_indices(shape), strict=True)


@stands_for("np.ndenumerate")
def ndenumerate(arr: Any) -> Any:
    arr = np.asarray(arr)
    return zip(zip(*_indices(arr.shape), strict=True), arr.ravel(), strict=True)


def _indices(shape: Any) -> Any:
    """Of all elements, along each axis."""
    if len(shape) == 0:
        refuse("there are no axes to go along", "leave the loop out.")
    left = 1
    for n in shape:
        if n < 0:
            raise ValueError("negative dimensions are not allowed")
        left *= n
    at = np.arange(left)
    found = []
    for n in shape:
        left //= max(n, 1)
        found.append((at // max(left, 1) % max(n, 1)).tolist())
    return found
