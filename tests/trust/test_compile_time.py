"""Compile time is linear in the program's text; what grows beyond it is rolled into a loop, or refused at once.

Seconds differ from machine to machine, so most tests count: statements of Core, functions of a size. Those with a clock
only tell a hang. `python -m benchmarks.large` prints the seconds.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.walk import all_stms
from tapeless.testing.sized import SHAPES, module

# sizes that take more than one piece of code, so that runs are handed values
SIZES = {
    "live": 700, "elements": 700, "arguments written": 700, "whole": 500, "mixed": 700, "elifs of three": 120, "loops": 120,
    "over a tuple": 1000, "over ints": 1000, "over mixed": 200, "over a display": 150, "over a zip": 1000,
    "over static use": 150, "comprehension": 100, "sum of a tuple": 5000, "max of items": 200, "captured dict": 300,
}  # fmt: skip


def made(name, n, tmp_path):
    text, arguments, _ = SHAPES[name]
    return module(text(n), Path(tmp_path) / f"sized_{n}.py").f, arguments(n)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SIZES)
def test_h3_large_programs_give_what_python_gives(name, tmp_path):
    f, arguments = made(name, SIZES[name], tmp_path)
    want = f(*[a.copy() if isinstance(a, np.ndarray) else a for a in arguments])
    got = tp.function(f)(*arguments)
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def statements(function, arguments):
    return sum(1 for _ in all_stms(function.compiled(*arguments).traced.core.body))


def test_h3_the_gradient_of_a_chain_of_elifs_is_linear(tmp_path):
    sizes = []
    for n in (30, 60):
        f, arguments = made("elifs of three", n, tmp_path)
        gradient = tp.function(tp.grad(f))
        sizes.append(statements(gradient, arguments))
        for x in (0.5, 7.25, n + 3.0):
            step = 1e-6
            slope = (f(x + step) - f(x - step)) / (2 * step)
            np.testing.assert_allclose(gradient(x), slope, rtol=1e-6)
    assert sizes[1] < 2.5 * sizes[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["over a tuple", "over ints", "over a zip", "sum of a tuple"])
def test_h3_loops_over_long_tuples_of_numbers_are_compiled_once(name, tmp_path):
    few, many = (made(name, n, tmp_path) for n in (5_000, 50_000))
    assert statements(tp.function(few[0]), few[1]) == statements(tp.function(many[0]), many[1])


INTS, FLOATS, BOOLS = tuple(range(-50, 50)), [k * 0.5 - 20 for k in range(100)], (True, False) * 40
SIGNED_ZEROS = (0.0, -0.0) * 50
PAIRS = [(k, k * 0.25) for k in range(100)]


def test_h3_items_keep_their_types_and_values():
    def ints():
        total, last = 0, 0
        for v in INTS:
            total += v // 3
            last = v
        return total, last

    def bools():
        count = 0
        for v in BOOLS:
            if v:
                count += 1
        return count, v

    def zeros(x):
        s = x
        for z in SIGNED_ZEROS:
            s = math_copy(x, z)
        return s

    def math_copy(x, z):
        return np.copysign(x, z)

    def pairs(x):
        for k, w in PAIRS:
            if k > 90:
                break
            x += w * k
        return x, k

    def enumerated():
        n = 0
        for k, (a, b) in enumerate(zip(INTS, FLOATS, strict=False), 5):
            n += k * a
            if b > 20.0:
                n -= 1
        return n

    def numpy_stays_numpy(a):
        s = a[0]
        for v in FLOATS:
            s = s + v * np.float32(2.0)
        return s

    for f, arguments in ((ints, ()), (bools, ()), (zeros, (2.0,)), (pairs, (1.0,)), (enumerated, ())):
        want, got = f(*arguments), tp.function(f)(*arguments)
        assert got == want
        assert repr(got) == repr(want) or isinstance(want, np.generic)
    a = np.ones(3, np.float32)
    assert tp.function(numpy_stays_numpy)(a).dtype == numpy_stays_numpy(a).dtype


WATCHED = [float(k) for k in range(100)]
REPLACED = tuple(range(100))


def test_h3_long_tuples_and_lists_are_watched_as_a_whole():
    def f(x):
        for v in WATCHED:
            x += v
        for v in REPLACED:
            x = x + v
        return x

    compiled = tp.function(f)
    assert compiled(1.0) == f(1.0)
    WATCHED[17] = 1000.0
    assert compiled(1.0) == f(1.0)
    WATCHED.append(0.5)
    assert compiled(1.0) == f(1.0)
    globals()["REPLACED"] = tuple(k + 1 for k in range(100))
    assert compiled(1.0) == f(1.0)
    globals()["REPLACED"] = (*range(99), 0.25)
    assert compiled(1.0) == f(1.0)
    assert len(compiled.compiled(1.0).signature.watches) < 20


def test_h3_functions_that_call_the_next_one_twice_are_compiled_once(tmp_path):
    f, arguments = made("calls twice", 14, tmp_path)
    assert tp.function(f)(*arguments) == pytest.approx(f(*arguments))
    core = tp.function(f).compiled(*arguments).traced.core
    assert sum(1 for g in (*core.calls, core) for _ in all_stms(g.body)) < 2000


def test_h3_copies_of_functions_that_write_are_refused(tmp_path):
    f, arguments = made("writes twice", 14, tmp_path)
    with pytest.raises(tp.CompileError, match=r"copies of the same functions .*f > g0 > g1 > ") as raised:
        tp.function(f)(*arguments)
    assert raised.value.code == "TP116" and raised.value.line
    f, arguments = made("writes twice", 6, tmp_path)
    assert tp.function(f)(*arguments) == pytest.approx(f(np.ones(2)))


def test_h3_the_advice_of_the_refusals_works():
    def over_mixed(x):
        for v in LONG_MIXED:
            x = 0.5 * x + v
        return x

    def over_array(x):
        for v in AS_ARRAY:
            x = 0.5 * x + v
        return x

    with pytest.raises(tp.CompileError, match="over 40,000 items would be unrolled") as raised:
        tp.function(over_mixed)(1.0)
    assert "np.array" in raised.value.hint or "of an array" in raised.value.hint
    assert tp.function(over_array)(1.0) == over_mixed(1.0)


LONG_MIXED = tuple(k if k % 2 else k + 0.5 for k in range(40_000))
AS_ARRAY = np.array(LONG_MIXED)


def in_seconds(limit, name, n, grad=False, head=""):
    code = f"""
        import pathlib, tempfile, tapeless as tp
        from tapeless.testing.sized import SHAPES, module
        text, arguments, _ = SHAPES[{name!r}]
        f = module(text({n}), pathlib.Path(tempfile.mkdtemp()) / "sized.py").f
        try:
            tp.function({"tp.grad(f)" if grad else "f"}, cache=False)(*arguments({n}))
        except tp.CompileError as problem:
            assert problem.code == "TP116", problem
            print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], timeout=limit, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_h3_a_tuple_of_ten_million_is_refused_and_does_not_hang():
    assert in_seconds(20, "over ints", 10**7) == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in SHAPES if n != "writes twice"])
def test_h3_full_sizes_do_not_hang(name):
    in_seconds(60, name, SHAPES[name][2])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "elements", "mixed", "elifs", "elifs of three", "ifs", "loops"])
def test_h3_gradients_of_full_sizes_do_not_hang(name):
    in_seconds(120, name, SHAPES[name][2], grad=True)
