"""The key of the disk cache: the same for the same program in every process, another for another program."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.digest import digest

PROGRAM = """
import numpy as np
import tapeless as tp
from tapeless.ir.digest import digest

def loops(a, b, c, n):
    first, second, third, fourth = a * 2.0, b * 2.0, c * 2.0, a + b
    def shift(x):
        return x + first[0] + second[0]
    for i in range(n):
        for j in range(n):
            third[j], fourth[i] = shift(first[i]), second[j]
            first[i] += 1.0
            second[j] -= first[i]
            if third[0] > 3.0:
                break
        first, second = second, first
    while third[0] > 0.0:
        third[0] -= 1.0
        a[0], b[0], c[0] = b[0], c[0], a[0]
    return {"x": first, "y": (second, third), "z": fourth}

def parallel(a, b, c, n):
    out, other = np.zeros(len(a)), np.zeros(len(a))
    total, most = 0.0, 0.0
    for i in tp.prange(len(a)):
        out[i] = a[i] * n
        other[i] = b[i] + c[i]
        total += a[i]
        most += c[i]
    return out, other, total, most

for f in (loops, parallel):
    x = np.arange(3.0)
    print(digest(tp.function(f, cache=False).compiled(x, x + 1, x + 2, 2).traced.core))
"""


@pytest.mark.thorough
def test_every_process_finds_the_same(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    found = set()
    for seed in ("1", "2", "3", "4", "5"):
        environment = {**os.environ, "PYTHONPATH": str(Path(tp.__file__).parents[1]), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


def key(function, *args):
    return digest(tp.function(function).compiled(*args).traced.core)


@pytest.mark.parametrize(
    "maker", ["x * 2.0", "x * 3.0", "x + 2.0", "2.0 * x", "x * 2", "x * -0.0", "x * 0.0", "y * 2.0"]
)
def test_other_programs(maker, tmp_path):
    def made(text, name):
        path = tmp_path / "program.py"
        path.write_text(f"def f({name}):\n    return {text}\n", encoding="utf-8")
        space = {}
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), space)
        return space["f"]

    name = maker[0] if maker[0] in "xy" else "x"
    same = key(made(maker, name), 1.5)
    assert same == key(made(maker, name), 2.5)
    assert same != key(made(maker, name), np.float32(1.5))
    assert same != key(made("x * 7.0", "x"), 1.5)
    assert same != key(made(f" {maker}", name), 1.5)  # another column in messages
