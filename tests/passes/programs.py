"""Programs in Core for the tests of passes, random ones and tiny ones as text, and comparison of what they compute.

`random_function` gives functions of `x: [n]f64, w: [n][3]f64, k: i64, a: f64` with n >= 1 that are legal Core and stay
inside their arrays, sometimes only thanks to a branch, a check or a loop that makes no trip around an access.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Sequence
from textwrap import dedent, indent

import numpy as np

from tapeless.interp.evaluate import evaluate
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    Apply,
    At,
    Body,
    Check,
    Copy,
    For,
    Function,
    Hist,
    If,
    Index,
    Lambda,
    Range,
    Reduction,
    Scatter,
    Stm,
    Sweep,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.parser import parse_function
from tapeless.ir.printer import print_function
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import BOOL, F64, I64, Atom, Const, DType, Type, Var, i64
from tapeless.passes.check.verify import verify

FLOATS = [Const(v) for v in (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("nan"))]
INTS = [i64(v) for v in (0, 1, -1, 2, 3, 7)]
BOOLS = [Const(True, DType.bool), Const(False, DType.bool)]
BINARY_FLOAT = ["add", "sub", "mul", "div", "min", "maximum", "pow"]
UNARY_FLOAT = ["neg", "abs", "square", "sin", "exp", "floor", "identity"]
BINARY_INT = ["add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "min", "max"]
COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.b = Builder()
        self.n = Var("n", I64)
        self.scopes: list[list[Var]] = [[self.n]]
        self.accs: list[Var] = []
        self.vector, self.matrix = Type(DType.f64, (self.n,)), Type(DType.f64, (self.n, 3))
        self.types = [F64, F64, I64, BOOL, self.vector, self.matrix]

    def function(self, size: int) -> Function:
        params = (Var("x", self.vector), Var("w", self.matrix), Var("k", I64), Var("a", F64))
        self.scopes[0].extend(params)
        self.statements(size, 0)
        made = [v for v in self.scopes[0] if v.type in self.types]
        results = self.random.sample(made, min(len(made), size))
        return Function("f", (self.n,), params, self.b.body(results))

    # -- operands

    def pick(self, type: Type) -> Atom:
        found = [v for scope in self.scopes for v in scope if v.type == type]
        if type.is_scalar and (not found or self.random.random() < 0.2):
            return self.random.choice({F64: FLOATS, I64: INTS, BOOL: BOOLS}[type])
        if not found:
            return self.b.full(type.shape, self.pick(F64), DType.f64)
        return self.random.choice(found[-12:] if self.random.random() < 0.8 else found)

    def array(self, type: Type) -> Var:
        found = self.pick(type)
        assert isinstance(found, Var)
        return found

    def let(self, type: Type, op: str, *args: Atom) -> Var:
        return self.keep(self.b.let(type, Apply(op, args), op[0]))

    def keep(self, var: Var) -> Var:
        self.scopes[-1].append(var)
        return var

    def position(self, length: Atom) -> Atom:
        """An index that is inside, if the length is not 0."""
        return self.b.let(I64, Apply("mod", (self.pick(I64), length)), "p")

    def region(self, size: int, depth: int, types: Sequence[Type], params: Sequence[Var] = ()) -> Body:
        self.scopes.append(list(params))
        with self.b.region() as stms:
            self.statements(size, depth + 1)
            results = tuple(self.pick(t) for t in types)
        self.scopes.pop()
        return Body(tuple(stms), results)

    # -- statements

    def statements(self, size: int, depth: int) -> None:
        for _ in range(size):
            kinds: list[Callable[[int], None]] = [self.scalar] * 5 + [self.access, self.write, self.shape, self.view]
            if depth < 3:
                kinds += [
                    self.branch,
                    self.loop,
                    self.sweep,
                    self.guarded,
                    self.repeat,
                    self.accumulate,
                    self.scattered,
                ]
            self.random.choice(kinds)(depth)

    def scalar(self, depth: int) -> None:
        r = self.random
        match r.randrange(7):
            case 0 | 1:
                self.let(F64, r.choice(BINARY_FLOAT), self.pick(F64), self.pick(F64))
            case 2:
                self.let(F64, r.choice(UNARY_FLOAT), self.pick(F64))
            case 3:
                self.let(I64, r.choice(BINARY_INT), self.pick(I64), self.pick(I64))
            case 4:
                type = r.choice([F64, I64])
                self.let(BOOL, r.choice(COMPARE), self.pick(type), self.pick(type))
            case 5:
                type = r.choice([F64, I64, BOOL])
                self.let(type, "select", self.pick(BOOL), self.pick(type), self.pick(type))
            case 6:
                source, target = r.choice([(I64, F64), (BOOL, F64), (F64, BOOL), (BOOL, I64), (BOOL, BOOL)])
                self.let(target, "not" if source == target else "convert", self.pick(source))

    def access(self, depth: int) -> None:
        x, w = self.array(self.vector), self.array(self.matrix)
        match self.random.randrange(4):
            case 0:
                self.keep(self.b.index(x, [At(self.position(self.n))]))
            case 1:
                self.keep(self.b.index(w, [At(self.position(self.n)), At(i64(self.random.randrange(3)))]))
            case 2:
                self.keep(self.b.index(x, [At(self.pick(I64), self.random.random() < 0.5, True)]))
            case 3:
                row = self.b.row(w, self.position(self.n))
                self.keep(self.b.index(row, [At(self.position(i64(3)))]))

    def write(self, depth: int) -> None:
        p = self.position(self.n)
        if self.random.random() < 0.6:
            value = self.pick(F64) if self.random.random() < 0.8 else self.b.index(self.array(self.vector), [At(p)])
            self.keep(self.b.update(self.array(self.vector), [At(p)], value))
        else:
            row = self.b.row(self.array(self.matrix), self.position(self.n))
            self.keep(self.b.update(self.array(self.matrix), [At(p), *full_axes([3])], row))

    def shape(self, depth: int) -> None:
        b, n = self.b, self.n
        match self.random.randrange(6):
            case 0:
                self.keep(b.full((n,), self.pick(F64), DType.f64))
            case 1:
                self.keep(b.copy(self.array(self.random.choice([self.vector, self.matrix]))))
            case 2:
                self.keep(b.index(b.iota(n), [At(self.position(n))]))
            case 3:
                items = b.array([self.pick(F64), self.pick(F64), self.pick(F64)])
                self.keep(b.broadcast(items, (n, 3), (1,)))
                self.keep(b.index(items, [At(i64(self.random.choice([-1, 0, 2])), True, True)]))
            case 4:
                self.keep(b.broadcast(self.array(self.vector), (n, 3), (0,)))
            case 5:
                fresh = b.full((n,), self.pick(F64), DType.f64)
                self.keep(b.bind([Var("c", self.vector)], Copy(fresh))[0])

    def view(self, depth: int) -> None:
        b, n = self.b, self.n
        match self.random.randrange(4):
            case 0:
                turned = b.transpose(self.array(self.matrix), (1, 0))
                self.keep(b.index(turned, [At(self.position(i64(3))), At(self.position(n))]))
                self.keep(b.transpose(turned, (1, 0)))
            case 1:
                flat = b.reshape(self.array(self.matrix), (self.let(I64, "mul", n, i64(3)),))
                self.keep(b.reshape(flat, (n, 3)))
            case 2:
                backwards = Range(self.let(I64, "sub", n, i64(1)), n, i64(-1))
                view = self.keep(b.index(self.array(self.vector), [backwards]))
                self.keep(b.index(view, [At(self.position(n))]))
            case 3:
                part = b.index(self.array(self.matrix), [Range(i64(0), n, i64(1)), Range(i64(1), 2, i64(1))])
                self.keep(b.index(part, [*full_axes([n]), At(self.position(i64(2)))]))

    # -- regions

    def results(self) -> list[Type]:
        return self.random.choices(self.types, k=self.random.randrange(1, 4))

    def bind(self, types: Sequence[Type], exp: object) -> None:
        vars = [Var("r", t) for t in types]
        self.b.bind(vars, exp)  # type: ignore[arg-type]
        self.scopes[-1].extend(vars)

    def branch(self, depth: int) -> None:
        types, size = self.results(), self.random.randrange(4)
        cond = self.pick(BOOL)
        self.bind(types, If(cond, self.region(size, depth, types), self.region(size, depth, types)))

    def guarded(self, depth: int) -> None:
        """An access that is inside only because a branch says so; sometimes a check beside it."""
        p = self.pick(I64)
        low, high = self.let(BOOL, "le", i64(0), p), self.let(BOOL, "lt", p, self.n)
        both = self.let(BOOL, "and", low, high)
        x = self.array(self.vector)
        element = Var("e", F64)
        access = Stm((element,), Index(x, (At(p),)), NOWHERE)
        if self.random.random() < 0.15:
            self.b.effect(Check(both, "ValueError", "not inside: {0}", (p,)))
            self.b.add(access)
            self.keep(element)
        else:
            self.bind([F64], If(both, Body((access,), (element,)), Body((), (self.pick(F64),))))

    def loop(self, depth: int) -> None:
        types = self.results()
        inits = [self.pick(t) for t in types]
        bound = self.random.choice([self.n, i64(0), i64(1), i64(2), i64(3), self.position(i64(3))])
        params, index = tuple(Var("q", t) for t in types), Var("i", I64)
        body = self.region(self.random.randrange(5), depth, types, [index, *params])
        self.bind(types, For(index, bound, params, tuple(inits), self.carry(body, params)))

    def carry(self, body: Body, params: Sequence[Var]) -> Body:
        """Some values are carried on as they are."""
        results = [p if self.random.random() < 0.25 else r for p, r in zip(params, body.results)]
        return Body(body.stms, tuple(results))

    def repeat(self, depth: int) -> None:
        """A `while` that counts down."""
        types = [I64, *self.results()]
        inits = [i64(self.random.randrange(3)), *(self.pick(t) for t in types[1:])]
        params = tuple(Var("q", t) for t in types)
        self.scopes.append(list(params))
        with self.b.region() as test:
            go_on = self.b.let(BOOL, Apply("gt", (params[0], i64(0))))
        self.scopes.pop()
        body = self.region(self.random.randrange(4), depth, types, params)
        less = Var("less", I64)
        count = Stm((less,), Apply("sub", (params[0], i64(1))), NOWHERE)
        body = Body((*body.stms, count), (less, *self.carry(body, params).results[1:]))
        self.bind(types, While(params, tuple(inits), Body(tuple(test), (go_on,)), body))

    def sweep(self, depth: int) -> None:
        r, b, n = self.random, self.b, self.n
        arrays = [self.array(r.choice([self.vector, self.matrix])) for _ in range(r.randrange(3))]
        if r.random() < 0.3:
            arrays += [b.full((n,), self.pick(F64), DType.f64), b.iota(n)]
        params = [Var("i", I64), *(Var("row", a.type.row()) for a in arrays)]
        operators = r.randrange(3)
        body = self.region(r.randrange(5), depth, [F64] * (operators + 2), params)
        made = [self.sum() for _ in range(operators)]
        split = r.randrange(operators + 1)
        types = [F64] * split + [self.vector] * (operators - split + 2)
        lam = Lambda(tuple(params), body)
        self.bind(types, Sweep(n, tuple(arrays), lam, tuple(made[:split]), tuple(made[split:])))

    def sum(self) -> Reduction:
        x, y, total = Var("x", F64), Var("y", F64), Var("t", F64)
        op = self.random.choice(["add", "maximum"])
        return Reduction(Lambda((x, y), Body((Stm((total,), Apply(op, (x, y)), NOWHERE),), (total,))), (Const(0.0),))

    def accumulate(self, depth: int) -> None:
        accs = [Var("acc", Type(DType.f64, (self.n,), "add")) for _ in range(self.random.randrange(1, 3))]
        arrays = tuple(self.array(self.vector) for _ in accs)
        self.accs += accs
        self.scopes.append([])
        with self.b.region() as stms:
            self.statements(self.random.randrange(3), depth + 1)
            if self.random.random() < 0.7:
                index = Var("i", I64)
                self.scopes.append([index])
                with self.b.region() as inner:
                    self.b.effect(UpdateAcc(accs[0], (At(self.position(self.n)),), self.pick(F64)))
                self.scopes.pop()
                lam = Lambda((index,), Body(tuple(inner), ()))
                self.b.effect(Sweep(self.n, (), lam))
            results = (self.pick(F64),)
        self.scopes.pop()
        del self.accs[-len(accs) :]
        exp = WithAcc(arrays, Lambda(tuple(accs), Body(tuple(stms), results)))
        self.bind([self.vector] * len(accs) + [F64], exp)

    def scattered(self, depth: int) -> None:
        index = Var("i", I64)
        body = self.region(self.random.randrange(3), depth, [I64, F64], [index])
        lam, dests = Lambda((index,), body), (self.array(self.vector),)
        exp = Hist(self.sum(), dests, 3, (), lam) if self.random.random() < 0.5 else Scatter(dests, 1, (), lam)
        self.bind([self.vector], exp)


def random_function(seed: int, size: int = 12) -> Function:
    return Generator(seed).function(size)


def random_arguments(seed: int) -> list[object]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    special = np.array([0.0, -0.0, 1.0, np.inf, np.nan])
    x = np.where(rng.random(n) < 0.3, rng.choice(special, n), rng.normal(size=n))
    return [x, rng.normal(size=(n, 3)), np.int64(rng.integers(-3, 5)), np.float64(rng.normal())]


# -- what programs compute


def outcome(f: Function, args: Sequence[object]) -> tuple[str, tuple[object, ...]]:
    """The results, or what was raised."""
    try:
        return "", evaluate(f, args)
    except (IndexError, ValueError) as error:
        return f"{type(error).__name__}: {error}", ()


def assert_same(f: Function, g: Function, args: Sequence[object]) -> None:
    """Bit for bit, but for NaN, which is one value."""
    (error, before), (new_error, after) = outcome(f, args), outcome(g, args)
    assert error == new_error
    assert len(before) == len(after)
    for a, b in zip(before, after):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))


# -- tiny programs as text

PARAMS = "x: [n]f64, y: [n]f64, w: [n][3]f64, d: [4]f64, k: i64, j: i64, a: f64, b: f64, c: bool, s: f32, z: c128"


def program(code: str, results: str) -> Function:
    """A function of PARAMS that gives these variables."""
    types = {"n": "i64", **dict(re.findall(r"(\w+): ((?:\[\w+\])*\w+)", f"{PARAMS}\n{code}"))}
    given = ", ".join(types[name] for name in re.findall(r"\w+", results))
    f = parse_function(f"def f({PARAMS}) -> ({given})\n{indent(dedent(code), '  ')}\n  in {results}")
    verify(f)
    return f


def arguments(seed: int) -> list[object]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    special = np.array([0.0, -0.0, 1.0, np.inf, np.nan])
    x = np.where(rng.random(n) < 0.3, rng.choice(special, n), rng.normal(size=n))
    integers = [np.int64(v) for v in rng.integers(0, 3, 2)]
    scalars = [np.float64(rng.choice(special)), np.float64(rng.normal()), np.bool_(seed % 2)]
    arrays = [x, rng.normal(size=n), rng.normal(size=(n, 3)), rng.normal(size=4)]
    return [*arrays, *integers, *scalars, np.float32(rng.normal()), np.complex128(rng.normal(), rng.normal())]


def after(run: Callable[[Function], Function], code: str, results: str) -> str:
    """The body that the pass makes, one space between any two words; it is legal and computes the same."""
    f = program(code, results)
    g = run(f)
    verify(g)
    for seed in range(6):
        assert_same(f, g, arguments(seed))
    return words(print_function(g).split("\n", 1)[1])


def words(text: str) -> str:
    return re.sub(r"[\s;]+", " ", text).strip()


def calls_of(run: Callable[[], object]) -> int:
    """How many calls of Python functions it takes: its work, on any machine, however busy."""
    count = 0

    def hook(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(hook)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count
