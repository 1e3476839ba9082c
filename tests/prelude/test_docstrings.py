"""The examples in the docstrings of NumPy and SciPy: compiled, they give what the libraries give or are refused."""

import numpy as np
import pytest

from tests.prelude.docstrings import DEFINED, FUNCTIONS, KNOWN, differs, verdicts
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def cases():
    """The examples of scipy.fft are those of np.fft once more, and take the longest to compile."""
    return [pytest.param(n, marks=pytest.mark.thorough if n.startswith("scipy.fft.") else ()) for n in FUNCTIONS]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", cases())
def test_examples(name):
    wrong = [f"{v.call.text}: {v.problem}" for v in verdicts(name) if v.problem]
    assert not wrong, "\n".join(wrong)


def test_lists_name_functions():
    entries = [e.partition(":")[0] for entries in KNOWN.values() for e in entries]
    assert {*entries, *(name for _, names in DEFINED.values() for name in names)} <= set(FUNCTIONS)


@pytest.mark.parametrize(
    "found, wanted",
    [
        (np.float64(1.0), 1.0),
        (np.ones(2), np.ones(2, np.float32)),
        (np.ones(2), np.ones((2, 1))),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9])),
        (np.array([1, np.nan]), np.array([1, np.inf])),
        ([1, 2], (1, 2)),
        ((1, np.ones(2)), (1, np.zeros(2))),
        (True, 1),
        (None, 0.0),
    ],
)
def test_differences_are_seen(found, wanted):
    assert differs(found, wanted) and not differs(wanted, wanted) and not differs(found, found)
