"""The cost of a call alone: functions that do next to nothing, in plain Python, for whoever compiles them."""

import timeit
from collections.abc import Callable
from typing import Any


def scalar_call(x):
    return 2.0 * x + 1.0


def three_arrays_call(a, b, c):
    return a[0] * b[0] + c[0]


def with_numba(function: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit

    compiled: Callable[..., Any] = njit(function)
    return compiled


def cost(compiler: Callable[..., Any], python: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Seconds of one call of the compiled function, after a first one."""
    function = compiler(python)
    function(*args)
    timer = timeit.Timer("function(*args)", globals={"function": function, "args": args})
    return min(timer.repeat(repeat=20, number=5_000)) / 5_000
