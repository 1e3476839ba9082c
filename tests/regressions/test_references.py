"""Names that share arrays, through loops and branches: each program gave another result than plain Python once, or crashed.

What cannot be followed is refused with TP105, never compiled as if the arrays were different ones.
"""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree


def refused(function, *args, code="TP105"):
    with pytest.raises(tp.CompileError) as caught:
        tp.function(function)(*args)
    assert caught.value.code == code


# -- arrays that names have in the next iteration


def test_two_names_get_one_array_at_the_end_of_an_iteration():
    def f(a, n):
        p, q = a * 1.0, a * 2.0
        s = a[0]
        for i in range(n):
            q[0] += 1.0
            s += p[0]
            p = q
            q = p
        return s

    refused(f, np.arange(3.0), 3)


def test_both_elements_of_a_tuple_get_one_array():
    def f(a, n):
        t = (a * 1.0, a * 2.0)
        s = a[0]
        for i in range(n):
            t[0][0] += 1.0
            s += t[1][0]
            t = (t[1], t[1])
        return s

    refused(f, np.arange(3.0), 3)


def test_both_elements_of_a_tuple_are_one_array_before_the_loop():
    def f(a, n):
        b = a * 2.0
        t = (b, b)
        b = a * 3.0
        s = a[0]
        for i in range(n):
            t[0][0] += 1.0
            s += t[1][0]
            t = (t[0], t[1])
        return s

    refused(f, np.arange(3.0), 3)


def test_an_array_that_is_written_before_a_name_gets_it():
    def f(a, n):
        c = a * 2.0
        p = a * 1.0
        for i in range(n):
            c[0] += 1.0
            p = c
        return p, c

    agree(f, np.arange(3.0), 3)
    agree(f, np.arange(3.0), 0)


def test_arrays_handed_around_stay_different():
    def f(a, n):
        u, v, w = a * 1.0, a * 2.0, a * 3.0
        for i in range(n):
            u, v, w = v, w, u
            u[0] += v[1]
        return u, v, w

    agree(f, np.arange(3.0), 4)


def test_an_array_is_returned_from_a_loop_that_writes_it():
    def f(a, n):
        for i in range(n):
            if a[0] > 2.0:
                return a
            a[0] += 1.0
        a[1] = 7.0
        return a

    agree(f, np.arange(3.0), 2)
    agree(f, np.arange(3.0), 5)


def test_a_function_that_returns_its_argument_from_a_loop():
    def f(a, n):
        def g(p):
            for i in range(n):
                if p[0] > 2.0:
                    return p
                p[0] += 1.0
            return p + 1.0

        c = a * 2.0
        d = g(c)
        c[0] = 9.0
        return d

    refused(f, np.arange(3.0), 2)


def test_a_dict_whose_keys_change_places_in_a_loop():
    def f(x, y, n):
        d = {"u": x, "v": y}
        for i in range(n):
            d = {"v": d["u"], "u": d["v"] + 1.0}
        return d["u"], d["v"]

    refused(f, 1.0, 2.0, 3, code="TP104")


# -- references inside of functions, methods, ranges and slices


def test_the_default_of_a_function_refers_to_its_array():
    def f(a, n):
        c = a * 2.0
        g = lambda v=c: v[0]
        for i in range(n):
            c[0] += 1.0
            if i == 9:
                c = c * 2.0
        return g()

    refused(f, np.arange(3.0), 3)


def test_a_method_refers_to_its_array():
    def f(a, n):
        c = a * 2.0
        total = c.sum
        for i in range(n):
            c[0] += 1.0
            if i == 9:
                c = c * 2.0
        return total()

    refused(f, np.arange(3.0), 3)


@pytest.mark.parametrize("n", [1, 3])
def test_what_one_arm_made_is_used_after_it(n):
    def function(a, n):
        if n > 1:
            c = a * 2.0
            g = lambda v=c: v[0]
        return g() if n > 1 else a[1]

    def method(a, n):
        total = a.sum
        if n > 1:
            total = (a * 2.0).sum
        return total()

    def numbers(a, n):
        if n > 1:
            r = range(int(a[1]), n)
        s = 0
        if n > 1:
            for i in r:
                s += i
        return s

    def part(a, n):
        if n > 1:
            p = slice(int(a[1]), None)
        return a[p] if n > 1 else a

    for f in (function, method, numbers, part):
        agree(f, np.arange(3.0), n)


def test_what_a_loop_made_is_used_after_it():
    def function(a, n):
        for i in range(n):
            c = a * i
            g = lambda v=c: v[1]
        return g()

    def numbers(a, n):
        for i in range(n):
            r = range(i + 1)
        s = 0
        for i in r:
            s += i
        return s

    def row(m, n):
        for i in range(n):
            r = m[i]
            r[0] += 1.0
        return r.copy()

    agree(function, np.arange(3.0), 3)
    agree(numbers, np.arange(3.0), 3)
    agree(row, np.arange(9.0).reshape(3, 3), 3)


def test_a_view_made_in_a_loop_with_a_size_of_its_own():
    def f(a, n):
        for i in range(n):
            r = a[i:]
        return r

    agree(f, np.arange(3.0), 2)


# -- results of branches in the memory of arrays that an arm updates


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_one_arm_exchanges_arrays_that_the_other_writes(x):
    def both(a, b, x):
        c, d = a * 0.5, b * 0.5
        if x > 0.0:
            c[0] = x
            d[0] = x
        else:
            c, d = d, c
        return c, d

    def one(a, b, x):
        c, d = a * 0.5, b * 0.5
        if x > 0.0:
            c[0] = x
        else:
            d[0] = c[1]
            c, d = d, c
        return c, d

    def each_in_turn(a, b, x):
        c = a * 0.5
        if x > 0.0:
            c[0] = x
            a, c = c, a
        else:
            c += b
        return a.copy(), c

    def nested(a, b, x):
        c, d = a * 0.5, b * 0.5
        for i in range(3):
            if i > 0:
                if x > 0.0:
                    c[i] += d[0]
                    d = b * 3.0
                else:
                    d[i] += c[0]
                    c = d + 1.0
        return c, d

    for f in (both, one, each_in_turn, nested):
        agree(f, np.arange(3.0) + 1.0, np.arange(3.0) - 4.0, x)


# -- views of views


def test_new_axes_are_transposed_and_indexed():
    def f(a):
        c = a[None]
        c.T[2, 0] = 4.0
        d = np.transpose(a[None, :, None], (2, 1, 0))
        d[0, 1, 0] += 3.0
        s = c.T[1, 0] + c.T[1:, 0][0] + c[0, ::-1][0]
        d[0] *= 5.0
        return s, d.copy(), np.swapaxes(c, 0, 1)[2].copy()

    agree(f, np.arange(3.0))


def test_rows_of_a_transposed_part():
    def f(m, k):
        v = m[1:].T
        w = v[::-1, :1].T
        w[0, k] = 50.0
        v[k] += 1.0
        v[:2].T[0] *= 2.0
        return v[1:, k]

    agree(f, np.arange(12.0).reshape(4, 3), 0)
    agree(f, np.arange(12.0).reshape(4, 3), 2)
    agree(f, np.arange(12.0).reshape(4, 3), 3)
    agree(f, np.arange(6.0).reshape(2, 3), 1)


# -- memory order: Note [Memory order] in frontend/state/values.py


def laid_out(m, kind):
    match kind:
        case "fortran":
            return np.asfortranarray(m)
        case "strided":
            wide = np.zeros((*m.shape[:-1], 2 * m.shape[-1]))
            wide[..., ::2] = m
            return wide[..., ::2]
        case "reversed":
            return m[::-1].copy()[::-1]
    return m.copy()


@pytest.mark.parametrize("kind", ["plain", "fortran", "strided", "reversed"])
@pytest.mark.parametrize(
    ("shaped", "certain"),
    [
        (lambda m: m.reshape(-1), ["plain"]),
        (lambda m: m.ravel(), ["plain"]),
        (lambda m: m.T.reshape(-1), ["plain"]),
        (lambda m: m.T.ravel(), ["plain"]),
        (lambda m: m[:, :2].reshape(-1), []),
        (lambda m: m[::2].ravel(), []),
        (lambda m: m.reshape(3, 2), ["plain"]),
        (lambda m: m[0].reshape(1, 3), ["plain", "fortran", "strided", "reversed"]),
        (lambda m: np.ascontiguousarray(m), ["plain"]),
        (lambda m: m.flatten(), ["plain", "fortran", "strided", "reversed"]),
    ],
)
def test_reshaped_arguments_are_views_where_they_are_in_numpy(shaped, certain, kind):
    """Where that shows only at run time they can be read, not written."""

    def writes(m):
        v = shaped(m)
        v[0] = 50.0
        return v.copy()

    def reads(m):
        return shaped(m).copy()

    m = np.arange(6.0).reshape(2, 3)
    if kind not in certain:
        refused(writes, laid_out(m, kind), code="TP115")
    for f in (reads, writes) if kind in certain else (reads,):
        first, second = laid_out(m, kind), laid_out(m, kind)
        assert np.array_equal(tp.function(f)(first), f(second))
        assert np.array_equal(first, second)


@pytest.mark.parametrize(
    "made",
    [
        lambda m: m.T + 1.0,
        lambda m: np.zeros_like(m.T),
        lambda m: np.sqrt(m.T),
        lambda m: m.T.astype(np.float32),
        lambda m: np.array(m.T),
        lambda m: m[:, np.array([0, 1])],
        lambda m: np.where(m.T > 2.0, m.T, 0.0),
    ],
)
def test_results_take_over_the_memory_order_of_their_operands(made):
    def f(m):
        v = made(m)
        w = v.reshape(-1)
        w[0] = 9.0
        return v

    refused(f, np.arange(6.0).reshape(2, 3), code="TP115")


def test_results_that_are_in_order_are_reshaped_in_place():
    def f(m):
        v = m + 1.0
        v.reshape(-1)[0] = 9.0
        c = m.T.copy()
        c.ravel()[1] = 7.0
        d = m @ m.T
        d.reshape(-1)[2] = 5.0
        z = np.zeros((2, 3))
        z.ravel()[:] = 3.0
        return v, c, d, z

    agree(f, np.arange(6.0).reshape(2, 3))


def test_the_memory_order_goes_around_loops_and_through_branches():
    def loop(m, n):
        w = m * 1.0
        for i in range(n):
            v = w + 1.0
            v.reshape(-1)[1] = 9.0
            w = v.T
        return w

    def branch(m, n):
        w = m * 1.0
        if n > 1:
            w = w.T
        v = w + 1.0
        v.reshape(-1)[1] = 9.0
        return v

    for f in (loop, branch):
        refused(f, np.arange(9.0).reshape(3, 3), 3, code="TP115")


def test_a_part_that_may_be_the_whole():
    def f(m):
        v = m[:, :2].reshape(-1)
        m[0, 0] = 9.0
        return v

    refused(f, np.arange(6.0).reshape(3, 2))
