"""Calling native code: arguments to C, errors to Python exceptions, results to NumPy.

Takes a `Compiled` specialisation and the leaves of the arguments. The GIL is released while native code runs. Each call
has memory of its own for results and errors, so any number of threads may call at once.
"""

from __future__ import annotations

import copy
import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless import errors
from tapeless.backends.cpu import interrupts
from tapeless.errors import ArgumentError, RecoveryError, SourceError, TapelessError
from tapeless.frontend.guards import guard
from tapeless.frontend.returned import Argument, Chosen, Known, Leaf, Listed, Output, Tree, View, view_maker
from tapeless.ir import containers
from tapeless.ir.types import DType
from tapeless.lower.core.schedule import MOST_THREADS
from tapeless.lower.ir.loopir import CHECK_RECORD, INTERRUPT, RECORDS, Site
from tapeless.runtime import blas
from tapeless.runtime.callbacks import with_callbacks
from tapeless.runtime.compile import Compiled
from tapeless.runtime.numbers import plain_numbers, size_sources
from tapeless.runtime.progress import watched
from tapeless.runtime.results import Given, empty

C_TYPES: dict[DType, Any] = {
    DType.bool: ctypes.c_int8,
    DType.i8: ctypes.c_int8,
    DType.u8: ctypes.c_uint8,
    DType.i16: ctypes.c_int16,
    DType.u16: ctypes.c_uint16,
    DType.i32: ctypes.c_int32,
    DType.u32: ctypes.c_uint32,
    DType.i64: ctypes.c_int64,
    DType.u64: ctypes.c_uint64,
    DType.f32: ctypes.c_float,
    DType.f64: ctypes.c_double,
}


MOST_ARGUMENTS = 1024  # of ctypes


def address_of(array: np.ndarray[Any, Any]) -> int:
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only or empty
        data: int = array.__array_interface__["data"][0]
        return data


class Caller:
    """Calls one specialisation. Made once, then as little as possible happens in a call."""

    def __init__(self, compiled: Compiled, specs: Sequence[Any], threads: int) -> None:
        self.compiled = compiled
        self.threads = threads = max(1, min(threads, MOST_THREADS))
        signature, binary = compiled.signature, compiled.binary
        self.specs = specs
        self.sizes = size_sources(signature)
        self.positions = signature.arguments
        self.captured = signature.captured
        self.surroundings: list[Callable[[], Any]] = [c.get for c in self.captured]
        self.written = signature.written
        arrays = [k for k, p in enumerate(signature.params) if p.type.shape]
        self.clashes = {(k, j) for k in self.written for j in arrays} | set(signature.apart)  # must not share memory
        self.unchanged = guard(signature.watches)  # whether what it was compiled from is still the same
        self.params: list[tuple[bool, DType]] = [(bool(p.type.shape), p.type.dtype) for p in signature.params]
        argtypes: list[Any] = [ctypes.c_int64] * len(signature.sizes)
        for is_array, dtype in self.params:
            if is_array:
                argtypes.append(ctypes.c_void_p)
            elif dtype.is_complex:
                argtypes += [C_TYPES[dtype.real]] * 2
            else:
                argtypes.append(C_TYPES[dtype])
        self.provided = [(k, r) for k, r in binary.array_results.items() if r[1]]
        argtypes += [ctypes.c_void_p] * len(self.provided)
        argtypes += [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        if len(argtypes) > MOST_ARGUMENTS:
            raise ArgumentError(
                f"the arguments hold {len(self.params)} numbers and arrays, and {MOST_ARGUMENTS} is the most that can be passed;"
                " make arrays of lists of numbers"
            )
        native: Callable[..., None] = ctypes.CFUNCTYPE(None, *argtypes)(compiled.address)
        self.native = watched(native, binary.progress) if binary.progress else native
        if binary.callbacks:
            self.native = with_callbacks(self.native, binary.asks_again)
        slots = sum(2 if d.is_complex else 1 for d in binary.scalar_results)
        given = sum(1 for r in binary.array_results.values() if not r[1])
        self.Results = ctypes.c_int64 * max(1, slots + given)
        self.given_at = slots
        self.Error = ctypes.c_int64 * RECORDS
        self.offsets: list[int] = []
        at = 0
        for d in binary.scalar_results:
            self.offsets.append(at)
            at += 2 if d.is_complex else 1
        self.readers = [_reader(d) for d in binary.scalar_results]
        self.blas_threads = 0 if not binary.blas else 1 if binary.blas == "inside" else threads
        self.build = self._builder(signature.output)
        self.prepare = [_prepare(*kind, p.name) for kind, p in zip(self.params, signature.params, strict=True)]
        self.budget = None if compiled.budget is None else compiled.budget.on(threads)
        self.others: dict[int, Caller] = {}  # for other programs under the budget, by id of what is compiled
        self.simple = all(not (not a and d.is_complex) for a, d in self.params) and not self.captured

    def __call__(self, leaves: Sequence[Any]) -> Any:
        values = [leaves[k] for k in self.positions]
        for get in self.surroundings:
            values.append(get())
        if self.budget is None:
            return self._run(leaves, values)
        program, room = self.budget.find(self._numbers(values))
        return self._of(program.compiled())._run(leaves, [*values, room])

    def _of(self, compiled: Compiled) -> Caller:
        """What calls this, one of the programs under the budget."""
        if compiled is self.compiled:
            return self
        found = self.others.get(id(compiled))
        if found is None:
            found = self.others[id(compiled)] = type(self)(compiled, self.specs, self.threads)
        return found

    def for_call(self, leaves: Sequence[Any]) -> Caller:
        """What runs such a call."""
        if self.budget is None:
            return self
        try:
            return self._of(self.budget.find(self._numbers(self._values(leaves)))[0].compiled())
        except RecoveryError:  # a call says so
            return self

    def refusal(self, leaves: Sequence[Any]) -> str:
        """Why such a call cannot stay within its budget; nothing if it can."""
        try:
            if self.budget is not None:
                self.budget.find(self._numbers(self._values(leaves)))
        except RecoveryError as problem:
            return problem.reason
        return ""

    def _values(self, leaves: Sequence[Any]) -> list[Any]:
        return [*(leaves[k] for k in self.positions), *(c.get() for c in self.captured)]

    def _run(self, leaves: Sequence[Any], values: list[Any]) -> Any:
        keep: list[Any] = []
        copies: list[tuple[Any, Any]] = []
        arguments: list[Any] = [source(values) for source in self.sizes]
        for k, (prepare, value) in enumerate(zip(self.prepare, values, strict=True)):
            if self.params[k][0] and not _is_plain(value, self.params[k][1]):
                plain = np.array(value, dtype=self.params[k][1].numpy, order="C", copy=True)
                if k in self.written:
                    copies.append((value, plain))
                value = plain
                keep.append(plain)
            prepare(arguments, value)
        if self.clashes:
            self._refuse_overlap(values)
        made: dict[Any, Any] = {}
        for k, (dtype, _, shape, _, _) in self.provided:
            dims = tuple(d if isinstance(d, int) else arguments[d.k] for d in shape)
            made[k] = out = empty(dims, dtype.numpy)
            arguments.append(out.__array_interface__["data"][0] if not out.size else address_of(out))
        results, error = self.Results(), self.Error()
        if self.blas_threads:
            blas.begin(self.blas_threads)
            try:
                self.native(*arguments, self.threads, ctypes.addressof(results), ctypes.addressof(error))
            finally:
                blas.end()
        else:
            self.native(*arguments, self.threads, ctypes.addressof(results), ctypes.addressof(error))
        for original, plain in copies:
            original[...] = plain
        if error[0]:
            raise interrupts.raised(error) or error_of(error, self.compiled.binary.sites)
        if error[CHECK_RECORD]:
            warn(error, self.compiled.binary.sites)
        if self.captured:
            leaves = [*leaves, *values[len(self.positions) : len(self.positions) + len(self.captured)]]
        return self.build(results, made, leaves)

    def with_surroundings(self, arrays: Sequence[Any]) -> Caller:
        """The same on these arrays of the surroundings."""
        other = copy.copy(self)
        other.surroundings = [lambda a=a: a for a in arrays]  # type: ignore[misc]
        return other

    def _numbers(self, values: Sequence[Any]) -> list[Any]:
        return plain_numbers(self.compiled.signature, [source(values) for source in self.sizes], values)

    def numbers(self, leaves: Sequence[Any]) -> dict[Any, Any]:
        """Sizes and scalar arguments of a call, by their variables."""
        core = self.compiled.traced.core
        values = self._values(leaves)
        if self.budget is not None:
            try:
                values.append(self.budget.find(self._numbers(values))[1])
            except RecoveryError:  # a call says so
                values.append(self.budget.memory)
        found = {size: source(values) for size, source in zip(core.sizes, self.sizes, strict=True)}
        found.update({p: v for p, v in zip(core.params, values, strict=False) if not p.type.shape})
        return found

    # -- results

    def _builder(self, output: Output, alone: bool = False) -> Callable[..., Any]:
        """`alone`: a list or dict that is not looked for among those that were made."""
        binary = self.compiled.binary
        match output:
            case Leaf(k=k, python=python) if k in binary.scalar_slots:
                slot = binary.scalar_slots[k]
                at, read = self.offsets[slot], self.readers[slot]
                dtype = binary.scalar_results[slot]
                if python:
                    return lambda results, made, leaves: read(results, at)
                kind = dtype.numpy.type
                return lambda results, made, leaves: kind(read(results, at))
            case Leaf(k=k) if binary.array_results[k][1]:
                return lambda results, made, leaves: made[k]
            case Leaf(k=k):
                return self._given(k)
            case Argument(position=position):
                return lambda results, made, leaves: leaves[position]
            case Chosen(k=k, positions=positions, otherwise=leaf):
                slot, new, places = binary.scalar_slots[k], self._builder(leaf), dict(positions)
                at, read = self.offsets[slot], self.readers[slot]

                def chosen(results: Any, made: Any, leaves: Any) -> Any:
                    place = places.get(read(results, at))
                    return new(results, made, leaves) if place is None else leaves[place]

                return chosen
            case View(position=position):
                view = self.view(output)
                return lambda results, made, leaves: view(leaves[position], results)
            case Known(value=value):
                return lambda results, made, leaves: value
            case Tree(number=number) | Listed(number=number) if number and not alone:
                new, place = self._builder(output, alone=True), ("list", number)

                def once(results: Any, made: Any, leaves: Any) -> Any:
                    if place not in made:
                        made[place] = new(results, made, leaves)
                    return made[place]

                return once
            case Listed(leaf=leaf):
                whole, make_list = self._builder(leaf), output.of
                return lambda results, made, leaves: make_list(whole(results, made, leaves))
            case Tree(kind=kind, items=items, keys=keys, cls=cls):
                parts = [self._builder(i) for i in items]

                def build(results: Any, made: Any, leaves: Any) -> Any:
                    values = [p(results, made, leaves) for p in parts]
                    return containers.built(kind, cls, keys, values)

                return build

    def view(self, output: View) -> Callable[[Any, Any], Any]:
        """What makes a view of an array, given the memory of the results as 64-bit numbers."""

        def read(k: int) -> Callable[[Any], int]:
            at = self.offsets[self.compiled.binary.scalar_slots[k]]
            return lambda results: int(results[at])

        return view_maker(output, read)

    def _given(self, k: int) -> Callable[..., Any]:
        dtype, _, _, dims, number = self.compiled.binary.array_results[k]
        at = self.given_at + number

        def build(results: Any, made: dict[int, Any], leaves: Any) -> Any:
            if k not in made:
                shape = tuple(results[self.offsets[d]] for d in dims)
                made[k] = np.asarray(Given(results[at], shape, dtype.numpy))
            return made[k]

        return build

    # -- arguments

    def _refuse_overlap(self, values: Sequence[Any]) -> None:
        """A written array must not share memory with another argument, unless they are the same array, nor with itself."""
        bounds = {k: np.lib.array_utils.byte_bounds(values[k]) for k in {k for pair in self.clashes for k in pair}}
        names = [p.name for p in self.compiled.signature.params]
        for k, j in self.clashes:
            (low, high), (other_low, other_high) = bounds[k], bounds[j]
            if k == j and overlaps_itself(values[k]):
                raise ArgumentError(f"'{names[k]}' is written, but its elements share memory: pass a copy of it")
            if k != j and low < other_high and other_low < high and np.shares_memory(values[k], values[j]):
                raise ArgumentError(
                    f"'{names[k]}' is written, but shares memory with '{names[j]}': pass a copy of one of them"
                )


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether two elements of an array lie in the same place."""
    if array.flags.c_contiguous or array.size < 2:
        return False
    axes = sorted((abs(stride), n) for stride, n in zip(array.strides, array.shape, strict=True) if n > 1)
    reach = array.itemsize
    for stride, n in axes:  # each axis steps over all that the finer ones reach
        if stride < reach:
            break
        reach += stride * (n - 1)
    else:
        return False
    places: np.ndarray[Any, Any] = np.zeros((), np.int64)
    for stride, n in axes:
        places = np.add.outer(places, np.arange(n) * stride)
    found = np.unique(places)
    return bool(found.size < array.size or (np.diff(found) < array.itemsize).any())


def _is_plain(value: Any, dtype: DType) -> bool:
    flags = value.flags
    return bool(flags.c_contiguous and flags.aligned) and value.dtype.isnative


def _prepare(is_array: bool, dtype: DType, name: str) -> Callable[[list[Any], Any], None]:
    if is_array:
        return lambda arguments, value: arguments.append(address_of(value))
    if dtype.is_complex:

        def both(arguments: list[Any], value: Any) -> None:
            arguments.append(float(value.real))
            arguments.append(float(value.imag))

        return both
    if dtype is DType.i64:

        def whole(arguments: list[Any], value: Any) -> None:
            number = int(value)
            if not -(2**63) <= number < 2**63:  # C would take the lowest 64 bits
                raise ArgumentError(f"'{name}' = {number} does not fit into 64 bits: pass a float")
            arguments.append(number)

        return whole
    convert: Any = float if dtype.is_float else int
    return lambda arguments, value: arguments.append(convert(value))


def _reader(dtype: DType) -> Callable[[Any, int], Any]:
    match dtype:
        case DType.bool:
            return lambda r, at: bool(r[at] & 1)
        case DType.i64:
            return lambda r, at: r[at]
        case _ if dtype.is_int:
            signed = {1: "b", 2: "h", 4: "i", 8: "q"}[dtype.bytes]
            code = "<" + (signed.upper() if dtype.is_unsigned else signed)
            return lambda r, at: struct.unpack_from(code, r, 8 * at)[0]
        case DType.f64:
            return lambda r, at: struct.unpack_from("<d", r, 8 * at)[0]
        case DType.f32:
            return lambda r, at: struct.unpack_from("<f", r, 8 * at)[0]
        case DType.c128:
            return lambda r, at: complex(*struct.unpack_from("<dd", r, 8 * at))
    assert dtype is DType.c64
    return lambda r, at: complex(struct.unpack_from("<f", r, 8 * at)[0], struct.unpack_from("<f", r, 8 * at + 8)[0])


def warn(record: Any, sites: Sequence[Site]) -> None:
    """Gives the warning that native code left."""
    kept = [record[k] for k in range(CHECK_RECORD, INTERRUPT)]
    for k in range(CHECK_RECORD, INTERRUPT):
        record[k] = 0
    problem = error_of(kept, sites)
    assert isinstance(problem, Warning)
    errors.warn_caller(problem)


def error_of(record: Any, sites: Sequence[Site]) -> Exception:
    """The exception for what native code left in its error record."""
    code = record[0]
    if code == -1:
        return _marked(MemoryError("compiled code could not allocate memory"))
    site = sites[code - 1]
    values: list[Any] = []
    for k, kind in enumerate(site.kinds):
        raw = record[1 + k]
        number = struct.unpack("<d", struct.pack("<q", raw))[0] if kind.is_float else raw
        values.append(bool(raw) if kind is DType.bool else raw % 2**64 if kind is DType.u64 else number)
    message = site.message.format(*values)
    cls = errors.named(site.error)
    assert cls is not None
    span = site.span
    if issubclass(cls, SourceError):
        where = {} if not span.line else {
            "file": span.file, "line": span.line, "column": span.column, "end_line": span.end_line,
            "end_column": span.end_column,
        }  # fmt: skip
        code = {"code": "TP305"} if issubclass(cls, errors.RecoveryError) else {}  # the only one at run time
        located: Exception = cls(message, **code, **where)
        return located
    place = f" ({span.file}:{span.line})" if span.line else ""
    problem: Exception = cls(f"{message}{place}" if message else place.strip())
    return _marked(problem)


def _marked(problem: Exception) -> Exception:
    problem.__tapeless__ = True  # type: ignore[attr-defined]
    return problem


def is_for_the_user(problem: Exception) -> bool:
    """Whether an exception says all there is to say, so that our part of its traceback only gets in the way."""
    return (isinstance(problem, TapelessError) and problem.__cause__ is None) or hasattr(problem, "__tapeless__")
