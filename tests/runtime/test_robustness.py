"""The run time under adverse conditions: disk cache, threads, fork, interrupts, changes of the surroundings."""

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tapeless.runtime import cache

SOURCE = Path(tp.__file__).parents[1]

PROGRAM = """
import json, sys
import numpy as np
import tapeless as tp

@tp.function(threads=2)
def f(a, n):
    s = 0.0
    for i in tp.prange(len(a)):
        s += np.sqrt(a[i]) * n
    return s

a = np.arange(100.0)
result = f(a, 3)
assert abs(result - 3 * np.sqrt(a).sum()) < 1e-9
print(json.dumps({"result": float(result), "hit": f.compiled(a, 3).from_cache}))
"""


def run(path: Path, directory: Path) -> dict:
    """The program in a fresh process with its own cache directory."""
    path.write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TAPELESS_CACHE_DIR": str(directory)}
    done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*/*.bin"))


# -- the disk cache


@pytest.mark.thorough
def test_a_fresh_process_finds_the_code(tmp_path):
    program, directory = tmp_path / "program.py", tmp_path / "cache"
    assert not run(program, directory)["hit"]
    assert len(entries(directory)) == 1
    assert run(program, directory)["hit"]
    assert len(entries(directory)) == 1


def damage_truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def damage_flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_foreign(path: Path) -> None:
    path.write_bytes(b"#!/bin/sh\necho hello\n" * 100)


def damage_other_format(path: Path) -> None:
    path.write_bytes(b"tapeless-cache-0\n" + path.read_bytes()[len(cache.FORMAT) :])


def damage_wrong_object(path: Path) -> None:
    """A whole entry that holds something else."""
    path.unlink()
    key = path.parent.name + path.stem
    cache.store(key, {"not": "code"})
    assert path.exists()


def damage_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = [
    damage_truncate, damage_flip, damage_empty, damage_foreign, damage_other_format, damage_wrong_object,
    damage_directory,
]  # fmt: skip


def simple(x):
    return x * 2.0 + 1.0


def fresh():
    """As another process has it: nothing is compiled."""
    return types.FunctionType(simple.__code__, simple.__globals__, simple.__name__)


def hit() -> bool:
    """Whether a new function object finds its code in the cache."""
    f = tp.function(fresh())
    assert f(3.0) == 7.0
    return f.compiled(3.0).from_cache


def test_damaged_entries_are_rebuilt_in_silence(tmp_path, monkeypatch, recwarn):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    assert not hit()
    assert hit()
    (entry,) = entries(tmp_path)
    for damage in DAMAGES:
        damage(entry)
        assert not hit(), damage.__name__
        if entry.is_dir():  # somebody else's: left alone
            entry.rmdir()
            assert not hit()
        assert hit(), damage.__name__
    assert not recwarn.list


@pytest.mark.thorough
def test_processes_may_write_at_once(tmp_path):
    program, directory = tmp_path / "program.py", tmp_path / "cache"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TAPELESS_CACHE_DIR": str(directory)}
    started = [
        subprocess.Popen([sys.executable, program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    results = [p.communicate(timeout=120) for p in started]
    assert all(p.returncode == 0 for p in started), results
    assert len({json.loads(out)["result"] for out, _ in results}) == 1
    assert len(entries(directory)) == 1
    assert not list(directory.glob("*/.tmp*"))
    assert run(program, directory)["hit"]


def test_unusable_directories_do_not_matter(tmp_path, monkeypatch, recwarn):
    file = tmp_path / "file"
    file.write_text("in the way", encoding="utf-8")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    for place in (file, file / "below", Path("/proc/tapeless"), closed):  # nobody can make a directory in /proc
        monkeypatch.setenv("TAPELESS_CACHE_DIR", str(place))
        assert not hit()
    assert file.read_text(encoding="utf-8") == "in the way"
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path / "missing" / "below"))
    assert not hit()
    assert hit()
    assert not recwarn.list


def test_cache_can_be_off(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        f = tp.function(simple, cache=False)
        assert f(3.0) == 7.0
        assert not f.compiled(3.0).from_cache
    assert not entries(tmp_path)


def test_the_oldest_entries_go(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    keys = [cache.key_of(str(k)) for k in range(10)]
    for k, key in enumerate(keys):
        cache.store(key, b"x" * 1000)
        path = tmp_path / key[:2] / f"{key[2:]}.bin"
        os.utime(path, (time.time() - 10_000 + k,) * 2)
    size = cache.entries()[0][1]
    cache.fetch(keys[0])  # used just now
    cache.trim(limit=4 * size)
    left = [k for k, key in enumerate(keys) if cache.fetch(key) is not None]
    assert left == [0, 7, 8, 9]
    assert sum(e[1] for e in cache.entries()) <= 4 * size
    assert cache.clear() == 4
    assert not cache.entries()


def test_options_decide_the_code(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    for options in ({}, {"fastmath": True}, {"unsafe": True}, {"check": True}):
        assert not tp.function(fresh(), **options).compiled(3.0).from_cache
    assert len(entries(tmp_path)) == 4


# -- threads


def test_first_call_from_many_threads():
    @tp.function(threads=2, cache=False)
    def f(a, n):
        s = 0.0
        for i in tp.prange(len(a)):
            s += a[i] * n
        return s

    barrier = threading.Barrier(8)
    results, problems = [], []

    def work(k):
        try:
            barrier.wait()
            for j in range(30):
                a = np.full(50 + k, float(k)) if j % 2 else np.full(50 + k, k, np.int64)
                results.append(f(a, j) == k * j * (50 + k))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems
    assert len(results) == 240 and all(results)


def test_different_functions_compiled_at_once():
    def made(k):
        @tp.function(cache=False)
        def f(x):
            return x * k + np.sum(np.arange(k))

        return f

    functions = [made(k) for k in range(8)]
    results = [None] * 8

    def work(k):
        results[k] = functions[k](2.0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [2.0 * k + k * (k - 1) // 2 for k in range(8)]


@tp.function(threads=1)
def busy(n):
    x = 0.5
    for i in range(n):
        x = 3.9 * x * (1.0 - x)
    return x


def steps_for(seconds: float) -> int:
    """So many steps of `busy` take about so long here."""
    busy(1000)
    start = time.perf_counter()
    busy(1_000_000)
    return int(seconds / (time.perf_counter() - start) * 1_000_000)


def test_other_threads_run_while_native_code_does():
    n = steps_for(0.5)
    inside, counted = threading.Event(), []

    def native():
        inside.set()
        busy(n)
        counted.append("done")

    thread = threading.Thread(target=native)
    thread.start()
    inside.wait()
    time.sleep(0.05)  # by now it is in native code
    ticks = 0
    while not counted:
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 20  # with the GIL held there would be one or two


# -- processes


def test_parallel_functions_work_in_a_forked_child():
    @tp.function(threads=2)
    def f(a):
        return tp.map(lambda x: x * 2.0, a)

    a = np.arange(100_000.0)
    expected = f(a)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)
                good = np.array_equal(f(a), expected) and np.array_equal(f(a[:5000]), expected[:5000])
                good = good and tp.function(lambda x: x.sum() + 1, threads=2)(np.ones(10)) == 11.0
                status = 0 if good else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert np.array_equal(f(a), expected)


def test_fork_while_another_thread_runs_native_code():
    n = steps_for(0.3)
    thread = threading.Thread(target=busy, args=(n,))
    thread.start()
    time.sleep(0.05)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            status = 0 if 0.0 <= busy(1000) <= 1.0 and tp.function(lambda x: x + 1, cache=False)(1.0) == 2.0 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    thread.join()
    assert status == 0


@pytest.mark.thorough
def test_fork_while_another_thread_compiles():
    """A child has no other thread: locks that one held, LLVM's included, would never be free again."""
    made = lambda k: tp.function(lambda x: x * k, cache=False)
    shared = [made(-1)]
    done = []

    def compiles():
        for k in itertools.count():
            if done:
                return
            shared[0] = made(k)
            shared[0](1.0)

    thread = threading.Thread(target=compiles)
    thread.start()
    results = []
    try:
        for k in range(20):
            time.sleep(0.011)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    signal.alarm(20)
                    status = 0 if shared[0](0.0) == 0.0 and made(3)(2.0) == 6.0 else 2
                finally:
                    os._exit(status)
            results.append(os.waitpid(child, 0)[1])
            if results[-1]:
                break
    finally:
        done.append(True)
        thread.join()
    assert results == [0] * 20


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import tapeless as tp

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored

@tp.function(threads=2)
def busy(a, n):
    for i in tp.prange(len(a)):
        for k in range(n):
            a[i] = 3.9 * a[i] * (1.0 - a[i])
    return a

busy(np.full(8, 0.5), 10)
start = time.perf_counter()
busy(np.full(8, 0.5), 1_000_000)
n = int(0.5 / (time.perf_counter() - start) * 1_000_000)
threading.Timer(0.15, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    busy(np.full(8, 0.5), n)
    time.sleep(10)
    raise SystemExit("no interrupt arrived")
except KeyboardInterrupt:
    pass
for _ in range(100):
    busy(np.full(8, 0.5), 10)
assert tp.function(lambda x: x + 1)(1.0) == 2.0
print("usable")
"""


@pytest.mark.thorough
def test_interrupt_leaves_the_process_usable(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "usable\n"), done.stderr


COMPILING = """
import os, signal, threading, time
import tapeless as tp

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored

text = "def f(x):\\n    y = x\\n" + "".join(f"    y = y * 0.99 + {k}.0\\n" for k in range(1500)) + "    return y\\n"
open("long_program.py", "w").write(text)
names = {}
exec(compile(text, "long_program.py", "exec"), names)
f = tp.function(names["f"], cache=False)
interrupted = 0
for delay in (0.05, 0.2, 0.4, 0.8):
    timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        tp.function(names["f"], cache=False)(1.0)
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        interrupted += 1
assert interrupted
assert abs(f(1.0) - names["f"](1.0)) < 1e-6
print("usable")
"""


@pytest.mark.thorough
def test_interrupt_while_compiling(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    program = tmp_path / "program.py"
    program.write_text(COMPILING, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "usable\n"), done.stderr


# -- the surroundings

SCALE = 2.0
TABLE = np.array([1.0, 2.0, 3.0])
SETTINGS = {"offset": 1.0, "deep": (1, [2.0])}


def helper(x):
    return x + 1


@tp.function
def uses_globals(x):
    return helper(x) * SCALE + TABLE[0] + SETTINGS["offset"] + SETTINGS["deep"][1][0]


def test_changed_globals_are_seen(monkeypatch):
    here = sys.modules[__name__]
    assert uses_globals(1.0) == 8.0
    monkeypatch.setattr(here, "SCALE", 3.0)
    assert uses_globals(1.0) == 10.0
    monkeypatch.setattr(here, "SCALE", 3)  # another type
    assert uses_globals(1.0) == 10.0
    TABLE[0] = 5.0
    try:
        assert uses_globals(1.0) == 14.0
        monkeypatch.setattr(here, "TABLE", np.array([7, 8, 9, 10]))
        assert uses_globals(1.0) == 16.0
        monkeypatch.setattr(here, "TABLE", np.array([[7.0]]))
        assert uses_globals(1.0) == np.array([16.0])
    finally:
        monkeypatch.undo()
        TABLE[0] = 1.0
    assert uses_globals(1.0) == 8.0
    monkeypatch.setitem(SETTINGS, "offset", 2.0)
    assert uses_globals(1.0) == 9.0
    SETTINGS["deep"][1][0] = 3.0
    try:
        assert uses_globals(1.0) == 10.0
    finally:
        SETTINGS["deep"][1][0] = 2.0
    monkeypatch.setattr(here, "helper", lambda x: x + 2)
    assert uses_globals(1.0) == 11.0


class Config:
    def __init__(self, weight):
        self.weight = weight


CONFIG = Config(2.0)
ACTIVATION = np.sin
OPTIONAL = None


@tp.function
def uses_objects(x):
    y = CONFIG.weight * ACTIVATION(x)
    return y if OPTIONAL is None else y + OPTIONAL


def test_replaced_objects_are_seen(monkeypatch):
    here = sys.modules[__name__]
    assert uses_objects(1.0) == 2.0 * np.sin(1.0)
    monkeypatch.setattr(CONFIG, "weight", 3.0)
    assert uses_objects(1.0) == 3.0 * np.sin(1.0)
    monkeypatch.setattr(here, "CONFIG", Config(4.0))
    assert uses_objects(1.0) == 4.0 * np.sin(1.0)
    monkeypatch.setattr(here, "ACTIVATION", np.cos)
    assert uses_objects(1.0) == 4.0 * np.cos(1.0)
    monkeypatch.setattr(here, "OPTIONAL", 1.5)
    assert uses_objects(1.0) == 4.0 * np.cos(1.0) + 1.5
    monkeypatch.setattr(here, "ACTIVATION", abs)
    assert uses_objects(-1.0) == 5.5


def test_globals_of_one_name_in_two_modules(tmp_path):
    names = []
    for k in range(2):
        path = tmp_path / f"module{k}.py"
        path.write_text("FACTOR = 2.0\ndef g(x):\n    return x * FACTOR\n", encoding="utf-8")
        names.append({})
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names[k])
    first, second = names[0]["g"], names[1]["g"]
    f = tp.function(lambda x: first(x) + second(x))
    assert f(1.0) == 4.0
    names[1]["FACTOR"] = 3.0
    assert f(1.0) == 5.0
    names[0]["FACTOR"] = 4.0
    assert f(1.0) == 7.0


def test_replaced_array_of_another_kind():
    """The new array must never be read as what the old one was."""
    table = np.array([1.0, 2.0])

    def change(new):
        nonlocal table
        table = new

    @tp.function
    def f(i):
        return table[i] * 1.0

    for new in (np.array([7, 8, 9]), np.array([1.5], np.float32), np.arange(4.0)[::2], np.arange(4.0).astype(">f8")):
        for i in (0, -1):
            assert f(i) == table[i]
        change(new)
        for i in (0, -1):
            assert f(i) == new[i]
    with pytest.raises(IndexError):
        f(50)


def test_changed_closures_are_seen():
    weight = 1.0
    table = np.ones(3)

    def change(w, t):
        nonlocal weight, table
        weight, table = w, t

    @tp.function
    def f(x):
        return x * weight + table.sum()

    assert f(2.0) == 5.0
    change(2.0, table)
    assert f(2.0) == 7.0
    change(2.0, np.zeros(5))
    assert f(2.0) == 4.0
    change(2, np.zeros(5, np.int64))
    assert f(2.0) == 4.0


def test_a_short_table_has_constant_sizes_until_they_change():
    table = np.array([1.0, 2.0, 4.0])

    def change(new):
        nonlocal table
        table = new

    f = tp.function(lambda x: tp.grad(lambda y: np.sum(y * table[:2]) * table[-1])(x))
    x = np.array([3.0, 5.0])
    assert "table: [3]f64" in f.ir(x)
    compiled = []
    for n in (3, 4, 5, 6, 1, 7, 3):
        change(np.arange(1.0, n + 1))
        assert list(f(x)) == [n, n * min(n, 2)]
        compiled.append(f.compiled(x))
    assert compiled[0] is not compiled[1] is compiled[2] is compiled[3]
    assert compiled[4] is not compiled[5] is compiled[6]  # a size of 1 is another matter


def test_written_globals_reach_the_array():
    state = np.zeros(3)

    @tp.function
    def step(i, x):
        state[i] += x
        return state.sum()

    assert step(0, 1.0) == 1.0
    assert step(1, 2.0) == 3.0
    np.testing.assert_array_equal(state, [1.0, 2.0, 0.0])


# -- pickling


@tp.function
def pickled(x):
    return x + 1


def test_functions_pickle_by_reference():
    again = pickle.loads(pickle.dumps(pickled))
    assert again is pickled
    inner = tp.function(lambda x: x)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(inner)


@pytest.mark.thorough
def test_functions_in_other_processes(tmp_path):
    text = textwrap.dedent(
        """
        import multiprocessing
        import numpy as np
        import tapeless as tp

        @tp.function(threads=2)
        def f(a):
            return tp.map(lambda x: x * 2.0, a).sum()

        if __name__ == "__main__":
            f(np.ones(3))
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(pool.map(f, [np.ones(k) for k in (1, 2, 3)]))
        """
    )
    program = tmp_path / "pool_program.py"
    program.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("6.0") == 2
