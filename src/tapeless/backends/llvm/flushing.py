"""Numbers too small to be normal count as zero while code with `fastmath` runs.

`begin` and `end` write the change of the processor's setting at the start of a function and its undoing at the end.

Note [Tiny numbers as zero]
Arithmetic below the least normal number is exact to the last bit that there is, and on many processors a hundred times
slower. `fastmath` gives it up: results and operands there are zero. The setting belongs to a thread, so each function
that a thread enters sets it, and puts back what it found: Python never sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapeless.backends.llvm.writer import Writer

MXCSR_ZEROS = 0x8040  # flush results to zero, take operands as zero
FPCR_ZEROS = 1 << 24

# For runtimes that are written as text, by machine: what they declare; code that saves the setting of a thread, sets that of the
# standard, and puts the saved one back. `%control` and `%saved` are allocas of 32 bits, made before.
DECLARED = {
    "x86_64": "declare void @llvm.x86.sse.ldmxcsr(ptr)\ndeclare void @llvm.x86.sse.stmxcsr(ptr)",
    "aarch64": "declare void @llvm.aarch64.set.fpcr(i64)\ndeclare i64 @llvm.aarch64.get.fpcr()",
}
SAVE = {
    "x86_64": "call void @llvm.x86.sse.stmxcsr(ptr %saved)",
    "aarch64": "%found = call i64 @llvm.aarch64.get.fpcr()",
}
RESET = {
    "x86_64": "store i32 8064, ptr %control\n  call void @llvm.x86.sse.ldmxcsr(ptr %control)",
    "aarch64": "call void @llvm.aarch64.set.fpcr(i64 0)",
}
RESTORE = {
    "x86_64": "call void @llvm.x86.sse.ldmxcsr(ptr %saved)",
    "aarch64": "call void @llvm.aarch64.set.fpcr(i64 %found)",
}


def begin(w: Writer) -> str:
    """The setting that was found, for `end`; empty where nothing is set."""
    if w.target.triple.startswith("x86_64"):
        before, during = w.alloca("i32", "control"), w.alloca("i32", "control")
        w.do(f"call void {w.module.intrinsic('llvm.x86.sse.stmxcsr', 'void', 'ptr')}(ptr {before})")
        zeros = w.let(f"or i32 {w.let(f'load i32, ptr {before}, align 4')}, {MXCSR_ZEROS}")
        w.do(f"store i32 {zeros}, ptr {during}, align 4")
        w.do(f"call void {w.module.intrinsic('llvm.x86.sse.ldmxcsr', 'void', 'ptr')}(ptr {during})")
        return before
    if w.target.triple.startswith("aarch64"):
        before = w.let(f"call i64 {w.module.intrinsic('llvm.aarch64.get.fpcr', 'i64', '')}()")
        _set_fpcr(w, w.let(f"or i64 {before}, {FPCR_ZEROS}"))
        return before
    return ""


def end(w: Writer, before: str) -> None:
    if not before:
        return
    if w.target.triple.startswith("x86_64"):
        w.do(f"call void {w.module.intrinsic('llvm.x86.sse.ldmxcsr', 'void', 'ptr')}(ptr {before})")
    else:
        _set_fpcr(w, before)


def _set_fpcr(w: Writer, value: str) -> None:
    w.do(f"call void {w.module.intrinsic('llvm.aarch64.set.fpcr', 'void', 'i64')}(i64 {value})")
