"""np.fft and scipy.fft: Fourier transforms of any length along any axes.

A length with a prime factor above LARGE becomes a convolution of a length that is a power of two (Bluestein); the length of the table
says so, which all rows share.

Note [Pairs of real numbers]
The transform of 2 h real numbers is one of h complex ones, z[j] = x[2 j] + i x[2 j + 1]. With z~[k] = conj(z^[h - k]) those at even
positions have the transform (z^ + z~) / 2, the others (z^ - z~) / 2i, and x^[k] is the first plus exp(-pi i k / h) times the second. The same
backwards: real numbers come out in pairs. Every second root of the longer transform is one of the shorter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude import intrinsics
from tapeless.prelude.intrinsics import each_row
from tapeless.prelude.registry import refuse, stands_for

LARGE = 50


def _largest_factor(n: Any) -> Any:
    largest, k = 1, 2
    while k * k <= n:
        if n % k == 0:
            largest = k
            n //= k
        else:
            k += 1
    return max(largest, n)


def _forward(x: Any, table: Any) -> Any:
    return intrinsics.fft(x, table)


def _back(x: Any, table: Any) -> Any:
    return intrinsics.ifft(x, table)


def _table_size(n: Any) -> Any:
    """Of a transform of n numbers."""
    if n <= 1 or _largest_factor(n) <= LARGE:
        return n
    size = 1
    while size < 2 * n - 1:
        size *= 2
    return 2 * size + n


def _table(n: Any, size: Any, dtype: Any) -> Any:
    """Of n numbers. One of n numbers itself holds the roots."""
    return intrinsics.fft_table(np.empty(size, dtype=np.complex128), np.empty(n, dtype=np.complex128)).astype(dtype)


def transform(x: Any, sign: float) -> Any:
    """Along the last axis, with exp(sign 2 pi i j k / n)."""
    n = x.shape[-1]
    return each_row(_forward if sign < 0 else _back, x, _table(n, _table_size(n), x.dtype))


def _go_in_pairs(n: Any) -> Any:
    return n % 2 == 0 and _largest_factor(n) <= LARGE


def _from_reals(x: Any) -> Any:
    """The first half of the transform of real numbers along the last axis."""
    n, dtype = x.shape[-1], np.complex64 if x.dtype == np.float32 else np.complex128
    h = n // 2
    out = np.empty((*x.shape[:-1], h + 1), dtype=dtype)
    if _go_in_pairs(n):
        roots = _table(n, n, dtype)
        z = each_row(_forward, x[..., 0::2] + 1j * x[..., 1::2], roots[::2].copy())
        out[..., 0] = z[..., 0].real + z[..., 0].imag
        out[..., h] = z[..., 0].real - z[..., 0].imag
        up, down = z[..., 1:], np.conj(z[..., 1:][..., ::-1])
        out[..., 1:h] = 0.5 * (up + down) - 0.5j * roots[1:h] * (up - down)
    else:
        out[...] = transform(x.astype(dtype), -1.0)[..., : h + 1]
    return out


def _to_reals(a: Any, n: Any) -> Any:
    """The n real numbers, times n, of which this is the first half of the transform along the last axis."""
    h = n // 2
    out = np.empty((*a.shape[:-1], n), dtype=a.real.dtype)
    if _go_in_pairs(n):
        roots = _table(n, n, a.dtype)
        z = np.empty((*a.shape[:-1], h), dtype=a.dtype)
        first, last = a[..., 0].real, a[..., h].real
        z[..., 0] = first + last + 1j * (first - last)
        up, down = a[..., 1:h], np.conj(a[..., 1:h][..., ::-1])
        z[..., 1:] = up + down + 1j * np.conj(roots[1:h]) * (up - down)
        z = each_row(_back, z, roots[::2].copy())
        out[..., 0::2] = z.real
        out[..., 1::2] = z.imag
    else:
        out[...] = transform(_whole(a, n), 1.0).real
    return out


# -- axes, sizes, norms


def _complex(a: Any) -> Any:
    a = np.asarray(a)
    if np.iscomplexobj(a):
        return a
    return a.astype(np.complex64 if a.dtype == np.float32 else np.complex128)


def _real(a: Any) -> Any:
    a = np.asarray(a)
    return a if a.dtype == np.float32 or a.dtype == np.float64 else a.astype(np.float64)


def _require_some(n: Any) -> None:
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")


def resized(a: Any, n: Any, axis: Any) -> Any:
    """Cut, or with zeros behind."""
    if n is None:
        return a
    _require_some(n)
    a = np.moveaxis(a, axis, -1)
    kept = min(n, a.shape[-1])
    out = np.zeros((*a.shape[:-1], n), dtype=a.dtype)
    out[..., :kept] = a[..., :kept]
    return np.moveaxis(out, -1, axis)


def _scale(n: Any, norm: Any, forward: bool) -> Any:
    if norm is None or norm == "backward":
        return 1.0 if forward else 1.0 / n
    if norm == "ortho":
        return 1.0 / np.sqrt(n)
    if norm == "forward":
        return 1.0 / n if forward else 1.0
    refuse("the norm of a Fourier transform must be 'backward', 'ortho' or 'forward'")


def _scaled(made: Any, n: Any, norm: Any, forward: bool) -> Any:
    factor = _scale(n, norm, forward)
    if forward and (norm is None or norm == "backward"):
        return made
    return (made * factor).astype(made.dtype)


def _along(a: Any, n: Any, axis: Any, norm: Any, forward: bool) -> Any:
    a = np.moveaxis(resized(_complex(a), n, axis), axis, -1)
    _require_some(a.shape[-1])
    made = transform(a, -1.0 if forward else 1.0).astype(a.dtype)
    return np.moveaxis(_scaled(made, a.shape[-1], norm, forward), -1, axis)


@stands_for("np.fft.fft")
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _along(a, n, axis, norm, True)


@stands_for("np.fft.ifft")
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _along(a, n, axis, norm, False)


@stands_for("np.fft.rfft")
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    if np.iscomplexobj(a):
        refuse("np.fft.rfft takes real numbers", "use fft.")
    x = np.moveaxis(resized(_real(a), n, axis), axis, -1)
    _require_some(x.shape[-1])
    made = _from_reals(x)
    return np.moveaxis(_scaled(made, x.shape[-1], norm, True), -1, axis)


def _whole(a: Any, n: Any) -> Any:
    """All n numbers of a transform of real ones, of which the first half is given along the last axis."""
    half = n // 2 + 1
    whole = np.empty((*a.shape[:-1], n), dtype=a.dtype)
    whole[..., :half] = a
    whole[..., half:] = np.conj(a[..., 1 : n - half + 1][..., ::-1])
    whole[..., 0] = a[..., 0].real
    if n % 2 == 0:
        whole[..., n // 2] = a[..., n // 2].real
    return whole


@stands_for("np.fft.irfft")
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    a = np.moveaxis(_complex(a), axis, -1)
    size = 2 * (a.shape[-1] - 1) if n is None else n
    if size < 1:
        raise ValueError("Invalid number of FFT data points")
    made = _to_reals(resized(a, size // 2 + 1, -1), size)
    return np.moveaxis(_scaled(made, size, norm, False), -1, axis)


@stands_for("np.fft.hfft")
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return irfft(np.conj(a), n, axis, _other(norm))


@stands_for("np.fft.ihfft")
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return np.conj(rfft(a, n, axis, _other(norm)))


def _other(norm: Any) -> Any:
    return "forward" if norm is None or norm == "backward" else "backward" if norm == "forward" else norm


def _axes(a: Any, s: Any, axes: Any) -> Any:
    if axes is not None:
        return tuple(axes)
    if s is not None:
        return tuple(range(-len(s), 0))
    return tuple(range(a.ndim))


def _sizes(s: Any, axes: Any) -> Any:
    return (None,) * len(axes) if s is None else tuple(s)


def _many(a: Any, s: Any, axes: Any, norm: Any, forward: bool) -> Any:
    found = np.asarray(a)
    places = _axes(found, s, axes)
    for axis, n in tuple(zip(places, _sizes(s, places)))[::-1]:  # noqa: B905
        found = _along(found, n, axis, norm, forward)
    return found


@stands_for("np.fft.fftn")
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return _many(a, s, axes, norm, True)


@stands_for("np.fft.ifftn")
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return _many(a, s, axes, norm, False)


@stands_for("np.fft.fft2")
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return _many(a, s, axes, norm, True)


@stands_for("np.fft.ifft2")
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return _many(a, s, axes, norm, False)


@stands_for("np.fft.rfftn")
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    found = np.asarray(a)
    places = _axes(found, s, axes)
    sizes = _sizes(s, places)
    found = rfft(found, sizes[-1], places[-1], norm)
    return _many(found, None if s is None else sizes[:-1], places[:-1], norm, True) if len(places) > 1 else found


@stands_for("np.fft.rfft2")
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return rfftn(a, s, axes, norm)


@stands_for("np.fft.irfftn")
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    found = np.asarray(a)
    places = _axes(found, s, axes)
    sizes = _sizes(s, places)
    if len(places) > 1:
        found = _many(found, None if s is None else sizes[:-1], places[:-1], norm, False)
    return irfft(found, sizes[-1], places[-1], norm)


@stands_for("np.fft.irfft2")
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return irfftn(a, s, axes, norm)
