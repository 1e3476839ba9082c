"""np.dstack and its kin."""

import numpy as np
import pytest

from tests.prelude.judged import judge

VECTOR = np.array([0.5, -1.5, 2.0])
MATRIX = np.arange(6.0).reshape(2, 3) - 2.5
CASES = {
    "dstack of vectors": (lambda x: np.dstack([x, 2 * x]), VECTOR),
    "dstack of matrices": (lambda x: np.dstack([x, 2 * x]), MATRIX),
    "atleast_3d of a number": (lambda x: np.atleast_3d(x), 1.5),
    "atleast_3d of a vector": (lambda x: np.atleast_3d(x), VECTOR),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes(name):
    function, *args = CASES[name]
    judge(function, *args)
