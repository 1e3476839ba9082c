"""Loops of every kind that the recoveries are tried on. The last argument is the number of trips."""

import math

import numpy as np

import tapeless as tp
from tests.recovery.same import Loops

loop = Loops()

X = np.array([0.7, -0.3, 0.2, 0.9])
V = np.array([0.1, 0.4, -0.2, 0.3])
A = np.array([[0.5, -0.2], [0.3, 0.8]])
KEYS = np.array([2, 0, 3, 1, 0])

MANY = 65  # trips that floats can be solved back over

# -- scalars


@loop(0.7, 1.1)
def nonlinear(x, a, n):
    for i in range(n):
        x = a * math.sin(x)
    return x * x


@loop(0.7, 1.1)
def nonlinear_with_a_sum_and_a_counter(x, a, n):
    s, k = 0.0, 0
    for i in range(n):
        x = a * math.sin(x) + 0.01 * k
        k += 1
        s += x * x
    return s


@loop(0.3, 1.1, inverts=MANY)
def linear(x, a, n):
    for i in range(n):
        x = 0.98 * x * a + 0.1
    return x * x


@loop(0.3, 0.5, inverts=MANY)
def product(x, a, n):
    y = 1.0
    for i in range(n):
        y *= 1.0 + 0.01 * a
    return x * y


@loop(0.3, 0.2, -0.1)
def three_that_depend_on_each_other(x, y, z, n):
    for i in range(n):
        x, y, z = 0.9 * y + 0.1 * math.sin(z), math.cos(x), x * y
    return x + y * z


@loop(0.2, 0.6)
def backwards_index(x, a, n):
    for i in range(n, 0, -1):
        x = math.sin(x) + a / i
    return x


@loop(0.2, 0.6)
def index_with_a_step(x, a, n):
    for i in range(3, 3 + 2 * n, 2):
        x = math.sin(x) + a / i
    return x


# -- coupled and reversible


@loop(0.3, 0.2, 0.1, inverts=MANY)
def leapfrog(x, v, h, n):
    for i in range(n):
        v = v - h * math.sin(x)
        x = x + h * v
    return x * v


@loop(X, V, 0.1, inverts=MANY, undo=False)
def leapfrog_of_arrays(x, v, h, n):
    for i in range(n):
        v -= h * np.sin(x)
        x += h * v
    return np.sum(x * v)


@loop(X, V, 0.1, inverts=MANY)
def leapfrog_by_cells(x, v, h, n):
    for i in range(n):
        for j in range(len(x)):
            v[j] -= h * math.sin(x[j])
        for j in range(len(x)):
            x[j] += h * v[j]
    return np.sum(x * v)


@loop(0.4, 0.3, inverts=MANY)
def swapped(x, y, n):
    for i in range(n):
        x, y = y, x + 0.1 * math.sin(y)
    return x * y


@loop(0.4, 0.3, inverts=MANY)
def only_swapped(x, y, n):
    for i in range(n):
        x, y = y, x
    return x * x * y


@loop(X, V, undo=False, inverts=MANY)
def swapped_arrays(x, v, n):
    for i in range(n):
        x, v = v, x + 0.1 * np.sin(v)
    return np.sum(x * v * v)


@loop(0.4, 0.3, inverts=MANY)
def either_of_two(x, y, n):
    for i in range(n):
        if i % 3 == 0:
            x += 0.1 * math.sin(y)
        else:
            y += 0.1 * math.cos(x)
    return x * y


# -- arrays


@loop(X, undo=False)
def replaced(x, n):
    for i in range(n):
        x = np.sin(x) * x[0] + 0.5
    return np.sum(x * x)


@loop(X, A, undo=False)
def matrix_vector(x, a, n):
    y = x[:2] * 1.0
    for i in range(n):
        y = np.tanh(a @ y)
    return np.sum(y * y)


@loop(X, 0.3)
def one_cell(x, a, n):
    for i in range(n):
        x[i % 4] = math.sin(x[(i + 1) % 4]) * a + x[i % 4] ** 2 * 0.5
    return np.sum(x * x)


@loop(X)
def cells_by_a_table(x, n):
    for i in range(n):
        k = KEYS[i % 5]
        x[k] = 0.5 * x[k] * x[k - 1] + 0.3
    return np.sum(x * x)


@loop(X, smooth=False)
def cells_by_what_they_hold(x, n):
    for i in range(n):
        k = int(abs(10 * x[i % 4])) % 4
        x[k] = 0.6 * math.sin(x[k]) + 0.4 * x[(k + 1) % 4]
    return np.sum(x * x)


@loop(X)
def slices(x, n):
    for i in range(n):
        x[1:-1] = x[1:-1] + 0.1 * (x[:-2] * x[2:] - x[1:-1] ** 2)
    return np.sum(x * x)


@loop(X)
def rows_before_and_after(x, n):
    y = np.zeros((3, 4))
    y[0] = x
    for i in range(n):
        y[(i + 1) % 3] = np.sin(y[i % 3]) + 0.5 * y[(i + 2) % 3]
    return np.sum(y * y)


@loop(X, undo=False)
def two_buffers(x, n):
    a, b = x.copy(), np.zeros(4)
    for i in range(n):
        for j in range(4):
            b[j] = math.sin(a[j]) * a[j - 1]
        a, b = b, a
    return np.sum(a * b + a)


@loop(X)
def cell_and_number(x, n):
    y = x[0]
    for i in range(n):
        x[i % 4] += 0.1 * y * x[(i + 1) % 4]
        y = math.sin(y + x[i % 4])
    return y + np.sum(x)


@loop(X, undo=False)
def whole_and_cell(x, n):
    for i in range(n):
        x = 0.9 * np.sin(x)
        x[i % 4] = x[0] * x[1] + 0.2
    return np.sum(x)


@loop(X, smooth=False)
def written_in_a_branch(x, n):
    for i in range(n):
        if x[i % 4] > 0.2:
            x[(i + 1) % 4] = math.sin(x[i % 4]) * x[(i + 1) % 4]
        else:
            x[i % 4] = x[i % 4] ** 2 + 0.3
    return np.sum(x)


@loop(np.zeros((0,)), 0.4, undo=False)
def nothing_in_it(x, a, n):
    for i in range(n):
        x = np.sin(x) * a
        a = math.sin(a)
    return np.sum(x) + a


# -- integers


@loop(0.3, smooth=False)
def random_numbers_that_wrap(x, n):
    s = 12345
    for i in range(n):
        s = s * 6364136223846793005 + 1442695040888963407
        x = math.sin(x) * (0.5 + 0.125 * ((s >> 33) % 7))
    return x


@loop(0.3)
def random_numbers(x, n):
    s = 12345
    for i in range(n):
        s = (s * 1103515245 + 12345) % 2147483648
        x = math.sin(x) * (0.5 + s / 2147483648)
    return x


@loop(0.3, smooth=False, inverts=MANY)
def random_numbers_solved_for(x, n):
    s = 12345
    for i in range(n):
        x = x * (1.0 + 0.001 * (s % 3))
        s = s * 6364136223846793005 + 1442695040888963407
    return x * x


@loop(0.3)
def exclusive_or(x, n):
    s = 1
    for i in range(n):
        s ^= i * 5 + 1
        x = math.sin(x + (s & 3))
    return x


@loop(0.3)
def counters(x, n):
    up, down, by, whole = 0, 100, 7, 2.0
    for i in range(n):
        x = math.sin(x) + 0.001 * up * down + 0.01 * by / whole
        up += 1
        down -= 3
        by += n
        whole += 2.0
    return x * up + down + whole * x


@loop(0.3)
def remainder(x, n):
    k = 5
    for i in range(n):
        k = (k * 3 + 1) % 17
        x = math.sin(x) * k * 0.1
    return x


# -- branches


@loop(0.6, 0.2)
def branch_on_a_float(x, a, n):
    for i in range(n):
        if x > 0.4:
            x = a * math.sin(x)
        else:
            x = x + math.cos(a * x)
    return x


@loop(0.6, 0.2)
def values_of_a_branch(x, a, n):
    for i in range(n):
        if i % 2:
            y = math.exp(-x * x)
        else:
            y = a * x
        x = math.sin(x + y)
    return x


# -- comparisons


@loop(V, X, undo=False)
def shortest(v, w, n):
    for i in range(n):
        v = np.minimum(v + 0.13, np.roll(v, 1) + w)
    return np.sum(v * v)


@loop(V, undo=False)
def clipped(v, n):
    for i in range(n):
        v = np.clip(1.3 * v - 0.1, -1.0, 1.0)
    return np.sum(v * v)


@loop(V, X, undo=False)
def rectified(v, x, n):
    weights = np.array([[0.5, -0.2, 0.1, 0.3], [0.1, 0.7, -0.4, 0.2], [0.3, 0.1, 0.2, -0.6], [-0.1, 0.4, 0.3, 0.5]])
    for i in range(n):
        v = np.maximum(weights @ v + x, 0.0)
    return np.sum(v * v)


@loop(0.33, 0.23)
def folded(x, a, n):
    for i in range(n):
        x = 0.5 * x - 1.0 if x > 0.0 else x + a
    return x * x


@loop(V, X, undo=False)
def decided_beside_stored(v, u, n):
    for i in range(n):
        v = np.maximum(v - 0.1, u)
        u = np.sin(u) + 0.01 * v
    return np.sum(v * u)


@loop(A)
def updated_where_shorter(d, n):
    d = d.copy()
    for i in range(n):
        for j in range(2):
            for k in range(2):
                t = d[j, 0] + d[0, k]
                if t < d[j, k]:
                    d[j, k] = t
    return np.sum(d * d)


@loop(V, undo=False)
def compared_inside_and_outside(v, n):
    for i in range(n):
        for k in range(3):
            v = np.maximum(0.5 * v + 0.1, 0.9 * np.roll(v, 1))
        v = np.where(v > 0.3, v - 0.2, v * 1.1)
    return np.sum(v * v)


@loop(V, undo=False)
def decided_by_a_sum(v, n):
    for i in range(n):
        if np.sum(v) > 0.5:
            v = v - 0.3
        else:
            v = v * 1.1 + 0.1
    return np.sum(v * v)


@loop(A, undo=False)
def every_pair(d, n):
    for i in range(n):
        d = np.minimum(d, d[:, i % 2, None] + d[None, i % 2, :] + 0.1)
    return np.sum(d * d)


# -- nests


@loop(0.6, 0.2)
def nest(x, a, n):
    for i in range(n):
        for j in range(3):
            x = math.sin(x) + a * j
        x *= 0.5
    return x


@loop(0.6, 0.2)
def nest_of_three(x, a, n):
    s = 0.0
    for i in range(n):
        for j in range(i % 3):
            for k in range(2):
                x = math.sin(x + a * k)
            s += x * j
        x = 0.9 * x + 0.1 * s / (1 + i)
    return x + s


@loop(X)
def triangle(x, n):
    for i in range(n):
        for j in range(i % 4):
            x[i % 4] += 0.1 * x[j] * x[i % 4]
        x[i % 4] = math.sin(x[i % 4])
    return np.sum(x)


@loop(0.6, 0.2)
def one_after_the_other(x, a, n):
    for i in range(n):
        x = math.sin(x) + a
    for i in range(n // 2):
        x = math.cos(x) * a
    return x


# -- while


@loop(0.9, 0.2)
def counted_while(x, a, n):
    k = 0
    while k < n:
        x = math.sin(x) + a
        k += 1
    return x


@loop(0.9, 0.2, smooth=False)
def while_without_a_bound(x, a, n):
    k = 0
    while abs(x) > 0.15 + 1.0 / (1 + n):
        x = 0.95 * math.sin(x)
        k += 1
    return x + a * k * x


@loop(0.9, 0.2)
def left_early(x, a, n):
    for i in range(n):
        x = math.sin(x) + a
        if i == 40:
            break
    return x


@loop(0.9, 0.2, smooth=False)
def left_in_the_middle(x, a, n):
    s = 0.0
    for i in range(n):
        x = math.sin(x) * 0.95
        if x < 0.2:
            break
        s += a * x * x
    return x + s


@loop(0.9, 0.2)
def skipped(x, a, n):
    for i in range(n):
        if i % 3 == 1:
            continue
        x = math.sin(x) + a * i * 0.01
    return x


@loop(X, smooth=False)
def while_with_an_array(x, n):
    k = 0
    while k < n and x[0] > -5.0:
        x[k % 4] = math.sin(x[(k + 1) % 4]) + 0.5 * x[k % 4]
        k += 1
    return np.sum(x * x)


# -- inside of others


@loop(X, 0.3)
def mapped(x, a, n):
    def run(y):
        for i in range(n):
            y = math.sin(y) + a
        return y

    return np.sum(tp.map(run, x))


@loop(X, 0.3)
def mapped_with_an_array(x, a, n):
    def run(y):
        z = np.zeros(2)
        z[0] = y
        for i in range(n):
            z[i % 2] = math.sin(z[0] * a) + 0.5 * z[1]
        return z[0] * z[1]

    return np.sum(tp.map(run, x))


@loop(X, 0.3)
def in_a_branch(x, a, n):
    y = x[0]
    if a > 0:
        for i in range(n):
            y = math.sin(y) + a * x[i % 4]
    else:
        for i in range(n):
            y = math.cos(y)
    return y


@loop(X, 0.3)
def reads_outside(x, a, n):
    y = a
    for i in range(n):
        y = math.sin(y + x[i % 4] * a)
    return y


# -- other kinds of numbers


@loop(np.float32(0.6), np.float32(0.3), smooth=False)
def single(x, a, n):
    for i in range(n):
        x = np.sin(x) * a + np.float32(0.5)
    return x


@loop(X.astype(np.float32), V.astype(np.float32), inverts=28, smooth=False, undo=False)
def single_arrays(x, v, n):
    for i in range(n):
        v = v - np.float32(0.1) * np.sin(x)
        x = x + np.float32(0.1) * v
    return np.sum(x * v * v)


@loop(0.6, 0.3)
def complex_inside(x, a, n):
    z = x + 1j * a
    for i in range(n):
        z = z * z * 0.5 + 0.3j
    return z.real * z.imag


@loop(0.6, 0.3, inverts=MANY)
def rotation(x, a, n):
    z = x + 0.5j
    for i in range(n):
        z = z * (math.cos(a) + 1j * math.sin(a))
    return z.real * z.imag
