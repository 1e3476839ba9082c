"""Routines of BLAS and LAPACK as loops, for kernels, which can call none.

`by_loops` takes a call and gives statements that do the same, up to rounding; `inside_kernels` does so in a program. Matrices lie by columns, as
these routines take them. A thread does all of it alone: products and systems inside a parallel loop are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tapeless.ir.types import Atom, Const, DType, Var, const
from tapeless.lower.core.code import ONE, ZERO, Code, Loc
from tapeless.lower.ir.loopir import Call, For, Let, Pointer, Program, Stm, Tag
from tapeless.lower.ir.walk import Block, is_blocked, walk, with_blocks
from tapeless.ops.table import TABLE


def by_loops(call: Call) -> list[Stm] | None:
    """None where the routine is not known here."""
    write = ROUTINES.get(call.name[1:])
    if write is None:
        return None
    code = Code()
    info = write(_Matrices(code), *call.args)
    if call.result is not None:
        code.emit(Let(call.result, "identity", (info if info is not None else ZERO,)))
    return list(code.block)


class _Matrices:
    """Arithmetic with elements of matrices."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def at(self, p: Pointer, ld: Atom) -> Loc:
        """Element [i, j] lies in column j."""
        return Loc(p.buffer, p.buffer.dtype, (ONE, ONE), (ONE, ld), p.offset, ordered=False)

    def op(self, name: str, *args: Atom) -> Atom:
        return self.code.let(name, args[-1].type.dtype, *args)

    def load(self, loc: Loc, i: Atom, j: Atom) -> Var:
        return self.code.load(loc, [i, j])

    def store(self, loc: Loc, i: Atom, j: Atom, value: Atom) -> None:
        self.code.store(loc, [i, j], value)

    def conj(self, x: Atom) -> Atom:
        return self.op("conj", x) if x.type.dtype.is_complex else x

    def sum(self, count: Atom, first: Atom, term: Callable[[Atom], Atom], start: Atom) -> Var:
        """`start` and the terms of first .. count."""
        total = self.code.declare(start, "sum")
        with self.code.loop(count, first, label="l", vectorize=False) as l:
            self.code.assign(total, self.op("add", total, term(l)))
        return total

    def backwards(self, count: Atom, k: Atom) -> Atom:
        return self.code.sub(self.code.sub(count, ONE), k)

    def swap(self, loc: Loc, one: tuple[Atom, Atom], other: tuple[Atom, Atom]) -> None:
        a, b = self.load(loc, *one), self.load(loc, *other)
        self.store(loc, *one, b)
        self.store(loc, *other, a)

    def triangle(self, a: Loc, n: Atom, flipped: bool, lower: bool, unit: bool, x: Loc, column: Atom | None) -> None:
        """Solves T x = x for one column of x, or for a row where `column` is None and x is one already.

        T is the triangle of A, or, if it is `flipped`, its transpose; `lower` says which one T is.
        """
        code = self.code

        def entry(i: Atom, l: Atom) -> Atom:
            return self.load(a, l, i) if flipped else self.load(a, i, l)

        def where(i: Atom) -> tuple[Atom, Atom]:
            return (i, column) if column is not None else (ZERO, i)

        with code.loop(n, label="k", vectorize=False) as k:
            i = k if lower else self.backwards(n, k)
            first, end = (ZERO, i) if lower else (code.add(i, ONE), n)
            given = self.load(x, *where(i))

            def term(l: Atom, i: Atom = i) -> Atom:
                return self.op("neg", self.op("mul", entry(i, l), self.load(x, *where(l))))

            rest: Atom = self.sum(end, first, term, given)
            self.store(x, *where(i), rest if unit else self.op("div", rest, entry(i, i)))


def _is(letter: Any, what: str) -> bool:
    assert isinstance(letter, Const), "which triangle, and whether it is turned, is known"
    return chr(int(letter.value.real)) == what


def _gemm(m: _Matrices, ta: Any, tb: Any, rows: Any, columns: Any, depth: Any, alpha: Any, a: Any, lda: Any, b: Any,
          ldb: Any, beta: Any, c: Any, ldc: Any) -> None:  # fmt: skip
    code, left, right, out = m.code, m.at(a, lda), m.at(b, ldb), m.at(c, ldc)
    zero = const(0, out.dtype)
    with code.loop(columns, label="j", vectorize=False) as j, code.loop(rows, label="i", vectorize=False) as i:

        def term(l: Atom) -> Atom:
            x = m.load(left, l, i) if _is(ta, "T") else m.load(left, i, l)
            return m.op("mul", x, m.load(right, j, l) if _is(tb, "T") else m.load(right, l, j))

        product = m.op("mul", alpha, m.sum(depth, ZERO, term, zero))
        if beta != zero:
            product = m.op("add", product, m.op("mul", beta, m.load(out, i, j)))
        m.store(out, i, j, product)


def _syrk(m: _Matrices, uplo: Any, trans: Any, n: Any, depth: Any, alpha: Any, a: Any, lda: Any, beta: Any, c: Any,
          ldc: Any) -> None:  # fmt: skip
    code, given, out = m.code, m.at(a, lda), m.at(c, ldc)
    assert _is(uplo, "U") and beta == const(0, out.dtype)
    with code.loop(n, label="j", vectorize=False) as j, code.loop(code.add(j, ONE), label="i", vectorize=False) as i:

        def entry(r: Atom, l: Atom) -> Atom:
            return m.load(given, l, r) if _is(trans, "T") else m.load(given, r, l)

        total = m.sum(depth, ZERO, lambda l: m.op("mul", entry(i, l), entry(j, l)), const(0, out.dtype))
        m.store(out, i, j, m.op("mul", alpha, total))


def _trsm(m: _Matrices, side: Any, uplo: Any, trans: Any, diag: Any, rows: Any, columns: Any, alpha: Any, a: Any,
          lda: Any, b: Any, ldb: Any) -> None:  # fmt: skip
    triangle, x = m.at(a, lda), m.at(b, ldb)
    assert alpha == const(1, x.dtype) and _is(diag, "N")
    flipped = _is(trans, "T")
    lower = _is(uplo, "L") != flipped
    if _is(side, "L"):
        with m.code.loop(columns, label="j", vectorize=False) as j:
            m.triangle(triangle, rows, flipped, lower, False, x, j)
        return
    with m.code.loop(rows, label="i", vectorize=False) as i:  # X T = B: T^T takes each row
        row = Loc(x.buffer, x.dtype, x.shape, x.strides, m.code.add(x.offset, i), ordered=False)
        m.triangle(triangle, columns, not flipped, not lower, False, row, None)


def _getrf(m: _Matrices, rows: Any, n: Any, a: Any, ld: Any, pivots: Any) -> Atom:
    code, lu, chosen = m.code, m.at(a, ld), m.at(pivots, ONE)
    info = code.declare(ZERO, "info")
    with code.loop(n, label="k", vectorize=False) as k:
        best, size = code.declare(k, "best"), code.declare(_size(m, m.load(lu, k, k)), "size")
        with code.loop(n, code.add(k, ONE), label="i", vectorize=False) as i:
            other = _size(m, m.load(lu, i, k))

            def take(i: Atom = i, other: Atom = other) -> None:
                code.assign(best, i)
                code.assign(size, other)

            code.branch(code.compare("gt", other, size), take)
        code.store(chosen, [k, ZERO], code.let("convert", DType.i32, code.add(best, ONE)))
        with code.loop(n, label="j", vectorize=False) as j:
            m.swap(lu, (k, j), (best, j))
        pivot = m.load(lu, k, k)

        def eliminate(k: Atom = k, pivot: Atom = pivot) -> None:
            with code.loop(n, code.add(k, ONE), label="i", vectorize=False) as i:
                factor = m.op("div", m.load(lu, i, k), pivot)
                m.store(lu, i, k, factor)
                with code.loop(n, code.add(k, ONE), label="j", vectorize=False) as j:
                    m.store(lu, i, j, m.op("sub", m.load(lu, i, j), m.op("mul", factor, m.load(lu, k, j))))

        def note(k: Atom = k) -> None:
            first = code.compare("eq", info, ZERO)
            code.assign(info, code.let("select", DType.i64, first, code.add(k, ONE), info))

        code.branch(code.compare("eq", pivot, const(0, lu.dtype)), note, eliminate)
    return info


def _size(m: _Matrices, x: Atom) -> Atom:
    return m.code.let("abs", x.type.dtype.real, x)


def _getrs(m: _Matrices, trans: Any, n: Any, columns: Any, a: Any, ld: Any, pivots: Any, b: Any, ldb: Any) -> None:
    code, lu, chosen, x = m.code, m.at(a, ld), m.at(pivots, ONE), m.at(b, ldb)
    turned = _is(trans, "T")
    with code.loop(columns, label="c", vectorize=False) as c:

        def exchange(backwards: bool, c: Atom = c) -> None:
            with code.loop(n, label="k", vectorize=False) as k:
                at = m.backwards(n, k) if backwards else k
                m.swap(x, (at, c), (_pivot(m, chosen, at), c))

        if not turned:
            exchange(False)
        m.triangle(lu, n, turned, True, not turned, x, c)
        m.triangle(lu, n, turned, False, turned, x, c)
        if turned:
            exchange(True)


def _pivot(m: _Matrices, chosen: Loc, k: Atom) -> Atom:
    return m.code.sub(m.code.let("convert", DType.i64, m.code.load(chosen, [k, ZERO])), ONE)


def _getri(m: _Matrices, n: Any, a: Any, ld: Any, pivots: Any, work: Any, size: Any) -> Atom:
    """The inverse of U, then X L = U^-1 from the last column, then the columns in their places."""
    code, lu, chosen, kept = m.code, m.at(a, ld), m.at(pivots, ONE), m.at(work, ONE)
    zero, one = const(0, lu.dtype), const(1, lu.dtype)
    info = code.declare(ZERO, "info")
    with code.loop(n, label="j", vectorize=False) as j:
        pivot = m.load(lu, j, j)
        bad = code.let("and", DType.bool, code.compare("eq", pivot, zero), code.compare("eq", info, ZERO))
        code.assign(info, code.let("select", DType.i64, bad, code.add(j, ONE), info))
        inverse = m.op("div", one, pivot)
        m.store(lu, j, j, inverse)
        with code.loop(j, label="i", vectorize=False) as i:

            def part(l: Atom, i: Atom = i, j: Atom = j) -> Atom:
                return m.op("mul", m.load(lu, i, l), m.load(lu, l, j))

            total = m.sum(j, i, part, zero)
            m.store(lu, i, j, m.op("neg", m.op("mul", total, inverse)))
    with code.loop(n, label="k", vectorize=False) as k:
        column = m.backwards(n, k)
        after = code.add(column, ONE)
        with code.loop(n, after, label="i", vectorize=False) as i:
            code.store(kept, [i, ZERO], m.load(lu, i, column))
            m.store(lu, i, column, zero)
        with code.loop(n, label="i", vectorize=False) as i:

            def term(l: Atom, i: Atom = i) -> Atom:
                return m.op("neg", m.op("mul", m.load(lu, i, l), code.load(kept, [l, ZERO])))

            m.store(lu, i, column, m.sum(n, after, term, m.load(lu, i, column)))
    with code.loop(n, label="k", vectorize=False) as k:
        column = m.backwards(n, k)
        other = _pivot(m, chosen, column)
        with code.loop(n, label="i", vectorize=False) as i:
            m.swap(lu, (i, column), (i, other))
    return info


def _potrf(m: _Matrices, uplo: Any, n: Any, a: Any, ld: Any) -> Atom:
    """A = U^H U, column by column; `info` is the first column whose rest is not positive."""
    assert _is(uplo, "U")
    code, out = m.code, m.at(a, ld)
    info = code.declare(ZERO, "info")
    with code.loop(n, label="j", vectorize=False) as j:
        with code.loop(j, label="i", vectorize=False) as i:

            def term(l: Atom, i: Atom = i, j: Atom = j) -> Atom:
                return m.op("neg", m.op("mul", m.conj(m.load(out, l, i)), m.load(out, l, j)))

            rest = m.sum(i, ZERO, term, m.load(out, i, j))
            m.store(out, i, j, m.op("div", rest, m.load(out, i, i)))

        def square(l: Atom, j: Atom = j) -> Atom:
            return m.op("neg", m.op("mul", m.conj(m.load(out, l, j)), m.load(out, l, j)))

        rest = m.sum(j, ZERO, square, m.load(out, j, j))
        size = code.let("real", out.dtype.real, rest) if out.dtype.is_complex else rest
        good = code.compare("gt", size, const(0, size.type.dtype))
        bad = code.let("and", DType.bool, code.let("not", DType.bool, good), code.compare("eq", info, ZERO))
        code.assign(info, code.let("select", DType.i64, bad, code.add(j, ONE), info))
        m.store(out, j, j, m.op("sqrt", rest))
    return info


ROUTINES: dict[str, Callable[..., Atom | None]] = {
    "gemm": _gemm,
    "syrk": _syrk,
    "trsm": _trsm,
    "getrf": _getrf,
    "getrs": _getrs,
    "getri": _getri,
    "potrf": _potrf,
}


def inside_kernels(program: Program) -> Program:
    """The program with loops in the place of the calls that its parallel loops make. Loops with others, and with
    functions that a GPU has not, are left to the host, which runs them in order.
    """
    functions = tuple(map(inside_kernels, program.functions))
    return replace(program, body=_block(program.body, False), functions=functions)


def is_of_host(stm: Stm) -> bool:
    """Whether no kernel can do it."""
    match stm:
        case Call(name=name):
            return name[1:] not in ROUTINES
        case Let(op=op):
            return TABLE[op].only_host
    return False


def _block(block: Block, inside: bool) -> Block:
    if not any(isinstance(s, Call) or is_of_host(s) for s in walk(block)):
        return block
    return tuple(s for stm in block for s in _stm(stm, inside))


def _stm(stm: Stm, inside: bool) -> Sequence[Stm]:
    match stm:
        case Call() if inside:
            return by_loops(stm) or [stm]
        case For(tag=tag) if (
            tag.parallel and not inside and not is_blocked(stm) and any(map(is_of_host, walk(stm.body)))
        ):
            return _stm(replace(stm, tag=Tag.seq), False)
        case _:
            within = inside or (isinstance(stm, For) and stm.tag.parallel)
            return [with_blocks(stm, lambda block: _block(block, within))]
