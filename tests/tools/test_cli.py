"""The `tapeless` command: what it prints, and its exit status."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tapeless.tools import doctor
from tapeless.tools.cli import main

PROGRAMS = str(Path(__file__).parent / "programs.py")


def run(capsys, *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_explain_with_arguments(capsys):
    status, out, _ = run(capsys, "explain", f"{PROGRAMS}:prefix", "np.ones(4)", "4")
    assert status == 0 and "for i in range(n):" in out and "sequential loop" in out


def test_explain_with_the_example_of_the_module(capsys):
    status, out, _ = run(capsys, "explain", f"{PROGRAMS}:scaled")
    assert status == 0 and "return x * 2.0 + y" in out


def test_explain_asks_for_arguments(capsys):
    status, _, err = run(capsys, "explain", f"{PROGRAMS}:prefix")
    assert status == 2 and "Python expressions" in err and "example_prefix" in err


def test_explain_writes_a_page(capsys, tmp_path):
    page = tmp_path / "page.html"
    status, out, _ = run(capsys, "explain", f"{PROGRAMS}:scaled", "--html", str(page))
    assert status == 0 and str(page) in out and page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_ir_takes_options_between_arguments(capsys):
    status, out, _ = run(capsys, "ir", f"{PROGRAMS}:scaled", "--stage", "core", "np.ones(3)", "2.0")
    assert status == 0 and out.startswith("def scaled(x: [n]f64, y: f64)")
    status, out, _ = run(capsys, "ir", f"{PROGRAMS}:scaled", "np.ones(3)", "-2.0", "--stage", "loops")
    assert status == 0 and out.startswith("program ")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere.py:f", "no file"),
        (PROGRAMS, "FILE.py:f"),
        (f"{PROGRAMS}:nobody", "no 'nobody'"),
        (f"{PROGRAMS}:not_a_function", "not a function"),
    ],
)
def test_targets_that_are_none(capsys, target, says):
    status, out, err = run(capsys, "explain", target)
    assert (status, out) == (2, "") and says in err and "Traceback" not in err


def test_file_that_cannot_be_imported(capsys, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    status, _, err = run(capsys, "explain", f"{file}:f")
    assert status == 2 and "ZeroDivisionError" in err


def test_argument_that_cannot_be_evaluated(capsys):
    status, _, err = run(capsys, "explain", f"{PROGRAMS}:prefix", "np.ones(", "4")
    assert status == 2 and "'np.ones('" in err


def test_function_that_does_not_compile(capsys):
    status, _, err = run(capsys, "explain", f"{PROGRAMS}:refused", "np.ones(3)")
    assert status == 1 and "TP101" in err and "programs.py" in err and "Traceback" not in err


def test_check(capsys, tmp_path):
    file = tmp_path / "checked.py"
    file.write_text(
        "import numpy as np\nimport tapeless as tp\n\n\n"
        "def total(n, x, scale=2.0):\n    s = 0.0\n    for i in range(n):\n        s += scale * np.sin(x[i])\n    return s\n\n\n"
        "@tp.custom_vjp\ndef wrong(x):\n    return x * x\n\n\n"
        "wrong.defvjp(lambda x: (x * x, x), lambda x, g: (3.0 * x * g,))\n"
    )
    status, out, _ = run(capsys, "check", f"{file}:total", "3", "np.ones(3)", "0.5", "--order", "1")
    assert status == 0 and "held fixed, not made of floats: n" in out and "farthest off" in out
    assert "total, derivatives of order 1: 4 in forward mode and 4 in reverse mode, all agree with differences" in out
    status, out, _ = run(capsys, "check", f"{file}:wrong", "2.0", "--order", "1")
    assert status == 1 and "worst: reverse mode gives 6.0 for the derivative of result by x" in out
    status, _, err = run(capsys, "check", f"{file}:total")
    assert status == 2 and "example_total" in err
    status, _, err = run(capsys, "check", f"{file}:wrong", "2")
    assert status == 2 and "no argument of 'wrong' is made of floats" in err


def test_cache(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    assert run(capsys, "ir", f"{PROGRAMS}:scaled")[0] == 0
    status, out, _ = run(capsys, "cache", "ls")
    assert status == 0 and re.search(r"^2 entries, .* in ", out, re.MULTILINE)  # code, and a trace
    status, out, _ = run(capsys, "cache", "clear")
    assert status == 0 and out.startswith("2 entries removed")
    assert run(capsys, "cache", "ls")[1].startswith("0 entries")


def test_doctor(capsys):
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    for word in ("python", "numpy", "processor", "libmvec", "LAPACK", "cache", "self test", "agrees with Python"):
        assert word in out


def test_doctor_reports_what_is_broken(capsys, monkeypatch):
    def broken():
        raise RuntimeError("out of order")

    monkeypatch.setattr(doctor, "CHECKS", (("self test", broken),))
    status, out, _ = run(capsys, "doctor")
    assert status == 1 and "out of order" in out and "failed" in out


@pytest.mark.parametrize(
    "argv", [["dance"], ["cache", "sell"], ["doctor", "--loudly"], ["ir", "a.py:f", "--stage", "none"]]
)
def test_usage(capsys, argv):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2 and "usage: tapeless" in capsys.readouterr().err


@pytest.mark.thorough
def test_bench_hands_its_options_on():
    command = [sys.executable, "-m", "tapeless", "bench", "--only", "nothing-of-that-name"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no such workload" in done.stderr


def test_module_and_version():
    done = subprocess.run([sys.executable, "-m", "tapeless", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and re.fullmatch(r"tapeless \d+\.\d+\.\d+\n", done.stdout)


def test_explain_a_gradient_of_a_file(capsys):
    target = f"{Path(__file__).parent / 'gradients.py'}:gradient"
    status, out, _ = run(capsys, "explain", target)
    assert status == 0 and "8 kB kept" in out and "loop of 1000 iterations" in out
    status, out, _ = run(capsys, "explain", target, "0.3", "1.1", "50")
    assert status == 0 and "400 B kept" in out


def test_what_a_newcomer_tries_first(capsys, tmp_path):
    status, out, _ = run(capsys)
    assert status == 2 and "usage: tapeless" in out and "explain" in out and "doctor" in out
    status, out, _ = run(capsys, "cache")
    assert status == 0 and "entries" in out
    status, _, err = run(capsys, "explain", f"{PROGRAMS}:scaled", "--html", str(tmp_path / "none" / "page.html"))
    assert status == 2 and "cannot be written: No such file" in err
    file = tmp_path / "outside.py"
    file.write_text("import numpy as np\n\n\ndef outside(x):\n    return x[len(x)]\n")
    status, _, err = run(capsys, "check", f"{file}:outside", "np.ones(3)")
    assert status == 2 and "'outside' cannot be checked with these arguments: index 3 is out of bounds" in err
