"""Messages read right, name the user's line, and what they advise works.

A row of the table is a program that is refused, what the message must say, and the program with the advice followed,
which must compile and agree with Python.
"""

import colorsys
import itertools
import operator
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

import tapeless as tp

X = np.array([1.0, 3.0, 2.0])
A = np.array([[2.0, 0.0], [1.0, 3.0]])
TABLE = [[1.0, 2.0], [3.0, 4.0]]
stats = scipy.stats


@dataclass(frozen=True)
class Advice:
    bad: Callable[..., Any]
    says: tuple[str, ...]
    good: Callable[..., Any]
    args: tuple[Any, ...]
    new_args: tuple[Any, ...] | None = None  # where the advice is to pass something else

    def __str__(self) -> str:
        return self.says[0]


ADVICE: list[Advice] = []


def case(bad, says, good, *args, new_args=None):
    ADVICE.append(Advice(bad, (says,) if isinstance(says, str) else says, good, args, new_args))


def with_names(x, by):
    return x * by


def assigned(x):
    NAMED["b"] = 2.0 * x
    return NAMED["b"]


def own_dict(x):
    d = dict(NAMED)
    d["b"] = 2.0 * x
    return d["b"]


def lengthened(x):
    TABLE.append(x)
    return TABLE[2]


def own_list(x):
    rows = list(TABLE)
    rows.append(x)
    return rows[2]


NAMED = {"a": 1.0}


def padded(x):
    y = np.zeros(len(x) + 2)
    y[1:-1] = x
    return y


def made(x):
    y = np.empty(1)
    y[0] = x
    return y


def bisected(x):
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle < x:
            low = middle
        else:
            high = middle
    return low


def stopped(x):
    breakpoint()
    return x


# library code, shown at the user's call and by the name that users write
case(lambda x: scipy.integrate.romb(x), ("scipy.integrate.romb cannot be compiled: 'try'", "write the sum or the steps as a loop"),
     lambda x: (x[0] + 4 * x[1] + x[2]) / 3, X)  # fmt: skip
case(lambda x: scipy.optimize.brentq(lambda t: t - x, 0, 1),
     ("scipy.optimize.brentq cannot be compiled", "write the iteration as a loop"), bisected, 0.3)  # fmt: skip
case(lambda x: statistics.fmean(x), ("statistics.fmean cannot be compiled", "np.mean"), lambda x: np.mean(x), X)
case(lambda x: x * len(os.getenv("PATH")), ("os.getenv cannot be compiled", "call it outside and pass the result in"),
     lambda x, n: x * n, 2.0, new_args=(2.0, len(os.getenv("PATH"))))  # fmt: skip
case(lambda x: x * time.time(), "time.time cannot be compiled", lambda x, t: x * t, 2.0, new_args=(2.0, time.time()))
case(lambda x: list(itertools.accumulate(x)), "itertools.accumulate cannot be compiled", lambda x: np.cumsum(x), X)
case(lambda n: operator.index(n), "operator.index cannot be compiled", lambda n: n, 3)

# names
case(lambda x: scipy.special.ellipkm1(x), ("scipy.special.ellipkm1 cannot be compiled", "pass the result in"),
     lambda y: y, 0.5, new_args=(scipy.special.ellipkm1(0.5),))  # fmt: skip
case(lambda x: np.summ(x), ("module 'numpy' has no attribute 'summ'", "is it 'sum'?"), lambda x: np.sum(x), X)

# what to write instead
case(lambda x: np.ndarray(1), ("np.ndarray cannot be compiled", "np.empty"), made, 1.0)
case(lambda x: x.shape, ("a float has no attribute 'shape'", "np.shape(...)"), lambda x: np.shape(x), 1.0)
case(lambda x: x.size, ("a float has no attribute 'size'", "np.size(...)"), lambda x: np.size(x), 1.0)
case(lambda x: x.flat[1], ("arrays have no attribute 'flat'", ".ravel()"), lambda x: x.ravel()[1], A)
case(lambda x: x.nbytes, ("'nbytes'", ".size * .itemsize"), lambda x: x.size * x.itemsize, X)
ARRAYS = [np.ones(2), np.zeros(2)]
case(lambda i: ARRAYS[i], ("the index of a list of 2 must be known", "np.array(...)[i]"),
     lambda i: np.array(ARRAYS)[i], 1)  # fmt: skip
RAGGED = [[1.0], [3.0, 4.0]]
case(lambda i: RAGGED[i], ("the index of a list of 2 must be known", "if and elif"),
     lambda i: RAGGED[0] if i == 0 else [RAGGED[1][0]], 1)  # fmt: skip
PAIR = [0, 1]
case(lambda x: (x, 2.0)[PAIR][0], "a tuple is indexed by integers and slices, not by a list of 2",
     lambda x: np.array((x, 2.0))[PAIR][0], 1.0)  # fmt: skip
case(assigned, ("a dict that this function did not make", "dict(...)"), own_dict, 1.0)
case(lengthened, ("a list that this function did not make", "list(...)"), own_list, 1.0)


@pytest.mark.parametrize("row", ADVICE, ids=str)
def test_m_advice(row):
    with pytest.raises(tp.CompileError) as caught:
        tp.function(row.bad)(*row.args)
    text = str(caught.value)
    assert all(part in text for part in row.says), text
    assert caught.value.file == __file__ and caught.value.line, text
    args = row.args if row.new_args is None else row.new_args
    found, expected = tp.function(row.good)(*args), row.good(*args)
    for key in expected if isinstance(expected, dict) else [None]:
        np.testing.assert_allclose(*((found, expected) if key is None else (found[key], expected[key])))


def test_m_breakpoints_are_for_the_plain_function(monkeypatch):
    f = tp.function(stopped)
    with pytest.raises(tp.CompileError, match=r"breakpoint cannot be compiled(?s:.*)f\.python"):
        f(1.0)
    monkeypatch.setattr("sys.breakpointhook", lambda: None)
    assert f.python(1.0) == 1.0


def test_m_what_is_differentiated_is_not_to_be_passed_in():
    with pytest.raises(tp.CompileError, match="would count as a constant"):
        tp.grad(lambda x: scipy.special.ellipkm1(x))(0.5)


def test_m_what_is_wrong_with_a_function_given_to_a_library_is_shown_there():
    def inner(t):
        return t.unknown

    with pytest.raises(tp.CompileError, match="'unknown'") as caught:
        tp.function(lambda x: scipy.optimize.rosen(inner(x)))(X)
    assert caught.value.line == inner.__code__.co_firstlineno + 1


def test_m_library_functions_that_can_be_compiled_are():
    found = tp.function(lambda r: colorsys.rgb_to_yiq(r, 0.5, 0.25))(0.75)
    np.testing.assert_allclose(found, colorsys.rgb_to_yiq(0.75, 0.5, 0.25))


# -- arguments of calls


def two(a, b, *, c=1.0):
    return a + b + c


def positional_only(a, /, b):
    return a + b


@pytest.mark.parametrize(
    "call",
    [lambda f: f(1.0), lambda f: f(), lambda f: f(1.0, 2.0, 3.0), lambda f: f(1.0, 2.0, d=3.0),
     lambda f: f(1.0, 2.0, a=3.0), lambda f: f(b=1.0)],
)  # fmt: skip
@pytest.mark.parametrize("function", [two, positional_only])
def test_m_arguments_that_do_not_fit_raise_what_python_raises(call, function):
    with pytest.raises(TypeError) as python:
        call(function)
    for compiled in (tp.function(function), tp.grad(function), tp.value_and_grad(function)):
        with pytest.raises(TypeError) as found:
            call(compiled)
        if "argnums" not in str(found.value):  # nothing was passed by position
            assert str(python.value) in str(found.value) and isinstance(found.value, tp.CompileError)


def test_m_arguments_by_name_that_are_positional_only():
    with pytest.raises(TypeError, match="positional-only"):
        tp.function(positional_only)(a=1.0, b=2.0)
    with pytest.raises(TypeError, match=r"two\(\) missing 1 required positional argument: 'b'") as caught:
        tp.function(lambda x: two(x))(1.0)
    assert caught.value.line == test_m_arguments_by_name_that_are_positional_only.__code__.co_firstlineno + 4
    for transform in (lambda: tp.jvp(two, (1.0,), (1.0,)), lambda: tp.vjp(two, 1.0), lambda: tp.linearize(two, 1.0)):
        with pytest.raises(TypeError, match="missing 1 required"):
            transform()


def test_m_a_transform_of_vmap_shows_the_function_of_the_user():
    with pytest.raises(tp.CompileError, match="missing 1 required") as caught:
        tp.function(tp.vmap(two))(X)
    assert caught.value.file == __file__


# -- arguments without derivatives


def scaled(x, n):
    return x * x * n


def test_m_integers_are_named_and_the_advice_fits_the_transform():
    for run in (
        lambda: tp.jvp(scaled, (2.0, 3), (1.0, 1)),
        lambda: tp.hvp(scaled, (2.0, 3), (1.0, 1)),
        lambda: tp.linearize(scaled, 2.0, 3)[1](1.0, 1),
    ):
        with pytest.raises(tp.CompileError, match=r"the argument n is an int(?s:.*)close over it") as caught:
            run()
        assert "argnums" not in str(caught.value)
    assert tp.vjp(scaled, 2.0, 3)[1](1.0) == (12.0, None)
    assert tp.jvp(scaled, (2.0, 3), (1.0, 0))[1] == tp.jvp(scaled, (2.0, 3), (1.0, None))[1] == 12.0
    closed = lambda x: scaled(x, 3)
    assert tp.jvp(closed, (2.0,), (1.0,))[1] == 12.0
    assert tp.hvp(closed, (2.0,), (1.0,))[1] == 6.0
    for transform in (tp.grad, tp.jacobian, tp.hessian):
        with pytest.raises(tp.CompileError, match=r"the argument n is an int(?s:.*)argnums, which count from 0"):
            transform(scaled, argnums=1)(2.0, 3)
    assert tp.grad(scaled, argnums=0)(2.0, 3) == 12.0


def test_m_dicts_take_the_last_of_equal_keys():
    f = lambda x: {"a": x, "a": 2.0 * x, **{"b": x}, "b": 5.0}  # noqa: F601
    assert tp.function(f)(1.0) == f(1.0) == {"a": 2.0, "b": 5.0}
