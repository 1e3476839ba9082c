"""The evaluator on sweeps, histograms, scatters and accumulators, expected values by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from tapeless.interp.values import IllTyped, OutOfBounds
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    At,
    Atom,
    Hist,
    If,
    Range,
    Reduction,
    Scatter,
    Sweep,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.types import BOOL, F64, I64, Const, DType, Type, Var, i64
from tests.interp.programs import ONE, ZERO, A, N, X, apply, array, operator, region, rows, run

# -- sweeps


def test_map() -> None:
    def make(b: Builder, x: Var, a: Var) -> Iterable[Atom]:
        def element(i: Var, x: Var, row: Var) -> Iterable[Atom]:
            return [apply(b, "mul", x, b.index(row, [At(i)])), b.update(b.copy(row), [At(i64(0))], x)]

        return b.map(3, [x, a], element)

    products, replaced = run([array(3), array(3, 4, name="a")], make, X[:3], A, consume=True)
    np.testing.assert_array_equal(products, X[:3] * np.diag(A))
    np.testing.assert_array_equal(replaced, np.column_stack([X[:3], A[:, 1:]]))


def sums(b: Builder, x: Var) -> Iterable[Atom]:
    """Sum, maximum and last element; running sum; square."""
    kept = Reduction(b.lam([Var("a", F64), Var("b", F64)], lambda a, c: [c]), (ZERO,))
    reduces = (operator(b, "add"), operator(b, "max", neutral=Const(-np.inf)), kept)
    lam = rows(b, [x], lambda i, e: [e, e, e, e, apply(b, "square", e)])
    vars = [Var("sum", F64), Var("max", F64), Var("last", F64), array(N), array(N)]
    return b.bind(vars, Sweep(N, (x,), lam, reduces, (operator(b, "add"),)))


def test_reductions_scans_and_maps_in_one_sweep() -> None:
    total, largest, last, running, squares = run([array(N)], sums, X)
    assert (total, largest, last) == (X.sum(), X.max(), X[-1])
    np.testing.assert_array_equal(running, np.cumsum(X))
    np.testing.assert_array_equal(squares, X**2)


def test_empty_sweep_gives_neutral_elements() -> None:
    *scalars, running, squares = run([array(N)], sums, X[:0])
    assert scalars == [0.0, -np.inf, 0.0] and running.shape == squares.shape == (0,)


def test_folds_start_from_the_neutral_element_on_the_left() -> None:
    def make(b: Builder, x: Var) -> Iterable[Atom]:
        op = operator(b, "sub", neutral=Const(10.0), commutative=False)
        lam = rows(b, [x], lambda i, e: [e, e])
        return b.bind([Var("r", F64), array(N)], Sweep(N, (x,), lam, (op,), (op,)))

    result, running = run([array(N)], make, np.array([1.0, 2.0, 4.0]))
    assert result == 3.0 and running.tolist() == [9.0, 7.0, 3.0]


def test_operator_of_two_operands_finds_the_first_maximum() -> None:
    def make(b: Builder, x: Var) -> Iterable[Atom]:
        def better(v: Var, i: Var, w: Var, j: Var) -> Iterable[Atom]:
            keep = apply(b, "ge", v, w, type=BOOL)
            return [apply(b, "select", keep, v, w, type=F64), apply(b, "select", keep, i, j, type=I64)]

        params = [Var("v", F64), Var("i", I64), Var("w", F64), Var("j", I64)]
        op = Reduction(b.lam(params, better), (Const(-np.inf), i64(-1)))
        return b.bind([Var("v", F64), Var("i", I64)], Sweep(N, (x,), rows(b, [x], lambda i, e: [e, i]), (op,)))

    assert run([array(N)], make, np.array([1.0, 5.0, 2.0, 5.0])) == [5.0, 1]


@pytest.mark.parametrize("consume", [False, True])
def test_reduction_of_rows(consume: bool) -> None:
    def make(b: Builder, a: Var) -> Iterable[Atom]:
        def add(x: Var, y: Var) -> Iterable[Atom]:  # in place, into the running row
            def cell(i: Var, x: Var) -> Iterable[Atom]:
                return [b.update(x, [At(i)], apply(b, "add", b.index(x, [At(i)]), b.index(y, [At(i)])))]

            return b.for_(i64(4), [x], cell)

        neutral = b.full([4], ZERO, DType.f64)
        op = Reduction(b.lam([array(4), array(4)], add), (neutral,), commutative=True)
        return [*b.bind([array(4)], Sweep(3, (a,), rows(b, [a], lambda i, row: [row]), (op,))), neutral, a]

    total, neutral, _ = run([array(3, 4)], make, A, consume=consume)
    assert total.tolist() == A.sum(0).tolist() and not neutral.any()


def visits(b: Builder, n: Var) -> Iterable[Atom]:
    """The order of the steps: position i of the result is when step i ran."""

    def steps(acc: Var) -> Iterable[Atom]:
        def step(i: Var) -> Iterable[Atom]:
            b.effect(UpdateAcc(acc, (At(i64(0)),), i))  # the last one stays
            return [i]

        return b.map(n, [], step)

    last = b.full([1], i64(-1), DType.i64)
    lam = b.lam([Var("acc", Type(DType.i64, (1,), "set"))], steps)
    return b.bind([array(1, dtype=DType.i64), array(n, dtype=DType.i64)], WithAcc((last,), lam))


def test_order_of_sweeps() -> None:
    ran_last = {}
    for order in ("forward", "reverse", *(f"shuffle:{seed}" for seed in range(20))):
        last, positions = run([Var("n", I64)], visits, 8, order=order)
        assert positions.tolist() == list(range(8))
        ran_last[order] = int(last[0])
        total, largest, final, running, squares = run([array(N)], sums, X, order=order)  # has a scan: stays in order
        assert final == X[-1] and running.tolist() == np.cumsum(X).tolist()
    assert ran_last["forward"] == 7 and ran_last["reverse"] == 0 and len(set(ran_last.values())) > 3
    assert run([Var("n", I64)], visits, 8, order="shuffle:5")[0][0] == ran_last["shuffle:5"]
    for wrong in ("backward", "shuffle", "reverse:1"):
        with pytest.raises(ValueError, match="order is"):
            run([Var("n", I64)], visits, 8, order=wrong)


def test_order_keeps_operators_that_do_not_commute() -> None:
    def make(b: Builder, x: Var) -> Iterable[Atom]:
        kept = Reduction(b.lam([Var("a", F64), Var("b", F64)], lambda a, c: [c]), (ZERO,))
        return b.bind([Var("last", F64)], Sweep(N, (x,), rows(b, [x], lambda i, e: [e]), (kept,)))

    assert run([array(N)], make, X, order="reverse") == [X[-1]]


def test_order_keeps_scans() -> None:
    def make(b: Builder, x: Var) -> Iterable[Atom]:
        return b.bind([array(N)], Sweep(N, (x,), rows(b, [x], lambda i, e: [e]), (), (operator(b, "add"),)))

    assert run([array(N)], make, X, order="reverse")[0].tolist() == np.cumsum(X).tolist()


# -- histograms, scatters, accumulators

KEYS = np.array([1, -1, 0, 1, 3, 1])
VALUES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
KEYED = [array(N, dtype=DType.i64, name="keys"), array(N, name="values"), array(3, name="dest")]


def hist(b: Builder, keys: Var, values: Var, dest: Var) -> Iterable[Atom]:
    lam = rows(b, [keys, values], lambda i, k, v: [k, v])
    return b.bind([array(3)], Hist(operator(b, "add"), (dest,), N, (keys, values), lam))


def test_hist_ignores_keys_outside() -> None:
    (result,) = run(KEYED, hist, KEYS, VALUES, np.full(3, 0.5))
    assert result.tolist() == [4.5, 41.5, 0.5]


def test_hist_of_rows_and_of_two_destinations() -> None:
    def make(b: Builder, keys: Var, dest: Var, count: Var) -> Iterable[Atom]:
        def add(row: Var, n: Var, new: Var, m: Var) -> Iterable[Atom]:
            total = b.map(2, [row, new], lambda i, x, y: [apply(b, "add", x, y)])
            return [*total, apply(b, "add", n, m)]

        params = [array(2), Var("n", I64), array(2), Var("m", I64)]
        op = Reduction(b.lam(params, add), (b.full([2], ZERO, DType.f64), i64(0)))
        lam = rows(b, [keys], lambda i, k: [k, b.array([ONE, apply(b, "convert", i, type=F64)]), i64(1)])
        return b.bind([array(3, 2), array(3, dtype=DType.i64)], Hist(op, (dest, count), N, (keys,), lam))

    params = [KEYED[0], array(3, 2), array(3, dtype=DType.i64, name="c")]
    sums, counts = run(params, make, KEYS, np.zeros((3, 2)), np.zeros(3, np.int64))
    assert counts.tolist() == [1, 3, 0] and sums.tolist() == [[1, 2], [3, 8], [0, 0]]


def test_hist_puts_the_cell_on_the_left() -> None:
    def make(b: Builder, keys: Var, values: Var, dest: Var) -> Iterable[Atom]:
        lam = rows(b, [keys, values], lambda i, k, v: [k, v])
        return b.bind([array(3)], Hist(operator(b, "sub"), (dest,), N, (keys, values), lam))

    (result,) = run(KEYED, make, KEYS, VALUES, np.full(3, 0.5))
    assert result.tolist() == [-3.5, -40.5, 0.5]


def test_hist_may_consume_the_running_row() -> None:
    def make(b: Builder, keys: Var, dest: Var) -> Iterable[Atom]:
        def replace(row: Var, new: Var) -> Iterable[Atom]:
            return [b.update(row, [At(i64(1))], b.index(new, [At(i64(1))]))]

        op = Reduction(b.lam([array(2), array(2)], replace), (b.full([2], ZERO, DType.f64),))
        lam = rows(b, [keys], lambda i, k: [k, b.array([ONE, apply(b, "convert", i, type=F64)])])
        return b.bind([array(3, 2)], Hist(op, (dest,), N, (keys,), lam))

    (result,) = run([KEYED[0], array(3, 2)], make, KEYS, np.full((3, 2), 0.5), consume=True)
    assert result.tolist() == [[0.5, 2.0], [0.5, 5.0], [0.5, 0.5]]


def test_scatter_ignores_indices_outside() -> None:
    def make(b: Builder, keys: Var, values: Var, dest: Var) -> Iterable[Atom]:
        return b.bind([array(3)], Scatter((dest,), N, (keys, values), rows(b, [keys, values], lambda i, k, v: [k, v])))

    (result,) = run(KEYED, make, np.array([2, -1, 0, 3]), VALUES[:4], np.full(3, 0.5))
    assert result.tolist() == [4.0, 0.5, 1.0]


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle:1"])
@pytest.mark.parametrize(
    ("op", "expected"),
    [("add", [6.0, 43.0, 2.0]), ("mul", [8.0, 512.0, 2.0]), ("min", [2.0, 1.0, 2.0]), ("max", [4.0, 32.0, 2.0])],
)
def test_accumulators_combine(op: str, expected: list[float], order: str) -> None:
    def make(b: Builder, keys: Var, values: Var, dest: Var) -> Iterable[Atom]:
        def inside(acc: Var) -> Iterable[Atom]:
            def update(i: Var, k: Var, v: Var) -> Iterable[Atom]:
                def write() -> Iterable[Atom]:
                    b.effect(UpdateAcc(acc, (At(k),), v))
                    return []

                in_range = apply(b, "and", apply(b, "ge", k, i64(0), type=BOOL), apply(b, "lt", k, i64(3), type=BOOL))
                b.bind([], If(in_range, region(b, write), region(b, lambda: [])))
                return [apply(b, "neg", v)]

            return b.map(N, [keys, values], update)

        lam = b.lam([Var("acc", Type(DType.f64, (3,), op))], inside)
        return b.bind([array(3), array(N)], WithAcc((dest,), lam))

    result, negated = run(KEYED, make, KEYS, VALUES, np.full(3, 2.0), order=order)
    assert result.tolist() == expected and negated.tolist() == (-VALUES).tolist()


def test_accumulators_take_ranges_and_test_positions() -> None:
    def make(row: At) -> Callable[..., Iterable[Atom]]:
        def body(b: Builder, a: Var, x: Var) -> Iterable[Atom]:
            def inside(acc: Var) -> Iterable[Atom]:
                b.effect(UpdateAcc(acc, (row, *full_axes([4])), x))
                b.effect(UpdateAcc(acc, (Range(i64(0), 3, i64(1)), At(i64(0))), ONE))
                return []

            return b.bind([array(3, 4)], WithAcc((a,), b.lam([Var("acc", Type(DType.f64, (3, 4), "add"))], inside)))

        return body

    params = [array(3, 4), array(4, name="y")]
    (result,) = run(params, make(At(i64(-1), wrap=True)), A, X)
    expected = A.copy()
    expected[-1] += X
    expected[:, 0] += 1
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        run(params, make(At(i64(3), check=True)), A, X)
    with pytest.raises(OutOfBounds):
        run(params, make(At(i64(3))), A, X)


def test_accumulators_cannot_be_read() -> None:
    def make(b: Builder, x: Var) -> Iterable[Atom]:
        lam = b.lam([Var("acc", Type(DType.f64, (N,), "add"))], lambda acc: [b.index(acc, [At(i64(0))])])
        return b.bind([array(N), Var("r", F64)], WithAcc((x,), lam))

    with pytest.raises(IllTyped, match="not an array"):
        run([array(N)], make, X)
