"""Calls of C library functions and of SciPy's special functions from emitted code.

On the CPU a libm call carries the names of its vector forms, so that loops over it vectorise: Note [Vector math].
For PTX the same functions are libdevice's.

Note [Vector math]
LLVM replaces a call in a vectorised loop by a vector function that the call site lists in the attribute
"vector-function-abi-variant". The scalar call must be a plain function without side effects, not an intrinsic, and the
vector functions must be declared and kept, since nothing else mentions them. They are accurate to 4 ulp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapeless.backends.llvm.writer import PURE, REGISTER, Writer, literal
from tapeless.ir.target import Target
from tapeless.ir.types import DType
from tapeless.ops.op import Foreign


def call_libm(w: Writer, name: str, dtype: DType, args: Sequence[str]) -> str:
    if w.target.kind == Target.ptx:
        return call_libdevice(w, name, dtype, args)
    w.calls += 1
    kind = REGISTER[dtype]
    function = name + ("f" if dtype is DType.f32 else "")
    params = ", ".join([kind] * len(args))
    callee = w.module.declare(function, f"{kind} @({params}) speculatable {PURE}")
    operands = ", ".join(f"{kind} {arg}" for arg in args)
    return w.let(f"call {w.flags}{kind} {callee}({operands}){_variants(w, function, kind, len(args))}")


def _variants(w: Writer, function: str, kind: str, arity: int) -> str:
    forms = w.target.variants(function, arity) if w.vector_math else ()
    if not forms:
        return ""
    mappings = []
    for name, lanes in forms:
        vector = f"<{lanes} x {kind}>"
        w.module.declare(name, f"{vector} @({', '.join([vector] * arity)}) {PURE}")
        w.module.keep(name)
        mappings.append(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{function}({name})")
    return " " + w.module.attributes(f'"vector-function-abi-variant"="{",".join(mappings)}"')


def call_complex(w: Writer, name: str, args: Sequence[str]) -> tuple[str, str]:
    """A function of <complex.h> on doubles: each part of an operand is an argument of its own."""
    pair = "{ double, double }"
    callee = w.module.declare(name, f"{pair} @({', '.join(['double'] * len(args))}) {PURE}")
    both = w.let(f"call {pair} {callee}({', '.join(f'double {arg}' for arg in args)})")
    return w.let(f"extractvalue {pair} {both}, 0"), w.let(f"extractvalue {pair} {both}, 1")


def call_foreign(w: Writer, function: Foreign, dtype: DType, args: Sequence[str]) -> str:
    """A function of scipy.special.cython_special: doubles, then an int that is not used."""
    name = function.name
    if w.target.kind == Target.ptx:
        if not function.libdevice:
            raise NotImplementedError(f"scipy.special.{name} on a GPU")
        found = call_libdevice(w, function.libdevice, dtype, args)
        if name != "gammaln":
            return found
        kind, lowest = REGISTER[dtype], literal(-math.inf, dtype)[0]  # there SciPy has the same, libdevice +inf
        return w.select(w.let(f"fcmp oeq {kind} {args[0]}, {lowest}"), kind, lowest, found)
    single = dtype is DType.f32
    operands = [w.let(f"fpext float {arg} to double") for arg in args] if single else list(args)
    callee = w.module.declare(f"special_{name}", f"double @({'double, ' * len(args)}i32) {PURE}")
    result = w.let(f"call double {callee}({''.join(f'double {arg}, ' for arg in operands)}i32 0)")
    return w.let(f"fptrunc double {result} to float") if single else result


def call_libdevice(w: Writer, name: str, dtype: DType, args: Sequence[str]) -> str:
    kind = REGISTER[dtype]
    function = f"__nv_{name}" + ("f" if dtype is DType.f32 else "")
    callee = w.module.declare(function, f"{kind} @({', '.join([kind] * len(args))}) {PURE}")
    return w.let(f"call {w.flags}{kind} {callee}({', '.join(f'{kind} {arg}' for arg in args)})")
