"""Machine code that handles Python's objects: what native entries are written with.

`PythonCode` writes a function that gives an object: calls of the C interface, tests, and the ways out. Code goes to the
label `misfit` where arguments are not those it was written for, and to `failed` where an exception is set. Objects whose
addresses stand in the code are in `kept`, and must live as long as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeless.backends.cpu.python_objects import address
from tapeless.backends.llvm import host
from tapeless.backends.llvm.writer import Module, Writer


class PythonCode:
    def __init__(self) -> None:
        self.module = Module(host.host())
        self.w = Writer(self.module)
        self.kept: list[Any] = []

    # -- objects

    def object_at(self, value: Any) -> str:
        self.kept.append(value)
        return f"inttoptr (i64 {id(value)} to ptr)"

    def call(self, kind: str, function: str, *args: str) -> str:
        """Of Python's C interface, or of NumPy's."""
        return self.call_at(kind, address(function), *args)

    def call_at(self, kind: str, place: int, *args: str) -> str:
        call = f"call {kind} inttoptr (i64 {place} to ptr)({', '.join(args)})"
        if kind == "void":
            self.w.do(call)
            return ""
        return self.w.let(call)

    def call_object(self, function: Callable[..., Any]) -> str:
        return self.call("ptr", "PyObject_CallNoArgs", f"ptr {self.object_at(function)}")

    def held(self, pointer: str) -> str:
        self.call("void", "Py_IncRef", f"ptr {pointer}")
        return pointer

    def dropped(self, pointer: str) -> None:
        self.call("void", "Py_DecRef", f"ptr {pointer}")

    def same(self, a: str, b: str) -> str:
        return self.w.let(f"icmp eq ptr {a}, {b}")

    def field(self, pointer: str, offset: int, kind: str) -> str:
        return self.w.let(f"load {kind}, ptr {self.w.gep('i8', pointer, str(offset))}")

    # -- ways

    def need(self, condition: str, otherwise: str = "misfit") -> None:
        go_on = self.w.label("fits")
        self.w.branch(condition, go_on, otherwise)
        self.w.open(go_on)

    def checked(self, pointer: str) -> str:
        """An object, unless an exception came instead."""
        self.need(self.w.let(f"icmp ne ptr {pointer}, null"), "failed")
        return pointer

    @contextmanager
    def where(self, condition: str, otherwise: Callable[[], None] | None = None) -> Iterator[None]:
        """What is written inside runs under the condition. Where it does not hold, a function of Python may be called."""
        w = self.w
        inside, outside, done = w.label("inside"), w.label("outside"), w.label("done")
        w.branch(condition, inside, outside)
        w.open(outside)
        if otherwise is not None:
            self.dropped(self.checked(self.call_object(otherwise)))
        w.jump(done)
        w.open(inside)
        yield
        w.jump(done)
        w.open(done)
