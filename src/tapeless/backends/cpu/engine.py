"""Loads compiled objects into the process.

`load` takes objects, the entry's name and the external names it needs, and gives the entry's address. `helpers` are
objects for external names that are made of LLVM IR: with them nothing needs to be compiled.

Note [Unloading]
Each object takes two or more mappings of memory, and a process may have 65530 of them; past that LLVM ends the process.
So code goes when nobody holds its address any more. What is left of it in its JIT are some 9 kB of names, so a JIT
serves for `SHARED` objects only, and goes with the last of them. Addresses die wherever Python collects garbage,
perhaps in a process that was forked while another thread was inside LLVM: what is behind them is unloaded when the next
object is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.cpu import buffers, interrupts, libraries, mappings, printing, products, threads
from tapeless.backends.llvm import host
from tapeless.backends.llvm.uninterrupted import uninterrupted
from tapeless.ops import callbacks

_lock = threading.Lock()
_numbers = itertools.count()
_unused: list[Any] = []  # trackers of code that nobody holds: Note [Unloading]
SHARED = 16  # objects in a JIT; making one takes as long as loading three
MANY = 128  # objects whose memory is worth giving back to the system
_jit: Any = None
_room = 0  # objects that it still takes
_guards: dict[str, int] = {}  # addresses of products that are loaded
NONE: Mapping[str, bytes] = {}
NOWHERE: Mapping[str, int] = {}

VECTOR = "_ZGV"  # names of libmvec
PLAIN = "plain_"  # before a name of BLAS: Note [Tiny factors] in products.py


class _Code:
    def __init__(self, tracker: Any) -> None:
        self.tracker = tracker

    def __del__(self, unused: list[Any] = _unused) -> None:
        unused.append(self.tracker)


class Address(int):
    """Of a function; its code stays loaded as long as somebody holds this."""

    code: _Code

    def __new__(cls, value: int, code: _Code) -> Address:
        self = super().__new__(cls, value)
        self.code = code
        return self


@functools.cache
def _start() -> None:
    host.initialize()
    with contextlib.suppress(OSError):  # the process may have it out of sight
        ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)


def _unload() -> None:
    many = len(_unused) >= MANY
    _unused.clear()
    if many:
        with contextlib.suppress(AttributeError):  # of glibc, which keeps what is freed for itself else
            ctypes.CDLL(None).malloc_trim(0)


def _engine() -> Any:
    """A JIT that takes another object. An earlier one lives as long as trackers of its objects."""
    global _jit, _room
    if not _room:
        _jit, _room = host.jit(), SHARED
    _room -= 1
    return _jit


def load(objects: Sequence[bytes], name: str, externals: tuple[str, ...], helpers: Mapping[str, bytes] = NONE) -> int:
    """The address of `name` in objects that belong together."""
    return load_all(objects, (name,), externals, helpers)[name]


@uninterrupted
def load_all(
    objects: Sequence[bytes],
    names: tuple[str, ...],
    externals: tuple[str, ...],
    helpers: Mapping[str, bytes] = NONE,
    addresses: Mapping[str, int] = NOWHERE,
) -> dict[str, int]:
    """`addresses`: of external names that are known already."""
    _start()
    builder = llvm.JITLibraryBuilder().add_current_process()
    for data in objects:
        builder.add_object_img(data)
    for name in names:
        builder.export_symbol(name)
    for external in sorted(externals, key=lambda name: name not in helpers):  # others may need those with objects
        found = addresses.get(external) or resolve(external, helpers.get(external))
        if found is not None:
            builder.import_symbol(external, found)
    with _lock:
        mappings.make_room(_unload)
        tracker = builder.link(_engine(), f"tapeless.{next(_numbers)}")
    code = _Code(tracker)
    return {name: Address(tracker[name], code) for name in names}


def resolve(name: str, helper: bytes | None = None) -> int | None:
    """The address of an external name; None when the process itself has it."""
    if name == "rt_parallel":
        return threads.address()
    if name in buffers.EXPORTED:
        return buffers.address(name)
    if name in interrupts.EXPORTED:
        return interrupts.address(name, helper)
    if name == "rt_print":
        return printing.address()
    python = callbacks.named(name)
    if python is not None:
        return python[0].address(python[1])
    if name.startswith(VECTOR):
        host.variants("exp", 1)  # loads libmvec
        return None
    if products.is_guarded(name):
        return _guarded(name, helper)
    if name.startswith(PLAIN):
        return libraries.address(name.removeprefix(PLAIN))
    return libraries.address(name) if _from_scipy(name) else None


def _guarded(name: str, helper: bytes | None) -> int:
    if name not in _guards:
        _guards[name] = load((helper or products.guarded(name),), f"guarded_{name}", (f"{PLAIN}{name}",))
    return _guards[name]


def _from_scipy(name: str) -> bool:
    """Asks the process first, so that the C library's names do not import SciPy's modules."""
    return name.startswith(libraries.SPECIAL) or not llvm.address_of_symbol(name)
