"""Compiled code is found without a trace when nothing that the trace had read has changed, and only then."""

import functools
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import tapeless as tp
from tapeless.frontend.source.marks import Unknown, mark_of
from tapeless.runtime import cache

HELPER = """
from dataclasses import dataclass
from typing import NamedTuple
import functools
import numpy as np

SCALE = 2.0

def plain(x):
    return x * SCALE + 1.0

def logged(function):
    @functools.wraps(function)
    def run(*args):
        return function(*args)
    return run

@logged
def wrapped(x):
    return x * 1.5

@dataclass
class Point:
    x: float
    y: float = 4.0

class Pair(NamedTuple):
    a: float
    b: float = 0.25

class Limits:
    HIGH = 7.0
"""

PROGRAM = """
import math
import numpy as np
import tapeless as tp
import recall_helper as helper
from recall_helper import Limits, Pair, Point, plain

N = 3
MODE = "square"
DTYPE = np.dtype(np.float64)
WEIGHTS = [0.5, 2.0]
TABLE = {"a": 1.25, "b": 3}
POINT = Point(0.5, 0.75)
PAIR = Pair(1.0)
STEP = np.float64(0.125)
ZERO_DIM = np.array(0.5)
DATA = np.array([1.0, 2.0, 3.0])
OTHER = np.array([2.0, 3.0, 4.0])

@tp.function
def compiled(x):
    return x * 0.5

@tp.custom_vjp
def custom(x):
    return x * x

def forward(x):
    return x * x, x

def backward(x, adj):
    return (2.0 * x * adj,)

custom.defvjp(forward, backward)

def row(x, k):
    return x * k

mapped = tp.vmap(row, (0, None))
slope = tp.grad(lambda x, y: x * x * y, argnums=0)

def make(c):
    local = c * 2

    def f(x, k=1.5, *, flag=2.5):
        point = Point(x)
        pair = Pair(x)
        total = plain(x) + helper.wrapped(x) * N + c * k + flag * local
        if MODE == "square":
            total += x * x
        total += abs(x) + point.y * x + pair.b * x + Limits.HIGH
        total += WEIGHTS[0] + sum(WEIGHTS) * x + TABLE["a"] * TABLE["b"] + len(TABLE)
        total += POINT.x * POINT.y + PAIR.a * PAIR.b + STEP + ZERO_DIM
        total += compiled(x) + custom(x) + np.sum(mapped(DATA, x)) + slope(x, 3.0)
        total += math.sin(x) + np.sum(DATA * OTHER) * x
        total += np.sum(np.zeros(2, DTYPE))
        return total

    return f

f = make(4)
"""


class Session:
    """Modules written, loaded and called as a fresh process would, in a cache of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.texts = {"recall_helper": HELPER, "recall_program": PROGRAM}

    def load(self):
        for name, text in self.texts.items():
            path = self.directory / f"{name}.py"
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("recall_program")

    def edit(self, old: str, new: str) -> None:
        found = [name for name, text in self.texts.items() if old in text]
        assert len(found) == 1, old
        self.texts[found[0]] = self.texts[found[0]].replace(old, new, 1)


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Session(tmp_path)
    for name in ("recall_helper", "recall_program"):
        sys.modules.pop(name, None)


def recalled(function, *args, **keywords) -> bool:
    """Whether the code of these arguments was found without a trace."""
    return "trace" not in function.compiled(*args, **keywords).times


def check(python, expect: bool, x: float = 0.7) -> None:
    """Function and gradient agree with plain Python, and come from memory or not."""
    f = tp.function(python)
    assert f(x) == pytest.approx(python(x), rel=1e-12)
    assert recalled(f, x) is expect
    g = tp.value_and_grad(python)
    value, slope = g(x)
    difference = (python(x + 1e-5) - python(x - 1e-5)) / 2e-5
    assert value == pytest.approx(python(x), rel=1e-12)
    assert slope == pytest.approx(difference, rel=1e-6)
    assert recalled(g, x) is expect


CHANGES = {
    "a helper in another file": ("return x * SCALE + 1.0", "return x * SCALE + 2.0"),
    "a global of another file": ("SCALE = 2.0", "SCALE = 2.5"),
    "a wrapped function": ("return x * 1.5", "return x * 1.75"),
    "a global": ("N = 3", "N = 4"),
    "the type of a global": ("N = 3", "N = 3.0"),
    "a text": ('MODE = "square"', 'MODE = "none"'),
    "a dtype": ("np.dtype(np.float64)", "np.dtype(np.float32)"),
    "an item of a list": ("WEIGHTS = [0.5, 2.0]", "WEIGHTS = [0.5, 3.0]"),
    "the length of a list": ("WEIGHTS = [0.5, 2.0]", "WEIGHTS = [0.5, 2.0, 1.0]"),
    "a value of a dict": ('"b": 3}', '"b": 5}'),
    "the keys of a dict": ('"b": 3}', '"b": 3, "c": 1}'),
    "a field of an object": ("Point(0.5, 0.75)", "Point(0.5, 0.875)"),
    "a field of a named tuple": ("PAIR = Pair(1.0)", "PAIR = Pair(1.0, 2.0)"),
    "a NumPy number": ("np.float64(0.125)", "np.float64(0.25)"),
    "an array of no dimension": ("ZERO_DIM = np.array(0.5)", "ZERO_DIM = np.array(0.75)"),
    "a default of a dataclass": ("y: float = 4.0", "y: float = 5.0"),
    "the fields of a dataclass": ("    x: float\n    y: float = 4.0", "    y: float\n    x: float = 4.0"),
    "a default of a named tuple": ("b: float = 0.25", "b: float = 0.5"),
    "an attribute of a class": ("HIGH = 7.0", "HIGH = 8.0"),
    "a closure": ("f = make(4)", "f = make(5)"),
    "a default": ("k=1.5", "k=1.25"),
    "a default of a keyword": ("flag=2.5", "flag=3.5"),
    "the function itself": ("total += x * x\n", "total += 2 * x * x\n"),
    "a name of a built-in function": ("N = 3", "N = 3\nabs = math.cos"),
    "a compiled function": ("return x * 0.5", "return x * 0.25"),
    "a function with a rule": ("def custom(x):\n    return x * x", "def custom(x):\n    return x * x + 0.0"),
    "a mapped function": ("return x * k", "return x * k + 1.0"),
    "the function under a transform": ("x * x * y", "x * x * x * y"),
    "an option of a transform": ("argnums=0", "argnums=1"),
    "the type of a captured array": ("DATA = np.array([1.0, 2.0, 3.0])", "DATA = np.array([1, 2, 3])"),
    "the layout of a captured array": ("DATA = np.array([1.0, 2.0, 3.0])", "DATA = np.arange(6.0)[::2] + 0\nDATA = DATA[::-1]"),
    "the size 1 of a captured array": ("DATA = np.array([1.0, 2.0, 3.0])", "DATA = np.array([1.0])"),
    "the size of a short captured array": ("([1.0, 2.0, 3.0])\nOTHER = np.array([2.0, 3.0, 4.0])", "(4 * [1.5])\nOTHER = np.ones(4)"),
    "two arrays that become one": ("OTHER = np.array([2.0, 3.0, 4.0])", "OTHER = DATA"),
    "the place in the file": ("N = 3", "\n\nN = 3"),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.sampled(10)
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(session, change):
    check(session.load().f, False)
    check(session.load().f, True)
    before = dict(session.texts)
    session.edit(*CHANGES[change])
    check(session.load().f, False)
    check(session.load().f, True)
    session.texts = before
    check(session.load().f, True)


def test_contents_of_captured_arrays_are_no_part_of_the_code(session):
    check(session.load().f, False)
    session.load()
    program = session.load()
    f = tp.function(program.f)
    for _ in range(3):
        assert f(0.7) == pytest.approx(program.f(0.7), rel=1e-12)
        assert recalled(f, 0.7)
        program.DATA = program.DATA + 1.0
        program.OTHER[0] += 1.0


@pytest.mark.thorough
def test_what_is_replaced_after_the_import_is_noticed(session):
    check(session.load().f, False)
    program = session.load()
    program.helper.wrapped = lambda x: x * 9.0
    check(program.f, False)
    program = session.load()
    program.helper.plain = None  # not what the program calls: it has its own name for it
    check(program.f, True)
    program = session.load()
    program.plain = program.math.sqrt
    check(program.f, False)
    program = session.load()
    program.helper.wrapped.__wrapped__.__defaults__ = (1.0,)
    check(program.f, False)


@pytest.mark.thorough
def test_a_change_after_a_recall_is_noticed(session):
    check(session.load().f, False)
    program = session.load()
    f = tp.function(program.f)
    assert f(0.7) == pytest.approx(program.f(0.7)) and recalled(f, 0.7)
    for name, value in (("N", 7), ("MODE", "none"), ("plain", lambda x: x + 4.0), ("POINT", program.Point(1.0, 2.0))):
        setattr(program, name, value)
        assert f(0.7) == pytest.approx(program.f(0.7), rel=1e-12), name
    program.WEIGHTS.append(5.0)
    assert f(0.7) == pytest.approx(program.f(0.7), rel=1e-12)
    program.f.__defaults__ = (3.25,)
    assert f(0.7) == pytest.approx(program.f(0.7), rel=1e-12)


def test_a_source_edited_under_a_loaded_module_is_refused(session):
    """The file does not say what the function does: neither that text nor what is recalled of the other will do."""
    session.load()
    program = session.load()
    check(program.f, False)
    path = session.directory / "recall_program.py"
    path.write_text(PROGRAM.replace("total += x * x\n", "total += 3 * x * x\n"), encoding="utf-8")
    assert tp.function(program.f)(0.7) == pytest.approx(program.f(0.7))  # compiled before
    with pytest.raises(tp.CompileError, match="TP107"):
        tp.function(program.f)(np.float32(0.7))


def test_arguments_decide(session):
    program = session.load()
    python = program.row
    for args in ((2.0, 3.0), (2.0, 3), (np.ones(3), 3.0), (np.ones(1), 3.0), (np.ones((2, 2)), 3.0)):
        first = tp.function(session.load().row)
        np.testing.assert_array_equal(first(*args), python(*args))
        assert not recalled(first, *args)
        again = tp.function(session.load().row)
        np.testing.assert_array_equal(again(*args), python(*args))
        assert recalled(again, *args)
    assert not recalled(tp.function(session.load().row), 2.0, k=3.0)


@pytest.mark.parametrize("options", [{"fastmath": True}, {"unsafe": True}, {"check": True}, {"debug_nans": True}])
def test_options_decide(session, options):
    assert not recalled(tp.function(session.load().row), 2.0, 3.0)
    assert not recalled(tp.function(session.load().row, **options), 2.0, 3.0)
    assert recalled(tp.function(session.load().row, **options), 2.0, 3.0)
    assert recalled(tp.function(session.load().row), 2.0, 3.0)


def test_transforms_are_told_apart(session):
    python = session.load().row
    assert tp.grad(python)(2.0, 3.0) == 3.0
    assert tp.grad(python, argnums=1)(2.0, 3.0) == 2.0
    assert tp.grad(python, argnums=(0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert tp.value_and_grad(python)(2.0, 3.0) == (6.0, 3.0)
    assert tp.jacfwd(python)(2.0, 3.0) == 3.0
    assert tp.jvp(python, (2.0, 3.0), (1.0, 0.0)) == (6.0, 3.0)
    for k, expected in ((0, 3.0), (1, 2.0), ((0, 1), (3.0, 2.0))):
        g = tp.grad(session.load().row, argnums=k)
        assert g(2.0, 3.0) == expected and recalled(g, 2.0, 3.0)


ARGUMENTS = '''
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import tapeless as tp

@dataclass
class State:
    x: float
    v: float

class Both(NamedTuple):
    first: float
    rest: tuple

def inner(x):
    return x * 2.0

def f(state, how, both):
    return State(how(state.x), state.v), {"a": both.first, "b": [both.rest[0]]}, Both(1.0, (state.x,)), None, "text"

def f_inner():
    return inner
'''  # fmt: skip


def test_containers_and_functions_as_arguments(session):
    session.texts["recall_program"] = ARGUMENTS
    for expect in (False, True):
        program = session.load()
        args = (program.State(2.0, 3.0), program.inner, program.Both(1.0, (np.ones(3),)))
        f = tp.function(program.f)
        state, named, both, none, text = f(*args)
        assert type(state) is program.State and (state.x, state.v) == (4.0, 3.0)
        assert named["a"] == 1.0 and np.array_equal(named["b"][0], np.ones(3))
        assert type(both) is program.Both and both.rest == (2.0,)
        assert none is None and text == "text"
        assert recalled(f, *args) is expect
    session.edit("return x * 2.0", "return x * 3.0")
    program = session.load()
    f = tp.function(program.f)
    args = (program.State(2.0, 3.0), program.inner, program.Both(1.0, (np.ones(3),)))
    assert f(*args)[0].x == 6.0 and not recalled(f, *args)
    session.edit("    x: float\n    v: float", "    v: float\n    x: float")
    program = session.load()
    f = tp.function(program.f)
    args = (program.State(3.0, 2.0), program.inner, program.Both(1.0, (np.ones(3),)))
    assert (f(*args)[0].x, f(*args)[0].v) == (program.f(*args)[0].x, program.f(*args)[0].v)
    assert not recalled(f, *args)


WRITING = '''
import numpy as np
A = np.zeros(4)
B = np.zeros(4)
def f(x, i):
    A[i] = x
    return A[0] + B[0]
'''  # fmt: skip


def test_written_arrays_of_the_surroundings(session):
    session.texts["recall_program"] = WRITING
    for expect in (False, True):
        program = session.load()
        f = tp.function(program.f)
        assert f(5.0, 0) == 5.0 and program.A[0] == 5.0 and program.B[0] == 0.0
        assert recalled(f, 5.0, 0) is expect
        with pytest.raises(IndexError, match=r"recall_program\.py:6"):
            f(5.0, 9)
    session.edit("B = np.zeros(4)", "B = A")
    program = session.load()
    f = tp.function(program.f)
    assert f(5.0, 0) == 10.0 and not recalled(f, 5.0, 0)
    session.edit("A = np.zeros(4)", "\nA = np.zeros(4)")
    with pytest.raises(IndexError, match=r"recall_program\.py:7"):
        tp.function(session.load().f)(5.0, 9)


def test_looking_inside_after_a_recall(session):
    traced = tp.function(session.load().f)
    texts = {stage: traced.ir(0.7, stage=stage) for stage in ("core", "optimized", "loops", "llvm")}
    again = tp.function(session.load().f)
    again(0.7)
    assert recalled(again, 0.7)
    for stage, text in texts.items():
        assert re.sub(r"0x[0-9a-f]+", "", again.ir(0.7, stage=stage)) == re.sub(r"0x[0-9a-f]+", "", text)
    assert str(tp.function(session.load().f).explain(0.7))


@pytest.mark.thorough
def test_many_closures_of_one_function(session):
    for expect in (False, True):
        make = session.load().make
        for c in range(6):
            f = tp.function(make(c))
            assert f(0.5) == pytest.approx(make(c)(0.5))
            assert recalled(f, 0.5) is expect


@pytest.mark.sampled(3)
@pytest.mark.parametrize("damage", [b"", b"nonsense", cache.FORMAT + b"x" * 100])
def test_damaged_memories_do_not_matter(session, damage):
    check(session.load().f, False)
    for path in (session.directory / "cache").glob("*/*.trace"):
        path.write_bytes(damage)
    check(session.load().f, False)
    check(session.load().f, True)


def test_memories_that_hold_something_else(session):
    check(session.load().f, False)
    for path in (session.directory / "cache").glob("*/*.trace"):
        for wrong in ({"not": "a memory"}, ["not a memory"], []):
            cache.store(path.parent.name + path.stem, wrong, cache.TRACE)
        cache.store(path.parent.name + path.stem, ["neither"], cache.TRACE)
    check(session.load().f, False)
    check(session.load().f, True)


def test_code_that_is_gone_is_compiled_again(session):
    check(session.load().f, False)
    for path in (session.directory / "cache").glob("*/*.bin"):
        path.unlink()
    check(session.load().f, False)
    check(session.load().f, True)


class Opaque:
    value = 3.0


THING = Opaque()


def reads_an_object(x):
    return x * THING.value


def test_what_cannot_be_recognised_is_traced(session):
    for _ in range(2):
        f = tp.function(reads_an_object)
        assert f(2.0) == 6.0
        assert not recalled(f, 2.0)


def test_local_classes_are_traced(session):
    from typing import NamedTuple

    class Local(NamedTuple):
        a: float

    def f(x):
        return Local(x + 1.0)

    for _ in range(2):
        g = tp.function(f)
        assert type(g(1.0)) is Local
        assert not recalled(g, 1.0)


@pytest.mark.thorough
def test_a_fresh_process_recalls(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import json, numpy as np, tapeless as tp\n"
        "def f(x):\n    return np.sum(np.sin(x) * x[2])\n"
        "g = tp.value_and_grad(f)\nx = np.linspace(0.0, 1.0, 5)\n"
        "value, slope = g(x)\n"
        "try:\n    g(x[:2])\nexcept IndexError as problem:\n    said = str(problem)\n"
        "print(json.dumps([list(g.compiled(x).times), value, list(slope), said]))\n",
        encoding="utf-8",
    )
    source = Path(tp.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source), "TAPELESS_CACHE_DIR": str(tmp_path / "cache")}
    run = functools.partial(
        subprocess.run,
        [sys.executable, program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    first, second = (json.loads(run().stdout) for _ in range(2))
    assert "trace" in first[0] and "trace" not in second[0]
    assert first[1:] == second[1:]
    assert "program.py:3" in second[3]


def test_distributions_are_recognised():
    """As SciPy's, and only those."""
    assert mark_of(stats.norm) == mark_of(stats.norm) != mark_of(stats.gamma)
    with pytest.raises(Unknown):
        mark_of(type(stats.norm)(name="norm"))
