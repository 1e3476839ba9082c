"""The host of a program for a GPU as LLVM IR: launches, and memory of the device.

Gives `DeviceHost`, a `Code` with rules of its own for what has to do with the device. Arrays are pointers of the device;
the host hands them on, and never follows them. In the place of the number of threads the entry gets the address of a
table: the record of errors that kernels write, handles of cuBLAS and cuSOLVER, and those of the kernels.

Note [Errors of kernels]
A kernel that fails leaves a record on the device (Note [Entry] in backends/llvm/emit.py). The host copies it before it
looks at a number of the device, and at the end, if any kernel can fail; then it leaves with that record.
"""

from __future__ import annotations

from collections import ChainMap

from tapeless.backends.cuda.libraries import write_call
from tapeless.backends.llvm import errors
from tapeless.backends.llvm.code import Code
from tapeless.backends.llvm.heap import HELPER, OUT_OF_MEMORY
from tapeless.backends.llvm.ptx import is_blocked
from tapeless.backends.llvm.rules import RULES
from tapeless.backends.llvm.writer import MEMORY, Module
from tapeless.lower.ir.loopir import (
    BLOCK_THREADS,
    CHECK_RECORD,
    Atomic,
    Buffer,
    Call,
    Check,
    Kernel,
    Launch,
    Load,
    Program,
    Space,
    Store,
)
from tapeless.lower.ir.walk import walk

DRIVER_FAILED = -3  # an error code: the driver refused, with its own code
FIRST_KERNEL = 3  # in the table
THREADS = 128  # in a block, where they have nothing to do with each other


class DeviceHost(Code):
    """Writes functions of the host of a GPU."""

    @classmethod
    def prepare(cls, module: Module) -> None:
        """Memory of arrays comes from the device."""
        module.helper("tapeless.allocate", lambda: _allocate_helper(module))
        module.helper("tapeless.free", lambda: _free_helper(module))

    def end(self) -> None:
        self.kernels_passed()

    def handle(self, number: int) -> str:
        """An entry of the table."""
        (number_of_threads,) = self.value(self.shared.program.threads)
        table = self.w.let(f"inttoptr i64 {number_of_threads} to ptr")
        return self.w.let(f"load ptr, ptr {self.w.gep('ptr', table, str(number))}, align 8")

    def tested(self, code: str) -> None:
        """Leaves if the driver refused."""
        w = self.w
        fail = self.module.helper("tapeless.fail", errors.fail_helper)
        bad, good = w.label("refused"), w.label("accepted")
        self.can_fail = True
        w.branch(w.let(f"icmp eq i32 {code}, 0"), good, bad)
        w.open(bad)
        wide = w.let(f"zext i32 {code} to i64")
        w.do(f"call void {fail}(ptr {self.err}, i64 {DRIVER_FAILED}, i64 {wide}, i64 0, i64 0)")
        w.jump("failed")
        w.open(good)

    def kernels_passed(self) -> None:
        """Note [Errors of kernels]"""
        if not can_fail(self.shared.program):
            return
        w = self.w
        copy = self.module.declare("cuMemcpyDtoH", "i32 @(ptr, ptr, i64) nounwind")
        record = self.handle(0)
        self.tested(w.let(f"call i32 {copy}(ptr {self.err}, ptr {record}, i64 {8 * CHECK_RECORD})"))
        error = w.let(f"load i64, ptr {self.err}, align 8")
        self.can_fail = True
        go = w.label("passed")
        w.branch(w.let(f"icmp eq i64 {error}, 0"), go, "failed")
        w.open(go)

    def leave_unless_memory(self, pointer: str) -> None:
        errors.leave_unless(self, self.w.let(f"icmp ne ptr {pointer}, null"))


def can_fail(program: Program) -> bool:
    return any(isinstance(s, Check) for l in walk(program.body) if isinstance(l, Launch) for s in walk(l.kernel.block))


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
    blocks, threads = count, BLOCK_THREADS
    if not is_blocked(kernel):
        threads = THREADS
        more = w.let(f"add nsw i64 {count}, {THREADS - 1}")
        blocks = w.let(f"sdiv i64 {more}, {THREADS}")
    grid = w.let(f"trunc i64 {blocks} to i32")
    launch = code.module.declare(
        "cuLaunchKernel", "i32 @(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr) nounwind"
    )
    handle = code.handle(FIRST_KERNEL + _number(code, kernel))
    sizes = f"i32 {grid}, i32 1, i32 1, i32 {threads}, i32 1, i32 1, i32 0"
    code.tested(w.let(f"call i32 {launch}(ptr {handle}, {sizes}, ptr null, ptr {table}, ptr null)"))
    w.jump(done)
    w.open(done)


def kernels_of(program: Program) -> list[Kernel]:
    """In the order of their handles."""
    return [s.kernel for s in walk(program.body) if isinstance(s, Launch)]


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


def _load(code: DeviceHost, stm: Load) -> None:
    """One element: a copy that waits."""
    if stm.buffer.space is Space.stack:
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
    if stm.buffer.space is Space.stack:
        RULES[Store](code, stm)
        return
    w, dtype = code.w, stm.buffer.dtype
    copy = code.module.declare("cuMemcpyHtoD", "i32 @(ptr, ptr, i64) nounwind")
    value = code.to_memory(dtype, code.value(stm.value))
    for part, address in zip(value, code.addresses(stm.buffer, stm.index), strict=True):
        slot = _slot(code, MEMORY[dtype], part)
        code.tested(w.let(f"call i32 {copy}(ptr {address}, ptr {slot}, i64 {dtype.real.bytes})"))


def _combine(code: DeviceHost, stm: Atomic) -> None:
    raise AssertionError(f"the host combines in {stm.buffer.name} of the device")


def _call(code: DeviceHost, stm: Call) -> None:
    code.kernels_passed()
    write_call(code, stm)


DeviceHost.rules = ChainMap({Launch: _launch, Load: _load, Store: _store, Atomic: _combine, Call: _call}, RULES)


def _allocate_helper(module: Module) -> str:
    fail = module.helper("tapeless.fail", errors.fail_helper)
    allocate = module.declare("cuMemAllocAsync", "i32 @(ptr, i64, ptr) nounwind")
    return f"""
define internal noalias ptr @tapeless.allocate(i64 %count, i64 %each, ptr %err) {HELPER} {{
  %found = alloca ptr, align 8
  store ptr null, ptr %found, align 8
  %none = icmp slt i64 %count, 0
  %n = select i1 %none, i64 0, i64 %count
  %bytes = mul i64 %n, %each
  %size = add i64 %bytes, 8
  %code = call i32 {allocate}(ptr %found, i64 %size, ptr null)
  %bad = icmp ne i32 %code, 0
  br i1 %bad, label %failed, label %done
failed:
  store ptr null, ptr %found, align 8
  call void {fail}(ptr %err, i64 {OUT_OF_MEMORY}, i64 %size, i64 0, i64 0)
  br label %done
done:
  %p = load ptr, ptr %found, align 8
  ret ptr %p
}}"""


def _free_helper(module: Module) -> str:
    free = module.declare("cuMemFreeAsync", "i32 @(ptr, ptr) nounwind")
    return f"""
define internal void @tapeless.free(ptr captures(none) %p) {HELPER} {{
  %nothing = icmp eq ptr %p, null
  br i1 %nothing, label %done, label %release
release:
  %code = call i32 {free}(ptr %p, ptr null)
  br label %done
done:
  ret void
}}"""
