"""The workloads as a user of this project writes them: plain functions for `tp.function`, in the language of its API.

Each takes the positional arguments that `inputs` gives and leaves them unchanged.
"""

import math

import numpy as np

import tapeless as tp


def scalar_loop(x, a, b, c, n):
    total = 0.0
    for _ in range(n):
        x = a * math.sin(b * x + c)
        total += x * x
    return total / n


def bessel_j(nu, z):
    half = 0.5 * z
    square = half * half
    term = 1.0
    for i in range(1, nu + 1):
        term *= half / i
    total = term
    k = 0
    while abs(term) > 1e-12:
        k += 1
        term *= -square / (k * (k + nu))
        total += term
    return total


def bessel(nu, z):
    return tp.map(lambda v: bessel_j(nu, v), z)


def spmv(start, column, value, x):
    rows = len(start) - 1
    y = np.empty(rows)
    for i in tp.prange(rows):
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += value[e] * x[column[e]]
        y[i] = total
    return y


def heat(start, steps, rate):
    rows, cols = start.shape
    u = np.empty((rows, cols))
    v = np.empty((rows, cols))
    u[:] = start
    v[:] = start
    for _ in range(steps):
        for row in tp.prange(rows - 2):
            i = row + 1
            for j in range(1, cols - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                v[i, j] = u[i, j] + rate * (around - 4.0 * u[i, j])
        u, v = v, u
    return u


def logsumexp(x):
    top = x.max()
    return top + np.log(np.exp(x - top).sum())


def lower_triangle(q, l):
    """exp(q) on the diagonal, `l` below it, packed column by column."""
    d = len(q)
    Q = np.zeros((d, d))
    at = 0
    for j in range(d):
        Q[j, j] = np.exp(q[j])
        for i in range(j + 1, d):
            Q[i, j] = l[at]
            at += 1
    return Q


def gmm(x, alpha, mu, q, l, m, gamma):
    n, d = x.shape
    k = len(alpha)

    def component(c):
        Q = lower_triangle(q[c], l[c])
        z = (x - mu[c]) @ Q.T
        return alpha[c] + q[c].sum() - 0.5 * (z * z).sum(axis=1), (Q * Q).sum()

    score, squares = tp.map(component, k)
    top = score.max(axis=0)
    likelihood = (top + np.log(np.exp(score - top).sum(axis=0))).sum()
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        log_gamma += math.lgamma(0.5 * (freedom - j))
    prior = k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma)
    prior += m * q.sum() - 0.5 * gamma * gamma * squares.sum()
    return -0.5 * n * d * math.log(2.0 * math.pi) - n * logsumexp(alpha) + likelihood + prior


def rotate(r0, r1, r2, y0, y1, y2):
    """The vector y turned by the rotation vector r."""
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
    residuals = np.empty((p, 2))
    weight_errors = np.empty(p)
    for i in tp.prange(p):
        camera = cameras[camera_of[i]]
        point = points[point_of[i]]
        w = weights[i]
        y0, y1, y2 = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
        z0, z1, z2 = rotate(camera[0], camera[1], camera[2], y0, y1, y2)
        p0, p1 = z0 / z2, z1 / z2
        s = p0 * p0 + p1 * p1
        scale = camera[6] * (1.0 + camera[9] * s + camera[10] * s * s)
        residuals[i, 0] = w * (scale * p0 + camera[7] - features[i, 0])
        residuals[i, 1] = w * (scale * p1 + camera[8] - features[i, 1])
        weight_errors[i] = 1.0 - w * w
    return residuals, weight_errors


def sigmoid(v):
    return 1.0 / (1.0 + np.exp(-v))


def lstm(weights, extra, state, sequence):
    layers, width = len(state) // 2, state.shape[1]
    blocks = weights.reshape(layers, 2, 4, width)
    hidden = np.empty((layers, width))
    cell = np.empty((layers, width))
    hidden[:] = state[0::2]
    cell[:] = state[1::2]
    total = 0.0
    for t in range(len(sequence) - 1):
        u = sequence[t] * extra[0]
        for i in range(layers):
            w, bias = blocks[i, 0], blocks[i, 1]
            forget = sigmoid(u * w[0] + bias[0])
            ingate = sigmoid(hidden[i] * w[1] + bias[1])
            outgate = sigmoid(u * w[2] + bias[2])
            change = np.tanh(hidden[i] * w[3] + bias[3])
            cell[i] = cell[i] * forget + ingate * change
            u = outgate * np.tanh(cell[i])
            hidden[i] = u
        y = u * extra[1] + extra[2]
        total += (sequence[t + 1] * (y - np.log(2.0 + np.exp(y).sum()))).sum()
    return -total / ((len(sequence) - 1) * width)


def kmeans(points, centroids):
    def nearest(point):
        return ((centroids - point) ** 2).sum(axis=1).min()

    return tp.map(nearest, points).sum()


def hist(bins, keys, weights):
    return tp.hist(lambda a, b: a + b, 0.0, bins, keys, weights)


def attraction(i, x, y, z, mass, softening):
    """Acceleration of body i by all the others."""
    dx, dy, dz = x - x[i], y - y[i], z - z[i]
    square = dx * dx + dy * dy + dz * dz + softening * softening
    pull = mass / (square * np.sqrt(square))
    return (pull * dx).sum(), (pull * dy).sum(), (pull * dz).sum()


def nbody(position, velocity, mass, steps, dt, softening):
    n = len(mass)
    pos = np.empty((3, n))
    vel = np.empty((3, n))
    pos[:] = position
    vel[:] = velocity
    for _ in range(steps):
        x, y, z = pos[0], pos[1], pos[2]
        ax, ay, az = tp.map(lambda i: attraction(i, x, y, z, mass, softening), n)
        vel[0] += dt * ax
        vel[1] += dt * ay
        vel[2] += dt * az
        pos += dt * vel
    return pos, vel


def floyd(distance):
    d = distance
    for k in range(len(distance)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d
