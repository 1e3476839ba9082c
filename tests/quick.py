"""Many small programs, and most of their time would be LLVM's optimiser: tests that import `unoptimized` go without."""

from functools import partial

import pytest

from tapeless.api import function
from tapeless.runtime.compile import compile_specs


def without_optimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "compile_specs", partial(compile_specs, level=0))


@pytest.fixture(autouse=True)
def unoptimized(monkeypatch: pytest.MonkeyPatch) -> None:
    without_optimiser(monkeypatch)
