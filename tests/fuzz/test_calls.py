"""Programs that call any function of the table of the compiler agree with plain Python, and so do their derivatives.

What is in the table is in the generator: a function without an example that runs fails a test. TAPELESS_FUZZ_EXAMPLES says how many programs
each test draws. The slow tests draw new programs in every run.
"""

import pytest

from tests.fuzz.calls import Calls, calls
from tests.fuzz.drawn import drawn
from tests.fuzz.examples import NAMES, has_example
from tests.fuzz.judges import slopes_differ, values_differ
from tests.quick import unoptimized  # noqa: F401  (for derivatives)


def test_every_function_has_an_example() -> None:
    assert [n for n in NAMES if not has_example(n)] == []


def test_wrong_slopes_are_seen() -> None:
    wrong = Calls("def f(x):\n    return (tp.stop_gradient(x) * x,)\n", (("x", 1.5),), ())
    assert "differences" in slopes_differ(wrong, 0)


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(4))
def test_values_of_the_same_programs(part: int) -> None:
    drawn(calls(), values_differ, few=10, part=part, refused_at_most=0.4)


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(4))
def test_slopes_of_the_same_programs(part: int) -> None:
    drawn(calls(2), slopes_differ, few=5, part=part, refused_at_most=0.5)


@pytest.mark.slow
def test_values_of_new_programs() -> None:
    drawn(calls(), values_differ, few=100, refused_at_most=0.4)


@pytest.mark.slow
def test_slopes_of_new_programs() -> None:
    drawn(calls(2), slopes_differ, few=50, refused_at_most=0.5)
