"""Gradient descent that doubles its step after ten successes and halves it after a failure, for `particle` and `saddle`.

Points are arrays of one axis. `derivative` makes the gradient of a function: tp.grad in reverse mode, tp.jacfwd in forward
mode. A descent may itself be differentiated, through every step that it takes.
"""

import math

TOLERANCE = 1e-5


def length(v):
    return math.sqrt((v * v).sum())


def argmin(derivative, f, start):
    gradient = derivative(f)
    x, best, g = start, f(start), gradient(start)
    rate, successes = 1e-5, 0
    while length(g) > TOLERANCE:
        if successes == 10:
            rate, successes = 2.0 * rate, 0
        else:
            new = x - rate * g
            if length(x - new) <= TOLERANCE:
                break
            value = f(new)
            if value < best:
                x, best, g = new, value, gradient(new)
                successes += 1
            else:
                rate, successes = 0.5 * rate, 0
    return x


def argmax(derivative, f, start):
    return argmin(derivative, lambda x: -f(x), start)
