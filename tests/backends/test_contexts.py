"""A module of LLVM and its context, collected by Python at once: the module goes first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tapeless

PROGRAM = """
import gc
from tapeless.backends.llvm import optimize

class Frame:
    pass

for _ in range(50):
    frame = Frame()
    frame.itself = frame
    frame.module = optimize.parse("define i64 @f(i64 %x) { ret i64 %x }")
    frame.context = frame.module._context
    del frame
    gc.collect()
print(len(optimize._contexts))
"""


def test_cycles_with_a_module_and_its_context() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(tapeless.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
