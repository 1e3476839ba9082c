"""The short way into native code: a Python function written for one specialisation, with nothing left to decide in a
call.

`fast_call` takes a `Caller` and `again`, which finds the specialisation anew; gives a function of the argument tuple,
or None when the results need more care. It is only
used for plain arguments: Python numbers, and arrays that are contiguous, aligned, writeable and of the machine's byte
order. Whatever it does not expect it hands to the general way.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.errors import WARNINGS
from tapeless.frontend.entry import Argument, Known, Leaf, Output, Tree
from tapeless.ir.types import DType
from tapeless.lower.loopir import CHECK_RECORD, RECORDS
from tapeless.runtime.calling import Caller, error_of, warn
from tapeless.runtime.results import LARGE_RESULT, empty

PLAIN = 0x0001 | 0x0100 | 0x0400  # NumPy's flags: C-contiguous, aligned, writeable


class Frame:
    """Memory for the results and the error of one call, seen as each type."""

    __slots__ = ("doubles", "error", "error_at", "floats", "ints", "memory", "narrow", "results_at")

    def __init__(self, slots: int) -> None:
        self.memory = (ctypes.c_int64 * (slots + RECORDS))()
        self.error = self.memory  # the first ones
        self.error_at = ctypes.addressof(self.memory)
        start = 8 * RECORDS
        self.results_at = self.error_at + start
        self.ints = (ctypes.c_int64 * slots).from_buffer(self.memory, start)
        self.doubles = (ctypes.c_double * slots).from_buffer(self.memory, start)
        self.floats = (ctypes.c_float * (2 * slots)).from_buffer(self.memory, start)
        self.narrow = (ctypes.c_int32 * (2 * slots)).from_buffer(self.memory, start)


def fast_call(caller: Caller, again: Callable[[tuple[Any, ...]], Any]) -> Callable[[tuple[Any, ...]], Any] | None:
    binary = caller.compiled.binary
    if (
        caller.captured
        or caller.budget is not None
        or caller.blas_threads
        or any(not is_array and dtype.is_complex for is_array, dtype in caller.params)
    ):
        return None
    slots = max(1, caller.given_at)
    env: dict[str, Any] = {
        "addressof": ctypes.addressof,
        "from_buffer": ctypes.c_char.from_buffer,
        "empty": np.empty,
        "large": empty,
        "native": caller.native,
        "general": caller,
        "again": again,
        "threads": caller.threads,
        "pool": deque(),
        "Frame": Frame,
        "error_of": error_of,
        "warn": warn,
        "sites": binary.sites,
    }
    result = _expression(caller, caller.compiled.signature.output, env)
    if result is None:
        return None
    count = len(caller.specs)
    names = [f"a{k}" for k in range(count)]
    arrays = [k for k, position in enumerate(caller.positions) if caller.params[k][0]]
    lines = ["def fast(args):"]
    if names:
        lines.append(f"    {', '.join(names)}, = args")
    sizes = []
    signature = caller.compiled.signature
    for number, size in enumerate(signature.sizes):
        k, axis = next((k, p.type.shape.index(size)) for k, p in enumerate(signature.params) if size in p.type.shape)
        lines.append(f"    n{number} = a{caller.positions[k]}.shape[{axis}]")
        sizes.append(f"n{number}")
    lines.append("    try:")
    lines += [f"        p{k} = addressof(from_buffer(a{caller.positions[k]}))" for k in arrays]
    for number, (_, (dtype, _, shape, _, _)) in enumerate(caller.provided):
        env[f"d{number}"] = dtype.numpy
        sides = [str(d) if isinstance(d, int) else f"n{d.k}" for d in shape]
        dims = "".join(f"{side}, " for side in sides)
        bytes = " * ".join([*sides, str(dtype.bytes)])
        make = f"empty if {bytes} < {LARGE_RESULT} else large"  # Note [Large results]
        lines.append(f"        r{number} = ({make})(({dims}), d{number})")
        lines.append(f"        q{number} = addressof(from_buffer(r{number}))")
    lines.append("        frame = pool.pop()")
    lines.append("    except IndexError:")
    lines.append(f"        frame = Frame({slots})")
    lines.append("    except (TypeError, ValueError, BufferError):")
    lines.append("        return general(args)")
    for k, (is_array, dtype) in enumerate(caller.params):
        if not is_array and dtype is DType.i64:  # C would take the lowest 64 bits
            lines.append(f"    if not {-(2**63)} <= a{caller.positions[k]} <= {2**63 - 1}:")
            lines.append("        return general(args)")
    for k in caller.written:  # arrays that share memory: another specialisation, or refused
        for j in arrays:
            if j != k:
                a, b = caller.positions[k], caller.positions[j]
                lines.append(f"    if p{k} < p{j} + a{b}.nbytes and p{j} < p{k} + a{a}.nbytes:")
                lines.append("        return again(args)")
    values = [f"p{k}" if is_array else f"a{caller.positions[k]}" for k, (is_array, _) in enumerate(caller.params)]
    passed = [*sizes, *values, *(f"q{n}" for n in range(len(caller.provided)))]
    lines.append(f"    native({', '.join([*passed, 'threads', 'frame.results_at', 'frame.error_at'])})")
    lines.append("    if frame.error[0]:")
    lines.append("        raise error_of(frame.error, sites)")
    if any(site.error in WARNINGS for site in binary.sites):
        lines.append(f"    if frame.error[{CHECK_RECORD}]:")
        lines.append("        warn(frame.error, sites)")
    lines.append(f"    value = {result}")
    lines.append("    pool.append(frame)")
    lines.append("    return value")
    exec(compile("\n".join(lines), "<tapeless call>", "exec"), env)
    function: Callable[[tuple[Any, ...]], Any] = env["fast"]
    return function


def _expression(caller: Caller, output: Output, env: dict[str, Any]) -> str | None:
    """The result as Python text; None for results that only the general way puts together."""
    binary = caller.compiled.binary
    match output:
        case Leaf(k=k, python=python) if k in binary.scalar_slots:
            slot = binary.scalar_slots[k]
            dtype, at = binary.scalar_results[slot], caller.offsets[slot]
            read = _read(dtype, at)
            if read is None or python:
                return read
            env[f"kind_{dtype.value}"] = dtype.numpy.type
            return f"kind_{dtype.value}({read})"
        case Leaf(k=k) if binary.array_results[k][1]:
            return f"r{[p for p, _ in caller.provided].index(k)}"
        case Argument(position=position):
            return f"a{position}"
        case Known(value=None):
            return "None"
        case Tree(kind="tuple", items=items):
            parts = [_expression(caller, item, env) for item in items]
            if any(p is None for p in parts):
                return None
            return f"({''.join(f'{p}, ' for p in parts)})"
    return None


def _read(dtype: DType, at: int) -> str | None:
    match dtype:
        case DType.f64:
            return f"frame.doubles[{at}]"
        case DType.i64:
            return f"frame.ints[{at}]"
        case DType.f32:
            return f"frame.floats[{2 * at}]"
        case DType.i32:
            return f"frame.narrow[{2 * at}]"
        case DType.bool:
            return f"bool(frame.ints[{at}] & 1)"
    return None
