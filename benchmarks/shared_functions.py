"""Models that a step calls several times, as functions of the program and copied into each call: times to compile, and to run, side by side.

python -m benchmarks.shared_functions

Note [Shared functions] in frontend/python/shared_functions.py. Nothing comes from the cache.
"""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

import tapeless as tp
from benchmarks.timing import Runner, race
from tapeless.api import shared
from tapeless.ir import calls

ROUNDS, SECONDS = 20, 3.0
CONDUCTANCES, CURRENT, STEPS = np.array([120.0, 36.0, 0.3]), 10.0, 2000
MASSES, TIMES = np.array([1.0, 0.8, 1.2]), 2000


def rates(v):
    am = 0.1 * (v + 40.0) / (1.0 - np.exp(-(v + 40.0) / 10.0))
    bm = 4.0 * np.exp(-(v + 65.0) / 18.0)
    ah = 0.07 * np.exp(-(v + 65.0) / 20.0)
    bh = 1.0 / (1.0 + np.exp(-(v + 35.0) / 10.0))
    an = 0.01 * (v + 55.0) / (1.0 - np.exp(-(v + 55.0) / 10.0))
    bn = 0.125 * np.exp(-(v + 65.0) / 80.0)
    return am, bm, ah, bh, an, bn


def neuron(v, m, h, n, g, current):
    """Hodgkin and Huxley's model."""
    am, bm, ah, bh, an, bn = rates(v)
    sodium, potassium, leak = g[0] * m**3 * h * (v - 50.0), g[1] * n**4 * (v + 77.0), g[2] * (v + 54.4)
    return current - sodium - potassium - leak, am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n


def two_neurons(s, g, current):
    a = neuron(s[0], s[1], s[2], s[3], g, current + 0.1 * (s[4] - s[0]))
    b = neuron(s[4], s[5], s[6], s[7], g, current + 0.1 * (s[0] - s[4]))
    return np.array([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])


def neurons(g, current, n):
    """By Runge and Kutta's method."""
    s = np.array([-65.0, 0.05, 0.6, 0.32, -60.0, 0.05, 0.6, 0.32])
    h, total = 0.01, 0.0
    for _ in range(n):
        k1 = two_neurons(s, g, current)
        k2 = two_neurons(s + h / 2 * k1, g, current)
        k3 = two_neurons(s + h / 2 * k2, g, current)
        k4 = two_neurons(s + h * k3, g, current)
        s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        total += s[0] * s[0]
    return total / n


def pull(m, ax, ay, bx, by):
    dx, dy = bx - ax, by - ay
    d = dx * dx + dy * dy + 0.01
    return m * dx / (d * np.sqrt(d)), m * dy / (d * np.sqrt(d))


def bodies(s, m):
    """Three of them in a plane."""
    px, py = pull(m[1], s[0], s[1], s[2], s[3])
    qx, qy = pull(m[2], s[0], s[1], s[4], s[5])
    rx, ry = pull(m[2], s[2], s[3], s[4], s[5])
    sx, sy = pull(m[0], s[2], s[3], s[0], s[1])
    tx, ty = pull(m[0], s[4], s[5], s[0], s[1])
    ux, uy = pull(m[1], s[4], s[5], s[2], s[3])
    return np.array([s[6], s[7], s[8], s[9], s[10], s[11], px + qx, py + qy, rx + sx, ry + sy, tx + ux, ty + uy])


def orbits(m, n):
    """By Kutta's three-eighths rule."""
    s = np.array([1.0, 0.0, -0.5, 0.9, -0.5, -0.9, 0.0, 0.6, -0.5, -0.3, 0.5, -0.3])
    h = 0.002
    for _ in range(n):
        k1 = bodies(s, m)
        k2 = bodies(s + h / 3 * k1, m)
        k3 = bodies(s + h * (k2 - k1 / 3), m)
        k4 = bodies(s + h * (k1 - k2 + k3), m)
        s = s + h / 8 * (k1 + 3 * k2 + 3 * k3 + k4)
    return np.sum(s[:6] ** 2)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (neurons, (CONDUCTANCES, CURRENT, STEPS)),
    (orbits, (MASSES, TIMES)),
]


def compiled(function: Callable[..., Any], args: Any, copied: bool) -> tuple[Callable[..., Any], float]:
    """In a cache of its own, and how long it took."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as changes:
        changes.enter_context(patch.dict(os.environ, TAPELESS_CACHE_DIR=folder))
        changes.enter_context(patch.object(shared, "_place", lambda function: None))
        if copied:
            changes.enter_context(patch.object(calls, "SMALL", 10**9))
        made = function()
        start = time.perf_counter()
        made(*args)
        return made, time.perf_counter() - start


def main() -> None:
    print(f"{'program':18}{'compile, s':>12}{'copied':>9}{'ratio':>8}{'run, ms':>12}{'copied':>9}{'ratio':>8}")
    for function, args in PROGRAMS:
        for name, make in (
            (function.__name__, lambda f=function: tp.function(f, threads=1)),
            (f"{function.__name__}'", lambda f=function: tp.value_and_grad(f)),
        ):
            (one, first), (other, second) = (compiled(make, args, copied) for copied in (False, True))
            runners = [Runner("called", 1, one), Runner("copied", 1, other)]
            race(runners, args, rounds=ROUNDS, budget=SECONDS)
            mine, theirs = (1e3 * runner.best for runner in runners)
            print(
                f"{name:18}{first:12.2f}{second:9.2f}{first / second:8.2f}{mine:12.3f}{theirs:9.3f}{mine / theirs:8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
