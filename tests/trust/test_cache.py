"""A hostile disk cache: whatever lies in it, calls give the right result and nothing of it is run."""

import dataclasses
import hashlib
import json
import math
import os
import pickle
import random
import re
import signal
import stat
import struct
import subprocess
import sys
import types
import typing
import warnings
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu import libraries
from tapeless.backends.llvm import host
from tapeless.frontend.returned import Known, Leaf, Tree
from tapeless.frontend.state.context import Captured, Watch
from tapeless.ir.span import Span
from tapeless.ir.types import F64, I64, Const, DType, Type, Var
from tapeless.lower.ir.loopir import Assign, Site
from tapeless.runtime import cache, kept, plain, private, recall
from tapeless.runtime.kept import CODEC, Binary, Memory, SizeOf
from tapeless.runtime.plain import Unplain
from tapeless.tools import cli, doctor

SOURCE = Path(tp.__file__).parents[1]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of a cache of its own, not made yet."""
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", False)
    return tmp_path / "cache"


def simple(x):
    return x * 2.0 + 1.0


def fresh(function):
    """A function object of which nothing is compiled in this process, as another process would have it."""
    return tp.function(types.FunctionType(function.__code__, function.__globals__, function.__name__))


def hit() -> bool:
    """Whether a new function object finds its code in the cache; it is right in any case."""
    f = fresh(simple)
    assert f(3.0) == 7.0
    return f.compiled(3.0).from_cache


def files(place: Path, kind: str = "*") -> list[Path]:
    return sorted(place.glob(f"*/*.{kind}"))


def forged(path: Path, payload: bytes) -> bytes:
    """An entry that only its contents give away."""
    kind = path.suffix[1:]
    return cache.FORMAT + cache._digest(path.parent.name + path.stem, kind, payload) + payload


def payload_of(path: Path) -> bytes:
    return path.read_bytes()[len(cache.FORMAT) + 32 :]


# -- entries


class Bomb:
    """Leaves a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch '{self.path}'",)


def test_x1_pickles_are_not_run(place, tmp_path, recwarn):
    ran = tmp_path / "ran"
    bomb = pickle.dumps(Bomb(ran))
    assert not hit() and hit()
    (trace,), (code,) = files(place, "trace"), files(place, "bin")
    (memory,) = cache.fetch(trace.parent.name + trace.stem, cache.TRACE)
    inside = CODEC.encode([dataclasses.replace(memory, signature=bomb)])
    for path, payload in ((trace, bomb), (code, bomb), (trace, inside)):
        old = b"tapeless-cache-1\n" + hashlib.sha256(payload).digest() + payload
        for data in (old, forged(path, payload), payload):
            path.write_bytes(data)
            hit()  # the other of the two entries may still be good
            assert not ran.exists()
    assert hit() and not recwarn.list


def test_x1_nothing_in_the_source_unpickles():
    names = r"^\s*(from|import) .*\b(_?pickle|shelve|copyreg|dill|cloudpickle)\b|^\s*from marshal\b|\bmarshal\.load"
    code = re.compile(names, re.MULTILINE)
    assert not [path for path in SOURCE.rglob("*.py") if code.search(path.read_text(encoding="utf-8"))]


def test_x1_damaged_files_count_as_absent(place, recwarn):
    assert not hit()
    chance = random.Random(1)
    for path in files(place):
        whole = path.read_bytes()
        for _ in range(8):
            at, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
            for data in (whole[:at], whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :], whole[:at] + whole):
                path.write_bytes(data)
                assert cache.fetch(path.parent.name + path.stem, path.suffix[1:]) is None
        path.write_bytes(whole[: len(whole) // 2])
        assert not hit() or path.suffix == ".trace"
        assert hit()
    assert not recwarn.list


def test_x1_an_entry_under_the_name_of_another_one(place):
    assert not hit()
    tp.function(lambda x: x - 1.0)(1.0)
    first, second = files(place, "bin")
    keys = [p.parent.name + p.stem for p in (first, second)]
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    assert cache.fetch(keys[0]) is cache.fetch(keys[1]) is None
    assert not hit() and hit()


def broken_binaries(good: Binary) -> dict[str, object]:
    change = dataclasses.replace
    return {
        "no object": change(good, objects=(b"",)),
        "text": change(good, objects=(b"#!/bin/sh\n" * 50,)),
        "half an object": change(good, objects=(good.objects[0][: len(good.objects[0]) // 2],)),
        "another name": change(good, name="another"),
        "a memory": Memory((), "0" * 64, b""),
        "a list": [good],
        "a text": "code",
        "none": None,
    }


def test_x1_code_that_does_not_load_is_made_anew(place, recwarn):
    assert not hit()
    (path,) = files(place, "bin")
    key = path.parent.name + path.stem
    for what, wrong in broken_binaries(cache.fetch(key)).items():
        cache.store(key, wrong)
        assert not hit(), what
        assert hit(), what
    assert not recwarn.list


def with_a_call(x):
    return np.sum(np.sin(x))


def test_x1_code_that_calls_what_is_not_there_is_made_anew(place):
    x = np.linspace(0.0, 1.0, 7)
    first = fresh(with_a_call)
    expected = first(x)
    (path,) = files(place, "bin")
    key = path.parent.name + path.stem
    found = cache.fetch(key)
    assert b"sin" in found.objects[0]
    cache.store(key, dataclasses.replace(found, objects=(found.objects[0].replace(b"sin", b"s1n"),)))
    again = fresh(with_a_call)
    assert again(x) == expected and not again.compiled(x).from_cache
    assert fresh(with_a_call).compiled(x).from_cache


def test_x1_memories_that_are_none(place):
    assert not hit()
    (path,) = files(place, "trace")
    key = path.parent.name + path.stem
    (memory,) = cache.fetch(key, cache.TRACE)
    (row, *_), change = memory.rows, dataclasses.replace
    called = CODEC.decode(memory.signature)
    far = kept.Hidden(10**9, Var("x", F64), "x", "", False)
    wrong = [
        {}, "text", [memory, 3], [change(memory, rows=(row._replace(parent=10**30),))],
        [change(memory, rows=(row._replace(kind="system"),))], [change(memory, code="../../etc/passwd")],
        [change(memory, signature=b"")], [change(memory, signature=CODEC.encode(("a", "pair")))],
        [change(memory, signature=CODEC.encode(change(called, hidden=(far,))))],
    ]  # fmt: skip
    for value in wrong:
        cache.store(key, value, cache.TRACE)
        assert fresh(simple)(3.0) == 7.0
        f = fresh(simple)
        assert f(3.0) == 7.0 and "trace" not in f.compiled(3.0).times, value


# -- the layout

VALUES = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**64), 10**6000, "", "text", "\ud800 \0 ä", b"", b"\0\xff", 1.5, math.inf,
    1j, complex(-0.0, math.nan), ..., (), (1,), [], [1, [2, (3,)]], {}, {"a": (1, 2.0), 3: None}, {1, "a"}, frozenset({4}),
    DType.f64, Type(DType.i32, (3,)), (True, 1, 1.0, "1", b"1"), Span("f.py", 1, 2, 3, 4), Leaf(3, True), SizeOf(4),
    Site("IndexError", "text {0}", Span("f.py", 1, 2, 3, 4), (DType.i64,)),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_come_back(value):
    again = CODEC.decode(CODEC.encode(value))
    assert type(again) is type(value)
    if value != value or type(value) is complex:
        assert repr(again) == repr(value)
    else:
        assert again == value


def test_all_bits_of_numbers_come_back():
    odd = struct.unpack("<d", bytes.fromhex("01000000deadf8ff"))[0]
    value = (0.0, -0.0, odd, 5e-324, 0, False, Const(-0.0), Const(0.0))
    again = CODEC.decode(CODEC.encode(value))
    assert [struct.pack("<d", v) for v in again[:4]] == [struct.pack("<d", v) for v in value[:4]]
    assert [type(v) for v in again] == [type(v) for v in value]
    assert math.copysign(1.0, again[6].value) == -1.0 and math.copysign(1.0, again[7].value) == 1.0


def test_what_is_compared_by_identity_is_one_object_again():
    n, other = Var("n", I64), Var("n", I64)
    x = Var("x", Type(DType.f64, (n, other)))
    a, b, c = CODEC.decode(CODEC.encode((n, other, x)))
    assert a is not b and c.type.shape[0] is a and c.type.shape[1] is b
    mine = [1]
    first, second = CODEC.decode(CODEC.encode((mine, mine)))
    assert first == second == [1] and first is not second


class Number(int):
    pass


@dataclasses.dataclass(frozen=True)
class Stranger:
    k: int = 3


UNKEPT = [
    object(), Number(3), np.float64(1.0), np.int64(1), np.ones(2), Stranger(), Stranger, int, len, lambda: 0, range(3), os,
    bytearray(b"x"), {(1, 2): 3}, {1.5: 2}, {b"k": 2}, {Const(1.0)}, Leaf("3"), SizeOf("0)) or print("), SizeOf(True), Known(Stranger()),
    Tree("dataclass", (Leaf(0),), ("k",), Stranger), Assign(3, Const(1.0)), Span("f", 1, 2, 3, None),
]  # fmt: skip


@pytest.mark.parametrize("value", UNKEPT, ids=lambda v: type(v).__name__)
def test_what_is_not_in_the_table_is_not_kept(value, place):
    for inside in (value, [value], (1, {"a": (value,)})):
        with pytest.raises(Unplain):
            CODEC.encode(inside)
    cache.store(cache.key_of("odd"), value)
    assert not files(place)


def test_nesting_is_bounded():
    deep = ()
    for _ in range(plain.DEEPEST - 1):
        deep = (deep,)
    assert CODEC.decode(CODEC.encode(deep)) == deep
    for value in ((deep,), [(deep,)]):
        with pytest.raises(Unplain):
            CODEC.encode(value)


def test_classes_of_the_surroundings_are_held_by_number():
    value = Tree("dataclass", (Leaf(0),), ("k",), Stranger)
    data = CODEC.encode(value, [int, Stranger])
    assert CODEC.decode(data, [int, Stranger]) == value
    assert CODEC.decode(data, [int, float]).cls is float
    with pytest.raises(Unplain):
        CODEC.decode(data, [int])
    assert b"Stranger" not in data


def mentioned(hint: object) -> set[type]:
    args = typing.get_args(hint)
    return set().union(*map(mentioned, args)) if args else {hint} if isinstance(hint, type) else set()


def test_the_table_is_whole():
    """A class that a field may hold is in the table; those of one process are left out before."""
    table = set(CODEC.classes)
    for cls in table:
        if dataclasses.is_dataclass(cls) or hasattr(cls, "_fields"):
            for found in set().union(*map(mentioned, typing.get_type_hints(cls).values())):
                known = found in table or found.__module__ == "builtins" or found in (typing.Any, Captured, Watch)
                assert known, f"{cls.__name__} holds {found.__name__}"


def text_of(data: bytes) -> bytes:
    return data[8 : 8 + struct.unpack_from("<Q", data)[0]]


def whole(text: bytes | list, blobs: bytes = b"", length: int | None = None) -> bytes:
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + blobs


LEAF, DTYPE = CODEC.kinds[Leaf], CODEC.kinds[DType]
ODD = {
    "nothing": b"",
    "a short length": b"\0\0",
    "a huge length": whole([1], length=2**63),
    "a length that is too short": whole([1], length=1),
    "bytes left over": whole([1], b"x"),
    "no entries": whole([]),
    "no list": whole(b"7"),
    "an object": whole(b'{"a": 1}'),
    "no JSON": whole(b"cos\nsystem\n(S'true'\ntR."),
    "not a text": whole(b"\xff\xfe\0\0"),
    "a float": whole([1.5]),
    "NaN": whole(b"[NaN]"),
    "a nested list": whole([[0, [0]]]),
    "deep JSON": whole(b"[" * 100_000),
    "a long number": whole(b"[" + b"9" * 100_000 + b"]"),
    "an empty node": whole([[]]),
    "a part that comes later": whole([[plain.TUPLE, 1], 5]),
    "itself": whole([[plain.TUPLE, 0]]),
    "a kind that is a text": whole([["os.system", 0]]),
    "a kind beyond the table": whole([[10**6]]),
    "no kind": whole([[-1]]),
    "null as a kind": whole([[None]]),
    "bytes beyond the end": whole([2**62, [plain.BYTES, 0]], b"abc"),
    "fewer than no bytes": whole([-3, [plain.BYTES, 0]], b"abc"),
    "an integer that is none": whole(["x1", [plain.INTEGER, 0]]),
    "a float that is none": whole(["00", [plain.FLOAT, 0]]),
    "a class that is not there": whole([5, [plain.GUEST, 0]]),
    "a class by its name": whole(["os", [plain.GUEST, 0]]),
    "too few fields": whole([5, [LEAF, 0]]),
    "too many fields": whole([5, True, [LEAF, 0, 1, 1]]),
    "a field of another class": whole(["5", True, [LEAF, 0, 1]]),
    "a member that is not there": whole(["__class__", [DTYPE, 0]]),
    "a key that is a list": whole([[plain.LIST], [plain.DICT, 0, 0]]),
    "a key that is a tuple": whole([[plain.TUPLE], [plain.DICT, 0, 0]]),
    "a key without a value": whole([1, [plain.DICT, 0]]),
    "a set of lists": whole([[plain.LIST], [plain.SET, 0]]),
    "deep tuples": whole([[plain.TUPLE], *([plain.TUPLE, k] for k in range(20_000))]),
}


@pytest.mark.parametrize("what", ODD)
def test_x1_odd_bytes_are_refused(what, place):
    with pytest.raises(Unplain):
        CODEC.decode(ODD[what])
    key = cache.key_of(what)
    cache.store(key, 1)
    path = place / key[:2] / f"{key[2:]}.bin"
    path.write_bytes(forged(path, ODD[what]))
    assert cache.fetch(key) is None


def test_x1_shared_parts_do_not_explode():
    nodes = [[plain.TUPLE], *([plain.TUPLE, k, k] for k in range(plain.DEEPEST - 1))]
    value = CODEC.decode(whole(nodes))  # 2 ** 199 parts, if one counted them
    assert value[0] is value[1]


def test_x1_random_changes_give_known_classes_or_nothing(place):
    """With the right checksum, so that the reader sees them."""
    assert not hit()
    chance, refused = random.Random(2), 0
    for path in files(place):
        good = payload_of(path)
        size = 8 + len(text_of(good))
        for _ in range(400):
            data = bytearray(good)
            for _ in range(chance.choice((1, 1, 2, 8))):
                data[chance.randrange(size)] = chance.choice((*b'0123456789[],"', chance.randrange(256)))
            try:
                CODEC.decode(bytes(data))
            except Unplain:
                refused += 1
    assert refused > 100


# -- folders


def warned(recwarn) -> list[str]:
    return [str(w.message) for w in recwarn.list if w.category is tp.CacheNotUsed]


def check_not_used(place: Path, recwarn, capsys, match: str) -> None:
    """Neither read nor written; said once, by the doctor and by the command for it as well."""
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    assert not hit() and not hit()
    tp.function(lambda x: x + 1.0)(1.0)
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before
    (text,) = warned(recwarn)
    assert match in text and "TP501" in text and ("chmod go-w" in text or "TAPELESS_CACHE_DIR" in text)
    row = doctor._cache()
    assert row.state == doctor.MISSING and match in row.meaning and "not used" in row.found
    for action in ("ls", "clear"):
        assert cli.main(["cache", action]) == 2 and match in capsys.readouterr().err
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720, 0o1777])
def test_x1_a_folder_that_others_may_write(place, recwarn, capsys, mode):
    assert not hit() and hit()
    place.chmod(mode)
    check_not_used(place, recwarn, capsys, f"(mode {mode:o})")
    place.chmod(0o755)
    assert hit()


def test_x1_a_folder_inside_that_others_may_write(place, recwarn, capsys):
    assert not hit() and hit()
    for path in files(place):
        path.parent.chmod(0o770)
    assert not hit() and len(warned(recwarn)) == 1
    assert doctor._cache().state == doctor.MISSING
    assert cli.main(["cache", "clear"]) == 2 and "(mode 770)" in capsys.readouterr().err


def test_x1_a_folder_of_somebody_else(place, recwarn, capsys, monkeypatch):
    assert not hit() and hit()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 12345)
    check_not_used(place, recwarn, capsys, "belongs to another user")


@pytest.mark.parametrize("there", [True, False])
def test_x1_a_folder_on_the_way(place, recwarn, monkeypatch, there):
    """Whoever may write to the parent can replace the folder."""
    if there:
        assert not hit() and hit()
    place.parent.chmod(0o777)
    assert not hit() and place.exists() is there
    assert str(place.parent) in warned(recwarn)[0]
    place.parent.chmod(0o1777)  # but not in a folder like /tmp
    assert hit() is there and hit()
    place.parent.chmod(0o770)
    monkeypatch.setattr(private, "_alone_in", lambda path, group: False)
    assert not hit()
    monkeypatch.setattr(private, "_alone_in", lambda path, group: True)
    assert hit()


def test_x1_links_are_followed_step_by_step(place, tmp_path, recwarn, monkeypatch):
    inner, way = tmp_path / "inner", tmp_path / "way"
    inner.mkdir(mode=0o700)
    way.mkdir(mode=0o700)
    (inner / "link").symlink_to("../way/next")
    (way / "next").symlink_to(tmp_path / "end")
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(inner / "." / "link" / ".." / "end"))
    assert not hit()
    (tmp_path / "end").mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(inner / "link"))
    hit()
    assert hit() and not warned(recwarn)
    way.chmod(0o777)  # here others could change where it leads
    assert not hit() and str(way) in warned(recwarn)[0]
    way.chmod(0o700)
    assert hit()
    (inner / "link").unlink()
    (inner / "link").symlink_to("link")
    assert not hit()
    assert "not used" in doctor._cache().found


def test_x1_a_folder_inside_that_is_a_link(place, tmp_path, recwarn):
    assert not hit() and hit()
    for k, folder in enumerate({p.parent for p in files(place)}):
        folder.rename(tmp_path / f"elsewhere{k}")
        folder.symlink_to(tmp_path / f"elsewhere{k}")
    assert not hit() and "is a link" in warned(recwarn)[0]
    assert cache.clear() == 0 and len(list(tmp_path.glob("elsewhere*/*"))) == 2


def entry_link(path: Path) -> None:
    path.rename(path.parent.parent.parent / "moved")
    path.symlink_to(path.parent.parent.parent / "moved")


def entry_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def entry_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def entry_open(path: Path) -> None:
    path.chmod(0o666)


def entry_large(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(2 * cache.LIMIT)  # takes no space


@pytest.mark.parametrize("change", [entry_link, entry_folder, entry_pipe, entry_open, entry_large])
def test_x1_only_plain_files_are_read(place, change, recwarn):
    assert not hit() and hit()
    (path,) = files(place, "bin")
    change(path)
    assert not hit() and not recwarn.list
    assert path.is_dir() or (hit() and stat.S_IMODE(path.lstat().st_mode) == 0o600 and not path.is_symlink())


@pytest.mark.parametrize("umask", [0, 0o077, 0o700])
def test_i_a_cache_is_private_whatever_the_umask_is(place, monkeypatch, umask, recwarn):
    where = place / "a" / "b"
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(where))
    before = os.umask(umask)
    try:
        assert not hit()
    finally:
        os.umask(before)
    made = [place, *place.rglob("*")]
    assert len(made) >= 6 and {stat.S_IMODE(p.stat().st_mode) for p in made if p.is_dir()} == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in made if p.is_file()} == {0o600}
    assert hit() and not recwarn.list


def test_warnings_that_are_errors(place):
    place.mkdir(mode=0o700)
    place.chmod(0o777)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tp.CacheNotUsed, match="chmod go-w") as caught:
            hit()
        assert not isinstance(caught.value, tp.TapelessError)
        assert not hit()


def test_the_advice_helps(place, recwarn):
    place.mkdir(mode=0o700)
    place.chmod(0o777)
    assert not hit()
    command = warned(recwarn)[0].partition("run: ")[2].rstrip(".")
    subprocess.run(command, shell=True, check=True)
    assert not hit() and hit()


def test_without_a_home(monkeypatch, recwarn):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TAPELESS_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert not hit() and not recwarn.list
    assert "TAPELESS_CACHE_DIR" in doctor._cache().meaning
    assert not cache.entries() and cache.clear() == 0


def test_systems_without_owners(place, monkeypatch, recwarn):
    monkeypatch.delattr(os, "geteuid")
    assert not hit() and not place.exists() and len(warned(recwarn)) == 1


# -- writers

WRITER = """
import os, sys
from tapeless.runtime import cache
key, value = "ab" * 32, [sys.argv[1] * 50_000]
for _ in range(60):
    cache.store(key, value)
    found = cache.fetch(key)
    assert found in (["a" * 50_000], ["b" * 50_000]), found
"""


def test_two_processes_write_one_entry(place):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", WRITER]
    running = [subprocess.Popen([*command, letter], env=environment, stderr=subprocess.PIPE) for letter in "ab"]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
    assert cache.fetch("ab" * 32) is not None and not cache.leftovers()


KILLED = """
import os, signal
from tapeless.runtime import cache
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
cache.store("cd" * 32, "x" * 10_000)
"""


def test_l4_leftovers_of_killed_writers_are_swept(place, monkeypatch, capsys):
    done = subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": str(SOURCE)})
    assert done.returncode == -signal.SIGKILL
    (left,) = cache.leftovers()
    assert left.size > 10_000
    assert cli.main(["cache", "ls"]) == 0 and "0 entries, 0 B and 1 unfinished, 10" in capsys.readouterr().out
    monkeypatch.setattr(cache, "_writes", 0)  # as in a fresh process
    cache.store("ef" * 32, 1)
    assert cache.leftovers()  # somebody may still be writing it
    os.utime(left.path, (left.used - 2 * cache.KILLED,) * 2)
    monkeypatch.setattr(cache, "_writes", 0)
    cache.store("ef" * 32, 1)
    assert cache.leftovers()  # the cache was trimmed just now
    os.utime(place / cache.STAMP, (left.used - 2 * cache.TRIMMED,) * 2)
    monkeypatch.setattr(cache, "_writes", 0)
    cache.store("ef" * 32, 1)
    assert not cache.leftovers() and cache.fetch("ef" * 32) == 1


def test_l4_leftovers_count_and_are_cleared(place, capsys):
    for k in range(4):
        key = cache.key_of(str(k))
        cache.store(key, "x" * 1000)
        os.utime(place / key[:2] / f"{key[2:]}.bin", (1000.0 + k,) * 2)
    size = cache.entries()[0].size
    new = place / cache.key_of("0")[:2] / ".tmpnew"
    new.write_bytes(b"x" * 2 * size)
    cache.trim(limit=4 * size)
    assert len(cache.entries()) == 2 and new.exists()
    assert cli.main(["cache", "clear"]) == 0
    assert "2 entries and 1 unfinished removed" in capsys.readouterr().out and not new.exists()


# -- what the key knows


def package(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    (root / "runtime").mkdir(parents=True)
    for name in ("__init__.py", "runtime/cache.py"):
        (root / name).write_text("", encoding="utf-8")
    return root


def build_of(root: Path, monkeypatch) -> str:
    monkeypatch.setattr(cache, "__file__", str(root / "runtime" / "cache.py"))
    return cache.build.__wrapped__()


def test_i_links_that_lead_nowhere_or_round(tmp_path, monkeypatch):
    root = package(tmp_path)
    before = build_of(root, monkeypatch)
    (root / ".#x.py").symlink_to("somebody@somewhere.123:456")  # an editor's mark
    (root / "runtime" / "self.py").symlink_to("self.py")
    for k in range(8):
        (root / f"round{k}").symlink_to(".")
    assert build_of(root, monkeypatch) == before
    (root / "runtime" / "more.py").write_text("", encoding="utf-8")
    assert build_of(root, monkeypatch) != before


def test_i_an_unreadable_folder_of_the_package(tmp_path, monkeypatch):
    root = package(tmp_path)
    before = build_of(root, monkeypatch)
    listed = os.scandir

    def scandir(path):
        if str(path).startswith(str(root / "runtime")):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert build_of(root, monkeypatch) != before
    root.rename(tmp_path / "gone")
    assert build_of(root, monkeypatch) != before


def test_i_the_key_knows_the_c_library_and_scipy(place, monkeypatch):
    assert not hit() and hit()
    for module, name in ((host, "c_library"), (libraries, "scipy_build")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda: "another one")
            patch.setattr(host, "identity", host.identity.__wrapped__)
            assert not hit() and hit()
        assert hit()
    assert host.c_library() and libraries.scipy_build()
    assert libraries.scipy_build() in recall.surroundings(tp.function(simple).options)
