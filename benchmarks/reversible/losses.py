"""What is differentiated: each program made into one number.

A function here takes a program, from `programs` or from `plain`, and gives a loss with the same parameters.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Program: TypeAlias = Callable[..., Any]


def bessel(f: Program) -> Program:
    def loss(out, z, *, order, least):
        return np.sum(f(out, z, order=order, least=least)[0])

    return loss


def sparse_dot(f: Program) -> Program:
    def loss(out, a, b, *, a_start, a_column, b_start, b_column):
        return f(out, a, b, a_start=a_start, a_column=a_column, b_start=b_start, b_column=b_column)[0]

    return loss


def sparse_matvec(f: Program) -> Program:
    def loss(y, value, x, *, start, column):
        return 0.5 * np.sum(f(y, value, x, start=start, column=column)[0] ** 2)

    return loss


def embedding(f: Program) -> Program:
    def loss(loss, x, *, near, far):
        return np.sum(f(loss, x, near=near, far=far)[0])

    return loss


def bundle(f: Program) -> Program:
    def loss(error, camera, point, weight, *, feature):
        return 0.5 * np.sum(f(error, camera, point, weight, feature=feature)[0] ** 2)

    return loss


def gmm(f: Program) -> Program:
    def loss(out, alpha, mu, q, l, *, x, m, gamma, constant):
        return f(out, alpha, mu, q, l, x=x, m=m, gamma=gamma, constant=constant)[0]

    return loss


def leapfrog(f: Program) -> Program:
    def loss(x, v, *, mass, steps, h):
        return np.sum(f(x, v, mass=mass, steps=steps, h=h)[0] ** 2)

    return loss


def nice(f: Program) -> Program:
    """The logarithm of the density under a normal distribution, without what is constant."""

    def loss(x, y, w1, b1, w2, b2):
        made = f(x, y, w1, b1, w2, b2)
        return -0.5 * (np.sum(made[0] ** 2) + np.sum(made[1] ** 2))

    return loss
