"""The operations of the ops table as LLVM instructions, on integers, floats and bools.

`apply` takes a row, operands and their element type, and writes the instructions that the row's spelling asks for.
The sequences behind `Special` are in special.py, complex operands in complexmath.py, library calls in c_functions.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.backends.llvm.c_functions import call_foreign, call_libm
from tapeless.backends.llvm.complexmath import apply_complex
from tapeless.backends.llvm.representation import convert
from tapeless.backends.llvm.special import SEQUENCES, fmod, power
from tapeless.backends.llvm.writer import REGISTER, Value, Writer
from tapeless.ir.types import Atom, Const, DType
from tapeless.ops.op import Foreign, Instruction, Intrinsic, Libm, Special
from tapeless.ops.table import TABLE

NSW = frozenset({"add", "sub", "mul"})
UNSIGNED = {"floordiv": "udiv"}  # of positions, which are not negative
SMALL_POWERS = frozenset({-2.0, -1.0, 1.0, 2.0, 3.0, 4.0})  # products that err by less than 2 ulp


def apply(
    w: Writer, name: str, atoms: Sequence[Atom], args: Sequence[Value], result: DType, exact: bool, reassoc: bool
) -> Value:
    """`atoms` are the operands in Loop IR and `args` their values; `result` is the type of the bound variable."""
    row = TABLE[name]
    dtype = atoms[-1].type.dtype
    if name == "convert":
        return convert(w, dtype, result, args[0])
    if dtype.is_complex or result.is_complex:
        return apply_complex(w, name, dtype, args)
    operands = [arg[0] for arg in args]
    kind = REGISTER[dtype]
    match row.llvm:
        case Instruction(integer, floating):
            return (_instruction(w, floating if dtype.is_float else integer, dtype, operands, exact),)
        case Intrinsic(floating, integer):
            if dtype.is_float:
                return (w.intrinsic(floating, kind, *operands),)
            callee = w.module.intrinsic(f"llvm.{integer}.{kind}", kind, f"{kind}, i1")
            return (w.let(f"call {kind} {callee}({kind} {operands[0]}, i1 false)"),)
        case Libm("pow", _) if isinstance(atoms[1], Const) and atoms[1].value in SMALL_POWERS:
            return (power(w, kind, operands[0], int(atoms[1].value.real)),)
        case Libm("fmod", _):
            return (fmod(w, dtype, operands),)
        case Libm(function, _):
            return (call_libm(w, function, dtype, operands),)
        case Foreign() as function:
            return (call_foreign(w, function, dtype, operands),)
        case Special(sequence):
            if exact and dtype.is_int and sequence in UNSIGNED:
                return (w.op(UNSIGNED[sequence], kind, *operands),)
            if sequence not in SEQUENCES:
                raise NotImplementedError(f"the operation {name} has no LLVM spelling on {dtype!r}")
            return (SEQUENCES[sequence](w, dtype, operands, reassoc),)


def _instruction(w: Writer, op: str, dtype: DType, operands: list[str], exact: bool) -> str:
    kind = REGISTER[dtype]
    if op == "select":
        return w.select(operands[0], kind, operands[1], operands[2])
    if op == "neg":
        return w.op("sub", kind, "0", operands[0])
    if dtype.is_float:
        return w.fp(op, kind, *operands, exact=op.startswith("fcmp"))
    return w.op(f"{op} nsw" if exact and op in NSW else op, kind, *operands)
