"""LLVM IR as text: modules, functions, names, constants and metadata.

Gives `Module` and `Writer`, which know the syntax and nothing of Loop IR, and `Machine`, what the text is written for.
Text is several times faster to make than objects, and compile time is a feature.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tapeless.ir.target import Target
from tapeless.ir.types import Const, DType

Value = tuple[str, ...]  # the operands that make up a scalar: one, or the real and the imaginary part

REGISTER = {
    DType.bool: "i1", DType.i8: "i8", DType.u8: "i8", DType.i16: "i16", DType.u16: "i16",
    DType.i32: "i32", DType.u32: "i32", DType.i64: "i64", DType.u64: "i64",
    DType.f32: "float", DType.f64: "double", DType.c64: "float", DType.c128: "double",
}  # fmt: skip
MEMORY = REGISTER | {DType.bool: "i8"}  # of one component
SUFFIX = {"float": "f32", "double": "f64"}  # in the names of intrinsics; others are called as their type
LIKELY, UNLIKELY = 1 << 20, 1  # weights of branches
PURE = "memory(none) nounwind willreturn nofree nosync"


@dataclass(frozen=True)
class Machine:
    """What the emitter must know of a machine.

    `variants` gives the vector forms of a C library function: (name, lanes) pairs, the widest first.
    """

    kind: Target
    triple: str
    layout: str
    vector_width: int = 0
    variants: Callable[[str, int], Sequence[tuple[str, int]]] = field(default=lambda name, arity: ())


@dataclass(frozen=True)
class Bounds:
    """lo, lo + step, ... below hi, or above it when the step is negative (`down`)."""

    kind: str
    lo: str
    hi: str
    step: str = "1"
    down: bool = False


def literal(value: complex | np.generic, dtype: DType) -> Value:
    if dtype is DType.bool:
        return ("true" if value else "false",)
    if dtype.is_int:
        return (str(int(value.real)),)
    if dtype.is_complex:
        value = complex(value)
        return (*literal(value.real, dtype.real), *literal(value.imag, dtype.real))
    number = float(value.real)
    if dtype is DType.f32:
        with np.errstate(over="ignore"):
            number = float(np.float32(number))
    return ("0x" + struct.pack(">d", number).hex().upper(),)


def constant(atom: Const) -> Value:
    return literal(atom.value, atom.dtype)


def symbol(name: str) -> str:
    """A global name, quoted where its characters ask for it."""
    return f"@{name}" if name.replace(".", "_").isidentifier() and name.isascii() else f'@"{_escaped(name)}"'


def _escaped(text: str) -> str:
    return "".join(c if 32 <= b < 127 and c not in '"\\' else f"\\{b:02X}" for b, c in _bytes(text))


def _bytes(text: str) -> Iterable[tuple[int, str]]:
    return ((b, chr(b)) for b in text.encode())


NODE = re.compile(r"!\d+")
NAMED = re.compile(r"!(alias\.scope|noalias|llvm\.access\.group|llvm\.loop) (!\d+)")


@dataclass(frozen=True)
class Defined:
    """A function of a module. `header` is what stands before its body, `define` and its linkage apart."""

    name: str
    header: str
    body: str
    internal: bool
    plain: bool = False  # Note [Code that runs once]

    def text(self, visible: bool = False) -> str:
        linkage = "internal " if self.internal and not visible else ""
        return f"define {linkage}{self.header} {{\n{self.body}\n}}\n"

    @property
    def declaration(self) -> str:
        return f"declare {self.header}"

    @property
    def length(self) -> int:
        return self.body.count("\n")


class Module:
    """Functions, declarations, metadata and attribute groups of one LLVM module. `externals` must be found at load."""

    def __init__(self, target: Machine) -> None:
        self.target = target
        self.externals: set[str] = set()
        self._declarations: dict[str, str] = {}
        self._definitions: dict[str, str] = {}  # helper functions, by name
        self.functions: list[Defined] = []
        self.completed: Callable[[Defined], None] = lambda function: None  # is told of each of them
        self.metadata: list[str] = []
        self._shared: dict[str, str] = {}
        self._attributes: dict[str, str] = {}
        self._strings: dict[str, str] = {}
        self._shared_memory: list[str] = []
        self._kept: dict[str, None] = {}
        self._alike: dict[str, str] = {}  # functions by what they do

    def declare(self, name: str, text: str, external: bool = True) -> str:
        """`text` holds @ in place of the name."""
        if name not in self._declarations:
            self._declarations[name] = "declare " + text.replace("@", symbol(name), 1)
            if external:
                self.externals.add(name)
        return symbol(name)

    def intrinsic(self, name: str, result: str, params: str) -> str:
        if name not in self._declarations:
            self._declarations[name] = f"declare {result} @{name}({params})"
        return f"@{name}"

    def helper(self, name: str, text: Callable[[], str]) -> str:
        """A small internal function, defined once."""
        if name not in self._definitions:
            self._definitions[name] = ""
            self._definitions[name] = text()
        return symbol(name)

    def routine(self, own: str, name: str, text: str) -> str:
        """The helper `own` where the module has one, or else a function of the run time, as `declare` takes it."""
        return symbol(own) if own in self._definitions else self.declare(name, text)

    def add(self, name: str, header: str, body: str, internal: bool = False, plain: bool = False) -> None:
        """`name` as LLVM writes it."""
        self.functions.append(Defined(name, header, body, internal, plain))
        self.completed(self.functions[-1])

    def names(self) -> set[str]:
        """What its functions may mention so far."""
        declared = map(symbol, (*self._declarations, *self._definitions))
        return {*declared, *self._strings.values(), *(f.name for f in self.functions)}

    def function(self, name: str, params: str, attributes: str, body: str, plain: bool = False) -> str:
        """An internal function, or the one before it that does the same: only names of scopes, of groups of accesses
        and of loops may differ, as long as the same ones are the same.
        """
        numbers: dict[str, int] = {}

        def number(found: re.Match[str]) -> str:
            return f"!#{numbers.setdefault(found[0], len(numbers))}"

        def canonical(found: re.Match[str]) -> str:
            text = self.metadata[int(found[2][1:])] if found[1] == "llvm.loop" else found[2]
            return f"!{found[1]} {NODE.sub(number, text)}"

        key = f"{params} {attributes} {NAMED.sub(canonical, body)}"
        known = self._alike.get(key)
        if known is None:
            known = self._alike[key] = symbol(name)
            self.add(known, f"void {known}({params}) {attributes}", body, internal=True, plain=plain)
        return known

    def node(self, text: str, distinct: bool = False) -> str:
        """A metadata node; equal ones are one unless `distinct`. `@self` stands for the node itself."""
        if not distinct and text in self._shared:
            return self._shared[text]
        name = f"!{len(self.metadata)}"
        self.metadata.append(("distinct " if distinct else "") + f"!{{{text.replace('@self', name)}}}")
        if not distinct:
            self._shared[text] = name
        return name

    def attributes(self, text: str) -> str:
        return self._attributes.setdefault(text, f"#{len(self._attributes)}")

    def text(self, value: str) -> str:
        """A constant C string."""
        return self._strings.setdefault(value, f"@.text.{len(self._strings)}")

    def shared_memory(self, hint: str, kind: str) -> str:
        """A buffer that the threads of a GPU block share."""
        name = f"@{_hint(hint)}.shared.{len(self._shared_memory)}"
        self._shared_memory.append(f"{name} = internal addrspace(3) global {kind} undef, align 16")
        return name

    def keep(self, name: str) -> None:
        """Keeps a declaration that only an attribute mentions."""
        self._kept[name] = None

    def __str__(self) -> str:
        return self.assembled([f.text() for f in self.functions], range(len(self.metadata)))

    def assembled(self, functions: Iterable[str], nodes: Iterable[int]) -> str:
        """A module of these functions and nodes of metadata, with all that the functions of this one share."""
        parts = [f'target datalayout = "{self.target.layout}"\ntarget triple = "{self.target.triple}"\n']
        for value, name in self._strings.items():
            data = _escaped(value)
            parts.append(f'{name} = private unnamed_addr constant [{len(value.encode()) + 1} x i8] c"{data}\\00"')
        if self._kept:
            names = ", ".join(f"ptr {symbol(name)}" for name in self._kept)
            parts.append(
                f'@llvm.compiler.used = appending global [{len(self._kept)} x ptr] [{names}], section "llvm.metadata"'
            )
        parts += self._shared_memory
        parts += functions
        parts += self._definitions.values()
        parts += self._declarations.values()
        parts += (f"attributes {name} = {{ {text} }}" for text, name in self._attributes.items())
        parts += (f"!{k} = {self.metadata[k]}" for k in nodes)
        return "\n".join(parts) + "\n"


class Writer:
    """Writes one function, block after block. Allocas go to its entry block, cold blocks to its end."""

    def __init__(self, module: Module, flags: str = "contract ") -> None:
        self.module = module
        self.target = module.target
        self.flags = flags  # of the floating-point operations at hand
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.cold: list[str] = []
        self.block = "entry"
        self.calls = 0  # of library functions so far
        self.vector_math = bool(flags)  # whether they may become vector functions, which round in their own way
        self.in_place = False  # whether the operation at hand goes over its first operand
        self._names = 0

    def fresh(self, hint: str = "v") -> str:
        self._names += 1
        return f"%{_hint(hint)}.{self._names}"

    def label(self, hint: str) -> str:
        self._names += 1
        return f"{hint}.{self._names}"

    def let(self, text: str, hint: str = "v") -> str:
        self._names += 1
        name = f"%{_hint(hint)}.{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def open(self, label: str) -> None:
        self.lines.append(label + ":")
        self.block = label

    def jump(self, label: str, suffix: str = "") -> None:
        self.lines.append(f"  br label %{label}{suffix}")

    def branch(self, cond: str, yes: str, no: str, suffix: str = "") -> None:
        self.lines.append(f"  br i1 {cond}, label %{yes}, label %{no}{suffix}")

    def weights(self, yes: int, no: int) -> str:
        return ", !prof " + self.module.node(f'!"branch_weights", i32 {yes}, i32 {no}')

    def alloca(self, kind: str, hint: str, align: int = 8) -> str:
        name = self.fresh(hint)
        self.allocas.append(f"  {name} = alloca {kind}, align {align}")
        return name

    # --- the instructions that the ops are made of ---

    def fp(self, op: str, kind: str, *args: str, exact: bool = False) -> str:
        """A floating-point instruction; `exact` ones take no fast-math flags."""
        return self.let(f"{op} {'' if exact else self.flags}{kind} {', '.join(args)}")

    def op(self, op: str, kind: str, *args: str) -> str:
        return self.let(f"{op} {kind} {', '.join(args)}")

    def select(self, cond: str, kind: str, yes: str, no: str) -> str:
        return self.let(f"select i1 {cond}, {kind} {yes}, {kind} {no}")

    def intrinsic(self, name: str, kind: str, *args: str, flags: str | None = None) -> str:
        suffix = SUFFIX.get(kind, kind)
        callee = self.module.intrinsic(f"llvm.{name}.{suffix}", kind, ", ".join([kind] * len(args)))
        given = flags if flags is not None else (self.flags if kind in ("float", "double") else "")
        return self.let(f"call {given}{kind} {callee}({', '.join(f'{kind} {a}' for a in args)})")

    def gep(self, kind: str, pointer: str, index: str) -> str:
        return self.let(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {index}")

    def slot(self, pointer: str, k: int) -> str:
        """The address of the k-th of a run of 8-byte slots."""
        return pointer if k == 0 else self.gep("i64", pointer, str(k))

    def body(self) -> str:
        return "\n".join(["entry:", *self.allocas, "  br label %start", *self.lines, *self.cold])


@functools.lru_cache(4096)
def _hint(hint: str) -> str:
    return hint if hint.isascii() and hint.replace(".", "_").isidentifier() else "v"
