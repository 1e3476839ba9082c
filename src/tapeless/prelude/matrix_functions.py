"""Square roots and logarithms of matrices, and the polar factors.

Note [Slopes of matrix functions]
For a function f of matrices, f of the blocks (A, E; 0, A) is (f(A), L; 0, f(A)), where L is the derivative of f at A along E. It
is linear in E; what takes adjoints back is the derivative at the transpose. So both modes are the function itself, of
matrices of twice the size, to any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tapeless.prelude import factorisations
from tapeless.prelude.registry import Ruled, stands_for

STEPS = 60
FAR, NEAR = 1e-2, 1e-6  # from the end of the iteration
LOST = 1e5  # as many roundings of a root are taken
# Nodes and weights of Gauss and Legendre on the interval from 0 to 1
NODES = tuple((1 + x) / 2 for x in np.polynomial.legendre.leggauss(8)[0].tolist())
WEIGHTS = tuple(w / 2 for w in np.polynomial.legendre.leggauss(8)[1].tolist())


def _blocks(a: Any, e: Any) -> Any:
    top = np.concatenate([a, e], axis=1)
    return np.concatenate([top, np.concatenate([np.zeros_like(a), a], axis=1)])


def _slope(function: Any, a: Any, e: Any) -> Any:
    """The derivative along e, which is brought to the size of a: Note [Slopes of matrix functions]."""
    n = a.shape[0]
    ratio = np.linalg.norm(a) / np.linalg.norm(e)
    usual = (ratio > 0) & (ratio < np.inf)
    factor = np.exp2(
        np.rint(np.log2(np.where(usual, ratio, 1.0)))
    )  # a power of 2: exact, and a constant to derivatives
    return function(_blocks(a, factor * e))[:n, n:] / factor


def _with_slope(function: Callable[[Any], Any]) -> Ruled:
    def jvp(primals: Any, tangents: Any) -> Any:
        (a,), (ta,) = primals, tangents
        return found(a), _slope(found, a, ta)

    def fwd(a: Any) -> Any:
        return found(a), a

    def bwd(kept: Any, adjoint: Any) -> Any:
        return (_slope(found, kept.T, adjoint),)

    found = Ruled(function, jvp, fwd, bwd)
    return found


# -- square roots


def _square_root(a: Any) -> Any:
    """Newton's iteration in products (Denman and Beavers), scaled by determinants as long as it is far from the end."""
    n = a.shape[0]
    one = np.eye(n, dtype=a.dtype)
    enough = n * np.finfo(a.dtype).eps
    m, x = a, a
    rest: Any = np.linalg.norm(a - one) + 1.0
    before: Any = np.inf
    steps = 0
    while rest > enough and steps < STEPS and (rest > NEAR or rest < before):
        scale = np.exp(np.where(rest > FAR, -np.linalg.slogdet(m)[1] / (2 * n), 0.0))
        inverse = np.linalg.inv(m) / scale**2
        x = scale * (x + x @ inverse) / 2
        m = (one + (scale**2 * m + inverse) / 2) / 2
        rest, before, steps = np.linalg.norm(m - one), rest, steps + 1
    if not rest <= NEAR:
        raise LinAlgError("the matrix has no principal square root among matrices of this type")
    if not np.linalg.norm(x @ x - a) <= LOST * enough * np.linalg.norm(x) ** 2:
        raise LinAlgError("the square root has too few digits: the matrix is nearly singular")
    return x


square_root = _with_slope(_square_root)


# -- logarithms


def _logarithm(a: Any) -> Any:
    """2^k log(a^(1 / 2^k)); near 1 the logarithm of 1 + x is the integral of x / (1 + t x) for t from 0 to 1."""
    one = np.eye(a.shape[0], dtype=a.dtype)
    factor = 1.0
    root = a
    while np.linalg.norm(root - one) > 0.1:
        root = _square_root(root)
        factor = 2 * factor
    x = root - one
    found = np.zeros_like(a)
    nodes, weights = np.asarray(NODES), np.asarray(WEIGHTS)
    for k in range(nodes.shape[0]):
        found += weights[k] * np.linalg.solve(one + nodes[k] * x, x)
    return factor * found


logarithm = _with_slope(_logarithm)


def _square(A: Any) -> Any:
    a = np.asarray(A)
    if a.shape[0] != a.shape[1]:
        raise ValueError("expected a square matrix")
    if not np.all(np.isfinite(a)):
        raise ValueError("array must not contain infs or NaNs")
    return a if a.dtype.kind == "f" or a.dtype.kind == "c" else a.astype(float)


@stands_for("scipy.linalg.sqrtm")
def sqrtm(A: Any) -> Any:
    return square_root(_square(A))


@stands_for("scipy.linalg.logm")
def logm(A: Any) -> Any:
    return logarithm(_square(A))


@stands_for("scipy.linalg.polar")
def polar(a: Any, side: str = "right") -> Any:
    u, s, vt = factorisations.singular_values(np.asarray(a) * 1.0)
    v = np.conj(vt.T)
    return u @ vt, (v * s) @ vt if side == "right" else (u * s) @ np.conj(u.T)
