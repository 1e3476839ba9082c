"""Functions of NumPy and SciPy that the package `prelude` writes in the compiled language.

Registers them: those of NumPy when this is imported, those of SciPy once somebody has imported their module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from tapeless.frontend.data.arrays import as_numeric
from tapeless.frontend.numpy.small_functions import inline
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import BY_ID, Handler, register, when_imported
from tapeless.frontend.state.values import Sequence_, Static, Value
from tapeless.ir import containers
from tapeless.prelude import registry


def _handler(name: str, function: Callable[..., Any]) -> Handler:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        for key in keywords:
            if key not in parameters:
                ctx.fail(
                    "TP112", f"{name}: the argument '{key}' cannot be compiled", "leave it out if its default is meant."
                )
        given = {*positional[: len(args)], *keywords}
        required = positional[: len(positional) - len(function.__defaults__ or ())]
        for key in required:
            if key not in given:
                ctx.call_error(f"{name} is missing the argument '{key}'")
        if name.startswith("scipy.special."):  # which take a list for an array, in any place
            args = [as_numeric(ctx, a, name) if isinstance(a, Sequence_) and a.kind == "list" else a for a in args]
        return inline(ctx, function, args, keywords)

    return handler


def _enter(library: str) -> None:
    for name, function in registry.read(library).items():
        register(name, _handler(name, function))


def _refuse(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    text = [a.value if isinstance(a, Static) else type_text(a) for a in args]
    ctx.fail("TP112", str(text[0]), *map(str, text[1:]))


containers.when_met("scipy.sparse", partial(importlib.import_module, "tapeless.prelude.sparse"))
BY_ID[id(registry.refuse)] = (registry.refuse, _refuse)
for _library in registry.MODULES:
    if _library == "numpy":
        _enter(_library)
    else:
        when_imported(_library, partial(_enter, _library))
