"""Dead code: what goes, down to single results of regions, and what an effect keeps."""

from __future__ import annotations

from functools import partial

import pytest

from tapeless.passes.tidy.dce import all_is_used, dce, live_part
from tests.passes.programs import after, program, random_function

alive = partial(after, dce)


def stays(code: str, results: str) -> None:
    f = program(code, results)
    assert dce(f) is f


def test_unused_statements() -> None:
    code = """
        t: f64 = sin a
        u: f64 = cos t
        v: f64 = sin b
        f: [n]f64 = full [n] u
        g: [n]f64 = update f[k] = a
        q: f64 = x[k]
    """
    assert alive(code, "v") == "v: f64 = sin b in v"


def test_nothing_is_dead_where_all_is_used() -> None:
    used = 0
    for seed in range(200):
        body = dce(random_function(seed, 4)).body
        if all_is_used(body):
            used += 1
            assert live_part(body)[0] is body
    assert used > 50


def test_dimensions_are_used_by_types() -> None:
    stays("m: i64 = add k 1; f: [m]f64 = full [m] a", "f")
    stays("m: i64 = identity n; f: [m]f64 = copy x", "f")


def test_effects_stay() -> None:
    stays('p: bool = lt a b; check p ValueError "{0}" a; print ("k", 0) k; t: f64 = x[k!]; u: f64 = d[j?]', "b")


def test_progress_stays_where_its_loop_does() -> None:
    loop = "r: f64 = loop (h: f64 = a) for i < k do m: i64 = add i 1 progress m k h1: f64 = sin h in h1"
    code = """
        r: f64 = loop (h: f64 = a) for i < k do
          m: i64 = add i 1
          progress m k
          h1: f64 = sin h
          in h1
    """
    assert alive(code, "r") == f"{loop} in r"
    assert alive(code, "b") == "in b"


def test_what_is_around_an_effect_stays_too() -> None:
    code = """
        p: bool = lt a b
        t: f64, u: f64 = if p then
          o: f64 = sin a
          q: bool = lt k 10
          check q ValueError "k"
          in (o, b)
        else (a, a)
        m: i64 = add k 1
        r: f64, l: i64 = loop (h: f64 = a, g: i64 = k) for i < m do
          h1: f64 = sin h
          g1: i64 = add g 1
          print ("g is ", 0) g1
          in (h1, g1)
    """
    expected = (
        'p: bool = lt a b if p then q: bool = lt k 10 check q ValueError "k" in () else ()'
        " m: i64 = add k 1 l: i64 = loop (g: i64 = k) for i < m do g1: i64 = add g 1"
        ' print ("g is ", 0) g1 in g1 in b'
    )
    assert alive(code, "b") == expected


def test_unused_results_of_branches() -> None:
    code = """
        t: f64, u: f64 = if c then
          p: f64 = sin a
          q: f64 = cos a
          in (p, q)
        else (a, b)
    """
    assert alive(code, "u") == "u: f64 = if c then q: f64 = cos a in q else b in u"
    assert alive(code, "a") == "in a"


def test_carried_values_that_only_serve_themselves() -> None:
    code = """
        t: f64, u: f64, v: f64, o: f64 = loop (p: f64 = a, q: f64 = b, r: f64 = 0.0, l: f64 = 1.0) for i < k do
          p1: f64 = mul p q
          q1: f64 = sin q
          r1: f64 = add r l
          l1: f64 = mul l r
          in (p1, q1, r1, l1)
    """
    expected = (
        "t: f64, u: f64 = loop (p: f64 = a, q: f64 = b) for i < k do p1: f64 = mul p q q1: f64 = sin q in (p1, q1) in t"
    )
    assert alive(code, "t") == expected


def test_nested_loops_in_one_go() -> None:
    code = """
        t: f64, u: f64 = loop (p: f64 = a, q: f64 = b) for i < k do
          p1: f64, q1: f64 = loop (r: f64 = p, l: f64 = q) for i1 < j do
            r1: f64 = sin r
            l1: f64 = mul l r
            in (r1, l1)
          in (p1, q1)
    """
    expected = (
        "t: f64 = loop (p: f64 = a) for i < k do p1: f64 = loop (r: f64 = p) for i1 < j do"
        " r1: f64 = sin r in r1 in p1 in t"
    )
    assert alive(code, "t") == expected


def test_while_needs_its_test() -> None:
    code = """
        t: i64, u: f64, v: f64 = loop (p: i64 = k, q: f64 = a, r: f64 = b) while
          go: bool = gt p 0
          no: f64 = sin q
          in go
        do
          p1: i64 = sub p 1
          q1: f64 = sin q
          r1: f64 = cos r
          in (p1, q1, r1)
    """
    expected = (
        "t: i64, v: f64 = loop (p: i64 = k, r: f64 = b) while go: bool = gt p 0 in go do"
        " p1: i64 = sub p 1 r1: f64 = cos r in (p1, r1) in v"
    )
    assert alive(code, "v") == expected
    assert alive(code, "a") == "in a"


def test_sweeps_lose_operators_outputs_and_arrays() -> None:
    code = r"""
        r: f64, l: f64, g: [n]f64, m: [n]f64, o: [n]f64 = sweep n (\i e f row ->
          p: f64 = mul e e
          q: f64 = sin f
          u: f64 = row[1]
          in (p, q, e, u, p)) x y w | reduce add 0.0 | reduce maximum 0.0 | scan add 0.0
    """
    assert alive(code, "(r, o)") == (
        r"r: f64, o: [n]f64 = sweep n (\i e -> p: f64 = mul e e in (p, p)) x | reduce add 0.0 in (r, o)"
    )
    assert alive(code, "g") == r"g: [n]f64 = scan n add 0.0 x in g"
    assert alive(code, "m") == r"m: [n]f64 = map n (\i row -> u: f64 = row[1] in u) w in m"


def test_values_that_an_operator_reduces_together_stay_while_others_need_them() -> None:
    code = r"""
        r: f64, l: i64 = reduce n (\p q p1 q1 ->
          less: bool = lt p p1
          m: f64 = select less p1 p
          o: i64 = select less q1 q
          in (m, o)) (0.0, 0) x h
    """
    stays("h: [n]i64 = iota n\n" + code.replace("\n        ", "\n"), "l")
    assert alive("h: [n]i64 = iota n\n" + code.replace("\n        ", "\n"), "r") == (
        r"r: f64 = reduce n (\p p1 -> less: bool = lt p p1 m: f64 = select less p1 p in m) 0.0 x in r"
    )


def test_the_test_of_a_position_does_not_need_the_array() -> None:
    code = """
        f: [n]f64 = full [n] a
        g: [n]f64 = update f[k] = b
        t: f64 = g[k?]
    """
    assert alive(code, "b") == (
        "t: i64 = neg n t_1: bool = ge k t t_2: bool = lt k n t_3: bool = and t_1 t_2"
        ' check t_3 IndexError "index {0} is out of bounds for axis 0 with size {1}" k n in b'
    )
    stays("f: [n]f64 = full [n] a; t: f64 = f[k!]", "f")


def test_hist_is_all_or_nothing() -> None:
    code = r"""
        f: [n]f64 = full [n] 0.0
        g: [n]f64 = full [n] 0.0
        t: [n]f64, u: [n]f64 =
          hist (\p q p1 q1 -> r: f64 = add p p1; l: f64 = add q q1; in (r, l)) (0.0, 0.0) (f, g) n (\i e -> (i, e, e)) x
    """
    assert alive(code, "t").startswith("f: [n]f64 = full [n] 0.0 g: [n]f64")
    assert alive(code, "a") == "in a"


def test_accumulators() -> None:
    code = r"""
        t: [n]f64, u: [n]f64, r: f64 = with_acc (x, y) (\(p: acc<add, [n]f64>) (q: acc<add, [n]f64>) ->
          map n (\i e ->
            update_acc p[i] = e
            v: f64 = sin e
            update_acc q[i] = v
            in ()) x
          o: f64 = sin a
          in o)
    """
    assert alive(code, "t") == (
        r"t: [n]f64 = with_acc x (\(p: acc<add, [n]f64>) ->"
        r" map n (\i e -> update_acc p[i] = e in ()) x in ()) in t"
    )
    assert alive(code, "a") == "in a"


def test_an_effect_in_a_lambda_keeps_the_sweep() -> None:
    code = r"""
        t: [n]f64 = map n (\i e f ->
          p: bool = gt e -100.0
          check p ValueError "{0}" e
          in f) y x
    """
    assert "map n (\\i e -> p: bool = gt e -100.0 check p" in alive(code, "a")


@pytest.mark.parametrize("kind", ["hist add 0.0 f n", "scatter f n"])
def test_an_effect_keeps_all_of_a_hist(kind: str) -> None:
    code = rf"""
        f: [n]f64 = full [n] 0.0
        t: [n]f64 = {kind} (\i e ->
          p: bool = gt e -100.0
          check p ValueError "low"
          in (i, e)) y
    """
    stays(code, "a")
