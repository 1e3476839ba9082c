"""Memory of heap buffers in LLVM IR: small ones from the C library, large ones from the run time that keeps them.

Takes the function being written. A buffer's pointer lives in a slot of the function, which is null when it has none.
"""

from __future__ import annotations

from functools import partial

from tapeless.backends.llvm import errors
from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.writer import LIKELY, UNLIKELY, Module
from tapeless.lower.loopir import Alloc, Free, Give, Swap

OUT_OF_MEMORY = -1
LARGE, PAGE = 256 << 10, 4096  # bytes of a buffer that is worth keeping (backends/cpu/buffers.py); where it begins


@emits(Alloc)
def allocate(code: Code, stm: Alloc) -> None:
    """An allocation that is still in the slot is freed: the statement may stand in a loop."""
    w, module = code.w, code.module
    slot = code.heap_slot(stm.buffer)
    code.note(stm.buffer, "null")
    free_slot(code, slot)
    n = w.intrinsic("smax", "i64", code.index(stm.size), "0")
    size = w.let(f"mul i64 {n}, {stm.buffer.dtype.bytes}")
    size = w.let(f"and i64 {w.let(f'add i64 {size}, 64')}, -64")  # a multiple of 64, and not 0
    size = w.select(w.let(f"icmp ugt i64 {n}, {2**57}"), "i64", str(2**62), size)
    ordinary = module.declare(
        "aligned_alloc",
        'noalias ptr @(i64 allocalign, i64) nounwind willreturn allockind("alloc,uninitialized,aligned") '
        'allocsize(1) "alloc-family"="malloc"',
    )
    kept = module.declare("rt_allocate", "noalias ptr @(i64) nounwind willreturn")
    small, large, made = w.label("small"), w.label("large"), w.label("made")
    w.branch(w.let(f"icmp uge i64 {size}, {LARGE}"), large, small, w.weights(UNLIKELY, LIKELY))
    w.open(small)
    first = w.let(f"call noalias align 64 ptr {ordinary}(i64 64, i64 {size})", stm.buffer.name)
    w.jump(made)
    w.open(large)
    second = w.let(f"call noalias align 64 ptr {kept}(i64 {size})", stm.buffer.name)
    w.jump(made)
    w.open(made)
    pointer = w.let(f"phi ptr [ {first}, %{small} ], [ {second}, %{large} ]", stm.buffer.name)
    w.do(f"store ptr {pointer}, ptr {slot}, align 8")
    code.note(stm.buffer, pointer)
    errors.fail_unless(code, w.let(f"icmp ne ptr {pointer}, null"), OUT_OF_MEMORY, [])


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
    helper = code.module.helper("tapeless.free", partial(free_helper, code.module))
    code.w.do(f"call void {helper}(ptr {pointer})")


def free_helper(module: Module) -> str:
    """Large buffers begin with a page, others seldom."""
    ordinary = module.declare(
        "free", 'void @(ptr allocptr captures(none)) nounwind willreturn allockind("free") "alloc-family"="malloc"'
    )
    kept = module.declare("rt_release", "void @(ptr captures(none)) nounwind willreturn")
    return f"""
define internal void @tapeless.free(ptr captures(none) %p) nounwind willreturn {{
  %a = ptrtoint ptr %p to i64
  %rest = and i64 %a, {PAGE - 1}
  %page = icmp eq i64 %rest, 0
  br i1 %page, label %large, label %small
large:
  %nothing = icmp eq ptr %p, null
  br i1 %nothing, label %done, label %release
release:
  call void {kept}(ptr %p)
  ret void
small:
  call void {ordinary}(ptr %p)
  ret void
done:
  ret void
}}"""
