"""What all tests share: a compile cache of their own, sampling of exhaustive tests, and the `golden` fixture.

Takes TAPELESS_UPDATE_GOLDEN=1 from the environment to rewrite golden files instead of comparing with them.
TAPELESS_TEST_DEVICE=cuda runs all functions on a GPU.
Relies on being loaded before any test imports tapeless, so that the cache directory is set in time.
"""

import difflib
import gc
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sampling import mark_unsampled

# Workers of xdist inherit the variable from the process that started them, which alone makes and removes the directory.
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if not IS_WORKER:
    CACHE_DIR = os.environ["TAPELESS_CACHE_DIR"] = tempfile.mkdtemp(prefix="tapeless-tests-")

# The first example of a program compiles it and takes far longer than the others. What a change is judged by is the same
# each time; `make fuzz`, which sets the number of examples, draws new ones.
settings.register_profile("tapeless", deadline=None, derandomize="TAPELESS_FUZZ_EXAMPLES" not in os.environ)
settings.load_profile("tapeless")


if DEVICE := os.environ.get("TAPELESS_TEST_DEVICE"):
    from tapeless.api.function import Function

    assert Function.__init__.__kwdefaults__["device"] == "cpu"
    Function.__init__.__kwdefaults__["device"] = DEVICE


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_unsampled(items)


def pytest_collection_finish() -> None:
    _settle()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or nextitem.path != item.path:
        _settle()


def _settle() -> None:
    """Tests and what their modules hold live to the end: without looking at them, a collection of garbage takes a tenth of
    the time.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    if not IS_WORKER:
        shutil.rmtree(CACHE_DIR, ignore_errors=True)


@dataclass(frozen=True)
class Golden:
    """Compares text with `golden/<name>.txt` in the directory of the test."""

    directory: Path

    def __call__(self, text: str, name: str) -> None:
        self.check(name, text)

    def check(self, name: str, text: str) -> None:
        __tracebackhide__ = True
        path = self.directory / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if os.environ.get("TAPELESS_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists():
            pytest.fail(f"{path} is missing; TAPELESS_UPDATE_GOLDEN=1 writes it.")
        elif (expected := path.read_text(encoding="utf-8")) != text:
            lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "this run", lineterm="")
            pytest.fail("\n".join(lines) + "\n\nIf this run is right, TAPELESS_UPDATE_GOLDEN=1 writes it.")


LEVELS_MATTER = ("api", "backends", "benchmarks", "errors", "fuzz", "runtime", "tools", "trust")


@pytest.fixture(autouse=True)
def less_of_llvm(request: pytest.FixtureRequest) -> None:
    """For cases beyond those of `make test`: what they try does not depend on LLVM's optimiser, which the others have."""
    beyond = any(request.node.get_closest_marker(name) for name in ("thorough", "exhaustive"))
    if beyond and request.path.parent.name not in LEVELS_MATTER:
        from tests.quick import without_optimiser  # imports tapeless

        without_optimiser(request.getfixturevalue("monkeypatch"))


@pytest.fixture
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that change the compiler: code that was compiled before must not serve again."""
    monkeypatch.setattr("tapeless.api.shared._place", lambda function: None)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.path.parent / "golden")
