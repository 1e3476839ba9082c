"""Factorisations of matrices, with derivatives of their own.

Note [Vectors that are not unique]
Vectors of equal eigenvalues (or singular values) may be turned among themselves. A function of all of them together (their
projector, the polar factor, a product of all factors, the sum of their values) does not see that, and has a derivative;
a function of one of them has none. Which it is shows in its adjoints: what belongs to a turn of the equal ones is then 0
up to rounding. So a quotient by a difference of nearly equal values is 0 where its numerator vanishes, and NaN where it
does not: never a finite number that means nothing. Values that are equal must also have equal adjoints. Forward mode does
not know what becomes of the vectors, and says NaN where they move.

Note [Which differences are none]
Two values are equal when they differ by no more than CLOSE times the largest: what rounding leaves of equal ones. A
numerator vanishes when it is below FAINT times the largest of what it is a difference of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude import intrinsics
from tapeless.prelude.registry import Ruled, refuse

CLOSE = 64
FAINT = 4096


def _turned(x: Any) -> Any:
    return np.conj(x.T)


def _real_only(a: Any, name: str) -> None:
    if np.iscomplexobj(a):
        refuse(f"{name} of a complex matrix has no derivative here", "write it for real and imaginary parts.")


def _quotients(top: Any, below: Any, of_top: Any, of_below: Any) -> Any:
    """top / below, with the sizes of what they are differences of: Note [Vectors that are not unique]."""
    epsilon = np.finfo(top.dtype).eps
    close = np.abs(below) <= CLOSE * epsilon * of_below
    faint = np.abs(top) <= FAINT * epsilon * of_top
    stuck = np.where(faint, 0.0, np.nan)
    return np.where(close, stuck, top / np.where(close, 1.0, below))


def _largest(x: Any) -> Any:
    """The largest size of an element; 0 of none."""
    return np.linalg.norm(x.ravel(), np.inf)


def _off_diagonal(x: Any) -> Any:
    return np.where(np.eye(x.shape[0], dtype=bool), 0.0, x)


def _agree(values: Any, slopes: Any) -> Any:
    """0 off the diagonal, and NaN where values are equal that have different adjoints."""
    epsilon = np.finfo(values.dtype).eps
    equal = np.abs(values[:, None] - values) <= CLOSE * epsilon * _largest(values)
    same = np.abs(slopes[:, None] - slopes) <= FAINT * epsilon * _largest(slopes)
    return np.where(equal & ~same, np.nan, 0.0)


# -- eigenvalues of Hermitian matrices


def _eigh_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (ta,) = primals, tangents
    _real_only(a, "np.linalg.eigh")
    w, v = eigh(a)
    inner = v.T @ _symmetric(ta) @ v
    moved = _quotients(_off_diagonal(inner), _gaps(w), _largest(inner), _largest(w))
    return (w, v), (np.diagonal(inner), v @ moved)


def _gaps(w: Any) -> Any:
    """w_j - w_i, and something that is not 0 on the diagonal."""
    return w - w[:, None] + np.eye(w.shape[0], dtype=w.dtype) * _largest(w)


def _symmetric(a: Any) -> Any:
    """With the lower triangle of a."""
    return np.tril(a) + np.tril(a, -1).T


def _eigh_fwd(a: Any) -> Any:
    _real_only(a, "np.linalg.eigh")
    w, v = eigh(a)
    return (w, v), (w, v)


def _eigh_bwd(kept: Any, adjoint: Any) -> Any:
    w, v = kept
    dw, dv = adjoint
    m = v.T @ dv
    inner = np.diag(dw) + _agree(w, dw) + _quotients((m - m.T) / 2, _gaps(w), _largest(m), _largest(w))
    whole = v @ inner @ v.T
    return (np.tril(whole) + np.tril(whole.T, -1),)


eigh = Ruled(intrinsics.eigh, _eigh_jvp, _eigh_fwd, _eigh_bwd)


# -- eigenvalues of any matrix


def _eig_jvp(primals: Any, tangents: Any) -> Any:
    """Vectors have length 1, which is no condition that complex numbers differentiate: only values have a derivative."""
    (a,), (ta,) = primals, tangents
    w, v = eig(a)
    inner = np.linalg.solve(v, ta @ v)
    return (w, v), (np.diagonal(inner), v * np.nan)


def _eig_fwd(a: Any) -> Any:
    w, v = eig(a)
    return (w, v), (w, v)


def _eig_bwd(kept: Any, adjoint: Any) -> Any:
    w, v = kept
    dw, dv = adjoint
    unused = np.where(_largest(dv) == 0.0, 0.0, np.nan)
    sizes = np.abs(w)
    epsilon = np.finfo(sizes.dtype).eps
    equal = np.abs(w[:, None] - w) <= CLOSE * epsilon * _largest(sizes)
    same = np.abs(dw[:, None] - dw) <= FAINT * epsilon * _largest(np.abs(dw))
    inner = np.diag(dw) + np.where(equal & ~same, np.nan, 0.0) + unused
    return (np.linalg.solve(v.T, inner @ v.T),)


eig = Ruled(intrinsics.eig, _eig_jvp, _eig_fwd, _eig_bwd)


# -- singular values


def _halves(x: Any, y: Any, s: Any, size: Any) -> Any:
    """x / (s_j - s_i) and y / (s_j + s_i) off the diagonal; `size` is that of what x and y are differences of."""
    return _quotients(x, _gaps(s), size, _largest(s)), _quotients(y, s + s[:, None], size, _largest(s))


def _over(x: Any, s: Any, size: Any) -> Any:
    """The columns of x over s; 0 where both vanish."""
    return _quotients(x, s * np.ones_like(x), size, _largest(s))


def _svd_jvp(primals: Any, tangents: Any) -> Any:
    (a, least), (ta, _) = primals, tangents
    _real_only(a, "np.linalg.svd")
    u, s, vt = svd(a, least)
    p = u.T @ ta @ vt.T
    first, second = _halves(_off_diagonal(p + p.T) / 2, (p - p.T) / 2, s, _largest(p))
    tu = u @ (first + second) + _over(ta @ vt.T - u @ p, s, _largest(ta))
    tv = vt.T @ (first - second) + _over(ta.T @ u - vt.T @ p.T, s, _largest(ta))
    return (u, s, vt), (tu, np.diagonal(p), tv.T)


def _svd_fwd(a: Any, least: Any) -> Any:
    _real_only(a, "np.linalg.svd")
    u, s, vt = svd(a, least)
    return (u, s, vt), (u, s, vt)


def _svd_bwd(kept: Any, adjoint: Any) -> Any:
    u, s, vt = kept
    du, ds, dvt = adjoint
    v, dv = vt.T, dvt.T
    m, n = u.T @ du, v.T @ dv
    x, y = m - m.T, n - n.T
    first, second = _halves((x + y) / 2, (x - y) / 2, s, np.maximum(_largest(m), _largest(n)))
    inner = np.diag(ds) + _agree(s, ds) + first + second
    outside = _over(du - u @ m, s, _largest(du)) @ vt + u @ _over(dv - v @ n, s, _largest(dv)).T
    return (u @ inner @ vt + outside, None)


svd = Ruled(intrinsics.svd, _svd_jvp, _svd_fwd, _svd_bwd)


def singular_values(a: Any) -> Any:
    """U, s and V^T of one matrix, of the smaller size."""
    return svd(a, np.zeros(min(a.shape[0], a.shape[1])))


# -- Q and R


def _qr_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (ta,) = primals, tangents
    _real_only(a, "np.linalg.qr")
    q, r = qr(a)
    moved = intrinsics.solve_lower(r.T, ta.T).T
    inner = q.T @ moved
    low = np.tril(inner, -1)
    turn = low - low.T
    return (q, r), (q @ turn + moved - q @ inner, (inner - turn) @ r)


qr = Ruled(intrinsics.qr, _qr_jvp)
