"""The in-place check: no array is used after it was consumed, and copies appear only where they must."""

import numpy as np
import pytest

from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import Copy
from tapeless.ir.parser import parse_function
from tapeless.ir.walk import all_stms
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.tidy.dce import dce
from tests.passes.programs import random_arguments, random_function


def copies(text):
    function, reported = check_in_place(parse_function(text))
    inserted = sum(isinstance(s.exp, Copy) for s in all_stms(function.body))
    return inserted, [r.reason for r in reported]


def test_a_fresh_array_is_updated_in_place():
    text = """
def f(n: i64) -> [8]f64
  a: [8]f64 = full [8] 0.0
  b: [8]f64 = update a[0] = 1.0
  in b
"""
    assert copies(text) == (0, [])


def test_an_argument_that_is_not_written_is_copied():
    text = """
def f(x: [8]f64) -> [8]f64
  b: [8]f64 = update x[0] = 1.0
  in b
"""
    assert copies(text) == (1, ["it is not this function's to overwrite"])


def test_an_old_value_that_is_used_later_is_kept():
    text = """
def f(n: i64) -> ([8]f64, [8]f64)
  a: [8]f64 = full [8] 0.0
  b: [8]f64 = update a[0] = 1.0
  in (a, b)
"""
    assert copies(text) == (1, ["its old value is used later"])


def test_overlapping_source_and_target():
    text = """
def f(n: i64) -> [8]f64
  a: [8]f64 = full [8] 0.0
  part: [7]f64 = a[0:+7]
  b: [8]f64 = update a[1:+7] = part
  in b
"""
    assert copies(text) == (1, ["source and target of the assignment overlap"])


def test_an_update_in_one_arm_of_a_branch_in_a_loop_stays_in_place():
    text = """
def f(n: i64, c: bool) -> [8]f64
  a: [8]f64 = full [8] 0.0
  r: [8]f64 = loop (p: [8]f64 = a) for i < n do
    q: [8]f64 = if c then
      u: [8]f64 = update p[0] = 1.0
      in u
    else
      in p
    in q
  in r
"""
    assert copies(text) == (0, [])


def test_two_carried_arrays_from_one_start_do_not_share_memory():
    text = """
def f(n: i64) -> ([8]f64, [8]f64)
  a: [8]f64 = full [8] 0.0
  r: [8]f64, s: [8]f64 = loop (p: [8]f64 = a, q: [8]f64 = a) for i < n do
    u: [8]f64 = update p[0] = 1.0
    v: [8]f64 = update q[1] = 2.0
    in (u, v)
  in (r, s)
"""
    assert copies(text)[0] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_random_programs_never_use_what_was_consumed(start):
    ran = 0
    for seed in range(start, start + 100):
        function = dce(random_function(seed, 12))
        args = random_arguments(seed)
        try:
            expected = evaluate(function, args)
        except Exception:
            continue  # the program itself raises
        got = evaluate(check_in_place(function)[0], args, consume=True)
        for x, y in zip(expected, got):
            np.testing.assert_array_equal(x, y)
        ran += 1
    assert ran > 50
