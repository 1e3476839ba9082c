"""Lowering of triangular solves, and of the way back through a Cholesky factorisation.

Note [Back through a factor]
A = L L^T, and L_adj is given. Block by block from the last one (I. Murray, Differentiation of the Cholesky
decomposition, 2016), with the parts of L beside and below the diagonal block D, and the adjoints in their places:

    . . .        C_adj := C_adj D^-1
    R D .        B_adj -= C_adj R       D_adj -= C_adj^T C
    B C .        D_adj := the same for D alone, row by row
                 R_adj -= C_adj^T B + (D_adj + D_adj^T) R

That is twice the work of the factorisation, nearly all of it in products; by solves with whole matrices it is nine
times.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.ir.core import Library, Var
from tapeless.ir.types import Atom, DType, const, i64
from tapeless.lower.core.blas import (
    LEFT,
    LOWER,
    NO,
    PREFIX,
    RIGHT,
    UPPER,
    gemm,
    leading,
    operand,
    pointer,
    temporary,
    transposed,
)
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Call

BLOCK = 64  # rows of a diagonal block


def solve_triangle(lo: Lowerer, var: Var, exp: Library, lower: bool) -> None:
    """A X = B as X^T A^T = B^T, which is what BLAS sees in rows."""
    code = lo.code
    a, b = lo.loc(exp.args[0]), lo.loc(exp.args[1])
    out = lo.place(var)
    lo.arrays[var] = out
    with code.loop(a.shape[0]) as i:
        pivot = code.load(a, [i, i])
        code.check(code.compare("ne", pivot, const(0, a.dtype)), "LinAlgError", "Singular matrix")
    target = out if out.ordered else temporary(lo, b.dtype, b.shape, "rhs")
    code.copy(b, target)
    columns = target.shape[1] if target.rank == 2 else ONE
    given, turned, ld = operand(lo, a)
    upper_there = lower == (turned == NO)
    lo.note_blas()
    width = code.let("max", DType.i64, columns, ONE, label="ld")
    sides = (RIGHT, UPPER if upper_there else LOWER, turned, NO)
    sizes = (columns, a.shape[0], const(1, a.dtype))
    code.emit(Call(f"{PREFIX[a.dtype]}trsm", (*sides, *sizes, pointer(given), ld, pointer(target), width)))
    if target is not out:
        code.copy(target, out)


def cholesky_adjoint(lo: Lowerer, var: Var, exp: Library) -> None:
    """Note [Back through a factor]"""
    code = lo.code
    factor, adj = lo.loc(exp.args[0]), lo.loc(exp.args[1])
    if not factor.upward or factor.strides[1] != ONE:
        whole = temporary(lo, factor.dtype, factor.shape, "factor")
        code.copy(factor, whole)
        factor = whole
    out = lo.place(var)
    lo.arrays[var] = out
    target = out if out.ordered else temporary(lo, adj.dtype, adj.shape, "adj")
    _lower_part(lo, adj, target)
    n, block = factor.shape[0], i64(BLOCK)
    square = temporary(lo, factor.dtype, (block, block), "square")
    count = code.let("floordiv", DType.i64, code.add(n, i64(BLOCK - 1)), block, label="blocks")
    with code.loop(count, label="b") as b:
        end = code.sub(n, code.mul(b, block))
        start = code.let("max", DType.i64, code.sub(end, block), ZERO, label="start")
        lo.scoped(lambda: _block_adjoint(lo, factor, target, start, end, square))
    _lower_part(lo, target, target)
    if target is not out:
        code.copy(target, out)


def _part(lo: Lowerer, loc: Loc, rows: tuple[Atom, Atom], columns: tuple[Atom, Atom]) -> Loc:
    """Of a matrix, from .. to."""
    code = lo.code
    offset = code.add(loc.offset, code.add(code.mul(rows[0], loc.strides[0]), code.mul(columns[0], loc.strides[1])))
    shape = (code.sub(rows[1], rows[0]), code.sub(columns[1], columns[0]))
    return replace(loc, shape=shape, offset=offset, ordered=False)


def _block_adjoint(lo: Lowerer, factor: Loc, adj: Loc, start: Atom, end: Atom, square: Loc) -> None:
    code, dtype = lo.code, factor.dtype
    before, here, after = (ZERO, start), (start, end), (end, factor.shape[0])
    r, d, b, c = (_part(lo, factor, *at) for at in ((here, before), (here, here), (after, before), (after, here)))
    r_adj, d_adj, b_adj, c_adj = (
        _part(lo, adj, *at) for at in ((here, before), (here, here), (after, before), (after, here))
    )
    lo.note_blas()
    sizes = (c.shape[1], c.shape[0], const(1, dtype))
    ends = (pointer(d), leading(lo, d), pointer(c_adj), leading(lo, c_adj))
    code.emit(Call(f"{PREFIX[dtype]}trsm", (LEFT, UPPER, NO, NO, *sizes, *ends)))
    gemm(lo, c_adj, r, b_adj, alpha=-1, beta=1)
    gemm(lo, transposed(c_adj), c, d_adj, alpha=-1, beta=1)
    _small_adjoint(lo, d, d_adj)
    gemm(lo, transposed(c_adj), b, r_adj, alpha=-1, beta=1)
    both = replace(square, shape=d.shape, ordered=False)
    _symmetric(lo, d_adj, both)
    gemm(lo, both, r, r_adj, alpha=-1, beta=1)


def _small_adjoint(lo: Lowerer, factor: Loc, adj: Loc) -> None:
    """The same for a few rows, one by one from the last."""
    code, dtype = lo.code, factor.dtype
    n = factor.shape[0]

    def less(place: list[Atom], x: Atom, y: Atom) -> None:
        """adj[place] -= x * y"""
        product = code.let("mul", dtype, x, y, label="p")
        code.store(adj, place, code.let("sub", dtype, code.load(adj, place), product, label="adj"))

    with code.loop(n, label="up") as up:
        j = code.sub(code.sub(n, ONE), up)
        pivot = code.load(factor, [j, j])
        with code.loop(n, code.add(j, ONE), label="i") as i:
            scaled = code.let("div", dtype, code.load(adj, [i, j]), pivot, label="c_adj")
            code.store(adj, [i, j], scaled)
            less([j, j], code.load(factor, [i, j]), scaled)
        own = code.let("div", dtype, code.load(adj, [j, j]), pivot, label="d_adj")
        code.each([j], lambda k: less([j, *k], own, code.load(factor, [j, *k])))
        with code.loop(n, code.add(j, ONE), label="i") as i:
            slope = code.load(adj, [i, j])
            code.each([j], lambda k: less([j, *k], slope, code.load(factor, [i, *k])))
            code.each([j], lambda k: less([i, *k], slope, code.load(factor, [j, *k])))
        code.store(adj, [j, j], code.let("mul", dtype, own, const(0.5, dtype), label="d_adj"))


def _symmetric(lo: Lowerer, lower: Loc, out: Loc) -> None:
    """The lower triangle plus its transpose."""
    code = lo.code
    with code.loop(lower.shape[0], label="i") as i, code.loop(code.add(i, ONE), label="j") as j:
        value = code.load(lower, [i, j])
        twice = code.let("add", lower.dtype, value, value, label="twice")
        both = code.let("select", lower.dtype, code.compare("eq", i, j), twice, value, label="both")
        code.store(out, [i, j], both)
        code.store(out, [j, i], both)


def _lower_part(lo: Lowerer, source: Loc, out: Loc) -> None:
    code = lo.code

    def put(place: list[Atom]) -> None:
        below = code.compare("le", place[1], place[0])
        value = code.let("select", out.dtype, below, code.load(source, place), const(0, out.dtype), label="l")
        code.store(out, place, value)

    code.spread(out.shape, put)
