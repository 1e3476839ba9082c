"""Python's functions that go through items one by one, for lengths that are known when it runs."""

from __future__ import annotations

from typing import Any


def reduced(function: Any, items: Any, start: Any) -> Any:
    """functools.reduce"""
    for item in items:
        start = function(start, item)
    return start


def reduced_from_first(function: Any, items: Any) -> Any:
    if len(items) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    result = items[0]
    for k in range(1, len(items)):
        result = function(result, items[k])
    return result


def best(items: Any, key: Any, greatest: Any) -> Any:
    """min(items, key=key), or max"""
    if len(items) == 0:
        raise ValueError("max() arg is an empty sequence" if greatest else "min() arg is an empty sequence")
    found = 0
    best_key = key(items[0])
    for k in range(1, len(items)):
        now = key(items[k])
        if (now > best_key) if greatest else (now < best_key):
            found, best_key = k, now
    return items[found]
