"""Lowering of library operations: products, factorisations and sorts.

Products and factorisations are calls of the BLAS and LAPACK that SciPy ships, small products are loops. BLAS sees a
row-major matrix as its transpose; each routine below says how it uses that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tapeless.ir.core import Apply, Body, Lambda, Library, Reduction, Stm, Sweep, Var
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import I64, Atom, Const, DType, Type, const, i64
from tapeless.lower.core.blas import NO, PREFIX, UPPER, YES, checked, gemm, pointer, temporary, transposed
from tapeless.lower.core.callbacks import lower_callback
from tapeless.lower.core.code import ONE, ZERO, Code, Loc
from tapeless.lower.core.factors import lower_factors
from tapeless.lower.core.fourier import fourier, fourier_table
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.core.ranking import lower_ranked
from tapeless.lower.core.sorting import lower_sort
from tapeless.lower.core.triangles import cholesky_adjoint, solve_triangle
from tapeless.lower.ir.loopir import Atomic, Pointer

SMALL = 4096  # multiplications up to which a product is made by loops
NEAR = 1 << 19  # elements of a matrix up to which a product with a vector is made by loops
TINY = 512  # multiplications that are not worth a call on a GPU
TILE = 4  # rows and columns of a tile


@lowers(Library)
def lower_library(lo: Lowerer, vars: tuple[Var, ...], exp: Library) -> None:
    match exp.name:
        case "matmul":
            _matmul(lo, vars[0], exp)
        case "solve":
            _solve(lo, vars[0], exp)
        case "inv":
            _inv(lo, vars[0], exp)
        case "det":
            lo.scalars[vars[0]] = _det(lo, lo.loc(exp.args[0]))
        case "slogdet":
            sign, log = _slogdet(lo, lo.loc(exp.args[0]))
            lo.scalars[vars[0]], lo.scalars[vars[1]] = sign, log
        case "cholesky":
            _cholesky(lo, vars[0], exp)
        case "solve_lower" | "solve_upper":
            solve_triangle(lo, vars[0], exp, lower=exp.name == "solve_lower")
        case "cholesky_adjoint":
            cholesky_adjoint(lo, vars[0], exp)
        case "eigh" | "eig" | "svd" | "qr":
            lower_factors(lo, vars, exp)
        case "fft_table":
            fourier_table(lo, vars[0], exp)
        case "fft" | "ifft":
            fourier(lo, vars[0], exp)
        case "sort" | "argsort":
            lower_sort(lo, vars[0], exp)
        case "ranked":
            lower_ranked(lo, vars[0], exp)
        case "callback":
            lower_callback(lo, vars, exp)
        case _:
            raise AssertionError(f"no lowering for the library operation {exp.name}")


# -- products


def _matmul(lo: Lowerer, var: Var, exp: Library) -> None:
    a, b = lo.loc(exp.args[0]), lo.loc(exp.args[1])
    code = lo.code
    if a.rank == 1 and b.rank == 1 and lo.launches:
        lo.rules[Sweep](lo, (var,), _dot(exp, a.dtype))
        return
    if a.rank == 1 and b.rank == 1:
        total = code.declare(const(0, a.dtype), "dot")

        def step(i: list[Atom]) -> None:
            product = code.let("mul", a.dtype, code.load(a, i), code.load(b, i), label="p")
            before, code.reassoc = code.reassoc, True
            code.assign(total, code.let("add", a.dtype, total, product, label="dot"))
            code.reassoc = before

        code.each(a.shape, step)
        lo.scalars[var] = total
        return
    out = lo.place(var)
    lo.arrays[var] = out
    if a.rank == 1:  # x @ B = B^T x
        matvec(lo, transposed(b), a, out)
    elif b.rank == 1:
        matvec(lo, a, b, out)
    else:
        matmat(lo, a, b, out)


def matvec(lo: Lowerer, a: Loc, x: Loc, y: Loc) -> None:
    """y = A x: by loops, or by BLAS where the matrix does not fit into the caches near the processor."""
    code = lo.code
    elements = code.mul(a.shape[0], a.shape[1])
    small = isinstance(elements, Const) and int(elements.value.real) <= NEAR
    given, made = (replace(v, shape=(v.shape[0], ONE), strides=(v.strides[0], ONE), ordered=False) for v in (x, y))
    if lo.launches:
        matmat(lo, a, given, made)
        return
    if a.dtype not in PREFIX or small or lo.schedule.apart:
        _matvec_by_loops(lo, a, x, y)
        return
    code.branch(
        code.compare("le", elements, i64(NEAR)),
        lambda: _matvec_by_loops(lo, a, x, y),
        lambda: lo.scoped(lambda: gemm(lo, a, given, made)),
    )


def _matvec_by_loops(lo: Lowerer, a: Loc, x: Loc, y: Loc) -> None:
    """By rows when the rows lie together, else by adding up columns."""
    code = lo.code
    rows_lie = a.strides[1] == ONE or a.strides[0] != ONE
    if rows_lie:
        with code.loop(a.shape[0]) as i:
            total = code.declare(const(0, a.dtype), "dot")

            def step(k: list[Atom]) -> None:
                product = code.let("mul", a.dtype, code.load(a, [i, *k]), code.load(x, k), label="p")
                before, code.reassoc = code.reassoc, True
                code.assign(total, code.let("add", a.dtype, total, product, label="dot"))
                code.reassoc = before

            code.each([a.shape[1]], step)
            code.store(y, [i], total)
        return
    code.fill(y, const(0, a.dtype))
    with code.loop(a.shape[1], label="k") as k:
        factor = code.load(x, [k])

        def add(i: list[Atom]) -> None:
            product = code.let("mul", a.dtype, code.load(a, [*i, k]), factor, label="p")
            code.store(y, i, code.let("add", a.dtype, code.load(y, i), product, label="y"))

        code.each([a.shape[0]], add)


def matmat(lo: Lowerer, a: Loc, b: Loc, c: Loc) -> None:
    """C = A B by tiles in registers when it is small or of integers, by BLAS otherwise."""
    code = lo.code
    a, b, c = (replace(loc, shape=tuple(lo.atom(d) for d in loc.shape)) for loc in (a, b, c))
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    work = code.mul(code.mul(m, n), k)
    if lo.launches and c.dtype not in PREFIX:
        _by_elements(lo, a, b, c)
    elif lo.launches and not (isinstance(work, Const) and work.value.real <= TINY):
        gemm(lo, a, b, c)
    elif c.dtype not in PREFIX or lo.schedule.apart:  # BLAS has no integers, and kernels have no BLAS
        _tiles(lo, a, b, c)
    elif isinstance(work, Const):
        (_tiles if int(work.value.real) <= SMALL else gemm)(lo, a, b, c)
    elif c.dtype.is_complex:
        small = code.compare("le", work, i64(SMALL))
        code.branch(small, lambda: _tiles(lo, a, b, c), lambda: lo.scoped(lambda: gemm(lo, a, b, c)))
    else:  # the routine itself knows what to do with a small one, and its code is there only once
        gemm(lo, a, b, c)


def _dot(exp: Library, dtype: DType) -> Sweep:
    """A sum of products, as a sweep."""
    first, second = exp.args
    assert isinstance(first, Var) and isinstance(second, Var)
    one = Type(dtype)
    i, x, y, p, a, b, s = (Var(name, I64 if name == "i" else one) for name in "ixypabs")
    product = Lambda((i, x, y), Body((Stm((p,), Apply("mul", (x, y)), NOWHERE),), (p,)))
    added = Lambda((a, b), Body((Stm((s,), Apply("add", (a, b)), NOWHERE),), (s,)))
    total = Reduction(added, (const(0, dtype),), commutative=True)
    return Sweep(first.type.shape[0], (first, second), product, (total,))


def _by_elements(lo: Lowerer, a: Loc, b: Loc, c: Loc) -> None:
    """Each element of C by itself."""
    code = lo.code

    def put(at: list[Atom]) -> None:
        i, j = at
        total = code.declare(const(0, c.dtype), "sum")
        with code.loop(a.shape[1], label="k", vectorize=False) as k:
            product = code.let("mul", c.dtype, code.load(a, [i, k]), code.load(b, [k, j]), label="p")
            code.assign(total, code.let("add", c.dtype, total, product, label="sum"))
        code.store(c, at, total)

    code.spread(c.shape, put)


def _tiles(lo: Lowerer, a: Loc, b: Loc, c: Loc) -> None:
    """Tiles of A stay in registers while rows of B and C go by."""
    code = lo.code
    code.fill(c, const(0, c.dtype))

    def tile(i: Atom, rows: int, k: Atom, depth: int) -> None:
        i_all, k_all = ([code.add(at, i64(d)) for d in range(count)] for at, count in ((i, rows), (k, depth)))
        factors = [[code.load(a, [r, d]) for d in k_all] for r in i_all]

        def add(j: list[Atom]) -> None:
            column = [code.load(b, [d, *j]) for d in k_all]
            for r, row in zip(i_all, factors, strict=True):
                total: Atom = code.load(c, [r, *j])
                for factor, e in zip(row, column, strict=True):
                    total = code.let("add", c.dtype, total, code.let("mul", c.dtype, factor, e, label="p"), label="c")
                code.store(c, [r, *j], total)

        code.each([b.shape[1]], add)

    _in_blocks(code, a.shape[0], lambda i, rows: _in_blocks(code, a.shape[1], lambda k, depth: tile(i, rows, k, depth)))


def _in_blocks(code: Code, count: Atom, run: Callable[[Atom, int], None]) -> None:
    """`run(start, length)` for blocks of TILE, and of one for what is left."""
    rest = code.let("mod", DType.i64, count, i64(TILE), label="rest")
    whole = code.sub(count, rest)
    if whole != ZERO:
        with code.loop(whole, step=TILE) as i:
            run(i, TILE)
    if rest != ZERO:
        with code.loop(count, whole) as i:
            run(i, 1)


# -- factorisations


def _factorise(lo: Lowerer, a: Loc, message: str) -> tuple[Loc, Loc, Atom]:
    """LU factors of A^T, which is what LAPACK sees in row-major A; pivots; the order."""
    code = lo.code
    n = a.shape[0]
    lu = temporary(lo, a.dtype, a.shape, "lu")
    pivots = temporary(lo, DType.i32, (n,), "pivots")
    code.copy(a, lu)
    ld = code.let("max", DType.i64, n, ONE, label="ld")
    args = (n, n, pointer(lu), ld, pointer(pivots))
    if lo.launches:
        _factorise_on_grid(lo, lu, args, message)
    else:
        checked(lo, f"{PREFIX[a.dtype]}getrf", args, message)
    return lu, pivots, ld


def _factorise_on_grid(lo: Lowerer, lu: Loc, args: tuple[Atom | Pointer, ...], message: str) -> None:
    """cuSOLVER makes numbers of NaN, or finds the matrix singular: all factors are NaN if there is one."""
    code = lo.code
    count = temporary(lo, DType.i64, (ONE,), "nans")
    code.store(count, [ZERO], ZERO)

    def look(at: list[Atom]) -> None:
        number = code.let("isnan", DType.bool, code.load(lu, at))
        code.branch(number, lambda: code.emit(Atomic("add", count.buffer, ZERO, ONE)))

    code.spread(lu.shape, look)
    some = code.compare("gt", code.load(count, [ZERO]), ZERO)
    checked(lo, f"{PREFIX[lu.dtype]}getrf", args, message, lambda info: some)
    code.branch(some, lambda: code.fill(lu, const(math.nan, lu.dtype)))


def _solve(lo: Lowerer, var: Var, exp: Library) -> None:
    """Factors of A^T, solved transposed: A x = b. Several right sides are columns, packed for LAPACK."""
    code = lo.code
    a, b = lo.loc(exp.args[0]), lo.loc(exp.args[1])
    n = a.shape[0]
    lu, pivots, ld = _factorise(lo, a, "Singular matrix")
    out = lo.place(var)
    lo.arrays[var] = out
    columns = transposed(b) if b.rank == 2 else Loc(b.buffer, b.dtype, (ONE, n), (ZERO, b.strides[0]), b.offset, False)
    packed = temporary(lo, b.dtype, columns.shape, "rhs")
    code.copy(columns, packed)
    checked(
        lo,
        f"{PREFIX[a.dtype]}getrs",
        (YES, n, packed.shape[0], pointer(lu), ld, pointer(pivots), pointer(packed), ld),
        "",
    )
    if b.rank == 2:
        code.copy(transposed(packed), out)
    else:
        code.copy(Loc(packed.buffer, packed.dtype, (n,), (ONE,), packed.offset), out)


def _inv(lo: Lowerer, var: Var, exp: Library) -> None:
    """The inverse of A^T, stored by columns, is the inverse of A, stored by rows."""
    code = lo.code
    a = lo.loc(exp.args[0])
    lu, pivots, ld = _factorise(lo, a, "Singular matrix")
    n = a.shape[0]
    if lo.launches:  # cuSOLVER has no inverse: A^T X = 1, by columns
        out = lo.place(var)
        lo.arrays[var] = out
        target = out if out.ordered else temporary(lo, a.dtype, a.shape, "inverse")
        _identity(lo, target)
        checked(lo, f"{PREFIX[a.dtype]}getrs", (NO, n, n, pointer(lu), ld, pointer(pivots), pointer(target), ld), "")
        if target is not out:
            code.copy(target, out)
        return
    size = code.let("max", DType.i64, code.mul(n, i64(64)), ONE, label="size")
    work = temporary(lo, a.dtype, (size,))
    checked(
        lo, f"{PREFIX[a.dtype]}getri", (n, pointer(lu), ld, pointer(pivots), pointer(work), size), "Singular matrix"
    )
    out = lo.place(var)
    lo.arrays[var] = out
    code.copy(lu, out)


def _identity(lo: Lowerer, loc: Loc) -> None:
    code, dtype = lo.code, loc.dtype

    def put(at: list[Atom]) -> None:
        same = code.compare("eq", *at)
        code.store(loc, at, code.let("select", dtype, same, const(1, dtype), const(0, dtype), label="one"))

    code.spread(loc.shape, put)


def _pivot_sign(lo: Lowerer, pivots: Loc, n: Atom, dtype: DType) -> Var:
    code = lo.code
    sign = code.declare(const(1, dtype), "sign")
    with code.loop(n) as i:
        at = code.let("convert", DType.i64, code.load(pivots, [i]), label="pivot")
        moved = code.compare("ne", at, code.add(i, ONE))
        flipped = code.let("neg", dtype, sign, label="sign")
        code.assign(sign, code.let("select", dtype, moved, flipped, sign, label="sign"))
    return sign


def _det(lo: Lowerer, a: Loc) -> Atom:
    code = lo.code
    lu, pivots, _ = _factorise(lo, a, "")
    det = _pivot_sign(lo, pivots, a.shape[0], a.dtype)
    with code.loop(a.shape[0]) as i:
        code.assign(det, code.let("mul", a.dtype, det, code.load(lu, [i, i]), label="det"))
    return det


def _slogdet(lo: Lowerer, a: Loc) -> tuple[Atom, Atom]:
    code = lo.code
    real = a.dtype.real
    lu, pivots, _ = _factorise(lo, a, "")
    sign = _pivot_sign(lo, pivots, a.shape[0], a.dtype)
    log = code.declare(const(0, real), "log")
    with code.loop(a.shape[0]) as i:
        pivot = code.load(lu, [i, i])
        size = code.let("abs", real, pivot, label="size")
        zero = code.compare("eq", size, const(0, real))
        if a.dtype.is_complex:
            wide = code.let("convert", a.dtype, size, label="size")
            direction = code.let("div", a.dtype, pivot, wide, label="direction")
        else:
            direction = code.let("copysign", real, const(1, real), pivot, label="direction")
        direction = code.let("select", a.dtype, zero, const(0, a.dtype), direction, label="direction")
        code.assign(sign, code.let("mul", a.dtype, sign, direction, label="sign"))
        code.assign(log, code.let("add", real, log, code.let("log", real, size, label="l"), label="log"))
    return sign, log


def _cholesky(lo: Lowerer, var: Var, exp: Library) -> None:
    """LAPACK's upper triangle U by columns is the lower one by rows: of A^T = U^H U, U^T is the factor of A."""
    code = lo.code
    a = lo.loc(exp.args[0])
    n = a.shape[0]
    factor = temporary(lo, a.dtype, a.shape, "factor")
    code.copy(a, factor)
    ld = code.let("max", DType.i64, n, ONE, label="ld")
    checked(lo, f"{PREFIX[a.dtype]}potrf", (UPPER, n, pointer(factor), ld), "Matrix is not positive definite")
    out = lo.place(var)
    lo.arrays[var] = out

    def put(index: list[Atom]) -> None:
        i, j = index
        below = code.compare("le", j, i)
        value = code.load(factor, index)
        code.store(out, index, code.let("select", a.dtype, below, value, const(0, a.dtype), label="l"))

    code.spread(a.shape, put)
