"""Compiled code goes with the functions it belongs to, and a process that holds too much of it is told, not ended."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu import mappings

pytestmark = pytest.mark.skipif(mappings.used() == 0, reason="the system does not list mappings of memory")


def made(k):
    return tp.function(lambda x: x * k + 0.5, cache=False)


@pytest.mark.thorough
def test_code_of_functions_that_are_gone_is_unloaded():
    made(0)(1.0)
    before = mappings.used()
    for k in range(100):
        assert made(k)(2.0) == 2.0 * k + 0.5
    gc.collect()
    made(0)(1.0)
    assert mappings.used() < before + 50  # an object takes two at least


@pytest.mark.thorough
def test_code_of_functions_that_are_there_stays():
    kept = [made(k) for k in range(10)]
    for k, f in enumerate(kept):
        f(1.0)
        made(-k)(1.0)
    gc.collect()
    made(0)(1.0)
    x = np.arange(3.0)
    for k, f in enumerate(kept):
        assert f(2.0) == 2.0 * k + 0.5
        np.testing.assert_array_equal(f(x), x * k + 0.5)


@pytest.mark.thorough
def test_no_room(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(mappings, "OFTEN", 1)
        patch.setattr(mappings, "allowed", lambda: mappings.used() // 2)
        with pytest.raises(MemoryError, match="so many compiled functions"):
            made(1)(1.0)
    assert made(1)(1.0) == 1.5


FULL = """
import ctypes, itertools
import tapeless as tp
from tapeless.backends.cpu import mappings

libc = ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
tp.function(lambda x: x, cache=False)(1.0)
pages = mappings.allowed() - mappings.used() - mappings.MARGIN
area = libc.mmap(None, 4096 * pages, 3, 0x22, -1, 0)
for k in range(0, pages, 2):  # every other page becomes a mapping of its own
    libc.mprotect(area + 4096 * k, 4096, 1)
made = lambda k: tp.function(lambda x: x + k, cache=False)
kept = []
try:
    for k in itertools.count():
        kept.append(made(k))
        kept[-1](1.0)
except MemoryError:
    print("no room", kept[0](1.0))
"""


@pytest.mark.thorough
@pytest.mark.skipif(
    mappings.allowed() > 200_000, reason="the system allows so many that it takes too long to get there"
)
def test_a_full_process_goes_on(tmp_path):
    file = tmp_path / "full.py"
    file.write_text(FULL)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.returncode) == ("no room 1.0\n", 0), done.stderr[-2000:]
