"""Memory of heap buffers in LLVM IR: the run time's (backends/cpu/buffers.py), or that of a device.

Takes the function being written. A buffer's pointer lives in a slot of the function, which is null when it has none.
"""

from __future__ import annotations

from tapeless.backends.llvm import errors
from tapeless.backends.llvm.code import Code, emits
from tapeless.lower.ir.loopir import Alloc, Free, Give, Swap

OUT_OF_MEMORY = -1
ROUTINE = "nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"


@emits(Alloc)
def allocate(code: Code, stm: Alloc) -> None:
    helper = code.module.routine("tapeless.allocate", "rt_new", f"noalias ptr @(i64, i64, ptr) {ROUTINE}")
    allocate_by(code, stm, helper)


def allocate_by(code: Code, stm: Alloc, helper: str) -> None:
    """The slot is empty: Note [Heap] in lower/ir/verify.py."""
    w, slot = code.w, code.heap_slot(stm.buffer)
    arguments = f"i64 {code.index(stm.size)}, i64 {stm.buffer.dtype.bytes}, ptr {code.err}"
    pointer = w.let(f"call noalias align 64 ptr {helper}({arguments})", stm.buffer.name)
    w.do(f"store ptr {pointer}, ptr {slot}, align 8")
    code.note(stm.buffer, pointer)
    errors.leave_unless(code, w.let(f"icmp ne ptr {pointer}, null"))


@emits(Free)
def write_free(code: Code, stm: Free) -> None:
    slot = code.heap_slot(stm.buffer)
    code.note(stm.buffer, "null")
    free_slot(code, slot)
    code.w.do(f"store ptr null, ptr {slot}, align 8")


@emits(Swap)
def write_swap(code: Code, stm: Swap) -> None:
    a, b = code.heap_slot(stm.a), code.heap_slot(stm.b)
    x, y = code.w.let(f"load ptr, ptr {a}, align 8"), code.w.let(f"load ptr, ptr {b}, align 8")
    code.w.do(f"store ptr {y}, ptr {a}, align 8")
    code.w.do(f"store ptr {x}, ptr {b}, align 8")
    code.note(stm.a, y)
    code.note(stm.b, x)


@emits(Give)
def write_give(code: Code, stm: Give) -> None:
    _, first = code.shared.slots_of_results()
    slot = code.heap_slot(stm.buffer)
    pointer = code.w.let(f"load ptr, ptr {slot}, align 8")
    code.w.do(f"store ptr {pointer}, ptr {code.w.slot('%results', first + stm.k)}, align 8")
    code.w.do(f"store ptr null, ptr {slot}, align 8")
    code.note(stm.buffer, "null")


def free_slot(code: Code, slot: str) -> None:
    pointer = code.w.let(f"load ptr, ptr {slot}, align 8")
    drop = code.module.routine("tapeless.free", "rt_drop", f"void @(ptr captures(none)) {ROUTINE}")
    code.w.do(f"call void {drop}(ptr {pointer})")
