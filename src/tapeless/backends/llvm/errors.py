"""Tests of compiled code: where one fails, its number and what the message needs go into the error record.

Takes the function being written. An error leaves by the label `failed`; the first one of several threads counts.
"""

from __future__ import annotations

from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.writer import LIKELY, REGISTER, UNLIKELY, Module
from tapeless.ir.target import Target
from tapeless.ir.types import Const, DType
from tapeless.lower.ir.loopir import CHECK_RECORD, Check


@emits(Check)
def check(code: Code, stm: Check) -> None:
    if stm.cond == Const(True, DType.bool):
        return
    cond = code.value(stm.cond)[0]
    args = [(arg.type.dtype, code.value(arg)[0]) for arg in stm.args]
    if stm.fatal:
        fail_unless(code, cond, stm.site + 1, args)
    else:
        warn_unless(code, cond, stm.site + 1, args)


def fail_unless(code: Code, cond: str, number: int, args: list[tuple[DType, str]]) -> None:
    w = code.w
    ok, fail = w.label("ok"), w.label("fail")
    w.branch(cond, ok, fail, w.weights(LIKELY, UNLIKELY))
    hot, w.lines = w.lines, w.cold
    w.open(fail)
    record(code, code.err, number, args)
    w.jump("failed")
    w.lines = hot
    w.open(ok)
    code.can_fail = True


def leave_if_failed(code: Code) -> None:
    """After a call of a function that may have failed."""
    error = code.w.let(f"load i64, ptr {code.err}, align 8")
    out = "stopped" if code.frame else "failed"  # Note [Stopping]: it may have been anywhere
    leave_unless(code, code.w.let(f"icmp eq i64 {error}, 0"), out)


def leave_unless(code: Code, cond: str, out: str = "failed") -> None:
    """Where an error has been recorded already."""
    w, ok = code.w, code.w.label("ok")
    w.branch(cond, ok, out, w.weights(LIKELY, UNLIKELY))
    w.open(ok)
    code.can_fail = True


def warn_unless(code: Code, cond: str, number: int, args: list[tuple[DType, str]]) -> None:
    """The record of a warning comes after that of an error."""
    w = code.w
    ok, warn = w.label("ok"), w.label("warn")
    w.branch(cond, ok, warn, w.weights(LIKELY, UNLIKELY))
    w.open(warn)
    record(code, w.let(f"getelementptr inbounds i64, ptr {code.err}, i64 {CHECK_RECORD}"), number, args)
    w.jump(ok)
    w.open(ok)


def record(code: Code, place: str, number: int, args: list[tuple[DType, str]]) -> None:
    operands = "".join(f", i64 {bits(code, dtype, arg)}" for dtype, arg in args) + ", i64 0" * (3 - len(args))
    code.w.do(f"call void {failing(code.module)}(ptr {place}, i64 {number}{operands})")


def bits(code: Code, dtype: DType, value: str) -> str:
    w = code.w
    if dtype.is_float:
        value = w.let(f"fpext float {value} to double") if dtype is DType.f32 else value
        return w.let(f"bitcast double {value} to i64")
    if dtype.bytes == 8:
        return value
    return w.let(f"{'zext' if dtype is DType.bool or dtype.is_unsigned else 'sext'} {REGISTER[dtype]} {value} to i64")


def failing(module: Module) -> str:
    """What records an error: a GPU has its own, a CPU that of the run time (backends/cpu/interrupts.py)."""
    if module.target.kind == Target.ptx:
        return module.helper("tapeless.fail", lambda: RECORDING.format(linkage="internal ", name="tapeless.fail"))
    return module.declare("rt_fail", f"void @(ptr, i64, i64, i64, i64) cold {COLD}")


COLD = "nounwind willreturn memory(argmem: readwrite)"
# Nothing happens if another thread was first.
RECORDING = (
    "define {linkage}void @{name}(ptr %err, i64 %code, i64 %a, i64 %b, i64 %c) noinline cold "
    + COLD
    + """ {{
  %pair = cmpxchg ptr %err, i64 0, i64 %code acq_rel monotonic, align 8
  %first = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %first, label %record, label %exit
record:
  %p1 = getelementptr inbounds i64, ptr %err, i64 1
  store i64 %a, ptr %p1, align 8
  %p2 = getelementptr inbounds i64, ptr %err, i64 2
  store i64 %b, ptr %p2, align 8
  %p3 = getelementptr inbounds i64, ptr %err, i64 3
  store i64 %c, ptr %p3, align 8
  br label %exit
exit:
  ret void
}}"""
)
