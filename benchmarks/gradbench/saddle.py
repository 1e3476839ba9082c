"""saddle: the p that minimises the greatest value over q of |p|² - |q|², by a descent through a descent."""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.descent import argmax, argmin
from benchmarks.gradbench.task import Task, floats


def saddle(outer, inner, start):
    def f(p, q):
        return (p * p).sum() - (q * q).sum()

    def greatest(p):
        return f(p, argmax(inner, lambda q: f(p, q), start))

    p = argmin(outer, greatest, start)
    q = argmax(outer, lambda q: f(p, q), start)
    return p[0], p[1], q[0], q[1]


def ff(start):
    return saddle(tp.jacfwd, tp.jacfwd, np.array([start[0], start[1]]))


def fr(start):
    return saddle(tp.jacfwd, tp.grad, np.array([start[0], start[1]]))


def rf(start):
    return saddle(tp.grad, tp.jacfwd, np.array([start[0], start[1]]))


def rr(start):
    return saddle(tp.grad, tp.grad, np.array([start[0], start[1]]))


EXAMPLE = {"start": [1.0, 1.0]}
TASKS = {f.__name__: Task(f, lambda given: (floats(given["start"]),)) for f in (ff, fr, rf, rr)}
