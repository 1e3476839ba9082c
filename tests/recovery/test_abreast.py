"""Strips that run again side by side: under budgets that leave room for them, and where they do not suit."""

import math

import numpy as np
import pytest

import tapeless as tp
from tapeless.ad.recovery.by.abreast import WIDTH
from tapeless.frontend.entry import trace
from tapeless.ir.walk import all_stms
from tests.recovery import gallery
from tests.recovery.same import Loops, same
from tests.recovery.test_budgets import kept

loop, other = Loops(), Loops()

X = np.array([0.7, -0.3, 0.2, 0.9])
SQUARES = [WIDTH * m * m for m in (1, 2, 3, 5)]  # trips that are whole groups of strips
TRIPS = sorted({*range(2 * WIDTH + 2), *(n + off for n in SQUARES for off in (-1, 0, 1)), 65, 343})


def room(trips: int, state: int = 8, slot: int = 8) -> int:
    """Bytes for strips side by side."""
    m = next(m for m in range(1, trips + 2) if WIDTH * m * m >= trips)
    return math.ceil(trips / m) * state + WIDTH * m * slot


# -- what suits

loop.take(
    gallery.loop,
    gallery.three_that_depend_on_each_other,
    gallery.nonlinear_with_a_sum_and_a_counter,
    gallery.backwards_index,
    gallery.folded,
    gallery.remainder,
    gallery.random_numbers_that_wrap,
    gallery.reads_outside,
    gallery.counted_while,
    gallery.mapped,
    gallery.single,
    gallery.complex_inside,
)


@loop(0.7, 1.1)
def nonlinear(x, a, n):
    for i in range(n):
        x = a * math.sin(x) + 0.3 * x
    return x


@loop(0.6, 0.2)
def branch(x, a, n):
    for i in range(n):
        if x > 0.4:
            x = a * math.sin(x)
        else:
            y = math.cos(a * x)
            x = x + y * y
    return x


@loop(0.6, 0.2)
def choice(x, a, n):
    for i in range(n):
        x = np.where(x > 0.4, a * x, np.cos(x) + np.maximum(a, x * x))
    return x


@loop(0.3, X)
def fills_an_array(x, w, n):
    out = np.zeros(n)
    for i in range(n):
        x = math.sin(x) + 0.1
        out[i] = x * w[i % 4]
    return np.sum(out * out)


# -- what does not


@other(X)
def of_an_array(x, n):
    for i in range(n):
        x = np.sin(x) * x[0]
    return np.sum(x)


@other(0.3)
def around_a_loop(x, n):
    for i in range(n):
        for j in range(3):
            x = math.sin(x) + 0.1 * j
    return x


def four_more(x):
    x = math.sin(x) + 0.1
    return math.cos(x) * 0.9


def sixteen_more(x):
    return four_more(four_more(four_more(four_more(x))))


@other(0.3)
def larger(x, n):
    for i in range(n):
        x = sixteen_more(sixteen_more(sixteen_more(sixteen_more(four_more(x)))))
    return x


def taken(program, **options) -> bool:
    core = trace(tp.grad(program.function, program.wrt, **options).python, program.args(9)).core
    return any(v.name == "group" for s in all_stms(core.body) for v in s.vars)


@loop.all
def test_it_is_taken(program) -> None:
    assert taken(program, memory="1kB") and not taken(program)


@other.all
def test_it_is_not_taken(program) -> None:
    assert not taken(program, memory="1kB")


# -- gradients


@pytest.mark.thorough
@pytest.mark.sampled(5)
@loop.all
def test_the_same_as_storing_everything(program) -> None:
    stored = program.gradients(recover="store")
    derived = {memory: program.gradients(memory=f"{memory}B") for memory in (200, room(64, 16, 16), room(343, 16, 16))}
    for memory, gradient in derived.items():
        for n in TRIPS:
            same(gradient(n), stored(n), message=f"{program.function.__name__}, {memory} bytes, {n} trips")


@pytest.mark.usefixtures("optimized")
def test_not_one_bit_is_different() -> None:
    """Where every step makes differences larger."""
    derived, stored = tp.grad(nonlinear, memory="2kB"), tp.grad(nonlinear, recover="store")
    for n in (*TRIPS, 999, 1000, 1001):
        found = derived(0.7, 3.1, n)
        assert found == stored(0.7, 3.1, n) and math.isfinite(found), f"{n} trips"
    assert abs(found) > 1e10


def test_trips_that_are_known_beforehand() -> None:
    def fixed(x):
        for i in range(65):
            x = math.sin(x) + 0.1
        return x

    assert tp.grad(fixed, memory=f"{room(65)}B")(0.3) == tp.grad(fixed)(0.3)


def test_inside_of_a_loop() -> None:
    def nest(x, n):
        for i in range(n):
            for j in range(n):
                x = math.sin(x) + 0.01 * j
        return x

    derived, stored = tp.grad(nest, memory="400B"), tp.grad(nest, recover="store")
    for n in (0, 1, 5, 16, 17):
        same(derived(0.7, n), stored(0.7, n))


@pytest.mark.thorough
def test_second_derivatives() -> None:
    inside = tp.grad(tp.grad(nonlinear, memory=f"{room(65)}B"), (0, 1))
    around = tp.hessian(nonlinear, (0, 1), memory="1kB")
    plain, stored = tp.grad(tp.grad(nonlinear), (0, 1)), tp.hessian(nonlinear, (0, 1))
    for n in (0, 1, WIDTH, 15, 16, 17, 65):
        same(inside(0.7, 1.1, n), plain(0.7, 1.1, n))
        same(around(0.7, 1.1, n), stored(0.7, 1.1, n))


def test_tests_and_output_are_those_of_the_first_run(capsys) -> None:
    def told(x, n):
        for i in range(n):
            x = math.log(x + 1.5)
            if i % 20 == 0:
                print(i)
        return x

    tp.grad(told, memory=f"{room(65)}B")(0.7, 65)
    assert capsys.readouterr().out.split() == ["0", "20", "40", "60"]
    with pytest.raises(ValueError, match="math domain error"):
        tp.grad(told, memory=f"{room(65)}B")(-3.0, 65)


# -- memory


@pytest.mark.parametrize("n", [27, 64, 65, 100, 343])
def test_as_many_states_as_it_says(n: int) -> None:
    """One byte less, and strips run one by one; with half of that not even those."""
    enough, m = room(n), math.isqrt(n - 1) + 1
    assert kept(nonlinear, 0.7, 1.1, n, memory=f"{enough}B") == enough
    assert kept(nonlinear, 0.7, 1.1, n, memory=f"{enough - 1}B") == (math.ceil(n / m) + m) * 8


@pytest.mark.thorough
@pytest.mark.sampled(5)
@loop.all
def test_budgets_are_kept_to(program) -> None:
    for n in (28, 64, 65):
        for memory in (room(n), room(n, 16, 16), room(n, 24, 24)):
            try:
                assert kept(program.function, *program.args(n), argnums=program.wrt, memory=f"{memory}B") <= memory
            except tp.RecoveryError:
                continue


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [27, 65, 1000, 1001])
def test_explain_says_it(n: int) -> None:
    report = tp.grad(nonlinear, memory=f"{room(n)}B").explain(0.7, 1.1, n)
    (plan,) = report.plans
    assert plan.recovery == {"x": "checkpoint:2"} and plan.trips == n
    assert plan.memory_bytes == report.memory_bytes == room(n)
