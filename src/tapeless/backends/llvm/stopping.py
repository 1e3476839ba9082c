"""The way out of a function in the middle of a loop: what it holds is freed, and nothing else is needed.

Takes the function being written. `begin` and `end` write the beginning and the label `stopped`; `note` keeps where the
heap buffers are.

Note [Stopping]
Polls are put into the loops after LLVM has optimised them (Note [Polls] in polls.py), where the pointers of heap
buffers are in registers, if at all. So each function that has loops also writes them into a frame: memory of its own,
by volatile stores, which LLVM leaves alone. They are next to the allocations and frees, outside of the hot loops.
Behind `stopped` the frame alone says what to free. The label is reached from the beginning of the function, if the call
has failed already, so that it depends on nothing that comes later; polls jump there from anywhere.
"""

from __future__ import annotations

from tapeless.backends.llvm import flushing, heap
from tapeless.backends.llvm.code import Code
from tapeless.backends.llvm.writer import LIKELY, UNLIKELY
from tapeless.ir.target import Target
from tapeless.lower.ir.loopir import For, While
from tapeless.lower.ir.walk import Block, walk

LOOPS = (For, While)


def begin(code: Code, block: Block) -> None:
    """For these statements, once the error record is known and the setting of arithmetic is saved."""
    if code.module.target.kind != Target.cpu or not any(isinstance(stm, LOOPS) for stm in walk(block)):
        return
    w = code.w
    code.module.externals |= {"rt_poll", "rt_watched"}
    code.can_fail = True
    code.frame = w.fresh("frame")
    go = w.label("go")
    error = w.let(f"load volatile i64, ptr {code.err}, align 8")
    w.branch(w.let(f"icmp eq i64 {error}, 0"), go, "stopped", w.weights(LIKELY, UNLIKELY))
    w.open(go)


def finish(code: Code, given: int = 0, given_count: int = 0) -> None:
    """Frees what is left, on the ordinary way out and on that of an error, which gives nothing to the caller."""
    w = code.w
    w.jump("cleanup")
    if code.can_fail:
        w.open("failed")
        for k in range(given_count):
            slot = w.slot("%results", given + k)
            heap.free_slot(code, slot)
            w.do(f"store ptr null, ptr {slot}, align 8")
        w.jump("cleanup")
    w.open("cleanup")
    if code.frame and code.framed == len(code.heap):
        _release(code, code.frame, code.framed)
    else:
        for slot in code.heap.values():
            heap.free_slot(code, slot)
    flushing.end(w, code.control)
    w.do("ret void")
    _end(code, given, given_count)


def _end(code: Code, given: int, given_count: int) -> None:
    """The label, and the frame as large as it became."""
    if not code.frame:
        return
    w = code.w
    size = max(1, code.framed)
    clear = code.module.intrinsic("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
    w.allocas[:0] = [
        f"  {code.frame} = alloca [{size} x ptr], align 8",
        f"  call void {clear}(ptr align 8 {code.frame}, i8 0, i64 {8 * size}, i1 true)",
    ]
    w.open("stopped")
    w.let(f"load volatile ptr, ptr {code.frame}, align 8")  # without it the block would become one with others
    _release(code, code.frame, code.framed)
    if given_count:
        _release(code, w.slot("%results", given), given_count)
    flushing.end(w, code.control)
    w.do("ret void")


def _release(code: Code, pointers: str, count: int) -> None:
    if count:
        release = code.module.routine("tapeless.release", "rt_drop_all", "void @(ptr, i64) nounwind")
        code.w.do(f"call void {release}(ptr {pointers}, i64 {count})")
