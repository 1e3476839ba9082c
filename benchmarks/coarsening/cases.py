"""The cases: a program at one size, with its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.coarsening import programs


@dataclass(frozen=True)
class Case:
    name: str
    program: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: int | tuple[int, ...] = 0


def cases() -> list[Case]:
    found = [
        Case(f"descent {n} records, 1000 steps", programs.descent, (5e-4, *records(n), 1000)) for n in (200, 1000, 2000)
    ]
    found.append(Case("descent 1000 records, stops", programs.stopping_descent, (0.01, *records(1000), 1000)))
    found += [Case(f"brachistochrone {n} points", programs.brachistochrone, (wire(n), 4.0)) for n in (200, 400, 1000)]
    found += [
        Case(f"cart-pole {n} steps", programs.cart_pole, (np.linspace(-0.1, 0.1, n), 0.1, 0.2, 0.05, 0.1))
        for n in (6, 8, 10)
    ]
    found += [
        Case(f"HMC {rows} x {columns}", programs.posterior, (np.full(columns, 0.3), *regression(rows, columns)))
        for rows, columns in ((100, 1), (1000, 2), (800, 3))
    ]
    found += [Case(f"springs {n} vertices", programs.springs, net(n), (0, 1)) for n in (10, 20, 40)]
    found += [
        Case(f"walker {n} steps", programs.walker, (np.full((n, 4), 0.7) * np.sin(np.arange(4.0 * n)).reshape(n, 4), n))
        for n in (50,)
    ]
    return found


def records(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    x = rng.normal(size=count)
    return x, 2.0 * x + rng.normal(size=count)


def wire(count: int) -> np.ndarray:
    return np.linspace(1.0, 0.0, count + 1)[1:-1]


def regression(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, columns))
    return x, (x.sum(1) + rng.normal(size=rows) > 0).astype(float)


def net(vertices: int) -> tuple[np.ndarray, ...]:
    """A strip of triangles: about two springs for each vertex."""
    rng = np.random.default_rng(vertices)
    first = np.concatenate([np.arange(vertices - 1), np.arange(vertices - 2)])
    second = np.concatenate([np.arange(1, vertices), np.arange(2, vertices)])
    rest = rng.uniform(0.5, 1.5, size=len(first))
    return np.arange(vertices) * 0.5, np.arange(vertices) % 2 + 0.1 * rng.normal(size=vertices), first, second, rest
