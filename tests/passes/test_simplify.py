"""Simplification, one rule at a time. Every program also computes the same before and after, bit for bit."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from tapeless.interp.evaluate import evaluate
from tapeless.ir.printer import print_function
from tapeless.passes.check.verify import verify
from tapeless.passes.tidy.simplify import simplify
from tests.passes.programs import after, arguments, assert_same, program, words

simplified = partial(after, simplify)


def stays(code: str, results: str) -> None:
    f = program(code, results)
    assert simplify(f) is f


# -- scalars


def test_constants_are_folded_and_copies_propagated() -> None:
    code = """
        t: f64 = add 1.0 2.0
        u: f64 = identity a
        v: f64 = mul t u
    """
    assert simplified(code, "v") == "v: f64 = mul 3.0 a in v"


def test_folding_keeps_the_element_type() -> None:
    code = """
        t: f32 = add 16777216.0f32 1.0f32
        u: i32 = mul 65536i32 65536i32
        v: i64 = floordiv -7 2
    """
    assert simplified(code, "(t, u, v)") == "in (1.6777216e+07f32, 0i32, -4)"


def test_integer_offsets_are_collected() -> None:
    code = """
        t: i64 = add k 2
        u: i64 = sub t 5
        v: i64 = add 3 u
    """
    assert simplified(code, "v") == "t: i64 = add k 2 u: i64 = add k -3 in k"


@pytest.mark.parametrize("op, result", [("add", "-0.0"), ("sub", "0.0"), ("mul", "1.0"), ("div", "1.0")])
def test_neutral_elements_of_floats(op: str, result: str) -> None:
    assert simplified(f"t: f64 = {op} a {result}", "t") == "in a"


@pytest.mark.parametrize("code", ["add a 0.0", "mul a 0.0", "sub a a", "div a a", "sub 0.0 a", "floordiv a 1.0"])
def test_what_is_not_exact_stays(code: str) -> None:
    stays(f"t: f64 = {code}", "t")


@pytest.mark.parametrize(
    "code, result",
    [
        ("sub k k", "0"),
        ("mul k 0", "0"),
        ("floordiv k 1", "k"),
        ("mod k 1", "0"),
        ("ipow k 1", "k"),
        ("xor k k", "0"),
        ("and k -1", "k"),
    ],
)
def test_integers_are_a_ring(code: str, result: str) -> None:
    assert simplified(f"t: i64 = {code}", "t") == f"in {result}"


def test_comparisons_with_itself_only_for_integers() -> None:
    assert simplified("t: bool = eq k k; u: bool = lt k k", "(t, u)") == "in (true, false)"
    stays("t: bool = eq a a", "t")


def test_conversions() -> None:
    code = """
        t: f64 = convert s
        u: f32 = convert t
        v: i64 = convert a
        q: f64 = convert v
    """
    assert simplified(code, "(u, q)") == "t: f64 = convert s v: i64 = convert a q: f64 = convert v in (s, q)"


def test_nested_negations_and_choices() -> None:
    code = """
        t: f64 = neg a
        u: f64 = neg t
        p: bool = not c
        q: f64 = select p u b
        r: bool = select c true false
    """
    expected = "t: f64 = neg a p: bool = not c q: f64 = select c b a in (q, c)"
    assert simplified(code, "(q, r)") == expected


@pytest.mark.parametrize("arms", ["a t", "t a"])
def test_signs_that_do_not_matter(arms: str) -> None:
    code = f"""
        t: f64 = neg a
        u: f64 = select c {arms}
        v: f64 = mul u u
        p: f64 = abs u
    """
    assert simplified(code, "(v, p)").endswith("v: f64 = mul a a p: f64 = abs a in (v, p)")


def test_one_choice_less() -> None:
    code = """
        p: bool = lt a b
        t: f64 = select c a b
        u: f64 = select c 2.0 b
        v: f64 = select p t u
    """
    assert simplified(code, "v").endswith("other: f64 = select p a 2.0 v: f64 = select c other b in v")
    stays(code, "(v, t)")  # which is needed besides


def test_a_negative_constant_is_no_dimension() -> None:
    code = """
        check c ValueError "negative"
        m: i64 = sub 2 5
        f: [m]f64 = full [m] 0.0
    """
    g = simplify(program(code, "f"))
    verify(g)  # although it can never run
    assert simplify(g) is g


# -- branches


def test_constant_condition() -> None:
    code = """
        t: f64 = if true then
          u: f64 = sin a
          in u
        else b
    """
    assert simplified(code, "t") == "u: f64 = sin a in u"


def test_negated_condition() -> None:
    code = """
        p: bool = not c
        t: [n]f64 = if p then x else y
    """
    assert simplified(code, "t") == "p: bool = not c t: [n]f64 = if c then y else x in t"


def test_equal_branches() -> None:
    code = """
        t: f64 = if c then
          check c ValueError "no"
          u: f64 = sin a
          in u
        else
          check c ValueError "no"
          v: f64 = sin a
          in v
    """
    assert "if" in simplified(code, "t")  # one of the checks holds, the other fails
    code = """
        t: f64 = if c then
          u: f64 = x[k!]
          in u
        else
          v: f64 = x[k!]
          in v
    """
    assert simplified(code, "t") == "u: f64 = x[k!] in u"


def test_small_branches_become_selections() -> None:
    code = """
        t: f64, u: i64 = if c then
          p: f64 = add a b
          in (p, k)
        else (a, k)
    """
    assert simplified(code, "(t, u)") == "p: f64 = add a b t: f64 = select c p a in (t, k)"


def test_and_becomes_and() -> None:
    code = """
        t: bool = if c then
          p: bool = lt a b
          in p
        else false
    """
    assert simplified(code, "t") == "p: bool = lt a b t: bool = and c p in t"


def test_unbounded_partials_wait_for_the_last_round() -> None:
    code = """
        p: bool = ne b 0.0
        t: f64 = if p then
          q: f64 = div a b
          in q
        else 0.0
    """
    stays(code, "t")
    final = after(partial(simplify, speculate=True), code, "t")
    assert final == "p: bool = ne b 0.0 q: f64 = div a b t: f64 = select p q 0.0 in t"


GUARD = """
    t: f64 = mul {product}
    p: bool = eq {compared}
    q: bool = isnan t
    r: bool = and {tests}
    u: f64 = select r {zero} t
"""


@pytest.mark.parametrize("product", ["a b", "b a"])
@pytest.mark.parametrize("tests", ["p q", "q p"])
def test_products_with_zero_are_zero_the_last_time(product: str, tests: str) -> None:
    code = GUARD.format(product=product, compared="b 0.0", tests=tests, zero="0.0")
    stays(code, "u")
    f = program(code, "u")
    final = simplify(f, speculate=True)
    assert words(print_function(final)).endswith("u: f64 = select p 0.0 t in u")
    for a in (math.inf, -math.inf, math.nan, 2.0, -2.0, 0.0):
        for b in (0.0, -0.0, math.nan, math.inf, 3.0):
            args = [
                a if v.name == "a" else np.float64(b) if v.name == "b" else x
                for v, x in zip(f.params, arguments(0), strict=True)
            ]
            np.testing.assert_equal(np.add(evaluate(final, args)[0], 0.0), np.add(evaluate(f, args)[0], 0.0))


@pytest.mark.parametrize(
    "product, compared, zero",
    [("a b", "b 1.0", "0.0"), ("a a", "b 0.0", "0.0"), ("a b", "b 0.0", "1.0"), ("a b", "b 0.0", "-0.0")],
)
def test_what_is_no_guard_stays(product: str, compared: str, zero: str) -> None:
    f = program(GUARD.format(product=product, compared=compared, tests="p q", zero=zero), "u")
    assert simplify(f, speculate=True) is f


@pytest.mark.parametrize("inner", ["x[j]", "exp b", "x[j!]"])
def test_dear_or_partial_branches_stay(inner: str) -> None:
    code = f"""
        t: f64 = if c then
          p: f64 = {inner}
          in p
        else a
    """
    stays(code, "t")
    f = program(code, "t")
    assert simplify(f, speculate=True) is f


def test_common_results_leave_the_branch() -> None:
    code = """
        t: [n]f64, u: [n]f64 = if c then
          p: [n]f64 = update x[k] = a
          in (p, y)
        else (x, y)
    """
    expected = "t: [n]f64 = if c then p: [n]f64 = update x[k] = a in p else x in (t, y)"
    assert simplified(code, "(t, u)") == expected


def test_results_that_are_one_in_both_branches() -> None:
    code = """
        t: f64, u: f64, v: f64 = if c then
          p: f64 = sin a
          q: f64 = tan p
          in (p, p, q)
        else
          o: f64 = cos a
          r: f64 = exp o
          in (o, o, o)
    """
    assert simplified(code, "(t, u, v)").endswith("in (t, t, v)")


def test_results_that_are_one_and_become_the_condition() -> None:
    """The first of them is the condition itself: the other one is too."""
    code = """
        t: bool, u: bool, v: f64 = if c then (true, true, a) else (false, false, b)
        chosen: f64 = if u then a else v
    """
    assert simplified(code, "(t, chosen)") == "v: f64 = select c a b chosen: f64 = select c a b in (c, chosen)"


def test_what_a_condition_says_is_known_inside() -> None:
    code = """
        p: bool = lt a b
        q: bool = and c p
        t: f64 = if q then
          u: f64 = select p a b
          v: f64 = x[k]
          r: f64 = mul u v
          in r
        else b
        o: f64 = select p 1.0 2.0
    """
    result = simplified(code, "(t, o)")
    assert "v: f64 = x[k] r: f64 = mul a v in r" in result
    assert "select p 1.0 2.0" in result


def test_dimensions_bound_beside_an_array() -> None:
    code = """
        m: i64, t: [m]f64 = if true then (n, x) else (4, d)
        u: [m]f64 = map m (\\i e -> r: f64 = sin e; in r) t
    """
    assert simplified(code, "u") == "u: [n]f64 = map n (\\i e -> r: f64 = sin e in r) x in u"


def test_results_of_another_dimension_are_reshaped() -> None:
    code = """
        m: i64 = add n 0
        q: i64 = mul n 1
        p: i64 = max n k
        t: [p]f64 = if true then x else x
        u: [p]f64 = map p (\\i e -> r: f64 = sin e; in r) t
    """
    assert "t: [p]f64 = reshape x [p]" in simplified(code, "u")


# -- loops


def test_no_trip_and_one_trip() -> None:
    code = """
        t: f64 = loop (p: f64 = a) for i < 0 do
          q: f64 = sin p
          in q
        u: f64 = loop (p1: f64 = t) for i1 < 1 do
          e: f64 = x[i1]
          q1: f64 = mul p1 e
          in q1
    """
    assert simplified(code, "u") == "e: f64 = x[0] q1: f64 = mul a e in q1"


def test_carried_values_that_do_not_change() -> None:
    code = """
        t: f64, u: f64, v: f64 = loop (p: f64 = a, q: f64 = b, r: f64 = 1.0) for i < k do
          o: f64 = mul q r
          m: f64 = add p o
          in (m, q, 1.0)
    """
    expected = "t: f64 = loop (p: f64 = a) for i < k do m: f64 = add p b in m in (t, b, 1.0)"
    assert simplified(code, "(t, u, v)") == expected


def test_values_carried_twice() -> None:
    code = """
        t: f64, u: f64 = loop (p: f64 = 1.0, q: f64 = 1.0) for i < k do
          o: f64 = mul p q
          r: f64 = add o a
          in (r, r)
        v: f64 = sub t u
    """
    expected = "t: f64 = loop (p: f64 = 1.0) for i < k do o: f64 = mul p p r: f64 = add o a in r v: f64 = sub t t in v"
    assert simplified(code, "v") == expected


def test_while() -> None:
    code = """
        t: i64, u: f64 = loop (p: i64 = k, q: f64 = a) while
          go: bool = gt p 0
          in go
        do
          r: i64 = sub p 1
          in (r, q)
        v: f64 = loop (o: f64 = b) while false do
          e: f64 = sin o
          in e
    """
    expected = "t: i64 = loop (p: i64 = k) while go: bool = gt p 0 in go do r: i64 = sub p 1 in r in (t, a, b)"
    assert simplified(code, "(t, u, v)") == expected


# -- checks


def test_checks() -> None:
    code = """
        p: bool = lt k 100
        check p ValueError "large {0}" k
        check p ValueError "again"
        check true ValueError "never"
        t: f64 = if p then a else b
        r: f64 = reduce n add 0.0 x
        l: i64 = loop (q: i64 = 0) for i < k do
          check p ValueError "still"
          check c ValueError "no"
          check c ValueError "no"
          in i
        check c ValueError "no"
    """
    f = program(code, "(t, l)")
    g = simplify(f)
    for seed in range(4):
        assert_same(f, g, arguments(seed))
    result = simplified(code, "(t, l)")
    assert result.count("check p") == 1
    assert result.count("check c") == 2  # the loop may make no trip
    assert result.endswith("in (a, l)")


# -- arrays


@pytest.mark.parametrize(
    "code, result",
    [
        ("f: [n]f64 = full [n] a; t: f64 = f[k]", "a"),
        ("f: [n]i64 = iota n; t: i64 = f[k]", "k"),
        ("f: [3]f64 = [a, b, 1.0]; t: f64 = f[-3?]", "a"),
        ("f: [2][n]f64 = [x, y]; t: f64 = f[1, k]", "y[k]"),
        ("f: [3][n]f64 = transpose w [1, 0]; t: f64 = f[2, k]", "w[k, 2]"),
        ("f: [n][3]f64 = broadcast x [n, 3] axes [0]; t: f64 = f[k, 2]", "x[k]"),
        ("f: [3]f64 = w[k, :]; t: f64 = f[j]", "w[k, j]"),
        ("f: [n]f64 = update x[k] = a; t: f64 = f[k!]", "a"),
        ("g: [4]f64 = full [4] b; f: [4]f64 = update g[1] = a; h: [4]f64 = update f[2] = a; t: f64 = h[0]", "b"),
        ("g: [4]f64 = full [4] b; f: [4]f64 = update g[1] = a; h: [4]f64 = update f[2] = b; t: f64 = h[1]", "a"),
        ("f: [4]f64 = update d[1] = a; h: [4]f64 = update f[2] = b; t: f64 = h[1]", "a"),
        ("g: [2]f64 = [a, b]; f: [2]f64 = update g[0] = b; t: f64 = f[1]", "b"),
        ("t: [n]f64 = x[:]", "x"),
        ("f: [3][n]f64 = reshape w [3, n]; t: [n][3]f64 = reshape f [n, 3]", "w"),
        ("f: [3][n]f64 = transpose w [1, 0]; t: [n][3]f64 = transpose f [1, 0]", "w"),
        ("t: [n]f64 = reshape x [n]", "x"),
        ("e: f64 = x[k]; t: [n]f64 = update x[k] = e", "x"),
    ],
)
def test_looking_through(code: str, result: str) -> None:
    last = simplified(code, "t")
    assert last.endswith(f"in {result}") or last.endswith(f"= {result} in t")


@pytest.mark.parametrize(
    "code",
    [
        "f: [n]f64 = full [n] a; t: f64 = f[k!]",
        "f: [n]i64 = iota n; t: i64 = f[k~]",
        "f: [3]f64 = w[k, :]; t: f64 = f[j?]",
        "f: [3]f64 = w[k!, :]; t: f64 = f[j]",
        "f: [3][n]f64 = transpose w [1, 0]; t: [3][2]f64 = f[:, 0:+2]",
        "f: [n]f64 = update x[k] = a; t: f64 = f[j]",
        "f: [4]f64 = update d[1] = a; t: f64 = f[2]",
        "f: [n]f64 = update x[k] = a; h: [n]f64 = update f[0!] = b; t: f64 = h[k]",
        "g: [n]f64 = full [n] b; f: [n]f64 = update g[0!] = a; t: f64 = f[1!]",
        "f: [n]f64 = copy x; t: f64 = f[j]",
    ],
)
def test_not_looking_through(code: str) -> None:
    stays(code, "(t, f)")


def test_ranges_are_composed() -> None:
    code = """
        m: i64 = sub n 1
        f: [m]f64 = x[1:+m]
        g: [2]f64 = f[1:+2:-1]
        t: f64 = g[1]
        o: [2]f64 = f[k:+2]
        u: f64 = o[j]
    """
    result = after(simplify, code.replace("f[k:+2]", "f[0:+2]").replace("o[j]", "o[1]"), "(t, u)")
    assert "g: [2]f64 = x[2:+2:-1] t: f64 = x[1]" in result
    assert words(print_function(simplify(program(code, "(t, u)")))).endswith(
        "i: i64 = add 1 k o: [2]f64 = x[i:+2] i_1: i64 = add i j u: f64 = x[i_1] in (t, u)"
    )


def test_an_array_that_was_consumed_is_not_gone_back_to() -> None:
    code = """
        f: [3]f64 = w[k, :]
        w1: [n][3]f64 = update w[j, 0] = a
        t: f64 = f[1]
    """
    stays(code, "(w1, t)")  # reading w here would make a copy of all of it necessary
    code = """
        f: [3]f64 = w[k, :]
        t: f64 = f[1]
        w1: [n][3]f64 = update w[j, 0] = a
    """
    assert "t: f64 = w[k, 1]" in simplified(code, "(w1, t)")


def test_copies_of_fresh_arrays() -> None:
    code = """
        f: [n]f64 = full [n] a
        g: [n]f64 = copy f
        h: [n]f64 = update g[k] = b
    """
    assert simplified(code, "h") == "f: [n]f64 = full [n] a h: [n]f64 = update f[k] = b in h"
    stays("f: [n]f64 = full [n] a; g: [n]f64 = copy f; h: [n]f64 = update g[k] = b", "(h, f)")
    stays("g: [n]f64 = copy x; h: [n]f64 = update g[k] = b", "h")


@pytest.mark.parametrize(
    "first, last",
    [("w[k, 0]", "v[k, 0]"), ("w[k, :]", "v[k, :]"), ("w[k, 0]", "v[k, :]"), ("w[0:+2:1, 1]", "v[:, :]")],
)
def test_what_is_written_over_unseen_is_not_written(first: str, last: str) -> None:
    code = f"v: [n][3]f64 = update {first} = a; e: f64 = w[k, 0]; t: f64 = add e b; u: [n][3]f64 = update {last} = t"
    assert f"u: [n][3]f64 = update {last.replace('v', 'w')} = t" in simplified(code, "u")


@pytest.mark.parametrize(
    "code",
    [
        "v: [n][3]f64 = update w[k, 0] = a; u: [n][3]f64 = update v[k, 1] = b",  # another cell
        "v: [n][3]f64 = update w[k, :] = a; u: [n][3]f64 = update v[k, 0] = b",  # some of the cells
        "v: [n][3]f64 = update w[k, 0] = a; e: f64 = v[j, 0]; u: [n][3]f64 = update v[k, 0] = e",  # somebody looks
        "v: [n][3]f64 = update w[k!, 0] = a; u: [n][3]f64 = update v[k, 0] = b",  # the test would go too
    ],
)
def test_what_is_written_over_stays_where_it_is_seen(code: str) -> None:
    stays(code, "u")


def test_what_is_written_over_stays_where_it_is_a_result() -> None:
    stays("v: [n][3]f64 = update w[k, 0] = a; u: [n][3]f64 = update v[k, 0] = b", "(u, v)")


# -- parallel operators


def test_rows_that_are_known() -> None:
    code = r"""
        f: [n]f64 = full [n] a
        g: [n]i64 = iota n
        h: [n][4]f64 = broadcast d [n, 4] axes [1]
        t: [n]f64 = map n (\i e p q r e1 ->
          u: f64 = r[1]
          v: f64 = convert q
          s1: f64 = add u v
          s2: f64 = mul s1 p
          s3: f64 = mul s2 e
          s4: f64 = mul s3 e1
          in s4) x f g h x
    """
    result = simplified(code, "t")
    assert "u: f64 = d[1] v: f64 = convert i" in result
    assert "s2: f64 = mul s1 a s3: f64 = mul s2 e s4: f64 = mul s3 e in s4) x in t" in result


def test_rows_of_a_filled_array() -> None:
    code = r"""
        f: [n][4]f64 = full [n, 4] a
        t: [n][4]f64 = map n (\i p -> q: [4]f64 = map 4 (\i1 e -> r: f64 = mul e e; in r) p; in q) f
    """
    result = simplified(code, "t")
    assert r"map n (\i -> p: [4]f64 = full [4] a" in result and "r: f64 = mul a a" in result


def test_cells_of_a_column_are_cells_of_the_rows() -> None:
    code = r"""
        w1: [n]f64 = w[:, k]
        w2: [n][1]f64 = reshape w1 [n, 1]
        t: [n][3]f64 = map n (\i p q e ->
          r: f64 = q[0]
          u: [3]f64 = map 3 (\i1 v -> x1: f64 = mul v r; x2: f64 = add x1 e; in x2) p
          in u) w w2 w1
    """
    result = simplified(code, "t")
    assert r"map n (\i p -> " in result and "f64 = p[k]" in result


def test_accumulators_that_are_not_updated() -> None:
    code = r"""
        t: [n]f64, u: [n]f64, r: f64 = with_acc (x, y) (\(p: acc<add, [n]f64>) (q: acc<add, [n]f64>) ->
          update_acc p[k] = a
          in b)
        v: [n]f64, o: f64 = with_acc x (\(l: acc<add, [n]f64>) -> m: f64 = sin b; in m)
    """
    result = simplified(code, "(t, u, r, v, o)")
    expected = (
        r"t: [n]f64, r: f64 = with_acc x (\(p: acc<add, [n]f64>) -> update_acc p[k] = a in b)"
        " m: f64 = sin b in (t, y, r, x, m)"
    )
    assert result == expected
