"""lse: the logarithm of a sum of exponentials, shifted by the greatest."""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats


def primal(x):
    top = x.max()
    return top + np.log(np.exp(x - top).sum())


def gradient(x):
    return tp.grad(primal)(x)


EXAMPLE = {"x": [0.1, 0.2, 0.3]}
TASKS = {f.__name__: Task(f, lambda given: (floats(given["x"]),)) for f in (primal, gradient)}
