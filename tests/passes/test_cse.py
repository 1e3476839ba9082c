"""Common subexpressions: what is merged, and what must stay two."""

from __future__ import annotations

from functools import partial

import pytest

from tapeless.passes.tidy.cse import cse
from tests.passes.programs import after, program

merged = partial(after, cse)


def stays(code: str, results: str) -> None:
    f = program(code, results)
    assert cse(f) is f


def test_equal_operations() -> None:
    code = """
        t: f64 = sin a
        u: f64 = sin a
        v: f64 = add t u
    """
    assert merged(code, "v") == "t: f64 = sin a v: f64 = add t t in v"


def test_commutative_operations_and_mirrored_comparisons() -> None:
    code = """
        t: f64 = mul a b
        u: f64 = mul b a
        p: bool = lt a b
        q: bool = gt b a
        r: f64 = add a 1.0
        o: f64 = add 1.0 a
    """
    result = merged(code, "(t, u, p, q, r, o)")
    assert result == "t: f64 = mul a b p: bool = lt a b r: f64 = add a 1.0 in (t, t, p, p, r, r)"


@pytest.mark.parametrize(
    "code",
    [
        "t: f64 = sub a b; u: f64 = sub b a",
        "t: bool = lt a b; u: bool = lt b a",
        "t: f64 = add a 0.0; u: f64 = add a -0.0",
        "t: f32 = convert k; u: f64 = convert k",
        "t: f64 = min a b; u: f64 = min b a",
        "t: f64 = x[k]; u: f64 = x[k~]",
    ],
)
def test_operations_that_differ(code: str) -> None:
    stays(code, "(t, u)")


def test_outer_expressions_are_seen_inside_and_not_the_other_way_round() -> None:
    code = r"""
        t: f64 = sin a
        r: f64 = if c then
          u: f64 = sin a
          v: f64 = cos a
          q: f64 = mul u v
          in q
        else
          o: f64 = cos a
          in o
        m: [n]f64 = map n (\i e -> p: f64 = cos a; l: f64 = sin a; s1: f64 = mul p l; in s1) x
        g: f64 = cos a
    """
    result = merged(code, "(t, r, m, g)")
    assert result.count("sin a") == 1
    assert result.count("cos a") == 4


def test_an_access_is_tested_once() -> None:
    assert merged("t: f64 = x[k!]; u: f64 = x[k!]; v: f64 = x[k]", "(t, u, v)") == "t: f64 = x[k!] in (t, t, t)"
    assert merged("t: f64 = x[k]; u: f64 = x[k!]", "(t, u)") == "t: f64 = x[k] in (t, t)"


def test_views() -> None:
    code = """
        t: [3][n]f64 = transpose w [1, 0]
        u: [3][n]f64 = transpose w [1, 0]
        p: [3]f64 = w[k, :]
        q: [3]f64 = w[k, :]
        e: f64 = u[1, 1]
        f: f64 = q[2]
    """
    result = merged(code, "(t, e, f)")
    assert result == (
        "t: [3][n]f64 = transpose w [1, 0] p: [3]f64 = w[k, :] e: f64 = t[1, 1] f: f64 = p[2] in (t, e, f)"
    )


def test_arrays_that_are_only_read_are_made_once() -> None:
    code = r"""
        f: [n]f64 = full [n] a
        g: [n]f64 = full [n] a
        t: [n]f64 = map n (\i e -> p: f64 = sin e; in p) x
        u: [n]f64 = map n (\i e1 -> p1: f64 = sin e1; in p1) x
        r: f64 = sweep n (\i e o l h -> p2: f64 = mul e o; q: f64 = mul l h; in p2) f g t u | reduce add 0.0
    """
    result = merged(code, "r")
    assert result.count("full") == 1
    assert result.count("sin") == 1


@pytest.mark.parametrize(
    "use",
    [
        "h: [n]f64 = update g[k] = b",
        "h: [n]f64 = scatter g 1 (\\i -> (k, b))",
        "v: [n]f64 = reshape g [n]; h: [n]f64 = update v[k] = b",
        "h: [n]f64 = loop (p: [n]f64 = g) for i < k do\n  q: [n]f64 = update p[k] = a\n  in q",
        "o: [n]f64 = if c then g else x; h: [n]f64 = update o[k] = b",
        "h: [n]f64 = with_acc g (\\(acc: acc<add, [n]f64>) -> update_acc acc[k] = b; in ())",
    ],
)
@pytest.mark.parametrize("make", ["full [n] a", "map n (\\i5 -> a)", "copy x"])
def test_an_array_that_is_written_stays_apart(use: str, make: str) -> None:
    stays(f"f: [n]f64 = {make}\ng: [n]f64 = {make}\n{use}\ne: f64 = f[k]", "(h, e)")


def test_results_of_the_function_stay_apart() -> None:
    stays("f: [n]f64 = full [n] a; g: [n]f64 = full [n] a", "(f, g)")


@pytest.mark.parametrize(
    "code",
    [
        "t: [n]f64 = update x[k] = a; u: [n]f64 = update x[k] = a",
        "t: [n]f64 = copy x; u: [n]f64 = copy x",
        "t: [n]f64 = full [n] _; u: [n]f64 = full [n] _",
    ],
)
def test_consumers_are_never_merged(code: str) -> None:
    f = program(code + "; e: f64 = t[k]; g: f64 = u[k]", "(e, g)")
    assert cse(f) is f


def test_effects_are_never_merged() -> None:
    stays('print ("a ", 0) a; print ("a ", 0) a; check c ValueError "c"; check c ValueError "c"', "a")
    stays(
        r"""
        t: [n]f64, r: f64 = with_acc x (\(acc: acc<add, [n]f64>) ->
          update_acc acc[k] = b
          update_acc acc[k] = b
          p: f64 = reduce n add 0.0 y
          in p)
        """,
        "t",
    )


def test_equal_reductions_and_loops() -> None:
    code = r"""
        t: f64 = sweep n (\i e -> p: f64 = mul e a; in p) x | reduce add 0.0
        u: f64 = sweep n (\i1 e1 -> p1: f64 = mul e1 a; in p1) x | reduce add 0.0
        v: f64 = sweep n (\i2 e2 -> p2: f64 = mul e2 b; in p2) x | reduce add 0.0
        r: f64 = loop (q: f64 = a) for i3 < k do
          q1: f64 = sin q
          in q1
        o: f64 = loop (l: f64 = a) for i4 < k do
          l1: f64 = sin l
          in l1
        g: f64 = loop (h: f64 = b) for i5 < k do
          h1: f64 = sin h
          in h1
    """
    result = merged(code, "(t, u, v, r, o, g)")
    assert result.endswith("in (t, t, v, r, r, g)")


def test_integers_less_a_constant() -> None:
    code = """
        t: i64 = sub k 1
        u: i64 = add k -1
        v: i64 = sub k -9223372036854775808
        p: f64 = sub a 1.0
        q: f64 = add a -1.0
    """
    assert merged(code, "(t, u, v, p, q)").endswith("in (t, t, v, p, q)")


def test_loops_with_and_without_a_plan() -> None:
    code = """
        r: f64 = loop (q: f64 = a) for i3 < k do
          q1: f64 = sin q
          in q1
        o: f64 = loop (l: f64 = a) for i4 < k do {l: none}
          l1: f64 = sin l
          in l1
    """
    assert merged(code, "(r, o)").endswith("in (r, r)")


def test_reductions_of_one_sweep() -> None:
    code = r"""
        t: f64, u: f64, v: f64, o: f64, p: [n]f64 = sweep n (\i e f -> (e, e, e, f, f)) x y
          | reduce add 0.0 | reduce add 0.0 | reduce maximum 0.0 | reduce add 0.0
    """
    result = merged(code, "(t, u, v, o, p)")
    assert result == (
        r"t: f64, v: f64, o: f64, p: [n]f64 = sweep n (\i e f -> (e, e, f, f)) x y"
        r" | reduce add 0.0 | reduce maximum 0.0 | reduce add 0.0 in (t, t, v, o, p)"
    )


def test_a_loop_that_prints_runs_twice() -> None:
    code = r"""
        r: i64 = loop (q: i64 = 0) for i < k do
          print ("again")
          in i
        o: i64 = loop (l: i64 = 0) for j1 < k do
          print ("again")
          in j1
    """
    stays(code, "(r, o)")


def test_arrays_with_the_same_elements() -> None:
    code = """
        m: [n]f64, p: [n]f64, q: [n]f64 = map n (\\i v -> t: f64 = mul v v; u: f64 = mul v 2.0; in (t, u, t)) x
        m0: f64 = m[0]
        q0: f64 = q[0]
    """
    result = merged(code, "(m0, q0, p)")
    assert "m: [n]f64, p: [n]f64 = map" in result and "in (t, u)" in result and result.endswith("in (m0, m0, p)")


def test_arrays_with_the_same_elements_that_are_written_stay_two() -> None:
    stays(
        """
        m: [n]f64, q: [n]f64 = map n (\\i v -> t: f64 = mul v v; in (t, t)) x
        q1: [n]f64 = update q[0] = 1.0
        """,
        "(m, q1)",
    )
