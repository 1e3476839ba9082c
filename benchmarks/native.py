"""C references: built by gcc at benchmark time and called through ctypes.

`load` takes the stem of a file in `c/` and gives its shared library, kept in the temporary directory by the hash of
source, flags, compiler and CPU. Relies on gcc with OpenMP.
"""

import ctypes
import hashlib
import os
import platform
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent / "c"

# -fno-math-errno changes no result; without it gcc cannot vectorise sqrt.
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-std=gnu11", "-shared", "-fPIC")
FAST_FLAGS = (*FLAGS, "-ffast-math")


@cache
def compiler_version() -> str:
    """First line of `gcc --version`."""
    text = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
    return text.splitlines()[0]


@cache
def cpu_model() -> str:
    """The CPU's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


@cache
def load(stem: str, *, fast: bool = False) -> ctypes.CDLL:
    """The library of `c/<stem>.c`, built if it is not there yet."""
    source = SOURCES / f"{stem}.c"
    flags = FAST_FLAGS if fast else FLAGS
    key = "\0".join((source.read_text(), *flags, compiler_version(), cpu_model()))
    folder = Path(tempfile.gettempdir()) / f"tapeless-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"{stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", *flags, str(source), "-o", str(partial), "-lm"], check=True)
        partial.replace(library)
    return ctypes.CDLL(str(library))
