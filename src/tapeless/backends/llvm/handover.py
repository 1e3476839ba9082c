"""What a function of its own takes from the code around it: values, pointers, and addresses of scalars that change.

A piece takes them as `Arguments`. A kernel, which the parallel runtime calls, has one pointer to a `Context` of 8-byte
slots, which are filled outside and read inside. The error record goes along first.
"""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.backends.llvm.code import Code
from tapeless.backends.llvm.writer import REGISTER
from tapeless.ir.types import Var
from tapeless.lower.ir.loopir import LARGEST_SIZE, Buffer


class Handover:
    """Subclasses say how one value gets into the inner function."""

    def __init__(self, outer: Code, inner: Code) -> None:
        self.outer, self.inner = outer, inner
        program = outer.shared.program
        self.sizes = set(program.params[: program.sizes])
        inner.w.open("start")
        inner.err = self.slot("ptr", outer.err)

    def slot(self, kind: str, value: str, is_size: bool = False) -> str:
        """What the value is inside; a constant is the same there."""
        return self._hand(kind, value, is_size) if value.startswith("%") else value

    def _hand(self, kind: str, value: str, is_size: bool) -> str:
        raise NotImplementedError

    def values(self, scalars: Iterable[Var]) -> None:
        for var in scalars:
            kind, is_size = REGISTER[var.type.dtype], var in self.sizes
            self.inner.values[var] = tuple(self.slot(kind, part, is_size) for part in self.outer.value(var))

    def pointers(self, buffers: Iterable[Buffer]) -> None:
        for buffer in buffers:
            self.inner.pointers[buffer] = self.slot("ptr", self.outer.pointer(buffer))


class Arguments(Handover):
    def __init__(self, outer: Code, inner: Code) -> None:
        self.given: list[str] = []
        self.taken: list[str] = []
        super().__init__(outer, inner)

    def _hand(self, kind: str, value: str, is_size: bool) -> str:
        name = self.inner.w.fresh("given")
        self.given.append(f"{kind} {value}")
        self.taken.append(f"{kind} range(i64 0, {LARGEST_SIZE + 1}) {name}" if is_size else f"{kind} {name}")
        return name


class Context(Handover):
    """The inner function has it as `%context`."""

    def __init__(self, outer: Code, inner: Code) -> None:
        self.used = 0
        self.address = outer.w.fresh("context")
        module = inner.w.module
        self.invariant = ", !invariant.load " + module.node("")
        self.size = ", !range " + module.node(f"i64 0, i64 {LARGEST_SIZE + 1}")
        super().__init__(outer, inner)

    def _hand(self, kind: str, value: str, is_size: bool) -> str:
        ow, iw = self.outer.w, self.inner.w
        stored, value = ("i8", ow.let(f"zext i1 {value} to i8")) if kind == "i1" else (kind, value)
        ow.do(f"store {stored} {value}, ptr {ow.slot(self.address, self.used)}, align 8")
        place = iw.slot("%context", self.used)
        self.used += 1
        found = iw.let(f"load {stored}, ptr {place}, align 8{self.invariant}{self.size if is_size else ''}")
        return iw.let(f"icmp ne i8 {found}, 0") if kind == "i1" else found

    def close(self) -> None:
        """To be called once all is handed over."""
        self.outer.w.allocas.append(f"  {self.address} = alloca [{self.used} x i64], align 8")
