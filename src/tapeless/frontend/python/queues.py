"""`collections.deque`: a list whose items come and go at both ends.

Takes what Python's takes but for `maxlen`; gives a list with a mark (`Box.deque`), so that what deques cannot do, or do in another
way, is refused: slices, operators, comparisons.
"""

from __future__ import annotations

import collections
import heapq

from tapeless.frontend.data.iterables import items_of, of_unknown_length
from tapeless.frontend.python.growth import copied, listed
from tapeless.frontend.python.references import new_list
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import MODULES, register
from tapeless.frontend.state.values import Array, Grown, RangeValue, Sequence_, Value

MODULES.setdefault("collections", collections)
MODULES.setdefault("heapq", heapq)


def _deque(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords or len(args) > 1:
        ctx.fail(
            "TP112", "a deque takes its first items here, and no length at most", "remove items where it gets too long."
        )
    made = _list_of(ctx, args[0]) if args else new_list(ctx, ())
    assert made.ref is not None
    made.ref.deque = True
    return made


def _list_of(ctx: Context, value: Value) -> Sequence_ | Grown:
    if isinstance(value, Grown):
        return copied(ctx, value)
    if isinstance(value, (Array, RangeValue)) and of_unknown_length(ctx, value):
        made = listed(ctx, value)
        if made is None:
            ctx.fail(
                "TP104", "a deque of so many arrays has items that are known when it runs", "go over their positions."
            )
        return made
    return new_list(ctx, items_of(ctx, "deque", value))


register("collections.deque", _deque)
