"""Options for the compiler: which there are, what they may be, and what is said where they are not.

Gives `wrong_options` for what was given to `tp.function` or a transform, and `default_threads`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tapeless.backends.cuda.driver import driver
from tapeless.backends.llvm.at_once import cores
from tapeless.errors import DeviceError
from tapeless.lower.core.schedule import MOST_THREADS

THREADS = f"a number from 1 to {MOST_THREADS}"
# options that are given to no function
DEFAULTS: dict[str, Any] = {
    "device": "cpu", "threads": None, "fastmath": False, "memory": None, "cache": True, "check": False, "unsafe": False,
    "debug_nans": False, "coarsen": True, "deterministic": False,
}  # fmt: skip


def default_threads() -> int:
    given = os.environ.get("TAPELESS_THREADS")
    if given:
        if not given.isdecimal() or len(given) > 9 or not 1 <= int(given) <= MOST_THREADS:
            raise ValueError(f"TAPELESS_THREADS={given!r}: it must be {THREADS}")
        return int(given)
    return min(cores(), MOST_THREADS)


MEMORY = re.compile(r"\d+(\.\d+)? ?([KMGT]i?)?B", re.IGNORECASE)
OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "device": (lambda x: isinstance(x, str), "the name of a device"),
    "threads": (
        lambda x: x is None or (isinstance(x, int) and not isinstance(x, bool) and 1 <= x <= MOST_THREADS),
        THREADS,
    ),
    "memory": (lambda x: x is None or (isinstance(x, str) and bool(MEMORY.fullmatch(x))), "a size like '64MB'"),
    **dict.fromkeys(
        ("fastmath", "cache", "check", "unsafe", "debug_nans", "coarsen", "deterministic"),
        (lambda x: isinstance(x, bool), "True or False"),
    ),
}


def asked(options: dict[str, Any]) -> tuple[Any, ...]:
    """Options as part of a key: True is not 1 there."""
    return tuple((name, type(value), value) for name, value in options.items())


def wrong_options(made_by: str, options: Mapping[str, Any], others: Iterable[str] = ()) -> Exception | None:
    """What is wrong with options for the compiler, given to tp.function or a transform; `others` it takes, too."""
    for name, value in options.items():
        if name not in OPTIONS:
            known = [*others, *OPTIONS]
            close = difflib.get_close_matches(name, known, 1, 0.5)
            meant = f"; is it '{close[0]}'?" if close else ""
            return TypeError(f"tp.{made_by} has no option '{name}': it takes {', '.join(known)}{meant}")
        fits, wanted = OPTIONS[name]
        if not fits(value):
            return ValueError(f"tp.{made_by}: {name} must be {wanted}, not {value!r}")
    if options.get("device", "cpu") not in ("cpu", "cuda"):
        return DeviceError(f"device {options['device']!r} is not known: use 'cpu' or 'cuda'")
    if options.get("device") == "cuda":
        try:
            driver()
        except DeviceError as problem:
            return DeviceError(f"device 'cuda' is not available: {problem.args[0]}; use device='cpu'")
    return None
