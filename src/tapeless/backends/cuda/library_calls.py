"""Calls of BLAS and LAPACK as calls of cuBLAS and cuSOLVER: the same operands in the same order, with numbers for letters.
What these do not have is called as it is, by the host.
"""

from __future__ import annotations

from tapeless.backends.cuda.device_host import DeviceHost
from tapeless.backends.cuda.libraries import OPERANDS, PRODUCTS
from tapeless.backends.llvm.rules import RULES
from tapeless.backends.llvm.writer import MEMORY
from tapeless.ir.types import Atom, Const, DType
from tapeless.lower.ir.loopir import Call, Pointer

NUMBERS = {"N": 0, "T": 1, "U": 1, "L": 0, "R": 1}


def write_call(code: DeviceHost, stm: Call) -> None:
    if not stm.of_device:
        RULES[Call](code, stm)
        return
    kind, routine = stm.name[0].upper(), stm.name[1:]
    operands = [_operand(code, what, arg) for what, arg in zip(OPERANDS[routine], stm.args, strict=True)]
    if routine in PRODUCTS:
        _called(code, f"cublas{kind}{PRODUCTS[routine]}", [f"ptr {code.handle(1)}", *operands])
    else:
        _solve(code, f"cusolverDn{kind}{routine}", operands, stm)


def _called(code: DeviceHost, symbol: str, operands: list[str]) -> None:
    kinds = ", ".join(operand.split()[0] for operand in operands)
    callee = code.module.declare(symbol, f"i32 @({kinds}) nounwind")
    code.tested(code.w.let(f"call i32 {callee}({', '.join(operands)})"))


def _solve(code: DeviceHost, symbol: str, operands: list[str], stm: Call) -> None:
    """With room to work in, where the routine wants some, and its answer behind it."""
    w = code.w
    dtype = next(arg.buffer.dtype for arg in stm.args if isinstance(arg, Pointer))
    size, (own, between) = "0", (operands, [])
    if not symbol.endswith("getrs"):
        count = w.alloca("i32", "size")
        given = operands[:4]  # the matrix is the last one
        _called(code, f"{symbol}_bufferSize", [f"ptr {code.handle(2)}", *given, f"ptr {count}"])
        size = w.let(f"zext i32 {w.let(f'load i32, ptr {count}, align 4')} to i64")
        own, between = operands[:4], operands[4:]
    room = w.let(f"add i64 {size}, 2")
    memory = w.let(f"call ptr @tapeless.allocate(i64 {room}, i64 {dtype.bytes}, ptr {code.err})")
    code.leave_unless_memory(memory)
    info = w.let(f"getelementptr i8, ptr {memory}, i64 {w.let(f'mul i64 {size}, {dtype.bytes}')}")
    work = [] if symbol.endswith("getrs") else [f"ptr {memory}"]
    if symbol.endswith("potrf"):
        work.append(f"i32 {w.let(f'trunc i64 {size} to i32')}")
    _called(code, symbol, [f"ptr {code.handle(2)}", *own, *work, *between, f"ptr {info}"])
    answer = w.alloca("i32", "info")
    w.do(f"store i32 0, ptr {answer}, align 4")
    copy = code.module.declare("cuMemcpyDtoH", "i32 @(ptr, ptr, i64) nounwind")
    code.tested(w.let(f"call i32 {copy}(ptr {answer}, ptr {info}, i64 4)"))
    w.do(f"call void @tapeless.free(ptr {memory})")
    if stm.result is not None:
        code.values[stm.result] = (w.let(f"sext i32 {w.let(f'load i32, ptr {answer}, align 4')} to i64", "info"),)


def _operand(code: DeviceHost, what: str, arg: Atom | Pointer) -> str:
    w = code.w
    if isinstance(arg, Pointer):
        assert what == "a"
        return f"ptr {code.addresses(arg.buffer, arg.offset)[0]}"
    if what == "l":
        assert isinstance(arg, Const)
        return f"i32 {NUMBERS[chr(int(arg.value.real))]}"
    if what == "w":
        return f"i64 {code.value(arg)[0]}"
    if what == "i":
        value = code.value(arg)[0]
        return f"i32 {value if isinstance(arg, Const) else w.let(f'trunc i64 {value} to i32')}"
    dtype: DType = arg.type.dtype
    slot = w.alloca(f"[2 x {MEMORY[dtype]}]", "argument", 16)  # as CUDA has complex numbers
    parts = code.value(arg)
    code.store_value(
        dtype, parts, tuple(slot if k == 0 else w.gep(MEMORY[dtype], slot, "1") for k in range(len(parts)))
    )
    return f"ptr {slot}"
