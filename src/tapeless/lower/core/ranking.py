"""Positions of numbers by their rank: what `argsort` has at some places, without sorting all.

Note [Ranks]
Those whose first byte is not that of the wanted number are left out, then those whose second byte is not, until few are left,
which are sorted; the bytes are those of Note [Sorting by digits]. Ranks that are among the same few need nothing more.
"""

from __future__ import annotations

from tapeless.ir.core import Library, Var
from tapeless.ir.types import I64, Atom, DType, const, i64
from tapeless.lower.core.blas import pointer, temporary
from tapeless.lower.core.code import ONE, ZERO, Code, parameter, routine
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.core.sorting import BYTE, FEW, Digits, lower_sort
from tapeless.lower.ir.loopir import Invoke, Program, While


def lower_ranked(lo: Lowerer, var: Var, exp: Library) -> None:
    """`ranked(x, ranks)`: where the numbers of these ranks are."""
    code = lo.code
    x, ranks = lo.loc(exp.args[0]), lo.loc(exp.args[1])
    out = lo.place(var)
    lo.arrays[var] = out
    if lo.schedule.apart:
        order = Var("order", exp.args[0].type.with_dtype(DType.i64))
        lower_sort(lo, order, Library("argsort", exp.args[:1]))
        found = lo.loc(order)
        code.spread(out.shape, lambda i: code.store(out, i, code.load(found, [code.load(ranks, i)])))
        return
    n, count, dtype = x.shape[0], ranks.shape[0], x.dtype
    given, wanted = temporary(lo, dtype, (n,), "given"), temporary(lo, DType.i64, (count,), "wanted")
    numbers, positions = temporary(lo, dtype, (n,), "numbers"), temporary(lo, DType.i64, (n,), "positions")
    counts = temporary(lo, DType.i64, (i64(BYTE),), "counts")
    code.copy(x, given)
    code.copy(ranks, wanted)
    name = f"tp_ranked_{dtype.value}"
    if name not in lo.routines:
        lo.routines[name] = _Ranks(dtype).program(name)
    code.emit(Invoke(name, (n, count, *map(pointer, (given, wanted, numbers, positions, counts))), ()))
    code.copy(wanted, out)


class _Ranks:
    """The function that puts a position in the place of each rank."""

    def __init__(self, dtype: DType) -> None:
        self.code, self.n, self.count = Code(), Var("n", I64), Var("count", I64)
        self.given = parameter("given", dtype, self.n)
        self.wanted = parameter("wanted", DType.i64, self.count, written=True)
        self.numbers = parameter("numbers", dtype, self.n, written=True)
        self.positions = parameter("positions", DType.i64, self.n, written=True)
        self.counts = parameter("counts", DType.i64, i64(BYTE), written=True)
        self.digits = Digits(self.code, dtype, [self.numbers, self.positions])
        self.left = self.code.declare(ZERO, "left")  # how many numbers may be the one
        self.below = self.code.declare(ZERO, "below")  # how many are smaller than all of these

    def program(self, name: str) -> Program:
        code = self.code
        some = code.let("select", DType.i64, code.compare("gt", self.n, ZERO), self.count, ZERO)
        with code.loop(some, label="j", vectorize=False) as j:
            rank = code.let("max", DType.i64, code.load(self.wanted, [j]), ZERO)
            rank = code.let("min", DType.i64, rank, code.sub(self.n, ONE), label="rank")
            after = code.compare("ge", rank, self.below)
            before = code.compare("lt", rank, code.add(self.below, self.left))
            code.branch(code.let("and", DType.bool, after, before), lambda: None, lambda: self.find(rank))
            code.store(self.wanted, [j], code.load(self.positions, [code.sub(rank, self.below)]))
        params = (self.n, self.count, self.given, self.wanted, self.numbers, self.positions, self.counts)
        return routine(name, params, code)

    def find(self, rank: Atom) -> None:
        code = self.code
        with code.loop(self.n) as i:
            code.store(self.numbers, [i], code.load(self.given, [i]))
            code.store(self.positions, [i], i)
        code.assign(self.left, self.n)
        code.assign(self.below, ZERO)
        place = self.first_byte()
        with code.nested() as test:
            many = code.compare("gt", self.left, i64(FEW))
            more = code.let("and", DType.bool, many, code.compare("gt", place, ZERO), label="more")
        with code.nested() as body:
            code.assign(place, code.sub(place, ONE))
            self.narrow(rank, place)
        code.emit(While(tuple(test), more, tuple(body)))
        code.branch(code.compare("le", self.left, i64(FEW)), lambda: self.digits.insert(self.left))

    def first_byte(self) -> Var:
        """All bytes from this place on are the same in all numbers."""
        code, key = self.code, self.digits.key
        first = key(code.load(self.given, [ZERO]))
        kind = first.type.dtype
        different = code.declare(const(0, kind), "different")
        with code.loop(self.n) as i:
            bits = code.let("xor", kind, key(code.load(self.given, [i])), first)
            code.assign(different, code.let("or", kind, different, bits))
        place = code.declare(i64(self.digits.dtype.bytes), "byte")
        with code.nested() as test:
            same = code.compare("eq", self.digits.byte(different, code.sub(place, ONE)), ZERO)
            more = code.let("and", DType.bool, same, code.compare("gt", place, ONE), label="more")
        with code.nested() as body:
            code.assign(place, code.sub(place, ONE))
        code.emit(While(tuple(test), more, tuple(body)))
        return place

    def narrow(self, rank: Atom, place: Atom) -> None:
        """Those with the byte of the wanted one at this place."""
        code, byte = self.code, self.digits.byte_of
        code.fill(self.counts, ZERO)
        with code.loop(self.left, vectorize=False) as i:
            at = byte(code.load(self.numbers, [i]), place)
            code.store(self.counts, [at], code.add(code.load(self.counts, [at]), ONE))
        bucket = code.declare(ZERO, "bucket")
        with code.nested() as test:
            beyond = code.add(self.below, code.load(self.counts, [bucket]))
            more = code.compare("le", beyond, rank)
        with code.nested() as body:
            code.assign(self.below, beyond)
            code.assign(bucket, code.let("min", DType.i64, code.add(bucket, ONE), i64(BYTE - 1)))
        code.emit(While(tuple(test), more, tuple(body)))
        kept = code.declare(ZERO, "kept")
        with code.loop(self.left, vectorize=False) as i:
            number, position = code.load(self.numbers, [i]), code.load(self.positions, [i])
            code.store(self.numbers, [kept], number)
            code.store(self.positions, [kept], position)
            same = code.compare("eq", byte(number, place), bucket)
            code.assign(kept, code.add(kept, code.let("convert", DType.i64, same)))
        code.assign(self.left, kept)
