"""Functions typed into the plain prompt of Python before 3.13: their source comes from the history of the prompt, or not at all."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import tapeless as tp


@pytest.fixture
def prompt(monkeypatch):
    """Runs statements as the prompt does, and keeps their lines as readline does: not the empty ones."""
    history: list[str] = ["def f(x):", "    return -x", "import numpy as np", "f("]  # of other days
    names = {"tp": tp}
    stand_in = SimpleNamespace(
        get_current_history_length=lambda: len(history), get_history_item=lambda k: history[k - 1]
    )
    monkeypatch.setitem(sys.modules, "readline", stand_in)

    def run(text):
        history.extend(line for line in text.split("\n") if line)
        exec(compile(text, "<stdin>", "single"), names)
        return names

    return run, history


def test_the_last_that_was_typed(prompt):
    run, _ = prompt
    run("def f(x):\n    y = x * x\n    return y\n")
    names = run("@tp.function\ndef g(x):\n    if x > 1:\n        return f(x)\n    else:\n        return x\n")
    assert tp.grad(names["f"])(3.0) == 6.0
    assert names["g"](2.0) == 4.0
    run("f = lambda x: x + 1; k = lambda x: x * 7.5")
    assert tp.grad(names["k"])(2.0) == 7.5
    assert names["g"](2.0) == 3.0
    names = run("class Line:\n    def at(self, x):\n        return 2.0 * x\n")
    assert tp.grad(names["Line"]().at)(1.0) == 2.0
    run("def f(x): return x ** 3\n")
    assert tp.grad(names["f"])(2.0) == 12.0


def test_pasted_in_one_piece(prompt):
    run, history = prompt
    names = run("def f(x):\n    return x * 5.0\n")
    del history[-2:]
    history.append("def f(x):\n    return x * 5.0\n")
    assert tp.grad(names["f"])(2.0) == 5.0


def test_what_the_history_has_otherwise(prompt):
    run, history = prompt
    names = run("def f(x):\n    return x * 5.0\n")
    history[-1] = "    return x * 6.0"
    with pytest.raises(tp.CompileError, match=r"source of 'f' is not available[\s\S]*use Python 3\.13"):
        tp.grad(names["f"])(2.0)
