"""Assignment: names, tuples, array items, and the augmented forms, which write in place."""

from __future__ import annotations

import ast
from typing import NoReturn

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arrays import as_numeric, broadcast_to, read, write
from tapeless.frontend.data.classes import has_special, special, updated
from tapeless.frontend.data.index_arrays import masked_update
from tapeless.frontend.data.indexing import get_item, is_mask, row_view, set_item
from tapeless.frontend.data.iterables import grown_items, items_of, iteration, of_unknown_length
from tapeless.frontend.data.leaves import leaves_of, number_of, rebuilt
from tapeless.frontend.data.python_operators import binary_values
from tapeless.frontend.python import growth
from tapeless.frontend.python.flow import Flow, flow
from tapeless.frontend.python.list_items import delete_entry, get_entry, is_changeable, set_entry
from tapeless.frontend.python.list_methods import change_in_place
from tapeless.frontend.python.references import current, evaluated, new_list, own_box
from tapeless.frontend.python.rules import evaluate, statement
from tapeless.frontend.source.liveness import is_into
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.surroundings import lookup
from tapeless.frontend.state.values import (
    Array,
    Grown,
    MaybeUndefined,
    Never,
    Scalar,
    Sequence_,
    SliceValue,
    Value,
    weak,
)
from tapeless.ir.types import Var, i64
from tapeless.ops.promotion import KIND


@statement(ast.Assign)
def _assign(ctx: Context, s: ast.Assign) -> Flow | None:
    if isinstance(s.value, ast.Name) and isinstance(s.targets[0], ast.Name) and len(s.targets) == 1:
        value = ctx.state.names.get(ctx.key(s.value.id))
        if isinstance(value, MaybeUndefined) and value.none:  # None is handed on
            ctx.bind(s.targets[0].id, value)
            return None
    result = evaluate(ctx, s.value)
    if isinstance(result, Never):
        return flow("raise")
    if is_into(s):
        _assign_contents(ctx, s.targets[0], result)
        return None
    for target in s.targets:
        assign(ctx, target, result)
    return None


def _assign_contents(ctx: Context, target: ast.expr, value: Value) -> None:
    """The arrays of names that have one are written, all after all have been read."""
    assert isinstance(target, ast.Tuple)
    found = unpack(ctx, value, len(target.elts))
    arrays: list[tuple[Array, Var]] = []
    for part, item in zip(target.elts, found, strict=True):
        old = ctx.state.names.get(ctx.key(part.id)) if isinstance(part, ast.Name) else None
        if not isinstance(old, Array) or not isinstance(item, Array):
            assign(ctx, part, item)
        elif (old.cell, old.view) != (item.cell, item.view):
            arrays.append((old, read(ctx, item)))
    for old, var in arrays:
        write(ctx, old, var)


@statement(ast.AnnAssign)
def _annotated(ctx: Context, s: ast.AnnAssign) -> Flow | None:
    if s.value is not None:
        result = evaluate(ctx, s.value)
        if isinstance(result, Never):
            return flow("raise")
        assign(ctx, s.target, result)
    return None


def assign(ctx: Context, target: ast.expr, value: Value) -> None:
    with ctx.at(target):
        match target:
            case ast.Name(id=name):
                ctx.bind(name, _named(ctx, value, name))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                if any(isinstance(p, ast.Starred) for p in parts):
                    _assign_with_rest(ctx, parts, value)
                    return
                for part, item in zip(parts, unpack(ctx, value, len(parts)), strict=True):
                    assign(ctx, part, item)
            case ast.Subscript(value=base, slice=index):
                value, array, where = evaluated(ctx, lambda: [value, evaluate(ctx, base), evaluate(ctx, index)])
                if has_special(array, "__setitem__"):
                    special(ctx, "__setitem__", array, where, value)
                    return
                if is_changeable(array):
                    set_entry(ctx, array, where, value)
                    return
                if not isinstance(array, Array):
                    kind = array.kind if isinstance(array, Sequence_) else ""
                    what = f"a {kind}" if kind else type_text(array)
                    ctx.fail("TP104", f"items of {what} cannot be assigned in compiled code", INSTEAD.get(kind, ARRAYS))
                set_item(ctx, array, where, value)
            case ast.Attribute():
                _refuse_attribute(ctx, target)
            case _:
                ctx.fail("TP101", "only names, tuples of names and array items can be assigned to")


def _assign_with_rest(ctx: Context, parts: list[ast.expr], value: Value) -> None:
    """a, *b, c = value: `b` is a list of what is left."""
    if of_unknown_length(ctx, value) and isinstance(value, (Array, Grown)):
        _assign_with_rest_of(ctx, parts, value)
        return
    items = items_of(ctx, "a target with '*'", value)
    (k,) = (k for k, p in enumerate(parts) if isinstance(p, ast.Starred))
    after = len(parts) - k - 1
    if len(items) < len(parts) - 1:
        ctx.fail("TP112", f"cannot unpack {len(items)} values into {len(parts) - 1} names and more")
    last = len(items) - after
    rest = parts[k]
    assert isinstance(rest, ast.Starred)
    for part, item in zip((*parts[:k], *parts[k + 1 :]), (*items[:k], *items[last:]), strict=True):
        assign(ctx, part, item)
    assign(ctx, rest.value, new_list(ctx, items[k:last]))


def _assign_with_rest_of(ctx: Context, parts: list[ast.expr], value: Array | Grown) -> None:
    """The same, of what has a length that is known when it runs."""
    length, names = iteration(ctx, value)[0], len(parts) - 1
    enough = atoms.apply(ctx, "ge", length, i64(names))
    ctx.check(enough, "ValueError", f"cannot unpack {{0}} values into {names} names and more", length)
    (k,) = (k for k, p in enumerate(parts) if isinstance(p, ast.Starred))
    after = names - k
    stop = None if after == 0 else Scalar(atoms.apply(ctx, "sub", length, i64(after)), True)
    where: list[Value] = [weak(j) if j < k else weak(j - len(parts)) for j in range(len(parts))]
    where[k] = SliceValue(weak(k), stop, None)
    for j, part in enumerate(parts):
        found = growth.item(ctx, value, where[j]) if isinstance(value, Grown) else get_item(ctx, value, where[j])
        if isinstance(part, ast.Starred):
            if isinstance(found, Array) and (numbers := growth.listed(ctx, found)) is not None:
                found = numbers
            elif isinstance(found, Array):
                ctx.fail("TP104", "a target with '*' needs a length known at compile time", "slice the array.")
            part = part.value
        assign(ctx, part, found)


ARRAYS = "use a NumPy array."
INSTEAD = {
    "tuple": "use a NumPy array, or build a new tuple.",
}


def _named(ctx: Context, value: Value, name: str) -> Value:
    """A fresh array takes the name it is first bound to, for messages and printed code."""
    if isinstance(value, Array) and not value.view and not value.cell.named:
        value.cell.name, value.cell.named = name, True
    return value


def unpack(ctx: Context, value: Value, count: int) -> list[Value]:
    match value:
        case Sequence_(kind=kind) if kind != "dataclass":
            items = items_of(ctx, "unpacking", value)
            if len(items) != count:
                ctx.fail("TP112", f"cannot unpack {len(items)} values into {count} names")
            return list(items)
        case Array(type=t):
            n = ctx.canon(t.shape[0])
            if isinstance(n, int):
                if n != count:
                    ctx.fail("TP112", f"cannot unpack {n} values into {count} names")
            else:
                size = ctx.size_atom(n)
                ok = atoms.apply(ctx, "eq", size, i64(count))
                ctx.check(ok, "ValueError", f"cannot unpack {{0}} values into {count} names", size)
            return [row_view(ctx, value, i64(k)) for k in range(count)]
        case Grown(array=Array(), length=length):
            ok = atoms.apply(ctx, "eq", length.atom, i64(count))
            ctx.check(ok, "ValueError", f"cannot unpack {{0}} values into {count} names", length.atom)
            return grown_items(ctx, value, count)
        case _:
            ctx.fail("TP104", f"cannot unpack {type_text(value)}")


@statement(ast.AugAssign)
def augmented(ctx: Context, s: ast.AugAssign) -> None:
    name = type(s.op).__name__
    match s.target:
        case ast.Name(id=target):
            old = evaluate(ctx, ast.copy_location(ast.Name(target, ast.Load()), s.target))
            new = evaluate(ctx, s.value)
            if isinstance(old, Array):
                _in_place(ctx, name, old, new)
            elif (defined := updated(ctx, name, old, new)) is not None:
                if not (isinstance(number_of(old), Array) and defined == old):  # it was written in place
                    ctx.bind(target, defined)
            elif isinstance(old, Sequence_) and is_into(s):
                ctx.bind(target, _leaf_by_leaf(ctx, name, old, new))
            elif is_changeable(old) and name in ("Add", "Mult", "BitOr"):
                change_in_place(ctx, name, old, new)
            else:
                if isinstance(old, Scalar) and old.atom in ctx.without_axes:
                    ctx.fail(
                        "TP115", f"'{target}' is an array without dimensions, which cannot be written in place",
                        "write a = a + b and return it, or pass an array of one element.",
                    )  # fmt: skip
                ctx.bind(target, binary_values(ctx, name, old, new))
        case ast.Subscript(value=base, slice=index):
            array, where = evaluate(ctx, base), evaluate(ctx, index)
            if has_special(array, "__setitem__"):
                found, by = special(ctx, "__getitem__", array, where), evaluate(ctx, s.value)
                if found is None:
                    ctx.fail("TP104", f"{type_text(array)} cannot be indexed", "define __getitem__ in its class.")
                changed = updated(ctx, name, found, by) or binary_values(ctx, name, found, by)
                special(ctx, "__setitem__", array, where, changed)
                return
            if is_changeable(array):
                _update_entry(ctx, name, array, where, s.value)
                return
            if not isinstance(array, Array):
                ctx.fail("TP104", f"items of {type_text(array)} cannot be assigned", "use a NumPy array.")
            if is_mask(where, array):
                by = evaluate(ctx, s.value)
                if isinstance(by, Scalar):
                    assert isinstance(where, Array)
                    masked_update(ctx, array, where, _same_kind(ctx, name, array, binary_values(ctx, name, array, by)))
                    return
                old = get_item(ctx, array, where)
                set_item(ctx, array, where, _same_kind(ctx, name, old, binary_values(ctx, name, old, by)))
                return
            old = get_item(ctx, array, where)
            new = evaluate(ctx, s.value)
            set_item(ctx, array, where, _same_kind(ctx, name, old, binary_values(ctx, name, old, new)))
        case ast.Attribute() as attribute:
            _refuse_attribute(ctx, attribute)
        case _:
            ctx.fail("TP101", "only names and array items can be the target of an augmented assignment")


def _refuse_attribute(ctx: Context, target: ast.Attribute) -> NoReturn:
    text = ast.unparse(target)
    hint = f"return the new value, and assign it outside: {text} = f(...)."
    ctx.fail("TP101", f"'{text}' cannot be assigned: compiled code does not change objects", hint)


def _update_entry(ctx: Context, name: str, base: Sequence_ | Grown, where: Value, by: ast.expr) -> None:
    """base[where] += by, of a list or dict: an array or a list there is changed itself."""
    since = len(ctx.changed)
    old = get_entry(ctx, base, where)
    new = evaluate(ctx, by)
    found, old = current(ctx, [base, old], since)
    assert isinstance(found, (Sequence_, Grown))
    if isinstance(old, Array):
        own_box(ctx, "assignment to an item", found)
        _in_place(ctx, name, old, new)
    elif is_changeable(old) and name in ("Add", "Mult", "BitOr"):
        change_in_place(ctx, name, old, new)
    else:
        result = updated(ctx, name, old, new) or binary_values(ctx, name, old, new)
        set_entry(ctx, found, where, result)


@statement(ast.Delete)
def _delete(ctx: Context, s: ast.Delete) -> None:
    for target in s.targets:
        with ctx.at(target):
            match target:
                case ast.Name(id=name):
                    lookup(ctx, name)
                    ctx.state.names.pop(ctx.key(name), None)
                case ast.Subscript(value=base, slice=index):
                    _delete_item(ctx, base, index)
                case _:
                    ctx.fail("TP101", "only names and items of lists and dicts can be deleted")


def _delete_item(ctx: Context, base: ast.expr, index: ast.expr) -> None:
    found, where = evaluated(ctx, lambda: [evaluate(ctx, base), evaluate(ctx, index)])
    if not is_changeable(found):
        ctx.fail("TP104", f"items of {type_text(found)} cannot be deleted")
    delete_entry(ctx, found, where)


def _leaf_by_leaf(ctx: Context, name: str, old: Sequence_, new: Value) -> Value:
    leaves: list[Value] = []
    for a, b in zip(leaves_of(old), leaves_of(new), strict=True):
        if isinstance(a, Array):
            _in_place(ctx, name, a, b)
            leaves.append(a)
        else:
            leaves.append(binary_values(ctx, name, a, b) if isinstance(a, Scalar) else a)
    return rebuilt(old, leaves)


def _in_place(ctx: Context, name: str, old: Array, new: Value) -> None:
    """a += b writes into the array that `a` refers to."""
    if name == "MatMult":
        ctx.fail("TP101", "'@=' is not part of the language", "write a = a @ b.")
    value = _same_kind(ctx, name, old, binary_values(ctx, name, old, new))
    atom = broadcast_to(
        ctx, as_numeric(ctx, value, "assignment"), ctx.dims(old.type.shape), old.type.dtype, "assignment"
    )
    if isinstance(atom, Var) and atom.type.rank < old.type.rank:
        ctx.shape_error("TP201", "the result of an in-place operation must have the shape of its target")
    write(ctx, old, atom)


def _same_kind(ctx: Context, name: str, old: Value, value: Value) -> Value:
    have = old.type.dtype if isinstance(old, Array) else old.dtype if isinstance(old, Scalar) else None
    got = value.type.dtype if isinstance(value, Array) else value.dtype if isinstance(value, Scalar) else None
    if isinstance(old, Array) and have and got and KIND[got] > KIND[have]:
        symbol = scalars.SYMBOLS.get(name, name)
        ctx.fail(
            "TP104",
            f"'{symbol}=' on an array of {have.numpy.name} gives {got.numpy.name}, which does not fit in place",
            "convert the array first (.astype), or write a = a op b.",
        )
    return value
