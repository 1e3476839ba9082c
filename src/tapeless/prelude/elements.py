"""Functions of single elements, and what arrays are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse, stands_for


@stands_for("np.iscomplexobj")
def iscomplexobj(x: Any) -> Any:
    return np.asarray(x).dtype.kind == "c"


@stands_for("np.isrealobj")
def isrealobj(x: Any) -> Any:
    return np.asarray(x).dtype.kind != "c"


@stands_for("np.iscomplex")
def iscomplex(x: Any) -> Any:
    return np.imag(x) != 0


@stands_for("np.isreal")
def isreal(x: Any) -> Any:
    return np.imag(x) == 0


@stands_for("np.isposinf")
def isposinf(x: Any) -> Any:
    return _real(x) == np.inf


@stands_for("np.isneginf")
def isneginf(x: Any) -> Any:
    return _real(x) == -np.inf


def _real(x: Any) -> Any:
    if np.asarray(x).dtype.kind == "c":
        raise TypeError("This operation is not supported for complex values because it would be ambiguous.")
    return np.asarray(x)


@stands_for("np.spacing")
def spacing(x: Any, /) -> Any:
    """To the next number away from zero."""
    number = _real(x)
    end = np.where(number < 0, -np.inf, np.inf)
    return np.nextafter(number, end.astype(np.nextafter(number, number).dtype)) - number


@stands_for("np.real_if_close")
def real_if_close(a: Any, tol: Any = 100) -> Any:
    if np.asarray(a).dtype.kind == "c":
        refuse("np.real_if_close gives a type that depends on the data", "use np.real.")
    return np.asarray(a)


@stands_for("np.logaddexp2")
def logaddexp2(x1: Any, x2: Any, /) -> Any:
    return np.logaddexp(x1 * np.log(2.0).item(), x2 * np.log(2.0).item()) / np.log(2.0).item()


@stands_for("np.ldexp")
def ldexp(x1: Any, x2: Any, /) -> Any:
    """x * 2**n, in steps that do not overflow before the result does."""
    x, n = np.asarray(x1), np.asarray(x2)
    if x.dtype.kind != "f":
        x = x.astype(float)
    if n.dtype.kind != "i":
        raise TypeError("ufunc 'ldexp' not supported for the input types")
    most = 330 if x.dtype == np.float32 else 2400  # beyond, all is 0 or infinite; a third of it is a power that is not
    n = np.clip(n, -most, most)
    step = n // 3
    for power in (step, step, n - 2 * step):
        x = x * np.exp2(power.astype(float)).astype(x.dtype)
    return x


@stands_for("np.frexp")
def frexp(x: Any, /) -> Any:
    """x = m * 2**e, with m from 0.5 to 1; e is 0 where x is 0 or not finite."""
    value = np.asarray(x)
    if value.dtype.kind != "f":
        value = value.astype(float)
    usual = (value != 0) & np.isfinite(value)
    part = np.where(usual, value, 1)
    power = np.floor(np.log2(np.abs(part))).astype(np.int64) + 1
    for step in (power // 2, power - power // 2):  # one power of two might overflow
        part = part * np.exp2(-step.astype(float)).astype(part.dtype)
    above, below = np.abs(part) >= 1, np.abs(part) < 0.5  # log2 was rounded
    power = power + np.where(above, 1, np.where(below, -1, 0))
    part = part * np.where(above, 0.5, np.where(below, 2.0, 1.0)).astype(part.dtype)
    return np.where(usual, part, value), np.where(usual, power, 0).astype(np.int32)
