"""Losses whose gradients get their values back in different ways: keep the line numbers, or update the golden files."""

import math

import numpy as np

import tapeless as tp


def logistic(x, a, n):
    total, k = 0.0, 0
    for i in range(n):
        x = a * math.sin(x) + 0.01 * k
        k += 1
        total += x
    return total


def history(x, n):
    u = np.zeros(n + 1)
    u[0] = x
    for i in range(n):
        u[i + 1] = math.sin(u[i])
    return np.sum(u)


def in_place(a):
    for i in range(1, len(a)):
        a[i] = math.sin(a[i - 1]) + a[i] * a[i]
    return a[-1]


def leapfrog(x, v, n):
    for i in range(n):
        v = v - 0.01 * math.sin(x)
        x = x + 0.01 * v
    return x * v


def until(x, limit):
    while x > limit:
        x = x - 0.1 * math.sin(x)
    return x


def nested(u, steps):
    for t in range(steps):
        for k in range(3):
            u = np.tanh(u + 0.1 * u[::-1])
        u = u + 0.1 * np.sin(u)
    return np.sum(u)


def hinted(x, n):
    for i in tp.loop(range(n), recover="checkpoint:3"):
        x = math.sin(x)
    for i in range(n):
        x = math.cos(x)
    return x


def sums(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


gradient = tp.grad(logistic, (0, 1))
example_gradient = (0.3, 1.1, 1000)
