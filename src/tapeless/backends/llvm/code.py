"""The statements of Loop IR as LLVM IR: control flow and memory.

`Code` writes the statements of one function, `Shared` holds what the functions of a program share. Operations are
spelled in scalar.py, tests and their records in errors.py; a loop over threads leaves for a function of its own in region.py.

Note [Alias scopes]
Each alias class (uses.py) has a scope; an access names its own scope and that it does not overlap the others. A class
holds one buffer unless buffers are swapped. Accesses of a `simd` loop are in an access group that the loop declares
parallel; a buffer that lives inside one iteration stays out of it, since the iterations share its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from tapeless.backends.llvm import atomic, calls, errors, flushing, heap, pairs, pieces, region, stopping
from tapeless.backends.llvm.in_place import extrema_in_place
from tapeless.backends.llvm.pieces import Pieces
from tapeless.backends.llvm.scalar import apply
from tapeless.backends.llvm.tails import MASKED, SHORT, has_short_form
from tapeless.backends.llvm.uses import Block, Counts, alias_classes
from tapeless.backends.llvm.writer import LIKELY, MEMORY, REGISTER, UNLIKELY, Bounds, Module, Value, Writer, constant
from tapeless.ir.target import Target
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.lower.loopir import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    Declare,
    For,
    Free,
    Give,
    If,
    Let,
    Load,
    Print,
    Program,
    Return,
    Space,
    Stm,
    Store,
    Swap,
    Tag,
    While,
)

MARK = "tapeless.loop"  # for `Shared.mark`
MAX_VECTOR_BODY = 1500  # instructions; the loop vectoriser takes more than linear time in them
MAX_INTERLEAVED_BODY = 80  # several copies of a vectorised body only pay in small ones without calls
MAX_SCOPES = 128


class Shared:
    """What all functions of a program share."""

    def __init__(self, program: Program, module: Module, numbers: Mapping[int, int] | None = None) -> None:
        self.program, self.module = program, module
        self.numbers = numbers or {}  # of loops, by id
        self.flags = "fast " if program.fastmath else "contract "
        self.mentions = Counts(program.body).buffers
        self.classes = alias_classes(program.params, program.body)
        self.regions = 0
        self.pieces = Pieces(program.body if module.target.kind == Target.cpu else ())
        self._scopes: list[str] = []
        self._scope_text: dict[int, str] = {}
        number = len(set(self.classes.values()))
        if 1 < number <= MAX_SCOPES:
            domain = module.node('@self, !"buffers"', distinct=True)
            self._scopes = [module.node(f"@self, {domain}", distinct=True) for _ in range(number)]

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


class Code:
    """Writes the statements of one function."""

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

    def finish(self, given: int = 0, given_count: int = 0) -> None:
        """Frees what is left, on the ordinary way out and on that of an error, which gives nothing to the caller."""
        w = self.w
        w.jump("cleanup")
        if self.can_fail:
            w.open("failed")
            for k in range(given_count):
                slot = w.slot("%results", given + k)
                heap.free_slot(self, slot)
                w.do(f"store ptr null, ptr {slot}, align 8")
            w.jump("cleanup")
        w.open("cleanup")
        for slot in self.heap.values():
            heap.free_slot(self, slot)
        flushing.end(w, self.control)
        w.do("ret void")
        stopping.end(self, given, given_count)

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
        if buffer.space is Space.heap:
            return self.w.let(f"load ptr, ptr {self.heap_slot(buffer)}, align 8", buffer.name)
        if buffer.space is Space.stack:
            components = (buffer.size or 0) * (2 if buffer.dtype.is_complex else 1)
            align = 64 if buffer.dtype.bytes * (buffer.size or 0) >= 64 else 16
            pointer = self.w.alloca(f"[{max(components, 1)} x {MEMORY[buffer.dtype]}]", buffer.name, align)
            self.pointers[buffer] = pointer
            return pointer
        raise KeyError(f"buffer {buffer.name} ({buffer.space.value}) is not a parameter")

    def allocate(self, stm: Alloc) -> None:
        heap.allocate(self, stm)

    def heap_slot(self, buffer: Buffer) -> str:
        slot = self.heap.get(buffer) or self.borrowed.get(buffer)
        if slot is None:
            if buffer in self.pointers or buffer.space is not Space.heap:
                raise ValueError(f"buffer {buffer.name} belongs to the code around this region, or is not on the heap")
            slot = self.heap[buffer] = self.w.alloca("ptr", buffer.name + ".slot")
            self.w.allocas.append(f"  store ptr null, ptr {slot}, align 8")
            if self.frame:
                self.kept[buffer] = stopping.place(self)
        return slot

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
            pieces.table(self, runs)
        for run in runs:
            self.statements(block[done : run.start])
            pieces.write(self, block[run.start : run.stop], run.bound)
            done = run.stop
        self.statements(block[done:] if done else block)

    def statements(self, block: Block) -> None:
        over = extrema_in_place(block)
        for stm in block:
            self.w.in_place = bool(over) and isinstance(stm, Let) and stm.var in over
            self.statement(stm)

    def statement(self, stm: Stm) -> None:
        w = self.w
        if id(stm) in self.shared.pieces.chosen and id(stm) != self.whole:
            pieces.write(self, (stm,))
            return
        match stm:
            case Let():
                w.flags = self.shared.flags
                if stm.reassoc and not self.shared.program.fastmath:
                    w.flags += "reassoc nsz "
                args = [self.value(arg) for arg in stm.args]
                result = stm.var.type.dtype
                self.values[stm.var] = apply(w, stm.op, stm.args, args, result, stm.exact, stm.reassoc)
                w.flags = self.shared.flags
            case Load():
                suffix = self.metadata(stm.buffer)
                dtype = stm.buffer.dtype
                parts = [self.load_part(dtype, a, suffix) for a in self.addresses(stm.buffer, stm.index)]
                self.values[stm.var] = self.from_memory(dtype, parts)
            case Store():
                value = self.value(stm.value)
                suffix = self.metadata(stm.buffer)
                self.store_value(stm.buffer.dtype, value, self.addresses(stm.buffer, stm.index), suffix)
            case Declare():
                dtype = stm.var.type.dtype
                init = self.value(stm.init)
                if stm.var not in self.slots:
                    self.slots[stm.var] = tuple(
                        w.alloca(MEMORY[dtype], stm.var.name) for _ in range(2 if dtype.is_complex else 1)
                    )
                self.store_value(dtype, init, self.slots[stm.var])
            case Assign():
                self.store_value(stm.var.type.dtype, self.value(stm.value), self.slots[stm.var])
            case For():
                self.loop(stm)
            case If():
                self.choice(stm)
            case While():
                self.repeat(stm)
            case Check():
                errors.check(self, stm)
            case Alloc():
                self.allocate(stm)
            case Free():
                slot = self.heap_slot(stm.buffer)
                stopping.note(self, stm.buffer, "null")
                heap.free_slot(self, slot)
                w.do(f"store ptr null, ptr {slot}, align 8")
            case Swap():
                a, b = self.heap_slot(stm.a), self.heap_slot(stm.b)
                x, y = w.let(f"load ptr, ptr {a}, align 8"), w.let(f"load ptr, ptr {b}, align 8")
                w.do(f"store ptr {y}, ptr {a}, align 8")
                w.do(f"store ptr {x}, ptr {b}, align 8")
                stopping.note(self, stm.a, y)
                stopping.note(self, stm.b, x)
            case Give():
                _, first = self.shared.slots_of_results()
                slot = self.heap_slot(stm.buffer)
                pointer = w.let(f"load ptr, ptr {slot}, align 8")
                w.do(f"store ptr {pointer}, ptr {w.slot('%results', first + stm.k)}, align 8")
                w.do(f"store ptr null, ptr {slot}, align 8")
                stopping.note(self, stm.buffer, "null")
            case Return():
                starts, _ = self.shared.slots_of_results()
                value = self.value(stm.value)
                places = tuple(w.slot("%results", starts[stm.k] + part) for part in range(len(value)))
                self.store_value(stm.value.type.dtype, value, places)
            case Atomic():
                atomic.combine(self, stm)
            case Call():
                calls.call(self, stm)
            case Print():
                calls.show(self, stm)
            case Barrier():
                self.barrier()
            case _:
                assert_never(stm)

    def barrier(self) -> None:
        """Nothing to wait for: on a CPU the iterations of a block loop run one after the other."""

    # --- control flow ---

    def loop(self, stm: For) -> None:
        if stm.tag == Tag.threads and not self.parallel:
            region.write(self, stm)
            return
        kind = REGISTER[stm.var.type.dtype]
        lo, hi = self.value(stm.lo)[0], self.value(stm.hi)[0]

        def body(i: str) -> None:
            self.values[stm.var] = (i,)
            before, self.w.vector_math = self.w.vector_math, self.w.vector_math and stm.vectorize
            self.block(stm.body)
            self.w.vector_math = before

        independent = stm.body if stm.tag != Tag.seq and id(stm) not in self.shared.pieces.cut else None
        span = Bounds(kind, lo, hi, str(stm.step), down=stm.step < 0)
        if self.shared.pieces.large or not has_short_form(stm, self.module.target):
            self.counted(span, stm.var.name, body, independent, stm.vectorize, self.shared.mark(stm))
            return
        w = self.w
        short, long, merge = w.label("short"), w.label("long"), w.label("merge")
        few = w.let(f"icmp slt {kind} {w.let(f'sub {kind} {hi}, {lo}')}, {SHORT}")
        w.branch(few, short, long)
        for label, hints in ((short, (MASKED,)), (long, ())):
            w.open(label)
            self.counted(span, stm.var.name, body, independent, stm.vectorize, (*hints, *self.shared.mark(stm)))
            w.jump(merge)
        w.open(merge)

    def counted(
        self,
        span: Bounds,
        hint: str,
        body: Callable[[str], None],
        independent: Block | None,
        vectorize: bool,
        more_hints: tuple[str, ...] = (),
    ) -> None:
        """A loop with its test at the end and a guard before it. `independent` is the block when iterations are."""
        w, kind = self.w, span.kind
        head, exit_ = w.label("loop"), w.label("done")
        before = w.block
        compare = f"icmp {'sgt' if span.down else 'slt'} {kind}"
        w.branch(w.let(f"{compare} {span.lo}, {span.hi}"), head, exit_)
        w.open(head)
        i, start, calls = w.fresh(hint), len(w.lines), w.calls
        w.lines.append("")  # the phi, once the latch is known
        if independent is not None:
            private = Counts(independent).private(self.shared.mentions)
            self.groups.append(Group(self.module.node("", distinct=True), private))
        body(i)
        following = w.let(f"add nsw {kind} {i}, {span.step}", hint)
        w.lines[start] = f"  {i} = phi {kind} [ {span.lo}, %{before} ], [ {following}, %{w.block} ]"
        hints = ['!{!"llvm.loop.mustprogress"}', *more_hints]
        if independent is not None:
            hints.append(f'!{{!"llvm.loop.parallel_accesses", {self.groups.pop().node}}}')
        if not vectorize or len(w.lines) - start > MAX_VECTOR_BODY:
            hints.append('!{!"llvm.loop.vectorize.enable", i1 false}')
        if w.calls > calls or len(w.lines) - start > MAX_INTERLEAVED_BODY:
            hints.append('!{!"llvm.loop.interleave.count", i32 1}')
        node = self.module.node(", ".join(["@self", *hints]), distinct=True)
        w.branch(w.let(f"{compare} {following}, {span.hi}"), head, exit_, f", !llvm.loop {node}")
        w.open(exit_)

    def choice(self, stm: If) -> None:
        w = self.w
        then, merge = w.label("then"), w.label("merge")
        orelse = w.label("else") if stm.orelse else merge
        weights = ""
        if stm.likely is not None:
            weights = w.weights(LIKELY, UNLIKELY) if stm.likely else w.weights(UNLIKELY, LIKELY)
        w.branch(self.value(stm.cond)[0], then, orelse, weights)
        w.open(then)
        self.block(stm.then)
        w.jump(merge)
        if stm.orelse:
            w.open(orelse)
            self.block(stm.orelse)
            w.jump(merge)
        w.open(merge)

    def repeat(self, stm: While) -> None:
        w = self.w
        head, body, exit_ = w.label("test"), w.label("while"), w.label("done")
        w.jump(head)
        w.open(head)
        self.block(stm.test)
        w.branch(self.value(stm.cond)[0], body, exit_)
        w.open(body)
        if id(stm.body) in self.shared.pieces.runs:
            self.block(stm.body)
        else:
            pairs.write(self, stm.body)
        w.jump(head)
        w.open(exit_)
