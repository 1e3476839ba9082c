"""Arrays of the surroundings, and long constants, as hidden arguments.

`capture` makes the parameter; `NewCapture` is raised where one is met first, and tracing starts again with it. Relies
on `context` only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapeless.frontend.source.origins import Origin, made_here
from tapeless.frontend.state.context import Captured, Context
from tapeless.frontend.state.values import Array, Cell
from tapeless.ir.types import FROM_NUMPY, Const, DType, Type, Var


class NewCapture(Exception):
    """An array of the surroundings was met: tracing starts again with it among the parameters, known on every path."""

    def __init__(self, origin: Origin, name: str, fixed: bool = False) -> None:
        super().__init__(name)
        self.origin, self.name, self.fixed = origin, name, fixed


def capture(ctx: Context, origin: Origin, name: str, fixed: bool = False) -> None:
    """Makes an array of the surroundings a hidden parameter. `fixed`: a version is for arrays of this size."""
    value = origin.value
    dtype = FROM_NUMPY[value.dtype.newbyteorder("=")]
    shape: list[int | Var] = []
    for d in value.shape:
        if d == 1 or fixed:
            shape.append(d)
        else:
            var = Var(f"{name}_n", Type(DType.i64))
            ctx.sizes.append(var)
            shape.append(var)
    param = Var(name.replace(".", "_"), Type(dtype, tuple(shape)))
    reason = "" if value.flags.writeable else f"'{name}' is a read-only array"
    cell = Cell(name, argument=True, readonly=reason, scattered=not value.flags.c_contiguous)
    ctx.captured[id(value)] = Captured(origin, param, cell, name)
    ctx.state.cells[cell] = param


def constants(ctx: Context, known: Sequence[Const]) -> Array:
    """Numbers of one type as a hidden argument. Raises NewCapture the first time."""
    dtype = known[0].dtype
    made = np.array([k.value for k in known], dtype.numpy)
    array = ctx.reads.constants.setdefault((dtype, made.tobytes()), made)  # the same one when the trace starts again
    found = ctx.captured.get(id(array))
    if found is None:
        array.flags.writeable = False
        raise NewCapture(made_here(array), "constants", fixed=True)
    return Array(found.cell, found.param.type)
