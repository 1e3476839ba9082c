"""The host of a program for a GPU as LLVM IR: the rules for what has to do with the device.

Gives `DeviceHost` with its rules: launches, single elements of arrays, and calls of libraries.
"""

from __future__ import annotations

from collections import ChainMap

from tapeless.backends.cuda.device_host import FIRST_KERNEL, MANAGED, DeviceHost
from tapeless.backends.cuda.library_calls import write_call
from tapeless.backends.llvm.heap import allocate_by
from tapeless.backends.llvm.ptx import EACH_THREAD, is_short, kernels_of
from tapeless.backends.llvm.rules import RULES
from tapeless.backends.llvm.writer import MEMORY
from tapeless.lower.ir.loopir import (
    Alloc,
    Atomic,
    Buffer,
    Call,
    Kernel,
    Launch,
    Load,
    Space,
    Store,
    Wait,
)
from tapeless.lower.ir.walk import block_threads, is_blocked

THREADS = 128  # in a block, where they have nothing to do with each other
FEW_THREADS = 32  # where there are few, so that all processors have some
FEW = 1 << 14  # iterations: as many blocks of THREADS as a large GPU has processors
SEEN = (Space.stack, Space.managed)  # by the host itself
MANY = 1 << 18  # iterations that fill a GPU: from there on threads have several


def _launch(code: DeviceHost, stm: Launch) -> None:
    w, kernel = code.w, stm.kernel
    loop = kernel.loop
    lo, hi = code.index(loop.lo), code.index(loop.hi)
    assert loop.step == 1, "loops of a grid count up"
    count = w.let(f"sub nsw i64 {hi}, {lo}")
    run, done = w.label("launch"), w.label("launched")
    w.branch(w.let(f"icmp sgt i64 {count}, 0"), run, done)
    w.open(run)
    slots = [slot for param in kernel.params for slot in _argument(code, param)]
    record = code.handle(0)
    slots += [_slot(code, "i64", lo), _slot(code, "i64", count), _slot(code, "ptr", record)]
    table = w.alloca(f"[{len(slots)} x ptr]", "arguments")
    for k, slot in enumerate(slots):
        w.do(f"store ptr {slot}, ptr {w.gep('ptr', table, str(k))}, align 8")
    blocks, threads = count, str(block_threads(loop))
    if not is_blocked(loop):
        few = w.let(f"icmp slt i64 {count}, {FEW}")
        threads = w.let(f"select i1 {few}, i32 {FEW_THREADS}, i32 {THREADS}")
        each = w.let(f"select i1 {few}, i64 {FEW_THREADS}, i64 {THREADS}")
        if is_short(kernel):
            many = w.let(f"icmp sgt i64 {count}, {MANY}")
            each = w.let(f"select i1 {many}, i64 {EACH_THREAD * THREADS}, i64 {each}")
        more = w.let(f"add nsw i64 {count}, {each}")
        blocks = w.let(f"sdiv i64 {w.let(f'sub nsw i64 {more}, 1')}, {each}")
    grid = w.let(f"trunc i64 {blocks} to i32")
    launch = code.module.declare(
        "cuLaunchKernel", "i32 @(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr) nounwind"
    )
    handle = code.handle(FIRST_KERNEL + _number(code, kernel))
    sizes = f"i32 {grid}, i32 1, i32 1, i32 {threads}, i32 1, i32 1, i32 0"
    code.tested(w.let(f"call i32 {launch}(ptr {handle}, {sizes}, ptr null, ptr {table}, ptr null)"))
    w.jump(done)
    w.open(done)


def _number(code: DeviceHost, kernel: Kernel) -> int:
    return [k.name for k in kernels_of(code.shared.program)].index(kernel.name)


def _slot(code: DeviceHost, kind: str, value: str) -> str:
    slot = code.w.alloca(kind, "argument")
    code.w.do(f"store {kind} {value}, ptr {slot}, align 8")
    return slot


def _argument(code: DeviceHost, param: object) -> list[str]:
    if isinstance(param, Buffer):
        return [_slot(code, "ptr", code.pointer(param))]
    dtype = param.type.dtype  # type: ignore[attr-defined]
    parts = code.to_memory(dtype, code.value(param))  # type: ignore[arg-type]
    return [_slot(code, MEMORY[dtype], part) for part in parts]


def _allocate(code: DeviceHost, stm: Alloc) -> None:
    helper = MANAGED if stm.buffer.space is Space.managed else "tapeless.allocate"
    allocate_by(code, stm, f"@{helper}")


def _load(code: DeviceHost, stm: Load) -> None:
    """One element: a copy that waits, unless the host sees the memory."""
    if stm.buffer.space in SEEN:
        RULES[Load](code, stm)
        return
    w, dtype = code.w, stm.buffer.dtype
    code.kernels_passed()
    copy = code.module.declare("cuMemcpyDtoH", "i32 @(ptr, ptr, i64) nounwind")
    parts = []
    for address in code.addresses(stm.buffer, stm.index):
        slot = w.alloca(MEMORY[dtype], "element")
        code.tested(w.let(f"call i32 {copy}(ptr {slot}, ptr {address}, i64 {dtype.real.bytes})"))
        parts.append(code.load_part(dtype, slot))
    code.values[stm.var] = code.from_memory(dtype, parts)


def _store(code: DeviceHost, stm: Store) -> None:
    if stm.buffer.space in SEEN:
        RULES[Store](code, stm)
        return
    w, dtype = code.w, stm.buffer.dtype
    copy = code.module.declare("cuMemcpyHtoD", "i32 @(ptr, ptr, i64) nounwind")
    value = code.to_memory(dtype, code.value(stm.value))
    for part, address in zip(value, code.addresses(stm.buffer, stm.index), strict=True):
        slot = _slot(code, MEMORY[dtype], part)
        code.tested(w.let(f"call i32 {copy}(ptr {address}, ptr {slot}, i64 {dtype.real.bytes})"))


def _combine(code: DeviceHost, stm: Atomic) -> None:
    assert stm.buffer.space in SEEN, f"the host combines in {stm.buffer.name} of the device"
    RULES[Atomic](code, stm)


def _wait(code: DeviceHost, stm: Wait) -> None:
    code.kernels_passed()
    wait = code.module.declare("cuCtxSynchronize", "i32 @() nounwind")
    code.tested(code.w.let(f"call i32 {wait}()"))


DeviceHost.rules = ChainMap(
    {Launch: _launch, Alloc: _allocate, Load: _load, Store: _store, Atomic: _combine, Call: write_call, Wait: _wait},
    RULES,
)


__all__ = ["DeviceHost"]
