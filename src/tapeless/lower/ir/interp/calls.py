"""Rules for calls: routines of libraries, functions of the program, and kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tapeless.ir.types import Var
from tapeless.lower.ir.interp.machine import Array, Machine, Memory, Scope, executes
from tapeless.lower.ir.loopir import Buffer, Call, Invoke, Launch, Pointer
from tapeless.ops import callbacks


@executes(Call)
def call(machine: Machine, stm: Call, scope: Scope) -> None:
    """A routine does not say what it writes: cells whose bytes change count as written."""
    python = callbacks.named(stm.name)
    if python is None and stm.name not in machine.routines:
        raise machine.fault(stm, f"no routine {stm.name!r} was passed to the interpreter")
    args: list[Any] = []
    before: list[tuple[Array, npt.NDArray[np.bool_], Array]] = []
    for arg in stm.args:
        if not isinstance(arg, Pointer):
            args.append(machine.value(stm, arg, scope))
            continue
        memory = machine.live(stm, arg.buffer, scope)
        offset, size = int(machine.value(stm, arg.offset, scope)), len(memory.data)
        if not 0 <= offset <= size:
            name = machine.name(arg.buffer)
            raise machine.fault(stm, f"offset {offset} is outside of {name}, which has {size} elements")
        view = memory.data[offset:]
        view.flags.writeable = view.flags.writeable and not memory.read_only
        args.append(view)
        if memory.written is not None:
            before.append((view, memory.written[offset:], view.copy()))
    answer: Any = 0
    if python is not None:
        python[0].raw(python[1], args)
    else:
        answer = machine.routines[stm.name](*args)
    for view, written, old in before:
        shape = (len(view), view.itemsize)
        written |= (view.view(np.uint8).reshape(shape) != old.view(np.uint8).reshape(shape)).any(axis=1)
    if stm.result is not None:
        if answer is None:
            raise machine.fault(stm, f"routine {stm.name!r} gave no answer")
        scope[stm.result] = np.int64(answer)


@executes(Invoke)
def invoke(machine: Machine, stm: Invoke, scope: Scope) -> None:
    callee = next(f for f in machine.program.functions if f.name == stm.name)
    inner = machine.of(callee)
    there: Scope = {callee.threads: scope[machine.program.threads]}
    for param, arg in zip(callee.params, stm.args, strict=True):
        if isinstance(arg, Pointer):
            memory, offset = machine.live(stm, arg.buffer, scope), int(machine.value(stm, arg.offset, scope))
            marks = None if memory.written is None else memory.written[offset:]
            read_only = memory.read_only or (isinstance(param, Buffer) and not param.written)
            there[param] = Memory(memory.data[offset:], marks, read_only)
        else:
            there[param] = machine.value(stm, arg, scope)
    inner.block(callee.body, there)
    scope.update(zip(stm.results, inner.results()[0], strict=True))


@executes(Launch)
def launch(machine: Machine, stm: Launch, scope: Scope) -> None:
    """The body sees what was handed over; the host looks at the bounds."""
    loop = stm.kernel.loop
    given: Scope = {p: scope[p] for p in stm.kernel.params if p in scope}
    given[machine.program.threads] = np.int64(1)
    for bound in (loop.lo, loop.hi):
        if isinstance(bound, Var):
            given[bound] = scope[bound]
    machine.execute(loop, given)
