"""hello: x² and its derivative."""

import tapeless as tp
from benchmarks.gradbench.task import Task


def square(x):
    return x * x


def double(x):
    return tp.grad(square)(x)


EXAMPLE = 3.0
TASKS = {f.__name__: Task(f, lambda x: (float(x),)) for f in (square, double)}
