"""Small functions on numbers written in the compiled language itself, and `inline`, which compiles one into the caller.

Takes front-end values. Errors and statements inside belong to the line of the user's call. What works on whole arrays
is in the package `prelude`.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tapeless.frontend.source.origins import made_here
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import call_value
from tapeless.frontend.state.surroundings import python_function
from tapeless.frontend.state.values import Value
from tapeless.prelude import registry

FOLDER = os.path.dirname(registry.__file__) + os.sep
LARGEST = 2**63 - 1


def inline(
    ctx: Context, function: Callable[..., Any], args: Sequence[Value], keywords: Mapping[str, Value] | None = None
) -> Value:
    assert isinstance(function, types.FunctionType)
    with inside(ctx):
        return call_value(ctx, python_function(ctx, made_here(function)), args, keywords)


@contextmanager
def inside(ctx: Context) -> Iterator[None]:
    """Errors and statements belong to the call around, and nothing is watched."""
    ctx.inside_prelude += 1
    try:
        yield
    finally:
        ctx.inside_prelude -= 1


def gcd(a: int, b: int) -> int:
    a, b = -a if a > 0 else a, -b if b > 0 else b  # negative, since the lowest integer has no counterpart
    while b != 0:
        a, b = b, a % b
    return -a


def unsigned_gcd(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


def unsigned_lcm(a: int, b: int) -> int:
    return 0 if a == 0 or b == 0 else a // unsigned_gcd(a, b) * b


def lcm(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    return abs(a // gcd(a, b)) * abs(b)


def perm(n: int, k: int) -> int:
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    if k > n:
        return 0
    result = 1
    for i in range(k):
        if result > LARGEST // (n - i):
            raise OverflowError("the number of arrangements does not fit into 64 bits")
        result *= n - i
    return result


def factorial(n: int) -> int:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 20:
        raise OverflowError("the factorial does not fit into 64 bits")
    result = 1
    for k in range(2, n + 1):
        result *= k
    return result


def comb(n: int, k: int) -> int:
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    if k > n:
        return 0
    result = 1
    for i in range(min(k, n - k)):
        fits = result // (i + 1) <= LARGEST // (n - i)
        result = result // (i + 1) * (n - i) + result % (i + 1) * (n - i) // (i + 1)  # nothing larger than the result
        if not fits or result < 0:
            raise OverflowError("the number of choices does not fit into 64 bits")
    return result


def isqrt(n: int) -> int:
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n == 0:
        return 0
    x = n
    y = n - n // 2
    while y < x:
        x = y
        y = (x + n // x) // 2
    return x


def search_left(a: Any, v: Any, n: int) -> int:
    """The first position whose element is not less than `v`; NaN is larger than everything."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if a[middle] < v or (v != v and a[middle] == a[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def search_right(a: Any, v: Any, n: int) -> int:
    """The first position whose element is larger than `v`."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if v < a[middle] or (a[middle] != a[middle] and v == v):
            high = middle
        else:
            low = middle + 1
    return low


def interpolate(x: Any, xp: Any, fp: Any, n: int, left: Any, right: Any) -> Any:
    """np.interp at one point: NaN where x is NaN, `left` and `right` outside."""
    j = search_right(xp, x, n) - 1
    if x != x:
        return x if n > 1 else fp[0]
    if j < 0:
        return left
    if x > xp[n - 1]:
        return right
    if j >= n - 1:
        return fp[n - 1]
    if x == xp[j]:  # also where the slope is not finite
        return fp[j]
    slope = (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j])
    value = slope * (x - xp[j]) + fp[j]
    if value == value:
        return value
    value = slope * (x - xp[j + 1]) + fp[j + 1]  # from the other side
    return fp[j] if value != value and fp[j] == fp[j + 1] else value


def horner(p: Any, n: int, x: Any, zero: Any, nothing: Any) -> Any:
    """np.polyval at one point. `zero` is of the type of x, `nothing` of that of the result: the first step joins the
    types.
    """
    if n == 0:
        return nothing
    y = zero * x + p[0]
    for k in range(1, n):
        y = y * x + p[k]
    return y
