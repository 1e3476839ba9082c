"""Sorting as loops: stable, NaN last, of values or of their positions. By digits on a CPU, by merging on a GPU.

Note [Sorting by digits]
Numbers are brought into the order of their last byte, then of the one before, and so on; each time those of one byte keep their
order. The bytes are those of integers without sign in the same order as the numbers: 0.0 and -0.0 are one, so are all NaN. A byte that
all numbers share takes no pass. Few numbers are inserted one by one.

Note [Sorting by merging]
Runs of one number, then of two, of four and so on are merged in pairs. In a kernel one thread does so, number by number. Where
the host launches kernels there is a thread for each number: it finds the place in the other run by halving, and the sum of both
places is where it goes. Of equal ones those of the first run come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Library, Var
from tapeless.ir.types import I64, Atom, DType, const, i64
from tapeless.lower.core.blas import pointer, temporary
from tapeless.lower.core.code import ONE, ZERO, Code, Loc, parameter, routine
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.ir.loopir import Invoke, Program, Return, Space, Swap, While

FEW = 48  # numbers that are inserted
BYTE = 256


def lower_sort(lo: Lowerer, var: Var, exp: Library) -> None:
    """`sort` gives the values in order, `argsort` the positions that put them in order."""
    (_by_merging if lo.schedule.apart else _by_digits)(lo, var, exp)


# -- by digits


def _by_digits(lo: Lowerer, var: Var, exp: Library) -> None:
    code, source = lo.code, lo.loc(exp.args[0])
    n, dtype, positions = source.shape[0], source.dtype, exp.name == "argsort"
    two = code.mul(n, i64(2))
    work = [temporary(lo, kind, (two,), "sorted") for kind in ([dtype, DType.i64] if positions else [dtype])]
    counts = temporary(lo, DType.i64, (i64(BYTE * dtype.bytes),), "counts")
    code.copy(source, Loc(work[0].buffer, dtype, (n,), (ONE,)))
    name, half = f"tp_{exp.name}_{dtype.value}", Var("half", I64)
    if name not in lo.routines:
        lo.routines[name] = _Sort(dtype, positions).program(name)
    code.emit(Invoke(name, (n, *map(pointer, work), pointer(counts)), (half,)))
    out = lo.place(var)
    lo.arrays[var] = out
    code.copy(Loc(work[-1].buffer, work[-1].dtype, (n,), (ONE,), code.mul(half, n)), out)


class Digits:
    """Numbers, and what goes with them, in the order of their bytes. Note [Sorting by digits]"""

    def __init__(self, code: Code, dtype: DType, arrays: Sequence[Loc]) -> None:
        self.code, self.dtype, self.arrays = code, dtype, arrays  # the first one has the numbers

    def key(self, x: Atom) -> Atom:
        code, bits = self.code, 8 * self.dtype.bytes
        least = -(2 ** (bits - 1))
        if not self.dtype.is_float:
            return code.let("xor", self.dtype, x, const(least, self.dtype))
        kind = DType.i64 if bits == 64 else DType.i32
        pattern = code.let("pattern", kind, code.let("add", self.dtype, x, const(0.0, self.dtype)))
        negative = code.let("shr", kind, pattern, const(bits - 1, kind))
        key = code.let("xor", kind, pattern, code.let("or", kind, negative, const(least, kind)))
        return code.let("select", kind, code.let("isnan", DType.bool, x), const(-1, kind), key)

    def byte(self, key: Atom, k: Atom) -> Atom:
        code, kind = self.code, key.type.dtype
        shift = code.let("convert", kind, code.mul(k, i64(8)))
        return code.let(
            "convert", DType.i64, code.let("and", kind, code.let("shr", kind, key, shift), const(255, kind))
        )

    def byte_of(self, x: Atom, k: Atom) -> Atom:
        return self.byte(self.key(x), k)

    def insert(self, count: Atom) -> None:
        """Sorts the first ones."""
        code, numbers = self.code, self.arrays[0]
        with code.loop(count, ONE, vectorize=False) as i:
            items = [code.load(array, [i]) for array in self.arrays]
            place = code.declare(i, "place")
            with code.nested() as test:
                before = code.let("max", DType.i64, code.sub(place, ONE), ZERO, label="before")
                wrong = less(code, items[0], code.load(numbers, [before]))
                more = code.let("and", DType.bool, code.compare("gt", place, ZERO), wrong, label="more")
            with code.nested() as body:
                before = code.sub(place, ONE)
                for array in self.arrays:
                    code.store(array, [place], code.load(array, [before]))
                code.assign(place, before)
            code.emit(While(tuple(test), more, tuple(body)))
            for array, item in zip(self.arrays, items, strict=True):
                code.store(array, [place], item)


class _Sort:
    """The function that sorts the first half of each array by way of the other half; it gives 1 if they are there then.

    The first array has the numbers; the second, if there is one, is for their positions.
    """

    def __init__(self, dtype: DType, positions: bool) -> None:
        self.code, self.dtype, self.n = Code(), dtype, Var("n", I64)
        kinds = {"numbers": dtype, "positions": DType.i64} if positions else {"numbers": dtype}
        self.arrays = [parameter(label, kind, self.n, written=True) for label, kind in kinds.items()]
        self.counts = parameter("counts", DType.i64, i64(BYTE * dtype.bytes), written=True)
        self.digits = Digits(self.code, dtype, self.arrays)
        self.half = self.code.declare(ZERO, "half")

    def program(self, name: str) -> Program:
        code = self.code
        for positions in self.arrays[1:]:
            with code.loop(self.n) as i:
                code.store(positions, [i], i)
        few = code.compare("le", self.n, i64(FEW))
        code.branch(few, lambda: self.digits.insert(self.n), self.by_bytes)
        code.emit(Return(0, self.half))
        return routine(name, (self.n, *self.arrays, self.counts), code, (DType.i64,))

    def by_bytes(self) -> None:
        code, bytes_ = self.code, self.dtype.bytes
        code.fill(self.counts, ZERO)
        with code.loop(self.n, vectorize=False) as i:
            key = self.digits.key(code.load(self.arrays[0], [i]))
            for place in range(bytes_):
                at = code.add(i64(BYTE * place), self.digits.byte(key, i64(place)))
                code.store(self.counts, [at], code.add(code.load(self.counts, [at]), ONE))
        with code.loop(i64(bytes_), label="k", vectorize=False) as k:
            first = self.bucket(code.load(self.arrays[0], [code.mul(self.half, self.n)]), k)
            shared = code.compare("eq", code.load(self.counts, [first]), self.n)
            code.branch(shared, lambda: None, lambda k=k: self.one_pass(k))  # type: ignore[misc]

    def one_pass(self, k: Atom) -> None:
        code, there = self.code, self.code.sub(ONE, self.half)
        start = code.declare(ZERO, "start")
        with code.loop(i64(BYTE), label="j", vectorize=False) as j:
            at = code.add(code.mul(k, i64(BYTE)), j)
            count = code.load(self.counts, [at])
            code.store(self.counts, [at], start)
            code.assign(start, code.add(start, count))
        source, target = code.mul(self.half, self.n), code.mul(there, self.n)
        with code.loop(self.n, vectorize=False) as i:
            items = [code.load(array, [code.add(source, i)]) for array in self.arrays]
            bucket = self.bucket(items[0], k)
            place = code.load(self.counts, [bucket])
            code.store(self.counts, [bucket], code.add(place, ONE))
            for array, item in zip(self.arrays, items, strict=True):
                code.store(array, [code.add(target, place)], item)
        code.assign(self.half, there)

    def bucket(self, x: Atom, k: Atom) -> Atom:
        return self.code.add(self.code.mul(k, i64(BYTE)), self.digits.byte_of(x, k))


# -- by merging


def _by_merging(lo: Lowerer, var: Var, exp: Library) -> None:
    """Note [Sorting by merging]"""
    code = lo.code
    source = lo.loc(exp.args[0])
    n = source.shape[0]
    positions = exp.name == "argsort"
    dtype = DType.i64 if positions else source.dtype
    here, there = code.allocate(dtype, (n,), "sorted"), code.allocate(dtype, (n,), "merged")
    code.spread([n], lambda i: code.store(here, i, i[0] if positions else code.load(source, i)))
    runs = _Runs(code, n, here, there, source if positions else None)
    width = code.declare(ONE, "width")
    with code.nested() as test:
        go = code.compare("lt", width, n)
    with code.nested() as body:
        if lo.launches:
            code.spread([n], lambda i: runs.merge_one(i[0], width))
        else:
            runs.merge_all(width)
        if here.buffer.space is Space.heap:
            code.emit(Swap(here.buffer, there.buffer))
        else:
            code.copy(there, here)
        code.assign(width, code.add(width, width))
    code.emit(While(tuple(test), go, tuple(body)))
    out = lo.place(var)
    lo.arrays[var] = out
    code.copy(here, out)
    code.free(here.buffer)
    code.free(there.buffer)


class _Runs:
    """Pairs of neighbouring runs that are in order, and become one: from `here` to `there`.

    `keys`: what items are compared by, which are its positions then.
    """

    def __init__(self, code: Code, n: Atom, here: Loc, there: Loc, keys: Loc | None) -> None:
        self.code, self.n, self.here, self.there, self.keys = code, n, here, there, keys
        self.last = code.let("max", DType.i64, code.sub(n, ONE), ZERO, label="last")

    def value(self, at: Atom) -> tuple[Atom, Atom]:
        """The item at a position (kept inside) and what it is compared by."""
        code = self.code
        inside = code.let("min", DType.i64, at, self.last, label="at")
        item = code.load(self.here, [inside])
        return item, item if self.keys is None else code.load(self.keys, [item])

    def ends(self, start: Atom, width: Atom) -> tuple[Atom, Atom]:
        """Of the first and of the second of a pair."""
        code = self.code
        middle = code.let("min", DType.i64, code.add(start, width), self.n, label="middle")
        return middle, code.let("min", DType.i64, code.add(middle, width), self.n, label="end")

    def merge_all(self, width: Atom) -> None:
        """One pair after the other, in one thread."""
        code = self.code
        start = code.declare(ZERO, "start")
        with code.nested() as test:
            more = code.compare("lt", start, self.n)
        with code.nested() as body:
            middle, end = self.ends(start, width)
            left, right = code.declare(start, "left"), code.declare(middle, "right")
            with code.loop(end, start) as k:
                (a, key_a), (b, key_b) = self.value(left), self.value(right)
                second = code.compare("lt", right, end)
                second = code.let("and", DType.bool, second, less(code, key_b, key_a), label="second")
                empty = code.compare("ge", left, middle)
                second = code.let("or", DType.bool, second, empty, label="second")
                code.store(self.there, [k], code.let("select", self.there.dtype, second, b, a, label="e"))
                step = code.let("convert", DType.i64, second, label="step")
                code.assign(right, code.add(right, step))
                code.assign(left, code.add(left, code.sub(ONE, step)))
            code.assign(start, end)
        code.emit(While(tuple(test), more, tuple(body)))

    def merge_one(self, i: Atom, width: Atom) -> None:
        """The item at one position goes behind all of the other run that come before it, by halving."""
        code = self.code
        item, key = self.value(i)
        run = code.let("floordiv", DType.i64, i, width, label="run")
        second = code.compare("eq", code.let("and", DType.i64, run, ONE), ONE)
        start = code.mul(code.sub(run, code.let("convert", DType.i64, second)), width)
        middle, end = self.ends(start, width)
        least = code.declare(code.let("select", DType.i64, second, start, middle), "least")
        most = code.declare(code.let("select", DType.i64, second, middle, end), "most")
        with code.nested() as test:
            more = code.compare("lt", least, most)
        with code.nested() as body:
            half = code.let("floordiv", DType.i64, code.add(least, most), i64(2), label="half")
            _, other = self.value(half)
            smaller = less(code, other, key)
            not_larger = code.let("not", DType.bool, less(code, key, other), label="not_larger")
            before = code.let("select", DType.bool, second, not_larger, smaller, label="before")
            behind = code.add(half, ONE)
            code.assign(least, code.let("select", DType.i64, before, behind, least))
            code.assign(most, code.let("select", DType.i64, before, most, half))
        code.emit(While(tuple(test), more, tuple(body)))
        # its place in its own run and that in the other one: the second run counts from the middle
        code.store(self.there, [code.sub(code.add(i, least), middle)], item)


def less(code: Code, a: Atom, b: Atom) -> Atom:
    """a comes before b: NaN comes after everything."""
    if a.type.dtype is DType.bool:
        a, b = code.let("convert", DType.i64, a), code.let("convert", DType.i64, b)
    smaller = code.compare("lt", a, b)
    if not a.type.dtype.is_float:
        return smaller
    b_nan = code.let("isnan", DType.bool, b, label="nan")
    a_nan = code.let("isnan", DType.bool, a, label="nan")
    a_number = code.let("not", DType.bool, a_nan, label="number")
    before_nan = code.let("and", DType.bool, b_nan, a_number, label="before")
    return code.let("or", DType.bool, smaller, before_nan, label="less")
