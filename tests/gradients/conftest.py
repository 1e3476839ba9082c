"""Derivatives are many small programs, and nearly all of their time is LLVM's optimiser: it is left out here.

Tests that take the fixture `optimized` have it. Compiled code serves again within a test, but in no other test."""

from functools import partial
from typing import Any

import pytest

from tapeless.api import function, shared
from tapeless.runtime.compile import compile_specs


@pytest.fixture
def optimized() -> None:
    """For tests of code as it is shipped."""


@pytest.fixture(autouse=True)
def _without_llvm_passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_place", Tables(shared._place).place)
    if "optimized" not in request.fixturenames:
        monkeypatch.setattr(function, "compile_specs", partial(compile_specs, level=0))


class Tables:
    """A new table for each one in which compiled code is kept."""

    def __init__(self, usual: Any) -> None:
        self.usual = usual
        self.new: dict[int, tuple[Any, shared.Table]] = {}  # the first keeps its id

    def place(self, of: Any) -> Any:
        found = self.usual(of)
        if found is None:
            return None
        table, before = found
        return self.new.setdefault(id(table), (table, shared.Table()))[1], before
