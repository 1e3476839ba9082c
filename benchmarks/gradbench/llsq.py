"""llsq: a polynomial fitted to the sign function, at n points between -1 and 1."""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats


def primal(x, n):
    t = -1.0 + 2.0 * np.arange(n) / (n - 1)
    value = np.zeros(n)
    for j in range(len(x) - 1, -1, -1):  # Horner's rule, at all points at once
        value = value * t + x[j]
    residual = np.sign(t) - value
    return 0.5 * (residual * residual).sum()


def gradient(x, n):
    return tp.grad(primal)(x, n)


def arguments(given):
    return floats(given["x"]), int(given["n"])


EXAMPLE = {"x": [0.1, 0.2, 0.3], "n": 5}
TASKS = {f.__name__: Task(f, arguments) for f in (primal, gradient)}
