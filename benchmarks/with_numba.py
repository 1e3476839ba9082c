"""The workloads as a Numba user writes them: explicit loops, `prange` where iterations are independent.

`compile_for` compiles a function for one thread or for several: `prange` is a plain `range` unless `parallel=True`.
Numba may use what C may: contraction everywhere, and in the functions of `REORDERED` the reordering of sums.
"""

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange

REORDERED = {"gmm", "kmeans", "logsumexp", "nbody"}


def compile_for(name: str, *, parallel: bool) -> Callable[..., Any]:
    """The named function of this module compiled for one thread, or for several."""
    python = globals()[name]
    alias = FunctionType(python.__code__, globals(), name)
    alias.__qualname__ = f"{name}_parallel" if parallel else name  # Numba's disk cache goes by this name
    fastmath = {"contract", "reassoc"} if name in REORDERED else {"contract"}
    cached = name != "hist"  # Numba cannot cache what asks for the number of threads
    return njit(alias, parallel=parallel, fastmath=fastmath, cache=cached)


def scalar_loop(x, a, b, c, n):
    total = 0.0
    for _ in range(n):
        x = a * math.sin(b * x + c)
        total += x * x
    return total / n


def bessel(nu, z):
    out = np.empty_like(z)
    for i in prange(len(z)):
        half = 0.5 * z[i]
        square = half * half
        term = 1.0
        for j in range(1, nu + 1):
            term *= half / j
        total = term
        k = 0
        while abs(term) > 1e-12:
            k += 1
            term *= -square / (k * (k + nu))
            total += term
        out[i] = total
    return out


def spmv(start, column, value, x):
    y = np.empty(len(start) - 1)
    for i in prange(len(y)):
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += value[e] * x[column[e]]
        y[i] = total
    return y


def heat(start, steps, rate):
    u, v = start.copy(), start.copy()
    rows, cols = u.shape
    for _ in range(steps):
        for i in prange(1, rows - 1):
            for j in range(1, cols - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                v[i, j] = u[i, j] + rate * (around - 4.0 * u[i, j])
        u, v = v, u
    return u


@njit(cache=True, fastmath={"contract"})
def _logsumexp(x):
    top = -np.inf
    for v in x:
        top = max(top, v)
    total = 0.0
    for v in x:
        total += math.exp(v - top)
    return top + math.log(total)


def gmm(x, alpha, mu, q, l, m, gamma):
    n, d = x.shape
    k = len(alpha)
    Q, bias = np.empty((k, d, d)), np.empty(k)
    prior = 0.0
    for c in range(k):
        at, logdet, squares = 0, 0.0, 0.0
        for j in range(d):
            logdet += q[c, j]
            Q[c, j, j] = math.exp(q[c, j])
            squares += Q[c, j, j] * Q[c, j, j]
            for i in range(j + 1, d):
                Q[c, i, j] = l[c, at]
                squares += l[c, at] * l[c, at]
                at += 1
        bias[c] = alpha[c] + logdet
        prior += m * logdet - 0.5 * gamma * gamma * squares
    likelihood = 0.0
    for p in prange(n):
        centred, score = np.empty(d), np.empty(k)
        for c in range(k):
            for j in range(d):
                centred[j] = x[p, j] - mu[c, j]
            square = 0.0
            for i in range(d):
                z = 0.0
                for j in range(i + 1):
                    z += Q[c, i, j] * centred[j]
                square += z * z
            score[c] = bias[c] - 0.5 * square
        likelihood += _logsumexp(score)
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d + 1):
        log_gamma += math.lgamma(0.5 * freedom + 0.5 * (1 - j))
    prior += k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma)
    return -0.5 * n * d * math.log(2.0 * math.pi) - n * _logsumexp(alpha) + likelihood + prior


@njit(cache=True, fastmath={"contract"})
def _rotate(r0, r1, r2, y0, y1, y2):
    square = r0 * r0 + r1 * r1 + r2 * r2
    if square == 0.0:
        return y0 + r1 * y2 - r2 * y1, y1 + r2 * y0 - r0 * y2, y2 + r0 * y1 - r1 * y0
    theta = math.sqrt(square)
    c, s = math.cos(theta), math.sin(theta)
    a0, a1, a2 = r0 / theta, r1 / theta, r2 / theta
    along = (a0 * y0 + a1 * y1 + a2 * y2) * (1.0 - c)
    return (
        y0 * c + (a1 * y2 - a2 * y1) * s + a0 * along,
        y1 * c + (a2 * y0 - a0 * y2) * s + a1 * along,
        y2 * c + (a0 * y1 - a1 * y0) * s + a2 * along,
    )


def ba(cameras, points, weights, features, camera_of, point_of):
    p = len(weights)
    residuals, weight_errors = np.empty((p, 2)), np.empty(p)
    for i in prange(p):
        camera, point, w = cameras[camera_of[i]], points[point_of[i]], weights[i]
        z0, z1, z2 = _rotate(
            camera[0],
            camera[1],
            camera[2],
            point[0] - camera[3],
            point[1] - camera[4],
            point[2] - camera[5],
        )
        p0, p1 = z0 / z2, z1 / z2
        s = p0 * p0 + p1 * p1
        scale = camera[6] * (1.0 + camera[9] * s + camera[10] * s * s)
        residuals[i, 0] = w * (scale * p0 + camera[7] - features[i, 0])
        residuals[i, 1] = w * (scale * p1 + camera[8] - features[i, 1])
        weight_errors[i] = 1.0 - w * w
    return residuals, weight_errors


@njit(cache=True, fastmath={"contract"})
def _sigmoid(v):
    return 1.0 / (1.0 + math.exp(-v))


def lstm(weights, extra, state, sequence):
    state = state.copy()
    layers, width = len(state) // 2, state.shape[1]
    u = np.empty(width)
    total = 0.0
    for t in range(len(sequence) - 1):
        for j in range(width):
            u[j] = sequence[t, j] * extra[0, j]
        for i in range(layers):
            w, bias = weights[2 * i], weights[2 * i + 1]
            hidden, cell = state[2 * i], state[2 * i + 1]
            for j in range(width):
                forget = _sigmoid(u[j] * w[j] + bias[j])
                ingate = _sigmoid(hidden[j] * w[width + j] + bias[width + j])
                outgate = _sigmoid(u[j] * w[2 * width + j] + bias[2 * width + j])
                change = math.tanh(hidden[j] * w[3 * width + j] + bias[3 * width + j])
                cell[j] = cell[j] * forget + ingate * change
                hidden[j] = outgate * math.tanh(cell[j])
                u[j] = hidden[j]
        exps = 0.0
        for j in range(width):
            u[j] = u[j] * extra[1, j] + extra[2, j]
            exps += math.exp(u[j])
        shift = math.log(2.0 + exps)
        for j in range(width):
            total += sequence[t + 1, j] * (u[j] - shift)
    return -total / ((len(sequence) - 1) * width)


def kmeans(points, centroids):
    n, d = points.shape
    k = len(centroids)
    cost = 0.0
    for i in prange(n):
        nearest = np.inf
        for c in range(k):
            distance = 0.0
            for j in range(d):
                diff = points[i, j] - centroids[c, j]
                distance += diff * diff
            nearest = min(nearest, distance)
        cost += nearest
    return cost


def logsumexp(x):
    top = -np.inf
    for i in prange(len(x)):
        top = max(top, x[i])
    total = 0.0
    for i in prange(len(x)):
        total += math.exp(x[i] - top)
    return top + math.log(total)


def hist(bins, keys, weights):
    parts = get_num_threads()
    private = np.zeros((parts, bins))
    chunk = (len(keys) + parts - 1) // parts
    for part in prange(parts):
        mine = private[part]
        for i in range(part * chunk, min((part + 1) * chunk, len(keys))):
            mine[keys[i]] += weights[i]
    return private.sum(axis=0)


def nbody(position, velocity, mass, steps, dt, softening):
    pos, vel = position.copy(), velocity.copy()
    n = len(mass)
    x, y, z = pos[0], pos[1], pos[2]
    soft = softening * softening
    for _ in range(steps):
        for i in prange(n):
            xi, yi, zi = x[i], y[i], z[i]
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(n):
                dx, dy, dz = x[j] - xi, y[j] - yi, z[j] - zi
                square = dx * dx + dy * dy + dz * dz + soft
                pull = mass[j] / (square * math.sqrt(square))
                ax += pull * dx
                ay += pull * dy
                az += pull * dz
            vel[0, i] += dt * ax
            vel[1, i] += dt * ay
            vel[2, i] += dt * az
        pos += dt * vel
    return pos, vel


def floyd(distance):
    d = distance.copy()
    n = len(d)
    for k in range(n):
        for i in prange(n):
            through = d[i, k]
            for j in range(n):
                path = through + d[k, j]
                d[i, j] = path if path < d[i, j] else d[i, j]
    return d
