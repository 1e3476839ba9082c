"""Sums over zeros are written: for all sizes, to the last bit, and only where the cells are zero."""

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
from tapeless.passes.accumulators.zeroed import write_over_zeros
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import TIDY, Pipeline

SIZES = (0, 1, 2, 3, 4, 5, 9)


def program(code: str, result: str) -> Function:
    head = f"def f(s: [a]f64, t: [a][b]f64, x: [n]f64, y: [n][m]f64, w: f64, k: i64) -> {result}\n"
    f = parse_function(head + indent(dedent(code).strip(), "  "))
    verify(f)
    return f


def line(offset: int, offsets: tuple[int, ...], width: str = "n", value: str = "0.0") -> Function:
    """Zeros at i + offset, then sums at i + each of the offsets."""
    places = "\n".join(f"    p{c}: i64 = add i {c}" for c in offsets)
    updates = "\n".join(f"    update_acc acc[p{c}] = v{j}" for j, c in enumerate(offsets))
    values = "\n".join(f"    v{j}: f64 = mul e {j + 1}.5" for j in range(len(offsets)))
    return program(
        f"""
z: [a]f64 = with_acc s (\\(zeros: acc<set, [a]f64>) ->
  map {width} (\\j -> q: i64 = add j {offset}; update_acc zeros[q] = {value}; in ())
  in ())
r: [a]f64 = with_acc z (\\(acc: acc<add, [a]f64>) ->
  map n (\\i e ->
{places}
{values}
{updates}
    in ()) x
  in ())
in r
""",
        "[a]f64",
    )


PLANE = """
z: [a][b]f64 = with_acc t (\\(zeros: acc<set, [a][b]f64>) ->
  map n (\\i0 ->
    i: i64 = add i0 1
    loop () for j0 < m do
      j: i64 = add j0 2
      update_acc zeros[i, j] = 0.0
      in ()
    in ())
  in ())
r: [a][b]f64 = with_acc z (\\(acc: acc<add, [a][b]f64>) ->
  map n (\\i e ->
    i1: i64 = add i 1
    i2: i64 = add i 2
    map m (\\j c ->
      j1: i64 = add j 1
      j2: i64 = add j 2
      j3: i64 = add j 3
      d: f64 = mul c w
      update_acc acc[i1, j2] = c
      update_acc acc[i1, j1] = d
      update_acc acc[i1, j3] = d
      update_acc acc[i, j2] = d
      update_acc acc[i2, j2] = d
      in ()) e
    in ()) y
  in ())
in r
"""


def arguments(rows: int, columns: int) -> list[object]:
    random = np.random.default_rng(0)
    s, t = random.normal(size=rows + 8), random.normal(size=(rows + 8, columns + 8))
    return [s, t, random.normal(size=rows), random.normal(size=(rows, columns)), 0.3, 1]


def same(f: Function, g: Function) -> None:
    """For all sizes, in either order, and after all else that happens to it."""
    verify(g)
    clean = Pipeline(verify=True).run((TIDY,), gather(g))
    for rows, columns in itertools.product(SIZES, SIZES):
        args = arguments(rows, columns)
        (want,) = evaluate(f, args)
        np.testing.assert_array_equal(evaluate(g, args)[0], evaluate(gather(f), args)[0])
        for new in (g, clean):
            np.testing.assert_allclose(evaluate(new, args, order="reverse")[0], want, rtol=1e-13, atol=1e-15)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "offset, offsets", [(1, (0, 1, 2)), (0, (0, 1)), (1, (0, 1)), (2, (0, 2, 3)), (2, (0, 5)), (3, (2, 3, 6))]
)
def test_a_line_of_zeros(offset: int, offsets: tuple[int, ...]) -> None:
    f = line(offset, offsets)
    g = write_over_zeros(f)
    assert g is not f and write_over_zeros(g) is g
    same(f, g)


@pytest.mark.thorough
def test_a_plane_of_zeros() -> None:
    f = program(PLANE, "[a][b]f64")
    g = write_over_zeros(f)
    assert g is not f
    same(f, g)


def test_every_cell_is_written_once_in_the_middle() -> None:
    f = line(1, (0, 1, 2))
    accs = [s.exp.acc.type.acc for s in all_stms(write_over_zeros(f).body) if isinstance(s.exp, UpdateAcc)]
    assert accs.count("set") == 2 and accs.count("add") == 1  # sums and zeros; what is added at the ends


@pytest.mark.parametrize(
    "f",
    [
        line(4, (0, 1, 2)),  # beside the sums
        line(0, (1, 2, 3)),
        line(1, (0, 1, 2), width="k"),  # fewer cells than sums
        line(1, (0, 1, 2), value="1.0"),
        line(1, (0, 1, 2), value="w"),
        line(1, (1,)),  # nothing to gather
    ],
)
def test_cells_that_are_not_known_to_be_zero(f: Function) -> None:
    assert write_over_zeros(f) is f


def test_zeros_that_somebody_reads() -> None:
    text = PLANE.replace("in r\n", "h: f64 = z[k, k]\nin (r, h)\n")
    f = program(text, "([a][b]f64, f64)")
    assert write_over_zeros(f) is f


def test_zeros_that_are_set_elsewhere() -> None:
    """The nest inside sets cells of another array, that of the accumulator around it."""
    f = program(
        """
        u: [a]f64, r: [a]f64 = with_acc s (\\(out: acc<set, [a]f64>) ->
          z: [a]f64 = with_acc s (\\(zeros: acc<set, [a]f64>) ->
            map n (\\j -> q: i64 = add j 1; update_acc out[q] = 0.0; in ())
            in ())
          r1: [a]f64 = with_acc z (\\(acc: acc<add, [a]f64>) ->
            map n (\\i e ->
              p1: i64 = add i 1
              p2: i64 = add i 2
              update_acc acc[i] = e
              update_acc acc[p1] = e
              update_acc acc[p2] = e
              in ()) x
            in ())
          in r1)
        in r
        """,
        "[a]f64",
    )
    assert write_over_zeros(f) is f


# -- loops


def exchanged(u, steps, rate):
    v = u.copy()
    u = u.copy()
    for _ in range(steps):
        for i in tp.prange(1, len(u) - 2):
            v[i] = u[i] + rate * (u[i - 1] - 2.0 * u[i] + u[i + 2])
        u, v = v, u
    return (u * u).sum()


def seen(u, steps, rate):
    """Both arrays count in the end: the loop backwards does not start with zeros."""
    v = u.copy()
    u = u.copy()
    for _ in range(steps):
        for i in tp.prange(1, len(u) - 1):
            v[i] = u[i] + rate * (u[i - 1] - u[i + 1])
        u, v = v, u
    return (u * u).sum() + (v * v * v).sum()


def plane(u, steps, rate):
    v = u.copy()
    u = u.copy()
    for _ in range(steps):
        for i in tp.prange(1, len(u) - 1):
            for j in range(2, len(u[0]) - 1):
                v[i, j] = u[i, j] + rate * (u[i - 1, j] + u[i, j - 2] - u[i + 1, j] * 3.0 + u[i, j + 1])
        u, v = v, u
    return (u * u).sum()


def nonlinear(u, steps, rate):
    """The way back reads what the way forwards has left, and the exchange is not of zeros alone."""
    v = u.copy()
    u = u.copy()
    for _ in range(steps):
        for i in tp.prange(1, len(u) - 1):
            v[i] = u[i] * u[i - 1] + rate * u[i + 1]
        u, v = v, u
    return (u * u).sum()


@pytest.mark.sampled(6, each="f")
@pytest.mark.parametrize("f", [exchanged, seen, nonlinear])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 7, 12])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_exchanged_lines(f, size: int, steps: int) -> None:
    u = np.linspace(0.5, 1.5, size) ** 2
    np.testing.assert_allclose(tp.grad(f)(u, steps, 0.3), tp.jacfwd(f)(u, steps, 0.3), rtol=1e-12, atol=1e-14)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (3, 4), (4, 5), (5, 4), (7, 8)])
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_exchanged_planes(shape: tuple[int, int], steps: int, threads: int) -> None:
    u = np.random.default_rng(1).normal(size=shape)
    f = tp.function(plane, threads=threads)
    np.testing.assert_allclose(tp.grad(f)(u, steps, 0.3), tp.jacfwd(f)(u, steps, 0.3), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f, writes", [(exchanged, True), (nonlinear, True), (seen, False)])
def test_the_way_back_sets_no_inside_to_zero(f, writes: bool) -> None:
    text = tp.grad(f).ir(np.ones(9), 3, 0.3, stage="optimized")
    assert ("zeros: acc<set" in text) == writes
