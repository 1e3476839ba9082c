"""np.linalg and scipy.linalg, from a few factorisations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapeless.prelude import factorisations, intrinsics
from tapeless.prelude.intrinsics import each_matrix
from tapeless.prelude.registry import refuse, stands_for


def _floats(a: Any) -> Any:
    a = np.asarray(a)
    return a if np.issubdtype(a.dtype, np.inexact) else a.astype(np.float64)


def _finite(a: Any, check_finite: bool) -> Any:
    """A matrix of floats, tested as SciPy tests it."""
    a = _floats(a)
    if check_finite:
        if not np.all(np.isfinite(a)):
            raise ValueError("array must not contain infs or NaNs")
    return a


def _turned(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def _hermitian(a: Any, uplo: str) -> Any:
    """With the triangle that is to be read below the diagonal."""
    if uplo in ("L", "l"):
        return _floats(a)
    return np.conj(np.swapaxes(_floats(a), -1, -2))


@stands_for("np.linalg.eigh")
def eigh(a: Any, UPLO: str = "L") -> Any:
    w, v = each_matrix(factorisations.eigh, _hermitian(a, UPLO))
    return EighResult(w, v)


@stands_for("np.linalg.eigvalsh")
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return each_matrix(factorisations.eigh, _hermitian(a, UPLO))[0]


EighResult: Any = type(np.linalg.eigh(np.eye(1)))
EigResult: Any = type(np.linalg.eig(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))
QRResult: Any = type(np.linalg.qr(np.eye(1)))


def _complex(a: Any) -> Any:
    a = _floats(a)
    return a if np.iscomplexobj(a) else a.astype(np.complex64 if a.dtype == np.float32 else np.complex128)


@stands_for("np.linalg.eig")
def eig(a: Any) -> Any:
    """Complex, also where NumPy finds that all are real."""
    w, v = each_matrix(factorisations.eig, _complex(a))
    return EigResult(w, v)


@stands_for("np.linalg.eigvals")
def eigvals(a: Any) -> Any:
    return each_matrix(factorisations.eig, _complex(a))[0]


@stands_for("np.linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        refuse("np.linalg.svd: hermitian=True cannot be compiled", "leave it out if its default is meant.")
    u, s, vt = each_matrix(factorisations.singular_values, _floats(a))
    if not compute_uv:
        return s
    if full_matrices:
        u = each_matrix(_completed, u)
        vt = np.conj(_turned(each_matrix(_completed, np.conj(_turned(vt)))))
    return SVDResult(u, s, vt)


def _completed(q: Any) -> Any:
    """A square matrix whose first columns are those of q."""
    rest = np.zeros((q.shape[0], q.shape[0] - q.shape[1]), dtype=q.dtype)
    if q.shape[0] > q.shape[1]:
        rest[...] = factorisations.complement(q)
    return np.concatenate([q, rest], axis=1)


@stands_for("np.linalg.svdvals", "scipy.linalg.svdvals")
def svdvals(x: Any) -> Any:
    return each_matrix(factorisations.singular_values, _floats(x))[1]


def _qr_of(a: Any) -> Any:
    """The columns that have a row of R on the diagonal first; the others follow from Q."""
    size = min(a.shape[0], a.shape[1])
    q, r = factorisations.qr(a[:, :size])
    return q, np.concatenate([r, np.conj(q.T) @ a[:, size:]], axis=1)


@stands_for("np.linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r", "complete"):
        refuse("np.linalg.qr: this mode cannot be compiled", "use 'reduced', 'complete' or 'r'.")
    q, r = each_matrix(_qr_of, _floats(a))
    if mode == "complete":
        below = np.zeros((*r.shape[:-2], q.shape[-2] - q.shape[-1], r.shape[-1]), dtype=r.dtype)
        return QRResult(each_matrix(_completed, q), np.concatenate([r, below], axis=-2))
    return r if mode == "r" else QRResult(q, r)


# -- what follows from singular values


def _cut(s: Any, rcond: Any) -> Any:
    """Which singular values count."""
    return s > rcond * np.max(s, axis=-1, keepdims=True)


def _inverted(s: Any, kept: Any) -> Any:
    return np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)


@stands_for("np.linalg.pinv")
def pinv(a: Any, rcond: Any = None) -> Any:
    a = _floats(a)
    u, s, vt = each_matrix(factorisations.singular_values, a)
    limit = 1e-15 if rcond is None else rcond
    scaled = _inverted(s, _cut(s, limit))[..., :, None] * np.conj(_turned(u))
    return np.matmul(np.conj(_turned(vt)), scaled)


@stands_for("np.linalg.matrix_rank")
def matrix_rank(A: Any, tol: Any = None) -> Any:
    s = svdvals(A)
    epsilon = np.finfo(s.dtype).eps
    if tol is None:
        limit = np.max(s, axis=-1, keepdims=True) * (max(A.shape[-2], A.shape[-1]) * epsilon)
    else:
        limit = np.asarray(tol)[..., None]
    return np.sum(s > limit, axis=-1)


@stands_for("np.linalg.cond")
def cond(x: Any, p: Any = None) -> Any:
    if p is None or p == 2:
        s = svdvals(x)
        return s[..., 0] / s[..., -1]
    if p == -2:
        s = svdvals(x)
        return s[..., -1] / s[..., 0]
    return np.linalg.norm(x, p) * np.linalg.norm(np.linalg.inv(x), p)


def _least_squares(a: Any, b: Any, limit: Any) -> Any:
    """Solution, residuals, rank and singular values."""
    u, s, vt = factorisations.singular_values(a)
    kept = _cut(s, limit)
    right = np.conj(u.T) @ b
    scale = _inverted(s, kept)
    x = np.conj(vt.T) @ (scale * right if b.ndim == 1 else scale[:, None] * right)
    rest = b - a @ x
    residuals = np.sum(rest.real**2 + rest.imag**2, axis=0, keepdims=b.ndim == 1)
    return x, residuals, np.sum(kept), s


def _told(residuals: Any, a: Any, rank: Any) -> Any:
    """None of a matrix that has not more rows than columns, or not the rank of its columns."""
    return residuals[: residuals.shape[0] if a.shape[0] > a.shape[1] and rank == a.shape[1] else 0]


@stands_for("np.linalg.lstsq")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    a, b = _floats(a), _floats(b)
    limit = np.finfo(a.dtype).eps * max(a.shape[0], a.shape[1]) if rcond is None else rcond
    x, residuals, rank, s = _least_squares(a, b, limit)
    return x, _told(residuals, a, rank), rank.astype(np.int32), s


@stands_for("np.linalg.multi_dot")
def multi_dot(arrays: Any) -> Any:
    """From the left or from the right, whichever takes fewer multiplications."""
    first = arrays[0].shape[0] if arrays[0].ndim == 2 else 1
    last = arrays[-1].shape[1] if arrays[-1].ndim == 2 else 1
    sizes = [first, *[a.shape[0] for a in arrays[1:]], last]
    from_left, from_right = 0, 0
    for k in tuple(range(1, len(arrays))):
        from_left += first * sizes[k] * sizes[k + 1]
        from_right += sizes[k - 1] * sizes[k] * last
    if from_left <= from_right:
        found = arrays[0]
        for a in arrays[1:]:
            found = found @ a
    else:
        found = arrays[-1]
        for a in arrays[:-1][::-1]:
            found = a @ found
    return found


# -- scipy.linalg


@stands_for("scipy.linalg.eigh")
def scipy_eigh(a: Any, lower: bool = True, eigvals_only: bool = False, check_finite: bool = True) -> Any:
    w, v = each_matrix(factorisations.eigh, _hermitian(_finite(a, check_finite), "L" if lower else "U"))
    return w if eigvals_only else (w, v)


PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip


def _expm(a: Any) -> Any:
    """A quotient of polynomials of degree 13 in a / 2^s, squared s times (Higham 2005)."""
    size = np.linalg.norm(np.sum(np.abs(a), axis=0), np.inf)
    times = 0
    while 5.371920351148152 < size < np.inf:
        size = size / 2
        times += 1
    a = a * 0.5**times
    one = np.eye(a.shape[0], dtype=a.dtype)
    b = PADE
    two = a @ a
    four = two @ two
    six = four @ two
    odd = a @ (six @ (b[13] * six + b[11] * four + b[9] * two) + b[7] * six + b[5] * four + b[3] * two + b[1] * one)
    even = six @ (b[12] * six + b[10] * four + b[8] * two) + b[6] * six + b[4] * four + b[2] * two + b[0] * one
    found = np.linalg.solve(even - odd, even + odd)
    for _ in range(times):
        found = found @ found
    return found


@stands_for("scipy.linalg.expm")
def expm(A: Any) -> Any:
    return each_matrix(_expm, _floats(A))


@stands_for("scipy.linalg.block_diag")
def block_diag(*arrs: Any) -> Any:
    blocks = [np.atleast_2d(a) for a in arrs]
    rows, columns = sum([b.shape[0] for b in blocks]), sum([b.shape[1] for b in blocks])
    found = np.zeros((rows, columns), dtype=np.result_type(*[b.dtype for b in blocks]))
    i, j = 0, 0
    for b in blocks:
        found[i : i + b.shape[0], j : j + b.shape[1]] = b
        i, j = i + b.shape[0], j + b.shape[1]
    return found


@stands_for("scipy.linalg.eigvals")
def scipy_eigvals(a: Any, check_finite: bool = True) -> Any:
    return eigvals(_finite(a, check_finite))


@stands_for("scipy.linalg.lstsq")
def scipy_lstsq(a: Any, b: Any, cond: Any = None, check_finite: bool = True) -> Any:
    """The residual of one right side is a number, also where SciPy tells none."""
    a, b = _finite(a, check_finite), _finite(b, check_finite)
    x, residuals, rank, s = _least_squares(a, b, np.finfo(a.dtype).eps if cond is None else cond)
    return x, residuals[0] if b.ndim == 1 else _told(residuals, a, rank), int(rank), s


@stands_for("scipy.linalg.qr")
def scipy_qr(a: Any, mode: str = "full", check_finite: bool = True) -> Any:
    if mode not in ("full", "r", "economic"):
        refuse("scipy.linalg.qr: this mode cannot be compiled", "use 'full' or 'economic'.")
    q, r = qr(_finite(a, check_finite), "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


@stands_for("scipy.linalg.eigvalsh")
def scipy_eigvalsh(a: Any, lower: bool = True, check_finite: bool = True) -> Any:
    return eigvalsh(_finite(a, check_finite), "L" if lower else "U")


@stands_for("scipy.linalg.svdvals")
def scipy_svdvals(a: Any, check_finite: bool = True) -> Any:
    return svdvals(_finite(a, check_finite))


@stands_for("scipy.linalg.svd")
def scipy_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, check_finite: bool = True) -> Any:
    a = _finite(a, check_finite)
    if not compute_uv:
        return svdvals(a)
    u, s, vt = svd(a, full_matrices)
    return u, s, vt


def _triangle(a: Any, lower: bool, unit_diagonal: bool) -> Any:
    if not unit_diagonal:
        return a
    one = np.eye(a.shape[0], dtype=a.dtype)
    return np.tril(a, -1) + one if lower else np.triu(a, 1) + one


@stands_for("scipy.linalg.solve_triangular")
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Any:  # fmt: skip
    a, b = _finite(a, check_finite), _finite(b, check_finite)
    below = lower
    if trans in (1, "T", 2, "C"):
        a = np.conj(a.T) if trans in (2, "C") else a.T
        below = not lower
    a = _triangle(a, below, unit_diagonal)
    return intrinsics.solve_lower(a, b) if below else intrinsics.solve_upper(a, b)


@stands_for("scipy.linalg.cholesky")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """SciPy reads the triangle that it gives."""
    a = _finite(a, check_finite)
    if lower:
        return np.linalg.cholesky(a)
    return np.conj(np.linalg.cholesky(np.conj(a.T)).T)


@stands_for("scipy.linalg.cho_factor")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The other triangle is 0, where SciPy leaves what was there."""
    return cholesky(a, lower, False, check_finite), lower


@stands_for("scipy.linalg.cho_solve")
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    b = _finite(b, check_finite)
    if lower:
        return intrinsics.solve_upper(np.conj(c.T), intrinsics.solve_lower(c, b))
    return intrinsics.solve_upper(c, intrinsics.solve_lower(np.conj(c.T), b))


class _Factored(NamedTuple):
    """In the place of the factors and pivots of scipy.linalg.lu_factor: solves are by the matrix itself."""

    matrix: Any


@stands_for("scipy.linalg.lu_factor")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return _Factored(_finite(a, check_finite))


@stands_for("scipy.linalg.lu_solve")
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    a = lu_and_piv.matrix
    if trans == 1:
        a = a.T
    if trans == 2:
        a = np.conj(a.T)
    return np.linalg.solve(a, _finite(b, check_finite))


@stands_for("scipy.linalg.solve")
def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: Any = None, transposed: bool = False,
) -> Any:  # fmt: skip
    a = _finite(a, check_finite)
    if assume_a in ("sym", "her", "pos", "symmetric", "hermitian", "positive definite"):
        low = np.tril(a) if lower else np.conj(_turned(np.triu(a)))
        a = low + np.conj(_turned(np.tril(low, -1)))
    return np.linalg.solve(_turned(a) if transposed else a, _finite(b, check_finite))


@stands_for("scipy.linalg.inv")
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.inv(_finite(a, check_finite))


@stands_for("scipy.linalg.det")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.det(_finite(a, check_finite))


@stands_for("scipy.linalg.norm")
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """A number of Python where SciPy takes it from BLAS or LAPACK."""
    a = np.asarray(a)
    if check_finite:
        if not np.all(np.isfinite(a)):
            raise ValueError("array must not contain infs or NaNs")
    if axis is not None or keepdims:
        return np.linalg.norm(a, ord, axis, keepdims)
    found = np.linalg.norm(a, ord)
    by_library = (ord is None or ord == 2) if a.ndim == 1 else a.ndim == 2 and (ord == 1 or ord == np.inf)
    return float(found) if by_library and (a.dtype.kind == "f" or a.dtype.kind == "c") else found


@stands_for("scipy.linalg.pinv")
def scipy_pinv(a: Any, check_finite: bool = True) -> Any:
    return pinv(_finite(a, check_finite), max(a.shape[0], a.shape[1]) * np.finfo(_floats(a).dtype).eps)
