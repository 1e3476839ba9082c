"""A pass reads an operation's row: no module outside `ops` lists operations by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tapeless
from tapeless.ops.table import TABLE

ROOT = Path(tapeless.__file__).parent
MANY = 3
LITERALS = {ast.Constant, ast.Tuple, ast.Set, ast.List, ast.Dict}
# Where names are keys of code, not of facts: a module or a folder, and why.
ALLOWED = {
    "backends/llvm": "instructions of each row",
    "frontend/python/builtin_functions.py": "functions of the module operator",
    "frontend/data/overflow.py": "a test of each row that may overflow",
    "frontend/python/pymath.py": "functions of math and cmath",
    "frontend/numpy/ufuncs.py": "functions of NumPy",
    "lower/ir/interp/plain.py": "rows on Python's integers",
    "passes/tidy/algebra.py": "a rule of each row",
    "passes/tidy/scales.py": "a rule of each row that hands factors on",
    "passes/bounds/numbers.py": "rows on affine forms",
    "prelude/sequences.py": "words of a message of NumPy",
    "symbolic/formulas": "a formula of each row, and how it is written",
}


def strings(node: ast.AST | None) -> list[str]:
    """The words in a literal; of a dictionary only its keys."""
    match node:
        case ast.Constant(value=str(text)):
            return text.split()
        case ast.Tuple(elts=items) | ast.Set(elts=items) | ast.List(elts=items) | ast.Dict(keys=items):
            return [word for item in items for word in strings(item)]
    return []


def lists_of_names(source: str) -> Iterator[ast.AST]:
    """Literals that have three or more names of rows, and little else."""
    literals = (n for n in ast.walk(ast.parse(source)) if type(n) in LITERALS)
    for node in literals:
        words = strings(node)
        names = {w for w in words if w in TABLE}
        if len(names) >= MANY and 2 * len(names) >= len(words):
            yield node


def allowed(path: Path) -> bool:
    place = path.relative_to(ROOT)
    return any(place.is_relative_to(a) for a in ALLOWED)


def test_no_list_of_operations_outside_ops():
    paths = [p for p in ROOT.rglob("*.py") if not p.is_relative_to(ROOT / "ops") and not allowed(p)]
    assert len(paths) > 100
    found = [f"{p}:{node.lineno}" for p in paths for node in lists_of_names(p.read_text())]
    assert found == []


def test_what_is_allowed_is_needed():
    for place in ALLOWED:
        path = ROOT / place
        files = list(path.rglob("*.py")) if path.is_dir() else [path]
        assert any(node for p in files for node in lists_of_names(p.read_text())), place


def test_what_counts_as_a_list():
    assert all(
        any(lists_of_names(text))
        for text in ('X = "add sub mul".split()', "{('add', 0): 1, ('sub', 1): 2, ('mul', 0): 3}")
    )
    assert not any(lists_of_names("if op in ('add', 'sub'): pass"))
    assert not any(lists_of_names("'one or the other, and not both'"))
