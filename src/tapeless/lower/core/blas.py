"""Matrices as BLAS takes them, and its product.

BLAS sees a row-major matrix as its transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tapeless.ir.types import Atom, DType, Type, Var, const, i64
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Call, Pointer

PREFIX = {DType.f32: "s", DType.f64: "d", DType.c64: "c", DType.c128: "z"}
NO, YES, UPPER, LOWER, LEFT, RIGHT = (i64(ord(letter)) for letter in "NTULLR")


def checked(
    lo: Lowerer,
    name: str,
    args: tuple[Atom | Pointer, ...],
    message: str,
    excused: Callable[[Atom], Atom] | None = None,
) -> None:
    """A LAPACK routine; `message` when its info is not 0: it failed, or did not like a number. Unless that is `excused`."""
    code = lo.code
    lo.note_blas()
    info = Var("info", Type(DType.i64))
    code.emit(Call(name, args, info))
    if not message:
        return
    good = code.compare("eq", info, ZERO)
    if excused is None:
        code.check(good, "LinAlgError", message)
    else:
        code.branch(good, lambda: None, lambda: code.check(excused(info), "LinAlgError", message))


def transposed(loc: Loc) -> Loc:
    return replace(loc, shape=loc.shape[::-1], strides=loc.strides[::-1], ordered=False)


def gemm(lo: Lowerer, a: Loc, b: Loc, c: Loc, alpha: float = 1, beta: float = 0) -> None:
    """C = alpha A B + beta C; C^T = B^T A^T in the eyes of BLAS. With `beta` the rows of C lie together."""
    code = lo.code
    if beta == 0 and _is_transposed(a, b) and not lo.schedule.apart:  # the mirror image is a loop in order
        _syrk(lo, a, c, alpha)
        return
    (a, trans_a, lda), (b, trans_b, ldb) = operand(lo, a), operand(lo, b)
    target = _writable(lo, c)
    lo.note_blas()
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    code.emit(
        Call(
            f"{PREFIX[c.dtype]}gemm",
            (
                trans_b,
                trans_a,
                n,
                m,
                k,
                const(alpha, c.dtype),
                pointer(b),
                ldb,
                pointer(a),
                lda,
                const(beta, c.dtype),
                pointer(target),
                leading(lo, target),
            ),
        )
    )
    if target is not c:
        code.copy(target, c)


def gemm_of_rows(lo: Lowerer, a: Loc, b: Loc, c: Loc) -> None:
    """C[i] = A[i] B[i] for all i, on a GPU; C[i]^T = B[i]^T A[i]^T in the eyes of BLAS."""
    code = lo.code
    (a, trans_a, lda), (b, trans_b, ldb) = _operand_of_rows(lo, a), _operand_of_rows(lo, b)
    own = c.buffer not in (a.buffer, b.buffer)
    target = c if own and c.upward and c.strides[2] == ONE else temporary(lo, c.dtype, c.shape)
    lo.note_blas()
    (count, m, k), n = a.shape, b.shape[2]
    one, zero = const(1, c.dtype), const(0, c.dtype)
    left, right = (pointer(b), ldb, b.strides[0]), (pointer(a), lda, a.strides[0])
    made = (pointer(target), leading(lo, _row(target)), target.strides[0])
    args = (trans_b, trans_a, n, m, k, one, *left, *right, zero, *made, count)
    code.emit(Call(f"{PREFIX[c.dtype]}gemm_batched", args))
    if target is not c:
        code.copy(target, c)


def _row(loc: Loc) -> Loc:
    return replace(loc, shape=loc.shape[1:], strides=loc.strides[1:], ordered=False)


def _operand_of_rows(lo: Lowerer, loc: Loc) -> tuple[Loc, Atom, Atom]:
    """Matrices that BLAS can read, whether they are transposed for it, and their leading dimension."""
    if loc.upward and loc.strides[2] == ONE:
        return loc, NO, leading(lo, _row(loc))
    if loc.upward and loc.strides[1] == ONE:
        return loc, YES, leading(lo, transposed(_row(loc)))
    packed = temporary(lo, loc.dtype, loc.shape)
    lo.code.copy(loc, packed)
    return packed, NO, leading(lo, _row(packed))


def _is_transposed(a: Loc, b: Loc) -> bool:
    same = a.buffer is b.buffer and a.offset == b.offset
    return same and a.strides == b.strides[::-1] and a.shape == b.shape[::-1] and ONE in a.strides


def _syrk(lo: Lowerer, a: Loc, c: Loc, alpha: float) -> None:
    """C = alpha A A^T: one triangle by BLAS, the other is its mirror image."""
    code = lo.code
    a, turned, lda = operand(lo, a)
    target = _writable(lo, c)
    lo.note_blas()
    sizes = (a.shape[0], a.shape[1], const(alpha, c.dtype))
    ends = (const(0, c.dtype), pointer(target), leading(lo, target))
    code.emit(Call(f"{PREFIX[c.dtype]}syrk", (UPPER, YES if turned == NO else NO, *sizes, pointer(a), lda, *ends)))
    with code.loop(target.shape[0], label="i") as i, code.loop(i, label="j") as j:
        code.store(target, [j, i], code.load(target, [i, j]))
    if target is not c:
        code.copy(target, c)


def operand(lo: Lowerer, loc: Loc) -> tuple[Loc, Atom, Atom]:
    """A matrix that BLAS can read, whether it is transposed for it, and its leading dimension."""
    if loc.upward and loc.strides[1] == ONE:
        return loc, NO, leading(lo, loc)
    if loc.upward and loc.strides[0] == ONE:
        return loc, YES, leading(lo, transposed(loc))
    packed = temporary(lo, loc.dtype, loc.shape)
    lo.code.copy(loc, packed)
    return packed, NO, leading(lo, packed)


def _writable(lo: Lowerer, loc: Loc) -> Loc:
    """The matrix itself where BLAS can write to it, else another one."""
    return loc if loc.upward and loc.strides[1] == ONE else temporary(lo, loc.dtype, loc.shape)


def leading(lo: Lowerer, loc: Loc) -> Atom:
    """The distance of rows; BLAS wants at least 1 and at least the length of a row."""
    code = lo.code
    least = code.let("max", DType.i64, loc.shape[1], ONE, label="ld")
    return code.let("max", DType.i64, loc.strides[0], least, label="ld")


def pointer(loc: Loc) -> Pointer:
    return Pointer(loc.buffer, loc.offset)


def temporary(lo: Lowerer, dtype: DType, shape: tuple[Atom, ...], label: str = "work") -> Loc:
    loc = lo.code.allocate(dtype, shape, label)
    lo.owned[-1].append(loc.buffer)
    return loc
