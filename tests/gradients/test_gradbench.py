"""The GradBench tool gives the answers of the benchmark's small cases, through its handler and as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gradbench.protocol import EVALS, Tool

ROOT = Path(__file__).parents[2]
VECTORS = sorted((ROOT / "tests/data/gradbench").glob("*.json"))
STRICT = {"particle": 1e-12, "saddle": 1e-12}  # constants; the benchmark's own test of `saddle` takes any small numbers
RK_AGAINST_EXACT = {"ode_gradient_n6_s50": 1e-6}  # the answer is that of the exact solution


@pytest.fixture(scope="module")
def tool():
    return Tool()


def defined(tool, module):
    if module not in tool.modules:
        reply = tool.reply({"id": 0, "kind": "define", "module": module})
        assert reply["success"], reply["error"]


def agree(got, expected, tolerance, place=""):
    """The benchmark's comparison: absolute for small numbers, relative for others, and the same structure."""
    if isinstance(expected, dict):
        assert got.keys() == expected.keys(), place
        for key in expected:
            agree(got[key], expected[key], tolerance, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(got) == len(expected), place
        for k, (one, other) in enumerate(zip(got, expected, strict=True)):
            agree(one, other, tolerance, f"{place}[{k}]")
    elif isinstance(expected, float):
        assert abs(got - expected) <= tolerance * max(1.0, abs(got) + abs(expected)), place
    else:
        assert type(got) is type(expected) and got == expected, place


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", VECTORS, ids=lambda p: p.stem)
def test_vector(tool, path):
    vector = json.loads(path.read_text())
    defined(tool, vector["module"])
    message = {"id": 7, "kind": "evaluate", **{k: vector[k] for k in ("module", "function", "input")}}
    reply = tool.reply(message)
    assert reply["success"], reply["error"]
    assert reply["id"] == 7
    assert [t for t in reply["timings"] if t["name"] == "evaluate"]
    tolerance = RK_AGAINST_EXACT.get(path.stem) or STRICT.get(vector["module"], 1e-9)
    agree(json.loads(json.dumps(reply["output"], allow_nan=False)), vector["output"], tolerance)


def test_every_eval_has_a_vector():
    assert {path.stem.split("_")[0] for path in VECTORS} == set(EVALS)


def test_repeats_until_the_time_is_over(tool):
    defined(tool, "lse")
    given = {"x": [0.5, 0.25], "min_runs": 3, "min_seconds": 0.01}
    reply = tool.reply({"id": 1, "kind": "evaluate", "module": "lse", "function": "primal", "input": given})
    times = [t["nanoseconds"] for t in reply["timings"] if t["name"] == "evaluate"]
    assert len(times) >= 3 and sum(times) >= 1e7


def test_what_is_not_there(tool):
    assert not tool.reply({"id": 1, "kind": "define", "module": "nothing"})["success"]
    assert not tool.reply({"id": 2, "kind": "evaluate", "module": "nothing", "function": "f", "input": 1})["success"]
    assert tool.reply({"id": 3, "kind": "analysis", "of": 2, "valid": True}) == {"id": 3}


def test_a_process_speaks_the_protocol():
    messages = [
        {"id": 0, "kind": "start", "eval": "hello"},
        {"id": 1, "kind": "define", "module": "hello"},
        {"id": 2, "kind": "evaluate", "module": "hello", "function": "square", "input": 8.0},
        {"id": 3, "kind": "analysis", "of": 2, "valid": True},
        {"id": 4, "kind": "evaluate", "module": "hello", "function": "double", "input": 64},
    ]
    lines = "".join(json.dumps(m) + "\n" for m in messages)
    command = [sys.executable, "-m", "benchmarks.gradbench", "--threads", "1"]
    run = subprocess.run(
        command, input=lines, capture_output=True, text=True, cwd=ROOT, timeout=300, check=True, env=dict(os.environ)
    )
    replies = [json.loads(line) for line in run.stdout.splitlines()]
    assert [r["id"] for r in replies] == [0, 1, 2, 3, 4]
    assert replies[0]["tool"] == "tapeless" and replies[1]["success"]
    assert replies[2]["output"] == 64.0 and replies[4]["output"] == 128.0
