"""Runs the kernels of a program on a GPU through the driver alone, for the tests of the PTX back end."""

import ctypes
import functools

import numpy as np

from tapeless.backends.llvm.ptx import ptx
from tapeless.ir.types import Const, DType
from tapeless.lower.ir.loopir import Buffer, Let
from tapeless.lower.ir.walk import is_blocked
from tapeless.ops.table import TABLE
from tests.backends.native import CTYPE


@functools.cache
def driver():
    """The driver with a context on the first device, or None."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or cuda.cuCtxSetCurrent(context):
        return None
    return cuda


def available():
    return driver() is not None


def check(code):
    assert code == 0, f"CUDA error {code}"


class Memory:
    def __init__(self, array):
        self.array, self.pointer = array, ctypes.c_uint64()
        check(driver().cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(max(array.nbytes, 8))))
        check(
            driver().cuMemcpyHtoD_v2(self.pointer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        )

    def back(self):
        check(
            driver().cuMemcpyDtoH_v2(
                self.array.ctypes.data_as(ctypes.c_void_p), self.pointer, ctypes.c_size_t(self.array.nbytes)
            )
        )
        check(driver().cuMemFree_v2(self.pointer))


def host_scalars(program, values):
    """What the host computes before and between its launches: scalars of parameters."""
    known = {p: values[p.name] for p in program.params if not isinstance(p, Buffer)}
    for stm in program.body:
        if isinstance(stm, Let):
            args = [a.value if isinstance(a, Const) else known[a] for a in stm.args]
            typed = [a.type.dtype.numpy.type(x) for a, x in zip(stm.args, args)]
            known[stm.var] = TABLE[stm.op].numpy(*typed).item()
    return known


def run(program, values, block=128, arch="sm_80"):
    """Launches each kernel once, in order; arrays change in place. Gives the error's code and arguments."""
    cuda = driver()
    text, kernels = ptx(program, arch)
    module = ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), text.encode()))
    err = np.zeros(4, np.int64)
    memory = {name: Memory(value) for name, value in values.items() if isinstance(value, np.ndarray)}
    record = Memory(err)
    host = host_scalars(program, values)

    def scalar(atom):
        if isinstance(atom, Const):
            return atom.value
        return host[atom] if atom in host else values[atom.name]

    for kernel in kernels:
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel.name.encode()))
        lo, hi = (scalar(a) for a in (kernel.loop.lo, kernel.loop.hi))
        count = len(range(lo, hi, kernel.loop.step))
        args = []
        for p in kernel.params:
            if isinstance(p, Buffer):
                args.append(memory[p.name].pointer)
            elif p.type.dtype.is_complex:
                args += [CTYPE[p.type.dtype.real](part) for part in (scalar(p).real, scalar(p).imag)]
            else:
                args.append(CTYPE[p.type.dtype](scalar(p)))
        args += [CTYPE[DType.i64](lo), CTYPE[DType.i64](count), record.pointer]
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
        blocks = count if is_blocked(kernel.loop) else -(-count // block)
        check(cuda.cuLaunchKernel(function, blocks, 1, 1, block, 1, 1, 0, None, pointers, None))
    check(cuda.cuCtxSynchronize())
    for m in (*memory.values(), record):
        m.back()
    check(cuda.cuModuleUnload(module))
    return int(err[0]), err[1:]
