"""Cosine and sine transforms of types 1 to 4, by Fourier transforms of about twice the length."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.axes import place
from tapeless.prelude.registry import refuse, stands_for
from tapeless.prelude.transforms import fft, resized

INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
ROOT_2 = 2**0.5


def _turns(k: Any, n: Any) -> Any:
    """exp(-i pi k / n)"""
    return np.exp(-1j * (np.pi / n * k))


def _period(n: Any, type: Any, sine: bool) -> Any:
    """How long the sequence is that the transform makes of n numbers, mirrored."""
    if type != 1:
        return 2 * n
    return 2 * (n + 1) if sine else 2 * (n - 1)


def _ends(n: Any, first: Any, last: Any) -> Any:
    """1, but for the ends."""
    k = np.arange(n)
    return np.where(k == 0, first, 1.0) * np.where(k == n - 1, last, 1.0)


def _sums(x: Any, type: Any, sine: bool) -> Any:
    """Of real numbers, along the last axis: real or imaginary parts of a Fourier transform of x with zeros behind."""
    n = x.shape[-1]
    period = _period(n, type, sine)
    k = np.arange(n)
    one = 1 if sine else 0  # sines start with the first multiple
    before, first = one if type % 2 == 1 else 0, one if type < 3 else 0
    if type == 1:
        turned = x * (1.0 + 0j) if sine else x * (_ends(n, 0.5, 0.5) + 0j)
    elif type == 2:
        turned = x * (1.0 + 0j)
    elif type == 3:
        half = _ends(n, 1.0, 0.5) if sine else _ends(n, 0.5, 1.0)
        turned = x * (half * _turns(k + one, 2.0 * n))
    else:
        turned = x * _turns(2 * k + 1, 4.0 * n)
    padded = np.zeros((*x.shape[:-1], period), dtype=turned.dtype)
    padded[..., before : before + n] = turned
    found = fft(padded)[..., first : first + n]
    if type == 2 or type == 4:
        found = found * _turns(k + first, 2.0 * n)
    return -2 * found.imag if sine else 2 * found.real


def _weighted(x: Any, type: Any, sine: bool) -> Any:
    """With the factors at the ends that make it orthogonal."""
    n = x.shape[-1]
    if type == 1 and not sine:
        return _sums(x * _ends(n, ROOT_2, ROOT_2), type, sine) * _ends(n, 1 / ROOT_2, 1 / ROOT_2)
    if type == 2:
        return _sums(x, type, sine) * (_ends(n, 1.0, 1 / ROOT_2) if sine else _ends(n, 1 / ROOT_2, 1.0))
    if type == 3:
        return _sums(x * (_ends(n, 1.0, ROOT_2) if sine else _ends(n, ROOT_2, 1.0)), type, sine)
    return _sums(x, type, sine)


def _transform(a: Any, type: Any, n: Any, axis: Any, norm: Any, orthogonalize: Any, sine: bool, forward: bool) -> Any:
    if type not in (1, 2, 3, 4):
        raise ValueError("Transform type must be 1, 2, 3 or 4")
    if norm not in (None, "backward", "ortho", "forward"):
        refuse("the norm of a transform must be 'backward', 'ortho' or 'forward'", "use one of them.")
    x = np.asarray(a)
    if x.dtype.kind == "c":
        parts = [
            _transform(p, type, n, axis, norm, orthogonalize, sine, forward) for p in (x.real.copy(), x.imag.copy())
        ]
        return parts[0] + 1j * parts[1]
    kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
    x = np.moveaxis(resized(x.astype(kind), n, axis), axis, -1)
    if x.shape[-1] < (2 if type == 1 and not sine else 1):
        raise ValueError("zero-length transform requested, or DCT-I of one number")
    used = type if forward else INVERSE[type]
    weighted = norm == "ortho" if orthogonalize is None else orthogonalize
    made = _weighted(x, used, sine) if weighted else _sums(x, used, sine)
    period = _period(x.shape[-1], type, sine)
    if norm == "ortho":
        made = made / np.sqrt(1.0 * period)
    elif (norm == "forward") == forward:
        made = made / period
    return np.moveaxis(made.astype(kind), -1, axis)


def _one(name: str, sine: bool, forward: bool) -> None:
    def function(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        return _transform(x, type, n, axis, norm, orthogonalize, sine, forward)

    stands_for(f"scipy.fft.{name}")(function)


def _several(name: str, sine: bool, forward: bool) -> None:
    def function(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, *, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        found = np.asarray(x)
        where: Any = axes if isinstance(axes, (tuple, list)) else (axes,)
        if axes is None:
            where = tuple(range(found.ndim)) if s is None else tuple(range(found.ndim - len(s), found.ndim))
        for k in tuple(range(len(where))):
            size = None if s is None else s[k]
            axis = place(where[k], found.ndim)
            found = _transform(found, type, size, axis, norm, orthogonalize, sine, forward)
        return found

    stands_for(f"scipy.fft.{name}")(function)


_one("dct", False, True)
_one("idct", False, False)
_one("dst", True, True)
_one("idst", True, False)
_several("dctn", False, True)
_several("idctn", False, False)
_several("dstn", True, True)
_several("idstn", True, False)
