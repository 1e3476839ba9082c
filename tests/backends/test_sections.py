"""Code is loaded wherever there is room for it: its sections lie together. Note [Sections together] of backends/llvm/host.py."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, mmap, sys
from tapeless.backends.cpu import buffers, interrupts, threads
from tapeless.backends.llvm import host

LARGE, PAGE, NORESERVE = 8 << 30, mmap.PAGESIZE, 0x4000
C = ctypes.CDLL(None)
C.mmap.restype = ctypes.c_void_p
C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def reserve(size):
    return C.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, -1, 0)


def leave_one_hole(pages):
    wide = reserve(LARGE)
    while reserve(PAGE) > wide:  # other holes
        pass
    C.munmap(wide + LARGE - (pages + 1) * PAGE, pages * PAGE)


host.machine()
for load in (lambda: interrupts._load(interrupts.object_code()), buffers._load, threads._load):
    leave_one_hole(int(sys.argv[1]))
    load()
print("loaded")
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="other systems give out addresses in another order")
@pytest.mark.parametrize("pages", [1, 3])
def test_a_hole_that_only_some_sections_fit_into(pages):
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(pages)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "loaded", done.stderr
