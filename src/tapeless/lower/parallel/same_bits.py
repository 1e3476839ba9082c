"""Sums on a GPU that have the same bits in each run, for `deterministic=True`.

Note [Same bits]
Threads that add to one cell come in any order, and the last bits of a sum of floats show it. So maps and histograms that
would have threads do so are cut into chunks, each of which one thread does in order, with cells of its own; then there is a
thread for each cell, which adds up what the chunks have in theirs, in order. Few chunks have room for many cells: this takes
longer. What does not round, sums of integers and extrema, needs none of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Atom, Sweep, Var
from tapeless.ir.types import DType, i64
from tapeless.ir.walk import free_in_lambda
from tapeless.lower.core.code import ONE, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.parallel.elements import atomic_ops
from tapeless.ops.table import TABLE

ROOM = 1 << 26  # cells that the chunks have together, at most
MOST_CHUNKS = 1 << 11  # whose cells are added up


def rounds(op: str, dtype: DType) -> bool:
    """Whether the order of the operands shows in the result."""
    return (dtype.is_float or dtype.is_complex) and TABLE[op].extremum is None


def shows_order(lo: Lowerer, exp: Sweep) -> bool:
    """Whether threads that have an element each would add to the same cells, with results that depend on their order."""
    met = [lo.accs[a] for a in free_in_lambda(exp.lam) if a in lo.accs and lo.accs[a].op != "set"]
    by_atomics = exp.reduces if any(ne.type.shape for r in exp.reduces for ne in r.neutral) else ()
    summed = [
        rounds(op, ne.type.dtype) for r in by_atomics for op, ne in zip(atomic_ops(r) or (), r.neutral, strict=True)
    ]
    return any(rounds(acc.op, acc.loc.dtype) for acc in met) or any(summed)


def rounding(lo: Lowerer, accs: Sequence[Var]) -> list[Var]:
    return [a for a in accs if rounds(lo.accs[a].op, lo.accs[a].loc.dtype)]


def chunks_of(lo: Lowerer, n: Atom, own: Sequence[Loc]) -> Atom:
    """How many chunks n elements are cut into, if each has such cells of its own."""
    code = lo.code
    cells: Atom = ONE
    for loc in own:
        cells = code.add(cells, code.size(loc.shape))
    most = code.let("floordiv", DType.i64, i64(ROOM), cells, label="chunks")
    most = code.let("min", DType.i64, most, i64(MOST_CHUNKS), label="chunks")
    return code.let("max", DType.i64, code.let("min", DType.i64, n, most), ONE, label="chunks")
