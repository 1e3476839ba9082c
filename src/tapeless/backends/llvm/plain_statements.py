"""Rules for operations, memory and scalars: the statements without blocks."""

from __future__ import annotations

from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.scalar import apply
from tapeless.backends.llvm.writer import MEMORY
from tapeless.lower.ir.loopir import PROGRESS, Assign, Barrier, Declare, Let, Load, Progress, Return, Store, Wait


@emits(Let)
def write_let(code: Code, stm: Let) -> None:
    code.w.flags = code.shared.flags
    if stm.reassoc and not code.shared.program.fastmath and not code.shared.program.strict:
        code.w.flags += "reassoc nsz "
    args = [code.value(arg) for arg in stm.args]
    result = stm.var.type.dtype
    code.values[stm.var] = apply(code.w, stm.op, stm.args, args, result, stm.exact, stm.reassoc)
    code.w.flags = code.shared.flags


@emits(Load)
def write_load(code: Code, stm: Load) -> None:
    suffix = code.metadata(stm.buffer)
    dtype = stm.buffer.dtype
    parts = [code.load_part(dtype, a, suffix) for a in code.addresses(stm.buffer, stm.index)]
    code.values[stm.var] = code.from_memory(dtype, parts)


@emits(Store)
def write_store(code: Code, stm: Store) -> None:
    value = code.value(stm.value)
    suffix = code.metadata(stm.buffer)
    code.store_value(stm.buffer.dtype, value, code.addresses(stm.buffer, stm.index), suffix)


@emits(Declare)
def write_declare(code: Code, stm: Declare) -> None:
    dtype = stm.var.type.dtype
    init = code.value(stm.init)
    if stm.var not in code.slots:
        code.slots[stm.var] = tuple(
            code.w.alloca(MEMORY[dtype], stm.var.name) for _ in range(2 if dtype.is_complex else 1)
        )
    code.store_value(dtype, init, code.slots[stm.var])


@emits(Assign)
def write_assign(code: Code, stm: Assign) -> None:
    code.store_value(stm.var.type.dtype, code.value(stm.value), code.slots[stm.var])


@emits(Return)
def write_return(code: Code, stm: Return) -> None:
    starts, _ = code.shared.slots_of_results()
    value = code.value(stm.value)
    places = tuple(code.w.slot("%results", starts[stm.k] + part) for part in range(len(value)))
    code.store_value(stm.value.type.dtype, value, places)


@emits(Wait)
def write_wait(code: Code, stm: Wait) -> None:
    """Threads of a CPU are done when a launch is."""


@emits(Barrier)
def write_barrier(code: Code, stm: Barrier) -> None:
    """Nothing to wait for: on a CPU the iterations of a block loop run one after the other."""


@emits(Progress)
def write_progress(code: Code, stm: Progress) -> None:
    """Atomic, so that the stores stay in their loop; otherwise they are like any other."""
    w = code.w
    total = code.index(stm.total)
    words = code.index(stm.done), w.let(f"sub i64 0, {total}") if stm.backward else total
    for k, word in enumerate(words):
        w.do(f"store atomic i64 {word}, ptr {w.slot(code.err, PROGRESS + k)} monotonic, align 8")
