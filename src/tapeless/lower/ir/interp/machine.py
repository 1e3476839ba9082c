"""The machine that runs Loop IR: scopes, values, blocks and live memory.

Takes a program and its arguments and gives `run_program`. A failing check raises `LoopError`; what native code would
do silently (an access outside of a buffer, a read of memory nobody wrote, a use after free, a leak, an `exact`
operation that overflows, a barrier that not all threads reach) raises `LoopIRError`. The rules of the statements are in
modules of their own and register themselves with `executes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from tapeless.ir.rules import Rules
from tapeless.ir.types import Const, Var
from tapeless.lower.ir.interp.blocks import local_buffers, with_barriers
from tapeless.lower.ir.interp.races import Races
from tapeless.lower.ir.loopir import Alloc, Atom, Buffer, DType, Program, Stm
from tapeless.lower.ir.verify import Blame
from tapeless.ops import callbacks

Array = npt.NDArray[Any]
Scalar = Any  # a NumPy scalar of the exact type
Routine = Callable[..., int | None]  # scalars as they are, pointers as views from the pointer to the end of the buffer
Scope = dict[Var | Buffer, Any]  # values of scalars, `Memory` of buffers


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
    machine = Machine(program, routines or {}, check_uninitialised, None if shuffle is None else Random(shuffle))
    scope = machine.bind(args, threads)
    with np.errstate(all="ignore"), callbacks.during(keeps=True):
        machine.block(program.body, scope)
    return machine.results()


Rule = Callable[["Machine", Any, Scope], None]
RULES: Rules[type, Rule] = Rules()
executes = RULES.of  # a rule runs a statement in a scope, and binds there what the statement binds


class Machine:
    """One run of a program. `random` is None unless loops run in random order."""

    def __init__(
        self, program: Program, routines: Mapping[str, Routine], check_uninitialised: bool, random: Random | None
    ) -> None:
        self.program, self.routines, self.checks, self.random = program, routines, check_uninitialised, random
        blame = Blame(program)
        self.name, self.fault = blame.name, blame.error
        self.locals = local_buffers(program)
        self.waits = with_barriers(program)
        self.constants: dict[int, Scalar] = {}  # by id: hashing a Const is slow
        self.heap: dict[int, tuple[Memory, Alloc]] = {}  # all that is allocated, by id
        self.scalars: dict[int, Scalar] = {}
        self.given: dict[int, Array] = {}
        self.races: Races | None = None  # of the launch that runs

    def of(self, callee: Program) -> Machine:
        """One that runs a function of this program."""
        whole = replace(callee, functions=self.program.functions)
        return type(self)(whole, self.routines, self.checks, self.random)

    # -- the boundary

    def bind(self, args: Sequence[Any], threads: int) -> Scope:
        program = self.program
        if len(args) != len(program.params):
            raise TypeError(f"{program.name} takes {len(program.params)} arguments, not {len(args)}")
        scope: Scope = {program.threads: np.int64(threads)}
        arrays: list[tuple[Buffer, Array]] = []
        for param, arg in zip(program.params, args, strict=True):
            if isinstance(param, Var):
                scope[param] = param.type.dtype.numpy.type(arg)
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
        for _, stm in self.heap.values():
            raise self.fault(stm, f"{self.name(stm.buffer)} is neither freed nor given")
        program = self.program
        if len(self.scalars) < len(program.scalar_results) or len(self.given) < len(program.given_results):
            raise self.fault(None, f"sets scalar results {[*self.scalars]} and given results {[*self.given]} only")
        return [self.scalars[k] for k in sorted(self.scalars)], [self.given[k] for k in sorted(self.given)]

    # -- blocks and statements

    def block(self, stms: tuple[Stm, ...], scope: Scope) -> None:
        self.enter(stms, scope)
        for stm in stms:
            self.execute(stm, scope)

    def enter(self, stms: tuple[Stm, ...], scope: Scope) -> None:
        """Note [Local memory]."""
        for buffer in self.locals.get(id(stms), ()):
            scope[buffer] = self.memory(buffer.dtype, buffer.size or 0)

    def execute(self, stm: Stm, scope: Scope) -> None:
        RULES[type(stm)](self, stm, scope)

    # -- values and memory

    def value(self, stm: Stm, atom: Atom, scope: Scope) -> Scalar:
        if isinstance(atom, Const):
            if id(atom) not in self.constants:
                self.constants[id(atom)] = atom.dtype.numpy.type(atom.value)
            return self.constants[id(atom)]
        if atom not in scope:
            raise self.fault(stm, f"{self.name(atom)} is used before it is bound")
        return scope[atom]

    def memory(self, dtype: DType, size: int) -> Memory:
        """Unwritten memory: NaN, or integers that stand out."""
        data = np.empty(max(size, 0), dtype.numpy)
        data.view(np.uint8).fill(0xFF if dtype.is_float or dtype.is_complex else 0xAB)
        return Memory(data, np.zeros(len(data), np.bool_) if self.checks else None)

    def live(self, stm: Stm, buffer: Buffer, scope: Scope) -> Memory:
        memory: Memory | None = scope.get(buffer)
        if memory is None or not memory.live:
            state = "not allocated" if memory is None else "freed or given already"
            raise self.fault(stm, f"{self.name(buffer)} is {state}")
        return memory
