"""cuBLAS and cuSOLVER: where they are, and which of their routines are called.

`address` and `handle` find them in the wheels that CuPy and PyTorch bring, or in a CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import site
from typing import Any

from tapeless.errors import DeviceError
from tapeless.lower.ir.loopir import DEVICE_ROUTINES

# What each operand is: a number for a letter, an i32, an i64 (wide), a scalar by its address, or memory of the device.
OPERANDS = {
    "gemm": "lliiisaiaisai",
    "gemm_batched": "lliiisaiwaiwsaiwi",
    "syrk": "lliisaisai",
    "trsm": "lllliisaiai",
    "getrf": "iiaia",
    "getrs": "liiaiaai",
    "potrf": "liai",
}
assert OPERANDS.keys() == DEVICE_ROUTINES
PRODUCTS = {"gemm": "gemm_v2", "gemm_batched": "gemmStridedBatched", "syrk": "syrk_v2", "trsm": "trsm_v2"}  # in cuBLAS
LIBRARIES = {"cublas": "libcublas.so.*", "cusolver": "libcusolver.so.*"}


# -- where they are


@functools.cache
def library(name: str) -> Any:
    roots = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [os.path.join(root, "lib64") for root in roots if root]
    for packages in [*site.getsitepackages(), site.getusersitepackages()]:
        folders += sorted(glob.glob(os.path.join(packages, "nvidia", "*", "lib")))
    for path in (path for folder in folders for path in sorted(glob.glob(os.path.join(folder, LIBRARIES[name])))):
        try:
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    raise DeviceError(f"{name} was not found: install CuPy or PyTorch for this GPU, or set CUDA_HOME to a CUDA toolkit")


@functools.cache
def handle(name: str) -> int:
    """Of this process and its context."""
    found = ctypes.c_void_p()
    create = library(name).cublasCreate_v2 if name == "cublas" else library(name).cusolverDnCreate
    code = create(ctypes.byref(found))
    if code or found.value is None:
        raise DeviceError(f"{name} does not start on this GPU (code {code})")
    return found.value


def address(symbol: str) -> int:
    name = "cublas" if symbol.startswith("cublas") else "cusolver"
    found = ctypes.cast(getattr(library(name), symbol), ctypes.c_void_p).value
    assert found is not None
    return found
