"""The losses as a user of an array library writes them: whole-array expressions.

Each takes a `Library` of `benchmarks.libraries`, then what `PREPARE` makes of the state and the constants of its program,
arrays as that library's own. A merge of sorted rows has no such form, so `sparse_dot` is not here.
"""

from typing import Any

import numpy as np

from benchmarks.libraries import Library


def bessel(lib: Library, order: int, z: Any, least: float) -> Any:
    xp = lib.xp
    square, term = (z / 2) ** 2, (z / 2) ** order / float(np.prod(range(1, order + 1)))

    def going(state: Any) -> Any:
        return xp.any(xp.abs(state[1]) > least)

    def step(state: Any) -> Any:
        k, term, total = state
        k = k + 1
        term = term * (-square / (k * (k + order)))
        return k, term, total + term

    return lib.while_loop(going, step, (0, term, term))[2].sum()


def sparse_matvec(lib: Library, y: Any, value: Any, x: Any, row: Any, column: Any) -> Any:
    made = y + lib.add_at(len(y), row, value * x[column])
    return 0.5 * (made**2).sum()


def embedding(lib: Library, loss: Any, x: Any, near: Any, far: Any) -> Any:
    xp = lib.xp

    def distances(pairs: Any) -> Any:
        return xp.sqrt(((x[:, pairs[:, 0]] - x[:, pairs[:, 1]]) ** 2).sum(-1))

    short, long = distances(near), distances(far)
    mean_short, mean_long = short.mean(-1), long.mean(-1)
    uneven = ((short - mean_short[:, None]) ** 2).mean(-1) + ((long - mean_long[:, None]) ** 2).mean(-1)
    closer = mean_short - mean_long + 0.1
    return (loss + uneven + xp.exp(xp.where(closer > 0.0, closer, 0.0 * closer)) - 1.0).sum()


def bundle(lib: Library, error: Any, camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    xp = lib.xp
    rotation, y = camera[:, 0:3], point - camera[:, 3:6]
    theta = xp.sqrt((rotation**2).sum(1))[:, None]
    cos, sin, axis = xp.cos(theta), xp.sin(theta), rotation / theta
    (a0, a1, a2), (y0, y1, y2) = (tuple(part[:, c] for c in range(3)) for part in (axis, y))
    cross = xp.stack([a1 * y2 - a2 * y1, a2 * y0 - a0 * y2, a0 * y1 - a1 * y0], 1)
    z = y * cos + cross * sin + axis * ((axis * y).sum(1)[:, None] * (1.0 - cos))
    p = z[:, 0:2] / z[:, 2:3]
    square = (p**2).sum(1)
    scale = camera[:, 6] * (1.0 + camera[:, 9] * square + camera[:, 10] * square**2)
    made = error + weight[:, None] * (scale[:, None] * p + camera[:, 7:9] - feature)
    return 0.5 * (made**2).sum()


def log_sum_exp(lib: Library, score: Any) -> Any:
    top = lib.xp.amax(score, 0)
    return top + lib.xp.log(lib.xp.exp(score - top).sum(0))


def gmm(
    lib: Library, out: Any, alpha: Any, mu: Any, q: Any, l: Any, x: Any, m: int, gamma: float, constant: float
) -> Any:
    triangle = lib.lower_triangle(lib.xp.exp(q), l)
    z = lib.xp.einsum("kij,knj->kni", triangle, x[None] - mu[:, None])
    score = alpha[:, None] + q.sum(1)[:, None] - 0.5 * (z**2).sum(-1)
    likelihood = log_sum_exp(lib, score).sum() - len(x) * log_sum_exp(lib, alpha)
    return out + likelihood + m * q.sum() - 0.5 * gamma**2 * (triangle**2).sum() + constant


def leapfrog(lib: Library, x: Any, v: Any, mass: Any, steps: int, h: float) -> Any:
    xp = lib.xp
    others = xp.asarray(1.0 - np.eye(len(mass)))

    def acceleration(x: Any) -> Any:
        d = x[None] - x[:, None]
        square = (d**2).sum(-1) + (1.0 - others)
        return ((others * mass[None] / (square * xp.sqrt(square)))[:, :, None] * d).sum(1)

    def step(_: Any, state: Any) -> Any:
        x, v = state
        x = x + h / 2 * v
        v = v + h * acceleration(x)
        return x + h / 2 * v, v

    return (lib.loop(steps, step, (x, v))[0] ** 2).sum()


def nice(lib: Library, x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    for layer in range(len(w1)):
        x, y = y + lib.xp.tanh(x @ w1[layer] + b1[layer]) @ w2[layer] + b2[layer], x
    return -0.5 * ((x**2).sum() + (y**2).sum())


PREPARE = {
    "bessel": lambda out, z, order, least: (order, z, least),
    "sparse_matvec": lambda y, value, x, start, column: (
        y, value, x, np.repeat(np.arange(len(start) - 1), np.diff(start)), column,
    ),
}  # fmt: skip
