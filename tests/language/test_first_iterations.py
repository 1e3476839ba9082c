"""Names that the first iteration of a loop binds, and those that are of another type from then on."""

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([1.0, 4.0, -2.0, 8.0])


def appended(x, n):
    for k in range(n):
        if k == 0:
            y = x * 1.0
        else:
            y = np.append(y, x * k)
    return y


def extrema(x):
    for i in range(len(x)):
        if i == 0:
            low = high = x[i]
        elif x[i] < low:
            low = x[i]
        elif x[i] > high:
            high = x[i]
    return high - low


def by_a_flag(x):
    first = True
    for v in x:
        if first:
            m, first = v, False
        else:
            m = max(m, v)
    return m


def found_late(x):
    seen = False
    for v in x:
        if v > 2:
            if not seen:
                best, seen = v, True
            elif v > best:
                best = v
    return best if seen else -1.0


def smoothed(x, n):
    out = np.zeros(n)
    for i in range(n):
        if i == 0:
            level = x[0]
        else:
            level = 0.9 * level + x[i]
        out[i] = level
    return out


def powers(a):
    for i in range(3):
        if i == 0:
            m = a
        else:
            m = m @ a
    return m


def of_two_iterations(x):
    for i in range(len(x)):
        if i > 0:
            d = x[i] - before  # noqa: F821
            s = s + d * d if i > 1 else d * d  # noqa: F821
        before = x[i]
    return s


def in_nests(x, n):
    for i in range(n):
        for j in range(n):
            if j == 0:
                row = x[i : i + 1]
            else:
                row = np.append(row, x[j])
        if i == 0:
            total = row
        else:
            total = total + row
    return total


def bound_once(x, n):
    """What the first iteration bound, the others find: it is read where this iteration may not have bound it."""
    total = 0.0
    for k in range(n):
        if k == 0:
            offset = x[0]
        total += x[k] - offset
    return total


def bound_once_and_again(x, n):
    out = np.zeros(n)
    for k in range(n):
        if k == 0:
            before = 0.0
        out[k] = x[k] - before
        before = x[k]
    return out


def differences(x, n):
    found = []
    for k in range(n):
        if k == 0:
            before = 0.0
        found.append(x[k] - before)
        before = x[k]
    return np.array(found)


def parts_of_sizes(x, n):
    """An array of a size of its own, which the next iteration reads and somebody after the loop too."""
    s = 0.0
    for k in range(n):
        if k == 0:
            y = x[: k + 2]
        s += np.sum(y)
        y = x[: k + 1]
    return s + np.sum(y)


@pytest.mark.parametrize(
    "f", [appended, smoothed, in_nests, bound_once, bound_once_and_again, differences, parts_of_sizes]
)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_names_of_the_first_iteration(f, n):
    same(f, X, n)


@pytest.mark.parametrize("f", [extrema, by_a_flag, found_late, of_two_iterations])
def test_names_of_the_first_element(f):
    same(f, X)


def test_names_of_a_loop_over_few():
    same(powers, X.reshape(2, 2))


@pytest.mark.parametrize("f", [appended, smoothed, bound_once, differences])
def test_without_iterations_they_have_no_value(f):
    if f is appended:
        for call in (f, tp.function(f)):
            with pytest.raises(UnboundLocalError):
                call(X, 0)
    else:
        same_values(f, X, 0)


def test_nothing_is_found_late():
    same_values(found_late, -np.abs(X))


def test_slopes_go_through_the_first_iteration():
    gradient = tp.grad(lambda x, n: np.sum(appended(x, n) ** 2))
    np.testing.assert_allclose(gradient(X, 3), 2 * X * (1 + 1 + 4))


def growing(x, n):
    for k in range(n):
        x = np.append(x, k)
    return x


def halved(x, n):
    for _ in range(n):
        x = x / 2
    return x


def with_floats(x, n):
    s = np.zeros(2, dtype=np.int64)
    for k in range(n):
        s = s + np.array([x[k], 1.0])
    return s


def stacked(m):
    rows = m[0]
    for i in range(1, len(m)):
        rows = np.vstack((rows, m[i] * i))
    return rows


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.float64])
@pytest.mark.parametrize("f", [growing, halved])
def test_element_types_of_the_first_iteration(f, dtype):
    same(f, np.array([5, 7], dtype), 2)


def test_sums_that_begin_with_integers():
    same(with_floats, X, 3)


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_rows_become_a_matrix(rows):
    same(stacked, np.arange(3.0 * rows).reshape(rows, 3))


def test_without_iterations_an_array_of_two_types_is_an_error():
    with pytest.raises(
        ValueError, match="array of float64 after an iteration of this loop, and a 1-dimensional array of int64 without"
    ):
        tp.function(halved)(np.array([1, 2]), 0)


def always_unbound(x):
    for v in x:
        u = u + v  # noqa: F821
    return u


def unbound_by_the_numbers(x):
    for v in x:
        if v == x[0]:
            total = v
        else:
            total = total + v
    return total


@pytest.mark.parametrize("f", [always_unbound, unbound_by_the_numbers])
def test_names_that_are_not_known_to_have_a_value_are_refused(f):
    with pytest.raises(tp.CompileError, match="used before it has a value") as caught:
        tp.function(f)(X)
    assert caught.value.code == "TP110"


def of_an_inner_loop(a, n):
    """The inner loop binds it for sure: nothing goes from one iteration of the outer one to the next."""
    out = np.zeros(len(a))
    for i in range(len(a)):
        for j in range(3):
            t = a[i] * (j + n)
        out[i] = t
    return out


def of_an_inner_loop_that_may_not_run(a, n):
    out = np.zeros(len(a))
    for i in range(len(a)):
        for j in range(n - i):
            t = a[i] * j
        out[i] = t
    return out


@pytest.mark.parametrize("f", [of_an_inner_loop, of_an_inner_loop_that_may_not_run])
def test_names_of_inner_loops(f):
    same(f, X, 2)


def test_names_that_inner_loops_bind_for_sure_are_not_carried():
    text = tp.function(of_an_inner_loop).ir(X, 2, stage="optimized")
    assert "defined" not in text and "check" not in text


def sized_and_last(x):
    """The last iteration comes after the loop, which then has none."""
    for k in range(1):
        if k > 0:
            y = y + 1.0  # noqa: F821
        y = x[: k + 2]
    return y


def test_one_iteration_that_is_the_last():
    same(sized_and_last, X)


def changed_beside(x, n):
    """Another array than the one that is found first changes its element type too."""
    a, s = np.ones(3, dtype=np.float32), np.full(3, 2**31 - 1, dtype=np.int32)
    for _ in range(n):
        s = s * a
        a = a * np.ones(3)
    return s + s


def in_a_triangle(x, n):
    s = np.zeros(4, dtype=np.int64)
    for i in range(n):
        for _ in range(i):
            s = s + x
    return s


def an_iteration_late(x, n):
    s = np.zeros(4, dtype=np.int64)
    u = s
    for _ in range(n):
        u = s
        s = s * 0.5 + x
    return u


@pytest.mark.parametrize("f, least", [(changed_beside, 1), (in_a_triangle, 2), (an_iteration_late, 2)])
def test_results_have_one_type_or_the_call_says_so(f, least):
    for n in range(4):
        if n < least:
            with pytest.raises(ValueError, match="give it the final element type before the loop"):
                tp.function(f)(X, n)
        else:
            same(f, X, n)


def test_a_loop_that_never_runs_changes_nothing():
    def never(x):
        s = np.zeros(3, dtype=np.int64)
        for _ in range(0):
            s = s * 0.5
        return s

    same(never, X)
