"""The passes of Fourier transforms, as functions of the program.

Note [Fourier transforms]
A transform of n numbers takes as many passes as n has factors. A pass reads one array and writes another, in Stockham's
order, so that no numbers have to be exchanged first: with `done` the product of the factors before, and n = done * factor
* left,

    out[q + done (factor p + j)] = w(p j done) sum over k of in[q + done (p + left k)] w(j k n / factor)

for p below left and q below done; w(k) is the root exp(-2 pi i k / n). Factors 4, 2, 3 and 5 have code of their own,
others are sums. There is one function for all transforms of a program; a GPU runs each pass as a kernel, whose elements are
the pairs of p and q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tapeless.ir.types import I64, Atom, DType, Var, const, i64
from tapeless.lower.core.code import ONE, ZERO, Code, Loc, parameter, routine
from tapeless.lower.ir.loopir import Buffer, Invoke, Pointer, Program, Return, Space, While

OWN = (4, 2, 3, 5)
MOST = 64  # a factor at most: larger ones are convolutions, as prelude.transforms says


# Transforms the first half of an array by way of the other, given the number of its elements, the array and the roots: 1 if
# the result is in the other half.
Passes = Callable[[Atom, Loc, Loc], Atom]


def invoked(code: Code, routines: dict[str, Program], dtype: DType) -> Passes:
    """By a function of the program, which all transforms share."""
    name, one = f"tp_fourier_passes_{dtype.value}", _one_pass(routines, dtype)
    if name not in routines:
        n = Var("n", I64)
        work, roots = parameter("work", dtype, n, written=True), parameter("roots", dtype, n)
        own = Code()

        def run(done: Atom, left: Atom, factor: Atom, here: Atom, there: Atom) -> None:
            source, target = (Pointer(work.buffer, own.mul(half, n)) for half in (here, there))
            own.emit(Invoke(one, (n, done, left, factor, source, Pointer(roots.buffer, ZERO), target), ()))

        own.emit(Return(0, _all_passes(own, n, run)))
        routines[name] = routine(name, (n, work, roots), own, (DType.i64,))

    def passes(n: Atom, work: Loc, roots: Loc) -> Atom:
        half = Var("half", I64)
        code.emit(Invoke(name, (n, Pointer(work.buffer, work.offset), Pointer(roots.buffer, roots.offset)), (half,)))
        return half

    return passes


def inline(code: Code) -> Passes:
    """By statements in this place: the host of a GPU launches each pass."""

    def passes(n: Atom, work: Loc, roots: Loc) -> Atom:
        def run(done: Atom, left: Atom, factor: Atom, here: Atom, there: Atom) -> None:
            source, target = (replace(work, offset=code.add(work.offset, code.mul(half, n))) for half in (here, there))
            _Pass(code, (n, done, left), source, roots, target).by_factor(factor)

        return _all_passes(code, n, run)

    return passes


def _all_passes(code: Code, n: Atom, run: Callable[[Atom, Atom, Atom, Atom, Atom], None]) -> Atom:
    done, left, here = code.declare(ONE, "done"), code.declare(n, "left"), code.declare(ZERO, "here")
    with code.nested() as test:
        more = code.compare("gt", left, ONE)
    with code.nested() as body:
        factor = _next_factor(code, left)
        code.assign(left, code.let("floordiv", DType.i64, left, factor, label="left", exact=True))
        there = code.sub(ONE, here)
        run(done, left, factor, here, there)
        code.assign(done, code.mul(done, factor))
        code.assign(here, there)
    code.emit(While(tuple(test), more, tuple(body)))
    return here


def _divides(code: Code, factor: Atom, n: Atom) -> Atom:
    return code.compare("eq", code.let("mod", DType.i64, n, factor, label="rest"), ZERO)


def _next_factor(code: Code, left: Atom) -> Atom:
    """One of those with code of their own, or the smallest prime from 7 on."""
    found = code.declare(ZERO, "factor")

    def first(factors: Sequence[int]) -> None:
        if not factors:
            code.assign(found, i64(7))
            with code.nested() as test:
                within = code.compare("le", code.mul(found, found), left)
                again = code.let("and", DType.bool, within, code.let("not", DType.bool, _divides(code, found, left)))
            with code.nested() as body:
                code.assign(found, code.add(found, i64(2)))
            code.emit(While(tuple(test), again, tuple(body)))
            beyond = code.compare("gt", code.mul(found, found), left)
            code.assign(found, code.let("select", DType.i64, beyond, left, found, label="factor"))
            return
        code.branch(
            _divides(code, i64(factors[0]), left),
            lambda: code.assign(found, i64(factors[0])),
            lambda: first(factors[1:]),
        )

    first(OWN)
    return found


def _one_pass(routines: dict[str, Program], dtype: DType) -> str:
    name = f"tp_fourier_pass_{dtype.value}"
    if name not in routines:
        n, done, left, factor = (Var(label, I64) for label in ("n", "done", "left", "factor"))
        source, roots, target = (
            parameter(label, dtype, n, label == "target") for label in ("source", "roots", "target")
        )
        code = Code()
        _Pass(code, (n, done, left), source, roots, target).by_factor(factor)
        routines[name] = routine(name, (n, done, left, factor, source, roots, target), code)
    return name


class _Pass:
    """The statements of a pass."""

    def __init__(self, code: Code, sizes: tuple[Atom, Atom, Atom], source: Loc, roots: Loc, target: Loc) -> None:
        self.code, self.dtype = code, source.dtype
        self.source, self.roots, self.target = source, roots, target
        self.row: list[Atom] = []  # of several, the one at hand
        self.n, self.done, self.left = sizes

    def by_factor(self, factor: Atom) -> None:
        code, kernels = self.code, {4: self.four, 2: self.two, 3: self.three, 5: self.five}

        def choose(factors: Sequence[int]) -> None:
            if not factors:
                self.by_sums(factor)
                return
            one = factors[0]
            code.branch(
                code.compare("eq", factor, i64(one)),
                lambda: self.by_kernel(one, kernels[one]),
                lambda: choose(factors[1:]),
            )

        choose(OWN)

    # -- arithmetic

    def op(self, name: str, *args: Atom) -> Atom:
        return self.code.let(name, self.dtype, *args)

    def add(self, *terms: Atom) -> Atom:
        total = terms[0]
        for term in terms[1:]:
            total = self.op("add", total, term)
        return total

    def sub(self, x: Atom, y: Atom) -> Atom:
        return self.op("sub", x, y)

    def scaled(self, x: Atom, factor: float) -> Atom:
        real = self.dtype.real
        parts = [
            self.code.let("mul", real, self.code.let(part, real, x), const(factor, real)) for part in ("real", "imag")
        ]
        return self.op("complex", *parts)

    def turned(self, x: Atom) -> Atom:
        """-i x"""
        code, real = self.code, self.dtype.real
        return self.op("complex", code.let("imag", real, x), code.let("neg", real, code.let("real", real, x)))

    def root(self, at: Atom) -> Atom:
        return self.code.load(self.roots, [at])

    def load(self, at: Atom) -> Atom:
        return self.code.load(self.source, [*self.row, at])

    def store(self, at: Atom, value: Atom) -> None:
        self.code.store(self.target, [*self.row, at], value)

    # -- loops

    def pairs(self, body: Callable[[Atom], Callable[[Atom], None]], vectorize: bool) -> None:
        """For each p what `body` gives does for each q; in a kernel, where there are kernels, and for each row."""
        code = self.code
        if code.launched is not None:

            def one(at: list[Atom]) -> None:
                *self.row, p, q = at
                body(p)(q)

            code.spread([*self.source.shape[:-1], self.left, self.done], one)
            return
        with code.loop(self.left, label="p") as p:
            run = body(p)
            with code.loop(self.done, label="q", vectorize=vectorize) as q:
                run(q)

    def by_kernel(self, factor: int, kernel: Callable[[list[Atom], list[Atom]], list[Atom]]) -> None:
        code = self.code

        def body(p: Atom) -> Callable[[Atom], None]:
            at = code.mul(p, self.done)
            roots = [self.root(code.mul(at, i64(j))) for j in range(1, factor)]
            first = code.mul(at, i64(factor))

            def run(q: Atom) -> None:
                before = [code.add(at, code.mul(code.mul(self.done, self.left), i64(k))) for k in range(factor)]
                made = kernel([self.load(code.add(q, place)) for place in before], roots)
                for j, value in enumerate(made):
                    self.store(code.add(q, code.add(first, code.mul(self.done, i64(j)))), value)

            return run

        self.pairs(body, vectorize=False)

    def two(self, x: list[Atom], w: list[Atom]) -> list[Atom]:
        return [self.add(*x), self.op("mul", self.sub(*x), w[0])]

    def three(self, x: list[Atom], w: list[Atom]) -> list[Atom]:
        a, b, c = x
        total, turn = self.add(b, c), self.turned(self.scaled(self.sub(b, c), math.sqrt(0.75)))
        middle = self.sub(a, self.scaled(total, 0.5))
        others = (self.add(middle, turn), self.sub(middle, turn))
        return [self.add(a, total), *(self.op("mul", y, r) for y, r in zip(others, w, strict=True))]

    def four(self, x: list[Atom], w: list[Atom]) -> list[Atom]:
        a, b, c, d = x
        e, f, g, h = self.add(a, c), self.sub(a, c), self.add(b, d), self.turned(self.sub(b, d))
        others = (self.add(f, h), self.sub(e, g), self.sub(f, h))
        return [self.add(e, g), *(self.op("mul", y, r) for y, r in zip(others, w, strict=True))]

    def five(self, x: list[Atom], w: list[Atom]) -> list[Atom]:
        a, b, c, d, e = x
        (c1, s1), (c2, s2) = ((math.cos(t), math.sin(t)) for t in (0.4 * math.pi, 0.8 * math.pi))
        p, q, u, v = self.add(b, e), self.add(c, d), self.sub(b, e), self.sub(c, d)
        near = self.add(a, self.scaled(p, c1), self.scaled(q, c2))
        far = self.add(a, self.scaled(p, c2), self.scaled(q, c1))
        first = self.turned(self.add(self.scaled(u, s1), self.scaled(v, s2)))
        second = self.turned(self.sub(self.scaled(u, s2), self.scaled(v, s1)))
        others = (self.add(near, first), self.add(far, second), self.sub(far, second), self.sub(near, first))
        return [self.add(a, p, q), *(self.op("mul", y, r) for y, r in zip(others, w, strict=True))]

    def by_sums(self, factor: Atom) -> None:
        """The numbers of a sum, and the roots that it takes, are at hand in short arrays: those of a thread in a kernel."""
        code = self.code
        near, turns = (
            Loc(Buffer(label, self.dtype, Space.stack, MOST), self.dtype, (factor,), (ONE,)) for label in "xw"
        )
        step = code.mul(self.done, self.left)

        def take_roots() -> None:
            with code.loop(factor, label="k", vectorize=False) as k:
                code.store(turns, [k], self.root(code.mul(k, step)))

        def body(p: Atom) -> Callable[[Atom], None]:
            def run(q: Atom) -> None:
                if code.launched is not None:
                    take_roots()
                with code.loop(factor, label="k", vectorize=False) as k:
                    at = code.add(q, code.mul(self.done, code.add(p, code.mul(self.left, k))))
                    code.store(near, [k], self.load(at))
                with code.loop(factor, label="j", vectorize=False) as j:
                    total, around = code.declare(code.load(near, [ZERO]), "sum"), code.declare(ZERO, "around")
                    with code.loop(factor, ONE, label="k", vectorize=False) as k:  # around is j k modulo the factor
                        further = code.add(around, j)
                        within = code.compare("lt", further, factor)
                        code.assign(around, code.let("select", DType.i64, within, further, code.sub(further, factor)))
                        term = self.op("mul", code.load(near, [k]), code.load(turns, [around]))
                        code.assign(total, self.op("add", total, term))
                    place = code.add(q, code.mul(self.done, code.add(code.mul(p, factor), j)))
                    turn = self.root(code.mul(code.mul(p, j), self.done))
                    self.store(place, self.op("mul", total, turn))

            return run

        if code.launched is None:
            take_roots()
        self.pairs(body, vectorize=True)
