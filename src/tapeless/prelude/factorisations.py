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

Note [Phases]
A complex vector of an eigenvalue may be multiplied by any number of size 1. LAPACK fixes that number: the first elements of the
vectors of `eigh` are real, so are those of the right or of the left singular vectors, and the largest elements of the vectors of
`eig`. Derivatives keep them real. Where they are not, functions that see the phase have no derivative, and what they get is NaN. R of `qr` has a real diagonal.

Note [Complex adjoints]
The adjoint of a complex number has the slope by its imaginary part with the other sign. The rules below conjugate it first, so
that all products are those of Hermitian matrices, and conjugate what they give back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude import intrinsics
from tapeless.prelude.registry import Ruled

CLOSE = 64
FAINT = 4096


def _turned(x: Any) -> Any:
    return np.conj(x.T)


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


# -- phases


def _is_real(row: Any) -> Any:
    return np.linalg.norm(row.imag, np.inf) <= CLOSE * np.finfo(row.dtype).eps


def _phases(moved: Any, row: Any) -> Any:
    """What keeps a row of first elements real that would move so: Note [Phases]. NaN where it is not real."""
    found = _quotients(-moved.imag, row.real, 1.0, 1.0)
    return np.where(_is_real(row), found, np.nan)


def _phase_adjoints(turns: Any, row: Any, size: Any) -> Any:
    """The adjoints of a row of first elements, for those of the phases."""
    found = _quotients(turns, np.where(_is_real(row), row.real, 0.0), size, 1.0)
    return -1j * found


def _turns(v: Any, dv: Any) -> Any:
    """What a change of the phases of the columns of v changes."""
    return np.sum(np.conj(v) * dv, axis=0).imag


# -- eigenvalues of Hermitian matrices


def _eigh_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (ta,) = primals, tangents
    w, v = eigh(a)
    inner = _turned(v) @ _hermitian(ta) @ v
    moved = v @ _quotients(_off_diagonal(inner), _gaps(w), _largest(inner), _largest(w))
    if np.iscomplexobj(a):
        moved = moved + v * (1j * _phases(moved[0], v[0]))
    return (w, v), (np.diagonal(inner).real, moved)


def _gaps(w: Any) -> Any:
    """w_j - w_i, and something that is not 0 on the diagonal."""
    return w - w[:, None] + np.eye(w.shape[0], dtype=w.dtype) * _largest(w)


def _hermitian(a: Any) -> Any:
    """With the lower triangle of a."""
    low = np.tril(a, -1)
    return low + _turned(low) + np.diag(np.diagonal(a).real)


def _eigh_fwd(a: Any) -> Any:
    w, v = eigh(a)
    return (w, v), (w, v)


def _eigh_bwd(kept: Any, adjoint: Any) -> Any:
    w, v = kept
    dw, dv = adjoint[0], np.conj(adjoint[1])
    if np.iscomplexobj(v):
        row = dv[0] + _phase_adjoints(_turns(v, dv), v[0], _largest(dv))
        dv = np.concatenate([row[None], dv[1:]])
    m = _turned(v) @ dv
    inner = np.diag(dw) + _agree(w, dw) + _quotients((m - _turned(m)) / 2, _gaps(w), _largest(m), _largest(w))
    whole = v @ inner @ _turned(v)
    return (np.conj(np.tril(whole) + np.tril(_turned(whole), -1)),)


eigh = Ruled(intrinsics.eigh, _eigh_jvp, _eigh_fwd, _eigh_bwd)


# -- eigenvalues of any matrix


def _eig_jvp(primals: Any, tangents: Any) -> Any:
    """Vectors have length 1 and a real largest element: Note [Phases]."""
    (a,), (ta,) = primals, tangents
    w, v = eig(a)
    inner = np.linalg.solve(v, ta @ v)
    moved = v @ _quotients(_off_diagonal(inner), _gaps(w), _largest(inner), _largest(w))
    moved = moved - v * np.sum(np.conj(v) * moved, axis=0).real
    top = _largest_of_columns(v)
    turn = _phases(np.sum(np.where(top, moved, 0.0), axis=0), np.sum(np.where(top, v, 0.0), axis=0))
    return (w, v), (np.diagonal(inner), moved + v * (1j * turn))


def _largest_of_columns(v: Any) -> Any:
    """Where the largest element of each column is that is real."""
    sizes = np.where(np.abs(v.imag) <= CLOSE * np.finfo(v.dtype).eps, np.abs(v.real), 0.0)
    return np.arange(v.shape[0])[:, None] == np.argmax(sizes, axis=0)


def _eig_fwd(a: Any) -> Any:
    w, v = eig(a)
    return (w, v), (w, v)


def _eig_bwd(kept: Any, adjoint: Any) -> Any:
    w, v = kept
    dw, dv = np.conj(adjoint[0]), np.conj(adjoint[1])
    top = _largest_of_columns(v)
    turns = _phase_adjoints(_turns(v, dv), np.sum(np.where(top, v, 0.0), axis=0), _largest(dv))
    dv = dv + np.where(top, turns, 0.0)
    dv = dv - v * np.sum(np.conj(v) * dv, axis=0).real
    m = _off_diagonal(_turned(v) @ dv)
    inner = np.diag(dw) + _agree(w, dw) + _quotients(m, np.conj(_gaps(w)), _largest(m), _largest(w))
    return (np.conj(np.linalg.solve(_turned(v), inner @ _turned(v))),)


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
    u, s, vt = svd(a, least)
    v = _turned(vt)
    p = _turned(u) @ ta @ v
    first, second = _halves(_off_diagonal(p + _turned(p)) / 2, (p - _turned(p)) / 2, s, _largest(p))
    tu = u @ (first + second) + _over(ta @ v - u @ p, s, _largest(ta))
    tv = v @ (first - second) + _over(_turned(ta) @ u - v @ _turned(p), s, _largest(ta))
    if np.iscomplexobj(a):
        right = _is_real(v[0])
        turn = 1j * _phases(np.where(right, tv[0], tu[0]), np.where(right, v[0], u[0]))
        tu, tv = tu + u * turn, tv + v * turn
    return (u, s, vt), (tu, np.diagonal(p).real, _turned(tv))


def _svd_fwd(a: Any, least: Any) -> Any:
    u, s, vt = svd(a, least)
    return (u, s, vt), (u, s, vt)


def _svd_bwd(kept: Any, adjoint: Any) -> Any:
    u, s, vt = kept
    du, ds, dv = np.conj(adjoint[0]), adjoint[1], adjoint[2].T
    v = _turned(vt)
    if np.iscomplexobj(u):
        right = _is_real(v[0])
        size = np.maximum(_largest(du), _largest(dv))
        row = _phase_adjoints(_turns(u, du) + _turns(v, dv), np.where(right, v[0], u[0]), size)
        du = np.concatenate([(du[0] + np.where(right, 0.0, row))[None], du[1:]])
        dv = np.concatenate([(dv[0] + np.where(right, row, 0.0))[None], dv[1:]])
    m, n = _turned(u) @ du, _turned(v) @ dv
    x, y = m - _turned(m), n - _turned(n)
    first, second = _halves(_off_diagonal(x + y) / 2, (x - y) / 2, s, np.maximum(_largest(m), _largest(n)))
    inner = np.diag(ds) + _agree(s, ds) + first + second
    outside = _over(du - u @ m, s, _largest(du)) @ vt + u @ _turned(_over(dv - v @ n, s, _largest(dv)))
    return (np.conj(u @ inner @ vt + outside), None)


svd = Ruled(intrinsics.svd, _svd_jvp, _svd_fwd, _svd_bwd)


def singular_values(a: Any) -> Any:
    """U, s and V^T of one matrix, of the smaller size."""
    return svd(a, np.zeros(min(a.shape[0], a.shape[1])))


# -- Q and R


def _qr_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (ta,) = primals, tangents
    q, r = qr(a)
    moved = intrinsics.solve_lower(r.T, ta.T).T
    inner = _turned(q) @ moved
    low = np.tril(inner, -1)
    turn = low - _turned(low)
    if np.iscomplexobj(a):
        turn = turn + np.diag(1j * np.diagonal(inner).imag)
    return (q, r), (q @ turn + moved - q @ inner, (inner - turn) @ r)


qr = Ruled(intrinsics.qr, _qr_jvp)


# -- the other columns of a square matrix


def _complement(q: Any) -> Any:
    """An orthonormal basis of what is orthogonal to the orthonormal columns of q: vectors of its projector."""
    rest = np.eye(q.shape[0], dtype=q.dtype) - q @ _turned(q)
    return intrinsics.eigh(rest)[1][:, q.shape[1] :]


def _complement_jvp(primals: Any, tangents: Any) -> Any:
    """Any basis would do, so that the vectors have no derivative: only where the space stays are they sure to."""
    (q,), (tq,) = primals, tangents
    c = complement(q)
    moved = _turned(tq) @ c
    still = _largest(moved) <= FAINT * np.finfo(q.dtype).eps * _largest(tq)
    return c, np.where(still, 0.0, np.nan) * c


def _complement_fwd(q: Any) -> Any:
    c = complement(q)
    return c, (q, c)


def _complement_bwd(kept: Any, adjoint: Any) -> Any:
    """A function of the space does not see turns of the basis; NaN where this one does."""
    q, c = kept
    dc = np.conj(adjoint)
    m = _turned(c) @ dc
    seen = _largest(m - _turned(m)) > FAINT * np.finfo(q.dtype).eps * _largest(m)
    return (np.conj(np.where(seen, np.nan, -1.0) * (c @ (_turned(dc) @ q))),)


complement = Ruled(_complement, _complement_jvp, _complement_fwd, _complement_bwd)
