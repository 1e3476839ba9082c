"""Runs Loop IR programs through ctypes, for the tests of the CPU back end."""

import ctypes
from dataclasses import dataclass

import numpy as np

from tapeless.backends.cpu.compile import Native, compile_program
from tapeless.ir.types import I64, SCALAR, Const, DType, Var, i64
from tapeless.lower.ir.loopir import RECORDS, Buffer, Let, Program, Space

CTYPE = {DType.bool: ctypes.c_int8, DType.f32: ctypes.c_float, DType.f64: ctypes.c_double} | {
    d: getattr(ctypes, f"c_{d.numpy.name}") for d in DType if d.is_int
}


def var(name, dtype=DType.i64):
    return Var(name, SCALAR[dtype])


def param(name, dtype=DType.f64, written=True):
    return Buffer(name, dtype, Space.param, written=written)


def let(name, op, *args, dtype=None, **flags):
    return Let(Var(name, SCALAR[dtype or args[-1].type.dtype]), op, args, **flags)


def program(params, body, scalars=(), given=(), name="f", threads=None, **more):
    return Program(
        name, tuple(params), threads or Var("threads", I64), tuple(scalars), tuple(given), tuple(body), **more
    )


@dataclass
class Outcome:
    native: Native
    scalars: list
    given: list
    code: int
    args: tuple


def prepare(prog):
    native = compile_program(prog)
    types = []
    for p in prog.params:
        if isinstance(p, Buffer):
            types.append(ctypes.c_void_p)
        else:
            d = p.type.dtype
            types += [CTYPE[d.real]] * (2 if d.is_complex else 1)
    types += [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    return native, ctypes.CFUNCTYPE(None, *types)(native.address)


def call(prog, native, function, *args, threads=1):
    values = []
    for p, a in zip(prog.params, args, strict=True):
        if isinstance(p, Buffer):
            assert a.dtype == p.dtype.numpy and a.flags.c_contiguous
            values.append(a.ctypes.data)
        elif p.type.dtype.is_complex:
            values += [complex(a).real, complex(a).imag]
        else:
            values.append(a.item() if isinstance(a, np.generic) else a)
    results, err = np.zeros(64, np.int64), np.zeros(RECORDS, np.int64)
    function(*values, threads, results.ctypes.data, err.ctypes.data)
    scalars, slot = [], 0
    for d in prog.scalar_results:
        if d.is_complex:
            parts = [results[slot + k : slot + k + 1].view(d.real.numpy)[0] for k in (0, 1)]
            scalars.append(d.numpy.type(complex(*parts)))
            slot += 2
        else:
            scalars.append(results[slot : slot + 1].view(d.numpy)[0])
            slot += 1
    given = [int(results[slot + k]) for k in range(len(prog.given_results))]
    return Outcome(native, scalars, given, int(err[0]), tuple(err[1:]))


def run(prog, *args, threads=1):
    return call(prog, *prepare(prog), *args, threads=threads)


__all__ = ["Const", "DType", "call", "i64", "let", "param", "prepare", "program", "run", "var"]
