"""Derivatives are many small programs, and nearly all of their time is LLVM's optimiser: it is left out here."""

from functools import partial

import pytest

from tapeless.api import function
from tapeless.runtime.compile import compile_specs


@pytest.fixture(autouse=True)
def _without_llvm_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "compile_specs", partial(compile_specs, level=0))
