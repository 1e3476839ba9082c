"""debug_nans=True: numbers that an expression of the user's makes are tested.

Takes the value of an expression. Calls that only move numbers pass, since memory that is not filled yet holds anything,
and so do calls by a bare name: most are of the user's functions, whose own expressions are tested. In a parallel loop nothing is: sums must not be
read there.
"""

from __future__ import annotations

import ast

from tapeless.frontend.data.leaves import atom_of, leaves_of, type_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Value
from tapeless.ops.emit import Emit
from tapeless.ops.table import INEXACT

MESSAGE = "a value on this line is NaN"
MOVING = frozenset({
    "empty", "empty_like", "copy", "array", "asarray", "reshape", "ravel", "flatten", "transpose", "astype", "view", "stack",
    "concatenate", "where",
})  # fmt: skip


def expect_numbers(ctx: Context, node: ast.expr, value: Value) -> None:
    if not ctx.in_parallel and (isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and _computes(node))):
        for leaf in leaves_of(value):
            if isinstance(leaf, (Scalar, Array)) and (type := type_of(leaf)) is not None and type.dtype in INEXACT:
                Emit(ctx.b).expect_numbers(atom_of(ctx, leaf), MESSAGE)


def _computes(node: ast.Call) -> bool:
    """A function of a module, or a method."""
    return isinstance(node.func, ast.Attribute) and node.func.attr not in MOVING
