"""Loops with index tests in two versions: the same results and the same errors, with the tests gone where one covers all."""

import numpy as np
import pytest

from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import At, For, If, Index
from tapeless.ir.parser import parse_function
from tapeless.ir.walk import all_stms
from tapeless.passes.bounds.version import version_loops
from tapeless.passes.check.verify import verify

GATHER = """
def f(x: [n]f64, start: i64, count: i64, step: i64) -> f64
  r: f64 = loop (s: f64 = 0.0) for i < count do
    j: i64 = mul i {scale}
    k: i64 = add start j
    e: f64 = x[k?]
    t: f64 = add s e
    in t
  in r
"""
DATA = """
def f(x: [n]f64, idx: [m]i64, count: i64) -> f64
  r: f64 = loop (s: f64 = 0.0) for i < count do
    k: i64 = idx[i?]
    e: f64 = x[k?]
    t: f64 = add s e
    in t
  in r
"""


def flags(body):
    return [a.check for s in all_stms(body) if isinstance(s.exp, Index) for a in s.exp.axes if isinstance(a, At)]


def outcome(function, args):
    try:
        return evaluate(function, args)
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("scale", [1, 2, -1, -3])
def test_affine_positions(scale):
    before = parse_function(GATHER.format(scale=scale))
    after = version_loops(before)
    verify(after)
    (choice,) = [s.exp for s in after.body.stms if isinstance(s.exp, If)]
    assert flags(choice.then) == [False]
    assert flags(choice.orelse) == [True]
    x = np.arange(7.0)
    for start in (-8, -7, -1, 0, 1, 5, 6, 7, 2**62, -(2**63)):
        for count in (-1, 0, 1, 2, 3, 4, 7, 8):
            assert outcome(before, [x, start, count, 0]) == outcome(after, [x, start, count, 0])


def test_positions_from_data_keep_their_test():
    after = version_loops(parse_function(DATA))
    verify(after)
    (choice,) = [s.exp for s in after.body.stms if isinstance(s.exp, If)]
    assert flags(choice.then) == [False, True]


def test_a_loop_without_tests_stays_one_loop():
    text = GATHER.format(scale=1).replace("x[k?]", "x[k]")
    after = version_loops(parse_function(text))
    assert sum(isinstance(s.exp, For) for s in all_stms(after.body)) == 1
