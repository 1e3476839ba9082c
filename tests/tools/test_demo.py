"""The demo, as a newcomer runs it, at a small size."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tapeless.tools import demo


def run(**more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TAPELESS_DEMO_QUICK": "1", **more}
    command = [sys.executable, "-m", "tapeless.tools.demo"]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=120)


@pytest.mark.thorough
def test_tour():
    done = run(PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.isascii() and "\x1b" not in done.stdout  # neither colours nor symbols on this pipe
    for text in (
        "Mandelbrot",
        "Gray-Scott",
        "bodies",
        "logsumexp",
        "def positive_norm(x: [n]f64) -> f64",
        "TP105",
        'memory="40kB"',
        "u  store: its value",
        "differences of the function give",
    ):
        assert text in done.stdout
    assert "went wrong" not in done.stdout


def test_the_cache_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    first, again = (demo.anew(demo.positive_norm).compiled(np.ones(3)) for _ in range(2))
    assert not first.from_cache and again.from_cache  # what `measure` times


@pytest.mark.thorough
def test_tour_in_colour():
    done = run(FORCE_COLOR="1", PYTHONIOENCODING="utf-8", COLORTERM="truecolor")
    assert done.returncode == 0 and "▀" in done.stdout and "\x1b[38;2;" in done.stdout


def test_pictures():
    image = np.linspace(0.0, 1.0, 12).reshape(4, 3)
    plain = demo.picture(image, demo.NIGHT, colour=False).plain
    assert [len(line) for line in plain.splitlines()] == [3, 3]
    assert demo.picture(image, demo.NIGHT, colour=True).plain == "▀▀▀\n▀▀▀"


def test_a_wrong_answer_is_noticed():
    whole, real = np.arange(100), np.linspace(0.0, 1.0, 5)
    assert demo.compare([whole], [whole.copy()]) == ("equal", True)
    assert demo.compare([whole + 1], [whole]) == ("0.00% equal", False)
    assert demo.compare([real], [real + 1e-15])[1]
    assert not demo.compare([real], [real + 1e-3])[1]


def test_a_part_that_fails_is_told(capsys):
    def broken(console):
        raise RuntimeError("out of order")

    assert demo.attempt(demo.make_console(), broken) is False
    assert "out of order" in capsys.readouterr().out


@pytest.mark.parametrize("t", [-1.0, 0.0, 0.3, 1.0, 2.0])
def test_palette_stays_in_range(t):
    colour = demo.NIGHT(t).triplet
    assert all(0 <= part <= 255 for part in colour)
