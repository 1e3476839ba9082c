"""debug_nans=True: numbers that an expression of the user's makes are tested.

Takes the value of an expression, or of what a statement has changed. Memory that is not filled yet holds anything, and passes.
"""

from __future__ import annotations

import ast

from tapeless.frontend.data import atoms
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.leaves import leaves_of
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Value
from tapeless.ir.types import Atom, Var

TESTED = (ast.BinOp, ast.Call, ast.AugAssign)
MESSAGE = "a value on this line is NaN"


def expect_numbers(ctx: Context, node: ast.expr | ast.stmt, value: Value) -> None:
    if isinstance(node, TESTED) and not _is_empty(node):
        for leaf in leaves_of(value):
            if isinstance(leaf, Scalar):
                _test(ctx, leaf.atom)
            elif isinstance(leaf, Array):
                _test(ctx, read(ctx, leaf))


def _is_empty(node: ast.expr | ast.stmt) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, (ast.Attribute, ast.Name)) and ast.unparse(called).split(".")[-1].startswith("empty")


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
