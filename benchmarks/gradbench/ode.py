"""ode: classical Runge-Kutta steps for y_0' = x_0, y_i' = x_i y_(i-1), on times from 0 to 2."""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats


def slope(x, y):
    found = np.empty(len(x))
    found[0] = x[0]
    found[1:] = x[1:] * y[:-1]
    return found


def primal(x, s):
    h = 2.0 / s
    y = np.zeros(len(x))
    for _ in range(s):
        k1 = slope(x, y)
        k2 = slope(x, y + 0.5 * h * k1)
        k3 = slope(x, y + 0.5 * h * k2)
        k4 = slope(x, y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return y


def gradient(x, s):
    return tp.grad(lambda x: primal(x, s)[-1])(x)


def arguments(given):
    return floats(given["x"]), int(given["s"])


EXAMPLE = {"x": [0.1, 0.2, 0.3], "s": 2}
TASKS = {f.__name__: Task(f, arguments) for f in (primal, gradient)}
