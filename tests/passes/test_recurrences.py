"""Loops that carry numbers linear in what they were: by a scan, where nothing is done twice for it."""

from __future__ import annotations

import numpy as np

from tapeless.ir.core import If, Sweep
from tapeless.ir.walk import all_stms
from tapeless.passes.check.verify import verify
from tapeless.passes.parallel.device_loops import free_loops
from tests.passes.programs import outcome, program

ADDING = """
z0: [4]f64 = full [4] 0.0
r: [4]f64, final: f64 = with_acc z0 (\\(r_acc: acc<add, [4]f64>) ->
  last: f64 = loop (v: f64 = b) for i < n do
    m: f64 = loop (m0: f64 = 0.5) for q < 3 do
      e: f64 = y[i]
      t: f64 = mul e 0.25
      m1: f64 = add m0 t
      update_acc r_acc[q] = e
      in m1
    p: f64 = mul v 0.5
    w1: f64 = add p m
    in w1
  in last)
"""


def test_what_is_added_on_the_way_is_added_once() -> None:
    f = program(ADDING, "(r, final)")
    g = free_loops(f)
    verify(g)
    assert any(isinstance(s.exp, Sweep) and s.exp.scans for s in all_stms(g.body))
    assert any(isinstance(s.exp, If) for s in all_stms(g.body))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=70), rng.normal(size=70), rng.normal(size=(70, 3)), rng.normal(size=4)]
    args = [*arrays, np.int64(1), np.int64(2), 0.3, 0.7, np.bool_(True), np.float32(1), np.complex128(1j)]
    (error, before), (new_error, after) = outcome(f, args), outcome(g, args)
    assert not error and not new_error
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
