"""Inputs of the workloads.

Each function gives the positional arguments of its workload, drawn from a fixed seed. `small=True` gives a size that
plain Python can run too, for checks.
"""

from typing import Any, TypeAlias

import numpy as np

Inputs: TypeAlias = tuple[Any, ...]


def _rng() -> np.random.Generator:
    return np.random.default_rng(31337)


def scalar_loop(small: bool = False) -> Inputs:
    """(x, a, b, c, steps): a stable cycle, so that rounding errors do not grow."""
    return 0.5, 1.9, 1.1, 0.2, 1_000 if small else 1_000_000


def bessel(small: bool = False) -> Inputs:
    """(nu, z)"""
    return 2, _rng().uniform(0.0, 10.0, 100 if small else 100_000)


def spmv(small: bool = False) -> Inputs:
    """(start, column, value, x): compressed rows, ten entries per row, columns sorted in each row."""
    rows, per_row = (50, 5) if small else (100_000, 10)
    rng = _rng()
    start = np.arange(rows + 1) * per_row
    column = np.sort(rng.integers(0, rows, (rows, per_row)), axis=1).ravel()
    return start, column, rng.normal(size=rows * per_row), rng.normal(size=rows)


def heat(small: bool = False) -> Inputs:
    """(u, steps, rate)"""
    size, steps = (16, 5) if small else (512, 100)
    return _rng().uniform(size=(size, size)), steps, 0.2


def gmm(small: bool = False) -> Inputs:
    """(x, alpha, mu, q, l, m, gamma): drawn in GradBench's order."""
    n, d, k = (20, 4, 3) if small else (1000, 64, 50)
    rng = _rng()
    x, alpha = rng.normal(size=(n, d)), rng.normal(size=k)
    mu, q = rng.uniform(size=(k, d)), rng.normal(size=(k, d))
    return x, alpha, mu, q, rng.normal(size=(k, d * (d - 1) // 2)), 0, 1.0


def ba(small: bool = False) -> Inputs:
    """(cameras, points, weights, features, camera_of, point_of): each point is seen by several cameras."""
    n, m, p = (3, 5, 40) if small else (200, 20_000, 100_000)
    rng = _rng()
    cameras = np.empty((n, 11))
    cameras[:, 0:3] = rng.normal(scale=0.3, size=(n, 3))  # rotation
    cameras[0, 0:3] = 0.0  # one camera takes the branch of no rotation
    cameras[:, 3:6] = rng.normal(scale=0.5, size=(n, 3))  # centre
    cameras[:, 6] = rng.uniform(400.0, 600.0, n)  # focal length
    cameras[:, 7:9] = rng.normal(scale=5.0, size=(n, 2))  # principal point
    cameras[:, 9:11] = rng.normal(scale=0.01, size=(n, 2))  # radial distortion
    points = rng.normal(size=(m, 3)) + np.array([0.0, 0.0, 12.0])
    weights, features = rng.uniform(0.5, 1.5, p), rng.normal(scale=50.0, size=(p, 2))
    return (
        cameras,
        points,
        weights,
        features,
        rng.integers(0, n, p),
        np.sort(rng.integers(0, m, p)),
    )


def lstm(small: bool = False) -> Inputs:
    """(weights, extra, state, sequence)"""
    layers, length, bits = (2, 8, 7) if small else (2, 1024, 14)
    rng = _rng()
    state, weights = rng.uniform(size=(2 * layers, bits)), rng.uniform(size=(2 * layers, 4 * bits))
    extra = rng.uniform(size=(3, bits))
    return weights, extra, state, rng.integers(0, 2, (length, bits)).astype(np.float64)


def kmeans(small: bool = False) -> Inputs:
    """(points, centroids): the centroids are the last points."""
    k, n, d = (3, 50, 2) if small else (100, 10_000, 16)
    points = _rng().uniform(size=(n, d))
    return points, points[-k:].copy()


def logsumexp(small: bool = False) -> Inputs:
    """(x,)"""
    return (_rng().uniform(size=100 if small else 1_280_000),)


def hist(small: bool = False) -> Inputs:
    """(bins, keys, weights)"""
    bins, n = (10, 100) if small else (10_000, 10_000_000)
    rng = _rng()
    return bins, rng.integers(0, bins, n), rng.uniform(size=n)


def nbody(small: bool = False) -> Inputs:
    """(position, velocity, mass, steps, dt, softening): positions and velocities are (3, n)."""
    n, steps = (8, 3) if small else (1000, 10)
    rng = _rng()
    position, velocity = rng.normal(size=(3, n)), 0.1 * rng.normal(size=(3, n))
    return position, velocity, rng.uniform(0.5, 1.5, n) / n, steps, 0.01, 0.05


def floyd(small: bool = False) -> Inputs:
    """(distance,): a dense graph, zero on the diagonal."""
    n = 12 if small else 300
    distance = _rng().uniform(1.0, 100.0, (n, n))
    np.fill_diagonal(distance, 0.0)
    return (distance,)
