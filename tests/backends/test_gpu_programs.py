"""Whole Python programs as PTX: assembled where there is an assembler, run where there is a GPU, with the CPU's answer."""

import math
import shutil
import subprocess

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm.ptx import ptx
from tapeless.ir.target import Target
from tapeless.lower.ir.loopir import Buffer
from tapeless.lower.lowering import lower
from tests.backends import cuda


def polynomial(x, y):
    return tp.map(lambda a, b: math.sqrt(a * a + 1.0) * b - 0.5, x, y)


def escape(points, limit):
    """A data-dependent loop with a way out in each element."""

    def count(c):
        x, n = 0.0, 0
        while n < limit:
            x = x * x + c
            if x > 4.0:
                break
            n += 1
        return n

    return tp.map(count, points)


def smooth(x, out):
    for i in tp.prange(1, len(x) - 1):
        total = 0.0
        for j in range(3):
            total += x[i - 1 + j]
        out[i] = total / 3.0


X, Y = np.linspace(-2.0, 2.0, 1000), np.linspace(0.0, 1.0, 1000)
PROGRAMS = [(polynomial, (X, Y)), (escape, (X, 50)), (smooth, (X, np.zeros(1000)))]
IDS = [f.__name__ for f, _ in PROGRAMS]


def program_of(function, args):
    return lower(tp.function(function, cache=False).compiled(*args).in_place, target=Target.ptx).program


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=IDS)
def test_one_kernel_for_each_parallel_loop(function, args):
    text, kernels = ptx(program_of(function, args), "sm_80")
    assert len(kernels) == 1
    assert f".entry {kernels[0].name}(" in text
    assert text == tp.function(function, cache=False).ir(*args, stage="ptx")


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=IDS)
def test_assembles(function, args, tmp_path):
    (tmp_path / "k.ptx").write_text(ptx(program_of(function, args), "sm_80")[0])
    command = ["ptxas", "-arch=sm_80", "-o", str(tmp_path / "k.o"), str(tmp_path / "k.ptx")]
    assert subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not cuda.available(), reason="no GPU")
@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=IDS)
def test_gpu_gives_the_answer_of_the_cpu(function, args):
    compiled = tp.function(function, cache=False)
    expected_args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    expected = compiled(*expected_args)
    lowered = lower(compiled.compiled(*args).in_place, target=Target.ptx)
    program = lowered.program
    core = compiled.compiled(*args).traced.core
    values = {s.name: len(X) for s in core.sizes}
    given = dict(zip((p.name for p in core.params), [a.copy() if isinstance(a, np.ndarray) else a for a in args]))
    values.update(given)
    result = None
    for p in program.params:
        if isinstance(p, Buffer) and p.name not in values:
            result = values[p.name] = np.zeros(len(X), p.dtype.numpy)
    code, _ = cuda.run(program, values, arch="sm_80")
    assert code == 0
    if result is not None:
        np.testing.assert_allclose(result, expected, rtol=1e-14)
    for p, want in zip(core.params, expected_args):
        np.testing.assert_allclose(values[p.name], want, rtol=1e-14)
