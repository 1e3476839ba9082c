"""Of a test that is sampled, the cases that only `make test-all` runs go without LLVM's optimiser: the sample has it."""

from functools import partial

import pytest

from tapeless.api import function
from tapeless.runtime.compile import compile_specs


@pytest.fixture(autouse=True)
def _unsampled_are_quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("exhaustive"):
        monkeypatch.setattr(function, "compile_specs", partial(compile_specs, level=0))
