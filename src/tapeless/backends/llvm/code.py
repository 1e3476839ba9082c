"""The statements of Loop IR as LLVM IR: what all rules have in common.

`Code` writes the statements of one function, `Shared` holds what the functions of a program share. Rules are in modules
of their own, and register themselves with `emits`.

Note [Alias scopes]
Each alias class (aliases.py) has a scope; an access names its own scope and that it does not overlap the others. A class
holds one buffer unless buffers are swapped. Accesses of a `simd` loop are in an access group that the loop declares
parallel; a buffer that lives inside one iteration stays out of it, since the iterations share its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tapeless.backends.llvm import flushing
from tapeless.backends.llvm.aliases import alias_classes
from tapeless.backends.llvm.in_place import extrema_in_place
from tapeless.backends.llvm.pieces import Piece, Pieces, Table
from tapeless.backends.llvm.writer import MEMORY, REGISTER, Module, Value, Writer, constant
from tapeless.ir.rules import Rules
from tapeless.ir.target import Target
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.loopir import (
    ALLOCATED,
    Buffer,
    For,
    Let,
    Program,
    Space,
    Stm,
)
from tapeless.lower.ir.walk import Block, kernels_can_fail

MARK = "tapeless.loop"  # for `Shared.mark`
MAX_SCOPES = 128


class Shared:
    """What all functions of a program share."""

    def __init__(
        self, program: Program, module: Module, numbers: Mapping[int, int] | None = None, entry: bool = False
    ) -> None:
        self.program, self.module = program, module
        self.numbers = numbers or {}  # of loops, by id
        self.flags = "" if program.strict else "fast " if program.fastmath else "contract "
        counts = Counts(program.body, scalars=False)
        self.mentions = counts.buffers
        self.classes = alias_classes(program.params, counts)
        self.regions = 0
        self.pieces = Pieces(program.body if module.target.kind == Target.cpu else (), entry)
        self._scopes: list[str] = []
        self._scope_text: dict[int, str] = {}
        number = len(set(self.classes.values()))
        if 1 < number <= MAX_SCOPES:
            domain = module.node('@self, !"buffers"', distinct=True)
            self._scopes = [module.node(f"@self, {domain}", distinct=True) for _ in range(number)]

    @cached_property
    def kernels_can_fail(self) -> bool:
        return kernels_can_fail(self.program)

    def scopes(self, buffer: Buffer) -> str:
        """Metadata of an access: Note [Alias scopes]."""
        if not self._scopes:
            return ""
        k = self.classes[buffer]
        text = self._scope_text.get(k)
        if text is None:
            others = ", ".join(scope for j, scope in enumerate(self._scopes) if j != k)
            own, rest = self.module.node(self._scopes[k]), self.module.node(others)
            text = self._scope_text[k] = f", !alias.scope {own}, !noalias {rest}"
        return text

    def mark(self, loop: For) -> tuple[str, ...]:
        """A hint that does nothing: LLVM keeps it with all that it makes of the loop."""
        return (f'!{{!"{MARK}", i32 {self.numbers[id(loop)]}}}',) if id(loop) in self.numbers else ()

    def attributes(self, more: str = "") -> str:
        width = self.module.target.vector_width
        wide = f' "prefer-vector-width"="{width}"' if width else ""
        return self.module.attributes(f"{more}nounwind{wide}")

    def slots_of_results(self) -> tuple[list[int], int]:
        """The first slot of each scalar result, and of the given arrays."""
        starts, n = [], 0
        for dtype in self.program.scalar_results:
            starts.append(n)
            n += 2 if dtype.is_complex else 1
        return starts, n


@dataclass
class Group:
    """An access group of a parallel loop, and the buffers that stay out of it."""

    node: str
    private: frozenset[Buffer] = field(default=frozenset())


Rule = Callable[[Any, Any], None]  # of the code, which a target may have a class of its own for, and of the statement
RULES: Rules[type, Rule] = Rules()
emits = RULES.of  # a rule writes the statement


class Code:
    """Writes the statements of one function, by the `rules` of a target."""

    rules: Mapping[type, Rule]

    def __init__(self, shared: Shared, w: Writer, err: str, parallel: bool = False) -> None:
        self.shared, self.w, self.err = shared, w, err
        self.module = w.module
        self.parallel = parallel  # other threads run this function at the same time
        self.values: dict[Var, Value] = {}
        self.slots: dict[Var, Value] = {}  # of declared scalars
        self.tables: dict[Var, tuple[str, tuple[int, ...]]] = {}  # scalars that runs hand on: the table, the slots
        self.pointers: dict[Buffer, str] = {}
        self.heap: dict[Buffer, str] = {}  # slots that hold the pointers of this function's own heap buffers
        self.borrowed: dict[Buffer, str] = {}  # those of the function that calls this one
        self.whole = 0  # the statement that this function was made for: Note [Pieces]
        self.groups: list[Group] = []
        self.can_fail = False
        self.control = ""  # Note [Tiny numbers as zero]
        self.frame, self.framed = "", 0  # Note [Stopping]: where the pointers are, and how many
        self.kept: dict[Buffer, str] = {}  # the place in a frame of each heap buffer

    # --- the way in and out ---

    def start(self) -> None:
        if self.shared.program.fastmath:
            self.control = flushing.begin(self.w)

    def end(self) -> None:
        """After the last statement."""

    @classmethod
    def prepare(cls, module: Module) -> None:
        """Before the first function is written."""

    # --- atoms and memory ---

    def value(self, atom: Atom) -> Value:
        if isinstance(atom, Const):
            return constant(atom)
        value = self.values.get(atom)
        if value is not None:
            return value
        slots = self.slots.get(atom)
        if slots is None:
            raise KeyError(f"{atom!r} is read before it is bound")
        return self.from_memory(atom.type.dtype, [self.load_part(atom.type.dtype, slot) for slot in slots])

    def index(self, atom: Atom) -> str:
        value = self.value(atom)[0]
        return value if atom.type.dtype is DType.i64 else self.w.let(f"sext {REGISTER[atom.type.dtype]} {value} to i64")

    def from_memory(self, dtype: DType, parts: list[str]) -> Value:
        return (self.w.let(f"icmp ne i8 {parts[0]}, 0"),) if dtype is DType.bool else tuple(parts)

    def to_memory(self, dtype: DType, value: Value) -> Value:
        return (self.w.let(f"zext i1 {value[0]} to i8"),) if dtype is DType.bool else value

    def load_part(self, dtype: DType, address: str, suffix: str = "") -> str:
        return self.w.let(f"load {MEMORY[dtype]}, ptr {address}, align {dtype.real.bytes}{suffix}")

    def store_value(self, dtype: DType, value: Value, addresses: Value, suffix: str = "") -> None:
        for part, address in zip(self.to_memory(dtype, value), addresses, strict=True):
            self.w.do(f"store {MEMORY[dtype]} {part}, ptr {address}, align {dtype.real.bytes}{suffix}")

    def pointer(self, buffer: Buffer) -> str:
        pointer = self.pointers.get(buffer)
        if pointer is not None:
            return pointer
        if buffer.space in ALLOCATED:
            return self.w.let(f"load ptr, ptr {self.heap_slot(buffer)}, align 8", buffer.name)
        if buffer.space is Space.stack:
            components = (buffer.size or 0) * (2 if buffer.dtype.is_complex else 1)
            align = 64 if buffer.dtype.bytes * (buffer.size or 0) >= 64 else 16
            pointer = self.w.alloca(f"[{max(components, 1)} x {MEMORY[buffer.dtype]}]", buffer.name, align)
            self.pointers[buffer] = pointer
            return pointer
        raise KeyError(f"buffer {buffer.name} ({buffer.space.value}) is not a parameter")

    def heap_slot(self, buffer: Buffer) -> str:
        slot = self.heap.get(buffer) or self.borrowed.get(buffer)
        if slot is None:
            if buffer in self.pointers or buffer.space not in ALLOCATED:
                raise ValueError(f"buffer {buffer.name} belongs to the code around this region, or is not on the heap")
            slot = self.heap[buffer] = self.w.alloca("ptr", buffer.name + ".slot")
            self.w.allocas.append(f"  store ptr null, ptr {slot}, align 8")
            if self.frame:
                self.kept[buffer] = self._place()
        return slot

    def _place(self) -> str:
        """Room for one more pointer in the frame."""
        w, found = self.w, self.w.fresh("kept")
        w.allocas.append(f"  {found} = getelementptr inbounds ptr, ptr {self.frame}, i64 {self.framed}")
        self.framed += 1
        return found

    def note(self, buffer: Buffer, pointer: str) -> None:
        """The buffer's memory is here now, or nowhere (`null`): Note [Stopping]."""
        kept = self.kept.get(buffer)
        if kept is not None:
            self.w.do(f"store volatile ptr {pointer}, ptr {kept}, align 8")

    def addresses(self, buffer: Buffer, index: Atom) -> Value:
        """Of an element, or of its real and its imaginary part."""
        kind, pointer, at = MEMORY[buffer.dtype], self.pointer(buffer), self.index(index)
        if not buffer.dtype.is_complex:
            return (self.w.gep(kind, pointer, at),)
        real = self.w.gep(f"[2 x {kind}]", pointer, at)
        return real, self.w.gep(kind, real, "1")

    def metadata(self, buffer: Buffer) -> str:
        groups = [group.node for group in self.groups if buffer not in group.private]
        text = self.shared.scopes(buffer)
        if groups:
            text += ", !llvm.access.group " + (groups[0] if len(groups) == 1 else self.module.node(", ".join(groups)))
        return text

    # --- statements ---

    def block(self, block: Block) -> None:
        done, runs = 0, self.shared.pieces.runs.get(id(block), [])
        if runs:
            self.run(Table(tuple(v for run in runs for v in run.bound)))
        for run in runs:
            self.statements(block[done : run.start])
            self.run(Piece(tuple(block[run.start : run.stop]), run.bound, run.once, run.plain))
            done = run.stop
        self.statements(block[done:] if done else block)

    def statements(self, block: Block) -> None:
        over = extrema_in_place(block)
        for stm in block:
            self.w.in_place = bool(over) and isinstance(stm, Let) and stm.var in over
            self.statement(stm)

    def statement(self, stm: Stm) -> None:
        own = id(stm) in self.shared.pieces.chosen and id(stm) != self.whole
        self.run(Piece((stm,)) if own else stm)

    def run(self, stm: Stm | Piece | Table) -> None:
        self.rules[type(stm)](self, stm)
