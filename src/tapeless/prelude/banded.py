"""Linear systems with few diagonals, in time and memory that are linear in their size.

A band has the diagonals of a matrix in its rows, the highest one first: band[upper + i - j, j] is the element (i, j). Elements
outside of the matrix are there and do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tapeless.prelude.registry import Ruled, stands_for


def _rows(lower: Any, upper: Any, band: Any) -> Any:
    """The band row by row, from the lowest diagonal on, with room for what rows take that are exchanged."""
    n = band.shape[1]
    rows = np.zeros((n, 2 * lower + upper + 1), dtype=band.dtype)
    for i in range(n):
        for k in range(lower + upper + 1):
            j = i - lower + k
            if 0 <= j < n:
                rows[i, k] = band[lower + upper - k, j]
    return rows


def _solve(lower: Any, upper: Any, band: Any, b: Any) -> Any:
    """By elimination, where each column takes its largest element; b is a matrix."""
    n, width = band.shape[1], lower + upper
    rows, x = _rows(lower, upper, band), b.copy()
    for k in range(n):
        last, best = min(k + lower, n - 1), k
        for i in range(k + 1, last + 1):
            if np.abs(rows[i, k - i + lower]) > np.abs(rows[best, k - best + lower]):
                best = i
        pivot = rows[best, k - best + lower]
        if pivot == 0:
            raise LinAlgError("singular matrix")
        if best != k:
            for j in range(width + 1):
                held = rows[k, lower + j]
                rows[k, lower + j] = rows[best, lower + j - (best - k)]
                rows[best, lower + j - (best - k)] = held
            for c in range(x.shape[1]):
                moved = x[k, c]
                x[k, c] = x[best, c]
                x[best, c] = moved
        for i in range(k + 1, last + 1):
            factor = rows[i, k - i + lower] / pivot
            for j in range(1, width + 1):
                rows[i, k - i + lower + j] -= factor * rows[k, lower + j]
            for c in range(x.shape[1]):
                x[i, c] -= factor * x[k, c]
    for r in range(n):
        i = n - 1 - r
        for c in range(x.shape[1]):
            total = x[i, c]
            for j in range(1, min(width, r) + 1):
                total -= rows[i, lower + j] * x[i + j, c]
            x[i, c] = total / rows[i, lower]
    return x


def _turned_round(upper: Any, band: Any) -> Any:
    """The band of the transpose with rows and columns in the opposite order, which has as many diagonals on each side."""
    n, turned = band.shape[1], np.zeros_like(band)
    for k in range(band.shape[0]):
        for j in range(n):
            i = j + k - upper
            if 0 <= i < n:
                turned[k, j] = band[k, n - 1 - i]
    return turned


def _times(lower: Any, upper: Any, band: Any, x: Any) -> Any:
    n, found = band.shape[1], np.zeros((band.shape[1], x.shape[1]), dtype=np.result_type(band.dtype, x.dtype))
    for k in range(lower + upper + 1):
        for j in range(n):
            i = j + k - upper
            if 0 <= i < n:
                for c in range(x.shape[1]):
                    found[i, c] += band[k, j] * x[j, c]
    return found


def _solve_jvp(lower: Any, upper: Any, primals: Any, tangents: Any) -> Any:
    (band, b), (tband, tb) = primals, tangents
    x = solve(lower, upper, band, b)
    return x, solve(lower, upper, band, tb - _times(lower, upper, tband, x))


def _solve_fwd(lower: Any, upper: Any, band: Any, b: Any) -> Any:
    x = solve(lower, upper, band, b)
    return x, (band, x)


def _solve_bwd(lower: Any, upper: Any, kept: Any, adjoint: Any) -> Any:
    band, x = kept
    db = solve(lower, upper, _turned_round(upper, band), adjoint[::-1])[::-1]
    n, dband = band.shape[1], np.zeros_like(band)
    for k in range(lower + upper + 1):
        for j in range(n):
            i = j + k - upper
            if 0 <= i < n:
                dband[k, j] = -np.sum(db[i] * x[j])
    return dband, db


solve = Ruled(_solve, _solve_jvp, _solve_fwd, _solve_bwd, constant=(0, 1))


def _floats(a: Any, check_finite: bool) -> Any:
    a = np.asarray(a)
    if check_finite:
        if not np.all(np.isfinite(a)):
            raise ValueError("array must not contain infs or NaNs")
    return a if a.dtype.kind == "f" or a.dtype.kind == "c" else a.astype(float)


def _columns(solver: Any, band: Any, b: Any) -> Any:
    """With a vector as one column."""
    if band.shape[1] != b.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    kind = np.result_type(band.dtype, b.dtype)
    band, b = band.astype(kind), b.astype(kind)
    return solver(band, b[:, None])[:, 0] if b.ndim == 1 else solver(band, b)


@stands_for("scipy.linalg.solve_banded")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    lower, upper = l_and_u
    band, right = _floats(ab, check_finite), _floats(b, check_finite)
    if lower + upper + 1 != band.shape[0]:
        raise ValueError("invalid values for the number of lower and upper diagonals: l+u+1 does not equal ab.shape[0]")
    return _columns(lambda band, b: solve(lower, upper, band, b), band, right)


def _both_sides(half: Any, lower: bool) -> Any:
    """The whole band of a Hermitian matrix of which half is given."""
    n, count = half.shape[1], half.shape[0] - 1
    band = np.zeros((2 * count + 1, n), dtype=half.dtype)
    for k in range(count + 1):
        for j in range(n - k):  # the elements (j + k, j) and (j, j + k)
            below = half[k, j] if lower else np.conj(half[count - k, j + k])
            band[count + k, j] = below
            band[count - k, j + k] = np.conj(below)
    return band


def _require_positive(count: Any, band: Any) -> None:
    """Elimination without exchanges meets no pivot that is not positive."""
    rows = _rows(count, count, band)
    n = band.shape[1]
    for k in range(n):
        pivot = rows[k, count].real
        if not pivot > 0:
            raise LinAlgError("the matrix is not positive definite")
        for i in range(k + 1, min(k + count, n - 1) + 1):
            factor = rows[i, k - i + count] / pivot
            for j in range(1, count + 1):
                rows[i, k - i + count + j] -= factor * rows[k, count + j]


@stands_for("scipy.linalg.solveh_banded")
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    half, right = _floats(ab, check_finite), _floats(b, check_finite)
    count = half.shape[0] - 1
    band = _both_sides(half, lower)
    _require_positive(count, band)
    return _columns(lambda band, b: solve(count, count, band, b), band, right)
