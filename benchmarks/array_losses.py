"""The losses of `benchmarks.losses` as a user of an array library writes them: whole-array expressions.

Each takes a `Library` of `benchmarks.libraries` and the arguments of its workload, arrays as that library's own.
"""

import math
from typing import Any

import numpy as np

from benchmarks.libraries import Library


def scalar_loop(lib: Library, x: Any, a: Any, b: Any, c: Any, n: int) -> Any:
    def step(_: Any, state: Any) -> Any:
        x, total = state
        x = a * lib.xp.sin(b * x + c)
        return x, total + x * x

    return lib.loop(n, step, (x, 0.0 * x))[1] / n


def bessel(lib: Library, nu: int, z: Any) -> Any:
    xp = lib.xp
    square = (0.5 * z) ** 2
    term = (0.5 * z) ** nu / math.factorial(nu)

    def going(state: Any) -> Any:
        return xp.any(xp.abs(state[1]) > 1e-12)

    def step(state: Any) -> Any:
        k, term, total = state
        k = k + 1
        term = term * (-square / (k * (k + nu)))
        return k, term, total + term

    return lib.while_loop(going, step, (0, term, term))[2].sum()


def with_rows(start: Any, column: Any, value: Any, x: Any) -> tuple[Any, ...]:
    """For libraries without loops: the row of each entry instead of where rows start."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start)), column, value, x


def spmv(lib: Library, row: Any, column: Any, value: Any, x: Any) -> Any:
    y = lib.add_at(len(x), row, value * x[column])
    return 0.5 * (y * y).sum()


def heat(lib: Library, start: Any, steps: int, rate: float) -> Any:
    def step(_: Any, u: Any) -> Any:
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return lib.with_inner(u, inner + rate * (around - 4.0 * inner))

    u = lib.loop(steps, step, start)
    return (u * u).sum()


def logsumexp(lib: Library, x: Any) -> Any:
    top = lib.xp.max(x)
    return top + lib.xp.log(lib.xp.exp(x - top).sum())


def gmm(lib: Library, x: Any, alpha: Any, mu: Any, q: Any, l: Any, m: int, gamma: float) -> Any:
    xp = lib.xp
    n, d = x.shape
    k = len(alpha)
    Q = lib.lower_triangle(xp.exp(q), l)
    z = (x[None] - mu[:, None]) @ xp.swapaxes(Q, 1, 2)
    logdet = q.sum(axis=1)
    score = (alpha + logdet)[:, None] - 0.5 * (z * z).sum(axis=2)
    top = xp.amax(score, axis=0)
    likelihood = (top + xp.log(xp.exp(score - top).sum(axis=0))).sum()
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (freedom - j)) for j in range(d))
    prior = k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma)
    prior = prior + m * logdet.sum() - 0.5 * gamma**2 * (Q * Q).sum()
    return -0.5 * n * d * math.log(2.0 * math.pi) - n * logsumexp(lib, alpha) + likelihood + prior


def ba(lib: Library, cameras: Any, points: Any, weights: Any, features: Any, camera_of: Any, point_of: Any) -> Any:
    xp = lib.xp
    r0, r1, r2, c0, c1, c2, focal, u0, u1, k1, k2 = cameras[camera_of].T
    x0, x1, x2 = points[point_of].T
    y0, y1, y2 = x0 - c0, x1 - c1, x2 - c2
    square = r0 * r0 + r1 * r1 + r2 * r2
    still = square == 0.0
    theta = xp.sqrt(xp.where(still, 1.0, square))
    c, s = xp.cos(theta), xp.sin(theta)
    a0, a1, a2 = r0 / theta, r1 / theta, r2 / theta
    along = (a0 * y0 + a1 * y1 + a2 * y2) * (1.0 - c)
    z0 = xp.where(still, y0 + r1 * y2 - r2 * y1, y0 * c + (a1 * y2 - a2 * y1) * s + a0 * along)
    z1 = xp.where(still, y1 + r2 * y0 - r0 * y2, y1 * c + (a2 * y0 - a0 * y2) * s + a1 * along)
    z2 = xp.where(still, y2 + r0 * y1 - r1 * y0, y2 * c + (a0 * y1 - a1 * y0) * s + a2 * along)
    p0, p1 = z0 / z2, z1 / z2
    s = p0 * p0 + p1 * p1
    scale = focal * (1.0 + k1 * s + k2 * s * s)
    e0 = weights * (scale * p0 + u0 - features[:, 0])
    e1 = weights * (scale * p1 + u1 - features[:, 1])
    off = 1.0 - weights * weights
    return 0.5 * ((e0 * e0).sum() + (e1 * e1).sum() + (off * off).sum())


def lstm(lib: Library, weights: Any, extra: Any, state: Any, sequence: Any) -> Any:
    xp = lib.xp
    layers, width = len(state) // 2, state.shape[1]
    steps = len(sequence) - 1
    blocks = weights.reshape(layers, 2, 4, width)

    def sigmoid(v: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-v))

    def step(t: Any, carried: Any) -> Any:
        hidden, cell, total = carried
        u = sequence[t] * extra[0]
        new_hidden, new_cell = [], []
        for i in range(layers):
            w, bias = blocks[i, 0], blocks[i, 1]
            forget = sigmoid(u * w[0] + bias[0])
            ingate = sigmoid(hidden[i] * w[1] + bias[1])
            outgate = sigmoid(u * w[2] + bias[2])
            change = xp.tanh(hidden[i] * w[3] + bias[3])
            new_cell.append(cell[i] * forget + ingate * change)
            u = outgate * xp.tanh(new_cell[i])
            new_hidden.append(u)
        y = u * extra[1] + extra[2]
        total = total + (sequence[t + 1] * (y - xp.log(2.0 + xp.exp(y).sum()))).sum()
        return tuple(new_hidden), tuple(new_cell), total

    start = tuple(state[2 * i] for i in range(layers)), tuple(state[2 * i + 1] for i in range(layers))
    total = lib.loop(steps, step, (*start, 0.0 * extra[0, 0]))[2]
    return -total / (steps * width)


def kmeans(lib: Library, points: Any, centroids: Any) -> Any:
    squares = (points * points).sum(axis=1)[:, None] + (centroids * centroids).sum(axis=1)
    return lib.xp.amin(squares - 2.0 * points @ centroids.T, axis=1).sum()


def hist(lib: Library, bins: int, keys: Any, weights: Any) -> Any:
    h = lib.add_at(bins, keys, weights)
    return (h * h).sum()


def nbody(lib: Library, position: Any, velocity: Any, mass: Any, steps: int, dt: float, softening: float) -> Any:
    xp = lib.xp

    def step(_: Any, state: Any) -> Any:
        pos, vel = state
        offset = pos[:, None, :] - pos[:, :, None]
        square = (offset * offset).sum(axis=0) + softening**2
        vel = vel + dt * (offset * (mass / (square * xp.sqrt(square)))).sum(axis=2)
        return pos + dt * vel, vel

    pos, _ = lib.loop(steps, step, (position, velocity))
    return (pos * pos).sum()


def floyd(lib: Library, distance: Any) -> Any:
    def step(k: Any, d: Any) -> Any:
        return lib.xp.minimum(d, d[:, k, None] + d[k])

    return lib.loop(len(distance), step, distance).sum()


PREPARE = {"spmv": with_rows}  # what is done to the arguments once, before anything is timed
