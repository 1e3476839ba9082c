"""Rules for cells of buffers, and for the memory of the heap: each access is judged."""

from __future__ import annotations

from tapeless.lower.ir.interp.machine import Machine, Memory, Scalar, Scope, executes
from tapeless.lower.ir.interp.races import Access
from tapeless.lower.ir.loopir import Alloc, Atomic, Free, Give, Load, Store, Swap
from tapeless.ops.table import TABLE

# -- cells


@executes(Load)
def load(machine: Machine, stm: Load, scope: Scope) -> None:
    scope[stm.var] = read(machine, stm, *cell(machine, stm, scope, Access.read))


@executes(Store)
def store(machine: Machine, stm: Store, scope: Scope) -> None:
    memory, i = cell(machine, stm, scope, Access.write)
    write(machine, stm, memory, i, machine.value(stm, stm.value, scope))


@executes(Atomic)
def atomic(machine: Machine, stm: Atomic, scope: Scope) -> None:
    memory, i = cell(machine, stm, scope, Access.combine)
    old = read(machine, stm, memory, i)
    write(machine, stm, memory, i, TABLE[stm.op].evaluate(old, machine.value(stm, stm.value, scope)))


def cell(machine: Machine, stm: Load | Store | Atomic, scope: Scope, access: Access) -> tuple[Memory, int]:
    memory = machine.live(stm, stm.buffer, scope)
    i, size = int(machine.value(stm, stm.index, scope)), len(memory.data)
    if not 0 <= i < size:
        raise machine.fault(stm, f"index {i} is outside of {machine.name(stm.buffer)}, which has {size} elements")
    if machine.races is not None and machine.races.meets(memory, i, access):
        raise machine.fault(
            stm, f"another iteration touches element {i} of {machine.name(stm.buffer)} at the same time"
        )
    return memory, i


def read(machine: Machine, stm: Load | Atomic, memory: Memory, i: int) -> Scalar:
    if memory.written is not None and not memory.written[i]:
        raise machine.fault(stm, f"element {i} of {machine.name(stm.buffer)} is read before it is written")
    return memory.data[i]


def write(machine: Machine, stm: Store | Atomic, memory: Memory, i: int, value: Scalar) -> None:
    if memory.read_only:
        raise machine.fault(stm, f"parameter {machine.name(stm.buffer)} is read-only")
    if value.dtype != memory.data.dtype:
        raise machine.fault(stm, f"a value of type {value.dtype} is stored")
    memory.data[i] = value
    if memory.written is not None:
        memory.written[i] = True


# -- the heap


@executes(Alloc)
def allocate(machine: Machine, stm: Alloc, scope: Scope) -> None:
    old = scope.get(stm.buffer)
    if old is not None and old.live:
        raise machine.fault(stm, f"{machine.name(stm.buffer)} is allocated already")
    memory = machine.memory(stm.buffer.dtype, int(machine.value(stm, stm.size, scope)))
    scope[stm.buffer] = memory
    machine.heap[id(memory)] = (memory, stm)


@executes(Free)
def free(machine: Machine, stm: Free, scope: Scope) -> None:
    release(machine, stm, scope)


def release(machine: Machine, stm: Free | Give, scope: Scope) -> Memory:
    memory = machine.live(stm, stm.buffer, scope)
    if machine.heap.pop(id(memory), None) is None:
        raise machine.fault(stm, f"{machine.name(stm.buffer)} is no heap buffer")
    memory.live = False
    return memory


@executes(Swap)
def swap(machine: Machine, stm: Swap, scope: Scope) -> None:
    a, b = machine.live(stm, stm.a, scope), machine.live(stm, stm.b, scope)
    if len(a.data) != len(b.data):
        raise machine.fault(stm, f"sizes differ: {len(a.data)} and {len(b.data)}")
    scope[stm.a], scope[stm.b] = b, a


@executes(Give)
def give(machine: Machine, stm: Give, scope: Scope) -> None:
    memory = release(machine, stm, scope)
    if memory.written is not None and not memory.written.all():
        missing = memory.written.argmin()
        raise machine.fault(stm, f"element {missing} of {machine.name(stm.buffer)} was never written")
    if stm.k in machine.given:
        raise machine.fault(stm, f"result {stm.k} is given twice")
    machine.given[stm.k] = memory.data
