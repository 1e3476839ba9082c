"""Derivatives of generated loops, of first, second and third order, are the same after the passes for a GPU: by the interpreter of Core.

TAPELESS_FUZZ_EXAMPLES says how many programs each test draws. The slow test draws new programs in every run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.interp.evaluate import evaluate
from tapeless.ir.target import Target
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import finished
from tapeless.testing.nests import Nest, nests
from tapeless.testing.stages import leaves_of, parameters_of
from tests.fuzz.drawn import drawn

CLOSE = 1e-8  # relative to the largest entry: sums go in another order
LARGE = 1e12
TRIPS = (0, 1, 3, 9)


def differs(nest: Nest, number: int) -> str:
    f = nest.load()
    g = tp.grad(f, (0, 2))
    for _ in range(number % 3):
        g = tp.grad(partial(squares, g), (0, 2))
    traced = trace(g.python, nest.arguments(1))
    core = check_in_place(finished(traced.core, target=Target.ptx))[0]
    verify(core)
    for n in TRIPS:
        results = []
        for stage in (traced.core, core):
            values = parameters_of(traced, leaves_of(nest.arguments(n)))
            given = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results.append([np.asarray(r) for r in evaluate(stage, given)])
        for one, other in zip(*results, strict=True):
            size = np.max(np.abs(one), initial=1.0)
            if np.isfinite(size) and size < LARGE and not np.allclose(one, other, rtol=0, atol=CLOSE * size):
                return f"order {number % 3 + 1}, {n} trips: {one} and {other}"
    return ""


def squares(g: Callable[..., Any], x: Any, y: Any, a: Any, w: Any, n: Any, m: Any) -> Any:
    slopes = g(x, y, a, w, n, m)
    return slopes[0] ** 2 + np.sum(slopes[1] ** 2)


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_the_same_nests(part: int) -> None:
    drawn(nests(4), differs, few=6, part=part, refused_at_most=0.3)


@pytest.mark.slow
def test_new_nests() -> None:
    drawn(nests(5), differs, few=60, refused_at_most=0.3)
