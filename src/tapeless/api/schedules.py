"""`tp.bennett` and `tp.treeverse`: many steps that cannot be undone, and their gradients in the memory of a few states.

Called from Python they run the steps in the published orders. In compiled code they are loops, whose states come back in
the backward pass from checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

S = TypeVar("S")


@dataclass
class Counts:
    """Filled by `tp.bennett`: the calls of the step, and the most states there were at a time."""

    calls: int = 0
    peak: int = 0


def bennett(step: Callable[[S], S], state: S, n: int, k: int = 2, counts: Counts | None = None) -> S:
    """The state after `n` steps, by Bennett's scheme: segments of segments, `k` of each, and all states but the first
    and the last are undone by running their steps once more.
    """
    _at_least("bennett", 0, n=n)
    _at_least("bennett", 2, k=k)
    run = _Bennett(step, {0: state}, k, counts or Counts())
    if n:
        run.segment(0, n, True)
    end: S = run.states[n]
    return end


@dataclass
class _Bennett:
    step: Callable[[Any], Any]
    states: dict[int, Any]
    k: int
    counts: Counts

    def segment(self, start: int, length: int, forward: bool) -> None:
        if length == 1:
            self.one(start, forward)
            return
        part = -(-length // self.k)
        parts = [(start + at, min(part, length - at)) for at in range(0, length, part)]
        first, last = parts[:-1], parts[-1]
        for p in first:
            self.segment(*p, True)
        self.segment(*last, forward)
        for p in reversed(first):
            self.segment(*p, False)

    def one(self, start: int, forward: bool) -> None:
        """A step; backwards, it is run again and its state let go."""
        found = self.step(self.states[start])
        self.counts.calls += 1
        if forward:
            self.states[start + 1] = found
            self.counts.peak = max(self.counts.peak, len(self.states))
        else:
            del self.states[start + 1]


def treeverse(step: Callable[[S], S], state: S, n: int, memory: int) -> S:
    """The state after `n` steps. Its gradient keeps `memory` states, and runs the fewest steps for that."""
    _at_least("treeverse", 0, n=n)
    _at_least("treeverse", 1, memory=memory)
    for _ in range(n):
        state = step(state)
    return state


def _at_least(name: str, least: int, **numbers: int) -> None:
    for word, value in numbers.items():
        if not isinstance(value, int) or value < least:
            raise ValueError(f"tp.{name}: {word} must be an integer from {least} on")


for _name in ("bennett", "treeverse"):
    setattr(globals()[_name], "__tapeless__", _name)  # noqa: B010
