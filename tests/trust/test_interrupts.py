"""Ctrl-C in compiled code: it stops soon, frees what it held, and can be called again. Each test is a process of its own."""

import os
import subprocess
import sys
import textwrap

import numpy as np

import tapeless as tp

COMMON = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
import tapeless as tp
from tapeless.backends.cpu import buffers

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started with SIGINT ignored

def rss():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def stopped(run, error=KeyboardInterrupt, after=0.15, within=5.0):
    '''Runs something endless and sends SIGINT: it must end with the error. How long that took.'''
    sent = []
    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after, send)
    timer.start()
    try:
        run()
    except error as problem:
        took = time.perf_counter() - sent[0]
        assert took < within, took
        return problem
    finally:
        timer.join()
    raise AssertionError("it ended by itself")
"""


def child(code: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMON + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


# Functions must come from a file: the children import this module.


def creeping(x):
    while x > 0.0:
        x = x + 1e-9
    return x


def nest(n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            for k in range(j):
                s += (i ^ k) * 0.5
    return s


def large_sum(n):
    s = 0.0
    for i in range(n):
        s += 1.0 / (i + 1.0)
    return s


def rows(x, n):
    """With buffers on the heap, in every iteration."""
    for i in range(n):
        y = x * 0.5 + i
        x = np.sort(y)[::-1] * 1.0
    return x


def products(a, n):
    """Each iteration is one call of a library."""
    for _ in range(n):
        a = a @ a
    return a


def moved_rows(x, n):
    """Each iteration moves memory."""
    for i in range(n):
        x[:-1] = x[1:].copy()
    return x[0]


def spread(n, endless):
    s = 0.0
    for i in tp.prange(n):
        t = 1.0
        if i >= endless:
            while t > 0.0:
                t = t + 1e-9
        s += t
    return s


def recurrence(x, n):
    s = 0.0
    for i in range(n):
        x = x + 0.001 * np.sin(x + i)
        s += x
    return s


def rotation(x, n):
    y = 0.5
    for i in range(n):
        x = x + 0.001 * y
        y = y - 0.001 * np.sin(x)
    return x * y


def test_loops_of_calls_of_libraries():
    child("""
        from tests.trust.test_interrupts import moved_rows, products
        many, moves = map(tp.function, (products, moved_rows))
        many(np.eye(2), 1), moves(np.ones(2), 1)
        stopped(lambda: many(np.eye(700), 10**9), within=1.0)
        stopped(lambda: moves(np.zeros(10**6), 10**9), within=1.0)
        print("done")
    """)


def test_h2_loops_on_one_thread():
    child("""
        from tests.trust.test_interrupts import creeping, large_sum, nest
        slow, whole, many = map(tp.function, (creeping, large_sum, nest))
        assert slow(-1.0) == -1.0 and many(3) == nest(3) and abs(whole(100) - large_sum(100)) < 1e-12
        for run in (lambda: slow(1.0), lambda: many(10**7), lambda: whole(10**13)):
            stopped(run)
        assert slow(-1.0) == -1.0 and many(3) == nest(3) and abs(whole(100) - large_sum(100)) < 1e-12

        class Enough(Exception):
            pass
        raised = Enough("that will do")
        def handler(number, frame):
            raise raised
        signal.signal(signal.SIGINT, handler)
        assert stopped(lambda: slow(1.0), Enough) is raised

        seen = []
        signal.signal(signal.SIGINT, lambda number, frame: seen.append(slow(-2.0)))
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        n, start = 3 * 10**7, time.perf_counter()
        while not seen:  # the machine may be fast
            assert abs(whole(n) - (np.log(n) + 0.5772156649015329 + 0.5 / n)) < 1e-6
            assert time.perf_counter() - start < 60
        assert seen == [-2.0]
        print("done")
    """)


def test_h2_threads():
    child("""
        from tests.trust.test_interrupts import spread
        f = tp.function(spread, threads=2)
        assert f(64, 64) == 64.0
        stopped(lambda: f(64, 0))  # all are endless
        stopped(lambda: f(64, 60))  # the first ones are short: the caller waits for another thread
        assert f(64, 64) == 64.0
        results = []
        thread = threading.Thread(target=lambda: results.append(f(10**6, 10**6)))  # not the main thread
        thread.start()
        thread.join()
        assert results == [1e6]
        # Ctrl-C while the main thread waits in Python is Python's own affair
        threading.Thread(target=lambda: f(64, 0), daemon=True).start()
        stopped(lambda: time.sleep(60))
        assert f(64, 64) == 64.0
        print("done")
        sys.stdout.flush()
        os._exit(0)
    """)


def test_h2_gradients_and_budgets():
    child("""
        from tests.trust.test_interrupts import recurrence, rotation
        n = 10**11
        wanted = tp.grad(recurrence, memory="1MB")(0.5, 10)
        for gradient in (tp.grad(recurrence, memory="1MB"), tp.grad(recurrence, recover="checkpoint", memory="1MB")):
            value = gradient(0.5, 10)
            stopped(lambda: gradient(0.5, n), after=0.5)
            assert gradient(0.5, 10) == value == wanted
        back = tp.grad(rotation, recover="invert")
        value = back(0.5, 10)
        stopped(lambda: back(0.5, n))
        assert back(0.5, 10) == value
        print("done")
    """)


def test_h2_buffers_are_freed():
    child("""
        from tests.trust.test_interrupts import rows
        f = tp.function(rows)
        x = np.linspace(0.0, 1.0, 300_000)
        wanted = f(x, 2)
        sizes = []
        for k in range(8):
            stopped(lambda: f(x, 10**9), after=0.05)
            sizes.append(rss())
        assert max(sizes[2:]) - sizes[1] < 2_000_000, sizes  # 2.4 MB each
        assert np.array_equal(f(x, 2), wanted)
        print("done")
    """)


def test_h2_after_a_fork():
    child("""
        from tests.trust.test_interrupts import creeping
        f = tp.function(creeping)
        stopped(lambda: f(1.0))
        pid = os.fork()
        if not pid:
            stopped(lambda: f(1.0))
            os._exit(0 if f(-1.0) == -1.0 else 1)
        assert os.waitpid(pid, 0)[1] == 0
        print("done")
    """)


def test_h2_while_compiling():
    """What was not finished is compiled again by the next call."""
    child("""
        from tests.trust.test_interrupts import nest
        interrupted = 0
        for delay in (0.001, 0.01, 0.02, 0.05, 0.1):
            f = tp.function(nest, cache=False)
            try:
                threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT)).start()  # it may come at once
                f(3)
                time.sleep(5)
            except KeyboardInterrupt:
                interrupted += 1
            assert f(3) == nest(3)
        assert interrupted == 5
        print("done")
    """)


def test_h2_loops_of_many_shapes():
    """Interleaved loops, and the rest behind a vector loop, once asked nothing."""
    command = [sys.executable, "-m", "tapeless.testing.endless", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("the longest")
