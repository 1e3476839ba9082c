"""The verifier: legal programs pass, and each rule is broken once."""

from dataclasses import replace
from textwrap import dedent, indent

import pytest

from tapeless.ir.core import Apply, At, Body, Function, Index, Print, Shown, Stm, Update
from tapeless.ir.parser import parse_function
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import F32, F64, I64, DType, Type, Var, const, i64
from tapeless.passes.check.verify import InvalidCore, verify

PARAMS = "x: [n]f64, y: [n]f64, a: [2][3]f64, k: i64, j: i32, c: bool, w: f64, z: c128"


def program(code: str) -> Function:
    return parse_function(f"def f({PARAMS}) -> ()\n{indent(dedent(code), '  ')}\n  in ()")


LEGAL = {
    "scalars": """
        t: f64 = add w 1.0
        b: bool = lt t w
        s: f64 = select b t w
        i: i64 = convert s
        r: f64 = abs z
        p: c128 = complex t w
    """,
    "places": """
        e: f64 = x[k?]
        row: [3]f64 = a[1, :]
        x_1: [n]f64 = update x[k] = e
        a_1: [2][3]f64 = update a[0, :] = row
        a_2: [2][3]f64 = update a_1[:, 0] = 1.0
        part: [k]f64 = x_1[0:+k:-1]
    """,
    "arrangements": """
        i: [k]i64 = iota k
        full: [n][2]f64 = full [n, 2] w
        raw: [3]c64 = full [3] _
        lit: [2][n]f64 = [x, y]
        flat: [6]f64 = reshape a [6]
        turned: [3][2]f64 = transpose a [1, 0]
        wide: [2][5][3]f64 = broadcast a [2, 5, 3] axes [0, 2]
        scalar: [n]f64 = broadcast w [n] axes []
        rows: [4][3]f64 = concat [a, a] axis 0
        more: [k]f64 = concat [x, y] axis 0
        own: [n]f64 = copy x
    """,
    "branches, with a size that comes out of them": """
        m: i64, v: [m]f64 = if c then
          u: [3]f64 = a[0, :]
          in (3, u)
        else (n, x)
        r: f64 = reduce m add 0.0 v
    """,
    "loops": """
        s: f64, v: [n]f64 = loop (s_1: f64 = 0.0, p: [n]f64 = x) for i < n do
          s_2: f64 = add s_1 w
          q: [n]f64 = update p[i] = s_2
          in (s_2, q)
        t: f64 = loop (t_1: f64 = 1.0) while
          go: bool = lt t_1 9.0
          in go
        do
          t_2: f64 = mul t_1 2.0
          in t_2
    """,
    "sweeps": r"""
        m: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) x
        s: f64 = reduce n add 0.0 x
        p: [n]f64 = scan n mul 1.0 x
        best: f64, at: i64 = sweep n (\i e -> (e, i)) x | reduce (\v1 i1 v2 i2 -> (v1, i1)) (inf, -1)
        r: f64, q: [n]f64, o: [n]f64 = sweep n (\i e f -> (e, f, f)) x y | reduce add 0.0 | scan add 0.0
        rows: [3]f64 = reduce 2 (\u v ->
          t: [3]f64 = map 3 (\i e g -> o_1: f64 = add e g; in o_1) u v
          in t) zero a
    """.replace("rows:", "zero: [3]f64 = full [3] 0.0\n        rows:"),
    "histograms, scatters, accumulators": r"""
        h: [n]f64 = hist add 0.0 x n (\i e -> (i, e)) y
        v: [n]f64, u: [n]f64 = scatter (x, y) 4 (\i -> (i, w, 1.0))
        x_1: [n]f64, t: f64 = with_acc x (\(acc: acc<add, [n]f64>) ->
          map n (\i e -> update_acc acc[i] = e; in ()) y
          in w)
    """,
    "library operations and effects": """
        t: [3][2]f64 = transpose a [1, 0]
        m: [2][2]f64 = @matmul a t
        s: f64, l: f64 = @slogdet m
        check c IndexError "index {0} of {1}" k n
        check c ShapeError "different lengths"
        print ("k = ", 0) k
    """,
}  # fmt: skip


@pytest.mark.parametrize("code", LEGAL.values(), ids=LEGAL)
def test_legal(code):
    verify(program(code))


ILLEGAL = [
    # operations on scalars
    ("t: f64 = magic w", "no operation magic"),
    ("t: f64 = add w", "add takes 2 operands, not 1"),
    ("t: f64 = add w k", "add takes operands of one type, not f64, i64"),
    ("t: bool = add c c", "add does not take bool, bool"),
    ("t: [n]f64 = add x y", "add takes scalars"),
    ("t: f32 = add w w", "t is f32, not f64"),
    ("t: f64 = lt w w", "t is f64, not bool"),
    ("t: f64 = abs k", "t is f64, not i64"),
    ("t: f64 = select w w w", "select takes bool and two of one type"),
    ("t: f64 = select c w k", "select takes bool and two of one type"),
    ("t: [n]f64 = convert w", r"t is \[n\]f64, not f64"),
    ("t: f64, u: f64 = sin w", "binds 2 variables to 1 results"),
    # places
    ("e: f64 = a[0]", r"has 2 axes, not 1"),
    ("e: f64 = x[w]", "a position is f64, not i64"),
    ("e: f64 = x[j]", "a position is i32, not i64"),
    ("e: f64 = x[0:+3]", r"e is f64, not \[3\]f64"),
    ("e: [2]f64 = x[0:+3]", r"e is \[2\]f64, not \[3\]f64"),
    ("e: f64 = w[]", "is not an array"),
    ("e: [w]f64 = x[0:+w]", "no dimension of the range"),
    ("x_1: [n]f64 = update x[0] = k", "the value is i64, the cells are f64"),
    ("a_1: [2][3]f64 = update a[0, :] = a", r"the value is \[2\]\[3\]f64, the cells are \[3\]f64"),
    ("x_1: f64 = update x[0] = w", r"x_1 is f64, not \[n\]f64"),
    # arrangements
    ("i: [n]i32 = iota n", "i is"),
    ("v: [3]f64 = full [4] w", r"v is \[3\]f64, not \[4\]f64"),
    ("v: f64 = full [] w", "full makes arrays only"),
    ("v: [2][n]f64 = full [2] x", "full takes a scalar"),
    ("v: [2]f64 = [w, k]", "an item is i64, not f64"),
    ("v: [0]f64 = []", "no items"),
    ("v: [5]f64 = reshape a [5]", "6 elements become 5"),
    ("v: [2][3]f64 = transpose a [0, 0]", "does not order the axes"),
    ("v: [2][3]f64 = transpose a [1, 0]", r"v is \[2\]\[3\]f64, not \[3\]\[2\]f64"),
    ("v: [2][4]f64 = broadcast a [2, 4] axes [0, 1]", "the operand is"),
    ("v: [2][3]f64 = broadcast a [2, 3] axes [0]", "do not place"),
    ("v: [5][3]f64 = concat [a, a] axis 0", r"v is \[5\]\[3\]f64, not \[4\]\[3\]f64"),
    ("v: [5][3]f64 = concat [a, x] axis 0", "the operand, but for the axis"),
    ("v: [4][3]f64 = concat [a, a] axis 2", "no axis 2"),
    ("v: [n]f64 = concat [] axis 0", "concat of nothing"),
    ("v: f64 = copy w", "is not an array"),
    # control
    ("r: f64 = if w then w else w", "the condition is f64, not bool"),
    ("r: f64 = if c then w else k", "result of else number 0 is i64, not f64"),
    ("r: f64 = if c then (w, w) else w", "1 times a result of then expected, 2 found"),
    ("r: [2][3]f64 = if c then a else x", "result of else number 0 is"),
    ("r: f64 = loop (s: f64 = w) for i < w do\n  in s", "the bound is f64, not i64"),
    ("r: f64 = loop (s: f64 = w) for i: i32 < k do\n  in s", "the index is i32, not i64"),
    ("r: f64 = loop (s: f64 = k) for i < n do\n  in s", "start value number 0 is i64, not f64"),
    ("r: f64 = loop (s: f64 = w) for i < n do\n  in i", "result of the body number 0 is i64, not f64"),
    ("r: f64 = loop (s: f64 = w) for i < n do\n  in (s, s)", "1 times a result of the body expected, 2 found"),
    ("r: i64 = loop (s: f64 = w) for i < n do\n  in s", "r is i64, not f64"),
    ("r: f64 = loop (s: f64 = w) while s do\n  in s", "result of the test number 0 is f64, not bool"),
    ("r: f64 = loop (s: f64 = w) while c do\n  in k", "result of the body number 0"),
    # sweeps
    (r"m: [n]f64 = map n (\i (e: i64) -> w) x", "parameter of the lambda number 1 is i64, not f64"),
    (r"m: [n]f64 = map n (\(i: i32) e -> w) x", "parameter of the lambda number 0 is i32, not i64"),
    (r"m: [n]f64 = map n (\i -> w) x", "2 times a parameter of the lambda expected, 1 found"),
    (r"m: [n]f64 = map w (\i -> w)", "no dimension of the width"),
    (r"m: [3]f64 = map 3 (\i r -> w) a", "is not 3 long"),
    (r"m: f64 = map n (\i e -> e) x", r"m is f64, not \[n\]f64"),
    (r"m: f64 = map n (\i e -> e) w", "is not an array"),
    (r"s: f64 = sweep n (\i e -> ()) x | reduce add 0.0", "gives 0 results, 1 needed"),
    (r"s: f64 = sweep n (\i e -> i) x | reduce add 0.0", "operand of the operators number 0 is i64, not f64"),
    (r"s: f64 = reduce n (\p -> p) 0.0 x", "2 times a parameter of the operator expected, 1 found"),
    (r"s: f64 = reduce n (\p q -> (p, q)) 0.0 x", "1 times a result of the operator expected, 2 found"),
    (r"s: f64 = reduce n (\p q -> 1) 0.0 x", "result of the operator number 0 is i64, not f64"),
    (r"s: f64 = reduce n (\ -> ()) () x", "needs a neutral element"),
    ("s: f64 = scan n add 0.0 x", r"s is f64, not \[n\]f64"),
    # histograms, scatters, accumulators
    (r"h: [n]f64 = hist add 0.0 x n (\i e -> (e, e)) y", "result of the lambda number 0 is f64, not i64"),
    (r"h: [n]f64 = hist add 0 x n (\i e -> (i, e)) y", "operand of the operator number 0 is i64, not f64"),
    (r"h: [n]f64 = hist add 0.0 x n (\i e -> i) y", "2 times a result of the lambda expected, 1 found"),
    (r"h: f64 = hist add 0.0 w n (\i e -> (i, e)) y", "the destination .* is not an array"),
    (r"v: [n]f64 = scatter x n (\i e -> (i, i)) y", "result of the lambda number 1 is i64, not f64"),
    (r"v: [2][3]f64, u: [9]f64 = scatter (a, b) n (\i -> (i, w, w))", "differ in length"),
    (r"x_1: [n]f64 = with_acc x (\(p: [n]f64) -> ())", "nothing is no operator of an accumulator"),
    (r"x_1: [n]f64 = with_acc x (\(p: acc<sin, [n]f64>) -> ())", "sin is no operator of an accumulator"),
    (r"x_1: [n]f64 = with_acc x (\(p: acc<add, [n]f32>) -> ())", "parameter of the lambda number 0"),
    (r"x_1: [n]f64 = with_acc x (\ -> ())", "0 accumulators of 1 arrays"),
    (r"x_1: [n]f64 = with_acc x (\(p: acc<add, [n]f64>) -> e: f64 = p[0]; in ())", "cannot be read"),
    (r"x_1: [n]f64, q: f64 = with_acc x (\(p: acc<add, [n]f64>) -> p)", "cannot be a result"),
    (r"x_1: [n]f64 = with_acc x (\(p: acc<add, [n]f64>) -> update_acc p[0] = k; in ())", "the value is i64"),
    ("update_acc x[0] = w", "is no accumulator"),
    # library operations and effects
    ("m: [n]f64 = @magic x", "no library operation magic"),
    ("m: [n]f64 = @sort x y", "sort takes 1 operands, not 2"),
    ("m: [n]f64 = @cholesky x", "cholesky takes a float or complex matrix"),
    ("m: f64 = @sort x", "m is f64"),
    ("check w IndexError \"no\"", "the condition is f64, not bool"),
    ("check c NoSuchError \"no\"", "no error NoSuchError"),
    ("check c IndexError \"{0} {1}\" k", "names more than 1 values"),
    ("print (\"k\", 1) k", "prints more than 1 values"),
    ("t: f64 = check c IndexError \"no\"", "binds 1 variables to 0 results"),
    # dimensions
    ("v: [w]f64 = full [n] w", "no dimension of v"),
]  # fmt: skip


@pytest.mark.parametrize("code, reason", ILLEGAL)
def test_illegal(code, reason):
    f = program(("b: [9]f64 = full [9] w\n" if "(a, b)" in code else "") + code)
    with pytest.raises(InvalidCore, match=reason):
        verify(f)


# -- names: what the parser would not let through


def function(*stms: Stm, results=(), params=(), sizes=(), written=()) -> Function:
    return Function("f", sizes, params, Body(stms, results), written)


def stm(exp, *vars: Var) -> Stm:
    return Stm(vars, exp, NOWHERE)


X, T = Var("x", F64), Var("t", F64)


@pytest.mark.parametrize(
    "f, reason",
    [
        (function(stm(Apply("sin", (X,)), T)), "x:f64 is not in scope"),
        (function(results=(X,)), "x:f64 is not in scope"),
        (function(stm(Apply("sin", (X,)), T), stm(Apply("sin", (X,)), T), params=(X,)), "t:f64 is bound twice"),
        (function(params=(X, X)), "x:f64 is bound twice"),
        (function(stm(Apply("sin", (T,)), T), params=(X,)), "t:f64 is not in scope"),
        (function(params=(Var("v", Type(DType.f64, (Var("n", I64),))),)), "n:i64 is not in scope"),
        (function(params=(Var("v", Type(DType.f64, (-1,))),)), "-1 is no dimension of v"),
        (function(params=(Var("v", Type(DType.f64, (2,), "add")),)), "is an accumulator"),
        (function(sizes=(X,)), "the size x is f64, not i64"),
        (function(params=(X,), results=(X,), written=(1,)), "no parameter 1 to write"),
        (function(params=(X,), results=(), written=(0,)), "each written parameter is a result, once"),
        (function(params=(X,), results=(i64(0),), written=(0,)), "the final value of x is i64, not f64"),
        (function(stm(Print((Shown(0),), (T,)))), "t:f64 is not in scope"),
    ],
)
def test_names(f, reason):
    with pytest.raises(InvalidCore, match=reason):
        verify(f)


def test_a_region_keeps_its_names():
    f = program("r: f64 = if c then t: f64 = sin w; in t\nelse w")
    (branch,) = f.body.stms
    inner = branch.exp.then.stms[0].vars[0]
    with pytest.raises(InvalidCore, match="t:f64 is not in scope"):
        verify(replace(f, body=Body(f.body.stms, (inner,))))


def test_one_statement_in_two_branches_is_bound_twice():
    f = program("r: f64 = if c then t: f64 = sin w; in t\nelse w")
    (branch,) = f.body.stms
    twice = replace(branch, exp=replace(branch.exp, orelse=branch.exp.then))
    with pytest.raises(InvalidCore, match="t:f64 is bound twice"):
        verify(replace(f, body=Body((twice,), ())))


def test_written_results_come_last():
    verify(parse_function("def f(x: [n]f64, w: f64) -> (f64, [n]f64) writes x\n  in (w, x)"))


def test_dimensions_are_compared_loosely():
    n, m = Var("n", I64), Var("m", I64)
    x, y = Var("x", Type(DType.f64, (n,))), Var("y", Type(DType.f64, (m,)))
    verify(function(stm(Update(x, (At(i64(0)),), const(0.0, DType.f64)), y), sizes=(n, m), params=(x,)))


def test_the_message_shows_the_statement_with_the_names_of_the_whole_function():
    x, first, second = Var("x", Type(DType.f64, (3,))), Var("t", F64), Var("t", F32)
    f = function(stm(Index(x, (At(i64(0)),)), first), stm(Apply("sin", (first,)), second), params=(x,))
    with pytest.raises(InvalidCore) as info:
        verify(f)
    assert str(info.value) == "f: t is f32, not f64 (<built in>:0)\n    t_1: f32 = sin t"


def test_long_statements_are_cut():
    lines = "\n".join(f"  t{k}: f64 = sin w" for k in range(30))
    with pytest.raises(InvalidCore) as info:
        verify(program(f"r: f64 = loop (s: f64 = w) for i < n do\n{lines}\n  in i"))
    assert str(info.value).splitlines()[-1].strip() == "..."
