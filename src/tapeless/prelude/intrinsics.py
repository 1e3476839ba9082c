"""What the prelude is built on, and what no function of NumPy says: in plain Python for `f.python`, and known to the front
end by name (`frontend.numpy.intrinsics`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np


def prange(n: int) -> range:
    """`tp.prange`: a loop whose iterations may run at once."""
    return range(n)


prange.__tapeless__ = "prange"  # type: ignore[attr-defined]


def each_matrix(function: Callable[..., Any], a: Any) -> Any:
    """`function` of every matrix in a stack of them, which may be one matrix."""
    if a.ndim == 2:
        return function(a)
    found = [each_matrix(function, row) for row in a]
    if isinstance(found[0], tuple):
        return tuple(np.stack(parts) for parts in zip(*found, strict=True))
    return np.stack(found)


def each_row(function: Callable[..., Any], a: Any, *shared: Any) -> Any:
    """`function(row, *shared)` of every row along the last axis."""
    if a.ndim == 1:
        return function(a, *shared)
    return np.stack([each_row(function, row, *shared) for row in a]) if len(a) else a


def eigh(a: Any) -> Any:
    """Eigenvalues and vectors of one Hermitian matrix, of which the lower triangle is read."""
    return tuple(np.linalg.eigh(a))


def eig(a: Any) -> Any:
    """Of one complex matrix."""
    return tuple(np.linalg.eig(a))


def svd(a: Any, least: Any) -> Any:
    """Of one matrix, as many columns and rows as there are elements in `least`."""
    return tuple(np.linalg.svd(a, full_matrices=False))


def qr(a: Any) -> Any:
    """Of one matrix with at least as many rows as columns."""
    return tuple(np.linalg.qr(a))


def fft_table(room: Any, like: Any) -> Any:
    """What transforms of vectors as long as `like` take: as many numbers as there are in `room`. Neither is read."""
    roots = np.zeros(len(room), dtype=complex)
    if len(room) == len(like) > 0:
        roots[:] = np.exp(-2j * np.pi / len(room) * np.arange(len(room)))
    return roots


def fft(x: Any, table: Any) -> Any:
    """The transform of one complex vector."""
    return np.fft.fft(x).astype(x.dtype)


def ifft(x: Any, table: Any) -> Any:
    """With exp(2 pi i k / n), and without the factor 1 / n."""
    return (np.fft.ifft(x) * len(x)).astype(x.dtype)


def solve_lower(a: Any, b: Any) -> Any:
    """By the lower triangle of one matrix."""
    return np.linalg.solve(np.tril(a), b)


def solve_upper(a: Any, b: Any) -> Any:
    return np.linalg.solve(np.triu(a), b)


def borrowed(name: str, *args: Any) -> Any:
    """A function of scipy.special as SciPy has it, without slopes by its shapes."""
    return getattr(import_module("scipy.special"), name)(*args)


def ranked(x: Any, ranks: Any) -> Any:
    """Where the numbers of these ranks are in a vector; NaN has the highest."""
    return np.argsort(x, kind="stable")[ranks]
