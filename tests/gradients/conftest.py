"""Derivatives are many small programs, and nearly all of their time is LLVM's optimiser: it is left out here.

Tests that take the fixture `optimized` have it."""

from functools import partial

import pytest

from tapeless.api import function
from tapeless.runtime.compile import compile_specs


@pytest.fixture
def optimized() -> None:
    """For tests of code as it is shipped."""


@pytest.fixture(autouse=True)
def _without_llvm_passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, compiled_anew: None) -> None:
    if "optimized" not in request.fixturenames:
        monkeypatch.setattr(function, "compile_specs", partial(compile_specs, level=0))
