"""Methods of lists and dicts, and assignment to their items.

Takes the list or dict and the arguments of the call. Where something is put is known at compile time, what is put there need not
be. Relies on `references` for what all that refer to a list see, and on `growth` for lists of unknown length.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import as_numeric, make_array
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import grown_rows, items_of, of_unknown_length
from tapeless.frontend.data.python_operators import compare_values, static_key
from tapeless.frontend.python import growth
from tapeless.frontend.python.made_lists import joined, put_between, put_in_order, taken_out
from tapeless.frontend.python.references import change, new_dict, new_list, own_box, view_of
from tapeless.frontend.python.tables import moves_rows
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_value
from tapeless.frontend.state.parts import is_deque, parts_of, same_form, with_parts
from tapeless.frontend.state.values import Array, Grown, Scalar, Sequence_, SliceValue, Static, Value, weak
from tapeless.ir.rules import Rules
from tapeless.ir.types import Const, i64

Method_ = Callable[..., Value]
OF_LISTS: Rules[str, Method_] = Rules()
OF_DEQUES: Rules[str, Method_] = Rules()
OF_DICTS: Rules[str, Method_] = Rules()
NONE = Static(None)
FEW = 8  # items of which each is chosen when one is written


def container_method(
    ctx: Context, receiver: Sequence_ | Grown, name: str, args: list[Value], keywords: dict[str, Value]
) -> Value:
    of_dict = isinstance(receiver, Sequence_) and receiver.kind == "dict"
    method = (OF_DICTS if of_dict else OF_DEQUES if is_deque(receiver) else OF_LISTS)[name]
    if keywords and name not in ("update", "sort"):
        ctx.fail("TP112", f".{name} of a list or dict takes no arguments by name here", "give them by their position.")
    try:
        return method(ctx, receiver, *args, **keywords)
    except TypeError as problem:
        if "positional argument" not in str(problem):
            raise
        ctx.call_error(f".{name} does not take {len(args)} arguments")


def integer_index(ctx: Context, what: str, index: Value) -> int:
    if isinstance(index, Scalar) and isinstance(index.atom, Const) and isinstance(index.atom.value, int):
        return int(index.atom.value)
    ctx.fail(
        "TP104",
        f"{what}: the position in a list must be known at compile time, it is {type_text(index)}",
        "use an array in place of the list.",
    )


# -- lists


@OF_LISTS.of("append")
def append(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    if isinstance(value, Grown):
        growth.append(ctx, value, item)
    else:
        ctx.appended[value.ref] = item
        change(ctx, ".append", value, replace(value, items=(*value.items, item)))
    return NONE


@OF_LISTS.of("extend")
def extend(ctx: Context, value: Sequence_ | Grown, iterable: Value, /, what: str = ".extend") -> Value:
    if of_unknown_length(ctx, iterable) and value.ref not in ctx.growing:
        longer = joined(ctx, [value, iterable])
        if longer is not None:
            change(ctx, what, value, replace(longer, ref=value.ref))
            return NONE
    more = items_of(ctx, what, iterable)
    if isinstance(value, Sequence_):
        change(ctx, what, value, replace(value, items=(*value.items, *more)))
        return NONE
    box = own_box(ctx, what, value)
    for item in more:
        now = ctx.state.names.get(box.key, value)
        assert isinstance(now, Grown)
        growth.append(ctx, now, item)
    return NONE


def _known_length(ctx: Context, what: str, value: Sequence_ | Grown) -> Sequence_:
    if not isinstance(value, Grown):
        return value
    if value.array is None or not isinstance(value.length.atom, Const):
        ctx.fail("TP104", f"{what}: {type_text(value)} cannot be changed in this way", "use an array and a count.")
    return Sequence_(tuple(items_of(ctx, what, value)), "list", ref=value.ref)


@OF_LISTS.of("insert")
def _insert(ctx: Context, value: Sequence_ | Grown, index: Value, item: Value, /) -> Value:
    if isinstance(value, Grown) and isinstance(index, Scalar):
        put_between(ctx, value, index, item)
        return NONE
    if isinstance(value, Sequence_) and not value.items:
        return append(ctx, value, item)
    found = _known_length(ctx, ".insert", value)
    items = list(found.items)
    items.insert(integer_index(ctx, ".insert", index), item)
    change(ctx, ".insert", found, replace(found, items=tuple(items)))
    return NONE


@OF_LISTS.of("pop")
def _pop(ctx: Context, value: Sequence_ | Grown, index: Value = weak(-1), /) -> Value:  # noqa: B008
    if isinstance(value, Grown) and value.array is not None and index != weak(-1) and isinstance(index, Scalar):
        return taken_out(ctx, value, index)
    if isinstance(value, Grown) and (index != weak(-1) or value.array is None):
        value = _known_length(ctx, ".pop", value)
    if isinstance(value, Grown):
        moves_rows(ctx, ".pop", value)
        some = atoms.apply(ctx, "gt", value.length.atom, i64(0))
        ctx.check(some, "IndexError", "pop from empty list")
        last = growth.item(ctx, value, weak(-1))
        length = Scalar(atoms.apply(ctx, "sub", value.length.atom, i64(1)), True)
        exact = (g := ctx.growing.get(value.ref)) is not None and g.exact
        change(ctx, ".pop", value, replace(value, length=length, added=value.added - 1 if exact else 0))
        return last
    items = list(value.items)
    at = integer_index(ctx, ".pop", index)
    if not -len(items) <= at < len(items):
        text = "pop index out of range" if items else "pop from empty list"
        ctx.fail("TP203", f"{text}: position {at} of {type_text(value)}")
    last = items.pop(at)
    change(ctx, ".pop", value, replace(value, items=tuple(items)))
    return last


@OF_LISTS.of("clear")
def _clear(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    found = _known_length(ctx, ".clear", value)
    change(ctx, ".clear", found, replace(found, items=(), keys=()))
    return NONE


@OF_LISTS.of("sort")
def _sort(ctx: Context, value: Sequence_ | Grown, /, **how: Value) -> Value:
    if isinstance(value, Grown):
        moves_rows(ctx, ".sort", value)
    items = call_value(ctx, Static(sorted), [value], how)
    if isinstance(value, Grown):
        assert isinstance(items, Grown) and items.array is not None
        put_in_order(ctx, ".sort", value, items.array)
    else:
        assert isinstance(items, Sequence_)
        change(ctx, ".sort", value, replace(value, items=items.items))
    return NONE


@OF_LISTS.of("reverse")
def _reverse(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    if isinstance(value, Grown) and value.array is not None and not value.form:
        turned = get_item(ctx, grown_rows(ctx, value), SliceValue(None, None, weak(-1)))
        put_in_order(ctx, ".reverse", value, make_array(ctx, turned))
        return NONE
    found = _known_length(ctx, ".reverse", value)
    change(ctx, ".reverse", found, replace(found, items=tuple(reversed(found.items))))
    return NONE


@OF_LISTS.of("copy")
def copied(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    return growth.copied(ctx, value) if isinstance(value, Grown) else new_list(ctx, value.items)


@OF_LISTS.of("index")
def _index(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    for k, equal in enumerate(_equalities(ctx, ".index", value, item)):
        if equal:
            return weak(k)
    ctx.fail("TP112", f".index: {type_text(item)} is not in the list")


@OF_LISTS.of("count")
def _count(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    return weak(sum(_equalities(ctx, ".count", value, item)))


@OF_LISTS.of("remove")
def _remove(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    found = _known_length(ctx, ".remove", value)
    equal = _equalities(ctx, ".remove", found, item)
    if True not in equal:
        ctx.fail("TP112", f".remove: {type_text(item)} is not in the list")
    k = equal.index(True)
    change(ctx, ".remove", found, replace(found, items=(*found.items[:k], *found.items[k + 1 :])))
    return NONE


def _equalities(ctx: Context, what: str, value: Sequence_ | Grown, item: Value) -> list[bool]:
    """Which items are equal to this one, as far as it takes to know the first."""
    found: list[bool] = []
    for other in _known_length(ctx, what, value).items:
        equal = compare_values(ctx, ast.Eq(), item, other)
        if not (isinstance(equal, Scalar) and isinstance(equal.atom, Const)):
            ctx.fail("TP104", f"{what} compares with items that are not known at compile time", "use an array.")
        found.append(bool(equal.atom.value))
    return found


# -- deques

for _name in ("append", "extend", "insert", "clear", "reverse", "copy", "index", "count", "remove"):
    OF_DEQUES.of(_name)(OF_LISTS[_name])


@OF_DEQUES.of("pop")
def _pop_right(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    return _pop(ctx, value)


@OF_DEQUES.of("popleft")
def _pop_left(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    return _pop(ctx, value, weak(0))


@OF_DEQUES.of("appendleft")
def _append_left(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    return _insert(ctx, value, weak(0), item)


# -- dicts


def _dict_items(value: Sequence_) -> dict[Any, Value]:
    return dict(zip(value.keys, value.items, strict=True))


def _put(ctx: Context, what: str, value: Sequence_, items: dict[Any, Value]) -> None:
    change(ctx, what, value, replace(value, items=tuple(items.values()), keys=tuple(items)))


def pairs_of(ctx: Context, what: str, value: Value) -> dict[Any, Value]:
    """The keys and values of a dict, or of pairs of them."""
    if isinstance(value, Sequence_) and value.kind == "dict":
        return _dict_items(value)
    found: dict[Any, Value] = {}
    for pair in items_of(ctx, what, value):
        parts = items_of(ctx, what, pair)
        if len(parts) != 2:
            ctx.fail("TP112", f"{what} takes pairs of a key and a value")
        found[static_key(ctx, parts[0])] = parts[1]
    return found


@OF_DICTS.of("update")
def _update(ctx: Context, value: Sequence_, *other: Value, **named: Value) -> Value:
    items = _dict_items(value)
    for o in other:
        items |= pairs_of(ctx, ".update", o)
    _put(ctx, ".update", value, items | named)
    return NONE


@OF_DICTS.of("setdefault")
def _setdefault(ctx: Context, value: Sequence_, key: Value, default: Value = NONE, /) -> Value:
    items, name = _dict_items(value), static_key(ctx, key)
    if name not in items:
        _put(ctx, ".setdefault", value, {**items, name: default})
    return items.get(name, default)


@OF_DICTS.of("pop")
def _pop_key(ctx: Context, value: Sequence_, key: Value, *default: Value) -> Value:
    items, name = _dict_items(value), static_key(ctx, key)
    if name not in items:
        if default:
            return default[0]
        ctx.fail("TP112", f"the dict has no key {name!r}")
    found = items.pop(name)
    _put(ctx, ".pop", value, items)
    return found


@OF_DICTS.of("clear")
def _clear_dict(ctx: Context, value: Sequence_, /) -> Value:
    return _clear(ctx, value)


@OF_DICTS.of("copy")
def _copy_dict(ctx: Context, value: Sequence_, /) -> Value:
    return new_dict(ctx, _dict_items(value))


@OF_DICTS.of("get")
def _get(ctx: Context, value: Sequence_, key: Value, default: Value = NONE, /) -> Value:
    return _dict_items(value).get(static_key(ctx, key), default)


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


# -- items


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
        _put(ctx, what, base, {**_dict_items(base), static_key(ctx, index): new})
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
    found = _known_length(ctx, what, base)
    if found.kind == "dict":
        items = _dict_items(found)
        if (key := static_key(ctx, index)) not in items:
            ctx.fail("TP112", f"the dict has no key {key!r}")
        del items[key]
        _put(ctx, what, found, items)
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
    items, key = _dict_items(base), static_key(ctx, index)
    if key not in items:
        ctx.fail("TP112", f"the dict has no key {key!r}")
    return items[key]


def is_changeable(value: Value) -> TypeGuard[Sequence_ | Grown]:
    """Whether it is a list or dict."""
    return isinstance(value, Grown) or (isinstance(value, Sequence_) and value.kind in ("list", "dict"))


def change_in_place(ctx: Context, operator: str, base: Sequence_ | Grown, by: Value) -> None:
    """base += by, base *= by, base |= by"""
    of_dict = isinstance(base, Sequence_) and base.kind == "dict"
    match operator:
        case "Add" if not of_dict:
            extend(ctx, base, by, what="'+='")
        case "BitOr" if of_dict:
            _update(ctx, _known_length(ctx, "'|='", base), by)
        case "Mult" if not of_dict:
            found = _known_length(ctx, "'*='", base)
            change(ctx, "'*='", found, replace(found, items=found.items * integer_index(ctx, "'*='", by)))
        case _:
            ctx.fail("TP104", f"Python has no such operator for {type_text(base)}")
