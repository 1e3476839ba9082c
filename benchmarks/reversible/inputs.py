"""The state and the constants of each program, drawn from a fixed seed.

Each function gives (state, constants): new arrays in every call. `small=True` gives a size for plain Python.
"""

import math
from typing import Any, TypeAlias

import numpy as np

Inputs: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


def _rng() -> np.random.Generator:
    return np.random.default_rng(31337)


def bessel(small: bool = False) -> Inputs:
    """J_2 near 1, as it was published: five terms, whatever z is."""
    z = _rng().uniform(0.95, 1.05, 20 if small else 10_000)
    return (np.zeros_like(z), z), {"order": 2, "least": 1e-8}


def _rows(rng: np.random.Generator, size: int, density: float) -> tuple[Any, Any, Any]:
    """Compressed rows of a square matrix: where they start, sorted columns, values."""
    filled = rng.random((size, size)) < density
    start = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    column = np.nonzero(filled)[1]
    return start, column, rng.normal(size=len(column))


def sparse_dot(small: bool = False) -> Inputs:
    rng, size, density = _rng(), 20 if small else 1000, 0.2 if small else 0.05
    a_start, a_column, a = _rows(rng, size, density)
    b_start, b_column, b = _rows(rng, size, density)
    return (0.0, a, b), {"a_start": a_start, "a_column": a_column, "b_start": b_start, "b_column": b_column}


def sparse_matvec(small: bool = False) -> Inputs:
    rng, size = _rng(), 20 if small else 1000
    start, column, value = _rows(rng, size, 0.2 if small else 0.05)
    return (rng.normal(size=size), value, rng.normal(size=size)), {"start": start, "column": column}


def petersen() -> tuple[Any, Any]:
    """Pairs of neighbours, and all others, of the Petersen graph."""
    outer = [(k, (k + 1) % 5) for k in range(5)]
    inner = [(5 + k, 5 + (k + 2) % 5) for k in range(5)]
    near = {tuple(sorted(pair)) for pair in (*outer, *inner, *((k, 5 + k) for k in range(5)))}
    far = {(i, j) for i in range(10) for j in range(i + 1, 10)} - near
    return np.array(sorted(near)), np.array(sorted(far))


def embedding(dimensions: int, count: int) -> Inputs:
    near, far = petersen()
    return (np.zeros(count), _rng().normal(size=(count, 10, dimensions))), {"near": near, "far": far}


def bundle(small: bool = False) -> Inputs:
    rng, p = _rng(), 20 if small else 10_000
    camera = np.empty((p, 11))
    camera[:, 0:3] = rng.normal(scale=0.3, size=(p, 3))
    camera[:, 3:6] = rng.normal(scale=0.5, size=(p, 3))
    camera[:, 6] = rng.uniform(400.0, 600.0, p)
    camera[:, 7:9] = rng.normal(scale=5.0, size=(p, 2))
    camera[:, 9:11] = rng.normal(scale=0.01, size=(p, 2))
    point = rng.normal(size=(p, 3)) + np.array([0.0, 0.0, 12.0])
    feature = rng.normal(scale=50.0, size=(p, 2))
    return (np.zeros((p, 2)), camera, point, rng.uniform(0.5, 1.5, p)), {"feature": feature}


def wishart_constant(n: int, d: int, k: int, m: int, gamma: float) -> float:
    """What of the log posterior does not depend on the parameters."""
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (freedom - j)) for j in range(d))
    prior = k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma)
    return prior - 0.5 * n * d * math.log(2.0 * math.pi)


def gmm(small: bool = False) -> Inputs:
    rng, n, d, k = _rng(), 20 if small else 1000, 4 if small else 10, 3 if small else 5
    x, alpha = rng.normal(size=(n, d)), rng.normal(size=k)
    mu, q = rng.uniform(size=(k, d)), rng.normal(size=(k, d))
    l = rng.normal(size=(k, d * (d - 1) // 2))
    constants = {"x": x, "m": 0, "gamma": 1.0, "constant": wishart_constant(n, d, k, 0, 1.0)}
    return (0.0, alpha, mu, q, l), constants


def leapfrog(bodies: int, steps: int) -> Inputs:
    """A heavy body, and light ones on nearly circular orbits far apart: not chaotic, so that there is a gradient after a
    million steps.
    """
    rng, h = _rng(), 0.01
    radius, angle = 1.5 ** np.arange(bodies), rng.uniform(0.0, 2.0 * np.pi, bodies)
    height = 0.1 * radius * rng.normal(size=bodies)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    v = np.stack([-np.sin(angle), np.cos(angle), np.zeros(bodies)], axis=1) / np.sqrt(radius)[:, None]
    mass = np.full(bodies, 1e-6)
    x[0], v[0], mass[0] = 0.0, 0.0, 1.0
    return (x, v), {"mass": mass, "steps": steps, "h": h}


def nice(small: bool = False) -> Inputs:
    rng, n, d, hidden, layers = _rng(), 10 if small else 1000, 2 if small else 8, 3 if small else 16, 4
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    w1, b1 = rng.normal(scale=0.5, size=(layers, d, hidden)), rng.normal(scale=0.5, size=(layers, hidden))
    w2, b2 = rng.normal(scale=0.3, size=(layers, hidden, d)), rng.normal(scale=0.3, size=(layers, d))
    return (x, y, w1, b1, w2, b2), {}
