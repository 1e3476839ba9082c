"""The parser: round trips of every node, text written by hand, errors with their lines, generated programs."""

import random
from dataclasses import fields, is_dataclass
from textwrap import dedent
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.ir.core import (  # isort: skip
    Apply, ArrayLit, At, Body, Broadcast, Check, Concat, Copy, Exp, For, Full, Function, Hist, If, Index, Iota, Lambda,
    Library, Print, Range, Reduction, Reshape, Scatter, Shown, Stm, Sweep, Transpose, Update, UpdateAcc, While, WithAcc,
)  # fmt: skip
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.parser import CoreSyntaxError, parse_function
from tapeless.ir.printer import print_function
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import BOOL, F64, I64, DType, Type, Var, const, i64
from tapeless.ir.walk import all_stms

EVERY_NODE = r"""
def g.jvp(p: [n]f64, q: f64) -> [n]f64 rule {arguments: 2, forward: "g.forward"}
  check true ValueError "so"
  in p

def every.<locals>.f(x: [n]f64, a: [n][3]f64, k: i64, c: bool, w: f64) -> (f64, [m]i64, [n]f64) writes x {exact: true}
  u: f64 = add w 1.0
  v: f32 = convert u
  h: f32 = mul v 0.1f32
  e: f64 = x[k?]
  row: [3]f64 = a[k!, :]
  part: [n]f64 = x[0:+n:-1]
  x_1: [n]f64 = update x[k~] = e
  b: [n][3]f64 = update a[:, 0:+2] = 0.0
  m: i64, keys: [m]i64 = if c then
    m_1: i64 = min n 7
    keys_1: [m_1]i64 = iota m_1
    in (m_1, keys_1)
  else
    keys_2: [3]i64 = [1, k, 2]
    in (3, keys_2)
  choice: f64 = if c then u else 0.0
  r: f64, q: [n]f64 = loop (s: f64 = 0.0, p: [n]f64 = x_1) for i < n do {s: none}
    q_1: [n]f64 = update p[i] = s
    s_1: f64 = add s w
    in (s_1, q_1)
  z: f64 = loop (y: f64 = 1.0) while
    go: bool = lt y 100.0
    in go
  do
    y_1: f64 = mul y 2.0
    in y_1
  buffer: [n][3]f64 = full [n, 3] _
  zeros: [3]c64 = full [3] (0+0j)c64
  flat: [k]f64 = reshape a [k]
  turned: [3][n]f64 = transpose a [1, 0]
  wide: [5][n]f64 = broadcast x_1 [5, n] axes [1]
  two: [k]f64 = concat [x_1, q] axis 0
  own: [n]f64 = copy q
  map_: [n]f64 = map n (\i_1 e_1 -> t: f64 = sin e_1; in t) x_1
  sum: f64 = reduce n comm add 0.0 x_1
  prods: [n]f64 = scan n mul 1.0 x_1
  best: f64, at: i64 = reduce n (\v1 i1 v2 i2 ->
    less: bool = lt v2 v1
    v3: f64 = select less v2 v1
    i3: i64 = select less i2 i1
    in (v3, i3)) (inf, -1) x_1 keys
  dot: f64, run: [n]f64, out: [n]f64 = sweep n (\i_2 e_2 f ->
    g: f64 = mul e_2 f
    in (g, g, e_2)) x_1 q | reduce add 0.0 | scan max -inf
  counts: [m]i64 = hist comm add 0 keys m (\i_3 key -> (key, 1)) keys
  q_2: [n]f64, own_1: [n]f64 = scatter (q, own) m (\i_4 key_1 -> (key_1, 1.0, w)) keys
  x_2: [n]f64, total: f64 = with_acc x_1 (\(x_acc: acc<add, [n]f64>) ->
    map n (\i_5 -> update_acc x_acc[i_5] = w; in ())
    in w)
  prod: [n][n]f64 = @matmul a turned
  low: [n][n]f64 = @cholesky prod {lower: true, tries: 3, how: "a, \"b\": {c}"}
  check c IndexError "index {0} is outside of {1}" k n
  print ("k = ", 0, "\n") k
  progress k n
  progress 3 n {backward: true}
  more: [n]f64 = call g.jvp n x_2 w {effects: true}
  none: [n]f64 = call g.jvp n more w
  in (z, counts, x_2)
"""


def parse(code: str) -> Function:
    return parse_function(dedent(code))


def body_of(code: str, params: str = "x: [n]f64, k: i64") -> Body:
    return parse(f"def f({params}) -> ()\n{code}\n  in ()").body


# -- round trips


def alike(f: object, g: object, seen: dict[Var, Var]) -> bool:
    """Equal but for names and spans; `seen` pairs the variables."""
    if isinstance(f, Var) and isinstance(g, Var):
        if f in seen:
            return seen[f] is g
        seen[f] = g
        return alike(f.type, g.type, seen)
    if type(f) is not type(g):
        return False
    if isinstance(f, tuple):
        return len(f) == len(g) and all(alike(a, b, seen) for a, b in zip(f, g))
    if is_dataclass(f) and not isinstance(f, Span) and fields(f)[0].name != "value":
        return all(alike(getattr(f, x.name), getattr(g, x.name), seen) for x in fields(f))
    return isinstance(f, Span) or f == g


def assert_round_trip(f: Function) -> None:
    text = print_function(f)
    again = parse_function(text)
    assert print_function(again) == text
    assert alike(f, again, {}), text


def test_every_node_is_read_and_printed_alike():
    text = EVERY_NODE.lstrip("\n")
    f = parse_function(text)
    assert print_function(f) == text
    assert_round_trip(f)
    assert {type(s.exp) for s in all_stms(f.body)} == set(get_args(Exp))


def test_variables_with_the_names_of_expressions():
    assert_round_trip(
        parse(
            """
            def print(full: [n]f64, add: [n]f64, check: f64, reduce: [n]f64, map: f64, axis: [n]f64) -> f64
              update: f64 = full[0]
              iota: [n]f64 = full [n] map
              loop_1: f64 = add[1]
              if_1: f64 = add loop_1 map
              concat: [n]f64 = concat [axis, axis] axis 0
              in check
            """
        )
    )


def test_spans_are_comments():
    f = parse("def f(x: f64) -> f64  -- a comment\n  y: f64 = sin x  -- model.py:3\n  in y")
    assert f.body.stms[0].span == NOWHERE


# -- what the text means


def test_indices_and_ranges():
    (stm,) = body_of(
        "  e: [2]f64 = a[k?, 1!, -1~, 0, k:+2, ]".replace(", ]", "]"), "a: [2][2][2][2][9]f64, k: i64"
    ).stms
    _, k = parse("def f(a: f64, k: i64) -> ()\n in ()").params
    assert [(a.wrap, a.check) for a in stm.exp.axes[:4]] == [(True, True), (False, True), (True, False), (False, False)]
    last = stm.exp.axes[4]
    assert isinstance(last, Range) and (last.length, last.step) == (2, i64(1))


def test_a_colon_is_the_whole_axis():
    f = parse("def f(x: [n]f64) -> [n]f64\n  y: [n]f64 = x[:]\n  in y")
    assert f.body.stms[0].exp.axes == (Range(i64(0), f.sizes[0], i64(1)),)


def test_reduce_hands_its_rows_on():
    (stm,) = body_of("  s: f64 = reduce n add 0.0 x").stms
    sweep = stm.exp
    assert [p.type for p in sweep.lam.params] == [I64, F64]
    assert sweep.lam.body.results == sweep.lam.params[1:]
    (operator,) = sweep.reduces
    a, b = operator.op.params
    assert operator.op.body.stms[0].exp == Apply("add", (a, b)) and not operator.commutative


def test_sizes_come_from_the_parameters_or_stand_in_brackets():
    f = parse("def f(x: [n][m]f64, m: i64, y: [m]f64) -> ()\n  in ()")
    assert [s.name for s in f.sizes] == ["n"]
    assert f.params[0].type.shape[1] is f.params[1]
    assert [s.name for s in parse("def f[k, n](x: [n]f64) -> ()\n  in ()").sizes] == ["k", "n"]


def test_layout_is_free():
    f = parse(
        r"""

        def f(x: [n]f64,
              c: bool) -> (f64,
                           [n]f64)
          s: f64 =
              reduce n
              """.rstrip()
        + r"""(\a b ->

                  t: f64 = add a b; u: f64 = sin t
                  in u
              ) 0.0 x
          y: [n]f64 = map n (\i e -> if_: f64 = if c then e else (0.0); in if_) x
          in (s, y)
        """
    )
    assert print_function(f) == dedent(
        r"""
        def f(x: [n]f64, c: bool) -> (f64, [n]f64)
          s: f64 = reduce n (\a b -> t: f64 = add a b; u: f64 = sin t; in u) 0.0 x
          y: [n]f64 = map n (\i e -> if_: f64 = if c then e else 0.0; in if_) x
          in (s, y)
        """
    ).lstrip("\n")


def test_sibling_regions_may_use_a_name_again():
    f = parse(
        r"""
        def f(x: [n]f64) -> ([n]f64, [n]f64)
          y: [n]f64 = map n (\i e -> e) x
          z: [n]f64 = map n (\i e -> e) x
          in (y, z)
        """
    )
    assert r"map n (\i_1 e_1 -> e_1) x" in print_function(f)


# -- errors


@pytest.mark.parametrize(
    "code, message",
    [
        ("def f(x: f64) -> f64\n  in y", "line 2: y is not bound here"),
        ("def f(x: f64) -> f64\n  x: f64 = sin x\n  in x", "line 2: x is bound twice"),
        ("def f(x: f64) -> f64\n\n  y: f46 = sin x\n  in y", "line 3: expected a type, found f46"),
        ("def f(x: f64) -> f64\n  y: f64 = sin x", "line 2: expected the end of the statement, found the end"),
        ("def f(x: f64) -> f64\n  y: f64 = sin x )\n  in y", r"line 2: expected the end of the statement, found \)"),
        ("def f(x: f64) -> i64\n  in x", "line 1: the results of the body have other types"),
        ("def f(x: f64) -> f64\n  in x\n  y", "line 3: expected def, found y"),
        ("def f(x: f64) -> f64 writes z\n  in x", "line 1: z is not bound here"),
        ("def f(x: f64) -> f64\n  y: f64 = $\n  in x", r"line 2: cannot read '\$'"),
        ("def f(x: f64) -> f64\n  y: f64 = loop (s: f64 = x) do\n  in x", "line 2: expected while, found do"),
        ("def f(x: f64) -> f64\n  y: f64 = x[:]\n  in x", "line 2: the array has fewer axes"),
        ("def f(x: [n]f64) -> ()\n  y: f64 = map n (\\i e f -> e) x\n  in ()", r"line 2: f needs a type: \(f: type\)"),
        ("def f(x: [n]f64) -> ()\n  y: f64 = map n (\\i e -> e x\n  in ()", "line 2: this parenthesis is never closed"),
        ("def f(x: f64) -> ()\n  y: f64 = @sort x {a = 1}\n  in ()", "line 2: cannot read {a = 1} as attributes"),
        ("def f(x: [1.5]f64) -> ()\n  in ()", "line 1: expected an integer, found 1.5"),
        ("x: f64 = sin y", "line 1: expected def, found x"),
    ],
)
def test_errors_name_the_line(code, message):
    with pytest.raises(CoreSyntaxError, match=message):
        parse_function(code)


# -- generated programs: well scoped, not always well typed


class Generator:
    """Draws from `rng`; `scope` holds what may be used, in order."""

    NAMES = ("x", "x", "y", "t", "t_1", "in", "full", "", "a.b", "is it?")

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.scope: list[Var] = [Var("n", I64)]

    def type(self) -> Type:
        shape = [
            self.rng.choice([3, *(v for v in self.scope if v.type == I64)])
            for _ in range(self.rng.choice([0, 0, 1, 2]))
        ]
        return Type(self.rng.choice(list(DType)), tuple(shape))

    def var(self, type: Type | None = None) -> Var:
        return Var(self.rng.choice(self.NAMES), type or self.type())

    def const(self):
        dtype = self.rng.choice(list(DType))
        return const(self.rng.choice([0, 1, -2, 0.1, -0.0, 1e20, float("inf"), float("nan")]), dtype)

    def atom(self):
        return self.const() if self.rng.random() < 0.3 else self.rng.choice(self.scope)

    def atoms(self, least=0):
        return tuple(self.atom() for _ in range(self.rng.randint(least, least + 2)))

    def used(self):
        return self.rng.choice(self.scope)

    def uses(self, least=0):
        return tuple(self.used() for _ in range(self.rng.randint(least, 2)))

    def dim(self):
        return self.rng.choice([0, 4, *(v for v in self.scope if v.type == I64)])

    def dims(self):
        return tuple(self.dim() for _ in range(self.rng.randint(0, 3)))

    def axes(self):
        at = lambda: At(self.atom(), self.rng.random() < 0.5, self.rng.random() < 0.5)
        some = lambda: Range(self.rng.choice([i64(0), self.atom()]), self.dim(), self.rng.choice([i64(1), self.atom()]))
        return tuple(self.rng.choice([at, some])() for _ in range(self.rng.randint(0, 3)))

    def lam(self, params, depth) -> Lambda:
        return Lambda(tuple(params), self.body(depth - 1, params))

    def rows(self, arrays):
        return [self.var(I64), *(self.var(a.type.row()) for a in arrays)]

    def operator(self, depth) -> Reduction:
        neutral = self.atoms(1)
        params = [self.var(a.type) for a in neutral * 2]
        if self.rng.random() < 0.5:
            result = self.var(neutral[0].type)
            op = Lambda(tuple(params[:2]), Body((Stm((result,), Apply("add", tuple(params[:2])), NOWHERE),), (result,)))
        else:
            op = self.lam(params, depth)
        return Reduction(op, neutral, self.rng.random() < 0.5)

    def sweep(self, depth) -> Sweep:
        arrays, params = self.uses(), None
        operators = [tuple(self.operator(depth) for _ in range(self.rng.choice([0, 0, 1, 2]))) for _ in range(2)]
        params = self.rows(arrays)
        if self.rng.random() < 0.5:
            return Sweep(self.dim(), arrays, Lambda(tuple(params), Body((), tuple(params[1:]))), *operators)
        return Sweep(self.dim(), arrays, self.lam(params, depth), *operators)

    def exp(self, depth):
        small = [
            lambda: Apply(self.rng.choice(["add", "sin", "select"]), self.atoms(1)),
            lambda: Index(self.used(), self.axes()),
            lambda: Update(self.used(), self.axes(), self.atom()),
            lambda: UpdateAcc(self.used(), self.axes(), self.atom()),
            lambda: Iota(self.dim()),
            lambda: Full(self.dims(), self.rng.choice([None, self.atom()])),
            lambda: ArrayLit(self.atoms()),
            lambda: Reshape(self.used(), self.dims()),
            lambda: Transpose(self.used(), (1, 0)),
            lambda: Broadcast(self.used(), self.dims(), (0, 2)),
            lambda: Concat(self.uses(), 1),
            lambda: Copy(self.used()),
            lambda: Library(
                "sort", self.atoms(), self.rng.choice([(), (("axis", -1), ("kind", "{s}"), ("up", False))])
            ),
            lambda: Check(self.atom(), "ValueError", "a \n {0}", self.atoms()),
            lambda: Print(self.rng.choice([(), ("a", Shown(0), Shown(0, "{:.3f}"), '"')]), self.atoms()),
        ]
        if depth == 0:
            return self.rng.choice(small)()
        params = [self.var() for _ in range(self.rng.randint(0, 2))]
        inits = tuple(self.atom() for _ in params)
        index = self.var(I64)
        big = [
            lambda: If(self.atom(), self.body(depth - 1), self.body(depth - 1)),
            lambda: For(index, self.atom(), tuple(params), inits, self.body(depth - 1, [index, *params]), self.hints()),
            lambda: While(
                tuple(params), inits, self.body(depth - 1, params), self.body(depth - 1, params), self.hints()
            ),
            lambda: self.sweep(depth),
            lambda: Hist(
                self.operator(depth), self.uses(1), self.dim(), a := self.uses(), self.lam(self.rows(a), depth)
            ),
            lambda: Scatter(self.uses(1), self.dim(), a := self.uses(), self.lam(self.rows(a), depth)),
            lambda: WithAcc(a := self.uses(), self.lam([self.var(Type(DType.f64, (3,), "add")) for _ in a], depth)),
        ]
        return self.rng.choice(small + 2 * big)()

    def hints(self) -> Hints:
        wish = self.rng.choice([None, Recovery(), Recovery(How.checkpoint, 3)])
        chosen = self.rng.choice([(), (("x", Recovery(How.none)), ('a "{b}", c: d', Recovery(How.invert, 7)))])
        return Hints(wish, chosen, *(self.rng.random() < 0.3 for _ in range(2)))

    def body(self, depth, params=()) -> Body:
        outer = list(self.scope)
        self.scope += params
        stms = []
        for _ in range(self.rng.randint(0, 3)):
            exp = self.exp(depth)
            vars = tuple(self.var() for _ in range(self.rng.randint(0, 2)))
            self.scope += vars
            stms.append(Stm(vars, exp, NOWHERE))
        results = self.atoms()
        self.scope = outer
        return Body(tuple(stms), results)

    def function(self) -> Function:
        sizes = tuple(self.scope)
        params = (self.var(), self.var(), self.var(BOOL))
        body = self.body(2, params)
        return Function(
            "f", sizes, params, body, self.rng.choice([(), (1, 0)]), self.rng.choice([(), (("exact", False),)])
        )


@pytest.mark.thorough
@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_generated_functions_round_trip(rng):
    assert_round_trip(Generator(rng).function())
