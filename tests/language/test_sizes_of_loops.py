"""Arrays that a loop makes with sizes of its own: Note [The last iteration] in loop_trials.py, and Note [Sizes that change]."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([1.0, 3.0, 0.5, 2.0, -1.0, 4.0])


def slices(x, n):
    for k in range(n):
        y = x[: k + 1] * 2.0
    return y


def sizes_and_counter(x, n):
    s = 0.0
    for k in range(n):
        m = k * 2 + 1
        y = np.zeros(m)
        y[k] = x[k] * s
        s += y.sum() + x[k]
    return y, k, s


def masked(x, n):
    for k in range(n):
        y = x[x > k]
    return y


def nested(x, n):
    s = 1.0
    for k in range(n):
        y = x[: k + 1] * s
        for j in range(2):
            z = y[: j + 1] + 1.0
        s = s + y.sum() + z.sum()
    return y, z, s


def with_continue(x, n):
    s = 0.0
    for k in range(n):
        y = x[k:] + s
        if k % 2:
            continue
        s += y.sum()
    return y, s


def over_rows(x, n):
    for v in x[:n]:
        y = np.full(int(abs(v)) + 1, v)
    return y


PROGRAMS = [slices, sizes_and_counter, masked, nested, with_continue, over_rows]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function, n):
    agree(function, X, n)


@pytest.mark.thorough
@pytest.mark.parametrize("function", [slices, sizes_and_counter, nested, with_continue], ids=lambda f: f.__name__)
def test_gradients(function):
    def total(x):
        found = function(x, 3)
        return np.sum(found[0] ** 2) + found[-1] if isinstance(found, tuple) else np.sum(found**2)

    tp.check_grads(total, (X,), order=1)


def test_without_an_iteration_there_is_none():
    with pytest.raises(UnboundLocalError):
        tp.function(slices)(X, 0)


# -- Note [Sizes that change] in sizes_of_loops.py


def bound_sometimes(x, n):
    for k in range(n):
        if x[k] > 1.0:
            y = x[:k] * 2.0
    return y


def appended(x, n):
    y = x
    for k in range(n):
        y = np.append(y, 0.1 * y[k] * y[-1])
    return y


def until_long_enough(x, n):
    y = np.ones(1)
    while len(y) < 40 * n:
        y = np.append(y, 0.3 * np.sin(x[len(y) % 6] * y[-1]))
    return y


def polynomial(x, n):
    p = np.array([1.0])
    for k in range(n):
        p = np.convolve(p, np.array([1.0, -x[k]]))
    return p


def filtered(x, n):
    y = x * 2.0
    for k in range(n):
        y = y[y > 0.3 * k] * 1.1
    return y


def in_halves(x, n):
    y = x * n
    while len(y) > 1:
        half = len(y) // 2
        y = y[:half] * y[half : 2 * half]
    return y


def rows(x, n):
    r = np.zeros((0, 3))
    for k in range(n):
        r = np.vstack([r, [x[k], 1.0, x[k] ** 2]])
    return r


def eliminated(x, n):
    a = np.outer(x, x) + np.eye(len(x))
    s = np.zeros(len(x))
    while len(a) > 1:
        s[len(a) - 1] = a[0, 0]
        a = a[1:, 1:] - np.outer(a[1:, 0], a[0, 1:]) / a[0, 0]
    return s


def written(x, n):
    y = x[:1].copy()
    for k in range(n):
        y[0] += x[k]
        y = np.append(y, y[0] * x[1])
        y[-1] *= 2.0
    return y


def sometimes_longer(x, n):
    y = x.copy()
    for k in range(n):
        if x[k] > 0.7:
            y = np.append(y, x[k] * y[0])
        y = y * 1.5
    return y


def two_names(x, n):
    a, b = x[:1], x[:2]
    for k in range(n):
        a, b = b, np.concatenate([a, b * x[k]])
    return a, b


def loop_in_a_loop(x, n):
    y = x[:1]
    for k in range(n):
        for j in range(k):
            y = np.append(y, x[j] * y[-1])
        y = y[1:] if len(y) > 3 else y
    return y


def left(x, n):
    y = x[:1]
    for k in range(50):
        y = np.append(y, x[k % 4] * 0.1 * y[-1] + 0.1)
        if len(y) > n:
            break
        if np.sum(y) > 1e6:
            return y[:1]
    return y


def in_a_tuple(x, n):
    state = (x[:2], 0.0)
    for k in range(n):
        y, s = state
        state = (np.append(y, y[0] * x[k]), s + np.sum(y))
    return state


CHANGING = [
    bound_sometimes,
    appended,
    until_long_enough,
    polynomial,
    filtered,
    in_halves,
    rows,
    eliminated,
    written,
    sometimes_longer,
    two_names,
    loop_in_a_loop,
    left,
    in_a_tuple,
]


@pytest.mark.parametrize("function", CHANGING, ids=lambda f: f.__name__)
def test_sizes_that_change(function):
    agree(function, X, 4)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", CHANGING, ids=lambda f: f.__name__)
def test_gradients_where_sizes_change(function):
    def total(x):
        found = function(x, 4)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(part**2) for part in parts)

    tp.check_grads(total, (X,), order=1)


@pytest.mark.parametrize("options", [{"memory": "4KB"}, {"recover": "checkpoint"}, {"recover": "recompute"}], ids=str)
def test_plans_where_sizes_change(options):
    def total(x):
        return np.sum(until_long_enough(x, 2) ** 2)

    np.testing.assert_allclose(tp.grad(total, **options)(X), tp.grad(total)(X), rtol=1e-12)


def test_output_and_errors_come_once(capfd):
    def shows(x, n):
        y = x[:1]
        for k in range(n):
            y = np.append(y, x[k])
            print(len(y))
        return y[n + 1]

    with pytest.raises(IndexError):
        tp.function(shows)(X, 3)
    assert capfd.readouterr().out.split() == ["2", "3", "4"]


def test_sizes_that_may_be_equal_are_tested():
    def power(a, x, n):
        for _ in range(n):
            x = a @ x
        return x

    agree(power, np.eye(3) * 2.0, np.ones(3), 4)
    with pytest.raises(tp.ShapeError, match="must keep its size in a loop"):
        tp.function(power)(np.ones((2, 3)), np.ones(3), 1)
