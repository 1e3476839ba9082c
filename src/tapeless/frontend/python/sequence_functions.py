"""Functions of Python that take functions and go over things: sorted, map, filter, reduce, partial, itemgetter.

Takes values; what has a known length is worked out at compile time, the rest becomes a loop or a function of NumPy.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import replace

import numpy as np

from tapeless.frontend.data.arguments import flag, known
from tapeless.frontend.data.arrays import make_array
from tapeless.frontend.data.atoms import apply, logical_not
from tapeless.frontend.data.constants import ConstantSet, constant
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import grown_rows, items_of, of_unknown_length
from tapeless.frontend.data.python_operators import binary_values, truth_of
from tapeless.frontend.numpy.small_functions import inline
from tapeless.frontend.python.attributes import attribute
from tapeless.frontend.python.comprehensions import list_of
from tapeless.frontend.python.expressions import compared_values, subscript
from tapeless.frontend.python.growth import copied, listed
from tapeless.frontend.python.references import boxes_in, either, new_list
from tapeless.frontend.python.tables import copies_rows
from tapeless.frontend.python.totals import picked
from tapeless.frontend.source.templates import template
from tapeless.frontend.state import handlers
from tapeless.frontend.state.code_copies import refuse_beyond
from tapeless.frontend.state.context import Context, new_box, type_text
from tapeless.frontend.state.handlers import call_numpy, call_value, register
from tapeless.frontend.state.values import (
    Array,
    Builtin,
    Grown,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.types import Const
from tapeless.prelude import folding

handlers.MODULES.setdefault("functools", functools)
NONE = Static(None)

# -- sorted


@known("sorted")
def _sorted(ctx: Context, iterable: Value, *, key: Value | None = None, reverse: Value | None = None) -> Value:
    backwards = flag(ctx, "sorted: reverse", reverse)
    if isinstance(iterable, Grown) and key is None and iterable.columns:
        return _sorted_by(ctx, iterable, None, backwards)
    if isinstance(iterable, Grown) and key is None:
        return _sorted_array(ctx, grown_rows(ctx, iterable), iterable.weak, backwards)
    if isinstance(iterable, Array) and key is None and not isinstance(ctx.canon(iterable.type.shape[0]), int):
        return _sorted_array(ctx, iterable, False, backwards)
    if key is not None and of_unknown_length(ctx, iterable):
        return _sorted_by(ctx, iterable, key, backwards)
    if isinstance(iterable, Static) and isinstance(iterable.value, ConstantSet):
        items = [constant(k) for k in sorted(iterable.value, key=repr)]
    else:
        items = items_of(ctx, "sorted", iterable)
    keys = items if key is None else [call_value(ctx, key, [item]) for item in items]
    return new_list(ctx, _in_order(ctx, items, keys, ast.Lt() if backwards else ast.Gt()))


def _sorted_array(ctx: Context, array: Array, is_weak: bool, backwards: bool) -> Value:
    if array.type.rank != 1:
        hint = "give a key that is a number: sorted(..., key=lambda row: row[0])."
        ctx.fail("TP120", "sorted of an array with rows is ambiguous", hint)
    made = call_numpy(ctx, "sort", [make_array(ctx, array)])
    assert isinstance(made, Array)
    _refuse_nans(ctx, made)
    if backwards:
        made = make_array(ctx, get_item(ctx, made, SliceValue(NONE, NONE, weak(-1))))
        assert isinstance(made, Array)
    return Grown(made, Scalar(ctx.size_atom(made.type.shape[0]), True), is_weak, ref=new_box(ctx))


def _refuse_nans(ctx: Context, array: Array) -> None:
    if array.type.dtype.is_float:
        found = truth_of(ctx, call_numpy(ctx, "any", [call_numpy(ctx, "isnan", [array])]))
        ctx.check(logical_not(ctx, found), "ValueError", "sorted: an item is NaN, which has no place in an order")


def _sorted_by(ctx: Context, iterable: Value, key: Value | None, backwards: bool) -> Value:
    """The items in the order of their keys. Equal ones stay in the order that they have, backwards too."""
    mapped = iterable if key is None else _evaluated(ctx, MAPPED, key, iterable)
    keys = make_array(ctx, grown_rows(ctx, mapped)) if isinstance(mapped, Grown) else None
    tuples = isinstance(mapped, Grown) and mapped.columns
    if not isinstance(keys, Array) or (keys.type.rank != 1 and not tuples):
        ctx.fail(
            "TP120",
            "sorted of what has a length that is known when it runs takes keys that are numbers, or tuples of them",
            "give such a key: sorted(..., key=lambda row: (row[0], row[1])).",
        )
    _refuse_nans(ctx, keys)
    turned = SliceValue(NONE, NONE, weak(-1))
    order: Value = _stable_order(ctx, get_item(ctx, keys, turned) if backwards else keys)
    if backwards:
        last = binary_values(ctx, "Sub", Scalar(ctx.size_atom(keys.type.shape[0]), True), weak(1))
        assert isinstance(order, Array)
        order = binary_values(ctx, "Sub", last, get_item(ctx, order, turned))
    match iterable:
        case Grown(weak=is_weak, form=form, columns=columns):
            copies_rows(ctx, iterable)
            items: Value = grown_rows(ctx, iterable)
        case RangeValue(start=start, stop=stop, step=step):
            is_weak, form, columns = True, "", ()
            items = call_numpy(ctx, "arange", [start, stop, step])
        case _:
            is_weak, form, columns, items = False, "", (), iterable
    assert isinstance(items, Array)
    made = get_item(ctx, items, order)
    assert isinstance(made, Array)
    length = Scalar(ctx.size_atom(made.type.shape[0]), True)
    return Grown(made, length, is_weak, form=form, columns=columns, ref=new_box(ctx))


def _stable_order(ctx: Context, keys: Value) -> Value:
    """Of numbers, or of rows, whose first numbers decide."""
    assert isinstance(keys, Array)
    if keys.type.rank == 1:
        return call_value(ctx, Static(np.argsort), [keys], {"kind": Static("stable")})
    width = keys.type.shape[1]
    assert isinstance(width, int)
    order: Value = NONE
    for k in reversed(range(width)):
        column = get_item(ctx, keys, Sequence_((SliceValue(NONE, NONE, NONE), weak(k))))
        assert isinstance(column, Array)
        if isinstance(order, Array):
            order = get_item(ctx, order, _stable_order(ctx, make_array(ctx, get_item(ctx, column, order))))
        else:
            order = _stable_order(ctx, make_array(ctx, column))
    return order


def _in_order(ctx: Context, items: list[Value], keys: list[Value], wrong: ast.cmpop) -> list[Value]:
    """Neighbours in the wrong order change places, until none are: equal ones stay in the order that they have."""
    found = list(zip(keys, items, strict=True))
    for key in keys:
        _refuse_nan(ctx, key)
    for done in range(len(found)):
        before = ctx.b.made
        for k in range(len(found) - 1 - done):
            (key, item), (next_key, next_item) = found[k], found[k + 1]
            swap = truth_of(ctx, compared_values(ctx, wrong, key, next_key))
            if isinstance(swap, Const):
                if swap.value:
                    found[k], found[k + 1] = found[k + 1], found[k]
                continue
            low = picked(ctx, swap, next_key, key), picked(ctx, swap, next_item, item)
            high = picked(ctx, swap, key, next_key), picked(ctx, swap, item, next_item)
            found[k], found[k + 1] = low, high
        refuse_beyond(ctx, "sorted", len(found), done + 1, ctx.b.made - before)
    return [item for _, item in found]


def _refuse_nan(ctx: Context, key: Value) -> None:
    if isinstance(key, Sequence_):
        for part in key.items:
            _refuse_nan(ctx, part)
    elif isinstance(key, Scalar) and key.dtype.is_float:
        number = apply(ctx, "eq", key.atom, key.atom)
        ctx.check(number, "ValueError", "sorted: an item is NaN, which has no place in an order")
    elif isinstance(key, Array):
        ctx.fail("TP120", f"sorted compares numbers, not {type_text(key)}", "give a key that is a number.")


# -- map and filter: as the comprehensions that they are

FUNCTION, SOURCE = "<function>", "<source>"


def _comprehension(element: str, test: str = "") -> ast.ListComp:
    made = template(f"[{element} for ITEM in SOURCE{' if ' + test if test else ''}]")
    assert isinstance(made, ast.Expr) and isinstance(made.value, ast.ListComp)
    return made.value


MAPPED, SPREAD, KEPT, SAME = (
    _comprehension("FUNCTION(ITEM)"),
    _comprehension("FUNCTION(*ITEM)"),
    _comprehension("ITEM", "FUNCTION(ITEM)"),
    _comprehension("ITEM"),
)


def _evaluated(ctx: Context, node: ast.ListComp, function: Value, source: Value) -> Sequence_ | Grown:
    names = {FUNCTION: function, SOURCE: source}
    outer = {n: ctx.state.names.get(ctx.key(n)) for n in names}
    for n, value in names.items():
        ctx.bind(n, value)
    result = list_of(ctx, node)
    assert isinstance(result, (Sequence_, Grown))
    lazy = replace(either(ctx, [new_box(ctx), *boxes_in(ctx.state)]), lazy=True)
    result = replace(result, ref=lazy)
    for n, old in outer.items():
        if old is None:
            ctx.state.names.pop(ctx.key(n), None)
        else:
            ctx.bind(n, old)
    return result


def _map(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords or len(args) < 2:
        ctx.call_error("map() must have at least two arguments.")
    function, *sources = args
    if len(sources) == 1:
        return _evaluated(ctx, MAPPED, function, sources[0])
    return _evaluated(ctx, SPREAD, function, call_value(ctx, Static(zip), sources))


register("map", _map)


def _filter(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords or len(args) != 2:
        ctx.call_error(f"filter expected 2 arguments, got {len(args)}")
    return _evaluated(ctx, KEPT, Static(bool) if args[0] == NONE else args[0], args[1])


register("filter", _filter)


@known("list")
def _list(ctx: Context, iterable: Value | None = None) -> Value:
    match iterable:
        case None:
            return new_list(ctx, ())
        case Grown():
            return copied(ctx, iterable)
        case Array() | RangeValue() if of_unknown_length(ctx, iterable):
            if (found := listed(ctx, iterable)) is not None:
                return found
        case Zipped(parts=parts) if any(of_unknown_length(ctx, p) for p in parts):
            return replace(_evaluated(ctx, SAME, NONE, iterable), ref=new_box(ctx))
    return new_list(ctx, items_of(ctx, "a list", iterable))


# -- functions of functions


def _reduce(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords or not 2 <= len(args) <= 3:
        ctx.call_error(f"reduce expected 2 or 3 arguments, got {len(args)}")
    if of_unknown_length(ctx, args[1]):
        if len(args) == 3:
            return inline(ctx, folding.reduced, args, {})
        items_ = args[1] if not isinstance(args[1], RangeValue) else listed(ctx, args[1])
        return inline(ctx, folding.reduced_from_first, [args[0], items_ or args[1]], {})
    items = [*args[2:], *items_of(ctx, "functools.reduce", args[1])]
    if not items:
        ctx.fail("TP112", "reduce() of empty iterable with no initial value")
    result = items[0]
    for k, item in enumerate(items[1:]):
        before = ctx.b.made
        result = call_value(ctx, args[0], [result, item])
        refuse_beyond(ctx, "functools.reduce", len(items), k + 2, ctx.b.made - before)
    return result


register("functools.reduce", _reduce)


def _partial(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if not args:
        ctx.call_error("type 'partial' takes at least one argument")
    function, *first = args

    def call(ctx: Context, more: list[Value], named: dict[str, Value]) -> Value:
        return call_value(ctx, function, [*first, *more], {**keywords, **named})

    return Builtin("partial", call)


register("functools.partial", _partial)


def _getter(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords or not args:
        ctx.call_error("itemgetter expected at least 1 argument, got 0")

    def call(ctx: Context, given: list[Value], named: dict[str, Value]) -> Value:
        found = tuple(subscript(ctx, given[0], index) for index in args)
        return found[0] if len(found) == 1 else Sequence_(found)

    return Builtin("itemgetter", call)


register("operator.itemgetter", _getter)


def _attribute_getter(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    names = [a.value for a in args if isinstance(a, Static) and isinstance(a.value, str)]
    if keywords or not names or len(names) != len(args):
        ctx.call_error("attrgetter takes the names of attributes")

    def one(base: Value, name: str, ctx: Context) -> Value:
        return functools.reduce(lambda value, part: attribute(ctx, value, part), name.split("."), base)

    def call(ctx: Context, given: list[Value], named: dict[str, Value]) -> Value:
        found = tuple(one(given[0], name, ctx) for name in names)
        return found[0] if len(found) == 1 else Sequence_(found)

    return Builtin("attrgetter", call)


register("operator.attrgetter", _attribute_getter)
