"""Calls of native routines and of functions of the program, and printing.

Routines of BLAS and LAPACK take the address of everything, 32-bit integers among it: a scalar operand is stored and its
address passed, and a character is an integer (78 for 'N'). With a result, LAPACK's `info` is appended and answered.
All other routines take scalars by value and answer with an i64.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.backends.cpu import libraries
from tapeless.backends.llvm import errors
from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.writer import MEMORY, symbol
from tapeless.ir.target import Target
from tapeless.ir.types import Atom, Const, DType
from tapeless.lower.ir.loopir import Call, Invoke, Pointer, Print

ARGUMENT = "\x01"  # around the letter of an argument's type and its field, in the text for rt_print
# As module `struct` has them; complex numbers are two floats.
LETTERS = {DType.bool: "?", DType.i8: "b", DType.u8: "B", DType.i16: "h", DType.u16: "H", DType.i32: "i",
           DType.u32: "I", DType.i64: "q", DType.u64: "Q", DType.f32: "f", DType.f64: "d",
           DType.c64: "c", DType.c128: "z"}  # fmt: skip


@emits(Call)
def call(code: Code, stm: Call) -> None:
    if code.w.target.kind == Target.ptx:
        raise NotImplementedError(f"calling {stm.name} on a GPU")
    if libraries.is_fortran(stm.name):
        _call_fortran(code, stm)
        return
    w = code.w
    operands = _operands(code, stm.args)
    kinds = ", ".join(operand.split()[0] for operand in operands)
    callee = code.module.declare(stm.name, f"{'i64' if stm.result else 'void'} @({kinds}) nounwind")
    if stm.result:
        code.values[stm.result] = (w.let(f"call i64 {callee}({', '.join(operands)})", stm.result.name),)
    else:
        w.do(f"call void {callee}({', '.join(operands)})")


@emits(Invoke)
def invoke(code: Code, stm: Invoke) -> None:
    """Note [Entry] in emit.py. Inside a region the function has one thread."""
    w = code.w
    kinds = [v.type.dtype for v in stm.results]
    slots = w.alloca(f"[{max(1, sum(2 if kind.is_complex else 1 for kind in kinds))} x i64]", "results")
    threads = "1" if code.parallel else code.value(code.shared.program.threads)[0]
    operands = [*_operands(code, stm.args), f"i64 {threads}", f"ptr {slots}", f"ptr {code.err}"]
    w.do(f"call void {symbol(stm.name)}({', '.join(operands)})")
    errors.leave_if_failed(code)
    used = 0
    for v in stm.results:
        kind = v.type.dtype
        parts = range(used, used + (2 if kind.is_complex else 1))
        code.values[v] = code.from_memory(kind, [code.load_part(kind, w.slot(slots, k)) for k in parts])
        used += len(parts)


def _operands(code: Code, args: Sequence[Atom | Pointer]) -> list[str]:
    operands: list[str] = []
    for arg in args:
        if isinstance(arg, Pointer):
            operands.append(f"ptr {_address(code, arg)}")
        else:
            dtype = arg.type.dtype
            operands += [f"{MEMORY[dtype]} {part}" for part in code.to_memory(dtype, code.value(arg))]
    return operands


def _address(code: Code, pointer: Pointer) -> str:
    return code.addresses(pointer.buffer, pointer.offset)[0]


def _call_fortran(code: Code, stm: Call) -> None:
    w = code.w
    operands = [_address(code, arg) if isinstance(arg, Pointer) else _stored(code, arg) for arg in stm.args]
    if stm.result:
        info = w.alloca("i32", "info")
        w.do(f"store i32 0, ptr {info}, align 4")
        operands.append(info)
    callee = code.module.declare(stm.name, f"void @({', '.join(['ptr'] * len(operands))}) nounwind")
    w.do(f"call void {callee}({', '.join(f'ptr {operand}' for operand in operands)})")
    if stm.result:
        code.values[stm.result] = (w.let(f"sext i32 {w.let(f'load i32, ptr {info}, align 4')} to i64", "info"),)


def _stored(code: Code, atom: Atom) -> str:
    w, dtype = code.w, atom.type.dtype
    value = code.value(atom)
    if dtype is DType.i64:
        narrow = value[0] if isinstance(atom, Const) else w.let(f"trunc i64 {value[0]} to i32")
        dtype, value = DType.i32, (narrow,)
    slot = w.alloca(f"[2 x {MEMORY[dtype]}]", "argument")
    places = tuple(slot if part == 0 else w.gep(MEMORY[dtype], slot, "1") for part in range(len(value)))
    code.store_value(dtype, value, places)
    return slot


@emits(Print)
def show(code: Code, stm: Print) -> None:
    """`rt_print(text, slots)`: the text with the letter of its type and its field in place of each argument, between marks."""
    w = code.w
    if w.target.kind == Target.ptx:
        raise NotImplementedError("printing on a GPU")
    text, values = "", []
    for part in stm.parts:
        if isinstance(part, str):
            text += part.replace(ARGUMENT, "").replace("\0", "")
            continue
        arg = stm.args[part.position]
        dtype = arg.type.dtype
        text += ARGUMENT + LETTERS[dtype] + part.field + ARGUMENT
        values += [(dtype, word) for word in code.to_memory(dtype, code.value(arg))]
    slots = w.alloca(f"[{max(len(values), 1)} x i64]", "printed")
    for k, (dtype, value) in enumerate(values):
        w.do(f"store {MEMORY[dtype]} {value}, ptr {w.slot(slots, k)}, align 8")
    callee = code.module.declare("rt_print", "void @(ptr, ptr) nounwind")
    w.do(f"call void {callee}(ptr {code.module.text(text)}, ptr {slots})")
