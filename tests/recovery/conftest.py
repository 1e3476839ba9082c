"""As in the tests of gradients, LLVM's optimiser is left out unless a test takes the fixture `optimized`.

Under a budget each call may get a program of its own. Tests that go through many calls have one for all of them, unless
they take the fixture `programs_for_calls`.
"""

import pytest

from tapeless.runtime import budgets
from tests.gradients.conftest import _without_llvm_passes, optimized  # noqa: F401


@pytest.fixture
def programs_for_calls() -> None:
    """As users have it."""


@pytest.fixture(autouse=True)
def _one_program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "programs_for_calls" not in request.fixturenames:
        monkeypatch.setattr(budgets, "MOST_PROGRAMS", 0)
