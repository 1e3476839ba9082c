"""Programs with all their parameters by position: calls with keywords take a longer way into compiled code, which would
be timed too.

`ENTRIES` has what makes an entry of a program, from `programs` or from `plain`, whose arguments are the state and then the
constants. `LOSSES` has what makes one number of its results.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Program: TypeAlias = Callable[..., Any]


def bessel(f: Program) -> Program:
    return lambda out, z, order, least: f(out, z, order=order, least=least)


def sparse_dot(f: Program) -> Program:
    def entry(out, a, b, a_start, a_column, b_start, b_column):
        return f(out, a, b, a_start=a_start, a_column=a_column, b_start=b_start, b_column=b_column)

    return entry


def sparse_matvec(f: Program) -> Program:
    return lambda y, value, x, start, column: f(y, value, x, start=start, column=column)


def embedding(f: Program) -> Program:
    return lambda loss, x, near, far: f(loss, x, near=near, far=far)


def bundle(f: Program) -> Program:
    return lambda error, camera, point, weight, feature: f(error, camera, point, weight, feature=feature)


def gmm(f: Program) -> Program:
    def entry(out, alpha, mu, q, l, x, m, gamma, constant):
        return f(out, alpha, mu, q, l, x=x, m=m, gamma=gamma, constant=constant)

    return entry


def leapfrog(f: Program) -> Program:
    return lambda x, v, mass, steps, h: f(x, v, mass=mass, steps=steps, h=h)


def nice(f: Program) -> Program:
    return lambda x, y, w1, b1, w2, b2: f(x, y, w1, b1, w2, b2)


ENTRIES = {f.__name__: f for f in (bessel, sparse_dot, sparse_matvec, embedding, bundle, gmm, leapfrog, nice)}

LOSSES: dict[str, Callable[[Any], Any]] = {
    "bessel": lambda made: np.sum(made[0]),
    "sparse_dot": lambda made: made[0],
    "sparse_matvec": lambda made: 0.5 * np.sum(made[0] ** 2),
    "embedding": lambda made: np.sum(made[0]),
    "bundle": lambda made: 0.5 * np.sum(made[0] ** 2),
    "gmm": lambda made: made[0],
    "leapfrog": lambda made: np.sum(made[0] ** 2),
    "nice": lambda made: -0.5 * (np.sum(made[0] ** 2) + np.sum(made[1] ** 2)),
}


def loss_of(name: str, f: Program) -> Program:
    entry, number = ENTRIES[name](f), LOSSES[name]

    def loss(*args):
        return number(entry(*args))

    return loss
