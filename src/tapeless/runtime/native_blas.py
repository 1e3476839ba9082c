"""The number of BLAS's threads around a call, set by machine code: Note [BLAS in native entries] in blas.py."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from tapeless.runtime.blas import BEFORE, BUSY, USERS, end, end_native, gate, setting
from tapeless.runtime.blas import begin as begin_in_python
from tapeless.runtime.forks import FORKS, NATIVE, steady
from tapeless.runtime.python_code import PythonCode


def begin(code: PythonCode, threads: int) -> str:
    """BLAS has so many threads until the `end` of this, which is given what this gives."""
    w, began = code.w, code.w.alloca("i1", "began")
    w.do(f"store i1 false, ptr {began}")
    with code.where(_unattended(code), functools.partial(begin_in_python, threads)):
        w.do(f"store i1 true, ptr {began}")
        with code.where(w.let(f"icmp eq i64 {_load(code, gate, USERS)}, 0")):
            before = _threads(code)
            w.do(f"store i64 {before}, ptr {_at(gate, BEFORE)}")
            with code.where(w.let(f"icmp ne i64 {before}, {threads}")):
                _set_threads(code, str(threads))
        _count(code, 1)
    return began


def end_after(code: PythonCode, began: str) -> None:
    w = code.w
    with code.where(w.let(f"load i1, ptr {began}"), end), code.where(_unattended(code), end_native):
        _count(code, -1)
        before = _load(code, gate, BEFORE)
        last = w.let(f"icmp eq i64 {_load(code, gate, USERS)}, 0")
        other = w.let(f"icmp ne i64 {_threads(code)}, {before}")
        with code.where(w.let(f"and i1 {last}, {other}")):
            _set_threads(code, before)


def _unattended(code: PythonCode) -> str:
    """Whether nobody is counting in Python, and no fork waits."""
    if setting() is None:
        return "false"
    both = code.w.let(f"or i64 {_load(code, gate, BUSY)}, {_load(code, steady.counts, FORKS)}")
    return code.w.let(f"icmp eq i64 {both}, 0")


def _count(code: PythonCode, change: int) -> None:
    for memory, k in ((gate, USERS), (steady.counts, NATIVE)):
        new = code.w.let(f"add i64 {_load(code, memory, k)}, {change}")
        code.w.do(f"store i64 {new}, ptr {_at(memory, k)}")


def _threads(code: PythonCode) -> str:
    return code.w.let(f"sext i32 {code.call_at('i32', _place(0))} to i64")


def _set_threads(code: PythonCode, number: str) -> None:
    code.call_at("void", _place(1), f"i32 {code.w.let(f'trunc i64 {number} to i32')}")


def _place(k: int) -> int:
    found = setting()
    place = None if found is None else ctypes.cast(found[k], ctypes.c_void_p).value
    return place or 0  # never called then


def _at(memory: Any, k: int) -> str:
    return f"inttoptr (i64 {ctypes.addressof(memory) + 8 * k} to ptr)"


def _load(code: PythonCode, memory: Any, k: int) -> str:
    return code.w.let(f"load i64, ptr {_at(memory, k)}")
