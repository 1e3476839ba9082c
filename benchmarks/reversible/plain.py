"""The same programs written plainly, as a user of `tp.function` would.

Each takes what its namesake in `benchmarks.reversible.programs` takes, and returns the states that are changed there.
"""

import math

import numpy as np

import tapeless as tp
from benchmarks.reversible.programs import acceleration, log_sum_exp


def bessel(out, z, *, order, least):
    def series(z):
        term = (z / 2) ** order / math.factorial(order)
        total = term
        k = 0
        while abs(term) > least:
            k += 1
            term *= -((z / 2) ** 2) / (k * (k + order))
            total += term
        return total

    return (out + tp.map(series, z),)


def sparse_dot(out, a, b, *, a_start, a_column, b_start, b_column):
    for row in range(len(a_start) - 1):
        i, j = a_start[row], b_start[row]
        while i < a_start[row + 1] and j < b_start[row + 1]:
            if a_column[i] == b_column[j]:
                out += a[i] * b[j]
                i += 1
                j += 1
            elif a_column[i] < b_column[j]:
                i += 1
            else:
                j += 1
    return (out,)


def sparse_matvec(y, value, x, *, start, column):
    made = np.empty_like(y)
    for i in tp.prange(len(y)):
        total = y[i]
        for e in range(start[i], start[i + 1]):
            total += value[e] * x[column[e]]
        made[i] = total
    return (made,)


def embedding(loss, x, *, near, far):
    def distances(places, pairs):
        found = np.empty(len(pairs))
        for e in range(len(pairs)):
            found[e] = np.sqrt(np.sum((places[pairs[e, 0]] - places[pairs[e, 1]]) ** 2))
        return found

    def one(places):
        short, long = distances(places, near), distances(places, far)
        mean_short, mean_long = np.sum(short) / len(near), np.sum(long) / len(far)
        uneven = np.sum((short - mean_short) ** 2) / len(near) + np.sum((long - mean_long) ** 2) / len(far)
        return uneven + np.exp(np.maximum(mean_short - mean_long + 0.1, 0.0)) - 1.0

    return (loss + tp.map(one, x),)


def bundle(error, camera, point, weight, *, feature):
    def one(e, camera, point, weight, feature):
        y0, y1, y2 = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
        theta = np.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
        cos, sin = np.cos(theta), np.sin(theta)
        a0, a1, a2 = camera[0] / theta, camera[1] / theta, camera[2] / theta
        along = (a0 * y0 + a1 * y1 + a2 * y2) * (1.0 - cos)
        z0 = y0 * cos + (a1 * y2 - a2 * y1) * sin + a0 * along
        z1 = y1 * cos + (a2 * y0 - a0 * y2) * sin + a1 * along
        z2 = y2 * cos + (a0 * y1 - a1 * y0) * sin + a2 * along
        p0, p1 = z0 / z2, z1 / z2
        square = p0**2 + p1**2
        scale = camera[6] * (1.0 + camera[9] * square + camera[10] * square**2)
        e0 = e[0] + weight * (scale * p0 + camera[7] - feature[0])
        e1 = e[1] + weight * (scale * p1 + camera[8] - feature[1])
        return np.array([e0, e1])

    return (tp.map(one, error, camera, point, weight, feature),)


def gmm(out, alpha, mu, q, l, *, x, m, gamma, constant):
    d = x.shape[1]
    triangle = np.zeros((len(alpha), d, d))
    score = np.empty((len(alpha), len(x)))
    for c in range(len(alpha)):
        at = 0
        for j in range(d):
            triangle[c, j, j] = np.exp(q[c, j])
            for i in range(j + 1, d):
                triangle[c, i, j] = l[c, at]
                at += 1
        score[c] = alpha[c] + np.sum(q[c]) - 0.5 * np.sum(((x - mu[c]) @ triangle[c].T) ** 2, axis=1)
    likelihood = np.sum(log_sum_exp(score)) - len(x) * log_sum_exp(alpha)
    return (out + likelihood + m * np.sum(q) - 0.5 * gamma**2 * np.sum(triangle**2) + constant,)


def leapfrog(x, v, *, mass, steps, h):
    for _ in range(steps):
        x = x + h / 2 * v
        v = v + h * acceleration(x, mass)
        x = x + h / 2 * v
    return x, v


def nice(x, y, w1, b1, w2, b2):
    for layer in range(len(w1)):
        y = y + np.tanh(x @ w1[layer] + b1[layer]) @ w2[layer] + b2[layer]
        x, y = y, x
    return x, y
