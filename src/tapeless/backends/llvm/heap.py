"""Memory of heap buffers in LLVM IR: small ones from the C library, large ones from the run time that keeps them.

Takes the function being written. A buffer's pointer lives in a slot of the function, which is null when it has none.
"""

from __future__ import annotations

from functools import partial

from tapeless.backends.llvm import errors
from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.writer import Module
from tapeless.lower.ir.loopir import Alloc, Free, Give, Swap

OUT_OF_MEMORY = -1
# Written once and called: with all that they do in place, programs of many small arrays were a third longer.
HELPER = "noinline nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"
LARGE, PAGE = 256 << 10, 4096  # bytes of a buffer that is worth keeping (backends/cpu/buffers.py); where it begins


@emits(Alloc)
def allocate(code: Code, stm: Alloc) -> None:
    """The slot is empty: Note [Heap] in lower/ir/verify.py."""
    w, module = code.w, code.module
    slot = code.heap_slot(stm.buffer)
    helper = module.helper("tapeless.allocate", partial(_allocate_helper, module))
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
    helper = code.module.helper("tapeless.free", partial(free_helper, code.module))
    code.w.do(f"call void {helper}(ptr {pointer})")


def _allocate_helper(module: Module) -> str:
    """So many elements, none where there are fewer than 0; or the error. Written once: programs have more buffers than loops."""
    fail = module.helper("tapeless.fail", errors.fail_helper)
    ordinary = module.declare(
        "aligned_alloc",
        'noalias ptr @(i64 allocalign, i64) nounwind willreturn allockind("alloc,uninitialized,aligned") '
        'allocsize(1) "alloc-family"="malloc"',
    )
    kept = module.declare("rt_allocate", "noalias ptr @(i64) nounwind willreturn")
    return f"""
define internal noalias ptr @tapeless.allocate(i64 %count, i64 %each, ptr %err) {HELPER} {{
  %none = icmp slt i64 %count, 0
  %n = select i1 %none, i64 0, i64 %count
  %bytes = mul i64 %n, %each
  %more = add i64 %bytes, 64
  %whole = and i64 %more, -64 ; a multiple of 64, and not 0
  %beyond = icmp ugt i64 %n, {2**57}
  %size = select i1 %beyond, i64 {2**62}, i64 %whole
  %is_large = icmp uge i64 %size, {LARGE}
  br i1 %is_large, label %large, label %small
small:
  %p = call noalias align 64 ptr {ordinary}(i64 64, i64 %size)
  br label %made
large:
  %q = call noalias align 64 ptr {kept}(i64 %size)
  br label %made
made:
  %found = phi ptr [ %p, %small ], [ %q, %large ]
  %none_left = icmp eq ptr %found, null
  br i1 %none_left, label %failed, label %done
failed:
  call void {fail}(ptr %err, i64 {OUT_OF_MEMORY}, i64 0, i64 0, i64 0)
  br label %done
done:
  ret ptr %found
}}"""


def free_helper(module: Module) -> str:
    """Large buffers begin with a page, others seldom."""
    ordinary = module.declare(
        "free", 'void @(ptr allocptr captures(none)) nounwind willreturn allockind("free") "alloc-family"="malloc"'
    )
    kept = module.declare("rt_release", "void @(ptr captures(none)) nounwind willreturn")
    return f"""
define internal void @tapeless.free(ptr captures(none) %p) {HELPER} {{
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
