"""Large buffers that are kept for the next use: what is kept and for how long, by threads, in children and on errors."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu import buffers, pages

MB = 1 << 20


@pytest.fixture(autouse=True)
def _fresh_list() -> Iterator[None]:
    gc.collect()
    buffers.trim()
    yield
    buffers.keep()


@tp.function
def with_buffers(x):
    """Two arrays of the size of x that do not outlive the call."""
    y = np.cumsum(x)
    z = np.sort(y * y)
    total = 0.0
    for i in range(len(z)):
        total += z[i] * y[len(z) - 1 - i]
    return total


@tp.function
def positive(x):
    """A result whose size only the compiled code knows."""
    count = 0
    for e in x:
        if e > 0.0:
            count += 1
    y = np.empty(count)
    at = 0
    for e in x:
        if e > 0.0:
            y[at] = e
            at += 1
    return y


def expected(x):
    y = np.cumsum(x)
    return np.sum(np.sort(y * y) * y[::-1])


def test_a_second_call_uses_the_buffers_of_the_first() -> None:
    x = np.linspace(-1.0, 1.0, 2 * MB // 8)
    with_buffers(x)
    first = buffers.kept()
    assert first >= 2 * MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        with_buffers(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 20 * 2 * MB // 4096 // 4
    assert buffers.kept() == first


def test_trim_gives_everything_back() -> None:
    with_buffers(np.ones(4 * MB // 8))
    kept = buffers.kept()
    assert kept > 0
    assert buffers.trim() == kept
    assert buffers.kept() == 0


def test_no_more_than_the_limit_is_kept() -> None:
    buffers.keep(5 * MB)
    for mega in (1, 2, 3, 4, 6, 2, 1):
        x = np.ones(mega * MB // 8)
        assert with_buffers(x) == pytest.approx(expected(x))
        assert buffers.kept() <= 5 * MB
    buffers.keep(0)
    assert buffers.kept() == 0
    with_buffers(np.ones(4 * MB // 8))
    assert buffers.kept() == 0


@pytest.mark.thorough
def test_many_sizes() -> None:
    """More than there are places on the list."""
    for n in range(40_000, 400_000, 3_001):
        x = np.full(n, 1e-3)
        assert with_buffers(x) == pytest.approx(expected(x))
    buffers.trim()
    assert buffers.kept() == 0


def test_small_buffers_are_not_kept() -> None:
    with_buffers(np.ones(1000))
    assert buffers.kept() == 0


def test_a_result_belongs_to_the_caller() -> None:
    x = np.random.default_rng(0).normal(size=MB)
    results = [positive(x + k) for k in range(4)]
    for _ in range(3):
        with_buffers(x)
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, (x + k)[x + k > 0.0])


def test_errors_lose_nothing() -> None:
    @tp.function
    def fails(x, i):
        y = np.sort(x)
        z = np.cumsum(y)
        return y[i] + z[i]

    x = np.ones(2 * MB // 8)
    fails(x, 0)
    kept = buffers.kept()
    for _ in range(5):
        with pytest.raises(IndexError):
            fails(x, len(x))
        assert buffers.kept() == kept


@pytest.mark.thorough
def test_callers_on_several_threads() -> None:
    problems: list[object] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(15):
            x = random.normal(size=random.integers(50_000, 300_000))
            if not np.isclose(with_buffers(x), expected(x)):
                problems.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_child_goes_on() -> None:
    x = np.linspace(-1.0, 1.0, 2 * MB // 8)
    value = with_buffers(x)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            ok = all(with_buffers(x) == value for _ in range(3))
            buffers.trim()
            os._exit(0 if ok and with_buffers(x) == value else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert with_buffers(x) == value


def test_buffers_that_grow_do_not_pile_up() -> None:
    """Each is a little larger than the one before: those that are too small go."""
    for n in range(200_000, 800_000, 20_000):
        with_buffers(np.ones(n))
        assert buffers.kept() <= 5 * 8 * n  # the call has four


PYTHONS = [
    sys.executable,
    *(python for python in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(python)),
]
ASK = f"import sys; sys.path.insert(0, {str(Path(pages.__file__).parent)!r}); import pages; print(pages.gnu_serves())"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc" or "LD_PRELOAD" in os.environ, reason="another library serves")
@pytest.mark.parametrize("python", PYTHONS)
def test_the_gnu_library_is_recognised(python) -> None:
    """By Pythons that are position-independent and by those that are not."""
    assert subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout == "True\n"


WITH_ANOTHER_MALLOC = """
import numpy as np
import tapeless as tp
from tapeless.backends.cpu import buffers, pages

pages.gnu_serves = lambda: False

@tp.function
def f(x):
    y = np.cumsum(x)
    return np.sum(np.sort(y) * y)

for n in (100_000, 900_000, 50_000, 1_000_000, 1_000_000, 10):
    x = np.linspace(-1.0, 1.0, n)
    y = np.cumsum(x)
    assert abs(f(x) / np.sum(np.sort(y) * y) - 1.0) < 1e-12
assert buffers.kept() > 0 and buffers.trim() > 0 and buffers.kept() == 0
"""


@pytest.mark.thorough
def test_with_another_malloc(tmp_path) -> None:
    file = tmp_path / "other.py"
    file.write_text(WITH_ANOTHER_MALLOC)
    subprocess.run([sys.executable, file], check=True)


def test_small_buffers_that_begin_a_page_are_freed_as_well() -> None:
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(buffers.address("rt_release"))
    for size in (4096, 8192, 200_000):
        release(libc.aligned_alloc(4096, size))
    assert buffers.kept() == 0
