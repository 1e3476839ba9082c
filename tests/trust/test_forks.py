"""Processes are forked while another thread is in the middle of things. Each in a process of its own, so that a hang ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tapeless as tp

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
SOURCE = Path(tp.__file__).parents[1]

START = """
import os, signal, sys, threading, time
import numpy as np
import tapeless as tp

def child(work):
    "Whether a forked child does the work."
    number = os.fork()
    if number == 0:
        signal.alarm(30)
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(number, 0)[1] == 0

def scalar(x):
    return x * x + 1.0

def array(x):
    return x * 2.0

def solve(a, b):
    return np.linalg.solve(a, b)

A, B = np.random.default_rng(0).random((300, 300)) + 300.0 * np.eye(300), np.ones(300)
"""

FIRST = """
def work():
    CALL
thread = threading.Thread(target=work, daemon=True)
thread.start()
time.sleep(DELAY)
good = child(work)
thread.join(30)
sys.exit(0 if good and not thread.is_alive() else f"child {good}, parent stuck {thread.is_alive()}")
"""

AGAIN = """
f = tp.function(solve, threads=2)
f(A, B)
runs, done = [0], []
def work():
    while not done:
        f(A, B)
        runs[0] += 1
thread = threading.Thread(target=work, daemon=True)
thread.start()
good = []
for k in range(8):
    time.sleep(0.02)
    good.append(child(lambda: f(A, B)))
before = runs[0]
time.sleep(0.5)
done.append(True)
thread.join(30)
sys.exit(0 if all(good) and not thread.is_alive() else f"children {good}, parent stuck {thread.is_alive()}")
"""

COLLECTED = """
import llvmlite.binding as llvm
done = []
def work():  # LLVM is entered by finalizers too, wherever Python collects garbage
    while not done:
        llvm.parse_assembly("define double @f(double %x) { ret double %x }", llvm.create_context())
thread = threading.Thread(target=work, daemon=True)
thread.start()
good = [child(lambda: tp.function(scalar, cache=False)(2.0)) for _ in range(4)]
done.append(True)
thread.join(30)
sys.exit(0 if all(good) and not thread.is_alive() else f"children {good}")
"""

CALLS = {
    "scalar": "assert tp.function(scalar)(2.0) == 5.0",
    "array": "assert tp.function(array)(np.ones(3))[0] == 2.0",
    "gradient": "assert tp.grad(scalar)(2.0) == 4.0",
    "solve": "tp.function(solve)(A, B)",
}


def run(text: str, folder: Path) -> None:
    program = folder / "forking.py"
    program.write_text(START + text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TAPELESS_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", program],  # Python 3.12 warns of what is tested here
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


@pytest.mark.sampled(4)
@pytest.mark.parametrize("call", CALLS)
def test_h1_fork_during_a_first_call(call, tmp_path):
    for delay in (0.002, 0.03):
        run(FIRST.replace("CALL", CALLS[call]).replace("DELAY", str(delay)), tmp_path)


@pytest.mark.thorough
def test_h1_fork_while_blas_runs(tmp_path):
    run(AGAIN, tmp_path)


def test_h1_fork_while_another_thread_is_in_llvm(tmp_path):
    run(COLLECTED, tmp_path)
