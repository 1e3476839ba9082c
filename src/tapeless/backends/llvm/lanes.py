"""Loops with the tag `lanes` in vector instructions: Note [Lanes] in `lower/lanes.py`.

Takes the function being written and the loop. A loop of a whole word runs without masks, several vectors at a time; any other one
vector by vector under a mask.

Note [Sums in lanes]
A sum that such a loop adds to is kept in vectors until somebody reads it: the loops over the words of a row add to the same
vectors, and adding up across lanes is done once a row. So the variable has, besides its own slot, CHAINS vectors in memory
(LLVM makes registers of them). They start from zero where the variable is declared or assigned, and its value is all of it. A
variable that belongs to another function gets the sum at the end of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tapeless.backends.llvm.uses import walk
from tapeless.backends.llvm.writer import MEMORY, REGISTER, SUFFIX, Bounds, literal
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.lower.lanes import Lanes, lanes_of
from tapeless.lower.loopir import For, Let, Load, Stm, Store
from tapeless.ops.library import WORD
from tapeless.ops.op import Instruction, Intrinsic
from tapeless.ops.table import TABLE

if TYPE_CHECKING:
    from tapeless.backends.llvm.code import Code

NARROWEST = 128  # bits of a vector, where the target does not say
CHAINS = 4  # vectors at a time: so many sums do not wait for each other


def summed(body: Iterable[Stm], bits: int) -> dict[Var, int]:
    """The variables that loops of this kind add to, and how many lanes they do it in."""
    found: dict[Var, set[int]] = {}
    for stm in walk(tuple(body)):
        if isinstance(stm, For) and stm.tag == "lanes":
            plan = _plan(stm)
            for v in plan.sums:
                found.setdefault(v, set()).add(plan.number(bits or NARROWEST))
    return {v: numbers.pop() for v, numbers in found.items() if len(numbers) == 1}


def number_of(loop: For, bits: int) -> int:
    return _plan(loop).number(bits or NARROWEST)


def _plan(loop: For) -> Lanes:
    plan = lanes_of(loop.body, loop.var)
    assert plan is not None
    return plan


def write(code: Code, loop: For) -> None:
    _Vectors(code, loop).write()


# -- Note [Sums in lanes]


def declare(code: Code, var: Var) -> None:
    number = code.shared.summed.get(var)
    if number is not None:
        if var not in code.partial:
            code.partial[var] = _chains(code, var.type.dtype, number)
        clear(code, var)


def clear(code: Code, var: Var) -> None:
    for slot in code.partial.get(var, ()):
        _zero(code, var.type.dtype, code.shared.summed[var], slot)


def whole(code: Code, var: Var, own: str) -> str:
    """The value of a variable with sums in lanes."""
    return _added_up(code, var.type.dtype, code.shared.summed[var], code.partial[var], own)


def _chains(code: Code, dtype: DType, number: int) -> list[str]:
    return [code.w.alloca(_vector(number, dtype), "lanes", 64) for _ in range(CHAINS)]


def _zero(code: Code, dtype: DType, number: int, slot: str) -> None:
    code.w.do(f"store {_vector(number, dtype)} zeroinitializer, ptr {slot}, align 64")


def _added_up(code: Code, dtype: DType, number: int, slots: list[str], own: str) -> str:
    w, kind, scalar = code.w, _vector(number, dtype), REGISTER[dtype]
    add = "fadd reassoc nsz contract" if dtype.is_float else "add"
    total, *others = [w.let(f"load {kind}, ptr {slot}, align 64") for slot in slots]
    for other in others:
        total = w.let(f"{add} {kind} {total}, {other}")
    suffix = f"v{number}{_suffix(dtype)}"
    if dtype.is_float:
        callee = w.module.intrinsic(f"llvm.vector.reduce.fadd.{suffix}", scalar, f"{scalar}, {kind}")
        return w.let(f"call reassoc nsz {scalar} {callee}({scalar} {own}, {kind} {total})")
    callee = w.module.intrinsic(f"llvm.vector.reduce.add.{suffix}", scalar, kind)
    return w.let(f"add {scalar} {own}, {w.let(f'call {scalar} {callee}({kind} {total})')}")


def _vector(number: int, dtype: DType) -> str:
    return f"<{number} x {REGISTER[dtype]}>"


def _suffix(dtype: DType) -> str:
    return SUFFIX.get(MEMORY[dtype], MEMORY[dtype])


# -- a loop


class _Vectors:
    def __init__(self, code: Code, loop: For) -> None:
        self.code, self.loop, self.w = code, loop, code.w
        self.plan = _plan(loop)
        self.number = self.plan.number(code.module.target.vector_width or NARROWEST)
        self.truths = f"<{self.number} x i1>"
        self.mask = ""  # of the vector at hand, where lanes may be beyond the end
        self.start = ""
        self.values: dict[Var, str] = {}

    def write(self) -> None:
        code, loop = self.code, self.loop
        sums = {v: code.partial.get(v) for v in self.plan.sums}
        own = {v: _chains(code, v.type.dtype, self.number) for v, slots in sums.items() if slots is None}
        for v, slots in own.items():
            for slot in slots:
                _zero(code, v.type.dtype, self.number, slot)
        self.slots = {v: slots or own[v] for v, slots in sums.items()}
        hi = code.value(loop.hi)[0]
        if isinstance(loop.hi, Const) and loop.hi.value == WORD and WORD % self.number == 0:
            several = min(CHAINS, WORD // self.number)
            span = Bounds("i64", "0", hi, str(several * self.number))
            code.counted(span, loop.var.name, lambda i: self._several(i, several), None, False)
        else:
            span = Bounds("i64", "0", hi, str(self.number))
            code.counted(span, loop.var.name, lambda i: self._masked(i, hi), None, False)
        for v, slots in own.items():
            before = code.value(v)[0]
            code.store_value(v.type.dtype, (_added_up(code, v.type.dtype, self.number, slots, before),), code.slots[v])

    def _several(self, first: str, count: int) -> None:
        for chain in range(count):
            start = self.w.let(f"add nuw nsw i64 {first}, {chain * self.number}") if chain else first
            self._one(start, chain)

    def _masked(self, start: str, hi: str) -> None:
        name = f"llvm.get.active.lane.mask.v{self.number}i1.i64"
        callee = self.w.module.intrinsic(name, self.truths, "i64, i64")
        self.mask = self.w.let(f"call {self.truths} {callee}(i64 {start}, i64 {hi})")
        self._one(start, 0)

    def _one(self, start: str, chain: int) -> None:
        """One vector, from this iteration on."""
        code = self.code
        self.values, self.start = {}, start
        code.values[self.loop.var] = (start,)
        for stm in self.plan.body:
            if not self.plan.is_vector(stm):
                code.statement(stm)
            elif isinstance(stm, Load):
                self._load(stm)
            elif isinstance(stm, Store):
                self._store(stm)
            else:
                self.values[stm.var] = self._let(stm)
        for v, x in self.plan.sums.items():
            self._add(v, x, self.slots[v][chain])
        for v, truth in self.plan.words.items():
            self._put(v, truth)

    # -- memory

    def _load(self, stm: Load) -> None:
        w, dtype = self.w, stm.buffer.dtype
        kind, (address,) = f"<{self.number} x {MEMORY[dtype]}>", self.code.addresses(stm.buffer, stm.index)
        suffix = self.code.metadata(stm.buffer)
        if self.mask:
            name = f"llvm.masked.load.v{self.number}{_suffix(dtype)}.p0"
            callee = w.module.intrinsic(name, kind, f"ptr, i32, {self.truths}, {kind}")
            operands = f"ptr {address}, i32 {dtype.bytes}, {self.truths} {self.mask}, {kind} zeroinitializer"
            value = w.let(f"call {kind} {callee}({operands}){suffix}")
        else:
            value = w.let(f"load {kind}, ptr {address}, align {dtype.bytes}{suffix}")
        self.values[stm.var] = w.let(f"icmp ne {kind} {value}, zeroinitializer") if dtype is DType.bool else value

    def _store(self, stm: Store) -> None:
        w, dtype = self.w, stm.buffer.dtype
        kind, (address,) = f"<{self.number} x {MEMORY[dtype]}>", self.code.addresses(stm.buffer, stm.index)
        value, suffix = self._operand(stm.value), self.code.metadata(stm.buffer)
        if dtype is DType.bool:
            value = w.let(f"zext {self.truths} {value} to {kind}")
        if self.mask:
            name = f"llvm.masked.store.v{self.number}{_suffix(dtype)}.p0"
            callee = w.module.intrinsic(name, "void", f"{kind}, ptr, i32, {self.truths}")
            operands = f"{kind} {value}, ptr {address}, i32 {dtype.bytes}, {self.truths} {self.mask}"
            w.do(f"call void {callee}({operands}){suffix}")
        else:
            w.do(f"store {kind} {value}, ptr {address}, align {dtype.bytes}{suffix}")

    # -- values

    def _operand(self, a: Atom) -> str:
        if isinstance(a, Const):
            (text,) = literal(a.value, a.dtype)
            return "<" + ", ".join([f"{REGISTER[a.dtype]} {text}"] * self.number) + ">"
        if a in self.values:
            return self.values[a]
        kind, (value,) = _vector(self.number, a.type.dtype), self.code.value(a)
        first = self.w.let(f"insertelement {kind} poison, {REGISTER[a.type.dtype]} {value}, i64 0")
        self.values[a] = self.w.let(
            f"shufflevector {kind} {first}, {kind} poison, <{self.number} x i32> zeroinitializer"
        )
        return self.values[a]

    def _let(self, let: Let) -> str:
        w, dtype = self.w, let.args[-1].type.dtype
        kind = _vector(self.number, dtype)
        flags = self.code.shared.flags + ("reassoc nsz " if let.reassoc else "") if dtype.is_float else ""
        if let.op == "bit":
            bits = w.let(f"lshr i64 {self.code.value(let.args[0])[0]}, {self.start}")
            few = f"i{self.number}"
            return w.let(f"bitcast {few} {w.let(f'trunc i64 {bits} to {few}')} to {self.truths}")
        operands = [self._operand(a) for a in let.args]
        if let.op == "not":
            ones = "<" + ", ".join([f"{REGISTER[dtype]} -1"] * self.number) + ">"
            return w.let(f"xor {kind} {operands[0]}, {ones}")
        if let.op == "isnan":
            return w.let(f"fcmp uno {kind} {operands[0]}, zeroinitializer")
        if let.op == "select":
            return w.let(f"select {self.truths} {operands[0]}, {kind} {operands[1]}, {kind} {operands[2]}")
        spelling = TABLE[let.op].llvm
        if isinstance(spelling, Intrinsic):
            name = f"llvm.{spelling.floating}.v{self.number}{_suffix(dtype)}"
            callee = w.module.intrinsic(name, kind, ", ".join([kind] * len(operands)))
            return w.let(f"call {flags}{kind} {callee}({', '.join(f'{kind} {x}' for x in operands)})")
        assert isinstance(spelling, Instruction)
        op = spelling.floating if dtype.is_float else spelling.integer
        if op == "neg":
            return w.let(f"sub {kind} zeroinitializer, {operands[0]}")
        return w.let(f"{op} {'' if op.startswith('fcmp') else flags}{kind} {', '.join(operands)}")

    def _add(self, var: Var, x: Atom, slot: str) -> None:
        w, dtype = self.w, var.type.dtype
        kind, value = _vector(self.number, dtype), self._operand(x)
        if self.mask:
            value = w.let(f"select {self.truths} {self.mask}, {kind} {value}, {kind} zeroinitializer")
        before = w.let(f"load {kind}, ptr {slot}, align 64")
        add = "fadd reassoc nsz contract" if dtype.is_float else "add"
        w.do(f"store {kind} {w.let(f'{add} {kind} {before}, {value}')}, ptr {slot}, align 64")

    def _put(self, word: Var, truth: Atom) -> None:
        w, value = self.w, self._operand(truth)
        if self.mask:
            value = w.let(f"and {self.truths} {value}, {self.mask}")
        few = w.let(f"bitcast {self.truths} {value} to i{self.number}")
        bits = w.let(f"shl i64 {w.let(f'zext i{self.number} {few} to i64')}, {self.start}")
        before = self.code.value(word)[0]
        self.code.store_value(DType.i64, (w.let(f"or i64 {before}, {bits}"),), self.code.slots[word])
