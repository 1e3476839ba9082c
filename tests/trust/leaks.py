"""Work that must not leave anything behind, in steps, and the memory that this process holds."""

import functools
import gc
import itertools
import linecache
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tapeless as tp

_numbers = itertools.count()


def resident() -> int:
    """Bytes, after garbage is collected."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown(step: Callable[[], object], first: int, count: int) -> int:
    """The bytes by which this process has grown in `count` steps, after `first` of them."""
    for _ in range(first):
        step()
    before = resident()
    for _ in range(count):
        step()
    return resident() - before


def square(x):
    return x * x


def norm(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * y[i]
    return s


def lengths() -> Callable[[], object]:
    """Calls of one function, each with lengths that it has not met."""
    f = tp.function(norm)
    memory = np.ones(1 << 20)
    sizes = itertools.count(2)

    def step():
        n = next(sizes)
        assert f(memory[:n], memory[-n:]) == n

    return step


def transforms() -> Callable[[], object]:
    """Transforms made anew for each call."""
    x = np.ones(3)
    kinds = [
        lambda: tp.grad(square)(2.0) == 4.0,
        lambda: tp.function(square)(2.0) == 4.0,
        lambda: tp.value_and_grad(norm, argnums=(0, 1))(x, x + 1)[0] == 6.0,
        lambda: tp.jvp(square, (2.0,), (1.0,)) == (4.0, 4.0),
        lambda: tp.grad(tp.grad(square))(2.0) == 2.0,
        lambda: tp.vjp(square, 2.0)[1](1.0) == (4.0,),
        lambda: tp.hessian(tp.function(square))(2.0) == 2.0,
    ]
    turns = itertools.cycle(kinds)

    def step():
        assert next(turns)()

    return step


def made(number: int):
    """A function of its own, with a source of its own, as a cell of a notebook has."""
    text = f"def g(x, y):\n    s = {number}.0\n    for i in range(len(x)):\n        s += x[i] * y[i]\n    return s\n"
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    found: dict[str, object] = {}
    exec(compile(text, name, "exec"), found)
    return found["g"], lambda: linecache.cache.pop(name)


def functions(cache: bool = False) -> Callable[[], object]:
    """Functions that are made, compiled, differentiated and dropped."""
    x = np.ones(3)

    def step():
        k = next(_numbers)
        g, forget = made(k)
        assert tp.function(g, cache=cache)(x, x) == k + 3.0
        forget()

    return step


def closures() -> Callable[[], object]:
    """Lambdas and rules of derivatives that are made anew each time."""

    def step():
        k = float(next(_numbers))
        assert tp.grad(tp.function(lambda x: x * k, cache=False))(1.0) == k
        own = tp.custom_vjp(lambda x: x * k)
        own.defvjp(lambda x: (x * k, None), lambda kept, adjoint: (adjoint * 2.0 * k,))
        assert tp.grad(tp.function(lambda x: own(x) + 1.0, cache=False))(1.0) == 2.0 * k

    return step


def many_budgets() -> Callable[[], object]:
    """One function with options that are always others."""

    def step():
        assert tp.grad(tp.function(square, cache=False), memory=f"{1000 + next(_numbers)}B")(2.0) == 4.0

    return step


def statics() -> Callable[[], object]:
    """Arguments that a function is specialised on, always others."""
    f = tp.function(lambda mode, x: x * 2.0 if mode else x, cache=False)

    def step():
        assert f(f"mode {next(_numbers)}", 2.0) == 4.0

    return step


def wrappers() -> Callable[[], object]:
    """Functions around one function."""

    def step():
        @functools.wraps(square)
        def twice(x):
            return 2.0 * square(x)

        assert tp.grad(tp.function(twice, cache=False))(1.0) == 4.0

    return step
