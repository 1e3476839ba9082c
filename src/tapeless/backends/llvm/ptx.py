"""The `grid` loops of a program as PTX kernels, through the same emitter as the CPU's code.

`ptx` takes a program and an architecture and gives the text and the kernels, in order of appearance. `parts_of` gives
parts that can be worked on at once, each by `assembly`. Functions of the C library become libdevice's, which is linked in when
it is found in a CUDA toolkit or a wheel.

Note [Threads of a kernel]
A kernel takes what it is handed over, in order (a complex scalar as two, a bool as i8), then the
first index (i64), the number of iterations (i64) and the error record of Note [Entry]. Without a `block` loop in its
body, each thread runs one iteration; with one, each block runs one iteration and its threads share the block loops.
Threads, and blocks, beyond the number of iterations do nothing, and so do all where a kernel before has left an error:
what it tested is not so.

Note [Several elements]
A thread that reads one number and waits for it leaves most of the memory's speed unused. Where an iteration is short, a
thread has up to EACH_THREAD of them, as far from each other as there are threads, and begins all before it waits for any.
Divisions of integers are branches on a GPU, and nothing begins before them: where there is one, a thread has one element.
So it is in nests of maps that read more than a few numbers: neighbours in other rows are found in the cache while blocks near
this one need them too.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import site
from collections import ChainMap
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from tapeless.backends.llvm import host, optimize, stopping, unlocked
from tapeless.backends.llvm.code import Code, Shared
from tapeless.backends.llvm.counted import counted
from tapeless.backends.llvm.rules import RULES
from tapeless.backends.llvm.writer import MEMORY, Bounds, Machine, Module, Writer, symbol
from tapeless.ir.target import Target
from tapeless.ir.types import DType
from tapeless.lower.ir.loopir import (
    ALLOCATED,
    Alloc,
    Barrier,
    Buffer,
    Check,
    For,
    Kernel,
    Launch,
    Let,
    Load,
    Program,
    Space,
    Stm,
    Tag,
    While,
)
from tapeless.lower.ir.walk import is_blocked, walk
from tapeless.lower.kernels import outlined
from tapeless.ops.table import TABLE

TRIPLE = "nvptx64-nvidia-cuda"
LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
EACH_THREAD = 4  # iterations of a thread: Note [Several elements]
SHORT = 64  # statements of an iteration
PART = 400  # statements that are worth a thread of their own
FEW_LOADS = 3  # of an iteration of a nest
SIMPLE = 4  # cost of an operation on integers that is no division
# The first PTX version that knows an architecture; 8.0 (CUDA 12.0) for all older ones.
PTX_VERSIONS = ((120, "ptx87"), (100, "ptx86"), (0, "ptx80"))
MANY, FOR_MANY = 500, "ptx81"  # parameters of a kernel, and the version (of CUDA 12.1) that allows more


@dataclass(frozen=True)
class Part:
    """Some kernels of a program, as LLVM IR."""

    kernels: tuple[Kernel, ...]
    text: str
    externals: frozenset[str]


def ptx(program: Program, arch: str = "sm_80") -> tuple[str, list[Kernel]]:
    program = outlined(program, Tag.grid)
    part = _part(program, kernels_of(program))
    return assembly(part, arch), list(part.kernels)


def parts_of(program: Program, most: int) -> Iterator[Part]:
    """No more than so many, about as large as each other; small programs are one."""
    shares: list[list[Kernel]] = [[] for _ in range(max(most, 1))]
    sizes = {kernel.name: sum(1 for _ in walk(kernel.block)) for kernel in kernels_of(program)}
    count = min(len(shares), -(-sum(sizes.values()) // PART))
    totals = [0] * max(count, 1)
    for kernel in sorted(kernels_of(program), key=lambda kernel: -sizes[kernel.name]):
        k = totals.index(min(totals))
        shares[k].append(kernel)
        totals[k] += sizes[kernel.name]
    return (_part(program, share) for share in shares if share)


def kernels_of(program: Program) -> list[Kernel]:
    """In order of appearance, which is that of their handles."""
    return [stm.kernel for stm in walk(program.body) if isinstance(stm, Launch)]


def _part(program: Program, kernels: Sequence[Kernel]) -> Part:
    machine = _machine("sm_80", many=False)
    module = Module(Machine(Target.ptx, TRIPLE, str(machine.target_data)))
    shared = Shared(program, module)
    for kernel in kernels:
        _write(shared, kernel)
    return Part(tuple(kernels), str(module), frozenset(module.externals))


def assembly(part: Part, arch: str) -> str:
    machine = _machine(arch, many=any(len(kernel.params) > MANY for kernel in part.kernels))
    context = llvm.create_context()
    parsed = optimize.parse(part.text, context)
    _link_libdevice(parsed, context, part.externals, {kernel.name for kernel in part.kernels})
    optimize.optimize(parsed, machine=machine, vectorize=False)
    return unlocked.emit_text(machine, parsed)


def _machine(arch: str, many: bool) -> Any:
    host.initialize()
    number = int(re.sub(r"\D", "", arch))
    version = next(version for least, version in PTX_VERSIONS if number >= least)
    version = max(version, FOR_MANY) if many else version
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch, features=f"+{version}", opt=3)


def is_short(kernel: Kernel) -> bool:
    """Note [Several elements]"""
    inside = list(walk(kernel.loop.body))
    in_nest = any(isinstance(s, Let) and TABLE[s.op].locates for s in inside)
    if in_nest and sum(isinstance(s, Load) for s in inside) > FEW_LOADS:
        return False
    return len(inside) <= SHORT and not any(isinstance(s, (For, While, Check, Barrier)) or _divides(s) for s in inside)


def _divides(stm: Stm) -> bool:
    return isinstance(stm, Let) and stm.var.type.dtype.is_int and TABLE[stm.op].cost > SIMPLE


def _write(shared: Shared, kernel: Kernel) -> None:
    code = KernelCode(shared, Writer(shared.module, shared.flags), err="%err", parallel=True)
    w = code.w
    w.open("start")
    params = []
    for k, param in enumerate(kernel.params):
        if isinstance(param, Buffer):
            if param.space not in (*ALLOCATED, Space.param):
                raise NotImplementedError(
                    f"the {param.space.value} buffer {param.name} is used in and outside a grid loop"
                )
            code.pointers[param] = f"%b{k}"
            params.append(f"ptr noalias {'' if param.written else 'readonly '}%b{k}")
            continue
        dtype = param.type.dtype
        names = [f"%s{k}{part}" for part in (("", "i") if dtype.is_complex else ("",))]
        params += [f"{MEMORY[dtype]} {part}" for part in names]
        code.values[param] = code.from_memory(dtype, names)
    code.write_kernel(kernel.loop, is_short(kernel))
    name = symbol(kernel.name)
    header = f"ptx_kernel void {name}({', '.join([*params, 'i64 %lo', 'i64 %count', 'ptr %err'])})"
    shared.module.add(name, f"{header} {shared.attributes()}", w.body())


class KernelCode(Code):
    """Writes the body of one kernel."""

    def special(self, register: str) -> str:
        """A special register of PTX: tid, ntid, ctaid, nctaid, in x."""
        callee = self.module.intrinsic(f"llvm.nvvm.read.ptx.sreg.{register}.x", "i32", "")
        return self.w.let(f"zext i32 {self.w.let(f'call i32 {callee}()')} to i64")

    def write_kernel(self, stm: For, short: bool) -> None:
        w, blocked = self.w, is_blocked(stm)
        t = self.special("ctaid")
        if not blocked:
            before = w.let(f"mul nsw i64 {t}, {self.special('ntid')}")
            t = w.let(f"add nsw i64 {before}, {self.special('tid')}")
        work = w.label("work")
        w.branch(w.let(f"icmp slt i64 {t}, %count"), work, "cleanup")
        w.open(work)
        if self.shared.kernels_can_fail:
            go = w.label("go")
            w.branch(w.let(f"icmp eq i64 {w.let('load i64, ptr %err, align 8')}, 0"), go, "cleanup")
            w.open(go)
        if short and not blocked:
            self.several(stm, t)
        else:
            self.iteration(stm, t)
        stopping.finish(self)

    def iteration(self, stm: For, t: str) -> None:
        w = self.w
        offset = t if stm.step == 1 else w.let(f"mul nsw i64 {t}, {stm.step}")
        index = w.let(f"add nsw i64 %lo, {offset}", stm.var.name)
        if stm.var.type.dtype is DType.i32:
            index = w.let(f"trunc i64 {index} to i32")
        self.values[stm.var] = (index,)
        self.block(stm.body)

    def several(self, stm: For, t: str) -> None:
        """Note [Several elements]: all at once where they are all there."""
        w = self.w
        threads = w.let(f"mul nsw i64 {self.special('ntid')}, {self.special('nctaid')}")
        places = [t]
        for _ in range(EACH_THREAD - 1):
            places.append(w.let(f"add nsw i64 {places[-1]}, {threads}"))
        together, single = w.label("together"), w.label("single")
        w.branch(w.let(f"icmp slt i64 {places[-1]}, %count"), together, single)
        w.open(together)
        for place in places:
            self.iteration(stm, place)
        w.jump("cleanup")
        w.open(single)
        bounds = Bounds("i64", t, "%count", threads, False)
        counted(self, bounds, stm.var.name, lambda i: self.iteration(stm, i), stm.body, vectorize=False)

    def block_loop(self, stm: For) -> None:
        """The threads of a block take the iterations of a block loop in turn."""
        w = self.w
        lo, hi = self.index(stm.lo), self.index(stm.hi)
        offset = w.let(f"mul nsw i64 {self.special('tid')}, {stm.step}")
        start = w.let(f"add nsw i64 {lo}, {offset}")
        stride = w.let(f"mul nsw i64 {self.special('ntid')}, {stm.step}")

        def body(i: str) -> None:
            if stm.var.type.dtype is DType.i32:
                i = w.let(f"trunc i64 {i} to i32")
            self.values[stm.var] = (i,)
            self.block(stm.body)

        counted(self, Bounds("i64", start, hi, stride, stm.step < 0), stm.var.name, body, stm.body, vectorize=False)

    def pointer(self, buffer: Buffer) -> str:
        if buffer.space is Space.shared and buffer not in self.pointers:
            components = (buffer.size or 0) * (2 if buffer.dtype.is_complex else 1)
            name = self.module.shared_memory(buffer.name, f"[{max(components, 1)} x {MEMORY[buffer.dtype]}]")
            self.pointers[buffer] = f"addrspacecast (ptr addrspace(3) {name} to ptr)"
        return super().pointer(buffer)


def _loop(code: KernelCode, stm: For) -> None:
    if stm.tag == Tag.block:
        code.block_loop(stm)
    else:
        RULES[For](code, stm)


def _barrier(code: KernelCode, stm: Barrier) -> None:
    callee = code.module.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", "void", "i32")
    code.w.do(f"call void {callee}(i32 0)")


def _allocate(code: KernelCode, stm: Alloc) -> None:
    raise NotImplementedError(f"allocating {stm.buffer.name} inside a kernel")


KernelCode.rules = ChainMap({For: _loop, Barrier: _barrier, Alloc: _allocate}, RULES)


# --- libdevice ---------------------------------------------------------------------------------------------------


@functools.cache
def libdevice() -> str | None:
    """The path of libdevice, in the toolkit that the environment names, at its usual places, or in a wheel."""
    roots = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")]
    roots += ["/usr/local/cuda", *sorted(glob.glob("/usr/local/cuda-*"), reverse=True), "/opt/cuda"]
    for packages in [*site.getsitepackages(), site.getusersitepackages()]:
        roots += sorted(glob.glob(os.path.join(packages, "nvidia", "*")))
    places = [os.path.join(root, LIBDEVICE) for root in roots if root]
    for packages in site.getsitepackages():
        places.append(os.path.join(packages, "triton/backends/nvidia/lib/libdevice.10.bc"))
    return next((place for place in places if os.path.exists(place)), None)


@functools.cache
def _bitcode() -> bytes | None:
    path = libdevice()
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def _link_libdevice(module: Any, context: Any, externals: AbstractSet[str], kernels: AbstractSet[str]) -> None:
    needed = sorted(name for name in externals if name.startswith("__nv_"))
    if not needed:
        return
    data = _bitcode()
    if data is None:
        functions = ", ".join(name.removeprefix("__nv_") for name in needed)
        raise NotImplementedError(f"{functions} on a GPU needs libdevice.10.bc of a CUDA toolkit; set CUDA_HOME to one")
    library = optimize.in_context(llvm.parse_bitcode(data, context), context)
    library.triple, library.data_layout = TRIPLE, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if not function.is_declaration and function.name not in kernels:
            function.linkage = llvm.Linkage.internal


__all__ = ["EACH_THREAD", "Part", "assembly", "is_short", "kernels_of", "libdevice", "parts_of", "ptx"]
