"""Small programs whose reports are compared as text: keep the line numbers, or update the golden files."""

import numpy as np

import tapeless as tp


def prefix(x, n):
    s = 0.0
    for i in range(n):
        s = s + x[i] * 2.0
        x[i] = s
    return s


def scaled(x, y):
    return x * 2.0 + y


def sums(x):
    total = 0.0
    for i in tp.prange(len(x)):
        total += x[i] * x[i]
    return total


def escape(x, limit):
    a, k = 0.0, 0
    while k < limit and a < 4.0:
        a = a * a + x
        k += 1
    return k


def nested(xs, ys, limit):
    return tp.map(lambda y: tp.map(lambda x: escape(x * y, limit), xs), ys)


def heat(u, steps):
    v = u.copy()
    for t in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = v, u
    return u


def counts(keys, weights):
    return tp.hist(lambda a, b: a + b, 0.0, 16, keys, weights)


def ordered(x):
    return np.sort(x) * 0.5


def halved(x):
    y = x
    y[0] = 0.0
    z = y * 0.5
    y[1] = 1.0
    return z


def shifted(x):
    x[1:] = x[:-1]


def refused(x):
    return {v for v in x}


example_scaled = (np.ones(3), 1.0)
not_a_function = 3
