"""Methods of dicts, whose keys are known at compile time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeless.frontend.data.iterables import items_of
from tapeless.frontend.data.python_operators import static_key
from tapeless.frontend.python.list_items import NONE, dict_items, put_items
from tapeless.frontend.python.references import new_dict, view_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Sequence_, Value
from tapeless.ir.rules import Rules

OF_DICTS: Rules[str, Callable[..., Value]] = Rules()


def pairs_of(ctx: Context, what: str, value: Value) -> dict[Any, Value]:
    """The keys and values of a dict, or of pairs of them."""
    if isinstance(value, Sequence_) and value.kind == "dict":
        return dict_items(value)
    found: dict[Any, Value] = {}
    for pair in items_of(ctx, what, value):
        parts = items_of(ctx, what, pair)
        if len(parts) != 2:
            ctx.fail("TP112", f"{what} takes pairs of a key and a value")
        found[static_key(ctx, parts[0])] = parts[1]
    return found


@OF_DICTS.of("update")
def _update(ctx: Context, value: Sequence_, *other: Value, **named: Value) -> Value:
    items = dict_items(value)
    for o in other:
        items |= pairs_of(ctx, ".update", o)
    put_items(ctx, ".update", value, items | named)
    return NONE


@OF_DICTS.of("setdefault")
def _setdefault(ctx: Context, value: Sequence_, key: Value, default: Value = NONE, /) -> Value:
    items, name = dict_items(value), static_key(ctx, key)
    if name not in items:
        put_items(ctx, ".setdefault", value, {**items, name: default})
    return items.get(name, default)


@OF_DICTS.of("pop")
def _pop_key(ctx: Context, value: Sequence_, key: Value, *default: Value) -> Value:
    items, name = dict_items(value), static_key(ctx, key)
    if name not in items:
        if default:
            return default[0]
        ctx.fail("TP112", f"the dict has no key {name!r}")
    found = items.pop(name)
    put_items(ctx, ".pop", value, items)
    return found


@OF_DICTS.of("clear")
def _clear_dict(ctx: Context, value: Sequence_, /) -> Value:
    put_items(ctx, ".clear", value, {})
    return NONE


@OF_DICTS.of("copy")
def _copy_dict(ctx: Context, value: Sequence_, /) -> Value:
    return new_dict(ctx, dict_items(value))


@OF_DICTS.of("get")
def _get(ctx: Context, value: Sequence_, key: Value, default: Value = NONE, /) -> Value:
    return dict_items(value).get(static_key(ctx, key), default)


@OF_DICTS.of("keys")
def _keys(ctx: Context, value: Sequence_, /) -> Value:
    return view_of(ctx, items_of(ctx, "a dict", value), value)


@OF_DICTS.of("values")
def _values(ctx: Context, value: Sequence_, /) -> Value:
    return view_of(ctx, value.items, value)


@OF_DICTS.of("items")
def _items(ctx: Context, value: Sequence_, /) -> Value:
    pairs = zip(items_of(ctx, "a dict", value), value.items, strict=True)
    return view_of(ctx, [Sequence_(pair) for pair in pairs], value)
