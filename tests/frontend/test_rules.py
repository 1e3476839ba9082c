"""The tables of rules are full once `entry` is loaded, and what has no rule is refused with a reason."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tapeless import frontend
from tapeless.frontend.python.rules import EXPRESSIONS, STATEMENTS
from tapeless.frontend.source.fence import REFUSED
from tapeless.frontend.state.handlers import BY_NAME, CALLED, OPERATORS, find_handler

# Parts of other nodes, or newer than the oldest Python that we run on: refused where they are met.
PARTS = {"Starred", "FormattedValue", "TemplateStr", "Interpolation", "TypeAlias"}


@pytest.mark.parametrize("kind, rules", [(ast.expr, EXPRESSIONS), (ast.stmt, STATEMENTS)])
def test_every_node_has_a_rule_or_is_refused(kind, rules):
    nodes = {n for n in kind.__subclasses__() if n.__module__ in ("ast", "_ast")}
    assert len(nodes) > 20
    assert not rules.keys() & REFUSED.keys()
    assert {n.__name__ for n in nodes - rules.keys() - REFUSED.keys()} <= PARTS


def test_entry_loads_all_rules():
    """A module that fills a table must not depend on who else imports it."""
    root = Path(frontend.__path__[0])
    modules = {f"tapeless.frontend.{p.parent.name}.{p.stem}" for p in root.glob("*/*.py") if p.stem != "__init__"}
    command = "import sys, tapeless.frontend.entry; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert modules - set(loaded) == set()


def test_functions_are_found_by_their_object():
    assert find_handler(np.sum) is BY_NAME["np.sum"]
    assert find_handler(tp.map) is OPERATORS["map"]
    assert find_handler(np.add.outer) is not None
    assert find_handler(np.add.reduceat) is not None
    assert find_handler(np.frompyfunc) is None
    assert find_handler([].append) is None


def test_a_value_without_a_rule_cannot_be_called():
    assert {kind.__name__ for kind in CALLED} == {"Builtin", "Closure", "Instance", "Method", "Sequence_", "Static"}
    with pytest.raises(tp.CompileError, match="a float cannot be called"):
        tp.function(lambda x: (x + 1.0)(x))(1.0)
