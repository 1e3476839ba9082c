"""`tp.callback` as plain Python: a call of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def callback(function: Callable[..., Any], result_like: Any, *args: Any) -> Any:
    """`function(*args)`, called by Python from compiled code, for what cannot be compiled.

    The function gets numbers and copies of arrays, in containers as they are passed, and must give what has the structure, the
    shapes and the types of `result_like` (None for a function that is called for its effect). It runs once for each time that the program
    comes to it, in order, whether or not its result is used; what it raises is raised by the call. A backward pass does not run it
    again. It has no derivative: give it one with `tp.custom_vjp` around it. In parallel loops and on a GPU it is refused.
    """
    return function(*args)


callback.__tapeless__ = "callback"  # type: ignore[attr-defined]  # the front end recognises it by this mark
