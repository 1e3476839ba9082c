"""particle: the charge's place that lets a particle land at the origin, by descent on a simulation of its flight."""

import math

import numpy as np

import tapeless as tp
from benchmarks.gradbench.descent import argmin
from benchmarks.gradbench.task import Task


def landing(derivative, w):
    """The squared distance from the origin at which the particle comes down."""
    step = 0.1

    def potential(z):
        def to(x, y):
            return 1.0 / math.sqrt((z[0] - x) ** 2 + (z[1] - y) ** 2)

        return to(10.0, 10.0 - w) + to(10.0, 0.0)

    field = derivative(potential)
    x, v = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    new = x + step * v
    while new[1] > 0.0:
        v = v - step * field(x)
        x = new
        new = x + step * v
    time = -x[1] / v[1]
    return (x[0] + time * v[0]) ** 2


def control(outer, inner, w):
    return argmin(outer, lambda u: landing(inner, u[0]), np.array([w]))[0]


def ff(w):
    return control(tp.jacfwd, tp.jacfwd, w)


def fr(w):
    return control(tp.jacfwd, tp.grad, w)


def rf(w):
    return control(tp.grad, tp.jacfwd, w)


def rr(w):
    return control(tp.grad, tp.grad, w)


EXAMPLE = {"w": 0.0}
TASKS = {f.__name__: Task(f, lambda given: (float(given["w"]),)) for f in (ff, fr, rf, rr)}
