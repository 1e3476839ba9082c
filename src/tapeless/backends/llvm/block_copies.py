"""Loops that copy or clear a run of cells: one call of the C library.

`as_call` takes a loop and writes the call, or says that the loop is no such one. LLVM would find most of them itself, after passes
over loops that take far longer.

Iterations are independent of each other. So two runs of one buffer are apart, or they are the same run, and it does not matter that
the loop writes a cell before it reads the next one, and the call may not.
"""

from __future__ import annotations

import math

from tapeless.backends.llvm.code import Code
from tapeless.ir.target import Target
from tapeless.ir.types import Atom, Const, Var
from tapeless.lower.ir.loopir import Buffer, For, Let, Load, Store, Tag


def as_call(code: Code, loop: For) -> bool:
    if code.module.target.kind != Target.cpu or loop.tag == Tag.seq or loop.step != 1:
        return False
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const):
        return False  # LLVM unrolls it
    read, write = _read_and_write(loop)
    if write is None or not _is_run(loop, write.index) or (read is not None and not _is_run(loop, read.index)):
        return False
    w = code.w
    lo, hi = code.index(loop.lo), code.index(loop.hi)
    count = w.intrinsic("smax", "i64", hi if lo == "0" else w.let(f"sub nsw i64 {hi}, {lo}"), "0")
    size = w.let(f"mul nuw nsw i64 {count}, {write.buffer.dtype.bytes}")
    target = _address(code, loop, write.buffer, write.index)
    if read is None:
        clear = code.module.intrinsic("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
        w.do(f"call void {clear}({target}, i8 0, i64 {size}, i1 false)")
        return True
    source = _address(code, loop, read.buffer, read.index)
    name = "llvm.memmove.p0.p0.i64" if read.buffer is write.buffer else "llvm.memcpy.p0.p0.i64"
    copy = code.module.intrinsic(name, "void", "ptr, ptr, i64, i1")
    w.do(f"call void {copy}({target}, {source}, i64 {size}, i1 false)")
    return True


def _read_and_write(loop: For) -> tuple[Load | None, Store | None]:
    """What is copied and to where; or where zeros are written."""
    body = [s for s in loop.body if not (isinstance(s, Let) and s.op == "add")]
    match body:
        case [Load() as read, Store() as write] if write.value is read.var and read.buffer.dtype is write.buffer.dtype:
            return read, write
        case [Store(value=Const(value=value)) as write] if _is_clear(value):
            return None, write
    return None, None


def _is_clear(value: complex) -> bool:
    """Has it no bit set?"""
    return not value and math.copysign(1.0, value.real) > 0 and math.copysign(1.0, value.imag) > 0


def _is_run(loop: For, index: Atom) -> bool:
    """Does it go up by one?"""
    return index is loop.var or _start(loop, index) is not None


def _start(loop: For, index: Atom) -> Atom | None:
    """What is added to the number of the iteration."""
    made = {s.var: s for s in loop.body if isinstance(s, Let)}
    step = made.get(index) if isinstance(index, Var) else None
    match step:
        case Let(op="add", args=(a, b), exact=True) if b is loop.var and a is not loop.var and a not in made:
            return a
        case Let(op="add", args=(b, a), exact=True) if b is loop.var and a is not loop.var and a not in made:
            return a
    return None


def _address(code: Code, loop: For, buffer: Buffer, index: Atom) -> str:
    """Of the first cell."""
    lo, start = code.index(loop.lo), _start(loop, index)
    first = lo if start is None else code.index(start)
    if start is not None and lo != "0":
        first = code.w.let(f"add nsw i64 {first}, {lo}")
    kind = f"[{buffer.dtype.bytes} x i8]"
    return f"ptr align {buffer.dtype.real.bytes} {code.w.gep(kind, code.pointer(buffer), first)}"
