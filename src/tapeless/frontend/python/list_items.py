"""Items of lists and dicts: read, put and taken away at a position or a key.

What is put at a position need not be known at compile time, nor where it is put in a list of numbers. Relies on `references` for
what all that refer to a list see, and on `growth` for lists of unknown length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import as_numeric
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import items_of
from tapeless.frontend.data.python_operators import static_key
from tapeless.frontend.python import growth
from tapeless.frontend.python.made_lists import taken_out
from tapeless.frontend.python.references import change
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.parts import parts_of, same_form, with_parts
from tapeless.frontend.state.values import Array, Grown, Scalar, Sequence_, SliceValue, Static, Value, weak
from tapeless.ir.types import Const, i64

NONE = Static(None)
FEW = 8  # items of which each is chosen when one is written


def integer_index(ctx: Context, what: str, index: Value) -> int:
    if isinstance(index, Scalar) and isinstance(index.atom, Const) and isinstance(index.atom.value, int):
        return int(index.atom.value)
    ctx.fail(
        "TP104",
        f"{what}: the position in a list must be known at compile time, it is {type_text(index)}",
        "use an array in place of the list.",
    )


def known_length(ctx: Context, what: str, value: Sequence_ | Grown) -> Sequence_:
    if not isinstance(value, Grown):
        return value
    if value.array is None or not isinstance(value.length.atom, Const):
        ctx.fail("TP104", f"{what}: {type_text(value)} cannot be changed in this way", "use an array and a count.")
    return Sequence_(tuple(items_of(ctx, what, value)), "list", ref=value.ref)


def dict_items(value: Sequence_) -> dict[Any, Value]:
    return dict(zip(value.keys, value.items, strict=True))


def put_items(ctx: Context, what: str, value: Sequence_, items: dict[Any, Value]) -> None:
    change(ctx, what, value, replace(value, items=tuple(items.values()), keys=tuple(items)))


def set_entry(ctx: Context, base: Sequence_ | Grown, index: Value, new: Value) -> None:
    """base[index] = new"""
    what = "assignment to an item"
    if (chosen := _each_or_new(ctx, base, index, new)) is not None:
        change(ctx, what, base, chosen)
        return
    base = _gathered(ctx, what, base, index)
    if isinstance(base, Grown):
        growth.set_item_of(ctx, base, index, new)
    elif base.kind == "dict":
        put_items(ctx, what, base, {**dict_items(base), static_key(ctx, index): new})
    else:
        items = list(base.items)
        if isinstance(index, SliceValue):
            items[_slice(ctx, what, index)] = items_of(ctx, what, new)
        else:
            items[_inside(ctx, what, base, index)] = new
        change(ctx, what, base, replace(base, items=tuple(items)))


def _at_run_time(index: Value) -> TypeGuard[Scalar]:
    """Whether it is a position that is known when it runs only."""
    return isinstance(index, Scalar) and not isinstance(index.atom, Const)


def _each_or_new(ctx: Context, base: Sequence_ | Grown, index: Value, new: Value) -> Sequence_ | None:
    """A short list of numbers after another one of their type has been put where the index says, when it runs."""
    if not isinstance(base, Sequence_) or base.kind != "list" or not 0 < len(base.items) <= FEW:
        return None
    if not _at_run_time(index) or not isinstance(new, Scalar):
        return None
    olds = [v for v in base.items if isinstance(v, Scalar) and (v.dtype, v.weak) == (new.dtype, new.weak)]
    if len(olds) < len(base.items):
        return None
    size, at = i64(len(olds)), scalars.to_index(ctx, index)
    at = atoms.select(ctx, atoms.apply(ctx, "lt", at, i64(0)), atoms.apply(ctx, "add", at, size), at)
    inside = atoms.apply(ctx, "and", atoms.apply(ctx, "ge", at, i64(0)), atoms.apply(ctx, "lt", at, size))
    ctx.check(inside, "IndexError", "list assignment index out of range")
    here = [atoms.apply(ctx, "eq", at, i64(k)) for k in range(len(olds))]
    items = [Scalar(atoms.select(ctx, h, new.atom, v.atom), new.weak) for h, v in zip(here, olds, strict=True)]
    return replace(base, items=tuple(items))


def _gathered(ctx: Context, what: str, base: Sequence_ | Grown, index: Value) -> Sequence_ | Grown:
    """What a list is from here on if this position of it is written, which may be known when it runs only."""
    if not _at_run_time(index) or isinstance(base, Grown) or base.kind == "dict":
        return base
    made = growth.gathered(ctx, what, base)
    change(ctx, what, base, made)
    return made


def delete_entry(ctx: Context, base: Sequence_ | Grown, index: Value) -> None:
    """del base[index]"""
    what = "'del'"
    base = _gathered(ctx, what, base, index)
    if isinstance(base, Grown) and base.array is not None and isinstance(index, Scalar):
        taken_out(ctx, base, index, "del")
        return
    found = known_length(ctx, what, base)
    if found.kind == "dict":
        items = dict_items(found)
        if (key := static_key(ctx, index)) not in items:
            ctx.fail("TP112", f"the dict has no key {key!r}")
        del items[key]
        put_items(ctx, what, found, items)
        return
    left = list(found.items)
    if isinstance(index, SliceValue):
        del left[_slice(ctx, what, index)]
    else:
        del left[_inside(ctx, what, found, index)]
    change(ctx, what, found, replace(found, items=tuple(left)))


def _inside(ctx: Context, what: str, base: Sequence_, index: Value) -> int:
    at = integer_index(ctx, what, index)
    if not -len(base.items) <= at < len(base.items):
        ctx.fail("TP203", f"index {at} is out of range for a {base.kind} of {len(base.items)}")
    return at


def _slice(ctx: Context, what: str, index: SliceValue) -> slice:
    bounds = (index.start, index.stop, index.step)
    if index.step not in (None, NONE, weak(1)):
        ctx.fail("TP104", f"{what}: slices with a step are not replaced in lists", "build a new list.")
    return slice(*(None if b is None or b == NONE else integer_index(ctx, what, b) for b in bounds))


def number_at(ctx: Context, items: tuple[Value, ...], index: Value) -> Value | None:
    """The item at a position that is known when it runs, if all are numbers, or tuples of them."""
    if not _at_run_time(index) or not items:
        return None
    if isinstance(first := items[0], Sequence_) and first.ref is None and all(same_form(first, v) for v in items):
        columns = zip(*map(parts_of, items), strict=True)
        found = [number_at(ctx, column, index) for column in columns]
        parts = [v for v in found if v is not None]
        return with_parts(first, parts) if len(parts) == len(found) else None
    if not all(isinstance(v, Scalar) for v in items):
        return None
    made = as_numeric(ctx, Sequence_(items, "list"), "index")
    assert isinstance(made, Array)
    item = get_item(ctx, made, index)
    numbers = isinstance(item, Scalar) and all(isinstance(v, Scalar) and v.weak for v in items)
    return Scalar(item.atom, True) if isinstance(item, Scalar) and numbers else item


def get_entry(ctx: Context, base: Sequence_ | Grown, index: Value) -> Value:
    """base[index]"""
    if isinstance(base, Grown):
        return growth.item(ctx, base, index)
    if base.kind != "dict":
        found = number_at(ctx, base.items, index)
        return base.items[_inside(ctx, "an item", base, index)] if found is None else found
    items, key = dict_items(base), static_key(ctx, index)
    if key not in items:
        ctx.fail("TP112", f"the dict has no key {key!r}")
    return items[key]


def is_changeable(value: Value) -> TypeGuard[Sequence_ | Grown]:
    """Whether it is a list or dict."""
    return isinstance(value, Grown) or (isinstance(value, Sequence_) and value.kind in ("list", "dict"))
