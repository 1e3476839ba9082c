"""Combining a value into a cell that several threads may meet.

Takes the `Atomic` statement: one instruction where LLVM has it, a loop of compare-and-exchange otherwise, and a plain
load and store where no other thread runs.
"""

from __future__ import annotations

from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.scalar import apply
from tapeless.backends.llvm.writer import MEMORY, Value
from tapeless.ir.target import Target
from tapeless.ir.types import DType, Var
from tapeless.lower.ir.loopir import Atomic

INTEGER = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "min": "min", "max": "max",
           "minimum": "min", "maximum": "max", "fmin": "min", "fmax": "max"}  # fmt: skip
FLOATING = {"add": "fadd", "sub": "fsub"}
COMPONENTWISE = frozenset({"add", "sub"})


@emits(Atomic)
def combine(code: Code, stm: Atomic) -> None:
    dtype = stm.buffer.dtype
    value = code.value(stm.value)
    if not code.parallel:
        suffix = code.shared.scopes(stm.buffer)  # in no access group: iterations of a simd loop may meet in a cell
        addresses = code.addresses(stm.buffer, stm.index)
        old = code.from_memory(dtype, [code.load_part(dtype, address, suffix) for address in addresses])
        code.store_value(dtype, _combined(code, stm, old, value), addresses, suffix)
        return
    addresses = code.addresses(stm.buffer, stm.index)
    if dtype.is_complex and stm.op not in COMPONENTWISE:
        raise NotImplementedError(f"combining complex numbers by {stm.op} from several threads")
    name = (FLOATING if dtype.is_float or dtype.is_complex else INTEGER).get(stm.op)
    scope = ' syncscope("device")' if code.w.target.kind == Target.ptx else ""
    if name and dtype is not DType.bool:
        for part, address in zip(value, addresses, strict=True):
            order = f"{scope} monotonic, align {dtype.real.bytes}"
            code.w.do(f"atomicrmw {name} ptr {address}, {MEMORY[dtype]} {part}{order}")
        return
    _exchange(code, stm, value, addresses[0], scope)


def _combined(code: Code, stm: Atomic, old: Value, value: Value) -> Value:
    before = Var("old", stm.value.type)
    return apply(code.w, stm.op, (before, stm.value), [old, value], stm.buffer.dtype, False, False)


def _exchange(code: Code, stm: Atomic, value: Value, address: str, scope: str) -> None:
    """Loads, combines and stores until no other thread came between."""
    w, dtype = code.w, stm.buffer.dtype
    kind, bits = MEMORY[dtype], f"i{8 * dtype.bytes}"
    first = w.let(f"load {bits}, ptr {address}, align {dtype.bytes}")
    head, exit_, before = w.label("retry"), w.label("done"), w.block
    w.jump(head)
    w.open(head)
    seen, found = w.fresh("seen"), w.fresh("found")
    w.do(f"{seen} = phi {bits} [ {first}, %{before} ], [ {found}, %{head} ]")
    old = seen if bits == kind else w.let(f"bitcast {bits} {seen} to {kind}")
    new = code.to_memory(dtype, _combined(code, stm, code.from_memory(dtype, [old]), value))[0]
    new = new if bits == kind else w.let(f"bitcast {kind} {new} to {bits}")
    order = f"{scope} monotonic monotonic, align {dtype.bytes}"
    pair = w.let(f"cmpxchg ptr {address}, {bits} {seen}, {bits} {new}{order}")
    w.do(f"{found} = extractvalue {{ {bits}, i1 }} {pair}, 0")
    w.branch(w.let(f"extractvalue {{ {bits}, i1 }} {pair}, 1"), exit_, head)
    w.open(exit_)
