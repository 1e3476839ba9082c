"""Updates around an iteration become a sum at each cell: for all sizes, to rounding, and only where that is right."""

from __future__ import annotations

import itertools
from textwrap import dedent, indent

import numpy as np
import pytest

import tapeless as tp
from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import Function, UpdateAcc
from tapeless.ir.parser import parse_function
from tapeless.ir.walk import all_stms
from tapeless.passes.accumulators.gather import gather
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import TIDY, Pipeline

SIZES = (0, 1, 2, 3, 4, 5, 9)


def program(code: str) -> Function:
    """Of a start `s`, and of `x` with as many elements as there are iterations along each axis."""
    head = "def f(s: [a]f64, t: [a][b]f64, x: [n]f64, y: [n][m]f64, w: f64, k: i64) -> {}\n"
    text, results = dedent(code).strip().rsplit("\nin ", 1)
    types = "[a]f64" if results == "r" else "[a][b]f64" if results == "q" else "([a][b]f64, f64)"
    f = parse_function(head.format(types) + indent(f"{text}\nin {results}", "  "))
    verify(f)
    return f


def arguments(rows: int, columns: int, reach: int) -> list[object]:
    random = np.random.default_rng(0)
    s, t = random.normal(size=rows + reach), random.normal(size=(rows + reach, columns + reach))
    return [s, t, random.normal(size=rows), random.normal(size=(rows, columns)), 0.3, 1]


def gathered(f: Function, reach: int) -> Function:
    """The function gathered, which computes the same for all sizes and is left alone the second time."""
    g = gather(f)
    verify(g)
    clean = Pipeline(verify=True).run((TIDY,), g)
    for rows, columns in itertools.product(SIZES, SIZES):
        args = arguments(rows, columns, reach)
        for new in (g, clean):
            for options in ({}, {"order": "reverse"}):
                for one, other in zip(evaluate(f, args), evaluate(new, args, **options), strict=True):
                    np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-15)
    assert gather(g) is g
    return g


def updates(f: Function) -> int:
    return sum(isinstance(s.exp, UpdateAcc) for s in all_stms(f.body))


LINE = """
    r: [a]f64 = with_acc s (\\(acc: acc<add, [a]f64>) ->
      map n (\\i e ->
        p: i64 = add i 1
        q: i64 = add p 2
        u: f64 = mul w e
        v: f64 = {}
        update_acc acc[i] = u
        update_acc acc[q] = v
        update_acc acc[p] = u
        in ()) x
      in ())
    in r
"""

PLANE = """
    {results} = with_acc t (\\(acc: acc<add, [a][b]f64>) ->
      z: f64 = sweep n (\\i row ->
        p: i64 = add i 1
        h: f64 = {first}
        zz: f64 = sweep m (\\j e ->
          q: i64 = add 2 j
          d: i64 = sub q 1
          u: f64 = {second}
          v: f64 = {third}
          update_acc acc[p, d] = u
          update_acc acc[p, q] = v
          update_acc acc[i, d] = u
          update_acc acc[p, j] = e
          update_acc acc[i, j] = h
          in e) row | reduce comm add 0.0
        in zz) y | reduce comm add 0.0
      in z)
    in (q, total)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("term", ["neg e", "exp e", "mul u e"])
def test_along_a_line(term: str) -> None:
    gathered(program(LINE.format(term)), 3)


@pytest.mark.thorough
@pytest.mark.sampled(8)
@pytest.mark.parametrize("first", ["mul w 2.0", "reduce m comm add 0.0 row"])
@pytest.mark.parametrize("second", ["mul h e", "exp e"])
@pytest.mark.parametrize("third", ["mul u e", "tanh u"])
def test_in_a_plane(first: str, second: str, third: str) -> None:
    code = PLANE.format(results="q: [a][b]f64, total: f64", first=first, second=second, third=third)
    gathered(program(code), 2)


def test_what_costs_much_is_computed_once() -> None:
    g = gathered(program(LINE.format("tanh u")), 3)
    assert sum(getattr(s.exp, "op", "") == "tanh" for s in all_stms(g.body)) == 1


def test_cells_are_added_to_once() -> None:
    g = gathered(program(LINE.format("neg e")), 3)
    assert updates(g) == 2  # in the middle, at the ends


def test_a_position_that_is_known_before() -> None:
    code = """
        q: [a][b]f64 = with_acc t (\\(acc: acc<add, [a][b]f64>) ->
          map n (\\i e ->
            p: i64 = add i 1
            update_acc acc[i, k] = e
            update_acc acc[p, k] = e
            update_acc acc[p, 0] = e
            in ()) x
          in ())
        in q
    """
    f = program(code)
    g = gather(f)
    verify(g)
    assert updates(g) == 3  # two of two offsets, one of the other column
    for rows in SIZES:
        args = arguments(rows, 2, 1)
        np.testing.assert_allclose(evaluate(g, args)[0], evaluate(f, args)[0], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "update",
    [
        "update_acc acc[i] = e",  # one cell per iteration
        "p: i64 = mul 2 i\nupdate_acc acc[i] = e\nupdate_acc acc[p] = e",
        "p: i64 = add i k\nupdate_acc acc[i] = e\nupdate_acc acc[p] = e",
        "p: i64 = add i 1\nupdate_acc acc[i] = e\nupdate_acc acc[p!] = e",
        "p: i64 = sub i 1\nupdate_acc acc[i] = e\nupdate_acc acc[p~] = e",
        "p: i64 = add i 1\nc: bool = lt e 0.0\nupdate_acc acc[i] = e\nif c then\n  update_acc acc[p] = e\n  in ()\nelse ()",
        "p: i64 = add i 1\nupdate_acc acc[i] = e\nupdate_acc acc[p] = e\nupdate_acc acc[0] = e",
        "p: i64 = add i 1000\nupdate_acc acc[i] = e\nupdate_acc acc[p] = e",
    ],
)
def test_left_alone(update: str) -> None:
    body = indent(update, "    ")
    head = "def f(s: [a]f64, x: [n]f64, k: i64) -> [a]f64\n  r: [a]f64 = with_acc s (\\(acc: acc<add, [a]f64>) ->\n"
    f = parse_function(f"{head}  map n (\\i e ->\n{body}\n    in ()) x\n  in ())\n  in r")
    assert gather(f) is f


def test_each_index_once() -> None:
    code = """
        q: [a][b]f64 = with_acc t (\\(acc: acc<add, [a][b]f64>) ->
          map n (\\i e ->
            p: i64 = add i 1
            update_acc acc[i, i] = e
            update_acc acc[p, i] = e
            in ()) x
          in ())
        in q
    """
    f = program(code)
    assert gather(f) is f


# -- compiled


def sweep_heat(start, steps, rate):
    rows, columns = start.shape
    u, v = start.copy(), start.copy()
    for _ in range(steps):
        for row in tp.prange(rows - 2):
            i = row + 1
            for j in range(1, columns - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                v[i, j] = u[i, j] + rate * (around - 4.0 * u[i, j])
        u, v = v, u
    return (u * u).sum()


def curved(start, steps, rate):
    """Terms that cost much, and neighbours on one side only."""
    u, v = start.copy(), start.copy()
    rows, columns = u.shape
    for _ in range(steps):
        for i in tp.prange(rows - 3):
            for j in range(columns - 1):
                v[i, j] = np.tanh(u[i, j] * u[i + 3, j]) + rate * np.sin(u[i + 1, j + 1])
        u, v = v, u
    return (u * u).sum()


SHAPES = [(0, 0), (0, 3), (1, 1), (2, 7), (3, 3), (3, 4), (4, 3), (7, 2), (40, 37)]


@pytest.mark.sampled(6, each="function")
@pytest.mark.parametrize("function", [sweep_heat, curved], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_gradient_of_a_stencil(function, shape, threads) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    gradient, slope = tp.grad(tp.function(function, threads=threads), argnums=(0, 2))(x, 3, 0.2)
    assert gradient.shape == shape
    for direction in np.random.default_rng(2).normal(size=(3, *shape)):
        h = 1e-6
        expected = (function(x + h * direction, 3, 0.2) - function(x - h * direction, 3, 0.2)) / (2 * h)
        assert np.sum(gradient * direction) == pytest.approx(expected, rel=1e-6, abs=1e-8)
    expected = (function(x, 3, 0.2 + h) - function(x, 3, 0.2 - h)) / (2 * h)
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.thorough
def test_threads_share_the_rows() -> None:
    """A large one: chunks of rows, each cell by one thread, and the same cells in the same order."""
    x = np.random.default_rng(3).normal(size=(300, 280))
    one, two = (tp.grad(tp.function(sweep_heat, threads=t))(x, 2, 0.2) for t in (1, 2))
    np.testing.assert_array_equal(one, two)
    loops = tp.grad(tp.function(sweep_heat, threads=2)).ir(x, 2, 0.2, stage="loops")
    assert "private" not in loops


def test_no_nest_is_left_behind() -> None:
    x = np.ones((8, 8))
    text = tp.grad(sweep_heat).ir(x, 2, 0.2, stage="optimized")
    backward = text[text.index("acc<add") :]
    assert backward.count("update_acc u_acc") == 3  # the middle, the ends of rows, the rows at the ends
    assert text.count("sum_3: f64 = add sum_2") == 1
