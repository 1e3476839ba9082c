"""Loops over threads by the OpenMP runtime of the process, in processes of their own."""

import ctypes.util
import os
import subprocess
import sys
import textwrap

import pytest

from tapeless.backends.cpu.threads import POOL

RUNTIME = ctypes.util.find_library("gomp")  # not loaded here: the pool serves the tests of this process
needs_openmp = pytest.mark.skipif(RUNTIME is None, reason="no OpenMP runtime on this machine")

PROGRAM = """
import ctypes, os, signal
import numpy as np
import tapeless as tp
from tapeless.backends.cpu import threads

def checked(x):
    total = np.zeros(len(x))
    for i in tp.prange(len(x)):
        total[i] = 2 * x[i] if x[i] >= 0 else x[len(x)]
    return total.sum()

def halves(x):
    return tp.map(lambda e: e * 0.5, x)

def everything():
    tiny = np.full(1_000_000, 8e-320)
    assert not tp.function(halves, threads=3, fastmath=True)(tiny).any()
    assert (tp.function(halves, threads=3)(tiny) == tiny / 2).all()  # the same threads, which the first one may have started
    f = tp.function(checked, threads=3)
    x = np.arange(100_000.0)
    assert f(x) == 2 * x.sum()
    x[77_777] = -1
    try:
        f(x)
    except IndexError as error:
        assert ".py:" in str(error), error
    else:
        raise AssertionError("no error")
"""


@pytest.fixture
def run(tmp_path):
    def run(code, **settings):
        environment = {k: v for k, v in os.environ.items() if k != "TAPELESS_OPENMP"} | settings
        file = tmp_path / "program.py"
        file.write_text(PROGRAM + textwrap.dedent(code))
        done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.mark.thorough
@needs_openmp
def test_a_runtime_that_was_loaded_before_serves(run):
    assert is_runtime(run(f"ctypes.CDLL({RUNTIME!r}); everything(); print(threads.runtime())"))


@needs_openmp
def test_the_runtime_of_the_system_serves_when_asked_for(run):
    assert is_runtime(run("everything(); print(threads.runtime())", TAPELESS_OPENMP="1"))


def is_runtime(file):
    return file.rpartition("/")[2].startswith(RUNTIME.partition(".so")[0])


@needs_openmp
def test_openmp_is_left_alone_when_told_so(run):
    assert run(f"ctypes.CDLL({RUNTIME!r}); everything(); print(threads.runtime())", TAPELESS_OPENMP="0") == POOL


@pytest.mark.thorough
def test_the_pool_serves_otherwise(run):
    assert run("everything(); print(threads.runtime())") == POOL


@pytest.mark.thorough
@needs_openmp
@pytest.mark.parametrize("before", ["everything()", "pass"])
def test_a_forked_child_has_the_pool(run, before):
    """Also where the child is the first to compile: the parent may have used the runtime without us."""
    code = f"""
    library = ctypes.CDLL({RUNTIME!r})
    task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)
    library.GOMP_parallel(task, None, 3, 0)  # the team exists now
    {before}
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        everything()
        os._exit(0 if threads.runtime() == threads.POOL else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    run(code)
