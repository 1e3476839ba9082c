"""det: a determinant by recursive expansion by minors, along the first row.

The first rows are expanded by a walk over all choices of their columns, which threads can share; the last rows, whose
number is known, by a recursive function, which is written out when it is compiled.
"""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats

LAST = 4  # rows of the recursive part


def minor(A, row, columns):
    """The determinant of the rows from `row` on, in these columns."""
    if len(columns) == 1:
        return A[row, columns[0]]
    total, sign = 0.0, 1.0
    before, after = (), columns[1:]
    for column in columns:
        total += sign * A[row, column] * minor(A, row + 1, before + after)
        before, after, sign = before + (column,), after[1:], -sign
    return total


def primal(A):
    ell = len(A)
    choices = 1
    for row in range(ell - LAST):
        choices *= ell - row

    def term(number):
        """The product of a choice of columns for the first rows, times the minor that is left."""
        left = np.arange(ell)  # columns, in order
        product, size = 1.0, ell
        for row in range(ell - LAST):
            j = number % size
            number //= size
            product *= A[row, left[j]] if j % 2 == 0 else -A[row, left[j]]
            size -= 1
            for i in range(j, size):
                left[i] = left[i + 1]
        return product * minor(A, ell - LAST, (left[0], left[1], left[2], left[3]))

    return tp.map(term, choices).sum()


def gradient(A):
    return tp.grad(primal)(A)


def arguments(given):
    """A matrix smaller than the recursive part gets rows of the unit matrix above it."""
    ell = int(given["ell"])
    extended = np.eye(max(ell, LAST))
    extended[-ell:, -ell:] = floats(given["A"]).reshape(ell, ell)
    return (extended,)


def flat(result, _arguments):
    return result.ravel().tolist()


EXAMPLE = {"A": [0.1 * k for k in range(25)], "ell": 5}
TASKS = {"primal": Task(primal, arguments), "gradient": Task(gradient, arguments, flat)}
