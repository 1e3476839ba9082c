"""Addresses of native routines that compiled code calls: BLAS, LAPACK and special functions out of SciPy.

`address` takes a name and gives a C function pointer, found the first time it is asked for: in the OpenBLAS that comes
with SciPy's wheels, or in SciPy's Cython modules, whose import takes longer than most compilations.
Names are those of BLAS and LAPACK (`dgemm`, `dgesv`) and `special_NAME` for scipy.special; `None` means the C library.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

SPECIAL = "special_"
FORTRAN = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")


@functools.cache
def _capsules(module: str) -> dict[str, Any]:
    capsules: dict[str, Any] = importlib.import_module(module).__pyx_capi__
    return capsules


@functools.cache
def openblas() -> tuple[Any, str] | None:
    """The library in SciPy's wheel and the prefix of its names, or None when SciPy was built with another BLAS."""
    spec = importlib.util.find_spec("scipy")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    folders = [package.parent / "scipy.libs", package / ".libs"]
    for path in [p for folder in folders if folder.is_dir() for p in sorted(folder.glob("*openblas*"))]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in ("scipy_", ""):
            if hasattr(library, f"{prefix}dgemm_"):  # 64-bit integers would have another name
                return library, prefix
    return None


@functools.cache
def scipy_build() -> str:
    """Tells one SciPy from another without importing it: code calls its routines, and its Python is compiled."""
    spec = importlib.util.find_spec("scipy")
    if spec is None or spec.origin is None:
        return ""
    try:
        return (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return spec.origin


def _pointer(capsule: object) -> int:
    api = ctypes.pythonapi
    name, get = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer: int = get(capsule, name(capsule))
    return pointer


def _signature(capsule: object) -> str:
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    text: bytes = name(capsule)
    return text.decode()


def is_fortran(name: str) -> bool:
    """Whether a routine is one of BLAS or LAPACK, which take the address of everything."""
    return not name.startswith(("rt_", SPECIAL)) and any(name in _capsules(module) for module in FORTRAN)


@functools.cache
def address(name: str) -> int | None:
    """The address of a routine, or None when it is not one of SciPy's."""
    if name.startswith(SPECIAL):
        return _special(name.removeprefix(SPECIAL))
    found = openblas()
    routine = getattr(found[0], f"{found[1]}{name}_", None) if found else None
    if routine is not None:
        return ctypes.cast(routine, ctypes.c_void_p).value
    for module in FORTRAN:
        if name in _capsules(module):
            return _pointer(_capsules(module)[name])
    return None


def _special(name: str) -> int:
    """The variant on doubles: functions of several types are there once for each, with a prefix."""
    capsules = _capsules("scipy.special.cython_special")
    for prefix in ("", "__pyx_fuse_1", "__pyx_fuse_0"):
        capsule = capsules.get(prefix + name)
        if capsule is not None and re.fullmatch(r"double \((double, )+int \w+\)", _signature(capsule)):
            return _pointer(capsule)
    raise KeyError(f"scipy.special.cython_special has no {name} on doubles")
