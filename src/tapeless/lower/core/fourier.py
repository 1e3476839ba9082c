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
from dataclasses import replace

from tapeless.ir.core import Library, Var
from tapeless.ir.types import I64, SCALAR, Atom, DType, const, i64
from tapeless.lower.core.blas import pointer, temporary
from tapeless.lower.core.butterflies import Passes, inline, invoked
from tapeless.lower.core.code import ONE, ZERO, Code, Loc, parameter, routine
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Invoke, Program, While

F64, C128 = DType.f64, DType.c128


def fourier(lo: Lowerer, var: Var, exp: Library) -> None:
    out = lo.place(var)
    lo.arrays[var] = out
    transform(lo, exp, lo.loc(exp.args[0]), out)


def transform(lo: Lowerer, exp: Library, x: Loc, out: Loc) -> None:
    """Of a vector; on a GPU also of each row of a matrix."""
    code, table = lo.code, lo.loc(exp.args[1])
    dtype, (*rows, n), length = x.dtype, x.shape, table.shape[0]
    given = _in_order(lo, x)
    made = out if out.ordered and out.buffer is not table.buffer else temporary(lo, dtype, x.shape, "transformed")
    work = temporary(lo, dtype, (*rows, code.mul(_size(code, n, length), i64(2))), "work")
    side = const(1 if exp.name == "fft" else -1, dtype.real)
    arrays = given, _in_order(lo, table), work, made
    if lo.schedule.apart:
        _Transform(code, inline(code), (n, length, side), arrays).write()
    else:
        name, routines = f"tp_fourier_{dtype.value}", lo.routines
        if name not in routines:
            routines[name] = _transform(routines, dtype, name)
        code.emit(Invoke(name, (n, length, side, *map(pointer, arrays)), ()))
    code.copy(made, out)


def fourier_table(lo: Lowerer, var: Var, exp: Library) -> None:
    code = lo.code
    length, n = lo.loc(exp.args[0]).shape[0], lo.loc(exp.args[1]).shape[0]
    out = lo.place(var)
    lo.arrays[var] = out
    table = out if out.ordered else temporary(lo, C128, (length,), "table")
    work = temporary(lo, C128, (code.mul(_size(code, n, length), i64(2)),), "work")
    if lo.schedule.apart:
        _write_table(code, inline(code), n, length, table, work)
    else:
        name, routines = "tp_fourier_table", lo.routines
        if name not in routines:
            routines[name] = _table(routines, name)
        code.emit(Invoke(name, (n, length, pointer(table), pointer(work)), ()))
    code.copy(table, out)


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


def _part(code: Code, loc: Loc, start: Atom) -> Loc:
    return replace(loc, offset=code.add(loc.offset, start))


def _each(code: Code, hi: Atom, value: Callable[[list[Atom]], Atom], target: Loc, lo: Atom = ZERO) -> None:
    """Elements lo to hi by themselves, of each row: in a kernel, where there are kernels."""
    if code.launched is None:
        with code.loop(hi, lo, label="k", vectorize=False) as k:
            code.store(target, [k], value([k]))
        return

    def put(at: list[Atom]) -> None:
        place = [*at[:-1], code.add(at[-1], lo)]
        code.store(target, place, value(place))

    code.spread([*target.shape[:-1], code.sub(hi, lo)], put)


class _Transform:
    """The statements that transform a vector, given how many numbers it has, the length of its table, and -1 for the inverse."""

    def __init__(
        self, code: Code, passes: Passes, numbers: tuple[Atom, Atom, Atom], arrays: tuple[Loc, Loc, Loc, Loc]
    ) -> None:
        self.code, self.passes = code, passes
        self.n, self.length, self.side = numbers
        self.x, self.table, self.work, self.out = arrays
        self.dtype = self.x.dtype
        self.size = _size(code, self.n, self.length)

    def write(self) -> None:
        """By one run of passes, or by two of them where it is a convolution."""
        code = self.code
        directly = code.compare("eq", self.size, self.n)
        code.branch(directly, self.begin, self.begin_convolution)
        again = code.declare(code.let("not", DType.bool, directly), "again")
        go_on = code.declare(const(True, DType.bool), "go_on")
        with code.nested() as body:
            half = self.passes(self.size, self.work, self.table)
            made = _part(self.code, self.work, code.mul(half, self.size))
            code.branch(
                again,
                lambda: self.convolve(made),
                lambda: code.branch(directly, lambda: self.end(made), lambda: self.end_convolution(made)),
            )
            code.assign(go_on, again)
            code.assign(again, const(False, DType.bool))
        code.emit(While((), go_on, tuple(body)))

    def turned(self, x: Atom) -> Atom:
        """The conjugate, for the inverse."""
        code, real = self.code, self.dtype.real
        imag = code.let("mul", real, code.let("imag", real, x), self.side)
        return code.let("complex", self.dtype, code.let("real", real, x), imag)

    def product(self, x: Atom, y: Atom) -> Atom:
        return self.code.let("mul", self.dtype, x, y)

    def conj(self, x: Atom) -> Atom:
        return self.code.let("conj", self.dtype, x)

    def begin(self) -> None:
        _each(self.code, self.n, lambda at: self.turned(self.code.load(self.x, at)), self.work)

    def end(self, made: Loc) -> None:
        _each(self.code, self.n, lambda at: self.turned(self.code.load(made, at)), self.out)

    @property
    def chirp(self) -> Loc:
        return _part(self.code, self.table, self.size)

    def begin_convolution(self) -> None:
        code, load, chirp = self.code, self.code.load, self.chirp
        _each(code, self.n, lambda at: self.product(self.turned(load(self.x, at)), load(chirp, at[-1:])), self.work)
        _each(code, self.size, lambda at: const(0, self.dtype), self.work, self.n)

    def convolve(self, made: Loc) -> None:
        code, load = self.code, self.code.load
        spectrum = _part(self.code, self.table, code.add(self.size, self.n))
        _each(code, self.size, lambda at: self.conj(self.product(load(made, at), load(spectrum, at[-1:]))), self.work)

    def end_convolution(self, made: Loc) -> None:
        code, load, real, chirp = self.code, self.code.load, self.dtype.real, self.chirp
        part = code.let("div", real, const(1, real), code.let("convert", real, self.size))
        scale = code.let("complex", self.dtype, part, const(0, real))

        def value(at: list[Atom]) -> Atom:
            return self.turned(self.product(self.product(self.conj(load(made, at)), load(chirp, at[-1:])), scale))

        _each(code, self.n, value, self.out)


def _transform(routines: dict[str, Program], dtype: DType, name: str) -> Program:
    code, n, length, side = Code(), Var("n", I64), Var("length", I64), Var("side", SCALAR[dtype.real])
    x, table = (parameter(label, dtype, n) for label in ("x", "table"))
    work, out = (parameter(label, dtype, n, written=True) for label in ("work", "out"))
    _Transform(code, invoked(code, routines, dtype), (n, length, side), (x, table, work, out)).write()
    return routine(name, (n, length, side, x, table, work, out), code)


def _table(routines: dict[str, Program], name: str) -> Program:
    code, n, length = Code(), Var("n", I64), Var("length", I64)
    table, work = parameter("table", C128, length, written=True), parameter("work", C128, length, written=True)
    _write_table(code, invoked(code, routines, C128), n, length, table, work)
    return routine(name, (n, length, table, work), code)


def _write_table(code: Code, passes: Passes, n: Atom, length: Atom, table: Loc, work: Loc) -> None:
    size = _size(code, n, length)
    _roots(code, table, size)
    code.branch(code.compare("eq", size, n), lambda: None, lambda: _chirp(code, passes, n, size, table, work))


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

    _each(code, width if code.launched is None else size, lambda at: turn(at[0]), table)
    if code.launched is not None:  # each by itself
        return
    start = code.declare(width, "start")
    with code.nested() as test:
        more = code.compare("lt", start, size)
    with code.nested() as body:
        first = turn(start)
        with code.loop(code.let("min", DType.i64, width, code.sub(size, start)), label="k", vectorize=False) as k:
            code.store(table, [code.add(start, k)], code.let("mul", C128, first, code.load(table, [k])))
        code.assign(start, code.add(start, width))
    code.emit(While(tuple(test), more, tuple(body)))


def _chirp(code: Code, passes: Passes, n: Atom, size: Atom, table: Loc, work: Loc) -> None:
    chirp, spectrum = _part(code, table, size), _part(code, table, code.add(size, n))
    angle = code.let("div", F64, const(-math.pi, F64), code.let("convert", F64, n))

    def made(at: list[Atom]) -> Atom:
        (k,) = at
        around = code.let("mod", DType.i64, code.mul(k, k), code.mul(n, i64(2)), label="around")
        return _turn(code, code.let("mul", F64, angle, code.let("convert", F64, around)))

    def back(at: list[Atom]) -> Atom:
        """A number of what the chirp is convolved with: from both ends inwards."""
        (k,) = at
        opposite = code.sub(size, k)
        near = code.let("min", DType.i64, k, opposite)
        inside = code.compare("lt", near, n)
        place = code.let("select", DType.i64, inside, near, ZERO)
        found = code.let("conj", C128, code.load(chirp, [place]))
        return code.let("select", C128, inside, found, const(0, C128))

    _each(code, n, made, chirp)
    _each(code, size, back, work)
    found = _part(code, work, code.mul(passes(size, work, table), size))
    _each(code, size, lambda at: code.load(found, at), spectrum)
