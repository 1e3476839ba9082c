"""What a GPU does for a program, as text: its kernels in the order of the host, with what they run over.

`launches` takes a program of launches. A line for each kernel and each call of a library, with the line of the source it
comes from; loops and choices of the host around them. Sizes are written with the names of the program's parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from tapeless.ir.types import Atom, Const, Var
from tapeless.lower.ir.loopir import Barrier, Call, For, If, Launch, Let, Load, Program, Space, Stm, Tag, Wait, While
from tapeless.lower.ir.walk import Block, walk
from tapeless.ops.table import TABLE

DEEP = 4  # operations of a size that are written out


def launches(program: Program) -> str:
    shown = _Shown(program)
    lines = list(shown.block(program.body, "  "))
    return "\n".join([f"{program.name.removeprefix('tp_')}:", *(lines or ["  nothing runs on the device"])]) + "\n"


class _Shown:
    def __init__(self, program: Program) -> None:
        self.lets = {s.var: s for s in walk(program.body) if isinstance(s, Let)}
        self.params = {p for p in program.params if isinstance(p, Var)}

    def block(self, block: Block, pad: str) -> Iterator[str]:
        for stm in block:
            yield from self.stm(stm, pad)

    def stm(self, stm: Stm, pad: str) -> Iterator[str]:
        match stm:
            case Launch(kernel):
                yield f"{pad}{self.kernel(kernel.loop)}{_line(kernel.loop)}"
            case Call(name=name):
                yield f"{pad}call {name}{'' if stm.of_device else ', by the host'}"
            case Load(buffer=buffer) if buffer.space is Space.device:
                yield f"{pad}the host waits for a number"
            case Wait():
                yield f"{pad}the host waits, and goes on by itself"
            case For(lo=lo, hi=hi):
                inner = list(self.block(stm.body, pad + "  "))
                yield from [f"{pad}for {self.size(lo)} to {self.size(hi)}{_line(stm)}:", *inner] if inner else ()
            case While():
                inner = [*self.block(stm.test, pad + "  "), *self.block(stm.body, pad + "  ")]
                yield from [f"{pad}while{_line(stm)}:", *inner] if inner else ()
            case If(cond=cond):
                then, orelse = (list(self.block(b, pad + "  ")) for b in (stm.then, stm.orelse))
                if then or orelse:
                    yield f"{pad}if {self.size(cond)}:"
                    yield from then or [f"{pad}  nothing"]
                if orelse:
                    yield from [f"{pad}otherwise:", *orelse]

    def kernel(self, loop: For) -> str:
        inner = next((s for s in loop.body if isinstance(s, For) and s.tag is Tag.block), None)
        width = self.size(loop.hi)
        if inner is None:
            return "one thread, in order" if width == "1" else f"a thread for each of {width}"
        if width == "1":
            return "one block, a loop of small kernels" if any(map(_waits, inner.body)) else "one block"
        return f"a block for each of {width}"

    def size(self, a: Atom, depth: int = DEEP) -> str:
        if isinstance(a, Const):
            return str(a.value)
        let = self.lets.get(a)
        if a in self.params or let is None or not depth:
            return a.name
        args = [self.size(x, depth - 1) for x in let.args]
        symbol = TABLE[let.op].symbol
        if let.op == "identity":
            return args[0]
        if symbol and len(args) == 2:
            return f"({args[0]} {symbol} {args[1]})"
        return f"{let.op}({', '.join(args)})"


def _waits(stm: Stm) -> bool:
    return isinstance(stm, (For, While)) and any(isinstance(s, Barrier) for s in walk((stm,)))


def _line(stm: For | While) -> str:
    return f", line {stm.span.line}" if stm.span.line else ""
