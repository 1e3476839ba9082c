"""Cells of a notebook: source that is in no file, as IPython runs it, with functions that are defined again."""

import itertools
import linecache

COUNTER = itertools.count(1)


class Notebook:
    """A namespace in which cells run one after another."""

    def __init__(self):
        self.namespace = {"__name__": "__main__"}

    def run(self, cell):
        """Run a cell; what it defines."""
        name = f"<ipython-input-{next(COUNTER)}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        exec(compile(cell, name, "exec"), self.namespace)
        return self.namespace


DATA = """
import numpy as np
import tapeless as tp
x = np.linspace(0, 4, 30)
y = 2.5 * np.exp(-1.3 * x) + 0.5
"""

MODEL = """
def model(params, x):
    a, k, c = params
    return a * np.exp(-k * x) + c
"""

LOSS = """
@tp.function
def loss(params):
    r = model(params, x) - y
    return (r**2).mean()
"""

FIT = """
def fit(params, lr=0.1, steps=20):
    history = []
    for _ in range(steps):
        value, slope = tp.value_and_grad(loss)(params)
        history.append(float(value))
        params = params - lr * slope
    return params, history
"""

# Half-lives instead of rates: the cell is edited and run again.
MODEL_AGAIN = """
def model(params, x):
    a, half, c = params
    return a * 0.5 ** (x / half) + c
"""
