"""debug_nans=True: numbers that an expression of the user's makes are tested.

Takes the value of an expression. Calls that only move numbers pass, since memory that is not filled yet holds anything,
and so do calls of the user's functions, whose own expressions are tested. In a parallel loop nothing is: sums must not be
read there.
"""

from __future__ import annotations

import ast

from tapeless.frontend.data import atoms
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.leaves import leaves_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Value
from tapeless.ir.types import Atom, Var

MESSAGE = "a value on this line is NaN"
MOVING = frozenset(
    [
        "empty",
        "empty_like",
        "copy",
        "array",
        "asarray",
        "reshape",
        "ravel",
        "flatten",
        "transpose",
        "astype",
        "view",
        "stack",
        "concatenate",
        "where",
    ]
)


def expect_numbers(ctx: Context, node: ast.expr, value: Value) -> None:
    if not ctx.in_parallel and (isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and _computes(node))):
        for leaf in leaves_of(value):
            if isinstance(leaf, Scalar):
                _test(ctx, leaf.atom)
            elif isinstance(leaf, Array):
                _test(ctx, read(ctx, leaf))


def _computes(node: ast.Call) -> bool:
    """A function of a module, or a method."""
    return isinstance(node.func, ast.Attribute) and node.func.attr not in MOVING


def _test(ctx: Context, value: Atom) -> None:
    dtype = value.type.dtype
    if not (dtype.is_float or dtype.is_complex):
        return
    if value.type.shape:
        assert isinstance(value, Var)

        def element(_: Var, row: Var) -> tuple[Atom, ...]:
            _test(ctx, row)
            return ()

        ctx.b.map(value.type.shape[0], [value], element)
    else:
        good = atoms.logical_not(ctx, atoms.apply(ctx, "isnan", value))
        ctx.check(good, "FloatingPointError", MESSAGE)
