"""The line that shows while something compiles, on a real pseudo-terminal; that pipes stay clean; and the log."""

import logging
import os
import pty
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tapeless as tp
from tapeless.runtime import screen, work

PROGRAM = """
import sys

import numpy as np

import tapeless as tp
from tapeless.runtime import compile, screen

screen.PATIENCE = 0.01
finished = compile.finished


def slowly(*args, **options):
    sys.stdin.readline()
    return finished(*args, **options)


compile.finished = slowly


def wave(x):
    return np.sum(np.sin(x) * x)


print("slope", tp.function(tp.grad(wave), cache=False)(np.array([0.5]))[0])
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "waits.py"
    path.write_text(PROGRAM)
    return str(path)


def run(script, *args, once_seen=None, **surroundings):
    """What the program prints, and what it writes to a terminal on stderr.

    once_seen: a text, and what to do with the process when the terminal shows it. Until then its stdin has no end.
    """
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", **surroundings}
    process = subprocess.Popen(
        [sys.executable, script, *args],
        stdin=subprocess.DEVNULL if once_seen is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=its,
        env=environment,
    )
    os.close(its)
    seen = b""

    def read():
        nonlocal seen
        waiting = once_seen
        try:
            while data := os.read(ours, 4096):
                seen += data
                if waiting is not None and waiting[0] in seen.decode(errors="replace"):
                    waiting[1](process)
                    waiting = None
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    too_long = threading.Timer(120, process.kill)
    too_long.start()
    assert process.stdout is not None
    printed = process.stdout.read()
    process.wait()
    too_long.cancel()
    reader.join()
    os.close(ours)
    assert process.returncode == 0, seen.decode()
    return printed.decode(), seen.decode()


@pytest.mark.thorough
def test_a_terminal_shows_what_is_compiled_and_then_nothing(script):
    printed, seen = run(script, once_seen=("simplifying", lambda process: process.stdin.close()))
    assert printed.startswith("slope 0.9182")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert re.search(r"compiling grad_of_wave: simplifying \(step 2 of 4\), \d+ s", text)
    assert "\x1b[2K" in seen.rpartition("compiling")[2]  # the line is erased


def test_it_can_be_turned_off(script):
    printed, seen = run(script, TAPELESS_PROGRESS="0")
    assert printed.startswith("slope")
    assert seen == ""


def test_pipes_stay_clean(script):
    process = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    assert process.stderr == ""


class Notebook:
    """stderr of a kernel, which is no terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return False


def test_notebooks_show_a_plain_line(monkeypatch):
    stderr = Notebook()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(screen, "_in_notebook", lambda: True)
    monkeypatch.setattr(screen, "PATIENCE", 0.0)
    with work.Work("loss") as running, running.at("native"):
        running.expect(3)
        running.part_done()
        while "parts" not in stderr.text:
            time.sleep(0.01)
    first, *_, last = stderr.text.split("\r")
    assert first == last == ""
    assert "compiling loss: making machine code, 1 of 3 parts (step 4 of 4), " in stderr.text
    assert stderr.text.split("\r")[-2].strip() == ""  # written over


def test_short_work_shows_nothing(monkeypatch):
    stderr = Notebook()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(screen, "_in_notebook", lambda: True)
    with work.Work("loss"):
        pass
    assert stderr.text == ""


@pytest.mark.parametrize("stderr", [None, object()])
def test_without_a_screen(monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    assert not screen.on_screen()


def test_the_log_has_the_whole_at_info_and_passes_at_debug(caplog):
    with caplog.at_level(logging.DEBUG, logger="tapeless"):
        tp.function(lambda x: np.sum(x * 2.0), cache=False)(np.ones(3))
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert len(told) == 1
    assert re.fullmatch(r"compiled '<lambda>' in \d+\.\d\d s \(.*optimize \d+\.\d\d.*\)", told[0])
    passes = {record.getMessage().split(" of ")[0] for record in caplog.records if record.levelno == logging.DEBUG}
    assert {"simplify", "cse", "dce", "fuse"} <= passes
