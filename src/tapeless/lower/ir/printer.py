"""Loop IR as text for people: one statement per line, unique names, index arithmetic folded into the brackets.

Takes a program, verified or not, and gives `print_program` and `Printer`, which names things for error messages.
Relies on the ops table for infix symbols only, so that a broken program still prints.

Note [Folding]
An exact `let` that is only ever part of an index is written where it is used and has no line of its own:
`e: f64 = x[i * n + j]`. Its operands never change, so the text is true wherever it stands. `fold=False` shows all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from tapeless.ir.core import Shown
from tapeless.ir.types import Const, Var
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Atom,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    Declare,
    DType,
    For,
    Free,
    Give,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Pointer,
    Print,
    Program,
    Progress,
    Return,
    Space,
    Stm,
    Store,
    Swap,
    Wait,
    While,
)
from tapeless.lower.ir.walk import binds, buffers, operands, walk
from tapeless.ops.table import TABLE

_WIDTH = 120
_FOLD_LIMIT = 12  # operations in one index
_LEVELS = (("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "//", "%", "/"), ("**",))
_PRECEDENCE = {symbol: level for level, symbols in enumerate(_LEVELS, start=1) for symbol in symbols}
_PLAIN = (DType.bool, DType.i64, DType.f64, DType.c128)  # constants of these types show no type


def print_program(program: Program, fold: bool = True) -> str:
    """Its functions first. The sites, which are those of all, at the end."""
    return "\n".join([*(Printer(f, fold).function() for f in program.functions), Printer(program, fold).program()])


# --- folding -----------------------------------------------------------------------------------------------------


def _foldable(program: Program) -> dict[Var, Let]:
    """Note [Folding]. Uses come after definitions, so the last walk meets all uses of a variable before its `let`."""
    stms = list(walk(program.body))
    changing = {stm.var for stm in stms if isinstance(stm, Declare)}
    sizes: dict[Var, int] = {}
    for stm in stms:
        if isinstance(stm, Let) and stm.exact and stm.op in TABLE and TABLE[stm.op].symbol in _PRECEDENCE:
            used = [arg for arg in stm.args if isinstance(arg, Var)]
            if len(stm.args) == 2 and changing.isdisjoint(used):
                sizes[stm.var] = 1 + sum(sizes.get(arg, 0) for arg in used)
    positions: set[Var] = set()
    values: set[Var] = set()
    folded: dict[Var, Let] = {}
    for stm in reversed(stms):
        match stm:
            case Let(var=var) if var in positions and var not in values and sizes.get(var, _FOLD_LIMIT) < _FOLD_LIMIT:
                folded[var] = stm
                positions.update(arg for arg in stm.args if isinstance(arg, Var))
            case _:
                indices, others = operands(stm)
                positions.update(arg for arg in indices if isinstance(arg, Var))
                values.update(arg for arg in others if isinstance(arg, Var))
    return folded


# --- text --------------------------------------------------------------------------------------------------------


class Printer:
    """Names are given in the order in which a program binds them: the second `x` is `x.1`."""

    def __init__(self, program: Program, fold: bool = True) -> None:
        self._program = program
        self._folded = _foldable(program) if fold else {}
        self._names: dict[Var | Buffer, str] = {}
        self._taken: set[str] = set()
        for param in (*program.params, program.threads):
            self.name(param)
        for stm in walk(program.body):
            for buffer in buffers(stm):
                self.name(buffer)
            for var in binds(stm):
                if var not in self._folded:
                    self.name(var)

    def name(self, thing: Var | Buffer) -> str:
        if thing not in self._names:
            name, count = thing.name, 0
            while name in self._taken:
                count += 1
                name = f"{thing.name}.{count}"
            self._names[thing] = name
            self._taken.add(name)
        return self._names[thing]

    def program(self) -> str:
        sites = [f"site {k}: {s.error} {s.message!r} at {s.span}" for k, s in enumerate(self._program.sites)]
        return "".join([self.function(), *(f"{line}\n" for line in sites)])

    def function(self) -> str:
        return "\n".join([*self._header(), *self._locals(), *self._block(self._program.body, 1)]) + "\n"

    def head(self, stm: Stm) -> str:
        """The first line of a statement."""
        match stm:
            case Let(var=var):
                flags = _flags(exact=stm.exact, reassoc=stm.reassoc)
                return f"{self._bound(var)} = {self._operation(stm)}{flags}"
            case Load(var=var, buffer=buffer, index=index):
                return f"{self._bound(var)} = {self._cell(buffer, index)}"
            case Store(buffer, index, value):
                return f"{self._cell(buffer, index)} = {self._atom(value)}"
            case Atomic(op, buffer, index, value):
                return f"atomic {op} {self._cell(buffer, index)} {self._atom(value)}"
            case Declare(var, init):
                return f"declare {self._bound(var)} = {self._atom(init)}"
            case Assign(var, value):
                return f"{self.name(var)} := {self._atom(value)}"
            case For(var=var, lo=lo, hi=hi):
                step = f" step {stm.step}" if stm.step != 1 else ""
                scalar = "" if stm.vectorize else ", scalar"
                return f"for {self.name(var)} in {self._atom(lo)}..{self._atom(hi)}{step} {{{stm.tag.value}{scalar}}}:"
            case While(test=(), cond=cond):
                return f"while {self._atom(cond)}:"
            case While():
                return "while:"
            case If(cond=cond):
                return f"if {self._atom(cond)}{_flags(likely=stm.likely is True, unlikely=stm.likely is False)}:"
            case Alloc(buffer, size):
                return f"alloc {self._memory(buffer, self._index(size))}"
            case Free(buffer):
                return f"free {self.name(buffer)}"
            case Swap(a, b):
                return f"swap {self.name(a)}, {self.name(b)}"
            case Check(cond, k, args, fatal):
                sites = self._program.sites
                error = f" {sites[k].error}" if 0 <= k < len(sites) else ""
                return f"{'check' if fatal else 'warn unless'} {self._atom(cond)} else site {k}{error}({self._atoms(args)})"
            case Call(name, mixed, result):
                target = f"{self._bound(result)} = " if result is not None else ""
                return f"{target}call {name}({self._passed(mixed)})"
            case Invoke(name, mixed, results):
                target = f"{', '.join(map(self._bound, results))} = " if results else ""
                return f"{target}invoke {name}({self._passed(mixed)})"
            case Launch(kernel):
                return f"launch {kernel.name}({', '.join(map(self.name, kernel.params))}):"
            case Give(k, buffer):
                return f"give {k} {self.name(buffer)}"
            case Return(k, value):
                return f"return {k} {self._atom(value)}"
            case Barrier():
                return "barrier"
            case Wait():
                return "wait"
            case Print(parts, args):
                return " ".join(("print", *(repr(p) if isinstance(p, str) else self._shown(p, args) for p in parts)))
            case Progress(done, total, backward):
                return f"progress {self._atom(done)} of {self._atom(total)}{' backward' if backward else ''}"
            case _:
                assert_never(stm)

    # -- lines

    def _header(self) -> list[str]:
        program = self._program
        params = [self._param(p) for p in (*program.params, program.threads)]
        results = [repr(dtype) for dtype in program.scalar_results] + [
            f"{dtype!r}[]" for dtype in program.given_results
        ]
        end = f" -> {', '.join(results) or 'nothing'}{_flags(fastmath=program.fastmath, strict=program.strict)}"
        line = f"program {program.name}({', '.join(params)}){end}"
        if len(line) <= _WIDTH:
            return [line]
        return [f"program {program.name}(", *(f"    {param}," for param in params), f"){end}"]

    def _param(self, param: Var | Buffer) -> str:
        if isinstance(param, Var):
            return self._bound(param)
        return self._memory(param, "") + _flags(written=param.written)

    def _locals(self) -> list[str]:
        """Stack and shared buffers: no statement brings them into being."""
        found: dict[Buffer, None] = {}
        for stm in walk(self._program.body):
            found.update(dict.fromkeys(b for b in buffers(stm) if b.space in (Space.stack, Space.shared)))
        return [f"  buffer {self._memory(buffer, str(buffer.size))}" for buffer in found]

    def _block(self, stms: tuple[Stm, ...], depth: int) -> list[str]:
        indent = "  " * depth
        lines: list[str] = []
        for stm in stms:
            if isinstance(stm, Let) and stm.var in self._folded:
                continue
            lines.append(indent + self.head(stm))
            match stm:
                case For(body=body) | While(test=(), body=body):
                    lines += self._block(body, depth + 1)
                case While(test=test, cond=cond, body=body):
                    lines += self._block(test, depth + 1)
                    lines.append(f"{indent}do {self._atom(cond)}:")
                    lines += self._block(body, depth + 1)
                case Launch(kernel):
                    lines += self._block(kernel.block, depth + 1)
                case If(then=then, orelse=orelse):
                    lines += self._block(then, depth + 1)
                    if orelse:
                        lines.append(f"{indent}else:")
                        lines += self._block(orelse, depth + 1)
                case _:
                    pass
        return lines or [f"{indent}pass"]

    # -- pieces

    def _bound(self, var: Var) -> str:
        return f"{self.name(var)}: {var.type!r}"

    def _memory(self, buffer: Buffer, size: str) -> str:
        return f"{self.name(buffer)}: {buffer.space.value} {buffer.dtype!r}[{size}]"

    def _cell(self, buffer: Buffer, index: Atom) -> str:
        return f"{self.name(buffer)}[{self._index(index)}]"

    def _atoms(self, atoms: tuple[Atom, ...]) -> str:
        return ", ".join(map(self._atom, atoms))

    def _shown(self, part: Shown, args: Sequence[Atom]) -> str:
        atom = self._atom(args[part.position]) if part.position < len(args) else f"?{part.position}"
        return f"{atom}:{part.field!r}" if part.field else atom

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Const):
            return repr(atom.value) if atom.dtype in _PLAIN else repr(atom)
        return self.name(atom)

    def _operation(self, let: Let) -> str:
        symbol = TABLE[let.op].symbol if let.op in TABLE else ""
        match let.args:
            case (x,) if symbol:
                return f"{symbol}{self._atom(x)}"
            case (x, y) if symbol:
                return f"{self._atom(x)} {symbol} {self._atom(y)}"
            case args:
                return f"{let.op}({self._atoms(args)})"

    def _passed(self, args: tuple[Atom | Pointer, ...]) -> str:
        return ", ".join(
            f"&{self._cell(arg.buffer, arg.offset)}" if isinstance(arg, Pointer) else self._atom(arg) for arg in args
        )

    def _index(self, atom: Atom, level: int = 0) -> str:
        """Note [Folding]. In parentheses where the operation around it, of precedence `level`, binds tighter."""
        if isinstance(atom, Const) or atom not in self._folded:
            return self._atom(atom)
        let = self._folded[atom]
        symbol = TABLE[let.op].symbol
        precedence = _PRECEDENCE[symbol]
        left, right = let.args
        text = f"{self._index(left, precedence)} {symbol} {self._index(right, precedence + 1)}"
        return f"({text})" if precedence < level else text


def _flags(**flags: bool) -> str:
    shown = ", ".join(name for name, on in flags.items() if on)
    return f" {{{shown}}}" if shown else ""
