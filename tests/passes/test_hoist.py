"""Loop invariants: what leaves a loop, and what must not run unless the program comes to it."""

from __future__ import annotations

from functools import partial

import pytest

from tapeless.passes.tidy.hoist import hoist
from tests.passes.programs import after, program

hoisted = partial(after, hoist)


def stays(code: str, results: str) -> None:
    f = program(code, results)
    assert hoist(f) is f


def loop(inner: str, bound: str = "k", result: str = "a") -> str:
    return f"t: f64 = loop (p: f64 = b) for i < {bound} do\n  {inner}\n  v: f64 = mul p {result}\n  in v"


def test_operations_leave_a_loop() -> None:
    code = """
        t: f64 = loop (p: f64 = b) for i < 3 do
          u: f64 = exp a
          q: f64 = mul u b
          e: f64 = x[i]
          v: f64 = mul p q
          r: f64 = add v e
          in r
    """
    expected = (
        "u: f64 = exp a q: f64 = mul u b t: f64 = loop (p: f64 = b) for i < 3 do"
        " e: f64 = x[i] v: f64 = mul p q r: f64 = add v e in r in t"
    )
    assert hoisted(code, "t") == expected


def test_each_statement_goes_as_far_as_it_can() -> None:
    code = r"""
        t: [n]f64 = map n (\i e ->
          r: f64 = loop (p: f64 = e) for i1 < k do
            u: f64 = exp a
            v: f64 = sin e
            l: f64 = convert i1
            q: f64 = mul u v
            o: f64 = mul q l
            m: f64 = add p o
            in m
          in r) x
    """
    expected = (
        r"u: f64 = exp a t: [n]f64 = map n (\i e -> v: f64 = sin e q: f64 = mul u v"
        r" r: f64 = loop (p: f64 = e) for i1 < k do l: f64 = convert i1 o: f64 = mul q l m: f64 = add p o in m"
        r" in r) x in t"
    )
    assert hoisted(code, "t") == expected


def test_while_and_its_test() -> None:
    code = """
        t: i64 = loop (p: i64 = k) while
          u: i64 = mul j 2
          go: bool = gt p u
          in go
        do
          v: i64 = add j 1
          q: i64 = sub p v
          in q
    """
    expected = (
        "u: i64 = mul j 2 v: i64 = add j 1 t: i64 = loop (p: i64 = k) while go: bool = gt p u in go do"
        " q: i64 = sub p v in q in t"
    )
    assert hoisted(code, "t") == expected


def test_a_branch_is_left_only_with_the_loop_around_it() -> None:
    stays("t: f64 = if c then\n  u: f64 = exp a\n  in u\nelse b", "t")
    code = """
        t: f64 = loop (p: f64 = b) for i < k do
          q: f64 = if c then
            u: f64 = exp a
            v: f64 = mul p u
            in v
          else p
          in q
    """
    assert hoisted(code, "t").startswith("u: f64 = exp a t: f64 = loop")
    code = """
        r: f64 = if c then
          t: f64 = loop (p: f64 = b) for i < k do
            u: f64 = exp a
            v: f64 = mul p u
            in v
          in t
        else b
    """
    assert hoisted(code, "r").startswith("r: f64 = if c then u: f64 = exp a t: f64 = loop")


@pytest.mark.parametrize("access", ["x[j]", "x[j!]", "x[0]", "w[j, 1]"])
def test_an_access_leaves_only_a_loop_that_runs(access: str) -> None:
    stays(loop(f"u: f64 = {access}", bound="k", result="u"), "t")
    assert hoisted(loop(f"u: f64 = {access}", bound="2", result="u"), "t").startswith(
        f"u: f64 = {access} t: f64 = loop"
    )


def test_an_access_that_is_inside_leaves_any_loop() -> None:
    assert hoisted(loop("u: f64 = d[3]", result="u"), "t").startswith("u: f64 = d[3] t: f64 = loop")


@pytest.mark.parametrize("effect", ['check c ValueError "c"', 'print ("p")', "o: f64 = x[i!]"])
def test_an_access_does_not_pass_an_effect(effect: str) -> None:
    stays(loop(f"{effect}\n  u: f64 = x[j]", bound="2", result="u"), "t")


def test_an_access_does_not_leave_a_branch() -> None:
    code = """
        t: f64 = loop (p: f64 = b) for i < 2 do
          q: f64 = if c then
            u: f64 = x[j]
            in u
          else p
          in q
    """
    stays(code, "t")


def test_an_access_leaves_the_inner_loop_only() -> None:
    code = """
        t: f64 = loop (p: f64 = b) for i < k do
          l: f64 = loop (q: f64 = p) for i1 < 3 do
            u: f64 = x[j]
            v: f64 = mul q u
            in v
          in l
    """
    assert hoisted(code, "t").startswith("t: f64 = loop (p: f64 = b) for i < k do u: f64 = x[j] l: f64 = loop")


def test_an_access_does_not_pass_an_effect_of_the_loop_around() -> None:
    code = """
        t: f64 = loop (p: f64 = b) for i < 2 do
          check c ValueError "c"
          l: f64 = loop (q: f64 = p) for i1 < 3 do
            u: f64 = x[j]
            v: f64 = mul q u
            in v
          in l
    """
    result = hoisted(code, "t")
    assert result.startswith(
        't: f64 = loop (p: f64 = b) for i < 2 do check c ValueError "c" u: f64 = x[j] l: f64 = loop'
    )


def test_checks_and_prints_stay() -> None:
    stays(loop('check c ValueError "c"; print ("p")', bound="2"), "t")


def test_views() -> None:
    code = """
        t: f64 = loop (p: f64 = b) for i < k do
          f: [2][2]f64 = reshape d [2, 2]
          g: [3][n]f64 = transpose w [1, 0]
          h: [4]f64 = d[:]
          o: [n][1]f64 = reshape x [n, 1]
          u: f64 = f[1, 0]
          q: f64 = mul p u
          l: f64 = o[0, 0]
          m: f64 = g[0, 0]
          v: f64 = h[i]
          in q
    """
    result = hoisted(code, "t")
    before, _, inside = result.partition("t: f64 = loop")
    assert (
        before == "f: [2][2]f64 = reshape d [2, 2] g: [3][n]f64 = transpose w [1, 0] h: [4]f64 = d[:] u: f64 = f[1, 0] "
    )
    assert "o: [n][1]f64 = reshape x [n, 1]" in inside  # its shape may be wrong where it does not run


def test_sweeps_leave_a_loop_that_runs() -> None:
    inner = r"f: [n]f64 = map n (\i1 e -> s1: f64 = sin e; in s1) x; u: f64 = f[j]"
    stays(loop(inner, bound="k", result="u"), "t")
    assert hoisted(loop(inner, bound="2", result="u"), "t").startswith("f: [n]f64 = map n")


def test_an_array_that_is_written_is_made_in_each_trip() -> None:
    inner = "f: [4]f64 = full [4] a; {} u: f64 = {}[j]"
    stays(loop(inner.format("g: [4]f64 = update f[i] = b;", "g"), bound="2", result="u"), "t")
    assert hoisted(loop(inner.format("", "f"), result="u"), "t").startswith("f: [4]f64 = full [4] a t: f64 = loop")


def test_operators_of_reductions() -> None:
    code = r"""
        t: f64 = reduce n (\p q ->
          u: f64 = exp a
          v: f64 = mul u p
          r: f64 = add v q
          in r) 0.0 x
    """
    assert hoisted(code, "t").startswith("u: f64 = exp a t: f64 = reduce n")
