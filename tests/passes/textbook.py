"""Programs as textbooks have them, by loops over cells: `TEXTBOOK` gives them with arguments, those that give a number to be differentiated."""

import math

import numpy as np

import tapeless as tp


def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def covariance(x):
    mean = x.mean(axis=0)
    c = np.zeros((x.shape[1], x.shape[1]))
    for i in range(x.shape[1]):
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[0]):
                s += (x[k, i] - mean[i]) * (x[k, j] - mean[j])
            c[i, j] = s / (x.shape[0] - 1)
    return c


def dense_layer(x, w, b):
    y = np.zeros((x.shape[0], w.shape[1]))
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            y[i, j] = b[j]
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
    return np.sum(np.tanh(y))


def blur(x):
    y = np.zeros(len(x))
    for i in tp.prange(1, len(x) - 1):
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]
    return np.sum(y * y)


def roughness(u):
    total = 0.0
    for i in tp.prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            e = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            total += e * e
    return total


def total_variation(u):
    total = 0.0
    for i in tp.prange(u.shape[0] - 1):
        for j in range(u.shape[1] - 1):
            total += math.sqrt(1e-6 + (u[i + 1, j] - u[i, j]) ** 2 + (u[i, j + 1] - u[i, j]) ** 2)
    return total


def waves(u, v, steps):
    for _ in range(steps):
        w = np.zeros(len(u))
        for i in tp.prange(1, len(u) - 1):
            w[i] = 2.0 * u[i] - v[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = w, u
    return np.sum(u * u)


def some(*shape):
    return np.random.default_rng(0).random(shape)


TEXTBOOK = (
    (product, (some(3, 4), some(4, 5))),
    (covariance, (some(6, 3),)),
    (tp.grad(dense_layer, (0, 1, 2)).python, (some(3, 4), some(4, 5), some(5))),
    (tp.grad(blur).python, (some(9),)),
    (tp.grad(roughness).python, (some(6, 7),)),
    (tp.grad(total_variation).python, (some(6, 7),)),
    (tp.grad(waves, (0, 1)).python, (some(9), some(9), 3)),
)
