"""Branches on one condition: when the second joins the first."""

from __future__ import annotations

from functools import partial

import pytest

from tapeless.passes.tidy.branches import merge_branches
from tests.passes.programs import after, program

merged = partial(after, merge_branches)

FIRST = "t: f64 = if c then u: f64 = sin a; in u else v: f64 = cos a; in v"


def test_the_second_joins_the_first() -> None:
    code = f"""
        {FIRST}
        m: f64 = mul t 2.0
        p: f64, q: f64 = if c then u1: f64 = exp b; in (u1, a) else v1: f64 = sin b; in (b, v1)
    """
    assert merged(code, "(m, p, q)") == (
        "t: f64, p: f64, q: f64 = if c then u: f64 = sin a u1: f64 = exp b in (u, u1, a)"
        " else v: f64 = cos a v1: f64 = sin b in (v, b, v1) m: f64 = mul t 2.0 in (m, p, q)"
    )


def test_what_the_second_needs_comes_along() -> None:
    code = f"""
        {FIRST}
        m: f64 = mul t 2.0
        h: f64 = mul b 2.0
        p: f64 = if c then u1: f64 = exp h; q: f64 = add u1 t; in q else (t)
    """
    assert merged(code, "(m, p)") == (
        "h: f64 = mul b 2.0 t: f64, p: f64 = if c then u: f64 = sin a u1: f64 = exp h q: f64 = add u1 u in (u, q)"
        " else v: f64 = cos a in (v, v) m: f64 = mul t 2.0 in (m, p)"
    )


def test_the_third_joins_the_second_where_it_cannot_join_the_first() -> None:
    code = f"""
        {FIRST}
        m: f64 = mul t 2.0
        p: f64 = if c then u1: f64 = exp m; in u1 else (b)
        q: f64 = if c then u2: f64 = sin m; in u2 else (m)
    """
    assert merged(code, "(p, q)").count("if c") == 2


@pytest.mark.parametrize(
    "code",
    [
        f"{FIRST}\n        m: f64 = mul t 2.0\n        p: f64 = if c then u1: f64 = exp m; in u1 else (b)",
        f"{FIRST}\n        l: bool = not c\n        p: f64 = if l then u1: f64 = exp b; in u1 else (b)",
        f'{FIRST}\n        p: f64 = if c then check c ValueError "no"; in a else (b)',
        f"{FIRST}\n        e: f64 = x[j?]\n        p: f64 = if c then f: f64 = x[j]; in f else (b)",
    ],
    ids=["uses what is made of the first", "another condition", "may fail", "relies on a test between them"],
)
def test_branches_that_stay_apart(code: str) -> None:
    f = program(code, "(t, p)")
    assert merge_branches(f) is f
