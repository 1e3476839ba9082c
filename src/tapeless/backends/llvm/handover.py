"""What a function of its own takes from the code around it: a context of 8-byte slots.

`Context` fills the slots outside and reads them inside: values, pointers, and addresses of scalars that change.
"""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.backends.llvm.code import Code
from tapeless.backends.llvm.writer import MEMORY
from tapeless.ir.types import Var
from tapeless.lower.ir.loopir import LARGEST_SIZE, Buffer


class Context:
    """The inner function has it as `%context`. The error record goes along first."""

    def __init__(self, outer: Code, inner: Code) -> None:
        self.outer, self.inner, self.used = outer, inner, 0
        self.address = outer.w.fresh("context")
        module, program = inner.w.module, outer.shared.program
        self.sizes = set(program.params[: program.sizes])
        self.invariant = ", !invariant.load " + module.node("")
        self.size = ", !range " + module.node(f"i64 0, i64 {LARGEST_SIZE + 1}")
        inner.w.open("start")
        inner.err = self.slot("ptr", outer.err)

    def slot(self, kind: str, value: str, more: str = "") -> str:
        if not value.startswith("%"):
            return value  # a constant
        ow, iw = self.outer.w, self.inner.w
        ow.do(f"store {kind} {value}, ptr {ow.slot(self.address, self.used)}, align 8")
        place = iw.slot("%context", self.used)
        self.used += 1
        return iw.let(f"load {kind}, ptr {place}, align 8{self.invariant}{more}")

    def values(self, scalars: Iterable[Var]) -> None:
        for var in scalars:
            dtype = var.type.dtype
            more = self.size if var in self.sizes else ""
            parts = self.outer.to_memory(dtype, self.outer.value(var))
            self.inner.values[var] = self.inner.from_memory(
                dtype, [self.slot(MEMORY[dtype], part, more) for part in parts]
            )

    def pointers(self, buffers: Iterable[Buffer]) -> None:
        for buffer in buffers:
            self.inner.pointers[buffer] = self.slot("ptr", self.outer.pointer(buffer))

    def close(self) -> None:
        """To be called once all is handed over."""
        self.outer.w.allocas.append(f"  {self.address} = alloca [{self.used} x i64], align 8")
