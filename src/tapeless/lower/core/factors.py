"""Lowering of factorisations by LAPACK: eigenvalues, singular values, Q and R.

LAPACK takes matrices by columns, as NumPy gives them to it: signs and orders of vectors are NumPy's. Vectors that nobody
reads are not asked for. Workspaces are as large as the routines ask for at most, so that none has to be asked first.
"""

from __future__ import annotations

from tapeless.ir.core import Library, Var
from tapeless.ir.types import Atom, DType, const, i64
from tapeless.lower.core.blas import LOWER, NO, PREFIX, checked, pointer, temporary, transposed
from tapeless.lower.core.code import ONE, Loc
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Pointer

VECTORS = i64(ord("V"))
SOME = i64(ord("S"))
BLOCK = 64  # columns that LAPACK may treat at once


def lower_factors(lo: Lowerer, vars: tuple[Var, ...], exp: Library) -> None:
    a = lo.loc(exp.args[0])
    columns = temporary(lo, a.dtype, a.shape[::-1], "columns")
    lo.code.copy(transposed(a), columns)
    match exp.name:
        case "eigh":
            _eigh(lo, vars, columns)
        case "eig":
            _eig(lo, vars, columns)
        case "svd":
            _svd(lo, vars, columns)
        case "qr":
            _qr(lo, vars, columns)


def _placed(lo: Lowerer, var: Var, value: Loc) -> None:
    """The value of a result."""
    if var in lo.unread:
        return
    out = lo.place(var)
    lo.arrays[var] = out
    lo.code.copy(value, out)


def _room(lo: Lowerer, dtype: DType, *terms: Atom) -> tuple[Loc, Atom]:
    """A workspace of the sum of these sizes, and one more."""
    size: Atom = ONE
    for term in terms:
        size = lo.code.add(size, term)
    return temporary(lo, dtype, (size,), "work"), size


def _times(lo: Lowerer, factor: int, *sizes: Atom) -> Atom:
    total: Atom = i64(factor)
    for size in sizes:
        total = lo.code.mul(total, size)
    return total


def _at_least_one(lo: Lowerer, n: Atom) -> Atom:
    return lo.code.let("max", DType.i64, n, ONE, label="ld")


def _eigh(lo: Lowerer, vars: tuple[Var, ...], a: Loc) -> None:
    n, real = a.shape[0], a.dtype.real
    ld = _at_least_one(lo, n)
    values = temporary(lo, real, (n,), "w")
    whole, size = _room(lo, DType.i32, _times(lo, 5, n), i64(2))
    ends: tuple[Atom | Pointer, ...]
    if a.dtype.is_complex:
        work, length = _room(lo, a.dtype, _times(lo, 1, n, n), _times(lo, 2, n))
        more, room = _room(lo, real, _times(lo, 2, n, n), _times(lo, 5, n))
        ends = (pointer(work), length, pointer(more), room, pointer(whole), size)
        name = "heevd"
    else:
        work, length = _room(lo, a.dtype, _times(lo, 2, n, n), _times(lo, 6, n))
        ends, name = (pointer(work), length, pointer(whole), size), "syevd"
    args = (_job(lo, vars[1]), LOWER, n, pointer(a), ld, pointer(values), *ends)
    checked(lo, PREFIX[a.dtype] + name, args, "Eigenvalues did not converge")
    _placed(lo, vars[0], values)
    _placed(lo, vars[1], transposed(a))


def _job(lo: Lowerer, *vectors: Var, some: Atom = VECTORS) -> Atom:
    return some if any(v not in lo.unread for v in vectors) else NO


def _eig(lo: Lowerer, vars: tuple[Var, ...], a: Loc) -> None:
    """By the routine for real matrices, which takes a third of the time, where no number has an imaginary part."""
    code, n = lo.code, a.shape[0]
    values = temporary(lo, a.dtype, (n,), "w")
    vectors = temporary(lo, a.dtype, (n, n), "v")
    imaginary = code.declare(const(False, DType.bool), "imaginary")

    def look(at: list[Atom]) -> None:
        part = code.let("imag", a.dtype.real, code.load(a, at))
        some = code.compare("ne", part, const(0, a.dtype.real))
        code.assign(imaginary, code.let("or", DType.bool, imaginary, some))

    code.each(a.shape, look)
    code.branch(
        imaginary,
        lambda: lo.scoped(lambda: _complex_eig(lo, vars[1], a, values, vectors)),
        lambda: lo.scoped(lambda: _real_eig(lo, vars[1], a, values, vectors)),
    )
    _placed(lo, vars[0], values)
    _placed(lo, vars[1], transposed(vectors))


def _complex_eig(lo: Lowerer, var: Var, a: Loc, values: Loc, vectors: Loc) -> None:
    n = a.shape[0]
    ld = _at_least_one(lo, n)
    nothing = temporary(lo, a.dtype, (ONE,), "left")
    work, length = _room(lo, a.dtype, _times(lo, BLOCK, n))
    more, _ = _room(lo, a.dtype.real, _times(lo, 2, n))
    places = (pointer(values), pointer(nothing), ONE, pointer(vectors), ld)
    args = (NO, _job(lo, var), n, pointer(a), ld, *places, pointer(work), length, pointer(more))
    checked(lo, f"{PREFIX[a.dtype]}geev", args, "Eigenvalues did not converge")


def _real_eig(lo: Lowerer, var: Var, a: Loc, values: Loc, vectors: Loc) -> None:
    """Of a pair of values that are each other's conjugate, LAPACK gives the parts of the vector of the first one."""
    code, n, real = lo.code, a.shape[0], a.dtype.real
    ld = _at_least_one(lo, n)
    matrix, found = (temporary(lo, real, (n, n), label) for label in ("real", "found"))
    parts = [temporary(lo, real, (n,), label) for label in ("re", "im")]
    nothing = temporary(lo, real, (ONE,), "left")
    work, length = _room(lo, real, _times(lo, BLOCK, n))
    code.spread(a.shape, lambda at: code.store(matrix, at, code.let("real", real, code.load(a, at))))
    places = (*map(pointer, parts), pointer(nothing), ONE, pointer(found), ld)
    args = (NO, _job(lo, var), n, pointer(matrix), ld, *places, pointer(work), length)
    checked(lo, f"{PREFIX[real]}geev", args, "Eigenvalues did not converge")
    code.spread(
        (n,), lambda at: code.store(values, at, code.let("complex", a.dtype, *(code.load(p, at) for p in parts)))
    )
    if var in lo.unread:
        return
    zero, last = const(0, real), code.sub(n, ONE)

    def put(at: list[Atom]) -> None:
        j, i = at
        turn = code.load(parts[1], [j])
        second = code.compare("lt", turn, zero)
        first = code.let("select", DType.i64, second, code.sub(j, ONE), j)
        after = code.let("min", DType.i64, code.add(first, ONE), last)
        re, im = code.load(found, [first, i]), code.load(found, [after, i])
        turned = code.let("select", real, second, code.let("neg", real, im), im)
        part = code.let("select", real, code.compare("eq", turn, zero), zero, turned)
        code.store(vectors, at, code.let("complex", a.dtype, re, part))

    code.spread((n, n), put)


def _svd(lo: Lowerer, vars: tuple[Var, ...], a: Loc) -> None:
    columns, rows = a.shape
    real, code = a.dtype.real, lo.code
    least, most = (code.let(op, DType.i64, rows, columns, label="size") for op in ("min", "max"))
    left, values = temporary(lo, a.dtype, (least, rows), "u"), temporary(lo, real, (least,), "s")
    right = temporary(lo, a.dtype, (columns, least), "vt")
    work, length = _room(lo, a.dtype, _times(lo, 4, least, least), _times(lo, 8, least), _times(lo, BLOCK, most))
    whole, _ = _room(lo, DType.i32, _times(lo, 8, least))
    ends: tuple[Atom | Pointer, ...] = (pointer(work), length)
    if a.dtype.is_complex:
        more, _ = _room(lo, real, _times(lo, 7, least, least), _times(lo, 7, least), _times(lo, 2, most, least))
        ends = (*ends, pointer(more))
    sides = (pointer(left), _at_least_one(lo, rows), pointer(right), _at_least_one(lo, least))
    args = (
        _job(lo, vars[0], vars[2], some=SOME),
        rows,
        columns,
        pointer(a),
        _at_least_one(lo, rows),
        pointer(values),
        *sides,
        *ends,
        pointer(whole),
    )
    checked(lo, f"{PREFIX[a.dtype]}gesdd", args, "SVD did not converge")
    for var, value in zip(vars, (transposed(left), values, transposed(right)), strict=True):
        _placed(lo, var, value)


def _qr(lo: Lowerer, vars: tuple[Var, ...], a: Loc) -> None:
    """R above the diagonal; below it are the reflections that Q is made of."""
    code, (columns, rows) = lo.code, a.shape
    ld = _at_least_one(lo, rows)
    scales = temporary(lo, a.dtype, (columns,), "tau")
    work, length = _room(lo, a.dtype, _times(lo, BLOCK, columns))
    ends = (pointer(work), length)
    checked(lo, f"{PREFIX[a.dtype]}geqrf", (rows, columns, pointer(a), ld, pointer(scales), *ends), "")
    out = lo.place(vars[1])
    lo.arrays[vars[1]] = out

    def put(at: list[Atom]) -> None:
        value = code.load(a, [at[1], at[0]])
        above = code.compare("le", at[0], at[1])
        code.store(out, at, code.let("select", a.dtype, above, value, const(0, a.dtype), label="r"))

    code.spread((columns, columns), put)
    name = "ungqr" if a.dtype.is_complex else "orgqr"
    args = (rows, columns, columns, pointer(a), ld, pointer(scales), *ends)
    checked(lo, PREFIX[a.dtype] + name, args, "")
    _placed(lo, vars[0], transposed(a))
