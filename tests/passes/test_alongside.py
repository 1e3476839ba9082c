"""Loops that carry the same values: when the second runs alongside the first."""

from __future__ import annotations

from functools import partial

import pytest

from tapeless.passes.tidy.alongside import merge_loops
from tests.passes.programs import after, program

merged = partial(after, merge_loops)

POWERS = """
        p: f64 = loop (q: f64 = a) for i < k do
          t: f64 = mul q b
          in t
"""
SUMS = """
        p1: f64, s1: f64 = loop (q1: f64 = a, r1: f64 = 0.0) for i1 < k do
          u1: f64 = mul q1 b
          v1: f64 = add r1 q1
          in (u1, v1)
"""


def test_a_loop_joins_one_that_carries_the_same_and_more() -> None:
    text = merged(POWERS + SUMS, "(p, p1, s1)")
    assert text == (
        "p: f64, s1: f64 = loop (q: f64 = a, r1: f64 = 0.0) for i < k do t: f64 = mul q b"
        " u1: f64 = mul q b v1: f64 = add r1 q in (t, v1) in (p, p, s1)"
    )


def test_the_first_waits_for_what_the_second_uses() -> None:
    later = SUMS.replace("r1: f64 = 0.0", "r1: f64 = m")
    text = merged(f"{POWERS}\n        m: f64 = sin b\n{later}", "(p, p1, s1)")
    assert text.startswith("m: f64 = sin b p: f64, s1: f64 = loop") and text.count("loop") == 1


def test_the_second_comes_to_the_first_where_that_is_needed_before() -> None:
    text = merged(f"{POWERS}\n        m: f64 = sin p\n{SUMS}", "(m, p1, s1)")
    assert text.count("loop") == 1 and text.endswith("m: f64 = sin p in (m, p, s1)")


def test_joined_loops_make_the_next_ones_start_equal() -> None:
    second = """
        g: f64 = loop (h: f64 = p) for i2 < 3 do
          t2: f64 = sin h
          in t2
    """
    third = """
        g1: f64, e1: f64 = loop (h1: f64 = p1, f1: f64 = s1) for i3 < 3 do
          t3: f64 = sin h1
          t4: f64 = mul f1 t3
          in (t3, t4)
    """
    assert merged(POWERS + second + SUMS + third, "(g, g1, e1)").count("loop") == 2


COUNTED = """
        c0: i64, x0: f64 = loop (m0: i64 = 0, y0: f64 = b) while
            z0: f64 = abs y0
            l0: bool = gt z0 0.01
          in l0
        do
          n0: i64 = add m0 1
          e0: f64 = mul y0 0.5
          in (n0, e0)
"""
COUNTED_WITH_SUM = """
        x1: f64, s1: f64 = loop (y1: f64 = b, r1: f64 = a) while
            z1: f64 = abs y1
            l1: bool = gt z1 0.01
          in l1
        do
          e1: f64 = mul y1 0.5
          v1: f64 = add r1 y1
          in (e1, v1)
"""


def test_while_loops_with_the_same_condition() -> None:
    text = merged(COUNTED + COUNTED_WITH_SUM, "(c0, x0, x1, s1)")
    assert text.count("while") == 1 and text.endswith("in (c0, x0, x0, s1)")


def test_values_that_start_equal_and_part_are_told_apart() -> None:
    first = """
        p: f64, q: f64 = loop (u: f64 = a, v: f64 = a) for i < k do
          t: f64 = add u v
          w1: f64 = mul v 0.5
          in (t, w1)
    """
    second = """
        p1: f64, q1: f64 = loop (v2: f64 = a, u2: f64 = a) for i1 < k do
          t2: f64 = add u2 v2
          w2: f64 = mul v2 0.5
          in (w2, t2)
    """
    assert merged(first + second, "(p, q, p1, q1)").endswith("in (p, q, q, p)")


@pytest.mark.parametrize(
    "code",
    [
        POWERS + SUMS.replace("i1 < k", "i1 < j"),
        POWERS + SUMS.replace("q1: f64 = a", "q1: f64 = b"),
        POWERS + SUMS.replace("mul q1 b", "mul q1 r1"),
        POWERS + SUMS.replace("q1: f64 = a", "q1: f64 = p"),
        COUNTED.replace("x0", "p") + COUNTED_WITH_SUM.replace("x1", "p1").replace("0.01", "0.02"),
        POWERS + SUMS.replace("u1: f64", 'check c ValueError "no"\n          u1: f64'),
        f"{POWERS}\n        m: f64 = sin p\n{SUMS.replace('r1: f64 = 0.0', 'r1: f64 = m')}",
    ],
    ids=[
        "another number of trips",
        "another start",
        "another step",
        "starts from the first",
        "another condition",
        "may fail",
        "needs the first before",
    ],
)
def test_loops_that_stay_apart(code: str) -> None:
    f = program(code, "(p, p1, s1)")
    assert merge_loops(f) is f


def test_loops_that_only_count_alike_stay_apart() -> None:
    first = """
        c0: i64, p: f64 = loop (m0: i64 = 0, q: f64 = a) for i < k do
          n0: i64 = add m0 2
          f0: f64 = convert n0
          t: f64 = mul q f0
          in (n0, t)
    """
    second = """
        c1: i64, p1: f64 = loop (m1: i64 = 0, q1: f64 = b) for i1 < k do
          n1: i64 = add m1 2
          f1: f64 = convert n1
          t1: f64 = sub q1 f1
          in (n1, t1)
    """
    f = program(first + second, "(c0, p, c1, p1)")
    assert merge_loops(f) is f
