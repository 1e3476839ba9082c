"""Arrays that are written: in loops and branches, through slices, views and aliases, by arrays of indices."""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import Case, Cases

case = Cases()

X = np.array([0.7, -1.3, 2.1, 0.4])
A = np.arange(6.0).reshape(2, 3) / 5 + 0.1
PLACES = np.array([2, 0, 2, 3])
APART = np.array([3, 0, 2])
ROWS, COLUMNS = np.array([0, 1, 1]), np.array([2, 0, 0])


# -- the arguments themselves


@case(np.array([2.0, 3.0, 4.0]), jacobian=[12, 8, 6])
def running_product_in_place(a):
    for i in range(1, len(a)):
        a[i] = a[i - 1] * a[i]
    return a[2]


@case(X, 0.5)
def written_argument_as_result(x, y):
    x[1] = y * x[0]
    x[2] *= x[1]
    return x


@case(X, jacobian=np.diag([1.0, 0, 1, 1]))
def overwritten_by_a_constant(x):
    x[1] = 3.0
    return x


@case(X)
def filled(x):
    x[:] = x[0] * 2
    return x


# -- in loops


@case(X)
def built_up(x):
    y = np.zeros(6)
    y[0] = x[0]
    for i in range(1, 6):
        y[i] = math.sin(y[i - 1]) * x[i % 4]
    return y


@case(X)
def overwritten_again_and_again(x):
    y = np.ones(2)
    for i in range(len(x)):
        y[0] = y[1] * x[i]
        y[1] = y[0] * y[0] + y[1]
    return y


@case(X)
def neighbours(x):
    for step in range(3):
        for i in range(1, len(x) - 1):
            x[i] = x[i] + 0.1 * (x[i - 1] * x[i + 1] - x[i] ** 2)
    return x


@case(X)
def neighbours_as_slices(x):
    for step in range(3):
        x[1:-1] = x[1:-1] + 0.1 * (x[:-2] * x[2:] - x[1:-1] ** 2)
    return x


@case(X)
def two_buffers(x):
    a, b = x.copy(), np.zeros(len(x))
    for step in range(3):
        for i in range(len(x)):
            b[i] = a[i] * a[i - 1]
        a, b = b, a
    return a


@case(A)
def elimination(a):
    for k in range(1):
        for i in range(k + 1, a.shape[0]):
            factor = a[i, k] / a[k, k]
            for j in range(k, a.shape[1]):
                a[i, j] -= factor * a[k, j]
    return a


@case(X)
def data_dependent_places(x):
    h = np.ones(3)
    for i in range(len(x)):
        k = int(abs(x[i]) + 0.2)
        h[k] = h[k] * x[i] + x[0]
    return h


@case(X)
def bubble_sort(x):
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


@case(X, 0.3)
def updates_in_a_while(x, y):
    k = 0
    while k < 7:
        x[k % 4] = x[(k + 1) % 4] * x[k % 4] + y
        k += 1
    return x


@case(X)
def updates_before_a_break(x):
    for i in range(1, len(x)):
        x[i] = x[i] * x[i - 1]
        if x[i] < -0.9:
            break
        x[i - 1] = x[i] ** 2
    return x


@case(A)
def rows_in_a_loop(a):
    for i in range(3):
        a[i % 2] = np.cos(a[(i + 1) % 2]) * a[i % 2]
    return a


@case(X)
def augmented_with_itself(x):
    for i in range(len(x)):
        x[i] += x[i] * x[-1]
    return x


# -- in branches


@case(X, 2.0)
def write_in_one_branch(x, y):
    if y > 1:
        x[0] = x[1] * y
    else:
        x[2] = y
    return x * x


@case(X)
def writes_in_branches_of_a_loop(x):
    for i in range(1, len(x)):
        if x[i] > 0:
            x[i - 1] = x[i] * x[i - 1]
        else:
            x[i] = x[i] ** 2
    return x


@case(X)
def swap_in_a_branch(x):
    y = x * 2
    if x[0] > 0:
        t = x[1]
        x[1] = y[0]
        y[0] = t * t
    return x, y


# -- views and aliases


@case(X)
def write_through_an_alias(x):
    y = x
    y[0] = x[1] * 2
    x[1] = y[0] * y[2]
    return x


@case(X)
def write_through_a_slice(x):
    v = x[1:3]
    v[0] = v[1] * x[0]
    v *= 2
    return x


@case(X)
def read_after_a_write_through_a_view(x):
    v = x[::-1]
    x[0] = 5 * x[1]
    v[1] = v[3] ** 2
    return x, v


@case(A)
def write_through_a_transpose(a):
    t = a.T
    t[2, 0] = t[0, 1] * a[1, 2]
    a[0] += t[:, 1]
    return a


@case(A)
def row_as_a_view(a):
    r = a[1]
    for j in range(3):
        r[j] = r[j] * a[0, j]
        a[0, j] = r[j] + 1
    return a


@case(X)
def copy_is_apart(x):
    y = x.copy()
    x[0] = y[1] * y[0]
    y[1] = x[0]
    return x, y


@case(A)
def reshaped_view(a):
    v = a.reshape(6)
    v[4] = a[0, 1] * v[5]
    return a


# -- swaps


@case(X)
def swap_of_elements(x):
    x[0], x[2] = x[2], x[0] * x[1]
    return x


@case(X, X[::-1] + 1)
def swap_of_arrays(x, y):
    for i in range(3):
        x, y = y, x * y
    return x, y


@case(A)
def swap_of_rows(a):
    t = a[0].copy()
    a[0] = a[1]
    a[1] = t * 2
    return a


# -- slices


@case(X)
def read_slices(x):
    return x[1:] * x[:-1], x[::2], x[::-1], x[-3:-1]


@case(A)
def read_planes(a):
    return a[:, 1], a[0, ::2] * a[1, 1:], a[1, np.newaxis, :]


@case(A, np.array([1.5, 2.5]))
def write_a_column(a, c):
    a[:, 1] = c * a[:, 0]
    a[1, :2] *= c[0]
    return a


@case(X, 0.5)
def add_to_a_slice(x, y):
    x[1:3] += y
    x[::3] -= x[1:3]
    return x


@case(A, 0.5)
def scalar_into_a_plane(a, y):
    a[:, 0] = y * y
    return a


# -- arrays of indices


@case(X, jacobian=np.eye(4)[[2, 0, 2, 3]])
def gather(x):
    return x[PLACES]


@case(A)
def gather_in_two_dimensions(a):
    return a[ROWS, COLUMNS] * a[ROWS, 1], a[:, COLUMNS], a[ROWS]


@case(X, np.array([1.0, 2.0, 3.0]))
def scattered_write(x, v):
    x[APART] = v * x[1]
    return x


@case(X, np.array([1.0, 2.0, 3.0]))
def scattered_addition(x, v):
    x[APART] += v * x[APART]
    return x


@case(X, np.array([1.0, 2.0, 3.0, 4.0]))
def the_last_of_several_writes_stays(x, v):
    x[PLACES] = v * v
    return x


@case(A, np.array([1.0, 2.0]))
def scattered_rows(a, v):
    a[:, np.array([2, 0])] = v
    return a * a


@case(X)
def gather_of_a_gather(x):
    y = x[PLACES] * 2
    return y[PLACES] * x[PLACES]


@case(X)
def masked_write(x):
    x[x < 0] = 0.0
    return x * x


@case(X, 3.0)
def masked_update(x, y):
    x[x > 0.5] *= y
    return x


@pytest.mark.sampled(3)
@case.all
def test_jacobian(program: Case) -> None:
    program.check()


def test_parts_of_an_adjoint_are_added_to_the_whole():
    """No array of zeros, no sum of whole arrays: the copy's adjoint becomes the array's, and slices are added to it."""

    def f(u):
        middle = u[1:-1]
        v = u.copy()
        v[1:-1] = middle * middle + u[:-2] * u[2:]
        return np.sum(v * v)

    u = np.linspace(0.2, 1.3, 7)
    v = u.copy()
    v[1:-1] = u[1:-1] ** 2 + u[:-2] * u[2:]
    expected = 2.0 * v
    expected[1:-1] = 0.0
    expected[1:-1] += 2.0 * v[1:-1] * 2.0 * u[1:-1]
    expected[:-2] += 2.0 * v[1:-1] * u[2:]
    expected[2:] += 2.0 * v[1:-1] * u[:-2]
    derived = tp.grad(f)
    np.testing.assert_allclose(derived(u), expected, rtol=1e-14)
    tp.check_grads(f, (u,), order=2)
    assert "full [n] 0.0" not in derived.ir(u, stage="optimized")


def test_parts_before_and_after_the_whole():
    def f(u, k):
        a = u[k] * u[0]  # added to the adjoint last
        w = u * 2.0
        b = np.sum(u[1:] * w[:-1])  # and first
        for i in range(20):  # more parts than are worth keeping apart
            b = b + u[i % 5] * a
        return b + u[2] * a * np.sum(w)

    u = np.linspace(0.5, 1.5, 5)
    tp.check_grads(lambda u: f(u, 3), (u,), order=2)
    unrolled = lambda u: u[0] * u[1] + u[1] * u[2] * u[0] + u[3] * u[4] + np.sum(u * u) * u[2] + u[4]
    tp.check_grads(unrolled, (u,), order=2)
