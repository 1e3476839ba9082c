"""The words of the dialect, as Python sees them.

They mean something in functions under `@tp.reversible`, where they are found by what they are, not by their names; only
`rot` is a function like any other.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tapeless.errors import InvertibilityError


class Word:
    """A word that is not called, or that Python never gets to call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tp.{self.name}"

    def _refuse(self) -> NoReturn:
        raise InvertibilityError(
            f"tp.{self.name} has no meaning here", code="TP401", hint="use it in a function with @tp.reversible."
        )

    def __call__(self, *_: Any, **__: Any) -> Any:
        self._refuse()

    def __enter__(self) -> Any:
        self._refuse()

    def __exit__(self, *_: Any) -> None: ...

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return (self.name,)


ancilla = Word("ancilla")
compute = Word("compute")
uncompute = Word("uncompute")
branch = Word("branch")
between = Word("between")
push = Word("push")
pop = Word("pop")


def rot(a: Any, b: Any, theta: Any) -> tuple[Any, Any]:
    """(a, b) turned by an angle: (a cos - b sin, a sin + b cos)."""
    c, s = np.cos(theta), np.sin(theta)
    return a * c - b * s, a * s + b * c


rot.__tapeless_dialect__ = "rot"  # type: ignore[attr-defined]


def word_of(value: Any) -> str:
    """Which word an object is; empty if it is none."""
    if isinstance(value, Word):
        return value.name
    return str(getattr(value, "__tapeless_dialect__", "")) if callable(value) else ""
