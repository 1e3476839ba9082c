"""Loop IR to LLVM IR text.

`emit` takes a `Program` and a `Machine` and gives the text and the external names that it calls. The statements are
written by rules. Functions of the program are called as the entry is.

Note [Entry]
`void NAME(parameters, i64 threads, ptr results, ptr err)`. Scalars come by value (a complex one as two, a bool as i8),
arrays as pointers to their first element. `results` has an 8-byte slot for each scalar result (two for a complex one),
then a pointer for each given array, which the caller frees with `free`. `err` has four i64: the code (site + 1, 0
without an error, -1 out of memory, -2 interrupted) and three arguments (floats as the bits of a double); then four of a
warning, and three words of an exception that a signal handler raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tapeless.backends.llvm import stopping
from tapeless.backends.llvm.code import Code, Shared
from tapeless.backends.llvm.rules import RULES
from tapeless.backends.llvm.units import Unit, Units
from tapeless.backends.llvm.writer import MEMORY, Machine, Module, Writer, symbol
from tapeless.lower.ir.loopir import LARGEST_SIZE, Buffer, Program, Tag
from tapeless.lower.kernels import outlined


class HostCode(Code):
    """Writes functions of the host."""

    rules = RULES


@dataclass(frozen=True)
class Emitted:
    text: str
    units: tuple[Unit, ...]  # the same in one or several modules
    externals: tuple[str, ...]


def emit(
    program: Program,
    target: Machine,
    numbers: Mapping[int, int] | None = None,
    code: type[Code] = HostCode,
    early: Callable[[Unit], None] = lambda unit: None,
) -> Emitted:
    """`numbers`: of loops, by id, for marks that come back in optimised code. `code`: what writes functions. `early` is
    given the first units as soon as they are complete.
    """
    module = Module(target)
    units = Units(module, early)
    code.prepare(module)
    program = outlined(program, Tag.threads)
    for function in (*program.functions, program):
        shared = Shared(function, module, numbers, function is program)
        units.large |= shared.pieces.large
        _write(code(shared, Writer(module, shared.flags), err="%err"), function is not program)
    return Emitted(str(module), units.finish(), tuple(sorted(module.externals)))


def _write(code: Code, internal: bool) -> None:
    shared, w = code.shared, code.w
    program = shared.program
    w.open("start")
    code.start()
    stopping.begin(code, program.body)
    params = []
    for k, param in enumerate(program.params):
        if isinstance(param, Buffer):
            name = code.pointers[param] = f"%{_safe(param.name)}.p{k}"
            params.append(f"ptr noalias {'' if param.written else 'readonly '}{name}")
            continue
        dtype = param.type.dtype
        names = [f"%{_safe(param.name)}.p{k}{part}" for part in (("", "i") if dtype.is_complex else ("",))]
        bounds = f" range(i64 0, {LARGEST_SIZE + 1})" if k < program.sizes else ""
        params += [f"{MEMORY[dtype]}{bounds} {name}" for name in names]
        code.values[param] = code.from_memory(dtype, names)
    code.values[program.threads] = ("%threads",)
    _, given = shared.slots_of_results()
    for k in range(len(program.given_results)):
        w.do(f"store ptr null, ptr {w.slot('%results', given + k)}, align 8")
    code.block(program.body)
    code.end()
    stopping.finish(code, given, len(program.given_results))
    params += ["i64 %threads", "ptr noalias %results", "ptr %err"]
    name = symbol(program.name)
    shared.module.add(
        name,
        f"void {name}({', '.join(params)}) {shared.attributes('noinline ' if program.shared else '')}",
        w.body(),
        internal,
    )


def _safe(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else "v"
