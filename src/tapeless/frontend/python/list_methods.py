"""Methods of lists and dicts, and assignment to their items.

Takes the list or dict and the arguments of the call. Where something is put is known at compile time, what is put there need not
be. Relies on `references` for what all that refer to a list see, and on `growth` for lists of unknown length.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from tapeless.frontend.data import atoms
from tapeless.frontend.data.arrays import make_array
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import grown_rows, items_of, of_unknown_length
from tapeless.frontend.data.python_operators import compare_values
from tapeless.frontend.python import growth
from tapeless.frontend.python.dict_methods import OF_DICTS
from tapeless.frontend.python.growth import Unfit
from tapeless.frontend.python.list_items import NONE, delete_entry, integer_index, known_length
from tapeless.frontend.python.made_lists import joined, number_of, position_of, put_between, put_in_order, taken_out
from tapeless.frontend.python.references import change, new_list, own_box, refers_to
from tapeless.frontend.python.rules import run_statement
from tapeless.frontend.python.tables import moves_rows
from tapeless.frontend.source.templates import template
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy, call_value
from tapeless.frontend.state.parts import is_deque
from tapeless.frontend.state.values import Grown, Never, Scalar, Sequence_, SliceValue, Static, Value, weak
from tapeless.ir.rules import Rules
from tapeless.ir.types import Const, DType, i64

Method_ = Callable[..., Value]
OF_LISTS: Rules[str, Method_] = Rules()
OF_DEQUES: Rules[str, Method_] = Rules()


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
    if (
        value.ref in ctx.growing
        and of_unknown_length(ctx, iterable)
        and not refers_to(iterable, own_box(ctx, what, value))
    ):
        _append_each(ctx, value, iterable)
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


APPENDING = template("for ITEM in SOURCE: LIST.append(ITEM)")


def _append_each(ctx: Context, value: Grown | Sequence_, iterable: Value) -> None:
    names: dict[str, Value] = {"<source>": iterable, "<list>": value}
    for name, v in names.items():
        ctx.bind(name, v)
    run_statement(ctx, APPENDING)
    for name in (*names, "<item>"):
        ctx.state.names.pop(ctx.key(name), None)


@OF_LISTS.of("insert")
def _insert(ctx: Context, value: Sequence_ | Grown, index: Value, item: Value, /) -> Value:
    if isinstance(value, Grown) and isinstance(index, Scalar):
        put_between(ctx, value, index, item)
        return NONE
    if isinstance(value, Sequence_) and not value.items:
        return append(ctx, value, item)
    found = known_length(ctx, ".insert", value)
    items = list(found.items)
    items.insert(integer_index(ctx, ".insert", index), item)
    change(ctx, ".insert", found, replace(found, items=tuple(items)))
    return NONE


@OF_LISTS.of("pop")
def _pop(ctx: Context, value: Sequence_ | Grown, index: Value = weak(-1), /) -> Value:  # noqa: B008
    if isinstance(value, Grown) and value.array is not None and index != weak(-1) and isinstance(index, Scalar):
        return taken_out(ctx, value, index)
    if isinstance(value, Grown) and (index != weak(-1) or value.array is None):
        value = known_length(ctx, ".pop", value)
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
        if ctx.loops:  # it may have got longer by then
            ctx.check(Const(False, DType.bool), "IndexError", text)
            return Never(None)
        ctx.fail("TP203", f"{text}: position {at} of {type_text(value)}")
    last = items.pop(at)
    change(ctx, ".pop", value, replace(value, items=tuple(items)))
    return last


@OF_LISTS.of("clear")
def _clear(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    if isinstance(value, Grown):
        if (known := ctx.growing.get(value.ref)) is not None and known.exact:
            known.exact = False  # its length is no formula of the counter
            raise Unfit
        moves_rows(ctx, ".clear", value)
        change(ctx, ".clear", value, replace(value, length=weak(0), added=0))
    else:
        change(ctx, ".clear", value, replace(value, items=(), keys=()))
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
    found = known_length(ctx, ".reverse", value)
    change(ctx, ".reverse", found, replace(found, items=tuple(reversed(found.items))))
    return NONE


@OF_LISTS.of("copy")
def copied(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    return growth.copied(ctx, value) if isinstance(value, Grown) else new_list(ctx, value.items)


@OF_LISTS.of("index")
def _index(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    equal = _equalities(ctx, value, item)
    if equal is None:
        return position_of(ctx, value, item, "{} is not in list")
    if True in equal:
        return weak(equal.index(True))
    return _not_there(ctx, ".index", item)


def _not_there(ctx: Context, what: str, item: Value) -> Value:
    if not ctx.loops:
        ctx.fail("TP112", f"{what}: {type_text(item)} is not in the list")
    ctx.check(Const(False, DType.bool), "ValueError", f"{what}: the value is not in the list")  # it may be by then
    return Never(None)


@OF_LISTS.of("count")
def _count(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    equal = _equalities(ctx, value, item)
    if equal is not None:
        return weak(sum(equal))
    return number_of(ctx, value, item)


@OF_LISTS.of("remove")
def _remove(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    equal = _equalities(ctx, value, item)
    if equal is None or isinstance(value, Grown):
        at = position_of(ctx, value, item, "list.remove(x): x not in list")
        delete_entry(ctx, value, at)
        return NONE
    if True not in equal:
        return _not_there(ctx, ".remove", item)
    k = equal.index(True)
    change(ctx, ".remove", value, replace(value, items=(*value.items[:k], *value.items[k + 1 :])))
    return NONE


def _equalities(ctx: Context, value: Sequence_ | Grown, item: Value) -> list[bool] | None:
    """Which items are equal to this one, if it is known when it is compiled."""
    if isinstance(value, Grown):
        return None
    found: list[bool] = []
    for other in value.items:
        equal = compare_values(ctx, ast.Eq(), item, other)
        if not (isinstance(equal, Scalar) and isinstance(equal.atom, Const)):
            return None
        found.append(bool(equal.atom.value))
    return found


# -- deques

for _name in ("append", "extend", "insert", "clear", "reverse", "copy", "index", "count", "remove"):
    OF_DEQUES.of(_name)(OF_LISTS[_name])


@OF_DEQUES.of("pop")
def _pop_right(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    return _pop(ctx, value)


@OF_DEQUES.of("rotate")
def _rotate(ctx: Context, value: Sequence_ | Grown, steps: Value = weak(1), /) -> Value:  # noqa: B008
    if isinstance(value, Sequence_):
        size = len(value.items)
        at = -integer_index(ctx, ".rotate", steps) % size if size else 0
        change(ctx, ".rotate", value, replace(value, items=(*value.items[at:], *value.items[:at])))
        return NONE
    moves_rows(ctx, ".rotate", value)
    turned = call_numpy(ctx, "roll", [grown_rows(ctx, value), steps, weak(0)])
    put_in_order(ctx, ".rotate", value, turned)
    return NONE


@OF_DEQUES.of("popleft")
def _pop_left(ctx: Context, value: Sequence_ | Grown, /) -> Value:
    return _pop(ctx, value, weak(0))


@OF_DEQUES.of("appendleft")
def _append_left(ctx: Context, value: Sequence_ | Grown, item: Value, /) -> Value:
    return _insert(ctx, value, weak(0), item)


def change_in_place(ctx: Context, operator: str, base: Sequence_ | Grown, by: Value) -> None:
    """base += by, base *= by, base |= by"""
    of_dict = isinstance(base, Sequence_) and base.kind == "dict"
    match operator:
        case "Add" if not of_dict:
            extend(ctx, base, by, what="'+='")
        case "BitOr" if of_dict:
            OF_DICTS["update"](ctx, known_length(ctx, "'|='", base), by)
        case "Mult" if not of_dict:
            found = known_length(ctx, "'*='", base)
            change(ctx, "'*='", found, replace(found, items=found.items * integer_index(ctx, "'*='", by)))
        case _:
            ctx.fail("TP104", f"Python has no such operator for {type_text(base)}")
