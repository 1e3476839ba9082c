"""The shortest way into native code: a function of Python that is machine code itself.

`native_entry` takes a `Caller` and gives a function of the arguments, or None where that takes more care than it does:
containers, captured arrays, budgets, complex numbers, bars of progress, results that are views. The function looks at the arguments'
types, sizes and places, calls the specialisation without the interpreter's lock, and puts the result together. Where
the arguments are not those of the specialisation it gives `MISFIT`, and the caller looks further.

It is written by hand, instruction by instruction, and takes some milliseconds to compile. So only functions that are
called often get one (`api/function.py`). Addresses of objects and functions stand in the code: it is not kept on disk.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tapeless.backends.cpu import engine, interrupts
from tapeless.backends.cpu.python_objects import (
    AXES,
    DATA,
    DTYPE,
    FLAGS,
    NUMBER,
    SIDES,
    TYPE,
    function_at,
    usable,
)
from tapeless.backends.llvm import optimize
from tapeless.backends.llvm.writer import MEMORY
from tapeless.errors import WARNINGS
from tapeless.frontend.entry import ONE, ArraySpec, ScalarSpec
from tapeless.frontend.returned import Argument, Chosen, Known, Leaf, Output, Tree
from tapeless.ir.types import LARGEST_SIZE, DType
from tapeless.lower.ir.loopir import CHECK_RECORD, RECORDS
from tapeless.runtime import native_blas
from tapeless.runtime.calling import Caller, error_of, warn
from tapeless.runtime.python_code import PythonCode
from tapeless.runtime.results import LARGE_RESULT

MISFIT: Any = object()
PLAIN = 0x0001 | 0x0100 | 0x0400  # NumPy's flags: C-contiguous, aligned, writeable
NAME = "tapeless_entry"
OF_PYTHON: dict[DType, type] = {DType.f64: float, DType.i64: int, DType.bool: bool}
MACHINE = {dtype: kind for dtype, kind in MEMORY.items() if not dtype.is_complex}


class Unfit(Exception):
    """A specialisation that has no such entry."""


def native_entry(caller: Caller) -> Callable[..., Any] | None:
    if (
        not usable()
        or caller.compiled.device is not None
        or caller.captured
        or caller.budget is not None
        or caller.compiled.binary.progress
        or caller.compiled.binary.callbacks
    ):
        return None
    try:
        entry = _Entry(caller)
    except Unfit:
        return None
    module = optimize.parse(entry.text())
    place = engine.load((optimize.to_object(module, 0),), NAME, ())
    return function_at(place, "tapeless_call", (place, caller, entry.kept))


class _Entry(PythonCode):
    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self.caller, self.binary = caller, caller.compiled.binary
        self.arguments = [f"%a{k}" for k in range(len(caller.specs))]
        self.labels: dict[int, str] = {}  # sizes, by their labels
        self.data: dict[int, str] = {}  # of array arguments
        self.bytes: dict[int, str] = {}  # of array arguments
        self.out = self.w.alloca("ptr", "out")
        self.arrays = [self.w.alloca("ptr", "array") for _ in caller.provided]
        self.record = self.w.alloca(f"[{RECORDS} x i64]", "record")
        self.results = self.w.alloca(f"[{max(1, caller.given_at)} x i64]", "results")
        self._write()

    def text(self) -> str:
        self.module.add(f"@{NAME}", f"ptr @{NAME}(ptr %self, ptr %arguments, i64 %given) nounwind", self.w.body())
        return self.module.assembled([f.text() for f in self.module.functions], ())

    def _write(self) -> None:
        w = self.w
        w.open("start")
        w.do(f"store ptr null, ptr {self.out}")
        for array in self.arrays:
            w.do(f"store ptr null, ptr {array}")
        self.need(w.let(f"icmp eq i64 %given, {len(self.arguments)}"))
        for k, name in enumerate(self.arguments):
            w.do(f"{name} = load ptr, ptr {w.slot('%arguments', k)}")
        if self.caller.compiled.signature.watches:
            unchanged = self.checked(self.call_object(self.caller.unchanged))
            self.dropped(unchanged)
            self.need(self.same(unchanged, self.object_at(True)))
        for k, spec in enumerate(self.caller.specs):
            self._fits(k, spec)
        self._same_arrays()
        values = [self._value(k) for k in range(len(self.caller.params))]
        self._apart()
        sizes = self._sizes()
        values += [f"ptr {self._new_array(k, sizes)}" for k in range(len(self.arrays))]
        self._native([*(f"i64 {s}" for s in sizes), *values])
        result = self._result(self.caller.compiled.signature.output)
        w.do(f"store ptr {result}, ptr {self.out}")
        w.jump("leave")
        w.open("misfit")
        w.do(f"store ptr {self.held(self.object_at(MISFIT))}, ptr {self.out}")
        w.jump("leave")
        w.open("failed")
        self.dropped(w.let(f"load ptr, ptr {self.out}"))
        w.do(f"store ptr null, ptr {self.out}")
        w.jump("leave")
        w.open("leave")
        for array in self.arrays:
            self.dropped(w.let(f"load ptr, ptr {array}"))
        w.do(f"ret ptr {w.let(f'load ptr, ptr {self.out}')}")

    # -- arguments

    def _fits(self, k: int, spec: Any) -> None:
        """The type of an argument, and sizes: Note [Sizes that fit] in `fastcall.py`."""
        w, a = self.w, self.arguments[k]
        match spec:
            case ScalarSpec(dtype=dtype, weak=weak) if dtype in MACHINE and (not weak or dtype in OF_PYTHON):
                cls = OF_PYTHON[dtype] if weak else dtype.numpy.type
                self.need(self.same(self.field(a, TYPE, "ptr"), self.object_at(cls)))
                return
            case ArraySpec(dtype=dtype, labels=labels, writeable=True, ordered=True):
                pass
            case _:
                raise Unfit
        self.need(self.same(self.field(a, TYPE, "ptr"), self.object_at(np.ndarray)))
        self.need(self.same(self.field(a, DTYPE, "ptr"), self.object_at(dtype.numpy)))
        self.need(w.let(f"icmp eq i32 {self.field(a, AXES, 'i32')}, {len(labels)}"))
        flags = w.let(f"and i32 {self.field(a, FLAGS, 'i32')}, {PLAIN}")
        self.need(w.let(f"icmp eq i32 {flags}, {PLAIN}"))
        self.data[k] = self.field(a, DATA, "ptr")
        sides = self.field(a, SIDES, "ptr") if labels else ""
        size = str(dtype.bytes)
        for axis, label in enumerate(labels):
            side = w.let(f"load i64, ptr {w.slot(sides, axis)}")
            if label == ONE:
                self.need(w.let(f"icmp eq i64 {side}, 1"))
            elif label in self.labels:
                self.need(w.let(f"icmp eq i64 {side}, {self.labels[label]}"))
            else:
                self.labels[label] = side
                self.need(w.let(f"icmp ne i64 {side}, 1"))
                if len(labels) > 1:  # without elements
                    self.need(w.let(f"icmp sle i64 {side}, {LARGEST_SIZE}"))
            size = w.let(f"mul i64 {size}, {side}")
        self.bytes[k] = size

    def _same_arrays(self) -> None:
        arrays = {k: spec.same_as for k, spec in enumerate(self.caller.specs) if isinstance(spec, ArraySpec)}
        for k, same in arrays.items():
            if same >= 0:
                self.need(self.same(self.arguments[k], self.arguments[same]))
        for j, k in combinations([k for k, same in arrays.items() if same < 0], 2):
            self.need(self.w.let(f"icmp ne ptr {self.arguments[j]}, {self.arguments[k]}"))

    def _apart(self) -> None:
        """Arrays that share memory: another specialisation, or refused."""
        w, positions = self.w, self.caller.positions
        for pair in sorted(self.caller.clashes):
            a, b = (positions[k] for k in pair)
            if a == b:
                continue
            starts = [w.let(f"ptrtoint ptr {self.data[k]} to i64") for k in (a, b)]
            ends = [w.let(f"add i64 {start}, {self.bytes[k]}") for start, k in zip(starts, (a, b), strict=True)]
            before = w.let(f"icmp ule i64 {ends[0]}, {starts[1]}")
            behind = w.let(f"icmp ule i64 {ends[1]}, {starts[0]}")
            self.need(w.let(f"or i1 {before}, {behind}"))

    def _value(self, k: int) -> str:
        """A parameter of the native function."""
        w, position = self.w, self.caller.positions[k]
        is_array, dtype = self.caller.params[k]
        spec, a = self.caller.specs[position], self.arguments[position]
        if is_array:
            return f"ptr {self.data[position]}"
        if dtype is not spec.dtype or dtype not in MACHINE:
            raise Unfit
        kind = MACHINE[dtype]
        if isinstance(spec, ArraySpec):
            return f"{kind} {w.let(f'load {kind}, ptr {self.data[position]}')}"
        if spec.weak and dtype is DType.bool:
            return f"i8 {w.let(f'zext i1 {self.same(a, self.object_at(True))} to i8')}"
        if spec.weak and dtype is DType.i64:
            return f"i64 {self._integer(a)}"
        return f"{kind} {self.field(a, NUMBER, kind)}"

    def _integer(self, a: str) -> str:
        """One of more than 64 bits goes the general way."""
        far = self.w.alloca("i32", "far")
        value = self.call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {a}", f"ptr {far}")
        self.need(self.w.let(f"icmp eq i32 {self.w.let(f'load i32, ptr {far}')}, 0"))
        return value

    def _sizes(self) -> list[str]:
        found = []
        signature = self.caller.compiled.signature
        for size in signature.sizes:
            k, axis = next(
                (k, p.type.shape.index(size)) for k, p in enumerate(signature.params) if size in p.type.shape
            )
            found.append(self.labels[self.caller.specs[self.caller.positions[k]].labels[axis]])
        return found

    # -- the call

    def _new_array(self, number: int, sizes: list[str]) -> str:
        """For a result; the address of its elements. Large ones go the other way (Note [Large results])."""
        w, (dtype, _, shape, _, _) = self.w, self.caller.provided[number][1]
        sides = w.alloca(f"[{max(1, len(shape))} x i64]", "sides")
        size = f"{float(dtype.bytes)}"
        for axis, d in enumerate(shape):
            side = str(d) if isinstance(d, int) else sizes[d.k]
            w.do(f"store i64 {side}, ptr {w.slot(sides, axis)}")
            size = w.let(f"fmul double {size}, {w.let(f'sitofp i64 {side} to double')}")
        self.need(w.let(f"fcmp olt double {size}, {float(LARGE_RESULT)}"), "misfit")
        kind = dtype.numpy
        array = self.call(
            "ptr", "PyArray_New", f"ptr {self.object_at(np.ndarray)}", f"i32 {len(shape)}", f"ptr {sides}",
            f"i32 {kind.num}", "ptr null", "ptr null", "i32 0", "i32 0", "ptr null",
        )  # fmt: skip
        self.checked(array)
        w.do(f"store ptr {array}, ptr {self.arrays[number]}")
        return self.field(array, DATA, "ptr")

    def _native(self, values: list[str]) -> None:
        w, caller = self.w, self.caller
        for k in range(RECORDS):
            w.do(f"store i64 0, ptr {w.slot(self.record, k)}")
        if caller.blas_threads:
            blas_began = native_blas.begin(self, caller.blas_threads)
        state = self.call("ptr", "PyEval_SaveThread")
        passed = ", ".join([*values, f"i64 {caller.threads}", f"ptr {self.results}", f"ptr {self.record}"])
        w.do(f"call void inttoptr (i64 {int(caller.compiled.address)} to ptr)({passed})")
        self.call("void", "PyEval_RestoreThread", f"ptr {state}")
        if caller.blas_threads:
            native_blas.end_after(self, blas_began)
        self._report(0, _problem, raises=True)
        if any(site.error in WARNINGS for site in self.binary.sites):
            self._report(CHECK_RECORD, warn, raises=False)

    def _report(self, slot: int, report: Callable[[Any, Any], Any], raises: bool) -> None:
        """Calls `report` with the record of the call, where it holds something there. An exception that it gives is
        raised here: no frame of ours comes into the traceback.
        """
        w, sites = self.w, self.binary.sites

        def told(place: int) -> Any:
            return report((ctypes.c_int64 * RECORDS).from_address(place), sites)

        tell, go_on = w.label("tell"), w.label("quiet")
        quiet = w.let(f"icmp eq i64 {w.let(f'load i64, ptr {w.slot(self.record, slot)}')}, 0")
        w.branch(quiet, go_on, tell)
        w.open(tell)
        place = self.call("ptr", "PyLong_FromVoidPtr", f"ptr {self.record}")
        self.checked(place)
        said = self.call("ptr", "PyObject_CallOneArg", f"ptr {self.object_at(told)}", f"ptr {place}")
        self.dropped(place)
        self.checked(said)
        if raises:
            self.call("void", "PyErr_SetObject", f"ptr {self.field(said, TYPE, 'ptr')}", f"ptr {said}")
        self.dropped(said)
        w.jump("failed" if raises else go_on)
        w.open(go_on)

    # -- results

    def _result(self, output: Output, into: Callable[[str], None] | None = None) -> str:
        """A new object. A tuple is handed to `into` while it is empty: it goes with its owner if a later part fails."""
        w = self.w
        match output:
            case Leaf(k=k, python=python) if k in self.binary.scalar_slots:
                return self.checked(self._number(self.binary.scalar_slots[k], python))
            case Leaf(k=k) if self.binary.array_results[k][1]:
                number = [p for p, _ in self.caller.provided].index(k)
                return self.held(w.let(f"load ptr, ptr {self.arrays[number]}"))
            case Argument(position=position):
                return self.held(self.arguments[position])
            case Chosen():
                return self._chosen(output)
            case Known(value=None):
                return self.held(self.object_at(None))
            case Tree(kind="tuple", items=items):
                return self._tuple(items, into)
        raise Unfit

    def _tuple(self, items: Sequence[Output], into: Callable[[str], None] | None) -> str:
        made = self.checked(self.call("ptr", "PyTuple_New", f"i64 {len(items)}"))

        def put(k: int, part: str) -> None:
            self.call("i32", "PyTuple_SetItem", f"ptr {made}", f"i64 {k}", f"ptr {part}")

        if into is None:
            self.w.do(f"store ptr {made}, ptr {self.out}")
        else:
            into(made)
        for k, item in enumerate(items):
            part = self._result(item, functools.partial(put, k))
            if not isinstance(item, Tree):
                put(k, part)
        return made

    def _number(self, slot: int, python: bool) -> str:
        w, dtype = self.w, self.binary.scalar_results[slot]
        place = w.slot(self.results, self.caller.offsets[slot])
        if dtype not in MACHINE:
            raise Unfit
        if not python:
            return self.call("ptr", "PyArray_Scalar", f"ptr {place}", f"ptr {self.object_at(dtype.numpy)}", "ptr null")
        value = w.let(f"load {MACHINE[dtype]}, ptr {place}")
        match dtype:
            case DType.f64:
                return self.call("ptr", "PyFloat_FromDouble", f"double {value}")
            case DType.f32:
                return self.call("ptr", "PyFloat_FromDouble", f"double {w.let(f'fpext float {value} to double')}")
            case DType.i64:
                return self.call("ptr", "PyLong_FromLongLong", f"i64 {value}")
            case DType.u64:
                return self.call("ptr", "PyLong_FromUnsignedLongLong", f"i64 {value}")
            case _ if dtype.is_int:
                wide = w.let(f"{'zext' if dtype.is_unsigned else 'sext'} {MACHINE[dtype]} {value} to i64")
                return self.call("ptr", "PyLong_FromLongLong", f"i64 {wide}")
        bit = w.let(f"and i8 {value}, 1")
        return self.call("ptr", "PyBool_FromLong", f"i64 {w.let(f'zext i8 {bit} to i64')}")

    def _chosen(self, output: Chosen) -> str:
        w, done = self.w, self.w.label("chosen")
        place = w.alloca("ptr", "choice")
        at = self.caller.offsets[self.binary.scalar_slots[output.k]]
        number = w.let(f"load i64, ptr {w.slot(self.results, at)}")
        for n, position in output.positions:
            this, other = w.label("this"), w.label("other")
            w.branch(w.let(f"icmp eq i64 {number}, {n}"), this, other)
            w.open(this)
            w.do(f"store ptr {self.held(self.arguments[position])}, ptr {place}")
            w.jump(done)
            w.open(other)
        w.do(f"store ptr {self._result(output.otherwise)}, ptr {place}")
        w.jump(done)
        w.open(done)
        return w.let(f"load ptr, ptr {place}")


def _problem(record: Any, sites: Any) -> BaseException:
    return interrupts.raised(record) or error_of(record, sites)
