"""The text of Core: what each construct looks like, unique names, constants, spans."""

import math
from textwrap import dedent

import pytest

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import Apply, At, Body, Function, Lambda, Range, Reduction, Stm, Sweep, While
from tapeless.ir.hints import Hints, How, Recovery
from tapeless.ir.printer import print_body, print_exp, print_function, print_stm
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.text import Names, const_text, read_const
from tapeless.ir.types import BOOL, F64, I64, Const, DType, Type, Var, const, i64

ZERO = const(0.0, DType.f64)


def vector(name: str, n: Var) -> Var:
    return Var(name, Type(DType.f64, (n,)))


def apply(b: Builder, op: str, *args, name="t"):
    return b.let(F64, Apply(op, args), name)


def text(code: str) -> str:
    return dedent(code).lstrip("\n")


def test_function_of_the_design():
    n = Var("n", I64)
    x, w = vector("x", n), Var("w", F64)
    b = Builder()

    def step(i, s):
        e = b.row(x, i, "e")
        return [apply(b, "add", s, apply(b, "mul", apply(b, "sin", e), w, name="u"), name="s1")]

    (r,) = b.for_(n, [ZERO], step, ["s"])
    assert print_function(Function("f", (n,), (x, w), b.body([r]))) == text(
        """
        def f(x: [n]f64, w: f64) -> f64
          s: f64 = loop (s_1: f64 = 0.0) for i < n do
            e: f64 = x[i]
            t: f64 = sin e
            u: f64 = mul t w
            s1: f64 = add s_1 u
            in s1
          in s
        """
    )


def test_sizes_are_shown_where_the_parameters_do_not_tell_them():
    n, m = Var("n", I64), Var("m", I64)
    x = vector("x", n)
    assert print_function(Function("f", (m, n), (x,), Body((), (m,)))) == "def f[m, n](x: [n]f64) -> i64\n  in m\n"
    assert print_function(Function("f", (), (n, x), Body((), ()))) == "def f(n: i64, x: [n]f64) -> ()\n  in ()\n"


def test_written_parameters_and_options():
    n = Var("n", I64)
    x, y = vector("x", n), vector("y", n)
    f = Function("<lambda>", (n,), (x, y), Body((), (y, x)), (1, 0), (("exact", True),))
    assert print_function(f).startswith(
        "def <lambda>(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) writes y, x {exact: true}"
    )


def test_sizes_that_a_statement_finds_out_may_stand_in_the_result_types():
    x, k = Var("x", F64), Var("k", I64)
    y = vector("y", k)
    b = Builder()
    b.bind([k], Apply("convert", (x,)))
    b.bind([y], Apply("whatever", (k,)))
    assert print_function(Function("f", (), (x,), b.body([y]))) == text(
        """
        def f(x: f64) -> [k]f64
          k: i64 = convert x
          y: [k]f64 = whatever k
          in y
        """
    )


def test_while_loops_and_hints():
    s, go, t = Var("s", F64), Var("go", BOOL), Var("t", F64)
    cond = Body((Stm((go,), Apply("lt", (s, ZERO)), NOWHERE),), (go,))
    step = Body((Stm((t,), Apply("sin", (s,)), NOWHERE),), (t,))
    assert print_exp(While((s,), (ZERO,), cond, step, Hints(chosen=(("s", Recovery(How.checkpoint, 4)),)))) == text(
        """
        loop (s: f64 = 0.0) while
          go: bool = lt s 0.0
          in go
        do {s: checkpoint:4}
          t: f64 = sin s
          in t"""
    )
    short = While((s,), (ZERO,), Body((), (go,)), Body((), (s,)), Hints(Recovery(How.store), alike=True))
    assert print_exp(short) == "loop (s: f64 = 0.0) while go do {store, alike}\n  in s"


def addition(neutral: Const = ZERO, commutative: bool = False) -> Reduction:
    a, b, t = (Var(name, neutral.type) for name in "abt")
    return Reduction(Lambda((a, b), Body((Stm((t,), Apply("add", (a, b)), NOWHERE),), (t,))), (neutral,), commutative)


def test_map_reduce_scan_and_sweep():
    n = Var("n", I64)
    x = vector("x", n)
    rows = Lambda((Var("i", I64), r := Var("x", F64)), Body((), (r,)))
    assert print_exp(Sweep(n, (x,), rows)) == r"map n (\i x -> x) x_1"
    assert print_exp(Sweep(n, (x,), rows, (addition(),))) == "reduce n add 0.0 x"
    assert print_exp(Sweep(3, (x,), rows, (), (addition(commutative=True),))) == "scan 3 comm add 0.0 x"
    both = Lambda(rows.params, Body((), (r, r, r)))
    sweep = Sweep(n, (x,), both, (addition(),), (addition(),))
    assert print_exp(sweep) == r"sweep n (\i x -> (x, x, x)) x_1 | reduce add 0.0 | scan add 0.0"


def test_an_operator_of_another_type_than_its_neutral_element_is_written_out():
    n = Var("n", I64)
    x = vector("x", n)
    rows = Lambda((Var("i", I64), r := Var("x", F64)), Body((), (r,)))
    op = Reduction(addition().op, (Const(0.0, DType.f32),))
    expected = r"reduce n (\(a: f64) (b: f64) -> t: f64 = add a b; in t) 0.0f32 x"
    assert print_exp(Sweep(n, (x,), rows, (op,))) == expected


def test_long_lambdas_are_indented():
    n = Var("n", I64)
    x = vector("x", n)
    b = Builder()

    def long(i, e):
        for _ in range(5):
            e = apply(b, "sin", e, name="wave")
        return [e]

    b.map(n, [x], long)
    assert print_body(b.body([])) == text(
        r"""
        m: [n]f64 = map n (\i x ->
          wave: f64 = sin x
          wave_1: f64 = sin wave
          wave_2: f64 = sin wave_1
          wave_3: f64 = sin wave_2
          wave_4: f64 = sin wave_3
          in wave_4) x_1
        in ()"""
    )


def test_a_long_row_of_results_has_a_line_of_its_own():
    names = [Var(f"a_result_of_the_loop_{k}", F64) for k in range(3)]
    b = Builder()
    b.for_(i64(3), [ZERO] * 3, lambda i, *p: p, [v.name for v in names])
    lines = print_stm(b.stms[0]).splitlines()
    assert lines[0].endswith("a_result_of_the_loop_2: f64 =")
    assert lines[1].startswith("  loop (a_result_of_the_loop_0_1: f64 = 0.0, ")
    assert lines[2].startswith("    in (")


def test_axes():
    n = Var("n", I64)
    a = Var("a", Type(DType.f64, (n, 4, 5)))
    i = Var("i", I64)
    b = Builder()
    full = full_axes([n, 4, 5])
    b.index(a, [At(i), *full[1:]])
    b.index(a, [At(i, True, True), At(i64(-1), True), At(i64(2), False, True)])
    b.update(a, [full[0], At(i), full[1]], ZERO)
    b.index(a, [Range(i, 3, i64(-2)), At(i), At(i)])
    assert print_body(b.body([])) == text(
        """
        e: [4][5]f64 = a[i, :, :]
        e_1: f64 = a[i?, -1~, 2!]
        a_1: [n][4][5]f64 = update a[:, i, 0:+4] = 0.0
        e_2: [3]f64 = a[i:+3:-2, i, i]
        in ()"""
    )


def test_names_are_unique_and_never_collide():
    names = Names()
    given = ["x", "x", "x_1", "x", "in", "", "p.mass", "a b", "x_1", "7", "π"]
    printed = [names(Var(name, F64)) for name in given]
    assert printed == ["x", "x_1", "x_1_1", "x_2", "in_1", "t", "p.mass", "a_b", "x_1_2", "t7", "π"]


@pytest.mark.parametrize(
    "value, dtype, printed",
    [
        (1.0, DType.f64, "1.0"),
        (-0.0, DType.f64, "-0.0"),
        (1e300, DType.f64, "1e+300"),
        (0.1, DType.f32, "0.1f32"),
        (math.inf, DType.f64, "inf"),
        (-math.inf, DType.f32, "-inff32"),
        (math.nan, DType.f64, "nan"),
        (math.nan, DType.f32, "nanf32"),
        (3, DType.i64, "3"),
        (-3, DType.i32, "-3i32"),
        (-(2**63), DType.i64, str(-(2**63))),
        (True, DType.bool, "true"),
        (1 + 2j, DType.c64, "(1+2j)c64"),
        (complex(-0.0, -0.5), DType.c128, "(-0-0.5j)"),
        (complex(math.inf, math.nan), DType.c128, "(inf+nanj)"),
    ],
)
def test_constants_and_back(value, dtype, printed):
    c = const(value, dtype)
    assert const_text(c) == printed
    assert read_const(printed) == c


def test_a_constant_prints_by_its_element_type_whatever_it_holds():
    assert const_text(Const(3, DType.f64)) == "3.0"
    assert const_text(Const(2.0, DType.i64)) == "2"
    assert const_text(Const(1, DType.bool)) == "true"


def test_spans():
    b = Builder(Span("model.py", 7, 0, 7, 3))
    x = Var("x", F64)
    apply(b, "sin", x)
    (y,) = b.for_(i64(2), [x], lambda i, s: [apply(b, "cos", s)])
    b.span = NOWHERE
    apply(b, "tan", y)
    assert print_function(Function("f", (), (x,), b.body([y])), spans=True) == text(
        """
        def f(x: f64) -> f64
          t: f64 = sin x  -- model.py:7
          x_1: f64 = loop (x_2: f64 = x) for i < 2 do  -- model.py:7
            t_1: f64 = cos x_2  -- model.py:7
            in t_1
          t_2: f64 = tan x_1
          in x_1
        """
    )
