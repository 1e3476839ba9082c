"""Slopes of distributions and samples, judged by differences of all of their results at once."""

import numpy as np

import tapeless as tp
from tests.prelude.judged import judge


def total(parts):
    """With weights, so that nothing cancels."""
    result, weight = 0.0, 1.0
    for part in parts:
        result, weight = result + weight * np.sum(part), weight + 1.0
    return result


def differences(function, *args):
    """Derivatives of a number by each argument, element by element."""
    return [
        np.reshape([slope(function, args, k, i) for i in np.ndindex(np.shape(a))], np.shape(a))
        for k, a in enumerate(args)
    ]


def slope(function, args, k, i):
    step = 1e-3 * max(1.0, abs(np.asarray(args[k])[i]))

    def at(h):
        moved = np.array(args[k], dtype=float)
        moved[i] += h * step
        return function(*args[:k], moved if moved.ndim else float(moved), *args[k + 1 :])

    return (8 * (at(1) - at(-1)) - at(2) + at(-2)) / (12 * step)


def agree(function, *args, **tolerance):
    """Values are SciPy's, and slopes of the sum of all results are those of differences."""
    judge(function, *args, order=0, **tolerance)
    found = tp.grad(lambda *a: total(function(*a)), tuple(range(len(args))))(*args)
    for x, y in zip(found, differences(lambda *a: total(function(*a)), *args), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-7)
