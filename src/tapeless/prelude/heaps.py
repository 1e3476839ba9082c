"""`heapq`: lists whose smallest item comes first. The items move as they do in Python's own functions."""

from __future__ import annotations

from typing import Any

from tapeless.prelude.registry import stands_for


def _towards_the_root(heap: Any, first: int, at: int) -> None:
    new = heap[at]
    while at > first:
        above = (at - 1) >> 1
        if new < heap[above]:
            heap[at] = heap[above]
            at = above
        else:
            break
    heap[at] = new


def _towards_the_leaves(heap: Any, at: int) -> None:
    """The smaller item below moves up until there is none; the one that was here goes as far up as it may from there."""
    end, first = len(heap), at
    new = heap[at]
    below = 2 * at + 1
    while below < end:
        other = below + 1
        if other < end and not heap[below] < heap[other]:
            below = other
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = new
    _towards_the_root(heap, first, at)


@stands_for("heapq.heappush")
def heappush(heap: Any, item: Any) -> None:
    heap.append(item)
    _towards_the_root(heap, 0, len(heap) - 1)


@stands_for("heapq.heappop")
def heappop(heap: Any) -> Any:
    if len(heap) == 0:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = heap[-1]
    heap.pop()
    if len(heap) > 0:
        _towards_the_leaves(heap, 0)
    return first


@stands_for("heapq.heapify")
def heapify(x: Any) -> None:
    for k in range(len(x) // 2):
        _towards_the_leaves(x, len(x) // 2 - 1 - k)


@stands_for("heapq.heapreplace")
def heapreplace(heap: Any, item: Any) -> Any:
    if len(heap) == 0:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _towards_the_leaves(heap, 0)
    return first


@stands_for("heapq.heappushpop")
def heappushpop(heap: Any, item: Any) -> Any:
    smallest = item
    if len(heap) > 0 and heap[0] < item:
        smallest = heap[0]
        heap[0] = item
        _towards_the_leaves(heap, 0)
    return smallest
