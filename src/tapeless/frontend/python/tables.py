"""Lists of lists: which are tables, and what may be done with their rows.

Takes lists and the cells of the arrays that hold them; refuses what Python would show elsewhere, too. Note [Lists of lists] in
`state/values.py` says why.
"""

from __future__ import annotations

from tapeless.frontend.python.references import refers_to
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Box, Cell, Grown, Scalar, Sequence_, Value
from tapeless.ir.types import DType


def kinds_of(values: Sequence_) -> set[tuple[DType, bool] | None]:
    """The types of the numbers in it; None if something else is."""
    return {(v.dtype, v.weak) if isinstance(v, Scalar) else None for v in values.items}


def is_table(ctx: Context, values: Sequence_) -> bool:
    """Whether it is a list of lists of one length, of numbers of one type, which are its own: Note [Lists of lists]"""
    rows_ = [v for v in values.items if isinstance(v, Sequence_) and v.kind == "list" and v.items and v.ref is not None]
    boxes = [v.ref for v in rows_ if v.ref is not None and not v.ref.may_be]
    if values.kind != "list" or len(boxes) < len(values.items) or len(set(boxes)) < len(boxes) or not boxes:
        return False
    kinds = {kind for v in rows_ for kind in kinds_of(v)}
    if len(kinds) != 1 or None in kinds or len({len(v.items) for v in rows_}) != 1:
        return False
    return not any(is_referred_to(ctx, box, values.ref) for box in boxes)


def is_referred_to(ctx: Context, box: Box, holder: Box | None) -> bool:
    """Whether something refers to a list besides the one that holds it."""

    def refers(value: Value) -> bool:
        if isinstance(value, (Sequence_, Grown)) and value.ref is holder and holder is not None:
            return False
        if isinstance(value, Sequence_) and value.ref is not box and not (value.ref and box in value.ref.possible):
            return any(map(refers, value.items))
        return refers_to(value, box)

    return any(refers(v) for k, v in ctx.state.names.items() if k != box.key)


def writes_row(ctx: Context, cell: Cell) -> None:
    """Note [Lists of lists]"""
    rows_ = cell.rows
    if rows_ is None or not rows_.own or rows_.copied:
        ctx.fail(
            "TP104",
            "a list in a list is written to which something else may refer, too",
            "make the rows in a comprehension, [[0.0] * m for _ in range(n)], or use an array.",
        )
    rows_.written = True


def copies_rows(ctx: Context, grown: Grown) -> None:
    """A copy of a list of lists has the same rows in Python. Note [Lists of lists]"""
    rows_ = None if grown.array is None else grown.array.cell.rows
    if rows_ is None:
        return
    if rows_.written:
        ctx.fail(
            "TP104",
            "a list of lists is copied, and its rows are written: the copy has the same rows in Python, and others here",
            "copy the rows: [list(row) for row in ...].",
        )
    rows_.copied = True


def moves_rows(ctx: Context, what: str, grown: Grown) -> None:
    """Rows are no longer where they were: from here on they are read, and not written. Note [Lists of lists]"""
    rows_ = None if grown.array is None else grown.array.cell.rows
    if rows_ is None:
        return
    if rows_.seen:
        ctx.fail("TP104", f"{what} moves the rows of a list of lists, to which something refers", "use an array.")
    rows_.own = False
