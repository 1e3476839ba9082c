"""Containers of values, leaf by leaf: what transforms and calls work on."""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data.arrays import read
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value
from tapeless.ir import containers
from tapeless.ir.types import Atom, Type, Var


def leaves_of(value: Value) -> list[Value]:
    if isinstance(value, Sequence_):
        return [leaf for item in value.items for leaf in leaves_of(item)]
    return [value]


def paths_of(value: Value, name: str) -> list[str]:
    """How one would write each leaf."""
    if not isinstance(value, Sequence_):
        return [name]
    steps: list[str] = [f"[{k}]" for k in range(len(value.items))]
    if value.keys:
        steps = [f"[{k!r}]" if value.kind == "dict" else f".{k}" for k in value.keys]
    return [path for item, step in zip(value.items, steps, strict=True) for path in paths_of(item, name + step)]


def rebuilt(value: Value, leaves: Sequence[Value]) -> Value:
    """The container of `value` with other leaves."""
    rest = list(leaves)

    def build(v: Value) -> Value:
        if isinstance(v, Sequence_):
            return Sequence_(tuple(build(item) for item in v.items), v.kind, v.keys, v.cls)
        return rest.pop(0)

    return build(value)


def number_of(value: Value) -> Value:
    """What has the derivatives of a number: of one of a class that says so, the field that it names."""
    if isinstance(value, Sequence_) and hasattr(value.cls, "__tapeless_tangent__"):
        return value.items[value.keys.index(value.cls.__tapeless_tangent__)]
    return value


def kept_leaves(value: Value) -> list[bool]:
    """Of each leaf, whether it belongs to the structure of its container: `containers.kept_parts`."""
    if not isinstance(value, Sequence_):
        return [False]
    names = containers.kept_parts(value.cls)
    found: list[bool] = []
    for k, item in enumerate(value.items):
        found += [True] * len(leaves_of(item)) if names and value.keys[k] in names else kept_leaves(item)
    return found


def tangents_like(value: Value, leaves: Sequence[Value]) -> Value:
    """Tangents or adjoints of the leaves, in the container of `value`."""
    rest = list(leaves)

    def build(v: Value) -> Value:
        number = number_of(v)
        if isinstance(number, Sequence_):
            items = tuple(build(item) for item in number.items)
            kept = containers.kept_parts(number.cls)
            if kept and all(item == Static(None) for k, item in zip(number.keys, items, strict=True) if k not in kept):
                return Static(None)  # a structure of nothing
            return Sequence_(items, number.kind, number.keys, number.cls)
        return rest.pop(0)

    return build(value)


def type_of(value: Value) -> Type | None:
    match value:
        case Scalar(atom=atom):
            return atom.type
        case Array(type=type):
            return type
        case _:
            return None


def atom_of(ctx: Context, value: Scalar | Array) -> Atom:
    return value.atom if isinstance(value, Scalar) else read(ctx, value)


def own(ctx: Context, value: Value) -> Value:
    """With arrays that may be written, and that nobody else sees."""
    leaves = [
        ctx.new_cell(atom_of(ctx, leaf), leaf.cell.name) if isinstance(leaf, Array) else leaf  # type: ignore[arg-type]
        for leaf in leaves_of(value)
    ]
    return rebuilt(value, leaves)


def value_of(ctx: Context, atom: Atom, weak: bool = False) -> Value:
    if atom.type.shape:
        assert isinstance(atom, Var)
        return ctx.new_cell(atom)
    return Scalar(atom, weak)
