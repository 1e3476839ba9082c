"""The bar of tp.progress while native code runs, on a real pseudo-terminal; that pipes stay clean; what the line says."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tapeless as tp
from tapeless.runtime import progress, screen
from tests.runtime.test_work import Notebook, run

PROGRAM = """
import math
import signal
import sys
import threading
import time

import numpy as np
import rich.console  # before anything is timed: the first import may take seconds
import rich.text

import tapeless as tp
from tapeless.runtime import screen

screen.PATIENCE = 0.01
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started with SIGINT ignored


def wave(x, n):
    for i in tp.progress(range(n)):
        for k in range(1000):
            x = np.sin(x) + 0.001 * k
    return x


def fails(x, n):
    for i in tp.progress(range(n)):
        for k in range(1000):
            x = np.sin(x) + 0.001 * k
        x += math.sqrt(20000.0 - i)
    return x


def nested(x, n):
    for i in tp.progress(range(n)):
        for j in tp.progress(range(10)):
            for k in range(1000):
                x = np.sin(x) + 0.001 * k
    return x


def python(n):
    for i in tp.progress(range(n)):
        for j in tp.progress(range(3)):
            time.sleep(0.05)
    return n


match sys.argv[1]:
    case "gradient":
        print(tp.function(tp.grad(wave), cache=False)(0.3, 20000))
    case "error":
        try:
            tp.function(fails, cache=False)(0.3, 10**9)
        except ValueError:
            print("ValueError")
    case "interrupt":
        try:
            tp.function(wave, cache=False)(0.3, 10**9)
        except KeyboardInterrupt:
            print("KeyboardInterrupt")
    case "nested":
        print(tp.function(nested, cache=False)(0.3, 3000))
    case "python":
        print(python(10))
    case "two threads":
        compiled = tp.function(wave, cache=False)
        compiled(0.3, 1)
        threads = [threading.Thread(target=compiled, args=(0.3, 20000)) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print("done")
print("end")
"""
LINE = re.compile(r"(\w+) (forward|backward) ([━─]{24}) ([\d,]+) of ([\d,]+)")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "waits.py"
    path.write_text(PROGRAM)
    return str(path)


def lines(seen):
    """Of the bar: name, direction, done, total."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    numbers = (
        (name, way, done.replace(",", ""), total.replace(",", "")) for name, way, _, done, total in LINE.findall(text)
    )
    return [(name, way, int(done), int(total)) for name, way, done, total in numbers]


def is_gone(seen):
    return "\x1b[2K" in seen.rpartition(" of ")[2]


@pytest.mark.thorough
def test_a_terminal_sees_forward_and_backward(script):
    printed, seen = run(script, "gradient")
    assert printed.endswith("end\n")
    found = lines(seen)
    assert {name for name, *_ in found} == {"grad_of_wave"}
    assert {total for *_, total in found} == {20000}
    ways = [way for _, way, _, _ in found]
    assert set(ways) == {"forward", "backward"}
    assert ways == sorted(ways, reverse=True)
    for way in ("forward", "backward"):
        counts = [done for _, w, done, _ in found if w == way]
        assert counts == sorted(counts) and 0 <= counts[0] and counts[-1] <= 20000
        assert len(set(counts)) > 1
    assert is_gone(seen)


@pytest.mark.thorough
@pytest.mark.parametrize("case, printed", [("error", "ValueError"), ("interrupt", "KeyboardInterrupt")])
def test_it_is_gone_after_an_exception(script, case, printed):
    interrupt = (" of 1,000,000,000", lambda process: process.send_signal(signal.SIGINT))
    told, seen = run(script, case, once_seen=interrupt if case == "interrupt" else None)
    assert told.splitlines() == [printed, "end"]
    assert {total for *_, total in lines(seen)} == {10**9}
    assert is_gone(seen)


@pytest.mark.thorough
def test_of_nested_loops_the_outermost_is_shown(script):
    _, seen = run(script, "nested")
    assert {(name, total) for name, _, _, total in lines(seen)} == {("nested", 3000)}


@pytest.mark.thorough
def test_plain_python_too(script):
    printed, seen = run(script, "python")
    assert printed == "10\nend\n"
    assert {(name, way, total) for name, way, _, total in lines(seen)} == {("python", "forward", 10)}
    assert is_gone(seen)


@pytest.mark.thorough
def test_two_calls_at_once(script):
    """Each has its own words; one is shown at a time."""
    _, seen = run(script, "two threads")
    assert {(name, total) for name, _, _, total in lines(seen)} == {("wave", 20000)}


@pytest.mark.thorough
def test_it_can_be_turned_off(script):
    assert run(script, "python", TAPELESS_PROGRESS="0")[1] == ""


@pytest.mark.thorough
def test_pipes_stay_clean(script):
    for case in ("error", "python"):
        command = [sys.executable, script, case]
        process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert process.stderr == ""


# -- without a terminal


def test_notebooks_show_a_plain_line(monkeypatch):
    stderr = Notebook()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(screen, "_in_notebook", lambda: True)
    monkeypatch.setattr(screen, "PATIENCE", 0.0)
    with progress.Bar("loss", [3, -8]):
        while "backward" not in stderr.text:
            time.sleep(0.01)
    assert f"loss backward {'━' * 9}{'─' * 15} 3 of 8" in stderr.text
    assert stderr.text.split("\r")[-2].strip() == ""  # written over


def test_calls_write_their_own_words(monkeypatch):
    """Words of the record, zero at first whatever the last call left."""
    found = []

    class Seen(progress.Bar):
        def __init__(self, name, words):
            found.append((name, words[:]))
            super().__init__(name, words)
            self.kept = words

        def __exit__(self, *problem):
            super().__exit__(*problem)
            found.append(self.kept[:])

    monkeypatch.setattr(progress, "Bar", Seen)
    monkeypatch.setattr(progress, "on_screen", lambda: True)

    def halves(x, n):
        for i in tp.progress(range(n)):
            for k in range(3):
                x[k] = x[k] * 0.5 + i
        return np.sum(x)

    compiled = tp.function(halves)
    for n in (5, 3, 0):
        compiled(np.ones(3), n)
    assert found == [("halves", [0, 0]), [4, 5], ("halves", [0, 0]), [2, 3], ("halves", [0, 0]), [0, 0]]
    found.clear()
    tp.grad(halves)(np.ones(3), 4)
    assert found in ([("grad_of_halves", [0, 0]), [4, -4]], [("grad_of_halves", [0, 0]), [3, 4]])


def test_only_programs_with_such_loops_are_watched():
    def plain(x, n):
        for _ in range(n):
            x = np.sin(x)
        return x

    assert tp.function(plain).compiled(0.3, 3).binary.progress == ""


def test_of_several_lines_one_is_shown(monkeypatch):
    stderr = Notebook()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(screen, "_in_notebook", lambda: True)
    monkeypatch.setattr(screen, "PATIENCE", 0.0)
    with progress.Bar("outer", [1, 2]):
        while "outer" not in stderr.text:
            time.sleep(0.01)
        with progress.Bar("inner", [1, 2]):
            time.sleep(0.3)
    assert "inner" not in stderr.text


def threads():
    return [t for t in threading.enumerate() if t.name == "tapeless progress"]


def test_short_calls_share_a_thread_that_ends(monkeypatch):
    monkeypatch.setattr(screen, "on_screen", lambda: True)
    monkeypatch.setattr(screen, "PATIENCE", 0.2)
    seen = set()
    for _ in range(200):
        with progress.Bar("f", [0, 0]):
            seen.update(t.ident for t in threads())
    assert len(seen) == 1
    while threads():
        time.sleep(0.05)


def test_a_closed_screen_is_nobodys_problem(monkeypatch):
    class Closed(Notebook):
        def write(self, text):
            raise ValueError("I/O operation on closed file.")

    monkeypatch.setattr(sys, "stderr", Closed())
    monkeypatch.setattr(screen, "_in_notebook", lambda: True)
    monkeypatch.setattr(screen, "PATIENCE", 0.0)
    with progress.Bar("f", [1, 2]):
        time.sleep(0.3)


def test_a_fork_inside_a_loop(monkeypatch):
    monkeypatch.setattr(screen, "on_screen", lambda: True)
    for _ in tp.progress(range(1)):
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
    if pid == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


# -- the text


def test_the_time_left(monkeypatch):
    words = [0, 0]
    bar = progress.Bar("f", words)
    monkeypatch.setattr(progress.Bar, "elapsed", property(lambda self: now))
    now = 2.0
    assert bar.text() == "f, 2 s"
    words[:] = 1000, 4000
    assert bar.text() == f"f forward {'━' * 6}{'─' * 18} 1,000 of 4,000, 6 s left"
    now, words[:] = 10.0, [0, -4000]  # another pace
    assert bar.text() == f"f backward {'─' * 24} 0 of 4,000"
    now, words[0] = 20.0, 1000
    assert bar.text() == f"f backward {'━' * 6}{'─' * 18} 1,000 of 4,000, 30 s left"
    now, words[0] = 21.0, 10  # from the start again
    assert bar.text() == f"f backward {'─' * 24} 10 of 4,000"


@pytest.mark.parametrize(
    "seconds, text", [(0.2, "0 s"), (59.4, "59 s"), (60, "1:00 min"), (3599, "59:59 min"), (7384, "2:03 h")]
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text
