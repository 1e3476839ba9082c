"""Rows that the elements of a sweep know without reading an array: the same array again, indices, repeated values, and
cells of rows that they have.

`np.minimum(d, d[:, k, None] + d[k])` sweeps over the rows of `d` and over the cells of its column `k`, and each of
these is a cell of the row beside it. Backwards that matters: what a cell gets is added to the adjoint of its row while
that is made, instead of to a column of the finished matrix, which takes a line of memory a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tapeless.ir.core import At, Broadcast, Exp, Full, Index, Iota, Reshape, Stm
from tapeless.ir.span import Span
from tapeless.ir.types import Atom, Const, Type, Var
from tapeless.passes.parallel.merged_sweeps import is_whole

Definitions = Mapping[Var, Exp]
TELLING = (Full, Broadcast, Iota, Reshape, Index)  # what says something about rows


def known_rows(
    arrays: Sequence[Var], params: Sequence[Var], defs: Definitions, is_gone: Callable[[Var], bool], span: Span
) -> tuple[dict[int, Atom], list[Stm]]:
    """By the number of the array, what its row is; and statements that make some of these. `params` begin with the
    index.
    """
    if len(set(arrays)) == len(arrays) and not any(type(defs.get(a)) in TELLING for a in arrays):
        return {}, []
    index, *rows = params
    first: dict[Var, Var] = {}
    for row, array in zip(rows, arrays, strict=True):
        if not isinstance(defs.get(array), (Full, Broadcast, Iota)):
            first.setdefault(array, row)
    known: dict[int, Atom] = {}
    made: list[Stm] = []
    for k, (row, array) in enumerate(zip(rows, arrays, strict=True)):
        if stms := _made(array, row, first, defs, span):
            known[k] = row
            made += stms
            continue
        atom = first[array] if array in first else _repeated(array, index, defs, is_gone)
        if atom is not None and atom is not row and atom.type == row.type:
            known[k] = atom
    return known, made


def _repeated(array: Var, index: Var, defs: Definitions, is_gone: Callable[[Var], bool]) -> Atom | None:
    match defs.get(array):
        case Iota():
            return index
        case Full((_,), Var() | Const() as value):
            return value
        case Broadcast(source, _, places) if places == tuple(range(1, array.type.rank)):
            return None if is_gone(source) else source
    return None


def _made(array: Var, row: Var, rows: Mapping[Var, Var], defs: Definitions, span: Span) -> list[Stm]:
    """What makes a row of a filled array, or of a column of a matrix of which there are rows."""
    exp, ones = defs.get(array), row.type.shape
    match exp:
        case Full((_, *inner), Var() | Const() as value) if inner:
            return [Stm((row,), Full(tuple(inner), value), span)]
        case Reshape(column, (_, *inner)) if column.type.rank == 1 and all(n == 1 for n in inner):
            exp = defs.get(column)
    match exp:
        case Index(matrix, (whole, *cell)) if matrix in rows and is_whole(whole, matrix.type.shape[0]):
            places = [At(a.index, a.wrap) for a in cell if isinstance(a, At)]  # tested where the column is taken
            if cell and len(places) == len(cell):
                found = Var(row.name, Type(row.type.dtype)) if ones else row
                taken = Stm((found,), Index(rows[matrix], tuple(places)), span)
                return [taken, Stm((row,), Full(ones, found), span)] if ones else [taken]
    return []
