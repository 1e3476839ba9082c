"""The parallel operators, compiled against their plain Python: nested, with tuples, on empty arrays, in every element type."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_native, same_values

X = np.array([3.0, 1.0, -4.0, 1.5, 5.0, -9.0])
Y = np.arange(6.0)
M = np.arange(12.0).reshape(4, 3) - 4
K = np.array([0, 2, 1, 2, -1, 7])
KINDS = [np.float64, np.float32, np.int64, np.int32]


def maps(x, y, n):
    a = tp.map(lambda v: v * 2, x)
    b = tp.map(lambda u, v: u * v + n, x, y)
    c = tp.map(lambda i: i * i, n)
    d = tp.map(lambda u, v: (u + v, u > v), x, y)
    e = tp.map(lambda i: x[i] + i, len(x))
    return a, b, c, d, e


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_map(kind):
    same(maps, X.astype(kind), Y.astype(kind), 4)


def map_rows(m):
    return (
        tp.map(lambda row: row.sum(), m), tp.map(lambda row: row * 2, m), tp.map(lambda row: tp.map(lambda v: v + row[0], row), m),
        tp.map(lambda row: (row.max(), row[::-1]), m), tp.map(lambda i: m[i] @ m[i], m.shape[0]),
    )  # fmt: skip


def map_tuples(pair, x):
    return tp.map(lambda p, v: p[0] * v + p[1].sum(), pair, x), tp.map(lambda p: {"a": p[0], "b": p[1]}, pair)


def test_map_of_rows_and_tuples():
    same(map_rows, M)
    same(map_rows, M.astype(np.float32))
    same(map_tuples, (Y[:4], M), X[:4])


def map_with_statements(x, limit):
    def one(v):
        s = 0.0
        k = 0
        while s < limit and k < 20:
            s += abs(v) + 0.5
            k += 1
            if s == 3.5:
                break
        t = np.zeros(3)
        for i in range(3):
            t[i] = s * i
        return k, t

    return tp.map(one, x)


def test_map_of_a_function_with_loops():
    same(map_with_statements, X, 10.0)


def map_empty(x):
    return tp.map(lambda v: v * 2.0, x), tp.map(lambda i: i * 0.5, len(x))


def test_map_of_nothing():
    got = tp.function(map_empty)(np.zeros(0))
    assert [g.shape for g in got] == [(0,), (0,)]


def reduces(x):
    return (
        tp.reduce(lambda a, b: a + b, 0, x), tp.reduce(lambda a, b: a * b, 1, x), tp.reduce(max, -100, x),
        tp.reduce(lambda a, b: a if a < b else b, 100, x), tp.reduce(lambda a, b: a + b, 0, x, commutative=True),
    )  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_reduce(kind):
    same(reduces, X.astype(kind))
    same(reduces, np.zeros(0, kind))
    same(reduces, np.ones(1, kind))


def reduce_tuples(x):
    def best(a, b):
        return a if a[0] > b[0] or (a[0] == b[0] and a[1] <= b[1]) else b

    def affine(f, g):
        return f[0] * g[0], f[1] * g[0] + g[1]

    where = tp.reduce(best, (-np.inf, -1), (x, np.arange(len(x))))
    line = tp.reduce(affine, (1.0, 0.0), (x, x + 1))
    mean = tp.reduce(lambda p, q: (p[0] + q[0], p[1] + q[1]), (0.0, 0), (x, np.ones(len(x), dtype=np.int64)))
    return where, line, mean


def reduce_rows(m):
    return (
        tp.reduce(lambda a, b: a + b, np.zeros(3), m),
        tp.reduce(np.maximum, np.full(3, -100.0), m),
        tp.reduce(lambda a, b: a + b, 0.0, m),
    )


def matrix_product(ms):
    return tp.reduce(lambda a, b: a @ b, np.eye(2), ms)


def test_reduce_tuples_and_rows():
    same(reduce_tuples, X)
    same_values(reduce_tuples, np.zeros(0))
    same(reduce_rows, M)
    same(matrix_product, np.arange(12.0).reshape(3, 2, 2) / 4)


def scans(x):
    add = lambda a, b: a + b
    return (
        tp.scan(add, 0, x), tp.scan(add, 0, x, exclusive=True), tp.scan(add, 0, x, reverse=True),
        tp.scan(add, 0, x, exclusive=True, reverse=True), tp.scan(max, -100, x), tp.scan(lambda a, b: a * b, 1, x),
    )  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_scan(kind):
    same(scans, X.astype(kind))
    same(scans, np.zeros(0, kind))
    same(scans, np.ones(1, kind))


def scan_tuples(x):
    def compose(f, g):  # not commutative: the order of the operands shows
        return f[0] * g[0], f[1] * g[0] + g[1]

    return (
        tp.scan(compose, (1.0, 0.0), (x, x - 1)), tp.scan(compose, (1.0, 0.0), (x, x - 1), reverse=True),
        tp.scan(compose, (1.0, 0.0), (x, x - 1), exclusive=True),
    )  # fmt: skip


def scan_rows(m):
    return tp.scan(lambda a, b: a + b, np.zeros(3), m), tp.scan(lambda a, b: a + b, 0.0, m, exclusive=True)


def test_scan_tuples_and_rows():
    same(scan_tuples, X)
    same(scan_rows, M)


def long_scan(x):
    return tp.scan(lambda a, b: a + b, 0, x), tp.reduce(lambda a, b: a ^ b, 0, x), tp.scan(max, -(10**9), x)


@pytest.mark.thorough
def test_long_arrays_on_several_threads():
    same_native(long_scan, (np.arange(100_003) * 7919) % 1009)


def hists(k, v, n):
    return (
        tp.hist(lambda a, b: a + b, 0, n, k, v), tp.hist(max, -100, n, k, v), tp.hist(lambda a, b: a + b, 0, np.ones(n, v.dtype), k, v),
        tp.hist(lambda a, b: a * b, 1, n, k, v),
    )  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_hist(kind):
    same(hists, K, X.astype(kind), 4)
    same(hists, K.astype(np.int32), X.astype(kind), 3)
    same(hists, K[:0], X[:0].astype(kind), 3)


def hist_tuples(k, v):
    def op(a, b):
        return a[0] + b[0], max(a[1], b[1])

    def nearest(a, b):
        return a if a[0] < b[0] or (a[0] == b[0] and a[1] < b[1]) else b

    both = tp.hist(op, (0.0, -1e9), 3, k, (v, v))
    first = tp.hist(nearest, (1e9, 10**6), 3, k, (v, np.arange(len(v))))
    return both, first


def hist_rows(k, m):
    return tp.hist(lambda a, b: a + b, np.zeros(3), 3, k, m)


def counts(k, n):
    return tp.hist(lambda a, b: a + b, 0, n, k, np.ones(len(k), dtype=np.int64))


@pytest.mark.thorough
def test_hist_tuples_and_rows():
    same(hist_tuples, K, X)
    same(hist_rows, K[:4], M)
    same_native(counts, (np.arange(50_000) * 31) % 107 - 3, 100)


def scatters(dest, k, v):
    a = tp.scatter(dest, k, v)
    b, c = tp.scatter((dest, dest * 2), k, (v, v + 1))
    return a, b, c


def scatter_rows(dest, k, m):
    return tp.scatter(dest, k, m)


def test_scatter():
    keys = np.array([3, 0, -1, 9, 1, 5])
    for kind in KINDS:
        same(scatters, np.zeros(5, kind), keys, X.astype(kind))
    same(scatters, np.ones(5), keys[:0], X[:0])
    same(scatter_rows, np.zeros((5, 3)), np.array([4, 0, -1, 2]), M)


def results_are_new(x, k, v):
    y = tp.scatter(x, k, v)
    h = tp.hist(lambda a, b: a + b, 0.0, x, k, v)
    x[0] = 99.0
    return y, h


def test_inputs_are_not_overwritten():
    same(results_are_new, np.zeros(4), np.array([0, 2, 1]), X[:3])


def parallel_own_cells(x, m):
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        s = 0.0
        for j in range(m.shape[0]):
            s += x[i] * m[j, 0]
        if s > 0:
            out[i] = s
        else:
            out[i] = -1.0
    return out


def parallel_sum(x, n):
    s = 0.0
    count = 0
    p = 1.0
    for i in tp.prange(n):
        s += x[i] * 2
        p *= 1.0 + i / 10
        if x[i] > 0:
            count += 1
    return s, count, p


def parallel_largest(x, start):
    largest, smallest, bounded = start, start, start
    for i in tp.prange(len(x)):
        largest = max(largest, x[i])
        if x[i] < smallest:
            smallest = x[i]
        if i % 2 == 0:
            bounded = min(bounded, 2 * x[i], x[i] + 1)
    return largest, smallest, bounded


def parallel_numpy_largest(x, start):
    a, b, c = start, start, start
    for i in tp.prange(len(x)):
        a = np.maximum(a, x[i])
        b = np.fmin(x[i], b)
        c = np.fmax(c, x[i] * 2)
    return a, b, c


def parallel_largest_integer(x):
    m = x[0]
    for i in tp.prange(len(x)):
        m = max(x[i] * x[i], m)
    return m


@pytest.mark.thorough
def test_parallel_largest_and_smallest():
    rng = np.random.default_rng(3)
    for n in (0, 1, 2, 7, 1000, 100_000):
        x = rng.standard_normal(n)
        for start in (np.float64(0.0), np.float64(-np.inf), np.float64(np.nan), np.float64(5.0)):
            same_native(parallel_largest, x, start)
            same_native(parallel_numpy_largest, x, start)
    x = np.array([np.nan, 1.0, np.nan, -3.0, np.inf, np.nan])
    for kind in (np.float64, np.float32):
        for start in (0.0, np.nan):
            for rows in (x, x[::-1].copy(), x[:1], x[:4]):
                same(parallel_largest, rows.astype(kind), kind(start))
                same(parallel_numpy_largest, rows.astype(kind), kind(start))
    same(parallel_largest_integer, np.array([3, -9, 4]))
    same(parallel_largest_integer, np.array([3, -9, 4], np.int32))


def test_parallel_loops_over_maxima_run_in_parallel():
    core = tp.function(parallel_largest).ir(np.ones(4), np.float64(0.0), stage="optimized")
    assert "loop" not in core and core.count("max") > 1


def parallel_hist(k, v, n):
    h = np.zeros(n)
    g = np.zeros(n, dtype=np.int64)
    for i in tp.prange(len(k)):
        if 0 <= k[i] < n:
            h[k[i]] += v[i]
            g[k[i]] += 1
    return h, g


def parallel_rows(m):
    for i in tp.prange(m.shape[0]):
        m[i] *= 2
        m[i, 0] = i
    return m


def parallel_nested(n, k):
    out = np.zeros((n, k))
    for i in tp.prange(n):
        for j in tp.prange(k):
            out[i, j] = i * 10 + j
    return out


def parallel_nested_sums(m):
    out = np.zeros(m.shape[0])
    total = 0.0
    for i in tp.prange(m.shape[0]):
        for j in tp.prange(m.shape[1]):
            out[i] += m[i, j]
            total += m[i, j]
    return out, total


def parallel_steps(n):
    out = np.zeros(n)
    for i in tp.prange(1, n, 2):
        out[i] = i
    for i in tp.prange(n - 1, -1, -3):
        out[i] += 0.5
    return out


def parallel_conditional(x):
    s = 0.0
    n = 0
    for i in tp.prange(len(x)):
        if x[i] < 0:
            continue
        n += 1
        if x[i] > 2:
            s += x[i]
        else:
            s -= 1.0
    return s, n


def parallel_temporary(x):
    out = np.zeros(len(x))
    for i in tp.prange(len(x)):
        t = np.zeros(3)
        for j in range(3):
            t[j] = x[i] * j
        out[i] = t.sum()
    return out


@pytest.mark.thorough
def test_prange():
    same(parallel_own_cells, X, M)
    same_values(parallel_sum, X, 6)
    same_values(parallel_sum, X, 0)
    same(parallel_hist, K, X, 4)
    same(parallel_hist, K[:0], X[:0], 4)
    same(parallel_rows, M)
    same(parallel_nested, 3, 4)
    same_values(parallel_nested_sums, M)
    same(parallel_steps, 10)
    same_values(parallel_conditional, X)
    same_values(parallel_conditional, X[:0])
    same(parallel_temporary, X)
    same_native(parallel_sum, np.sin(np.arange(50_000)), 50_000)
    same_native(parallel_own_cells, np.sin(np.arange(5_000)), M)


def parallel_carried(x):
    for i in tp.prange(1, len(x)):
        x[i] = x[i - 1] + 1
    return x


def parallel_left(x):
    for i in tp.prange(len(x)):
        if x[i] < 0:
            break
    return x


@pytest.mark.parametrize("f", [parallel_carried, parallel_left])
def test_loops_that_are_not_parallel_are_refused(f):
    with pytest.raises(tp.CompileError):
        tp.function(f)(X.copy())


def parallel_error(x, k):
    out = np.zeros(len(k))
    for i in tp.prange(len(k)):
        out[i] = x[k[i]]
    return out


def map_error(x, k):
    return tp.map(lambda j: x[j], k)


def test_errors_come_out_of_parallel_code():
    k = np.arange(1000) % 6
    same(parallel_error, X, k)
    same(map_error, X, k)
    k[777] = 6
    raises(IndexError, parallel_error, X, k)
    raises(IndexError, map_error, X, k)


def vmaps(m, v):
    return (
        tp.vmap(lambda row: row.sum())(m), tp.vmap(lambda row, s: row * s)(m, v), tp.vmap(lambda column: column.max(), in_axes=1)(m),
        tp.vmap(lambda row, w: row @ w, in_axes=(0, None))(m, m[0]), tp.vmap(lambda row: row * 2, out_axes=1)(m),
        tp.vmap(tp.vmap(lambda a: a + 1))(m), tp.vmap(lambda a: (a.sum(), a), in_axes=-1, out_axes=(0, 1))(m),
    )  # fmt: skip


def test_vmap():
    same(vmaps, M, Y[:4])
    same(vmaps, M.astype(np.float32), Y[:4].astype(np.float32))


def test_vmap_outside():
    f = tp.vmap(tp.function(lambda row: row.sum()))
    assert np.array_equal(f(M), M.sum(axis=1))
    g = tp.function(tp.vmap(lambda row: row * 2))
    assert np.array_equal(g(M), M * 2)


DOUBLED_COLUMNS = tp.vmap(lambda column: column * 2, in_axes=1, out_axes=1)


def uses_a_global_vmap(m):
    return DOUBLED_COLUMNS(m) + 1


def test_vmap_of_the_surroundings():
    same(uses_a_global_vmap, M)


def nested_operators(m, k):
    row_sums = tp.map(lambda row: tp.reduce(lambda a, b: a + b, 0.0, row), m)
    running = tp.map(lambda row: tp.scan(lambda a, b: a + b, 0.0, row), m)
    table = tp.map(lambda row: tp.hist(lambda a, b: a + b, 0.0, 3, k, row), m)
    total = tp.reduce(lambda a, b: a + b, 0.0, tp.map(lambda row: tp.reduce(max, -1e9, row), m))
    outer = tp.map(lambda i: tp.map(lambda j: i * 10 + j, 3), 4)
    scattered = tp.map(lambda row: tp.scatter(np.zeros(3), k, row), m)
    return row_sums, running, table, total, outer, scattered


def operators_in_loops(m, n):
    x = m[0].copy()
    for i in range(n):
        x = tp.map(lambda v: v * 0.5 + i, x)
        x = tp.scan(lambda a, b: a + b, 0.0, x)
        if tp.reduce(lambda a, b: a + b, 0.0, x) > 100:
            break
    return x


def loops_in_prange_in_map(m):
    def one(row):
        out = np.zeros(len(row))
        for i in tp.prange(len(row)):
            for j in range(i + 1):
                out[i] += row[j]
        return out.sum(), out

    return tp.map(one, m)


def test_nested_operators():
    same(nested_operators, M, np.array([0, 2, 5]))
    same(operators_in_loops, M, 5)
    same(operators_in_loops, M, 0)
    same(loops_in_prange_in_map, M)


def scaled(v):
    return v * 2


def named_functions(x):
    return (
        tp.map(scaled, x),
        tp.map(np.sin, x),
        tp.reduce(np.add, 0.0, x),
        tp.map(tp.function(scaled), x),
        tp.map(abs, x),
    )


def test_named_functions_as_operators():
    same(named_functions, X)


def fused(x, y):
    z = tp.map(lambda a: a * a, x)
    w = tp.map(lambda a, b: a - b, z, y)
    return tp.reduce(lambda a, b: a + b, 0.0, w), tp.reduce(max, -1e9, z), w


def test_chains_of_operators():
    same(fused, X, Y)


def promoted(x):
    return tp.reduce(lambda a, b: a + b, 0.0, x), tp.map(lambda v: v / 2, x), tp.scan(lambda a, b: a + b, 0.0, x)


def test_types_of_operators():
    for kind in KINDS:
        same(promoted, np.arange(4).astype(kind))


def writes_outside(x):
    out = np.zeros(len(x))

    def one(i):
        out[i] = x[i]
        return x[i]

    return tp.map(one, len(x))


def mismatched(x, y):
    return tp.map(lambda a, b: a + b, x, y)


def ragged(x):
    return tp.map(lambda i: np.zeros(i), 3)


def test_wrong_uses():
    with pytest.raises(tp.CompileError, match="TP111"):
        tp.function(writes_outside)(X)
    with pytest.raises(ValueError):
        tp.function(mismatched)(X, Y[:3])
    with pytest.raises((tp.CompileError, tp.ShapeError)):
        tp.function(ragged)(X)
