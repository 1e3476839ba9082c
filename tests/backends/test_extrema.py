"""Extrema in vectors: the instruction of the processor with one comparison, right for NaN and for both zeros."""

import platform
import re

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm.host import features, host
from tapeless.ops.table import TABLE

EXTREMA = [np.minimum, np.maximum, np.fmin, np.fmax]
CORNERS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -2.5]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("extremum", EXTREMA, ids=lambda f: f.__name__)
def test_corners(extremum: np.ufunc, dtype: type) -> None:
    corners = np.array(CORNERS, dtype)
    a, b = (m.ravel() for m in np.meshgrid(corners, corners))
    found = tp.function(lambda a, b: extremum(a, b))(a, b)
    expected = TABLE[extremum.__name__].numpy(a, b)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.skipif(platform.machine() != "x86_64" or not host().vector_width, reason="other instructions")
@pytest.mark.parametrize("extremum", EXTREMA, ids=lambda f: f.__name__)
def test_instruction_of_the_processor(extremum: np.ufunc) -> None:
    text = tp.function(lambda a, b: extremum(a, b)).ir(np.ones(64), np.ones(64), stage="asm")
    extrema, comparisons = (len(re.findall(name, text)) for name in (r"\bv(?:min|max)pd", r"\bvcmp\w*pd"))
    assert extrema > 0
    assert comparisons <= extrema


def running(x, y):
    for k in range(len(y)):
        x = np.minimum(x, y[k])
    return x


@pytest.mark.skipif(not features().get("avx512f"), reason="other instructions")
def test_cells_that_keep_their_value_are_not_written() -> None:
    """Note [Extrema in place]."""
    text = tp.function(running).ir(np.ones(64), np.ones(5), stage="asm")
    assert re.search(r"vmovupd\s+%zmm\d+, .*\{%k\d\}", text)
    x, y = np.array([*CORNERS, 3.0]), np.array([2.0, np.nan, -3.0])
    for end in range(4):
        np.testing.assert_array_equal(tp.function(running)(x, y[:end]), running(x, y[:end]))
