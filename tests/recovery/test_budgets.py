"""Memory budgets: kept, they are kept to; too small, they say how much it takes; and gradients do not change."""

import math
from contextlib import suppress

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import Traced, trace
from tapeless.interp.evaluate import Evaluator
from tapeless.interp.values import owner
from tapeless.passes.check.consumption import check_in_place
from tapeless.testing.stages import leaves_of, parameters_of
from tests.recovery.same import TRIPS, same

X = np.array([0.7, -0.3, 0.2, 0.9])


def sine(x, n):
    for i in range(n):
        x = math.sin(x)
    return x


def of_an_array(x, n):
    for i in range(n):
        x = np.sin(x) * x[0]
    return np.sum(x)


def by_cells(x, n):
    a = np.zeros(10) + x
    for i in range(n):
        a[i % 10] = math.sin(a[i % 10] * a[0])
    return np.sum(a)


def two_loops(x, n):
    for i in range(n):
        x = math.sin(x)
    for i in range(n):
        x = math.cos(x)
    return x


def nest(x, n):
    for i in range(n):
        for j in range(n):
            x = math.sin(x)
    return x


def two_in_a_branch(x, n):
    if x > 0:
        for i in range(n):
            x = math.sin(x)
        for i in range(n):
            x = math.cos(x)
    return x


def one_and_one_in_a_branch(x, n):
    for i in range(n):
        x = math.sin(x)
    if x > 0:
        for i in range(n):
            x = math.cos(x)
    return x


def one_in_each_arm(x, n):
    if x > 0:
        for i in range(n):
            x = math.sin(x)
    else:
        for i in range(n):
            x = math.cos(x)
    return x


def while_loop(x, n):
    k = 0
    while k < n:
        x = math.sin(x)
        k += 1
    return x


# -- how much is kept


class Meter(Evaluator):
    """The interpreter, with an eye on the arrays that loops keep for the backward pass."""

    peak = 0

    def bind(self, vars, values) -> None:
        super().bind(vars, values)
        if any(v.name.endswith("_kept") for v in vars):
            arrays = [owner(a) for v, a in self.env.items() if v.name.endswith("_kept") and isinstance(a, np.ndarray)]
            live = {id(a): a.nbytes for a in arrays if id(a) not in self.consumed}
            self.peak = max(self.peak, sum(live.values()))


def kept(f, *args, **options) -> int:
    return kept_by(trace(tp.grad(f, **options).python, args), *args)


def kept_by(traced: Traced, *args) -> int:
    meter = Meter(consume=True)
    meter.function(check_in_place(traced.core)[0], parameters_of(traced, leaves_of(args)))
    return meter.peak


def most_over(f, recover: str) -> dict[tuple[int, int], int]:
    """What was kept beyond a budget that was accepted, by trips and budget."""
    found = {}
    for budget in (100, 200, 3200):
        gradient = tp.grad(f, memory=f"{budget}B", recover=recover).python
        try:
            traced = trace(gradient, (0.3, 3))
        except tp.RecoveryError:
            continue
        for trips in (3, 8, 40):
            with suppress(tp.RecoveryError):
                over = kept_by(traced, 0.3, trips) - budget
                if over > 0:
                    found[trips, budget] = over
    return found


BRANCHES = [two_in_a_branch, one_and_one_in_a_branch, one_in_each_arm]


@pytest.mark.thorough
@pytest.mark.sampled(8, each="f")
@pytest.mark.parametrize("f", [sine, by_cells, two_loops, while_loop, nest, *BRANCHES])
@pytest.mark.parametrize("recover", ["auto", "checkpoint", "checkpoint:3", "store"])
def test_budgets_are_kept_to(f, recover: str) -> None:
    assert most_over(f, recover) == {}


def test_without_a_budget_every_state_is_kept() -> None:
    assert kept(sine, 0.3, 20) == kept(sine, 0.3, 20, memory="1MB") == 20 * 8
    assert kept(by_cells, 0.3, 20) == kept(by_cells, 0.3, 20, memory="1MB") == 20 * 8


def test_only_what_is_chosen_is_made() -> None:
    assert kept(by_cells, 0.3, 8, memory="64B") == 64


def test_only_one_arm_of_a_branch_keeps_something() -> None:
    assert kept(one_in_each_arm, 0.3, 8, memory="64B") == kept(one_in_each_arm, -0.3, 8, memory="64B") == 64
    assert kept(two_in_a_branch, 0.3, 8, memory="128B") == 128


def test_the_memory_of_each_recovery() -> None:
    """100 trips: all of them, two levels of 10, three of 5, nothing."""
    assert kept(sine, 0.3, 100, recover="store") == 800
    assert kept(sine, 0.3, 100, recover="checkpoint") == 160
    assert kept(sine, 0.3, 100, recover="checkpoint:3") == (4 + 5 + 5) * 8
    assert kept(sine, 0.3, 100, recover="recompute") == 0
    assert kept(sine_twice, 0.3, 100, recover="invert") == 0


def sine_twice(x, n):
    v = 0.0
    for i in range(n):
        v -= 0.1 * math.sin(x)
        x += 0.1 * v
    return x * v


# -- gradients


@pytest.mark.sampled(4, each="recover")
@pytest.mark.parametrize("recover", ["auto", "checkpoint"])
@pytest.mark.parametrize("budget", [48, 50, 64, 72, 96, 100, 150, 200, 300, 600, 5000])
def test_every_budget_that_is_enough_gives_the_same(budget: int, recover: str) -> None:
    derived, stored = tp.grad(sine, memory=f"{budget}B", recover=recover), tp.grad(sine, recover="store")
    for n in (*TRIPS, 100, 343):
        same(derived(0.7, n), stored(0.7, n), 1e-12, f"{budget} bytes, {n} trips")


@pytest.mark.thorough
@pytest.mark.parametrize("budget", ["96B", "200B", "500B", "2KB"])
def test_states_that_are_arrays(budget: str) -> None:
    derived, stored = tp.grad(of_an_array, memory=budget), tp.grad(of_an_array, recover="store")
    for n in TRIPS:
        same(derived(X, n), stored(X, n), 0.0, f"{n} trips")


def test_sizes_decide_at_run_time() -> None:
    derived, stored = tp.grad(of_an_array, memory="2KB"), tp.grad(of_an_array, recover="store")
    for size in (1, 2, 4, 16, 40):
        x = np.linspace(0.1, 0.9, size)
        same(derived(x, 20), stored(x, 20), 1e-11, f"{size} elements")
    with pytest.raises(tp.RecoveryError, match="needs at least 16032 bytes, .* is 2000"):
        derived(np.linspace(0.1, 0.9, 1000), 20)


# -- too small


def test_too_small_a_budget_says_what_it_takes() -> None:
    with pytest.raises(tp.RecoveryError) as caught:
        tp.grad(sine, memory="40B")(0.5, 100)
    problem = caught.value
    assert problem.code == "TP305"
    assert "needs at least 48 bytes, and the memory budget is 40" in str(problem)
    assert problem.file == __file__ and problem.line == sine.__code__.co_firstlineno + 1


def test_what_it_takes_is_enough() -> None:
    assert tp.grad(sine, memory="48B")(0.5, 100) == pytest.approx(tp.grad(sine)(0.5, 100), rel=1e-12)


def test_a_short_loop_fits_where_a_long_one_does_not() -> None:
    derived = tp.grad(sine, memory="40B")
    for n in range(6):
        assert derived(0.5, n) == pytest.approx(tp.grad(sine)(0.5, n), rel=1e-12)
    with pytest.raises(tp.RecoveryError):
        derived(0.5, 7)
    assert derived(0.5, 5) == pytest.approx(tp.grad(sine)(0.5, 5), rel=1e-12)


def test_no_memory_at_all() -> None:
    derived = tp.grad(sine, memory="0B")
    assert derived(0.5, 0) == 1.0
    with pytest.raises(tp.RecoveryError, match="is 0"):
        derived(0.5, 1)


def test_the_interpreter_raises_it_too() -> None:
    traced = trace(tp.grad(sine, memory="40B").python, (0.5, 100))
    with pytest.raises(tp.RecoveryError, match="needs at least 48 bytes"):
        Evaluator().function(traced.core, parameters_of(traced, leaves_of((0.5, 100))))


def test_loops_that_keep_nothing_need_no_budget() -> None:
    def total(x, n):
        s = 0.0
        for i in range(n):
            s += math.sin(x * i)
        return s

    assert tp.grad(total, memory="0B")(0.5, 9) == tp.grad(total)(0.5, 9)


@pytest.mark.thorough
def test_a_loop_around_is_told_apart_from_the_one_inside() -> None:
    derived, stored = tp.grad(nest, memory="160B"), tp.grad(nest, recover="store")
    for n in (0, 1, 2, 8, 9):
        same(derived(0.7, n), stored(0.7, n))
    with pytest.raises(tp.RecoveryError) as caught:
        tp.grad(nest, memory="80B")(0.7, 20)
    assert caught.value.line == nest.__code__.co_firstlineno + 1


def test_advice_for_a_small_budget() -> None:
    with pytest.raises(tp.RecoveryError) as caught:
        tp.grad(sine, memory="40B")(0.5, 100)
    assert "use recover='auto'" not in str(caught.value)


def test_checkpoints_of_no_trips_need_nothing() -> None:
    assert tp.grad(sine, memory="40B", recover="checkpoint")(0.5, 0) == 1.0


@pytest.mark.parametrize("recover", ["store", "checkpoint:3"])
def test_a_recovery_that_does_not_fit_the_budget(recover: str) -> None:
    with pytest.raises(tp.RecoveryError, match="bytes"):
        tp.grad(sine, memory="48B", recover=recover)(0.5, 1000)


# -- how a size is written


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", ["1KB", "1 KB", "1kb", "1KiB", "1.5KB", "1000B", "1MB", "2GB", "1TB"])
def test_sizes(size: str) -> None:
    assert tp.grad(sine, memory=size)(0.5, 100) == pytest.approx(tp.grad(sine)(0.5, 100), rel=1e-12)


@pytest.mark.parametrize("size", ["64", "64XB", "-1B", "", "KB", "1e3B", "inf B", 64, 1.5])
def test_what_is_no_size(size) -> None:
    with pytest.raises(ValueError, match="memory="):
        tp.grad(sine, memory=size)


def test_the_budget_of_a_compiled_function() -> None:
    @tp.function(memory="40B")
    def slope(x, n):
        return tp.grad(sine)(x, n)

    @tp.function(memory="40B")
    def with_its_own(x, n):
        return tp.grad(sine, memory="1KB")(x, n)

    assert slope(0.5, 3) == pytest.approx(tp.grad(sine)(0.5, 3), rel=1e-12)
    with pytest.raises(tp.RecoveryError):
        slope(0.5, 100)
    assert with_its_own(0.5, 100) == pytest.approx(tp.grad(sine)(0.5, 100), rel=1e-12)
    with pytest.raises(tp.RecoveryError):
        tp.grad(tp.function(sine, memory="40B"))(0.5, 100)
