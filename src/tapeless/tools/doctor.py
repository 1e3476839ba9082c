"""`tapeless doctor`: what this machine offers, and whether compiling works on it.

`examine` gives one `Row` for each thing looked at; nothing in it raises. What the code needs is told apart from what
only makes it faster.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from rich.table import Table

from tapeless.api.function import default_threads, function
from tapeless.backends.cpu import libraries, threads
from tapeless.backends.cuda.driver import driver
from tapeless.backends.llvm import host
from tapeless.backends.llvm.ptx import libdevice
from tapeless.errors import DeviceError
from tapeless.runtime import cache
from tapeless.tools.report import duration, make_console
from tapeless.version import VERSION

OK, MISSING, FAILED = "ok", "missing", "failed"
PACKAGES = ("numpy", "scipy", "llvmlite", "rich")
DEFAULT_VECTOR = {"x86_64": 128, "aarch64": 128}


@dataclass(frozen=True)
class Row:
    """`state` is ok, missing (something is slower without it) or failed (nothing works without it)."""

    what: str
    found: str
    state: str
    meaning: str


def doctor() -> int:
    """Prints the table; the exit status."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "found", "", "what it means"):
        table.add_column(heading, overflow="fold")
    rows = list(examine())
    for row in rows:
        style = {OK: "green", MISSING: "yellow", FAILED: "red"}[row.state]
        table.add_row(row.what, row.found, f"[{style}]{row.state}[/]", row.meaning)
    make_console().print(table)
    return 1 if any(row.state == FAILED for row in rows) else 0


def examine() -> Iterator[Row]:
    yield Row("tapeless", VERSION, OK, "this compiler")
    enough = sys.version_info >= (3, 11)
    yield Row("python", platform.python_version(), OK if enough else FAILED, "3.11 or newer is needed")
    for name in PACKAGES:
        yield _guarded(name, _package(name))
    for what, look in CHECKS:
        yield _guarded(what, look)


def _guarded(what: str, look: Callable[[], Row]) -> Row:
    try:
        return look()
    except Exception as problem:  # the doctor reports, whatever is broken
        return Row(what, f"{type(problem).__name__}: {problem}", FAILED, "could not be examined")


def _package(name: str) -> Callable[[], Row]:
    return lambda: Row(name, importlib.metadata.version(name), OK, "needed")


def _cpu() -> Row:
    return Row("processor", f"{llvm.get_host_cpu_name()}, {platform.machine()}", OK, "code is made for this one")


def _vectors() -> Row:
    bits = host.host().vector_width or DEFAULT_VECTOR.get(platform.machine(), 0)
    if not bits:
        return Row("vectors", "unknown", MISSING, "loops may run one element at a time")
    return Row("vectors", f"{bits} bits", OK, f"{bits // 64} doubles at a time in vectorised loops")


def _libmvec() -> Row:
    lanes = max((lanes for _, lanes in host.variants("exp", 1)), default=0)
    if not lanes:
        return Row("libmvec", "not found", MISSING, "exp, log, sin and the like run one element at a time")
    return Row("libmvec", f"exp of {lanes} doubles", OK, "exp, log, sin and the like are vectorised")


def _threads() -> Row:
    given = os.environ.get("TAPELESS_THREADS")
    origin = "set by TAPELESS_THREADS" if given else "the processors this process may use"
    runtime = threads.runtime()
    served = "the pool is built in, OpenMP is not needed" if runtime == threads.POOL else f"OpenMP by {runtime}"
    return Row("threads", str(default_threads()), OK, f"{origin}; {served}")


def _fortran(what: str, routine: str, serves: str) -> Callable[[], Row]:
    def look() -> Row:
        if libraries.address(routine) is None:
            return Row(what, "not found", FAILED, f"{serves} cannot be compiled")
        return Row(what, "SciPy's", OK, f"{serves} call it from native code")

    return look


def _gpu() -> Row:
    try:
        found = driver()
    except DeviceError as problem:
        return Row("GPU", "none", MISSING, f"device='cuda' is not available: {problem.args[0]}")
    free, total = found.memory()
    kernels = (
        "functions like exp are libdevice's" if libdevice() else "without libdevice: no exp, sin and the like there"
    )
    return Row("GPU", f"{found.name}, {found.arch}", OK, f"{free >> 20} of {total >> 20} MiB free; {kernels}")


def _cache() -> Row:
    distrust = cache.distrust()
    if distrust is not None:
        return Row("cache", "not used", MISSING, f"every process compiles anew: {distrust}")
    where, size = cache.directory(), cache_text()
    near = where
    while not near.exists() and near != near.parent:
        near = near.parent
    if not os.access(near, os.W_OK):
        return Row("cache", f"{where}: {size}", MISSING, "not writable: every process compiles anew")
    return Row("cache", f"{where}: {size}", OK, "compiled code is kept there; `tapeless cache clear` empties it")


def cache_text() -> str:
    """How much there is in the cache."""
    found, left = cache.entries(), cache.leftovers()
    text = f"{len(found)} entries, {size_text(sum(e.size for e in found))}"
    unfinished = f" and {len(left)} unfinished, {size_text(sum(e.size for e in left))}" if left else ""
    return text + unfinished


def size_text(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _probe(x: Any, limit: float) -> Any:
    """A loop that ends early, array code and a call of the math library: a bit of everything."""
    s = 0.0
    for i in range(len(x)):
        if s > limit:
            break
        s += np.sqrt(x[i])
    return s + np.sum(np.exp(-x) * x)


def _self_test() -> Row:
    x = np.linspace(0.0, 2.0, 1001)
    compiled = function(_probe, cache=False)
    start = time.perf_counter()
    result = compiled(x, 500.0)
    middle = time.perf_counter()
    compiled(x, 500.0)
    end = time.perf_counter()
    if not np.isclose(result, _probe(x, 500.0), rtol=1e-12):
        return Row("self test", f"{result} is wrong", FAILED, "please report this with the table above")
    found = f"compiled in {duration(middle - start)}, runs in {duration(end - middle)}"
    return Row("self test", found, OK, "and agrees with Python")


CHECKS: tuple[tuple[str, Callable[[], Row]], ...] = (
    ("processor", _cpu),
    ("vectors", _vectors),
    ("libmvec", _libmvec),
    ("threads", _threads),
    ("BLAS", _fortran("BLAS", "dgemm", "matrix products")),
    ("LAPACK", _fortran("LAPACK", "dgetrf", "solve, inv, det and cholesky")),
    ("GPU", _gpu),
    ("cache", _cache),
    ("self test", _self_test),
)
