"""The short way into native code: a Python function written for one specialisation, with nothing left to decide in a
call.

`fast_call` takes a `Caller` and `again`, which finds the specialisation anew; gives a function of the argument tuple.
Arguments are Python numbers and arrays of the types, ranks and flags of the specialisation. Whatever needs more care
goes the general way: arrays that are not plain, captured arrays, budgets.

Note [Sizes that fit]
A specialisation serves all sizes that are 1 where its own are, and equal where it takes them to be equal. The function
tests that first and gives `MISFIT` where it is not so: then another specialisation has to be found. So there is one
function for each specialisation, whatever lengths come.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tapeless.backends.cpu import interrupts
from tapeless.errors import WARNINGS
from tapeless.frontend.entry import ONE, ArraySpec, ScalarSpec
from tapeless.frontend.returned import Argument, Chosen, Known, Leaf, Output, Tree, View
from tapeless.ir.types import LARGEST_SIZE, DType
from tapeless.lower.ir.loopir import CHECK_RECORD, RECORDS
from tapeless.runtime import blas
from tapeless.runtime.calling import Caller, error_of, warn
from tapeless.runtime.native_entry import MISFIT
from tapeless.runtime.results import LARGE_RESULT, empty

FEW = 4  # arrays that are compared one by one


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


def fast_call(caller: Caller, plain: bool, again: Callable[[tuple[Any, ...]], Any]) -> Callable[[tuple[Any, ...]], Any]:
    """`plain`: arrays are contiguous, aligned, writeable and of the machine's byte order."""
    env: dict[str, Any] = {"general": caller, "again": again, "MISFIT": MISFIT}
    names = [f"a{k}" for k in range(len(caller.specs))]
    lines = ["def fast(args):"]
    if names:
        lines.append(f"    {', '.join(names)}, = args")
    in_a_row = (
        plain or caller.compiled.device is not None
    )  # where arrays of PyTorch may come, of which `size` is a method
    lines += _same_arrays(caller.specs) + _sizes_fit(caller.specs, in_a_row)
    rest = _native_call(caller, env) if plain else None
    lines += ["    return general(args)"] if rest is None else rest
    exec(compile("\n".join(lines), "<tapeless call>", "exec"), env)
    function: Callable[[tuple[Any, ...]], Any] = env["fast"]
    return function


def _same_arrays(specs: Sequence[Any]) -> list[str]:
    """Arguments that are one array, and those that are not, must be what they were."""
    arrays = {k: spec.same_as for k, spec in enumerate(specs) if isinstance(spec, ArraySpec)}
    tests = [f"a{k} is not a{same}" for k, same in arrays.items() if same >= 0]
    different = [k for k, same in arrays.items() if same < 0]
    if len(different) <= FEW:
        tests += [f"a{j} is a{k}" for j, k in combinations(different, 2)]
    else:
        tests.append(f"len({{{', '.join(f'id(a{k})' for k in different)}}}) != {len(different)}")
    return [f"    if {' or '.join(tests)}:", "        return MISFIT"] if tests else []


def _sizes_fit(specs: Sequence[Any], in_a_row: bool) -> list[str]:
    """Note [Sizes that fit]. `l2`, `l3`... are the sizes by their labels."""
    known: set[int] = set()
    lines: list[str] = []
    for k, spec in enumerate(specs):
        if not isinstance(spec, ArraySpec) or not spec.labels:
            continue
        sides, tests = [], []
        for axis, label in enumerate(spec.labels):
            if label == ONE:
                sides.append(f"o{axis}")
                tests.append(f"o{axis} != 1")
            elif label in known:
                sides.append(f"s{axis}")
                tests.append(f"s{axis} != l{label}")
            else:
                known.add(label)
                sides.append(f"l{label}")
                tests.append(f"l{label} == 1")
                if len(spec.labels) > 1 or not in_a_row:  # without elements, or all of them in one place
                    tests.append(f"l{label} > {LARGEST_SIZE}")
        if not in_a_row:
            tests.append(f"a{k}.size > {LARGEST_SIZE}")
        lines.append(f"    {', '.join(sides)}, = a{k}.shape")
        lines.append(f"    if {' or '.join(tests)}:")
        lines.append("        return MISFIT")
    return lines


def _native_call(caller: Caller, env: dict[str, Any]) -> list[str] | None:
    """What is left to do; None where that takes more care."""
    binary = caller.compiled.binary
    if (
        caller.captured
        or caller.budget is not None
        or any(not is_array and dtype.is_complex for is_array, dtype in caller.params)
    ):
        return None
    slots = max(1, caller.given_at)
    env |= {
        "addressof": ctypes.addressof,
        "from_buffer": ctypes.c_char.from_buffer,
        "empty": np.empty,
        "large": empty,
        "native": caller.native,
        "threads": caller.threads,
        "pool": deque(),
        "Frame": Frame,
        "interruption": interrupts.raised,
        "error_of": error_of,
        "warn": warn,
        "sites": binary.sites,
    }
    result = _expression(caller, caller.compiled.signature.output, env)
    if result is None:
        return None
    arrays = [k for k, position in enumerate(caller.positions) if caller.params[k][0]]
    lines: list[str] = []
    sizes = []
    signature = caller.compiled.signature
    for size in signature.sizes:
        k, axis = next((k, p.type.shape.index(size)) for k, p in enumerate(signature.params) if size in p.type.shape)
        sizes.append(f"l{caller.specs[caller.positions[k]].labels[axis]}")
    lines.append("    try:")
    lines += [f"        p{k} = addressof(from_buffer(a{caller.positions[k]}))" for k in arrays]
    for number, (_, (dtype, _, shape, _, _)) in enumerate(caller.provided):
        env[f"d{number}"] = dtype.numpy
        sides = [str(d) if isinstance(d, int) else sizes[d.k] for d in shape]
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
            lines.append(f"    if not {-(2**63)} <= {_number(caller, k)} <= {2**63 - 1}:")
            lines.append("        return general(args)")
    for k, j in sorted(caller.clashes):  # arrays that share memory: another specialisation, or refused
        if j != k:
            a, b = caller.positions[k], caller.positions[j]
            lines.append(f"    if p{k} < p{j} + a{b}.nbytes and p{j} < p{k} + a{a}.nbytes:")
            lines.append("        return again(args)")
    values = [f"p{k}" if is_array else _number(caller, k) for k, (is_array, _) in enumerate(caller.params)]
    passed = [*sizes, *values, *(f"q{n}" for n in range(len(caller.provided)))]
    call = f"native({', '.join([*passed, 'threads', 'frame.results_at', 'frame.error_at'])})"
    if caller.blas_threads:
        env |= {"begin": blas.begin, "end": blas.end, "blas_threads": caller.blas_threads}
        lines += ["    begin(blas_threads)", "    try:", f"        {call}", "    finally:", "        end()"]
    else:
        lines.append(f"    {call}")
    lines.append("    if frame.error[0]:")
    lines.append("        raise interruption(frame.error) or error_of(frame.error, sites)")
    if any(site.error in WARNINGS for site in binary.sites):
        lines.append(f"    if frame.error[{CHECK_RECORD}]:")
        lines.append("        warn(frame.error, sites)")
    lines.append(f"    value = {result}")
    lines.append("    pool.append(frame)")
    lines.append("    return value")
    return lines


def _number(caller: Caller, k: int) -> str:
    """A parameter that is a number; it may come as an array without axes."""
    position = caller.positions[k]
    spec = caller.specs[position]
    return f"a{position}" if isinstance(spec, ScalarSpec) and spec.weak else f"a{position}.item()"


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
        case Chosen(k=k, positions=positions, otherwise=leaf):
            new = _expression(caller, leaf, env)
            if new is None:
                return None
            number = _read(DType.i64, caller.offsets[binary.scalar_slots[k]])
            found = [f"a{position} if {number} == {n} else " for n, position in positions]
            return f"({''.join(found)}{new})"
        case View(position=position):
            name = f"view_{len(env)}"
            env[name] = caller.view(output)
            return f"{name}(a{position}, frame.ints)"
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
