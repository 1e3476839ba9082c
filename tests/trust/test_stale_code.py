"""What is compiled is what Python would run now: edits, patches, hidden names, replaced code, defaults and closures."""

from __future__ import annotations

import importlib
import linecache
import math
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeless as tp

zero = 0.0
pair = (0.0, 1.0)
listed = [0.0, 1.0]
named = {"a": 0.0}
scale = 2.0
weights = other_weights = np.array([1.0, 2.0])


def copysign_of(x: Any) -> Any:
    return math.copysign(x, zero)


def of_pair(x: Any) -> Any:
    return math.copysign(x, pair[0])


def of_list(x: Any) -> Any:
    return math.copysign(x, listed[0])


def of_dict(x: Any) -> Any:
    return math.copysign(x, named["a"])


def check(f: Any, *args: Any) -> Any:
    """Compiled and plain Python agree."""
    got, wanted = f(*args), f.python(*args)
    assert type(got) is type(wanted)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
    assert np.array_equal(np.signbit(got), np.signbit(wanted))
    return got


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., types.ModuleType]:
    """Imports a module of this text; called again, it edits the file without importing it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(text: str, name: str = "edited", load: bool = True) -> Any:
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        linecache.checkcache(str(path))
        if not load:
            return None
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield make
    for name in ("edited", "again"):
        sys.modules.pop(name, None)


EDITS = [  # what a function was, and what its file says now
    ("def f(x):\n    return x + 1\n", "def f(x):\n    return x + 5000\n"),
    ("def f(x):\n    return x + 1\n", "def f(x):\n    return x - 1\n"),
    ("def f(x, y=1.0):\n    return x + y\n", "\ndef f(x, y=1.0):\n    return x + y\n"),
    ("f = lambda x: x + 1\n", "f = lambda x: x + 2\n"),
    ("g, f = lambda x: x + 1, lambda x: x + 2\n", "g, f = lambda x: x + 2, lambda x: x + 1\n"),
    ("def f(x):\n    return [x, 1.0][0]\n", "def f(x):\n    return [x, 1.0][1]\n"),
    ("def g(x):\n    return x\ndef f(x):\n    return g(x)\n", "def g(x):\n    return -x\ndef f(x):\n    return g(x)\n"),
    ("def f(x):\n    h = lambda t: t + 1\n    return h(x)\n", "def f(x):\n    h = lambda t: t + 2\n    return h(x)\n"),
    ("def f(x):\n    return x + 0.0\n", "def f(x):\n    return x + -0.0\n"),
    ("def f(x):\n    return x * True\n", "def f(x):\n    return x * 1\n"),
    ("def f(x):\n    return x + 1\n", "x = 1\n"),
    ("def f(x):\n    return x + 1\n", "def f(x):\n    return x + (\n"),
    ("def f(x):\n    return x + 1\n", "  )\ndef f(x:\n"),
]


@pytest.mark.parametrize(("was", "now"), EDITS)
def test_w1_a_file_edited_after_import(module: Any, was: str, now: str) -> None:
    f = module(was).f
    module(now, load=False)
    with pytest.raises(tp.CompileError) as caught:
        tp.function(f)(1.0)
    assert caught.value.code == "TP107"
    with pytest.raises(tp.CompileError):
        tp.grad(f)(1.0)


def test_w1_what_was_cached_for_the_edited_text_is_not_taken(module: Any) -> None:
    old, new = EDITS[0]
    assert tp.function(module(new).f)(1.0) == 5001.0  # fills the cache
    f = module(old).f
    module(new, load=False)
    with pytest.raises(tp.CompileError):
        tp.function(f)(1.0)
    assert tp.function(module(new).f)(1.0) == 5001.0


def test_w1_comments_may_change_and_reloading_helps(module: Any) -> None:
    m = module("def f(x):\n    return x + 1  # one\n")
    module("def f(x):\n    return x + 1  # one, as before\n", load=False)
    f = tp.function(m.f)
    assert f(1.0) == 2.0
    module("def f(x):\n    return x + 30000\n", load=False)
    assert f(2.0) == 3.0  # compiled before
    assert tp.function(importlib.reload(m).f)(1.0) == 30001.0


def test_w1_functions_executed_under_the_name_of_a_file(module: Any) -> None:
    m = module("def f(x):\n    return x + 1\n")
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 7\n", m.__file__, "exec"), names)
    with pytest.raises(tp.CompileError) as caught:
        tp.function(names["f"])(1.0)
    assert caught.value.code == "TP107"
    exec(compile("def f(x):\n    return x + 1\n", m.__file__, "exec"), names)  # the very same
    assert tp.function(names["f"])(1.0) == 2.0


SAME = """
from __future__ import annotations
import functools
try:
    import numpy as np
finally:
    pass
def twice(f):
    @functools.wraps(f)
    def g(x):
        return f(x) + f(x)
    return g
@twice
def f(x):
    '''A text.'''
    assert x > 0, "positive"
    return np.sin(x) + np.linalg.norm(np.array([x, 1.0]))
class C:
    __k = 2.0
    def m(x):
        y = C.__k
        return x * y
    n = staticmethod(lambda x: x + 1.0)
def outer(a):
    def inner(x, *, b=(1, -0.0, None)):
        while (x := x - a) > 0.0:
            pass
        return x if x in {1, 2} else x + b[0]
    return inner
g = outer(3.0)
fs = [lambda x: x + 1.0, lambda x: x + 2.0]
"""


def test_w1_what_is_unchanged_is_found(module: Any) -> None:
    m = module(SAME)
    for f in (m.f, *m.fs, m.g.__closure__ and m.fs[0]):
        assert tp.function(f)(1.5) == pytest.approx(f(1.5))
    assert tp.function(m.C.n)(1.5) == 2.5


def asserts(x: float) -> float:
    assert x > 0.25
    return x + 1.0


def test_w1_asserts_that_pytest_has_rewritten() -> None:
    assert tp.function(asserts)(1.0) == 2.0
    for old, new in ((0.25, 0.5), (1.0, 3.0)):
        constants = tuple(new if c == old and isinstance(c, float) else c for c in asserts.__code__.co_consts)
        assert constants != asserts.__code__.co_consts
        other = types.FunctionType(asserts.__code__.replace(co_consts=constants), globals())
        with pytest.raises(tp.CompileError, match="TP107"):
            tp.function(other)(1.0)


def test_i_a_syntax_error_elsewhere_in_the_file(module: Any) -> None:
    f = module("def f(x):\n    return x + 1\n").f
    module("def f(x):\n    return x + 1\n\n\ndef g(:\n", load=False)
    assert tp.function(f)(1.0) == 2.0  # its own text is whole, and still the same


# -- values


@pytest.mark.parametrize(
    ("python", "name", "values"),
    [
        (copysign_of, "zero", [-0.0, 0.0, float("nan"), -0.0]),
        (of_pair, "pair", [(-0.0, 1.0), (0.0, 1.0), (True, 1), (1, 1)]),
        (of_list, "listed", [[-0.0, 1.0], [0.0], (-0.0,)]),
        (of_dict, "named", [{"a": -0.0}, {"a": 0.0, "b": 1.0}]),
    ],
)
def test_w5_signs_of_zero(monkeypatch: pytest.MonkeyPatch, python: Any, name: str, values: list[Any]) -> None:
    f = tp.function(python)
    check(f, 1.5)
    for value in values:
        monkeypatch.setitem(globals(), name, value)
        if not (isinstance(value, float) and math.isnan(value)):
            check(f, 1.5)
        f(1.5)


def test_w5_lists_that_are_written() -> None:
    f = tp.function(of_list)
    for value in (0.0, -0.0, 0, 0.0):
        listed[0] = value
        check(f, 1.5)


kept: Any = (1.0, 2.0)


def give_kept(x: float) -> Any:
    return kept, kept[0] * x


def test_w5_types_of_containers_and_of_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.function(give_kept)
    for value in ((1.0, 2.0), [1.0, 2.0], (1, 2), (True, 2.0), (np.float32(1.0), 2.0), (1.0, (2.0,)), (1.0, [2.0])):
        monkeypatch.setitem(globals(), "kept", value)
        got, wanted = f(3.0), f.python(3.0)
        assert repr(got) == repr(wanted)
    inner = value[1]
    assert isinstance(inner, list)
    inner[0] = -2.0
    assert repr(f(3.0)) == repr(f.python(3.0))


def uses_abs(x: float) -> float:
    return abs(x) + max(x, 1.0)


def uses_library(x: float) -> float:
    return np.sin(x) + math.cos(x)


def solves(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def test_w5_a_global_that_hides_a_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    f, g = tp.function(uses_abs), tp.value_and_grad(uses_abs)
    assert check(f, -3.0) == 4.0 and g(-3.0)[0] == 4.0
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "abs", lambda x: x * 10.0)
        assert check(f, -3.0) == -29.0 and g(-3.0) == (-29.0, 10.0)
    assert check(f, -3.0) == 4.0 and g(-3.0)[0] == 4.0
    with monkeypatch.context() as patch:
        patch.setattr("builtins.max", min)
        assert check(f, -3.0) == 0.0
    assert check(f, -3.0) == 4.0


def test_w5_replaced_functions_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.function(uses_library)
    check(f, 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(np, "sin", np.tan)
        check(f, 0.5)
        patch.setattr(math, "cos", lambda x: x * 3.0)
        check(f, 0.5)
    check(f, 0.5)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "np", types.SimpleNamespace(sin=abs))
        assert f(0.5) == f.python(0.5)
    a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    s = tp.function(solves)
    np.testing.assert_allclose(s(a, b), s.python(a, b))
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: a @ b)
    np.testing.assert_allclose(s(a, b), a @ b)


def raises(x: float) -> float:
    if x > 0.0:
        raise ValueError("positive")
    return x


def test_w5_hidden_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.function(raises)
    with pytest.raises(ValueError, match="positive"):
        f(1.0)
    monkeypatch.setitem(globals(), "ValueError", KeyError)
    with pytest.raises(tp.CompileError):
        f(1.0)


def both_weights(x: float) -> float:
    return x * weights[0] + other_weights[1]


def test_w5_two_names_of_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.function(both_weights)
    check(f, 1.0)
    monkeypatch.setitem(globals(), "other_weights", np.array([5.0, 7.0]))
    check(f, 1.0)
    monkeypatch.setitem(globals(), "weights", globals()["other_weights"])
    check(f, 1.0)
    monkeypatch.setitem(globals(), "other_weights", np.array([50.0, 70.0]))
    check(f, 1.0)


# -- functions


def first(x: float, y: float = 1.0, *, z: float = 10.0) -> float:
    return x + y + z


def second(x: float, y: float = 3.0, *, z: float = 20.0) -> float:
    return x * y - z


def calls_first(x: float) -> float:
    return first(x) + 0.5


def two_defaults(x: float, a: float = 1.0, b: float = 2.0) -> float:
    return x + a * 10.0 + b


def test_replaced_code_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    inlined, own, slope = tp.function(calls_first), tp.function(first), tp.grad(first)
    assert check(inlined, 2.0) == 13.5 and check(own, 2.0) == 13.0 and slope(2.0) == 1.0
    with monkeypatch.context() as patch:
        patch.setattr(first, "__code__", second.__code__)
        assert check(inlined, 2.0) == -7.5 and check(own, 2.0) == -8.0 and slope(2.0) == 1.0
        patch.setattr(first, "__defaults__", (4.0,))
        assert check(inlined, 2.0) == -1.5 and slope(2.0) == 4.0
        patch.setattr(first, "__kwdefaults__", {"z": -1.0})
        assert check(inlined, 2.0) == 9.5
        first.__kwdefaults__["z"] = 1.0
        assert check(inlined, 2.0) == 7.5
    assert check(inlined, 2.0) == 13.5 and check(own, 2.0) == 13.0 and slope(2.0) == 1.0
    g = tp.function(two_defaults)
    assert check(g, 1.0) == 13.0
    monkeypatch.setattr(two_defaults, "__defaults__", (7.0,))
    assert check(g, 1.0, 2.0) == 28.0
    monkeypatch.setattr(two_defaults, "__defaults__", (7.0, 8.0))
    assert check(g, 1.0) == 79.0


def test_cells_of_closures() -> None:
    k, kind = 2.0, first

    def f(x: float) -> float:
        return kind(x) * k

    def change(new: Any, function: Any) -> None:
        nonlocal k, kind
        k, kind = new, function

    g = tp.function(f)
    for new in (2.0, 3.0, -0.0, 0.0, 2, True):
        change(new, first)
        check(g, 1.5)
    change(1.0, second)
    check(g, 1.5)


class Raising:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


foreign = Raising()


def takes_foreign(x: float) -> float:
    return x if foreign is not None else 0.0


def reads_foreign(x: float) -> float:
    return x + foreign.value


def test_i_objects_whose_attributes_raise() -> None:
    assert tp.function(takes_foreign)(2.0) == 2.0
    assert tp.function(lambda x, o: x)(2.0, Raising()) == 2.0
    with pytest.raises(tp.CompileError, match="no value") as caught:
        tp.function(reads_foreign)(2.0)
    assert caught.value.code == "TP103" and caught.value.line


def test_i_memoryviews() -> None:
    for view in (memoryview(bytearray(8)), memoryview(bytes(8)), memoryview(np.ones(3))):
        with pytest.raises(tp.CompileError) as caught:
            tp.function(lambda x: x[0])(view)
        assert caught.value.code != "TP900"
