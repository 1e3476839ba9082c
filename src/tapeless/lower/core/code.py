"""Writing Loop IR: statements, scalars that fold, and where an array lies in memory.

Gives `Code` (the statements under construction, with index arithmetic) and `Loc` (buffer, offset, strides, shape).
Relies on `lower.ir.loopir`. Lowering is written over these.

Note [Quotients by products]
A kernel over all elements of a nest divides by the sizes of its axes, which a GPU does in some thirty instructions. These
sizes are the same for all threads. So the host makes of each size d a factor, with which the quotient of all numbers x
below 2^62 is (x * factor) >> s:

    s = 62 + l with d <= 2^l and 1 <= l,   factor = 2^s // d + 1

Then factor * d exceeds 2^s by at most d <= 2^l, which x multiplies to less than 2^s: too little for the next quotient.
The product is the upper half of 2 x * factor, both without a sign, which is shifted by l - 1 more. As 2^s is no number of
64 bits, the factor is made of 2^62 // d and the rest, with as many bits more as are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tapeless.errors import WARNINGS
from tapeless.ir.node import node
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import I64, SCALAR, Atom, Const, DType, Type, Var, const, i64
from tapeless.lower.ir.loopir import (
    LARGEST_SIZE,
    Alloc,
    Assign,
    Buffer,
    Check,
    Declare,
    For,
    Free,
    If,
    Let,
    Load,
    Program,
    Site,
    Space,
    Stm,
    Store,
    Tag,
)
from tapeless.ops.table import op as row

ZERO, ONE = i64(0), i64(1)
LINE = 128  # bytes: processors fetch lines of 64 in pairs
FEW = 256  # elements that are not worth a kernel, nor so many cheap operations of a thread
BITS = 62  # of numbers that products divide
STACK_LIMIT = 1024  # elements of constant size up to which an array lives on the stack


@node(frozen=True)
class Loc:
    """Element [i, j, ...] lies at offset + i * strides[0] + j * strides[1] + ... of the buffer."""

    buffer: Buffer
    dtype: DType
    shape: tuple[Atom, ...]
    strides: tuple[Atom, ...]
    offset: Atom = ZERO
    ordered: bool = True  # in row-major order without gaps
    upward: bool = True  # each axis goes upwards in memory, and no element lies in two places of the array

    @property
    def rank(self) -> int:
        return len(self.shape)

    def same_place(self, other: Loc) -> bool:
        """Whether element for element this is the memory of an array of the same shape."""
        if self.buffer is not other.buffer or self.offset != other.offset:
            return False
        return self.strides == other.strides or (self.ordered and other.ordered)


def parameter(label: str, dtype: DType, size: Atom, written: bool = False) -> Loc:
    """A vector that a routine is given."""
    return Loc(Buffer(label, dtype, Space.param, None, written), dtype, (size,), (ONE,))


def routine(name: str, params: Sequence[Var | Loc], code: Code, results: tuple[DType, ...] = ()) -> Program:
    """A function of the program that lowering makes itself, once for all that call it."""
    given = tuple(p.buffer if isinstance(p, Loc) else p for p in params)
    return Program(name, given, Var("threads", I64), results, (), tuple(code.block), shared=True)


class Code:
    """The statements under construction."""

    def __init__(self, sites: dict[Site, int] | None = None) -> None:
        self._blocks: list[list[Stm]] = [[]]
        self.sites: dict[Site, int] = {} if sites is None else sites  # with their numbers
        self.span: Span = NOWHERE
        self.reassoc = False
        self.parallel = False  # inside a parallel region
        self.grid: Var | None = None  # counts the elements of the kernel at hand
        self.launched: Tag | None = None  # how loops over all elements of an array run, outside of such regions

    # -- statements

    @property
    def block(self) -> list[Stm]:
        return self._blocks[-1]

    def emit(self, stm: Stm) -> None:
        self.block.append(stm)

    @contextmanager
    def nested(self) -> Iterator[list[Stm]]:
        inner: list[Stm] = []
        self._blocks.append(inner)
        try:
            yield inner
        finally:
            self._blocks.pop()

    # -- scalars

    def let(self, name: str, dtype: DType, *args: Atom, label: str = "t", exact: bool = False) -> Atom:
        """A row of the ops table; constants fold."""
        if name != "convert" and Var not in map(type, args):
            values = [a.dtype.numpy.type(a.value) for a in args if isinstance(a, Const)]
            return const(row(name).numpy(*values), dtype)
        if name == "convert" and isinstance(args[0], Const):
            return const(row(name).numpy(args[0].dtype.numpy.type(args[0].value), dtype.numpy), dtype)
        var = Var(label, SCALAR[dtype])
        reassoc = self.reassoc and dtype is not DType.bool and not dtype.is_int
        self.emit(Let(var, name, args, exact, reassoc))
        return var

    def add(self, a: Atom, b: Atom) -> Atom:
        if a == ZERO:
            return b
        if b == ZERO:
            return a
        return self.let("add", DType.i64, a, b, label="at", exact=True)

    def sub(self, a: Atom, b: Atom) -> Atom:
        return a if b == ZERO else self.let("sub", DType.i64, a, b, label="at", exact=True)

    def mul(self, a: Atom, b: Atom) -> Atom:
        if a == ZERO or b == ZERO:
            return ZERO
        if a == ONE:
            return b
        if b == ONE:
            return a
        return self.let("mul", DType.i64, a, b, label="at", exact=True)

    def compare(self, name: str, a: Atom, b: Atom) -> Atom:
        return self.let(name, DType.bool, a, b, label="c")

    def declare(self, init: Atom, label: str = "v") -> Var:
        var = Var(label, init.type)
        self.emit(Declare(var, init))
        return var

    def assign(self, var: Var, value: Atom) -> None:
        if value is not var:
            self.emit(Assign(var, value))

    # -- control

    @contextmanager
    def loop(
        self,
        hi: Atom,
        lo: Atom | None = None,
        tag: Tag = Tag.seq,
        label: str = "i",
        vectorize: bool = True,
        step: int = 1,
    ) -> Iterator[Var]:
        var = Var(label, I64)
        before, self.grid = self.grid, var if tag == Tag.grid else self.grid
        with self.nested() as body:
            yield var
        self.grid = before
        self.emit(For(var, ZERO if lo is None else lo, hi, tuple(body), step, tag, vectorize, self.span))

    def branch(self, cond: Atom, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        with self.nested() as first:
            then()
        with self.nested() as second:
            if orelse is not None:
                orelse()
        self.emit(If(cond, tuple(first), tuple(second)))

    def check(self, cond: Atom, error: str, message: str, *args: Atom) -> None:
        if isinstance(cond, Const) and cond.value:
            return
        site = Site(error, message, self.span, tuple(a.type.dtype for a in args[:3]))
        number = self.sites.setdefault(site, len(self.sites))
        self.emit(Check(cond, number, tuple(args[:3]), error not in WARNINGS))

    # -- memory

    def size(self, shape: Sequence[Atom]) -> Atom:
        total: Atom = ONE
        for d in shape:
            total = self.mul(total, d)
        return total

    def room(self, shape: Sequence[Atom]) -> Atom:
        """The number of elements to allocate: where the product would not fit, more than there can be.

        Integer arithmetic only, so that it moves out of loops with the allocation.
        """
        total: Atom = ONE
        for d in shape:
            if total == ONE or d == ONE or ZERO in (total, d) or (isinstance(total, Const) and isinstance(d, Const)):
                total = self.mul(total, d)
                continue
            most = self.let("floordiv", DType.i64, i64(LARGEST_SIZE), self.let("max", DType.i64, d, ONE), exact=True)
            excess = self.let("max", DType.i64, self.let("sub", DType.i64, total, most), ZERO)
            too_many = self.let("mul", DType.i64, self.let("min", DType.i64, excess, ONE), i64(2 * LARGEST_SIZE))
            total = self.let("max", DType.i64, self.let("mul", DType.i64, total, d), too_many)
        return total

    def row_major(self, shape: Sequence[Atom]) -> tuple[Atom, ...]:
        strides: list[Atom] = []
        step: Atom = ONE
        for d in reversed(shape):
            strides.append(step)
            step = self.mul(step, d)
        return tuple(reversed(strides))

    def allocate(self, dtype: DType, shape: Sequence[Atom], label: str = "buf") -> Loc:
        """New memory, in order; small arrays of constant shape on the stack."""
        total = self.room(shape)
        strides = self.row_major(shape)
        if isinstance(total, Const) and int(total.value.real) <= STACK_LIMIT:
            buffer = Buffer(label, dtype, Space.stack, max(1, int(total.value.real)))
        else:
            buffer = Buffer(label, dtype, Space.heap)
            self.emit(Alloc(buffer, total))
        return Loc(buffer, dtype, tuple(shape), strides)

    def allocate_apart(self, dtype: DType, pieces: Atom, shape: Sequence[Atom], label: str = "buf") -> Loc:
        """An array for each piece; no two of them share a line of a cache, which threads would take from each other."""
        line = i64(LINE // dtype.bytes)
        lines = self.let(
            "floordiv", DType.i64, self.add(self.room(shape), i64(LINE // dtype.bytes - 1)), line, exact=True
        )
        stride = self.mul(lines, line)
        whole = self.allocate(dtype, (pieces, stride), label)
        return Loc(whole.buffer, dtype, (pieces, *shape), (stride, *self.row_major(shape)), ordered=False)

    def free(self, buffer: Buffer) -> None:
        if buffer.space is Space.heap:
            self.emit(Free(buffer))

    def address(self, loc: Loc, indices: Sequence[Atom]) -> Atom:
        at = loc.offset
        for i, stride in zip(indices, loc.strides, strict=True):
            at = self.add(at, self.mul(i, stride))
        return at

    def load(self, loc: Loc, indices: Sequence[Atom], label: str = "e") -> Var:
        var = Var(label, Type(loc.dtype))
        self.emit(Load(var, loc.buffer, self.address(loc, indices)))
        return var

    def store(self, loc: Loc, indices: Sequence[Atom], value: Atom) -> None:
        self.emit(Store(loc.buffer, self.address(loc, indices), value))

    def inside(self, loc: Loc, index: Atom) -> Loc:
        """The row at `index`."""
        offset = self.add(loc.offset, self.mul(index, loc.strides[0]))
        return replace(loc, shape=loc.shape[1:], strides=loc.strides[1:], offset=offset)

    # -- whole arrays

    def each(self, shape: Sequence[Atom], body: Callable[[list[Atom]], None], simd: bool = True) -> None:
        """A nest of loops over a shape, innermost last."""

        def level(indices: list[Atom]) -> None:
            k = len(indices)
            if k == len(shape):
                body(indices)
                return
            tag = Tag.simd if simd and k == len(shape) - 1 else Tag.seq
            with self.loop(shape[k], tag=tag, label="ijklmnop"[min(k, 7)]) as i:
                level([*indices, i])

        level([])

    def spread(self, shape: Sequence[Atom], body: Callable[[list[Atom]], None]) -> None:
        """The same for elements that have nothing to do with each other: a kernel where the target has them."""
        count = self.size(shape)
        if self.launched is None or self.parallel or (isinstance(count, Const) and count.value.real <= FEW):
            self.each(shape, body)
            return
        at = places(self, shape)
        self.parallel = True
        with self.loop(count, tag=self.launched) as t:
            body(at.of(t))
        self.parallel = False

    def copy(self, source: Loc, target: Loc) -> None:
        if source.same_place(target):
            return
        if source.ordered and target.ordered and source.rank != 1:
            total = self.size(source.shape)
            flat = (ONE,)
            source = Loc(source.buffer, source.dtype, (total,), flat, source.offset)
            target = Loc(target.buffer, target.dtype, (total,), flat, target.offset)
        self.spread(target.shape, lambda i: self.store(target, i, self.load(source, i)))

    def fill(self, target: Loc, value: Atom) -> None:
        if target.ordered and target.rank != 1:
            target = Loc(target.buffer, target.dtype, (self.size(target.shape),), (ONE,), target.offset)
        self.spread(target.shape, lambda i: self.store(target, i, value))


@node(frozen=True)
class Places:
    """Where an element of a nest is, given its number. Made by the host, for all elements. Note [Quotients by products]"""

    code: Code
    shape: tuple[Atom, ...]
    divisors: tuple[tuple[Atom, ...], ...]  # of all axes but the first: operands of `quotient_by`, or a constant

    def of(self, number: Atom) -> list[Atom]:
        code = self.code
        indices: list[Atom] = []
        for divisor in reversed(self.divisors):
            if len(divisor) == 1:
                rest = code.let("floordiv", DType.i64, number, *divisor, label="rest", exact=True)
            else:
                rest = code.let("quotient_by", DType.i64, number, *divisor, label="rest", exact=True)
            indices.append(code.sub(number, code.mul(rest, divisor[0])))
            number = rest
        return [number, *reversed(indices)][: len(self.shape)]


def places(code: Code, shape: Sequence[Atom]) -> Places:
    """Note [Quotients by products]"""
    divisors = tuple((d,) if isinstance(d, Const) else (d, *_by_product(code, d)) for d in shape[1:])
    return Places(code, tuple(shape), divisors)


def _by_product(code: Code, d: Atom) -> tuple[Atom, Atom]:
    def let(name: str, *args: Atom) -> Atom:
        return code.let(name, DType.i64, *args)

    positive = let("max", let("min", d, i64(1 << BITS)), ONE)
    filled = let("sub", positive, ONE)
    for step in (1, 2, 4, 8, 16, 32):
        filled = let("or", filled, let("shr", filled, i64(step)))
    bits = let("max", let("count_bits", filled), ONE)
    quotient = let("floordiv", i64(1 << BITS), positive)
    rest = let("sub", i64(1 << BITS), let("mul", quotient, positive))
    missing = bits
    for _ in range(2):  # of all bits at once that there is room for, which are all for sizes below 2^41
        some = let("min", missing, let("sub", i64(BITS), bits))
        longer = let("shl", rest, some)
        more = let("floordiv", longer, positive)
        quotient, rest = let("add", let("shl", quotient, some), more), let("sub", longer, let("mul", more, positive))
        missing = let("sub", missing, some)
    found, left = code.declare(quotient, "quotient"), code.declare(rest, "rest")
    with code.loop(missing, vectorize=False):
        twice, beyond = let("add", found, found), let("sub", let("add", left, left), positive)
        goes = code.let("ge", DType.bool, beyond, i64(0))
        code.assign(left, let("select", goes, beyond, let("add", beyond, positive)))
        code.assign(found, let("select", goes, let("add", twice, ONE), twice))
    return let("add", found, ONE), let("sub", bits, ONE)
