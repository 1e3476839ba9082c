"""Functions that are called often are entered through machine code: it must do what the long way does."""

import gc
import os
import signal
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import tapeless as tp
from tapeless.api.function import MOST_HOT, OFTEN, Function
from tapeless.backends.cpu.python_objects import usable
from tapeless.runtime import blas
from tapeless.runtime.forks import NATIVE, steady
from tapeless.runtime.results import LARGE_RESULT

pytestmark = pytest.mark.skipif(not usable(), reason="another interpreter")


def hot(function, *args):
    """A compiled function that is entered natively for such arguments."""
    compiled = function if isinstance(function, Function) else tp.function(function)
    before = list(compiled._hot)
    for _ in range(OFTEN + 1):
        compiled(*args)
    assert len(compiled._hot) == len(before) + 1
    return compiled


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.array_equal(a, b, equal_nan=True)
        assert a.flags.num == b.flags.num
    else:
        assert a == b or (a != a and b != b)


X, Y = np.arange(6.0), np.arange(6.0)[::-1].copy()
NUMBERS = [2.5, 3, True, np.float64(2.5), np.float32(1.5), np.int64(-3), np.int32(4), np.bool_(True), np.array(2.0)]


@pytest.mark.parametrize("x", NUMBERS, ids=lambda x: f"{type(x).__name__} {x}")
def test_numbers(x):
    def twice(x):
        return x + x, x

    compiled = hot(twice, x)
    before = tp.function(lambda x: (x + x, x))(x)  # the long way
    same(compiled(x), before)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "?", "c16", "c8"])
@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (2, 3), (0, 3), (1, 4), (2, 1, 3)])
def test_arrays(dtype, shape):
    def both(a, b):
        return (a + b, a * b), a[None]

    a = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    b = a.copy()
    compiled = tp.function(both)
    want = compiled(a, b)
    for _ in range(OFTEN + 2):
        same(compiled(a, b)[0], want[0])


def test_results_of_all_kinds():
    def kinds(x, a):
        return (x, (a, 2 * a, a[0]), None, x > 1, a.size, ())

    compiled = hot(kinds, 1.5, X)
    result = compiled(1.5, X)
    same(result, kinds(1.5, X))
    assert result[1][0] is X


def test_one_array_twice_in_the_result():
    def twice(a):
        b = a + 1
        return b, b

    compiled = hot(twice, X)
    first, second = compiled(X)
    assert first is second
    assert sys.getrefcount(first) == 3


def test_the_very_argument_where_it_is_chosen():
    def chosen(x, a):
        return a if x > 0 else 2 * a

    compiled = hot(chosen, 1.0, X)
    assert compiled(1.0, X) is X
    same(compiled(-1.0, X), 2 * X)


def test_other_arguments_find_their_way():
    def total(a, b):
        return a * b + b

    compiled = hot(total, X, Y)
    for a, b in [
        (2.0, 3.0), (2, X), (X, X), (X[::2], Y[::2]), (X[:1], Y), (X[:3], Y[:3]), (X.astype("f4"), Y),
        (X.reshape(2, 3), Y.reshape(2, 3)), (X.reshape(2, 3).T, Y.reshape(3, 2)), (np.float32(2), Y),
        (X.astype(">f8"), Y), (np.array(3.0), Y), (X[:0], Y[:0]), (X.view(np.dtype("f8", metadata={"a": 1})), Y),
    ]:  # fmt: skip
        same(np.asarray(compiled(a, b)), np.asarray(total(a, b)))
        same(compiled(X, Y), total(X, Y))
    with pytest.raises(ValueError, match="shape|size|broadcast"):
        compiled(X, Y[:4])
    frozen = X.copy()
    frozen.flags.writeable = False
    same(compiled(frozen, Y), total(X, Y))


def test_the_number_of_arguments():
    def add(a, b=2.0):
        return a + b

    compiled = hot(add, 1.0)
    assert compiled(1.0, 3.0) == 4.0
    assert compiled(a=1.0) == 3.0
    for args in [(), (1.0, 2.0, 3.0)]:
        with pytest.raises(TypeError):
            compiled(*args)


def test_integers_beyond_64_bits():
    compiled = hot(lambda n: n + 1, 5)
    assert compiled(2**62) == 2**62 + 1
    assert compiled(-(2**63)) == -(2**63) + 1
    with pytest.raises(tp.ArgumentError, match="64 bits"):
        compiled(2**63)
    assert compiled(True) == 2


def test_arrays_that_share_memory():
    def shift(a, b):
        a[0] = b[1] + 1.0
        return a[0]

    compiled = hot(shift, X.copy(), Y)
    memory = np.arange(12.0)
    assert compiled(memory[:6], memory[6:]) == 8.0
    with pytest.raises(tp.TapelessError, match="memory"):
        compiled(memory[:6], memory[3:9])
    start = memory[:6]
    assert compiled(start, start) == 2.0


def test_errors_name_the_line():
    def element(a, k):
        return a[k]

    compiled = hot(element, X, 1)
    for _ in range(3):
        with pytest.raises(IndexError, match=r"test_native_entry.py:\d+"):
            compiled(X, 99)
        assert compiled(X, 2) == 2.0


@pytest.mark.thorough
def test_errors_leave_nothing_behind():
    def scaled(a, k):
        return a * a[k]

    compiled = hot(scaled, X, 1)
    count = sys.getrefcount(X)
    for _ in range(100):
        with pytest.raises(IndexError):
            compiled(X, 99)
    gc.collect()
    assert sys.getrefcount(X) == count


def test_reference_counts():
    def several(x, a):
        return a, 2 * a, x, (a, None, x > 0)

    compiled = hot(several, 2.5, X)
    number, counts = 2.5, None
    for _ in range(1000):
        compiled(number, X)
        now = [sys.getrefcount(v) for v in (number, X, None, True, X.dtype, np.ndarray)]
        counts = counts or now
    assert max(abs(a - b) for a, b in zip(counts, now, strict=True)) < 50


def test_surroundings_that_change():
    scale = 2.0

    def scaled(a):
        return scale * a

    compiled = hot(scaled, 3.0)
    assert compiled(3.0) == 6.0
    scale = 5.0
    assert compiled(3.0) == 15.0
    scale = 2.0
    assert compiled(3.0) == 6.0


def test_many_kinds_of_arguments():
    def twice(a):
        return a + a

    compiled = tp.function(twice)
    kinds = [1.5, 2, X, X.astype("f4"), X.reshape(2, 3), np.float32(2), np.int32(3)]
    for x in kinds:
        for _ in range(OFTEN + 1):
            same(compiled(x), twice(x))
    assert len(compiled._hot) == MOST_HOT
    for x in kinds:
        same(compiled(x), twice(x))


def test_large_results():
    def twice(a):
        return 2 * a

    compiled = hot(twice, X)
    n = LARGE_RESULT // 8
    for size in (n - 1, n, n + 1):
        assert compiled(np.ones(size)).sum() == 2 * size


def test_products_of_blas():
    a = np.arange(9.0).reshape(3, 3)
    compiled = hot(lambda a, b: a @ b, a, a.T.copy())
    same(compiled(a, a.T.copy()), a @ a.T)


@pytest.mark.skipif(blas.setting() is None, reason="another BLAS")
def test_threads_of_blas_are_put_back():
    a = np.arange(9.0).reshape(3, 3)
    compiled = hot(tp.function(lambda a, b: a @ b, threads=1), a, a.T.copy())
    get, put = blas.setting()
    before = get()
    try:
        for threads in (2, 1, 2):
            put(threads)
            same(compiled(a, a.T.copy()), a @ a.T)
            assert get() == threads and not blas.gate[blas.USERS] and not steady.counts[NATIVE]
    finally:
        put(before)


@pytest.mark.skipif(blas.setting() is None, reason="another BLAS")
def test_blas_while_others_count():
    a = np.arange(9.0).reshape(3, 3)
    compiled = hot(lambda a, b: a @ b, a, a.T.copy())
    blas.begin(1)
    same(compiled(a, a.T.copy()), a @ a.T)
    blas.end()
    blas.gate[blas.BUSY] = 1  # as if another thread were in the midst of it
    same(compiled(a, a.T.copy()), a @ a.T)
    assert not blas.gate[blas.BUSY] and not blas.gate[blas.USERS] and not steady.counts[NATIVE]


def test_forks_wait_for_blas():
    """Products in other threads while this one forks, and products in the children."""
    a = np.random.default_rng(0).random((60, 60))
    compiled = hot(lambda a, b: a @ b, a, a.T.copy())
    want, stop = compiled(a, a.T.copy()), threading.Event()
    wrong = []

    def work():
        b = a.T.copy()
        while not stop.is_set():
            if not np.array_equal(compiled(a, b), want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(compiled(a, a.T.copy()), want) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for w in workers:
            w.join()
    assert not wrong and not blas.gate[blas.USERS] and not steady.counts[NATIVE]


def test_arguments_by_name():
    compiled = hot(lambda a, b: a - b, 5.0, 3.0)
    assert compiled(5.0, b=3.0) == compiled(b=3.0, a=5.0) == compiled(*[5.0], **{"b": 3.0}) == 2.0
    assert compiled.__call__(5.0, 3.0) == Function.__call__(compiled, 5.0, b=3.0) == 2.0


def test_no_frame_of_ours_in_a_traceback():
    def element(a, i):
        return a[i]

    compiled = hot(element, X, 2)
    for i in (100, -100):
        with pytest.raises(IndexError) as error:
            compiled(X, i)
        frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.value.__traceback__)]
        assert frames == [__file__]


def test_entries_that_are_dropped_while_they_run():
    def total(a):
        s = 0.0
        for i in range(a.size):
            s += np.sin(a[i])
        return s

    compiled = hot(total, X)
    big = np.ones(3_000_000)
    want = compiled(big)
    found = []
    worker = threading.Thread(target=lambda: found.append(compiled(big)))
    worker.start()
    time.sleep(0.005)
    compiled._hot.clear()
    gc.collect()
    worker.join()
    assert found == [want]


def test_gradients():
    compiled = hot(tp.value_and_grad(lambda x: np.sum(x * x)), X)
    value, gradient = compiled(X)
    assert value == np.sum(X * X)
    same(gradient, 2 * X)


def test_warnings_and_warnings_as_errors():
    def hole(x, n):
        s = 0.0
        for i in range(n):
            c = 2.0 if i < 40 else 0.5
            x = c * (x - 1.0) + 1.0
            s += x * x * x
        return s

    compiled = hot(tp.grad(hole, recover="invert"), 1.0, 3)
    slope = compiled(1.0, 3)
    with pytest.warns(tp.InversionDrift):
        compiled(1 + 1e-12, 90)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tp.InversionDrift):
            compiled(1 + 1e-12, 90)
        assert compiled(1.0, 3) == slope


def test_threads_at_once():
    def total(a):
        s = 0.0
        for i in range(a.size):
            s += np.sin(a[i])
        return s

    compiled = hot(total, X)
    wrong = []

    def work(k):
        a = np.full(1000, float(k))
        want = compiled.python(a)
        for _ in range(200):
            if abs(compiled(a) - want) > 1e-9:
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_ctrl_c():
    def spin(x, n):
        for _ in range(n):
            x = np.cos(x)
        return x

    compiled = hot(spin, 0.5, 3)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        compiled(0.5, 10**12)
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 5
    assert compiled(0.5, 1) == np.cos(0.5)
