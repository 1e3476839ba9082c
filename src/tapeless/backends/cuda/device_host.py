"""What writes the host of a program for a GPU: the table that it gets, the driver's answers, and memory.

Arrays are pointers of the device; the host hands them on, and never follows them. In the place of the number of threads the
entry gets the address of a table: the record of errors that kernels write, handles of cuBLAS and cuSOLVER, and those of
the kernels.

Note [Errors of kernels]
A kernel that fails leaves a record on the device (Note [Entry] in backends/llvm/emit.py). The host copies it before it
looks at a number of the device, and at the end, if any kernel can fail; then it leaves with that record. Kernels that
come after it in between do nothing (Note [Threads of a kernel] in backends/llvm/ptx.py).
"""

from __future__ import annotations

from tapeless.backends.llvm import errors
from tapeless.backends.llvm.code import Code
from tapeless.backends.llvm.heap import OUT_OF_MEMORY, ROUTINE
from tapeless.backends.llvm.writer import Module
from tapeless.lower.ir.loopir import CHECK_RECORD

DRIVER_FAILED = -3  # an error code: the driver refused, with its own code
FIRST_KERNEL = 3  # in the table
MANAGED = "tapeless.allocate_managed"


class DeviceHost(Code):
    """Writes functions of the host of a GPU."""

    @classmethod
    def prepare(cls, module: Module) -> None:
        """Memory of arrays comes from the device."""
        module.helper(
            "tapeless.allocate", lambda: _allocate_helper(module, "tapeless.allocate", "cuMemAllocAsync", "ptr")
        )
        module.helper(MANAGED, lambda: _allocate_helper(module, MANAGED, "cuMemAllocManaged", "i32"))
        module.helper("tapeless.free", lambda: _free_helper(module))
        module.helper("tapeless.release", _release_helper)

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
        fail = errors.failing(self.module)
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
        if not self.shared.kernels_can_fail:
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


def _allocate_helper(module: Module, name: str, driver: str, last: str) -> str:
    """`last` is the type of what comes behind the size: the stream, or who may look at the memory (all)."""
    fail = errors.failing(module)
    allocate = module.declare(driver, f"i32 @(ptr, i64, {last}) nounwind")
    return f"""
define internal noalias ptr @{name}(i64 %count, i64 %each, ptr %err) noinline {ROUTINE} {{
  %found = alloca ptr, align 8
  store ptr null, ptr %found, align 8
  %none = icmp slt i64 %count, 0
  %n = select i1 %none, i64 0, i64 %count
  %bytes = mul i64 %n, %each
  %size = add i64 %bytes, 8
  %code = call i32 {allocate}(ptr %found, i64 %size, {"ptr null" if last == "ptr" else "i32 1"})
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
    other = module.declare("cuMemFree", "i32 @(ptr) nounwind")  # of memory that is not of the pool
    return f"""
define internal void @tapeless.free(ptr captures(none) %p) noinline {ROUTINE} {{
  %nothing = icmp eq ptr %p, null
  br i1 %nothing, label %done, label %release
release:
  %code = call i32 {free}(ptr %p, ptr null)
  %managed = icmp ne i32 %code, 0
  br i1 %managed, label %other, label %done
other:
  %again = call i32 {other}(ptr %p)
  br label %done
done:
  ret void
}}"""


def _release_helper() -> str:
    """Frees a run of pointers."""
    return """
define internal void @tapeless.release(ptr %pointers, i64 %count) noinline cold nounwind {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr inbounds ptr, ptr %pointers, i64 %k
  %p = load volatile ptr, ptr %place, align 8
  call void @tapeless.free(ptr %p)
  store volatile ptr null, ptr %place, align 8
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}"""
