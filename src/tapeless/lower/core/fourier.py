"""Lowering of Fourier transforms of one vector, and of the tables that they take.

Note [Tables]
A table for n numbers has the roots exp(-2 pi i k / n) where n has small factors only. Else the transform is a convolution of a
size that is a power of two (Bluestein): with j k = (j^2 + k^2 - (j - k)^2) / 2 and the chirp c(k) = exp(-pi i k^2 / n),

    y(k) = c(k) sum over j of x(j) c(j) conj(c(k - j))

and the table has the roots for that size, the chirp, and the transform of conj(c). The length of the table says which it is. The
inverse transform is the conjugate of that of the conjugate.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tapeless.errors import DeviceError
from tapeless.ir.core import Library, Var
from tapeless.ir.types import I64, SCALAR, Atom, DType, const, i64
from tapeless.lower.core.blas import pointer, temporary
from tapeless.lower.core.butterflies import passes
from tapeless.lower.core.code import ONE, ZERO, Code, Loc, parameter, routine
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Invoke, Program, While

F64, C128 = DType.f64, DType.c128


def fourier(lo: Lowerer, var: Var, exp: Library) -> None:
    _not_on_a_gpu(lo)
    code = lo.code
    x, table = lo.loc(exp.args[0]), lo.loc(exp.args[1])
    dtype, n, length = x.dtype, x.shape[0], table.shape[0]
    given, out = _in_order(lo, x), lo.place(var)
    lo.arrays[var] = out
    made = out if out.ordered else temporary(lo, dtype, (n,), "transformed")
    work = temporary(lo, dtype, (code.mul(_size(code, n, length), i64(2)),), "work")
    name, routines = f"tp_fourier_{dtype.value}", lo.routines
    if name not in routines:
        routines[name] = _Transform(routines, dtype).program(name)
    side = const(1 if exp.name == "fft" else -1, dtype.real)
    code.emit(Invoke(name, (n, length, side, *map(pointer, (given, _in_order(lo, table), work, made))), ()))
    code.copy(made, out)


def fourier_table(lo: Lowerer, var: Var, exp: Library) -> None:
    _not_on_a_gpu(lo)
    code = lo.code
    length, n = lo.loc(exp.args[0]).shape[0], lo.loc(exp.args[1]).shape[0]
    out = lo.place(var)
    lo.arrays[var] = out
    table = out if out.ordered else temporary(lo, C128, (length,), "table")
    work = temporary(lo, C128, (code.mul(_size(code, n, length), i64(2)),), "work")
    name, routines = "tp_fourier_table", lo.routines
    if name not in routines:
        routines[name] = _table(routines, name)
    code.emit(Invoke(name, (n, length, pointer(table), pointer(work)), ()))
    code.copy(table, out)


def _not_on_a_gpu(lo: Lowerer) -> None:
    if lo.schedule.apart:
        raise DeviceError("Fourier transforms do not run on a GPU yet: use device='cpu'")


def _in_order(lo: Lowerer, loc: Loc) -> Loc:
    if loc.ordered:
        return loc
    packed = temporary(lo, loc.dtype, loc.shape, "packed")
    lo.code.copy(loc, packed)
    return packed


def _size(code: Code, n: Atom, length: Atom) -> Atom:
    """How many numbers go through the passes. Note [Tables]"""
    half = code.let("floordiv", DType.i64, code.let("max", DType.i64, code.sub(length, n), ZERO), i64(2), exact=True)
    return code.let("select", DType.i64, code.compare("le", length, n), n, half, label="size")


def _part(loc: Loc, start: Atom) -> Loc:
    return Loc(loc.buffer, loc.dtype, loc.shape, loc.strides, start)


class _Transform:
    """The function that transforms a vector."""

    def __init__(self, routines: dict[str, Program], dtype: DType) -> None:
        self.code, self.dtype = Code(), dtype
        self.passes = passes(routines, dtype)
        self.n, self.length = Var("n", I64), Var("length", I64)
        self.side = Var("side", SCALAR[dtype.real])  # -1 for the inverse
        self.x, self.table = (parameter(label, dtype, self.n) for label in ("x", "table"))
        self.work, self.out = (parameter(label, dtype, self.n, written=True) for label in ("work", "out"))
        self.size = _size(self.code, self.n, self.length)

    def program(self, name: str) -> Program:
        self.code.branch(self.code.compare("eq", self.size, self.n), self.directly, self.by_convolution)
        return routine(name, (self.n, self.length, self.side, self.x, self.table, self.work, self.out), self.code)

    def each(self, hi: Atom, value: Callable[[Var], Atom], target: Loc, lo: Atom = ZERO) -> None:
        with self.code.loop(hi, lo, label="k", vectorize=False) as k:
            self.code.store(target, [k], value(k))

    def turned(self, x: Atom) -> Atom:
        """The conjugate, for the inverse."""
        code, real = self.code, self.dtype.real
        imag = code.let("mul", real, code.let("imag", real, x), self.side)
        return code.let("complex", self.dtype, code.let("real", real, x), imag)

    def product(self, x: Atom, y: Atom) -> Atom:
        return self.code.let("mul", self.dtype, x, y)

    def transformed(self) -> Loc:
        """Where it is."""
        half = Var("half", I64)
        self.code.emit(Invoke(self.passes, (self.size, pointer(self.work), pointer(self.table)), (half,)))
        return _part(self.work, self.code.mul(half, self.size))

    def directly(self) -> None:
        load = self.code.load
        self.each(self.n, lambda k: self.turned(load(self.x, [k])), self.work)
        made = self.transformed()
        self.each(self.n, lambda k: self.turned(load(made, [k])), self.out)

    def by_convolution(self) -> None:
        code, load, real = self.code, self.code.load, self.dtype.real
        chirp = _part(self.table, self.size)
        spectrum = _part(self.table, code.add(self.size, self.n))
        self.each(self.n, lambda k: self.product(self.turned(load(self.x, [k])), load(chirp, [k])), self.work)
        self.each(self.size, lambda k: const(0, self.dtype), self.work, self.n)
        made = self.transformed()
        conj = "conj"
        self.each(
            self.size,
            lambda k: code.let(conj, self.dtype, self.product(load(made, [k]), load(spectrum, [k]))),
            self.work,
        )
        back = self.transformed()
        part = code.let("div", real, const(1, real), code.let("convert", real, self.size))
        scale = code.let("complex", self.dtype, part, const(0, real))

        def value(k: Var) -> Atom:
            found = code.let(conj, self.dtype, load(back, [k]))
            return self.turned(self.product(self.product(found, load(chirp, [k])), scale))

        self.each(self.n, value, self.out)


def _table(routines: dict[str, Program], name: str) -> Program:
    code, n, length = Code(), Var("n", I64), Var("length", I64)
    table, work = parameter("table", C128, length, written=True), parameter("work", C128, length, written=True)
    size = _size(code, n, length)
    _roots(code, table, size)
    code.branch(code.compare("eq", size, n), lambda: None, lambda: _chirp(code, routines, n, size, table, work))
    return routine(name, (n, length, table, work), code)


def _turn(code: Code, angle: Atom) -> Atom:
    """exp(i angle)"""
    return code.let("complex", C128, code.let("cos", F64, angle), code.let("sin", F64, angle))


def _roots(code: Code, table: Loc, size: Atom) -> None:
    """The first ones one by one, in number about the root of all; the others are those times the first one of a block."""
    number = code.let("convert", F64, size)
    width = code.add(code.let("convert", DType.i64, code.let("sqrt", F64, number)), ONE)
    width = code.let("min", DType.i64, width, size, label="width")
    angle = code.let("div", F64, const(-2 * math.pi, F64), number)

    def turn(k: Atom) -> Atom:
        return _turn(code, code.let("mul", F64, angle, code.let("convert", F64, k)))

    with code.loop(width, label="k", vectorize=False) as k:
        code.store(table, [k], turn(k))
    start = code.declare(width, "start")
    with code.nested() as test:
        more = code.compare("lt", start, size)
    with code.nested() as body:
        first = turn(start)
        with code.loop(code.let("min", DType.i64, width, code.sub(size, start)), label="k", vectorize=False) as k:
            code.store(table, [code.add(start, k)], code.let("mul", C128, first, code.load(table, [k])))
        code.assign(start, code.add(start, width))
    code.emit(While(tuple(test), more, tuple(body)))


def _chirp(code: Code, routines: dict[str, Program], n: Atom, size: Atom, table: Loc, work: Loc) -> None:
    chirp, spectrum = _part(table, size), _part(table, code.add(size, n))
    angle = code.let("div", F64, const(-math.pi, F64), code.let("convert", F64, n))
    with code.loop(size, label="k", vectorize=False) as k:
        code.store(work, [k], const(0, C128))
    with code.loop(n, label="k", vectorize=False) as k:
        around = code.let("mod", DType.i64, code.mul(k, k), code.mul(n, i64(2)), label="around")
        made = _turn(code, code.let("mul", F64, angle, code.let("convert", F64, around)))
        code.store(chirp, [k], made)
        back = code.let("conj", C128, made)
        code.store(work, [k], back)
        opposite = code.let("select", DType.i64, code.compare("eq", k, ZERO), ZERO, code.sub(size, k))
        code.store(work, [opposite], back)
    half = Var("half", I64)
    code.emit(Invoke(passes(routines, C128), (size, pointer(work), pointer(table)), (half,)))
    found = _part(work, code.mul(half, size))
    with code.loop(size, label="k", vectorize=False) as k:
        code.store(spectrum, [k], code.load(found, [k]))
