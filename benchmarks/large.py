"""How long large programs compile, in pieces and as a whole, side by side.

    python -m benchmarks.large [NAME ...]
    python -m benchmarks.large sizes [NAME ...]

The second form compiles programs of growing size, of many kinds (tapeless/testing/sized.py), and their gradients: each row
should double. Gradients of gradients, Hessians of solvers, and gradients within a budget of memory over nests of loops: Note [Pieces] in
backends/llvm/pieces.py. Nothing comes from the cache.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

import tapeless as tp
from tapeless.backends.llvm import pieces
from tapeless.testing.sized import SHAPES, module

RNG = np.random.default_rng(0)


def fitted(x, y, weight):
    """Logistic regression by Newton's method."""

    def loss(w):
        z = x @ w
        return np.sum(np.logaddexp(0.0, z) - y * z) + 0.5 * weight * np.sum(w * w)

    w = np.zeros(x.shape[1])
    for _ in range(4):
        w = w - np.linalg.solve(tp.hessian(loss)(w), tp.grad(loss)(w))
    return np.sum(w**2)


def eliminated(a, b):
    """Gaussian elimination with pivots."""
    n, a, x = len(b), a.copy(), b.copy()
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        for j in range(n):
            t = a[k, j]
            a[k, j] = a[p, j]
            a[p, j] = t
        t = x[k]
        x[k] = x[p]
        x[p] = t
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
            x[i] -= f * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return np.sum(x * x)


def conjugate(m, b):
    """Conjugate gradients until the residual is small."""
    x = np.zeros_like(b)
    r = b - m @ x
    p, rest = r.copy(), r @ r
    for _ in range(len(b)):
        step = m @ p
        alpha = rest / (p @ step)
        x += alpha * p
        r -= alpha * step
        left = r @ r
        if math.sqrt(left) < 1e-10:
            break
        p = r + (left / rest) * p
        rest = left
    return x @ x


def shortest(d):
    n, d = len(d), d.copy()
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return np.sum(d * d)


def of_its_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.sum(tp.grad(f)(*args) ** 2)


def fresh(f: Any) -> Any:
    """The same function once more, which nobody has compiled."""
    return FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)


POINTS = RNG.normal(size=(6, 2)), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0]), 0.5
SYSTEM = RNG.normal(size=(4, 4)), np.ones(4)
PROGRAMS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "regression, gradient of a gradient": (lambda: tp.grad(of_its_gradient(fitted)), POINTS),
    "elimination, gradient of a gradient": (lambda: tp.grad(of_its_gradient(eliminated)), SYSTEM),
    "elimination within 100 kB": (lambda: tp.grad(fresh(eliminated), memory="100kB"), SYSTEM),
    "conjugate gradients, Hessian": (
        lambda: tp.hessian(fresh(conjugate), argnums=(0, 1)),
        (np.eye(3) + 1.0, np.ones(3)),
    ),
    "shortest paths within 100 kB": (lambda: tp.grad(fresh(shortest), memory="100kB"), (RNG.uniform(size=(5, 5)),)),
}


def seconds(make: Callable[[], Any], args: tuple[Any, ...]) -> float:
    function = tp.function(make(), cache=False)
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def sizes(names: list[str]) -> None:
    print(
        f"{'seconds to compile':<22}{'size':>9}{'1/4':>8}{'1/2':>8}{'all':>8}   {'gradient 1/4':>12}{'1/2':>8}{'all':>8}"
    )
    for name, (text, arguments, largest) in SHAPES.items():
        if names and name not in names:
            continue
        print(f"{name:<22}{largest:>9}", end="", flush=True)
        for transform in (lambda f: f, tp.grad):
            for n in (max(1, largest // 4), max(1, largest // 2), largest):
                with tempfile.TemporaryDirectory() as folder:
                    f = module(text(n), Path(folder) / "sized.py").f
                    print(f"{_compiled_or_refused(transform, f, arguments(n)):>8}", end="", flush=True)
            print("       " if transform is not tp.grad else "", end="")
        print()


def _compiled_or_refused(transform: Callable[..., Any], f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    start = time.perf_counter()
    try:
        return f"{seconds(lambda: transform(f), args):.1f}"
    except tp.CompileError as problem:
        return f"{problem.code[2:]}:{time.perf_counter() - start:.1f}"


def main() -> None:
    tp.function(tp.grad(lambda x: x * x), cache=False)(1.0)
    if sys.argv[1:2] == ["sizes"]:
        sizes(sys.argv[2:])
        return
    large = pieces.LARGE
    print(f"{'seconds to compile':<40}{'in pieces':>10}{'whole':>10}")
    for name, (make, args) in PROGRAMS.items():
        if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
            continue
        found = []
        for limit in (large, sys.maxsize):
            pieces.LARGE = limit
            found.append(seconds(make, args))
        print(f"{name:<40}{found[0]:>10.1f}{found[1]:>10.1f}", flush=True)
    pieces.LARGE = large


if __name__ == "__main__":
    main()
