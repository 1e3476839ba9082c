"""Runs Loop IR over NumPy memory: the oracle of schedules and of the emitter, and a memory checker.

Takes a program and its arguments and gives `run_program`. A failing check raises `LoopError`; what native code would
do silently (an access outside of a buffer, a read of memory nobody wrote, a use after free, a leak, an `exact`
operation that overflows, a barrier that not all threads reach) raises `LoopIRError`. Relies on the ops table.

Note [Local memory]
No statement makes a stack buffer, so it lives in the innermost block around all its uses, and is new and unwritten
each time that block is entered. In a parallel loop it is thereby private to an iteration unless it is used outside.
A shared buffer lives in the innermost such block outside of all block loops: one for each iteration of the grid.

Note [Lockstep]
The iterations of a `block` loop with barriers run as generators. In each round every one runs up to its next barrier,
and all must meet at the same one; those that a failing check has ended are not waited for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from tapeless.ir.types import Const, Var
from tapeless.lower.loopir import (
    Alloc,
    Assign,
    Atom,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    Declare,
    DType,
    For,
    Free,
    Give,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Pointer,
    Print,
    Program,
    Return,
    Space,
    Stm,
    Store,
    Swap,
    Tag,
    While,
)
from tapeless.lower.verify import Blame
from tapeless.lower.walk import buffers, children, walk
from tapeless.ops.table import TABLE

Array = npt.NDArray[Any]
Scalar = Any  # a NumPy scalar of the exact type
Routine = Callable[..., int | None]  # scalars as they are, pointers as views from the pointer to the end of the buffer
Scope = dict[Var | Buffer, Any]  # values of scalars, `Memory` of buffers

_EXACT: dict[str, Callable[..., int]] = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "neg": int.__neg__}


class LoopError(Exception):
    """A check failed: the index of its error site, and the values that it keeps."""

    def __init__(self, site: int, args: tuple[Scalar, ...]) -> None:
        super().__init__(site, args)
        self.site, self.values = site, args


@dataclass(eq=False)
class Memory:
    """`written` marks the cells that have a value; None when all have one or nobody asks."""

    data: Array
    written: npt.NDArray[np.bool_] | None = None
    read_only: bool = False
    live: bool = True


def run_program(
    program: Program,
    args: Sequence[bool | int | float | complex | np.generic | Array],
    threads: int = 1,
    *,
    routines: Mapping[str, Routine] | None = None,
    check_uninitialised: bool = True,
    shuffle: int | None = None,
) -> tuple[list[Scalar], list[Array]]:
    """The scalar results and the given arrays. Array arguments are flat and contiguous, and written in place.

    routines: what `Call` calls, by name. shuffle: a seed; the iterations of all but `seq` loops run in random order.
    """
    machine = _Machine(program, routines or {}, check_uninitialised, shuffle)
    scope = machine.bind(args, threads)
    with np.errstate(all="ignore"):
        machine.block(program.body, scope)
    return machine.results()


class _Machine:
    def __init__(
        self, program: Program, routines: Mapping[str, Routine], check_uninitialised: bool, shuffle: int | None
    ) -> None:
        self._program = program
        self._routines = routines
        self._checks = check_uninitialised
        self._random = None if shuffle is None else random.Random(shuffle)
        blame = Blame(program)
        self._name, self._fault = blame.name, blame.error
        self._locals = _local_buffers(program)
        self._waits = _with_barriers(program)
        self._constants: dict[int, Scalar] = {}  # by id: hashing a Const is slow
        self._heap: dict[int, tuple[Memory, Alloc]] = {}  # all that is allocated, by id
        self._scalars: dict[int, Scalar] = {}
        self._given: dict[int, Array] = {}

    # -- the boundary

    def bind(self, args: Sequence[Any], threads: int) -> Scope:
        program = self._program
        if len(args) != len(program.params):
            raise TypeError(f"{program.name} takes {len(program.params)} arguments, not {len(args)}")
        scope: Scope = {program.threads: np.int64(threads)}
        arrays: list[tuple[Buffer, Array]] = []
        for param, arg in zip(program.params, args, strict=True):
            if isinstance(param, Var):
                scope[param] = _scalar(arg, param.type.dtype)
                continue
            if not (isinstance(arg, np.ndarray) and arg.ndim == 1 and arg.flags.c_contiguous):
                raise TypeError(f"{param.name} must be a flat, contiguous array")
            if arg.dtype != param.dtype.numpy:
                raise TypeError(f"{param.name} must hold {param.dtype!r}, not {arg.dtype}")
            for other, array in arrays:
                if (param.written or other.written) and np.may_share_memory(arg, array):
                    raise ValueError(f"{param.name} and {other.name} overlap and one of them is written")
            arrays.append((param, arg))
            scope[param] = Memory(arg, read_only=not param.written)
        return scope

    def results(self) -> tuple[list[Scalar], list[Array]]:
        for _, stm in self._heap.values():
            raise self._fault(stm, f"{self._name(stm.buffer)} is neither freed nor given")
        program = self._program
        if len(self._scalars) < len(program.scalar_results) or len(self._given) < len(program.given_results):
            raise self._fault(None, f"sets scalar results {[*self._scalars]} and given results {[*self._given]} only")
        return [self._scalars[k] for k in sorted(self._scalars)], [self._given[k] for k in sorted(self._given)]

    # -- blocks and statements

    def block(self, stms: tuple[Stm, ...], scope: Scope) -> None:
        self._enter(stms, scope)
        for stm in stms:
            self._execute(stm, scope)

    def _enter(self, stms: tuple[Stm, ...], scope: Scope) -> None:
        """Note [Local memory]."""
        for buffer in self._locals.get(id(stms), ()):
            scope[buffer] = self._memory(buffer.dtype, buffer.size or 0)

    def _execute(self, stm: Stm, scope: Scope) -> None:
        match stm:
            case Let():
                scope[stm.var] = self._operation(stm, scope)
            case Load(var=var, buffer=buffer, index=index):
                memory, i = self._cell(stm, buffer, index, scope)
                scope[var] = self._read(stm, memory, i)
            case Store(buffer, index, value):
                memory, i = self._cell(stm, buffer, index, scope)
                self._write(stm, memory, i, self._value(stm, value, scope))
            case Atomic(op, buffer, index, value):
                memory, i = self._cell(stm, buffer, index, scope)
                old = self._read(stm, memory, i)
                self._write(stm, memory, i, TABLE[op].numpy(old, self._value(stm, value, scope)))
            case Declare(var=var, init=value) | Assign(var=var, value=value):
                scope[var] = self._value(stm, value, scope)
            case For():
                self._loop(stm, scope)
            case While(test=test, cond=cond, body=body):
                self.block(test, scope)
                while self._value(stm, cond, scope):
                    self.block(body, scope)
                    self.block(test, scope)
            case If(cond=cond, then=then, orelse=orelse):
                self.block(then if self._value(stm, cond, scope) else orelse, scope)
            case Alloc() | Free() | Swap() | Give():
                self._manage(stm, scope)
            case Check(cond, site, args, fatal):
                if not self._value(stm, cond, scope) and fatal:
                    raise LoopError(site, tuple(self._value(stm, arg, scope) for arg in args))
            case Call():
                self._call(stm, scope)
            case Invoke():
                self._invoke(stm, scope)
            case Launch():
                self._launch(stm, scope)
            case Return(k, value):
                self._scalars[k] = self._value(stm, value, scope)
            case Print(parts, args):
                values = [str(self._value(stm, arg, scope)) for arg in args]
                print("".join(part if isinstance(part, str) else values[part] for part in parts))
            case Barrier():
                raise self._fault(stm, "there is no block loop around")
            case _:
                assert_never(stm)

    def _operation(self, stm: Let, scope: Scope) -> Scalar:
        values = [self._value(stm, arg, scope) for arg in stm.args]
        dtype = stm.var.type.dtype.numpy
        result = TABLE[stm.op].numpy(*values, *([dtype] if stm.op == "convert" else []))
        if result.dtype != dtype:
            raise self._fault(stm, f"{stm.op} gave {result.dtype}")
        if stm.exact and stm.op in _EXACT and _EXACT[stm.op](*map(int, values)) != result:
            raise self._fault(stm, f"an exact {stm.op} overflows: {', '.join(map(str, values))}")
        return result

    # -- loops

    def _loop(self, stm: For, scope: Scope) -> None:
        if id(stm) in self._waits and stm.tag == Tag.block:
            for _ in self._lockstep(stm, scope):  # all threads of the block wait: go on
                pass
        elif stm.tag.parallel:
            self._parallel(stm, scope)
        else:
            for i in self._indices(stm, scope):
                scope[stm.var] = np.int64(i)
                self.block(stm.body, scope)

    def _parallel(self, stm: For, scope: Scope) -> None:
        """A failing check ends its iteration; the first one ends the loop once all iterations have run."""
        first: LoopError | None = None
        for i in self._indices(stm, scope):
            try:
                self.block(stm.body, {**scope, stm.var: np.int64(i)})
            except LoopError as error:
                first = first or error
        if first is not None:
            raise first

    def _launch(self, stm: Launch, scope: Scope) -> None:
        """The body sees what was handed over; the host looks at the bounds."""
        loop, program = stm.kernel.loop, self._program
        given: Scope = {p: scope[p] for p in stm.kernel.params if p in scope}
        given[program.threads] = np.int64(1)
        for bound in (loop.lo, loop.hi):
            if isinstance(bound, Var):
                given[bound] = scope[bound]
        self._loop(loop, given)

    def _lockstep(self, stm: For, scope: Scope) -> Iterator[Barrier]:
        """Note [Lockstep]. Yields where all threads wait, so that a block loop around this one can wait there too."""
        running = [self._steps(stm.body, {**scope, stm.var: np.int64(i)}) for i in self._indices(stm, scope)]
        first: LoopError | None = None
        while running:
            if self._random is not None:
                self._random.shuffle(running)
            waiting: list[Iterator[Barrier]] = []
            barriers: set[int] = set()
            barrier, finished = Barrier(), 0
            for thread in running:
                try:
                    barrier = next(thread)
                    barriers.add(id(barrier))
                    waiting.append(thread)
                except StopIteration:
                    finished += 1
                except LoopError as error:
                    first = first or error
            if waiting and (finished or len(barriers) > 1):
                raise self._fault(stm, f"{len(waiting)} threads wait at a barrier that others do not reach")
            if waiting:
                yield barrier
            running = waiting
        if first is not None:
            raise first

    def _steps(self, stms: tuple[Stm, ...], scope: Scope) -> Iterator[Barrier]:
        """One thread of a block, from barrier to barrier."""
        self._enter(stms, scope)
        for stm in stms:
            match stm:
                case _ if id(stm) not in self._waits:
                    self._execute(stm, scope)
                case Barrier():
                    yield stm
                case If(cond=cond, then=then, orelse=orelse):
                    yield from self._steps(then if self._value(stm, cond, scope) else orelse, scope)
                case While(test=test, cond=cond, body=body):
                    yield from self._steps(test, scope)
                    while self._value(stm, cond, scope):
                        yield from self._steps(body, scope)
                        yield from self._steps(test, scope)
                case For(tag=Tag.block):
                    yield from self._lockstep(stm, scope)
                case For(tag=Tag.seq, var=var, body=body):
                    for i in self._indices(stm, scope):
                        scope[var] = np.int64(i)
                        yield from self._steps(body, scope)
                case _:
                    raise self._fault(stm, "there is a barrier inside")

    def _indices(self, stm: For, scope: Scope) -> Iterable[int]:
        lo, hi = (int(self._value(stm, atom, scope)) for atom in (stm.lo, stm.hi))
        indices = range(lo, hi, stm.step)
        if self._random is None or stm.tag == Tag.seq:
            return indices
        return self._random.sample(indices, len(indices))

    # -- memory

    def _memory(self, dtype: DType, size: int) -> Memory:
        """Unwritten memory: NaN, or integers that stand out."""
        data = np.empty(max(size, 0), dtype.numpy)
        data.view(np.uint8).fill(0xFF if dtype.is_float or dtype.is_complex else 0xAB)
        return Memory(data, np.zeros(len(data), np.bool_) if self._checks else None)

    def _manage(self, stm: Alloc | Free | Swap | Give, scope: Scope) -> None:
        match stm:
            case Alloc(buffer, size):
                old = scope.get(buffer)
                if old is not None and old.live:
                    raise self._fault(stm, f"{self._name(buffer)} is allocated already")
                memory = scope[buffer] = self._memory(buffer.dtype, int(self._value(stm, size, scope)))
                self._heap[id(memory)] = (memory, stm)
            case Free(buffer):
                self._release(stm, buffer, scope)
            case Swap(a, b):
                first, second = self._live(stm, a, scope), self._live(stm, b, scope)
                if len(first.data) != len(second.data):
                    raise self._fault(stm, f"sizes differ: {len(first.data)} and {len(second.data)}")
                scope[a], scope[b] = second, first
            case Give(k, buffer):
                memory = self._release(stm, buffer, scope)
                if memory.written is not None and not memory.written.all():
                    raise self._fault(
                        stm, f"element {memory.written.argmin()} of {self._name(buffer)} was never written"
                    )
                if k in self._given:
                    raise self._fault(stm, f"result {k} is given twice")
                self._given[k] = memory.data
            case _:
                assert_never(stm)

    def _release(self, stm: Free | Give, buffer: Buffer, scope: Scope) -> Memory:
        memory = self._live(stm, buffer, scope)
        if self._heap.pop(id(memory), None) is None:
            raise self._fault(stm, f"{self._name(buffer)} is no heap buffer")
        memory.live = False
        return memory

    def _live(self, stm: Stm, buffer: Buffer, scope: Scope) -> Memory:
        memory: Memory | None = scope.get(buffer)
        if memory is None or not memory.live:
            state = "not allocated" if memory is None else "freed or given already"
            raise self._fault(stm, f"{self._name(buffer)} is {state}")
        return memory

    def _cell(self, stm: Stm, buffer: Buffer, index: Atom, scope: Scope) -> tuple[Memory, int]:
        memory = self._live(stm, buffer, scope)
        i = int(self._value(stm, index, scope))
        if not 0 <= i < len(memory.data):
            raise self._fault(
                stm, f"index {i} is outside of {self._name(buffer)}, which has {len(memory.data)} elements"
            )
        return memory, i

    def _read(self, stm: Load | Atomic, memory: Memory, i: int) -> Scalar:
        if memory.written is not None and not memory.written[i]:
            raise self._fault(stm, f"element {i} of {self._name(stm.buffer)} is read before it is written")
        return memory.data[i]

    def _write(self, stm: Store | Atomic, memory: Memory, i: int, value: Scalar) -> None:
        if memory.read_only:
            raise self._fault(stm, f"parameter {self._name(stm.buffer)} is read-only")
        if value.dtype != memory.data.dtype:
            raise self._fault(stm, f"a value of type {value.dtype} is stored")
        memory.data[i] = value
        if memory.written is not None:
            memory.written[i] = True

    def _call(self, stm: Call, scope: Scope) -> None:
        """A routine does not say what it writes: cells whose bytes change count as written."""
        if stm.name not in self._routines:
            raise self._fault(stm, f"no routine {stm.name!r} was passed to the interpreter")
        args: list[Any] = []
        before: list[tuple[Array, npt.NDArray[np.bool_], Array]] = []
        for arg in stm.args:
            if not isinstance(arg, Pointer):
                args.append(self._value(stm, arg, scope))
                continue
            memory = self._live(stm, arg.buffer, scope)
            offset, size = int(self._value(stm, arg.offset, scope)), len(memory.data)
            if not 0 <= offset <= size:
                raise self._fault(
                    stm, f"offset {offset} is outside of {self._name(arg.buffer)}, which has {size} elements"
                )
            view = memory.data[offset:]
            view.flags.writeable = view.flags.writeable and not memory.read_only
            args.append(view)
            if memory.written is not None:
                before.append((view, memory.written[offset:], view.copy()))
        answer = self._routines[stm.name](*args)
        for view, written, old in before:
            shape = (len(view), view.itemsize)
            written |= (view.view(np.uint8).reshape(shape) != old.view(np.uint8).reshape(shape)).any(axis=1)
        if stm.result is not None:
            if answer is None:
                raise self._fault(stm, f"routine {stm.name!r} gave no answer")
            scope[stm.result] = np.int64(answer)

    def _invoke(self, stm: Invoke, scope: Scope) -> None:
        callee = next(f for f in self._program.functions if f.name == stm.name)
        inner = _Machine(replace(callee, functions=self._program.functions), self._routines, self._checks, None)
        inner._random = self._random
        there: Scope = {callee.threads: scope[self._program.threads]}
        for param, arg in zip(callee.params, stm.args, strict=True):
            if isinstance(arg, Pointer):
                memory, offset = self._live(stm, arg.buffer, scope), int(self._value(stm, arg.offset, scope))
                marks = None if memory.written is None else memory.written[offset:]
                read_only = memory.read_only or (isinstance(param, Buffer) and not param.written)
                there[param] = Memory(memory.data[offset:], marks, read_only)
            else:
                there[param] = self._value(stm, arg, scope)
        inner.block(callee.body, there)
        scope.update(zip(stm.results, inner.results()[0], strict=True))

    # -- pieces

    def _value(self, stm: Stm, atom: Atom, scope: Scope) -> Scalar:
        if isinstance(atom, Const):
            if id(atom) not in self._constants:
                self._constants[id(atom)] = _scalar(atom.value, atom.dtype)
            return self._constants[id(atom)]
        if atom not in scope:
            raise self._fault(stm, f"{self._name(atom)} is used before it is bound")
        return scope[atom]


def _scalar(value: Any, dtype: DType) -> Scalar:
    return dtype.numpy.type(value)


def _with_barriers(program: Program) -> set[int]:
    """The ids of barriers and of the statements around them."""
    found: set[int] = set()
    for stm in reversed(list(walk(program.body))):  # those inside come first
        if isinstance(stm, Barrier) or any(id(inner) in found for block in children(stm) for inner in block):
            found.add(id(stm))
    return found


def _local_buffers(program: Program) -> dict[int, list[Buffer]]:
    """Note [Local memory]: the stack and shared buffers of each block, by its id."""
    paths: dict[Buffer, list[tuple[int, Tag | None]]] = {}  # blocks from the outermost, each with the tag of its loop

    def visit(stms: tuple[Stm, ...], path: list[tuple[int, Tag | None]]) -> None:
        for stm in stms:
            for buffer in buffers(stm):
                known = paths.get(buffer, path)
                paths[buffer] = [here for here, there in zip(path, known, strict=False) if here == there]
            tag = stm.tag if isinstance(stm, For) else None
            for block in children(stm):
                visit(block, [*path, (id(block), tag)])

    visit(program.body, [(id(program.body), None)])
    found: dict[int, list[Buffer]] = {}
    for buffer, path in paths.items():
        if buffer.space is Space.shared:
            tags = [tag for _, tag in path]
            path = path[: tags.index(Tag.block)] if Tag.block in tags else path
        if buffer.space in (Space.stack, Space.shared):
            found.setdefault(path[-1][0], []).append(buffer)
    return found
