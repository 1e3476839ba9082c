"""Programs whose gradients have to get values back: what `benchmarks.memory` runs.

A `Program` has a loss, the arguments that it is differentiated by, its inputs, and the plans that apply to it. The first
plan is the full store, or what is nearest to it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Plan = Mapping[str, str]  # keywords of tp.grad

STORE: Plan = {"recover": "store"}


def strips(depth: int) -> Plan:
    return {"recover": f"checkpoint:{depth}"}


def budget(memory: str) -> Plan:
    return {"memory": memory}


@dataclass(frozen=True)
class Bar:
    """What a plan has to keep to: bytes at its peak, and time over that of the first plan."""

    memory: float
    time: float = math.inf


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    loss: Callable[..., Any]
    argnums: int | tuple[int, ...]
    inputs: Callable[[int], tuple[Any, ...]]
    size: int
    small: int
    plans: Sequence[Plan]
    bars: Mapping[int, Bar]  # by the number of a plan


def scalar(x, a, n):
    for i in range(n):
        x = a * math.sin(x) + 0.3 * x
    return x


def step(u, c):
    middle = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    v = u.copy()
    v[1:-1, 1:-1] = middle + c * (around - 4.0 * middle) * (1.0 + middle * middle)
    return v


def heat(u, c, steps):
    for t in range(steps):
        u = step(u, c)
    return np.sum(u * u)


def recurrence(a):
    for i in range(1, len(a)):
        a[i] = math.sin(a[i - 1]) + a[i] * a[i]
    return a[-1]


def leapfrog(x, v, h, n):
    for i in range(n):
        v = v - h * math.sin(x)
        x = x + h * v
    return x * v


def relaxation(u, w, steps):
    for t in range(steps):
        for k in range(4):
            u = np.tanh(w * u + 0.1 * u[::-1])
        u = u + 0.1 * np.sin(u)
    return np.sum(u)


def decay(x, a, limit):
    while x > limit:
        x = x - 1e-5 * a * x * (1.0 + math.sin(x))
    return x


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


PROGRAMS = (
    Program(
        "scalar_5e6",
        "x = a sin(x) + 0.3 x, five million times, by x and a",
        scalar,
        (0, 1),
        lambda n: (0.3, 1.1, n),
        5_000_000,
        20,
        (STORE, strips(2), strips(3), strips(4), budget("1MB"), budget("4kB")),
        {4: Bar(1e6)},
    ),
    Program(
        "scalar_1e6",
        "the same, a million times",
        scalar,
        (0, 1),
        lambda n: (0.3, 1.1, n),
        1_000_000,
        20,
        (STORE, strips(2), strips(3), strips(4), budget("1MB")),
        {4: Bar(1e6, 1.5)},
    ),
    Program(
        "heat",
        "1000 steps of a nonlinear heat equation on 512 x 512 cells, by the first state",
        heat,
        0,
        lambda n: (0.3 * some(512 if n > 10 else 8, 512 if n > 10 else 8), 0.05, n),
        1000,
        3,
        (STORE, strips(2), strips(3), budget("70MB"), budget("32MB")),
        {3: Bar(70e6, 2.0)},
    ),
    Program(
        "recurrence",
        "a[i] = sin(a[i-1]) + a[i]^2 in place, a million cells, by a",
        recurrence,
        0,
        lambda n: (some(n),),
        1_000_000,
        10,
        ({"recover": "undo"}, {}),
        {},
    ),
    Program(
        "recurrence_2x",
        "the same, two million cells",
        recurrence,
        0,
        lambda n: (some(n),),
        2_000_000,
        10,
        ({"recover": "undo"}, {}),
        {},
    ),
    Program(
        "leapfrog",
        "a million leapfrog steps of a pendulum, by position and velocity",
        leapfrog,
        (0, 1),
        lambda n: (0.3, 0.2, 0.01, n),
        1_000_000,
        20,
        (STORE, strips(2), strips(3), budget("4kB"), {"recover": "invert"}, {"recover": "invert:1000"}),
        {4: Bar(4096)},
    ),
    Program(
        "relaxation",
        "500 sweeps of four inner steps over 10 000 cells by whole-array NumPy, by state and weights",
        relaxation,
        (0, 1),
        lambda n: (some(10_000 if n > 10 else 6), some(10_000 if n > 10 else 6), n),
        500,
        3,
        (STORE, strips(2), strips(3), budget("8MB")),
        {},
    ),
    Program(
        "decay",
        "a while loop of 0.7 million steps that nobody knows beforehand, by x and a",
        decay,
        (0, 1),
        lambda n: (1.0, 1.0, 1.0 / n),
        1000,
        2,
        (STORE, strips(2), strips(3), budget("1MB"), {"recover": "checkpoint"}),
        {},
    ),
)
BY_NAME = {p.name: p for p in PROGRAMS}
