"""The workloads as a NumPy user writes them: whole-array expressions wherever the workload allows."""

import math
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.special import gammaln

Array: TypeAlias = np.ndarray[Any, Any]


def scalar_loop(x: float, a: float, b: float, c: float, n: int) -> float:
    total = 0.0
    for _ in range(n):
        x = a * math.sin(b * x + c)
        total += x * x
    return total / n


def bessel(nu: int, z: Array) -> Array:
    square = (0.5 * z) ** 2
    term = (0.5 * z) ** nu / math.factorial(nu)
    total = term.copy()
    k = 0
    while np.any(np.abs(term) > 1e-12):
        k += 1
        term *= -square / (k * (k + nu))
        total += term
    return total


def spmv(start: Array, column: Array, value: Array, x: Array) -> Array:
    return np.add.reduceat(value * x[column], start[:-1])


def heat(u: Array, steps: int, rate: float) -> Array:
    u, v = u.copy(), u.copy()
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + rate * (around - 4.0 * u[1:-1, 1:-1])
        u, v = v, u
    return u


def logsumexp(x: Array) -> Any:
    top = x.max()
    return top + np.log(np.exp(x - top).sum())


def gmm(x: Array, alpha: Array, mu: Array, q: Array, l: Array, m: int, gamma: float) -> Any:
    n, d = x.shape
    k = len(alpha)
    columns, rows = np.triu_indices(d, 1)
    Q = np.zeros((k, d, d))
    Q[:, rows, columns] = l
    Q[:, range(d), range(d)] = np.exp(q)
    logdet = q.sum(axis=1)
    score = np.empty((k, n))
    for c in range(k):
        z = (x - mu[c]) @ Q[c].T
        score[c] = alpha[c] + logdet[c] - 0.5 * np.square(z).sum(axis=1)
    top = score.max(axis=0)
    likelihood = (top + np.log(np.exp(score - top).sum(axis=0))).sum()
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * np.log(np.pi) + gammaln(0.5 * (freedom - np.arange(d))).sum()
    prior = k * (freedom * d * (np.log(gamma) - 0.5 * np.log(2.0)) - log_gamma)
    prior += m * logdet.sum() - 0.5 * gamma**2 * np.square(Q).sum()
    return -0.5 * n * d * np.log(2.0 * np.pi) - n * logsumexp(alpha) + likelihood + prior


def ba(
    cameras: Array,
    points: Array,
    weights: Array,
    features: Array,
    camera_of: Array,
    point_of: Array,
) -> tuple[Array, Array]:
    camera = cameras[camera_of]
    r, y = camera[:, 0:3], points[point_of] - camera[:, 3:6]
    theta = np.linalg.norm(r, axis=1, keepdims=True)
    still = theta == 0.0
    axis = r / np.where(still, 1.0, theta)
    along = (axis * y).sum(axis=1, keepdims=True) * (1.0 - np.cos(theta))
    turned = y * np.cos(theta) + np.cross(axis, y) * np.sin(theta) + axis * along
    z = np.where(still, y + np.cross(r, y), turned)
    projected = z[:, 0:2] / z[:, 2:3]
    s = np.square(projected).sum(axis=1)
    scale = camera[:, 6] * (1.0 + camera[:, 9] * s + camera[:, 10] * s * s)
    error = scale[:, None] * projected + camera[:, 7:9] - features
    return weights[:, None] * error, 1.0 - weights**2


def _sigmoid(v: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-v))


def lstm(weights: Array, extra: Array, state: Array, sequence: Array) -> Any:
    layers, width = len(state) // 2, state.shape[1]
    blocks = weights.reshape(layers, 2, 4, width)
    hidden, cell = state[0::2].copy(), state[1::2].copy()
    total = 0.0
    for now, following in pairwise(sequence):
        u = now * extra[0]
        for i in range(layers):
            w, bias = blocks[i]
            forget = _sigmoid(u * w[0] + bias[0])
            ingate = _sigmoid(hidden[i] * w[1] + bias[1])
            outgate = _sigmoid(u * w[2] + bias[2])
            change = np.tanh(hidden[i] * w[3] + bias[3])
            cell[i] = cell[i] * forget + ingate * change
            u = hidden[i] = outgate * np.tanh(cell[i])
        y = u * extra[1] + extra[2]
        total += following @ (y - np.log(2.0 + np.exp(y).sum()))
    return -total / ((len(sequence) - 1) * width)


def kmeans(points: Array, centroids: Array) -> Any:
    squares = np.square(points).sum(axis=1)[:, None] + np.square(centroids).sum(axis=1)
    return (squares - 2.0 * points @ centroids.T).min(axis=1).sum()


def hist(bins: int, keys: Array, weights: Array) -> Array:
    return np.bincount(keys, weights, minlength=bins)


def nbody(
    position: Array, velocity: Array, mass: Array, steps: int, dt: float, softening: float
) -> tuple[Array, Array]:
    pos, vel = position.copy(), velocity.copy()
    for _ in range(steps):
        offset = pos[:, None, :] - pos[:, :, None]
        square = np.square(offset).sum(axis=0) + softening**2
        vel += dt * (offset * (mass / (square * np.sqrt(square)))).sum(axis=2)
        pos += dt * vel
    return pos, vel


def floyd(distance: Array) -> Array:
    d = distance.copy()
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d
