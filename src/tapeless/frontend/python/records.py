"""NamedTuples and dataclasses made in compiled code, and with other values in some of their fields."""

from __future__ import annotations

import dataclasses

from tapeless.frontend.data.classes import attribute_of_class, class_method, is_generated
from tapeless.frontend.source.origins import made_here
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import MODULES, call_value, register
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Sequence_, Value


def construct(ctx: Context, cls: type, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A NamedTuple or a plain dataclass made in compiled code."""
    if hasattr(cls, "__tapeless_new__"):  # a class of ours that says how
        maker = class_method(ctx, cls, "__tapeless_new__")
        assert maker is not None
        return call_value(ctx, maker, args, keywords)
    if dataclasses.is_dataclass(cls):
        if not is_generated(cls.__init__):
            ctx.fail("TP103", f"'{cls.__name__}' has an __init__ of its own, which cannot be compiled")
        fields = tuple(f.name for f in dataclasses.fields(cls))
        defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING}
        kind = "dataclass"
    else:
        if not is_generated(cls.__new__):
            ctx.fail("TP103", f"'{cls.__name__}' has a __new__ of its own, which cannot be compiled")
        fields, defaults, kind = cls._fields, cls._field_defaults, "namedtuple"  # type: ignore[attr-defined]
    given = dict(zip(fields, args, strict=False))
    if len(args) > len(fields) or set(keywords) - set(fields) or set(keywords) & set(given):
        ctx.fail("TP112", f"the arguments do not fit the fields of '{cls.__name__}': {', '.join(fields)}")
    given.update(keywords)
    for name in fields:
        if name not in given:
            if name not in defaults:
                ctx.fail("TP112", f"'{cls.__name__}' is missing the field '{name}'")
            given[name] = from_python(
                ctx, made_here(defaults[name]), f"{cls.__name__}.{name}"
            )  # part of the class's mark
    return _completed(ctx, Sequence_(tuple(given[f] for f in fields), kind, fields, cls))


def _completed(ctx: Context, made: Sequence_) -> Sequence_:
    """What a dataclass does with its fields once it has them."""
    if made.kind == "dataclass" and (check := attribute_of_class(ctx, made, "__post_init__")) is not None:
        call_value(ctx, check, [])
    return made


def replaced(ctx: Context, value: Value, fields: dict[str, Value]) -> Value:
    """A NamedTuple or dataclass with other values in some of its fields."""
    if not isinstance(value, Sequence_) or value.kind not in ("namedtuple", "dataclass"):
        ctx.fail("TP112", f"{type_text(value)} has no fields to be replaced")
    unknown = sorted(set(fields) - set(value.keys))
    if unknown:
        names = ", ".join(map(str, value.keys))
        ctx.fail("TP112", f"'{value.cls.__name__}' has no field '{unknown[0]}': it has {names}")
    items = tuple(fields.get(key, item) for key, item in zip(value.keys, value.items, strict=True))
    return _completed(ctx, Sequence_(items, value.kind, value.keys, value.cls))


def _replace(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if len(args) != 1:
        ctx.fail("TP112", "dataclasses.replace takes one object, and its fields by name")
    return replaced(ctx, args[0], keywords)


MODULES.setdefault("dataclasses", dataclasses)
register("dataclasses.replace", _replace)
