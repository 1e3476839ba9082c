"""Names are references: aliases and views write through, swaps swap, augmented assignment is in place, overlapping copies."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same, same_values

X = np.arange(6.0)
M = np.arange(12.0).reshape(3, 4)


def followed_or_refused(f, *args):
    """Right, or refused as unknown: never a wrong result."""
    try:
        tp.function(f).ir(*args)
    except tp.CompileError as error:
        code = error.code
    else:
        code = ""
        same_values(f, *args)
    assert code in ("", "TP105")


def alias(x):
    b = x
    b[0] = 9.0
    x[1] = 8.0
    return b[1], x[0]


def alias_of_new(n):
    a = np.zeros(n)
    b = a
    b[0] = 1.0
    a[1] = 2.0
    return a, b


def test_aliases():
    same(alias, X)
    f = tp.function(alias_of_new)
    a, b = f(3)
    assert a is b  # one array with two names comes back as one
    same(alias_of_new, 3)


def slices(x):
    v = x[1:4]
    v[0] = 10.0
    x[2] = 20.0
    w = v[1:]
    w[1] = 30.0
    back = x[::-1]
    back[0] = 40.0
    every = x[::2]
    every += 100
    return v, w, back, every, v.sum()


def rows(m):
    row = m[1]
    row[0] = -1.0
    column = m[:, 2]
    column[:] = 7.0
    m[1, 1] = 50.0
    block = m[1:, 1:3]
    block[0, 0] += 1
    block[:, 1] = 0.5
    last = m[-1]
    last *= 2
    return row, column, block, last


def transposed(m):
    t = m.T
    t[0, 1] = 99.0
    s = t[1:3]
    s[:, 0] = -5.0
    m[2, 2] = 1.0
    return t, s


def reshaped(m):
    flat = m.reshape(-1)
    flat[5] = -1.0
    r = m.reshape(2, 6)
    r[1, 0] = -2.0
    m[0, 0] = -3.0
    back = flat.reshape(4, 3)
    back[3] = 77.0
    new = m[:, None, :]
    new[0, 0, 3] = 55.0
    return flat, r, back, new


def test_views_write_through():
    same(slices, X)
    same(rows, M)
    same(transposed, M)
    same(reshaped, M)
    same(rows, np.asfortranarray(M))


def copies(x, m):
    a = x.copy()
    a[0] = 1.0
    b = x + 0
    b[1] = 2.0
    c = np.array(x)
    c[2] = 3.0
    d = x[[0, 1, 2]]
    d[0] = 4.0
    e = m.T.reshape(-1)  # not in order: NumPy copies
    e[0] = 5.0
    f = m.flatten()
    f[1] = 6.0
    g = x[1:].copy()
    g[:] = 0
    return a, b, c, d, e, f, g


def test_copies_do_not():
    same(copies, X, M)


def swap(x, y):
    a, b = x, y
    a, b = b, a
    a[0] = 100.0
    b[1] = 200.0
    return a[0], b[1]


def swap_elements(x, i, j):
    x[i], x[j] = x[j], x[i]
    return x


def swap_rows(m):
    """A row is a view: the second assignment sees the first, as in NumPy."""
    m[0], m[1] = m[1], m[0]


def swap_rows_by_copy(m):
    m[0], m[1] = m[1].copy(), m[0].copy()


def rotate(x):
    a, b, c = x[0], x[1], x[2]
    x[0], x[1], x[2] = b, c, a


def swap_in_a_loop(x, y, n):
    for i in range(n):
        y[:] = x * 2
        x, y = y, x
    return x.sum() - y.sum()


def test_swaps():
    same(swap, X, X * 2)
    same(swap_elements, X, 1, 4)
    same(swap_elements, X, 2, 2)
    same(swap_elements, X, -1, 0)
    same(swap_rows, M)
    same(swap_rows_by_copy, M)
    same(rotate, X)


def heat(u, steps):
    v = u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, v = v, u
    return u + 0


def rotated_in_a_loop(x, y, z, n):
    while n > 0:
        x[0] += n
        y[1] -= n
        x, y, z = y, z, x
        n -= 1
    return x - y


def test_swapped_arguments_in_a_loop():
    """Which of the caller's arrays a name has depends on n."""
    for n in (0, 1, 2, 3):
        same(swap_in_a_loop, X, X * 2, n)
        same(heat, X, n)
        same(rotated_in_a_loop, X, X * 2, X * 3, n)
        same(swapped_under_another_name, X, X * 2, n)


def swapped_under_another_name(x, y, n):
    z = x
    for i in range(n):
        x[0] += 1
        x, y = y, x
    return z


def swapped_sometimes(x, y, n):
    for i in range(n):
        x[0] += 1
        if i % 2 == 0:
            x, y = y, x
    return x[0]


def test_swaps_that_cannot_be_followed_are_refused():
    with pytest.raises(tp.CompileError) as caught:
        tp.function(swapped_sometimes)(X.copy(), X * 2, 3)
    assert caught.value.code == "TP105"


def in_place(x):
    b = x
    x += 1
    b *= 2
    x -= b[0]
    v = x[1:3]
    v /= 4
    x **= 2
    return x is b, b


def in_place_numbers(x, n):
    s = x[0]
    s += 5  # a number: the array stays
    n += 1
    return s, n, x


def in_place_item(m, i):
    m[i] += 1
    m[i, 1:] *= 2
    m[:, i] -= m[0, 0]
    m[1:] //= 2
    m[-1, -1] %= 3


def rebinding(x):
    b = x
    x = x + 1
    x[0] = 50.0
    return b, x


def in_place_integers(x):
    x //= 2
    x %= 5
    x <<= 1
    x |= 1
    x ^= 3
    x &= 14
    x >>= 1
    return x


def integers_divided(x):
    x /= 2
    return x


def widened_in_place(x):
    x += 0.5
    return x


def test_augmented_assignment_is_in_place():
    same(in_place, X)
    same(in_place_numbers, X, 3)
    same(in_place_item, M, 1)
    same(rebinding, X)
    same(in_place_integers, np.array([9, 14, 103, -6]))
    for f in (integers_divided, widened_in_place):
        with pytest.raises(tp.CompileError, match="TP104"):
            tp.function(f)(np.arange(3))


def narrowed_in_place(x, y):
    x += y
    x *= 2.5
    return x


def test_in_place_keeps_the_element_type():
    same(narrowed_in_place, np.arange(3, dtype=np.float32), np.arange(3) / 3)
    same(narrowed_in_place, np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32))


def broadcast_in_place(m, row):
    m += row
    m *= row[0]
    m[1:] -= row[1]
    return m


def too_large_in_place(row, m):
    row += m
    return row


def test_broadcast_in_place():
    same(broadcast_in_place, M, np.arange(4.0) + 1)
    with pytest.raises(ValueError):
        tp.function(too_large_in_place)(np.zeros(4), np.zeros((3, 4)))


def shift_right(x):
    x[1:] = x[:-1]
    return x


def shift_left(x):
    x[:-1] = x[1:]
    return x


def reverse(x):
    x[:] = x[::-1]
    return x


def smooth(x):
    x[1:-1] = (x[:-2] + x[2:]) / 2
    return x


def add_shifted(x):
    x[1:] += x[:-1]
    return x


def transpose_in_place(m):
    m[:] = m.T
    return m


def through_views(x):
    a, b = x[:4], x[2:]
    a[:] = b
    b += a
    return x


def test_overlapping_copies():
    for f in (shift_right, shift_left, reverse, smooth, add_shifted, through_views):
        same(f, X)
    same(transpose_in_place, np.arange(9.0).reshape(3, 3))


def shift_by_loop(x):
    for i in range(1, len(x)):
        x[i] = x[i - 1]
    return x


def test_a_loop_sees_its_own_writes():
    same(shift_by_loop, X)


def row_of_loop(m):
    for row in m:
        row[0] = row.sum()
        row += 1
    for i in range(len(m)):
        r = m[i]
        r[-1] = -i
    return m


def view_kept_through_a_loop(x, n):
    v = x[2:]
    for i in range(n):
        v[0] += 1
        x[3] *= 2
    return v, x


def test_views_and_loops():
    same(row_of_loop, M)
    same(view_kept_through_a_loop, X, 3)
    same(view_kept_through_a_loop, X, 0)


def written_by_a_function(x):
    def clear(a):
        a[:] = 0.0

    def fill(a, v):
        for i in range(len(a)):
            a[i] = v
        return a

    clear(x[2:4])
    y = fill(x[:1], 7.0)
    y[0] += 1
    return y


def test_functions_write_through_their_arguments():
    same(written_by_a_function, X)


def same_argument_twice(x, y):
    x[0] = 5.0
    y[1] = 6.0
    return x[1], y[0], x is y


def test_one_array_passed_twice():
    from tests.language.same import same_made

    same(same_argument_twice, X, X)  # deepcopy keeps them one array
    same_made(same_argument_twice, lambda: ((X.copy(), X.copy()), {}))


def tuples_refer(x):
    pair = (x, x[1:])
    pair[0][0] = 9.0
    pair[1][0] = 8.0
    for a in pair:
        a[-1] += 1
    return pair[1]


def dicts_refer(d):
    d["x"][0] = 5.0
    v = d["x"]
    v[1] = d["y"][0]
    return v


def test_containers_hold_references():
    same(tuples_refer, X)
    same(dicts_refer, {"x": X, "y": X * 2})


def rebound_in_one_branch(x, flag):
    y = np.zeros(len(x))
    if flag:
        y = x
    y[0] = 5.0
    return y.sum()


def rebound_view(x, k):
    v = x[1:]
    if k > 0:
        v = x[:-1]
    v[0] = 5.0
    return x


def rebound_in_loop(x, y, n):
    a = x
    for i in range(n):
        a[0] += 1
        a = y
    return a


def read_after_write(x, flag):
    y = x * 2
    if flag:
        y = x
    x[0] = 7.0
    return y.sum()


def returned_either(x, y, flag):
    if flag:
        return x
    return y


@pytest.mark.parametrize("f, args", [
    (rebound_in_one_branch, (X, True)),
    (rebound_view, (X, 1)),
    (rebound_in_loop, (X, X * 2, 3)),
    (read_after_write, (X, True)),
])  # fmt: skip
def test_unknown_references_are_refused(f, args):
    with pytest.raises(tp.CompileError) as caught:
        tp.function(f)(*args)
    assert caught.value.code == "TP105"


def aliased_on_one_path(n, flag):
    if flag:
        a = np.zeros(n)
        b = a
    else:
        a = np.ones(n)
        b = a.copy()
    a[0] = 5.0
    return b[0]


def viewed_on_both_paths(n, flag):
    if flag:
        a = np.zeros(n)
    else:
        a = np.ones(n)
    b = a[1:]
    a[1] = 5.0
    return b[0]


def aliased_on_both_paths(n, flag):
    if flag:
        a = np.zeros(n)
        b = a
    else:
        a = np.ones(n)
        b = a
    a[0] = 5.0
    return b[0], b is a


def aliased_in_a_loop(n, flag):
    a = np.zeros(n)
    b = np.zeros(n)
    for i in range(n):
        a = np.ones(n)
        b = a
    a[0] = 5.0
    return b[0]


def lagging_in_a_loop(n, flag):
    a = np.zeros(n)
    k = 0
    while True:
        b = a
        k += 1
        if k > 2:
            break
        a = a + 1
    a[0] = 10.0
    return b[0]


def aliased_through_two_branches(n, flag):
    a = np.zeros(n)
    m = a if flag else np.ones(n)
    d = m if flag else np.ones(n)
    a[0] = 4.0
    return d[0]


def read_in_the_next_iteration(n, flag):
    a = np.zeros(n)
    d = a if flag else np.ones(n)
    s = 0.0
    for i in range(n):
        s += d[0]
        a[0] += 1
    return s


def returned_twice(n, flag):
    def pair():
        z = np.zeros(n)
        return z, z

    p = pair() if flag else (np.ones(n), np.ones(n))
    p[0][0] = 3.0
    return p[1][0]


ALIASES = [
    aliased_on_one_path, viewed_on_both_paths, aliased_on_both_paths, aliased_in_a_loop, lagging_in_a_loop,
    aliased_through_two_branches, read_in_the_next_iteration, returned_twice,
]  # fmt: skip


@pytest.mark.parametrize("f", ALIASES)
def test_aliases_are_followed_or_refused(f):
    for flag in (True, False):
        followed_or_refused(f, 3, flag)


def test_aliases_that_are_followed():
    for flag in (True, False):
        same_values(viewed_on_both_paths, 3, flag)
        same_values(aliased_on_both_paths, 3, flag)


def only_read(x, flag):
    y = np.zeros(len(x))
    if flag:
        y = x
    return y.sum() + y[0]


def copied_at_the_branch(x, flag):
    y = np.zeros(len(x))
    if flag:
        y = x.copy()
    y[0] = 5.0
    return y


def test_unknown_references_may_be_read():
    for flag in (True, False):
        same(only_read, X, flag)
        same(copied_at_the_branch, X, flag)


def read_only(x):
    return x.sum()


def write_first(x):
    x[0] = 1.0
    return x


def test_read_only_arrays():
    locked = X.copy()
    locked.flags.writeable = False
    assert tp.function(read_only)(locked) == X.sum()
    with pytest.raises((tp.CompileError, ValueError)):
        tp.function(write_first)(locked)
    assert locked[0] == 0.0


def fresh(x):
    return x * 1


def test_results_do_not_share_memory_with_arguments():
    x = X.copy()
    y = tp.function(fresh)(x)
    y[0] = 99
    assert x[0] == 0.0


def two_slices_swap(x):
    a = x[:3]
    b = x[3:]
    t = a.copy()
    a[:] = b
    b[:] = t
    return a, b


def chained_targets(x):
    a = b = x[1:3]
    a[0] = 5.0
    b[1] = 6.0
    x[0] = x[5] = 7.0
    return a, b


def exchanged(x, y):
    t = x.copy()
    x[:] = y
    y[:] = t


def exchanged_reversed(x, y, z):
    t = x.copy()
    x[::-1] = y
    y[:] = z[::-1]
    z[:] = t


def copied_then_written(y, x):
    y[0] = 3.0
    x[:] = y
    y[1] = 4.0


def copied_then_reversed(x):
    before = x.copy()
    x[:] = x[::-1]
    x[1:] = x[:-1]
    x[:] = x[::-1]
    return before


def test_contents_change_places():
    """Several arguments end up with what was in the memory of another one."""
    same(exchanged, X, X * 10)
    same(exchanged_reversed, X, X * 10, X * 100)
    same(copied_then_written, X, X * 10)
    same(copied_then_reversed, X)


def rows_of_a_rebound_array(n):
    y = np.ones((n, 2))
    s = 0.0
    for row in y:
        y[1] = 5.0
        y = y * 2
        s += row.sum()
    return s


def test_a_loop_holds_its_array():
    """While the loop runs, the array it goes over is reachable by no name but still by the loop."""
    followed_or_refused(rows_of_a_rebound_array, 3)


def test_chained_assignment():
    same(two_slices_swap, X)
    same(chained_targets, X)
