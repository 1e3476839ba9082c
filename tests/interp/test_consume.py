"""Note [Judging updates in place]: what `consume=True` accepts and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from tapeless.interp.values import UseAfterConsume
from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    At,
    Atom,
    Hist,
    Range,
    Scatter,
    WithAcc,
)
from tapeless.ir.types import BOOL, F64, DType, Type, Var, i64
from tests.interp.programs import ONE, ZERO, N, X, apply, array, operator, region, rows, run


def first(b: Builder, x: Var) -> Var:
    return b.index(x, [At(i64(0))])


def put(b: Builder, x: Var, name: str = "y") -> Var:
    return b.update(x, [At(i64(0))] * x.type.rank, ONE, name)


def use_after_update(b: Builder, x: Var) -> Iterable[Atom]:
    return [put(b, x), first(b, x)]


def result_after_update(b: Builder, x: Var) -> Iterable[Atom]:
    return [put(b, x), x]


def view_after_update(b: Builder, x: Var) -> Iterable[Atom]:
    tail = b.index(x, [Range(i64(1), 2, i64(1))])
    return [put(b, x), first(b, tail)]


def array_after_update_of_view(b: Builder, x: Var) -> Iterable[Atom]:
    return [put(b, b.reshape(x, [2, 2])), first(b, x)]


def update_by_its_own_view(b: Builder, x: Var) -> Iterable[Atom]:
    return [b.update(x, [Range(i64(0), 2, i64(1))], b.index(x, [Range(i64(1), 2, i64(1))]))]


def free_in_loop(b: Builder, x: Var) -> Iterable[Atom]:
    return b.for_(i64(2), [ZERO], lambda i, s: [first(b, put(b, x))])


def two_names_of_one_array(b: Builder, x: Var) -> Iterable[Atom]:
    return b.for_(i64(2), [x, x], lambda i, p, q: [put(b, p), put(b, q)])


def row_of_a_sweep(b: Builder, x: Var) -> Iterable[Atom]:
    return b.map(2, [b.reshape(x, [2, 2])], lambda i, row: [put(b, row)])


def after_hist(b: Builder, x: Var) -> Iterable[Atom]:
    return [*b.bind([array(4)], Hist(operator(b, "add"), (x,), 0, (), rows(b, [], lambda i: [i, ONE]))), first(b, x)]


def scatter_into_what_it_reads(b: Builder, x: Var) -> Iterable[Atom]:
    return b.bind([array(4)], Scatter((x,), 4, (x,), rows(b, [x], lambda i, e: [i, e])))


def inside_with_acc(b: Builder, x: Var) -> Iterable[Atom]:
    lam = b.lam([Var("acc", Type(DType.f64, (4,), "add"))], lambda acc: [first(b, x)])
    return b.bind([array(4), Var("e", F64)], WithAcc((x,), lam))


def twice_in_with_acc(b: Builder, x: Var) -> Iterable[Atom]:
    accs = [Var("acc", Type(DType.f64, (4,), "add")) for _ in range(2)]
    return b.bind([array(4), array(4)], WithAcc((x, x), b.lam(accs, lambda p, q: [])))


REUSES = [
    use_after_update, result_after_update, view_after_update, array_after_update_of_view, update_by_its_own_view,
    free_in_loop, two_names_of_one_array, row_of_a_sweep, after_hist, scatter_into_what_it_reads, inside_with_acc,
    twice_in_with_acc,
]  # fmt: skip


@pytest.mark.parametrize("make", REUSES, ids=lambda make: make.__name__)
def test_use_after_consume(make: Callable[..., Iterable[Atom]]) -> None:
    run([array(4)], make, X)  # fine for values
    with pytest.raises(UseAfterConsume, match=r"consumed its memory"):
        run([array(4)], make, X, consume=True)


@pytest.mark.parametrize("make", REUSES, ids=lambda make: make.__name__)
def test_values_do_not_depend_on_the_judge(make: Callable[..., Iterable[Atom]]) -> None:
    """Arrays are values: an update of one name never shows under another."""
    (value, *_) = run([array(4)], make, X)
    expected = {
        update_by_its_own_view: [-1.0, 4.0, 4.0, 1.5],
        array_after_update_of_view: [[1.0, -1.0], [4.0, 1.5]],
        row_of_a_sweep: [[1.0, -1.0], [1.0, 1.5]],
        free_in_loop: 1.0,
        after_hist: X.tolist(),
        scatter_into_what_it_reads: X.tolist(),
        inside_with_acc: X.tolist(),
        twice_in_with_acc: X.tolist(),
    }
    assert value.tolist() == expected.get(make, [1.0, *X[1:]])


def test_the_statements_are_named() -> None:
    message = r"^x is used in `e = index` \(f\.py:7\) after `y = update` \(f\.py:7\) consumed its memory$"
    with pytest.raises(UseAfterConsume, match=message):
        run([array(4)], use_after_update, X, consume=True)
    with pytest.raises(UseAfterConsume, match="x is used in the results of the function after"):
        run([array(4)], result_after_update, X, consume=True)


def in_place_loop(b: Builder, x: Var) -> Iterable[Atom]:
    def step(i: Var, x: Var) -> Iterable[Atom]:
        return [b.update(x, [At(i)], apply(b, "square", b.index(x, [At(i)])))]

    return b.for_(N, [x], step)


def in_place_branch(b: Builder, x: Var) -> Iterable[Atom]:
    def step(i: Var, x: Var) -> Iterable[Atom]:
        e = b.index(x, [At(i)])
        then = region(b, lambda: [b.update(x, [At(i)], apply(b, "square", e))])
        return b.if_(apply(b, "lt", e, ZERO, type=BOOL), then, region(b, lambda: [x]), [Var("x", x.type)])

    return b.for_(N, [x], step)


def copied_first(b: Builder, x: Var) -> Iterable[Atom]:
    return [put(b, b.copy(x)), first(b, x), x]


@pytest.mark.parametrize("make", [in_place_loop, in_place_branch, copied_first], ids=lambda make: make.__name__)
def test_linear_programs_may_update_in_place(make: Callable[..., Iterable[Atom]]) -> None:
    x = np.linspace(-1.0, 1.0, 300)
    judged, free = (run([array(N)], make, x, consume=consume) for consume in (True, False))
    assert [r.tolist() for r in judged] == [r.tolist() for r in free]
    expected = {in_place_loop: x**2, in_place_branch: np.where(x < 0, x**2, x), copied_first: np.r_[1.0, x[1:]]}
    np.testing.assert_array_equal(judged[0], expected[make])
