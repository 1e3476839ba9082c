"""Lists and dicts as Python refers to them: making one, changing it, and what all that refer to it hold afterwards.

`new_list` and `new_dict` make one with an identity; `change` gives it other contents; `current` brings values up to date that
were read before a change. See Note [Lists that change] in values.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from tapeless.frontend.state.context import Context, new_box
from tapeless.frontend.state.parts import WHOLE, parts_of, with_parts
from tapeless.frontend.state.values import (
    Box,
    Builtin,
    Conflict,
    Grown,
    Key,
    MaybeUndefined,
    Sequence_,
    State,
    Value,
    Zipped,
)

OVER = "<over"  # names of what open loops go over
OWN_LIST = "make one of its own first: list(...) or dict(...) of it."
SINCE = Conflict(
    "this may refer to a list or dict that has been changed since", "refer to one list or dict on every path."
)


def new_list(ctx: Context, items: Iterable[Value]) -> Sequence_:
    return Sequence_(tuple(items), "list", ref=new_box(ctx))


def new_dict(ctx: Context, items: Mapping[Any, Value]) -> Sequence_:
    return Sequence_(tuple(items.values()), "dict", tuple(items), ref=new_box(ctx))


def either(ctx: Context, boxes: Iterable[Box | None]) -> Box:
    """What may be one of several lists, those of others (None) among them."""
    found = [b if b is not None else new_box(ctx) for b in boxes]
    return Box(ctx.number(), frozenset().union(*(b.possible for b in found)), since=len(ctx.changed))


def view_of(ctx: Context, items: Iterable[Value], base: Sequence_) -> Sequence_:
    """What follows a list or dict in Python, such as d.keys(): it has no value here once that was changed."""
    return Sequence_(tuple(items), ref=None if base.ref is None else either(ctx, [base.ref]))


def is_certain(value: Sequence_ | Grown) -> bool:
    """Whether it is known which list it is."""
    return value.ref is not None and not value.ref.may_be


def is_alone(ctx: Context, state: State, box: Box | None) -> bool:
    """Whether one value refers to this list, and nothing else does: which list it is cannot be told from any other place."""
    if box is None or box.may_be or box.made_in is not ctx.home or box in ctx.kept_lists or box in ctx.growing:
        return False
    return sum(_references(value, box) for key, value in state.names.items() if key != box.key) == 1


def _references(value: Value, box: Box) -> int:
    if isinstance(value, MaybeUndefined):
        value = value.value
    if isinstance(value, Builtin):
        return 2 if refers_to(value, box) else 0
    here = isinstance(value, (Sequence_, Grown)) and value.ref is not None and box in value.ref.possible
    return here + sum(_references(part, box) for part in parts_of(value))


def with_box(value: Value, box: Box) -> Value:
    """The value with this for all of its lists."""
    match value:
        case MaybeUndefined(value=inner):
            return replace(value, value=with_box(inner, box))
        case Sequence_(kind="list" | "dict") | Grown():
            value = replace(value, ref=box)
    parts = parts_of(value)
    return with_parts(value, [with_box(p, box) for p in parts]) if parts else value


# -- changes


def change(ctx: Context, what: str, old: Sequence_ | Grown, new: Value) -> None:
    """`old` has the contents of `new` from here on; `what` does it."""
    box = own_box(ctx, what, old)
    if any(refers_to(part, box) for part in parts_of(new)):
        ctx.fail("TP104", f"{what}: a list or dict cannot hold itself in compiled code")
    ctx.changed.append(box)
    if len(parts_of(new)) != len(parts_of(old)) or isinstance(new, Grown):
        ctx.lengthened.append(box)
        if any(key[1].startswith(OVER) and refers_to(v, box) for key, v in ctx.state.names.items()):
            ctx.changed_meanwhile.add(box)
            changed_meanwhile(ctx, "a loop")
    set_contents(ctx.state, box, new)


def own_box(ctx: Context, what: str, value: Sequence_ | Grown) -> Box:
    """The identity of a list or dict that may be changed here."""
    box = value.ref
    kind = value.kind if isinstance(value, Sequence_) else "list"
    if box is None:
        ctx.fail(
            "TP104",
            f"{what} would change a {kind} that this function did not make, which compiled code cannot",
            OWN_LIST,
        )
    if box.may_be:
        ctx.fail(
            "TP104",
            f"{what}: it is not known at compile time which {kind} this changes",
            f"refer to one {kind} on every path.",
        )
    if box.made_in is not ctx.home:
        ctx.fail(
            "TP111",
            f"{what} changes a {kind} of the surroundings, in a function that is applied by another one",
            "return the value instead.",
        )
    if box in ctx.kept_lists:
        refuse_kept(ctx, what, kind)
    return box


def refuse_kept(ctx: Context, what: str, kind: str) -> NoReturn:
    ctx.fail(
        "TP104",
        f"{what} changes a {kind} that has been put into a list that gets longer, and compiled code keeps what it held",
        "put a copy of it in: list(...).",
    )


def set_contents(state: State, box: Box, new: Value) -> None:
    state.names[box.key] = new
    renew(state, {box: new})


def contents(state: State, key: Key) -> Value | None:
    """What is in the list of this hidden name; None where nothing refers to it."""
    if key in state.names:
        return state.names[key]
    found = (_find(value, key) for value in state.names.values())
    return next((v for v in found if v is not None), None)


def _find(value: Value, key: Key) -> Value | None:
    if isinstance(value, MaybeUndefined):
        value = value.value
    if (
        isinstance(value, (Sequence_, Grown))
        and value.ref is not None
        and value.ref.key == key
        and not value.ref.may_be
    ):
        return value
    return next((v for v in (_find(p, key) for p in parts_of(value)) if v is not None), None)


def renew(state: State, changed: Mapping[Box, Value], now: int | None = None) -> None:
    """All values of the state hold the new contents."""

    def is_stale(box: Box) -> bool:
        return (now is None or box.since < now) and not box.may_be.isdisjoint(changed)

    for key, value in state.names.items():
        found = _renewed(value, changed, is_stale)
        if found is not value:
            state.names[key] = found


def settle(state: State, keys: Collection[Key] | None = None, now: int | None = None) -> None:
    """All values of the state hold what the names of boxes say, or these names of boxes: after a join, and at the start and end
    of loops. Those that may be one of several lists from `now` on, a number of changes, have what these hold.
    """
    boxes = [b for b in boxes_in(state) if not isinstance(state.names.get(b.key, SINCE), Conflict)]
    boxes = [b for b in boxes if keys is None or b.key in keys]
    for box in sorted(boxes, key=lambda b: b.number):  # in any order: each makes all that refer to it new
        renew(state, {box: state.names[box.key]}, now)


def boxes_in(state: State) -> set[Box]:
    found: set[Box] = set()
    for value in state.names.values():
        _collect(value, found)
    return found


def _collect(value: Value, found: set[Box]) -> None:
    if type(value) in WHOLE:
        return
    if isinstance(value, MaybeUndefined):
        value = value.value
    if isinstance(value, (Sequence_, Grown)) and value.ref is not None and not value.ref.may_be:
        found.add(value.ref)
    for part in parts_of(value):
        _collect(part, found)


def current(ctx: Context, values: Sequence[Value], since: int) -> list[Value]:
    """Values that were read before the changes from number `since` on, as they are now."""
    if len(ctx.changed) == since:
        return list(values)
    changed: dict[Box, Value] = {}
    for box in ctx.changed[since:]:
        now = ctx.state.names.get(box.key)
        if now is not None:
            changed[box] = now

    def is_stale(box: Box) -> bool:
        return not box.may_be.isdisjoint(ctx.changed[max(since, box.since) :])

    return [_renewed(v, changed, is_stale) for v in values]


def evaluated(ctx: Context, make: Callable[[], Sequence[Value]]) -> list[Value]:
    """The operands of an expression, as they are when all of them are known."""
    since = len(ctx.changed)
    return current(ctx, make(), since)


def _renewed(value: Value, changed: Mapping[Box, Value], is_stale: Callable[[Box], bool]) -> Value:
    if type(value) in WHOLE:
        return value
    match value:
        case Sequence_(ref=Box() as box) | Grown(ref=Box() as box):
            if box in changed:
                return changed[box]
            if is_stale(box):
                return SINCE
        case MaybeUndefined(value=inner):
            found = _renewed(inner, changed, is_stale)
            return value if found is inner else replace(value, value=found)
        case Builtin(handler=handler):
            return SINCE if any(refers_to(v, *changed) for v in _kept(handler)) else value
    parts = parts_of(value)
    new = [_renewed(p, changed, is_stale) for p in parts]
    if all(a is b for a, b in zip(parts, new, strict=True)):
        return value
    return with_parts(value, new)


def refers_to(value: Any, *boxes: Box) -> bool:
    """Whether one of these lists is in it."""
    if isinstance(value, (Sequence_, Grown)) and value.ref is not None and not value.ref.possible.isdisjoint(boxes):
        return True
    if isinstance(value, MaybeUndefined):
        return refers_to(value.value, *boxes)
    if isinstance(value, (tuple, list)):
        return any(refers_to(v, *boxes) for v in value)
    if isinstance(value, dict):
        return any(refers_to(v, *boxes) for v in value.values())
    if isinstance(value, Builtin):
        return any(refers_to(v, *boxes) for v in _kept(value.handler))
    return any(refers_to(p, *boxes) for p in parts_of(value))


def _kept(function: object) -> Iterator[Any]:
    """What a function of ours remembers: the object of a method, the arguments of a partial."""
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it has none yet
            continue


def changed_meanwhile(ctx: Context, what: str) -> NoReturn:
    ctx.fail("TP104", f"{what} goes over a list or dict that is changed meanwhile", "go over a copy: list(...).")


class Watched:
    """The lists and dicts that an unrolled loop goes over: their items must be there when it comes to them."""

    def __init__(self, ctx: Context, over: Value) -> None:
        parts = parts_of(over) if isinstance(over, Zipped) else (over,)
        refs = [p.ref for p in parts if isinstance(p, Sequence_) and p.ref is not None]
        keys = [box.key for ref in refs for box in ref.possible]
        self.found = {key: contents(ctx.state, key) for key in keys}

    def check(self, ctx: Context, position: int) -> None:
        for key, old in self.found.items():
            now = ctx.state.names.get(key, old)
            if now is old or not isinstance(old, Sequence_):
                continue
            if not isinstance(now, Sequence_) or now.keys != old.keys or now.items[position:] != old.items[position:]:
                changed_meanwhile(ctx, "this loop")
