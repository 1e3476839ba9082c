"""Methods of scipy.stats' distributions: `d.logpdf(x, *args)` is `d(*args).logpdf(x)`, and what `d(*args)` is in compiled
code is written in `prelude`. A frozen distribution of the surroundings is made again of its arguments.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from tapeless.frontend.data.classes import attribute_of_class
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import BOUND, Handler, call_value, handler_of, resolve, when_imported
from tapeless.frontend.state.refusals import refuse_call
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Sequence_, Value
from tapeless.prelude import registry

AT_POINTS = {"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"}
OF_ALL = {"mean", "var", "std", "median", "entropy"}


def _method(distribution: Any, name: str) -> Handler | None:
    make = handler_of(distribution)
    if make is None or name not in AT_POINTS | OF_ALL:
        return None
    method = getattr(distribution, name)

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        if name in OF_ALL:
            return _called(ctx, make(ctx, args, keywords), method, [])
        first = next(iter(inspect.signature(method).parameters))
        rest = dict(keywords)
        if not args and first in rest:
            args = [rest.pop(first)]
        if not args:
            ctx.call_error(f"{name} is missing the argument '{first}'")
        return _called(ctx, make(ctx, args[1:], rest), method, args[:1])

    return handler


def _of_frozen(frozen: Any, name: str) -> Handler | None:
    """The distribution in it is a copy of the public one."""
    copy = frozen.dist
    public: Any = getattr(sys.modules["scipy.stats"], copy.name, None)
    make = handler_of(public)
    same = type(public) is type(copy) and _limits(public) == _limits(copy)
    if make is None or not same or name not in AT_POINTS | OF_ALL:
        return None

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        origin = ctx.reads.origin_of(frozen)
        given, named = (
            from_python(ctx, ctx.reads.step(origin, "attribute", part), f"{copy.name}.{part}")
            for part in ("args", "kwds")
        )
        assert isinstance(given, Sequence_) and isinstance(named, Sequence_)
        made = make(ctx, list(given.items), dict(zip(named.keys, named.items, strict=True)))
        return _called(ctx, made, getattr(frozen, name), args, keywords)

    return handler


def _limits(distribution: Any) -> str:
    """What may be given for one when it is made; NaN is NaN."""
    return repr((distribution.a, distribution.b, distribution.badvalue))


def _called(
    ctx: Context, made: Value, method: Any, args: list[Value], keywords: dict[str, Value] | None = None
) -> Value:
    assert isinstance(made, Sequence_)
    found = attribute_of_class(ctx, made, method.__name__)
    if found is None:
        refuse_call(ctx, method, args)
    return call_value(ctx, found, args, keywords)


def _enter() -> None:
    written = [resolve(name) for name in registry.read("scipy.stats")]
    for kind in {type(target) for target in written if not inspect.isfunction(target)}:
        BOUND[kind] = _method
    BOUND[sys.modules["scipy.stats"].distributions.rv_frozen] = _of_frozen


when_imported("scipy.stats", _enter)
