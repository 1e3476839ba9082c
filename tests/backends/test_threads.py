"""Loops over threads: who runs what, atomics, errors, several callers, and after a fork."""

import os
import signal
import threading

import numpy as np
import pytest

from tapeless.ir.types import Const, DType, i64
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Atomic,
    Buffer,
    Check,
    Declare,
    For,
    Free,
    Load,
    Return,
    Space,
    Store,
    Tag,
)  # fmt: skip
from tests.backends.native import call, let, param, prepare, program, run, var

f64 = DType.f64


def squares(tag=Tag.threads, step=1):
    x, y, n, i, v, u = param("x", written=False), param("y"), var("n"), var("i"), var("v", f64), var("u", f64)
    c = var("c", f64)
    body = (Load(v, x, i), Declare(u, v), s := let("s", "mul", u, c), Assign(u, s.var), Store(y, i, u))
    return program([x, y, n, c], [For(i, i64(0), n, body, step=step, tag=tag)])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 10_001])
@pytest.mark.parametrize("threads", [1, 2, 3, 5000])
def test_every_iteration_runs_once(count, threads):
    X, Y = np.arange(count, dtype=float), np.zeros(count)
    if threads > 1000 and count > 100:
        pytest.skip("a thousand threads")
    run(squares(), X, Y, count, 3.0, threads=threads)
    np.testing.assert_array_equal(Y, 3 * X)


@pytest.mark.parametrize("step", [2, 5])
def test_steps(step):
    X, Y = np.arange(23.0), np.zeros(23)
    run(squares(step=step), X, Y, 23, 3.0, threads=2)
    want = np.zeros(23)
    want[::step] = 3 * X[::step]
    np.testing.assert_array_equal(Y, want)


def test_downwards():
    y, i = param("y"), var("i")
    body = (f := let("f", "convert", i, dtype=f64), Store(y, i, f.var))
    Y = np.zeros(10)
    run(program([y], [For(i, i64(9), i64(1), body, step=-2, tag=Tag.threads)]), Y, threads=3)
    assert Y.tolist() == [0, 0, 0, 3, 0, 5, 0, 7, 0, 9]


def test_captures_of_every_type():
    scalars = [var(f"c{k}", d) for k, d in enumerate(DType)]
    outs = [param(f"o{k}", d) for k, d in enumerate(DType)]
    i = var("i")
    prog = program(
        [*scalars, *outs],
        [For(i, i64(0), i64(4), tuple(Store(o, i, c) for o, c in zip(outs, scalars)), tag=Tag.threads)],
    )
    floats = {DType.f32: np.float32(0.1), DType.f64: 0.1, DType.c64: np.complex64(1 + 2j), DType.c128: 3 - 4j}
    values = [d.highest if d.is_int else floats.get(d, True) for d in DType]
    arrays = [np.zeros(4, d.numpy) for d in DType]
    run(prog, *values, *arrays, threads=2)
    for array, value in zip(arrays, values):
        assert (array == value).all()


def test_buffers_of_an_iteration():
    """Each iteration has its own heap and stack buffer; results go to disjoint cells."""
    y, n, t, i = param("y"), var("n"), var("t"), var("i")
    own, small = Buffer("own", f64, Space.heap), Buffer("small", f64, Space.stack, 8)
    v, total = var("v", f64), var("total", f64)
    index = let("index", "and", i, i64(7))
    tf = let("tf", "convert", t, dtype=f64)
    fill = For(i, i64(0), i64(100), (Store(own, i, tf.var), index, Store(small, index.var, tf.var)))
    w = var("w", f64)
    read = For(i, i64(0), i64(100), (Load(v, own, i), a := let("a", "add", total, v), Assign(total, a.var)))
    body = (Alloc(own, i64(100)), tf, fill, Declare(total, Const(0.0)), read, Load(w, small, i64(3)),
            b := let("b", "add", total, w), Store(y, t, b.var), Free(own))  # fmt: skip
    Y = np.zeros(200)
    run(program([y, n], [For(t, i64(0), n, body, tag=Tag.threads)]), Y, 200, threads=4)
    np.testing.assert_array_equal(Y, 101.0 * np.arange(200))


def test_a_stack_buffer_from_outside_is_shared():
    s, t, v, total = Buffer("s", f64, Space.stack, 16), var("t"), var("v", f64), var("total", f64)
    tf = let("tf", "convert", t, dtype=f64)
    body = [For(t, i64(0), i64(16), (tf, Store(s, t, tf.var)), tag=Tag.threads), Declare(total, Const(0.0)),
            For(t, i64(0), i64(16), (Load(v, s, t), a := let("a", "add", total, v), Assign(total, a.var))),
            Return(0, total)]  # fmt: skip
    assert run(program([], body, [f64]), threads=4).scalars == [120.0]


def test_a_loop_inside_a_region_runs_in_its_thread():
    y, t, i = param("y"), var("t"), var("i")
    row = let("row", "mul", t, i64(10))
    inner = For(i, i64(0), i64(10), (k := let("k", "add", row.var, i), f := let("f", "convert", k.var, dtype=f64),
                                     Store(y, k.var, f.var)), tag=Tag.threads)  # fmt: skip
    Y = np.zeros(100)
    run(program([y], [For(t, i64(0), i64(10), (row, inner), tag=Tag.threads)]), Y, threads=3)
    np.testing.assert_array_equal(Y, np.arange(100.0))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op, dtype", [
    ("add", f64), ("add", DType.f32), ("add", DType.i64), ("add", DType.c128), ("min", DType.i32), ("max", f64),
    ("minimum", f64), ("mul", DType.i64), ("or", DType.bool), ("xor", DType.i64), ("sub", f64), ("fmax", DType.f32),
])  # fmt: skip
def test_atomics(op, dtype):
    from tapeless.ops.table import TABLE

    x, y, n, i, v = param("x", dtype, False), param("y", dtype), var("n"), var("i"), var("v", dtype)
    cell = let("cell", "and", i, i64(3))
    prog = program([x, y, n], [For(i, i64(0), n, (Load(v, x, i), cell, Atomic(op, y, cell.var, v)), tag=Tag.threads)])
    rng = np.random.default_rng(3)
    X = (rng.random(4000) * 100).astype(dtype.numpy) if dtype is not DType.bool else rng.random(4000) > 0.9
    for threads in (1, 4):
        Y = np.ones(4, dtype.numpy)
        run(prog, X, Y, len(X), threads=threads)
        want = np.ones(4, dtype.numpy)
        for k in range(4):
            for value in X[k::4]:
                want[k] = TABLE[op].numpy(want[k], value)
        np.testing.assert_allclose(Y, want, rtol=1e-3 if dtype is DType.f32 else 1e-12)


@pytest.mark.parametrize("tag", [Tag.seq, Tag.simd, Tag.grid, Tag.threads])
def test_cells_that_iterations_share_without_threads(tag):
    x, y, n, i, k, v = param("x", DType.i64, False), param("y"), var("n"), var("i"), var("k"), var("v", f64)
    prog = program([x, y, n], [For(i, i64(0), n, (Load(k, x, i), Atomic("add", y, k, Const(1.0))), tag=tag)])
    X, Y = np.random.default_rng(5).integers(0, 3, 10_000), np.zeros(3)
    run(prog, X, Y, len(X))
    np.testing.assert_array_equal(Y, np.bincount(X))


def test_an_error_in_one_iteration():
    n, t, heap = var("n"), var("t"), Buffer("heap", f64, Space.heap)
    ok = let("ok", "ne", t, i64(13), dtype=DType.bool)
    body = [
        For(t, i64(0), n, (Alloc(heap, i64(10)), ok, Check(ok.var, 4, (t,)), Free(heap)), tag=Tag.threads),
        Return(0, i64(1)),
    ]
    prog = program([n], body, [DType.i64])
    outcome = run(prog, 100, threads=4)
    assert (outcome.code, outcome.args[0], outcome.scalars) == (5, 13, [0])
    assert run(prog, 13, threads=4).scalars == [1]


def test_many_errors_leave_one_record():
    n, t = var("n"), var("t")
    ok = let("ok", "lt", t, i64(0), dtype=DType.bool)
    square = let("square", "mul", t, t)
    prog = program([n], [For(t, i64(0), n, (ok, square, Check(ok.var, 0, (t, square.var))), tag=Tag.threads)])
    for _ in range(20):
        outcome = run(prog, 1000, threads=8)
        assert outcome.code == 1 and outcome.args[0] ** 2 == outcome.args[1]


def test_regions_from_several_python_threads():
    prog = squares()
    native, function = prepare(prog)
    X = np.arange(5000.0)
    results = [np.zeros(5000) for _ in range(4)]

    def work(k):
        for _ in range(50):
            call(prog, native, function, X, results[k], 5000, float(k), threads=3)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, k * X)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_runs_regions():
    prog = squares()
    native, function = prepare(prog)
    X, Y = np.arange(100.0), np.zeros(100)
    call(prog, native, function, X, Y, 100, 2.0, threads=4)  # the parent's threads exist now
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a hanging child would hang the parent
        Y[:] = 0
        call(prog, native, function, X, Y, 100, 2.0, threads=4)
        os._exit(0 if (Y == 2 * X).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
