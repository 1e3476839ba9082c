"""What is legal in Loop IR, checked statement by statement.

Takes a program and gives `verify_program`, which raises `LoopIRError` naming the statement. Relies on the ops table
for the types of operations. What depends on values (bounds, initialisation, order) is for `lower/ir/interp`.

Note [Heap]
On each path a heap buffer is allocated before it is used and then freed or given, once. Branches agree on what is
allocated when they meet, and a loop leaves what it found: a buffer of its own is gone at the end of each iteration.
A failing check is no path: what is still allocated is then freed on the way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import Const, Var
from tapeless.lower.ir.loopir import (
    ALLOCATED,
    SHARED_BYTES,
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
    Tag,
    Wait,
    While,
)
from tapeless.lower.ir.printer import Printer
from tapeless.lower.ir.walk import binds, buffers, children, reads, walk
from tapeless.ops.table import TABLE

CHECK_ARGS = 3


class LoopIRError(AssertionError):
    """A program is not legal Loop IR: a mistake of the compiler, never of its user."""


class Blame:
    """Makes errors that name a statement and where it comes from. The printer is only made when there is an error."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._printer: Printer | None = None

    def name(self, thing: Var | Buffer) -> str:
        self._printer = self._printer or Printer(self._program, fold=False)
        return self._printer.name(thing)

    def error(self, stm: Stm | None, reason: str) -> LoopIRError:
        self._printer = self._printer or Printer(self._program, fold=False)
        lines = [f"program {self._program.name}: {reason}"]
        if stm is not None:
            lines.append(f"  in `{self._printer.head(stm)}`")
            if span := _source(self._program.body, stm, NOWHERE):
                lines.append(f"  from {span}")
        return LoopIRError("\n".join(lines))


def _source(block: Sequence[Stm], wanted: Stm, around: Span) -> Span | None:
    """The place of the innermost loop that has one, the statement itself included."""
    for stm in block:
        here = stm.span if isinstance(stm, (For, While)) and stm.span != NOWHERE else around
        if stm is wanted:
            return None if here == NOWHERE else here
        for inner in children(stm):
            if found := _source(inner, wanted, here):
                return found
    return None


def verify_program(program: Program) -> None:
    known: dict[str, Program] = {}
    for function in (*program.functions, program):
        _Verifier(function, known).verify()
        known[function.name] = function


@dataclass
class _Path:
    """What has happened on all ways to here. `live` says under how many parallel loops a buffer was allocated."""

    live: dict[Buffer, int] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)
    returned: set[int] = field(default_factory=set)

    def copy(self) -> _Path:
        return _Path(dict(self.live), set(self.given), set(self.returned))


class _Verifier:
    def __init__(self, program: Program, known: Mapping[str, Program]) -> None:
        self._program, self._known = program, known
        self._blame = Blame(program)
        self._bound: dict[Var, int | None] = {}  # in scope; for declared scalars, under how many parallel loops
        self._ever_bound: set[Var] = set()
        self._tags: list[Tag] = []  # of the loops around
        self._path = _Path()
        self._dead = (
            False  # under a condition or behind a check that always fails: positions may be known to be outside
        )
        self._stm: Stm | None = None

    def verify(self) -> None:
        program = self._program
        params = [*program.params, program.threads]
        self._require(len(set(params)) == len(params), "a parameter is there twice")
        self._dtype(program.threads, DType.i64)
        for param in params:
            if isinstance(param, Var):
                self._bind(param)
            else:
                self._require(param.space is Space.param, "parameter {} is in another space", param)
        self._block(program.body)
        self._stm = None
        self._require(not self._path.live, "heap buffers left over: {}", *self._path.live)
        for kind, done, wanted in (
            ("scalar", self._path.returned, program.scalar_results),
            ("given", self._path.given, program.given_results),
        ):
            missing = set(range(len(wanted))) - done
            self._require(not missing, f"{kind} results not set on every path: {{}}", *sorted(missing))

    def _require(self, holds: bool, reason: str, *things: object) -> None:
        """`{}` in the reason stands for the things, which are only named when there is an error."""
        if not holds:
            shown = (self._blame.name(x) if isinstance(x, (Var, Buffer)) else str(x) for x in things)
            raise self._blame.error(self._stm, reason.replace("{}", ", ".join(shown)))

    @property
    def _parallel(self) -> int:
        """How many parallel loops there are around."""
        return sum(tag.parallel for tag in self._tags)

    # -- statements

    @contextmanager
    def _scope(self) -> Iterator[None]:
        outer = dict(self._bound)
        yield
        self._bound = outer

    def _block(self, stms: tuple[Stm, ...]) -> None:
        with self._scope():
            self._statements(stms)

    def _statements(self, stms: tuple[Stm, ...]) -> None:
        before = self._dead
        for stm in stms:
            self._stm = stm
            self._statement(stm)
            self._dead = self._dead or (
                isinstance(stm, Check) and stm.fatal and isinstance(stm.cond, Const) and not stm.cond.value
            )
        self._dead = before

    def _statement(self, stm: Stm) -> None:
        match stm:
            case Let(var=var):
                self._dtype(var, self._result(stm))
                self._require(not stm.exact or var.type.dtype.is_int, "only operations on integers can be exact")
                self._bind(var)
            case Load(var=var, buffer=buffer, index=index):
                self._cell(buffer, index)
                self._dtype(var, buffer.dtype)
                self._bind(var)
            case Store(buffer, index, value):
                self._write(buffer, index, value)
            case Atomic(op, buffer, index, value):
                self._write(buffer, index, value)
                self._require(op in TABLE and TABLE[op].arity == 2, "there is no atomic operation {}", op)
                fits = buffer.dtype in TABLE[op].dtypes and TABLE[op].result([buffer.dtype] * 2) is buffer.dtype
                self._require(fits, f"{op} does not combine {buffer.dtype!r}")
            case Declare(var, init):
                self._atom(init, var.type.dtype)
                self._bind(var, declared=True)
            case Assign(var, value):
                self._require(var in self._bound, "{} is assigned before it is declared", var)
                self._require(self._bound[var] is not None, "{} is bound once and cannot be assigned", var)
                self._require(self._bound[var] == self._parallel, "{} is declared outside of this parallel loop", var)
                self._atom(value, var.type.dtype)
            case For():
                self._loop(stm)
            case While(test=test, cond=cond, body=body):
                with self._scope(), self._repeated(Tag.seq):
                    self._statements(test)
                    self._stm = stm
                    self._atom(cond, DType.bool)
                    self._block(body)
            case If():
                self._branches(stm)
            case Alloc() | Free() | Swap() | Give():
                self._heap(stm)
            case Check(cond, site, args):
                self._atom(cond, DType.bool)
                self._require(0 <= site < len(self._program.sites), "there is no error site {}", site)
                self._require(len(args) <= CHECK_ARGS, "a check keeps at most {} arguments", CHECK_ARGS)
                for arg in args:
                    self._atom(arg, DType.i64, DType.f64)
            case Call(args=mixed, result=result):
                for item in mixed:
                    if isinstance(item, Pointer):
                        self._cell(item.buffer, item.offset, end=True)
                    else:
                        self._atom(item, *DType)
                if result is not None:
                    self._dtype(result, DType.i64)
                    self._bind(result)
            case Invoke():
                self._invoke(stm)
            case Launch():
                self._launch(stm)
            case Return(k, value):
                self._require(0 <= k < len(self._program.scalar_results), "there is no scalar result {}", k)
                self._atom(value, self._program.scalar_results[k])
                self._require(not self._parallel, "a parallel loop sets a result")
                self._path.returned.add(k)
            case Barrier():
                around = [tag for tag in self._tags if tag != Tag.seq]
                self._require(
                    around[-1:] == [Tag.block], "a barrier must stand in a block loop, with only seq loops between"
                )
            case Wait():
                self._require(not self._parallel, "only the host waits for kernels")
            case Print(parts, args):
                for arg in args:
                    self._atom(arg, *DType)
                positions = [part.position for part in parts if not isinstance(part, str)]
                self._require(all(0 <= k < len(args) for k in positions), "a part has no argument")
            case Progress(done, total):
                self._atom(done, DType.i64)
                self._atom(total, DType.i64)
                self._require(not self._parallel, "iterations of a parallel loop come in no order")
            case _:
                assert_never(stm)

    def _launch(self, stm: Launch) -> None:
        """Note [Kernels]: what its body uses of outside is handed over."""
        kernel = stm.kernel
        self._require(len(kernel.block) == 1 and isinstance(kernel.block[0], For), "a kernel is one loop")
        loop = kernel.loop
        self._require(loop.tag.parallel and not self._parallel, "a kernel is an outermost parallel loop")
        for param in kernel.params:
            if isinstance(param, Var):
                self._require(param in self._bound, "{} is handed over before it is bound", param)
            else:
                self._buffer(param)
        given, inside = set(kernel.params), list(walk(loop.body))
        bound = {loop.var, *(v for s in inside for v in binds(s))}
        shared = {b for s in inside for b in buffers(s) if b.space is Space.shared}
        used = sum((b.size or 0) * b.dtype.bytes for b in shared)
        self._require(used <= SHARED_BYTES, f"{kernel.name} uses {used} bytes of shared memory")
        for s in inside:
            for v in reads(s):
                self._require(v in bound or v in given, f"{{}} is not handed over to {kernel.name}", v)
            for b in buffers(s):
                outer = b.space is Space.param or b in self._path.live
                self._require(not outer or b in given, f"{{}} is not handed over to {kernel.name}", b)
        self._loop(loop)

    def _invoke(self, stm: Invoke) -> None:
        self._require(stm.name in self._known, "there is no function {} before this one", stm.name)
        callee = self._known[stm.name]
        self._require(not callee.given_results, "{} gives arrays", stm.name)
        self._require(len(stm.args) == len(callee.params), f"{stm.name} takes {len(callee.params)} arguments")
        written: list[Pointer] = []
        for param, arg in zip(callee.params, stm.args, strict=True):
            if isinstance(param, Var):
                self._require(not isinstance(arg, Pointer), f"{param.name} of {stm.name} is a scalar")
                if not isinstance(arg, Pointer):
                    self._atom(arg, param.type.dtype)
                continue
            self._require(isinstance(arg, Pointer), f"{param.name} of {stm.name} is an array")
            if isinstance(arg, Pointer):
                self._cell(arg.buffer, arg.offset, end=True)
                self._require(arg.buffer.dtype is param.dtype, f"{param.name} of {stm.name} has another type")
                fits = not param.written or arg.buffer.space is not Space.param or arg.buffer.written
                self._require(fits, "parameter {} is read-only", arg.buffer)
                written += [arg] if param.written else []
        self._require(len(set(written)) == len(written), "the same memory is written under two names")
        self._require(len(stm.results) == len(callee.scalar_results), f"{stm.name} has other results")
        for var, dtype in zip(stm.results, callee.scalar_results, strict=True):
            self._dtype(var, dtype)
            self._bind(var)

    def _loop(self, stm: For) -> None:
        self._require(stm.tag != Tag.grid or Tag.block not in self._tags, "a grid loop stands inside a block loop")
        self._require(stm.step != 0, "the step is 0")
        self._atom(stm.lo, DType.i64)
        self._atom(stm.hi, DType.i64)
        self._dtype(stm.var, DType.i64)
        with self._scope(), self._repeated(stm.tag):
            self._bind(stm.var)
            self._block(stm.body)

    @contextmanager
    def _repeated(self, tag: Tag) -> Iterator[None]:
        """Note [Heap]. A loop may run no iteration at all, so results that it sets do not count."""
        stm, before = self._stm, self._path.copy()
        self._tags.append(tag)
        yield
        self._tags.pop()
        self._stm = stm
        changed = self._path.live.keys() ^ before.live.keys()
        self._require(not changed, "an iteration must leave the heap as it finds it, but changes {}", *changed)
        self._require(self._path.given == before.given, "a loop gives a result")
        self._path = before

    def _branches(self, stm: If) -> None:
        self._atom(stm.cond, DType.bool)
        before = self._path.copy()
        dead, self._dead = self._dead, True
        self._block(stm.then)
        then, self._path = self._path, before
        self._block(stm.orelse)
        self._stm, self._dead = stm, dead
        differing = then.live.keys() ^ self._path.live.keys()
        self._require(not differing, "the branches disagree on whether there is memory behind {}", *differing)
        self._require(then.given == self._path.given, "only one branch gives a result")
        self._path.returned &= then.returned

    def _heap(self, stm: Alloc | Free | Swap | Give) -> None:
        live = self._path.live
        for buffer in buffers(stm):
            self._require(buffer.space in ALLOCATED, "{} is no heap buffer", buffer)
            if isinstance(stm, Alloc):
                self._require(buffer not in live, "{} is allocated already", buffer)
            else:
                self._buffer(buffer)
                self._require(live[buffer] == self._parallel, "{} is allocated outside of this parallel loop", buffer)
        match stm:
            case Alloc(buffer, size):
                self._atom(size, DType.i64)
                live[buffer] = self._parallel
            case Free(buffer):
                del live[buffer]
            case Swap(a, b):
                self._require(a.dtype is b.dtype, "the buffers hold different types")
                self._require(a.space is b.space, "the buffers are in different memories")
            case Give(k, buffer):
                self._require(0 <= k < len(self._program.given_results), "there is no given result {}", k)
                self._require(buffer.dtype is self._program.given_results[k], "given result {} has another type", k)
                self._require(k not in self._path.given, "result {} is given twice", k)
                self._require(not self._parallel, "a parallel loop gives a result")
                self._path.given.add(k)
                del live[buffer]
            case _:
                assert_never(stm)

    # -- pieces

    def _result(self, let: Let) -> DType:
        """The type of an operation whose operands fit its row."""
        self._require(let.op in TABLE, "there is no operation {}", let.op)
        row = TABLE[let.op]
        self._require(len(let.args) == row.arity, f"{let.op} takes {row.arity} operands")
        for arg in let.args:
            self._atom(arg, *DType)
        dtypes = [arg.type.dtype for arg in let.args]
        alike = dtypes[1:] if let.op == "select" else dtypes  # select: bool, t, t -> t
        fits = all(dtype in row.dtypes and dtype is alike[0] for dtype in alike)
        fits = fits and (alike is dtypes or dtypes[0] is DType.bool)
        self._require(fits, f"{let.op} does not take ({{}})", *map(repr, dtypes))
        return let.var.type.dtype if let.op == "convert" else row.result(dtypes)  # Note [Convert] in ops/table.py

    def _atom(self, atom: Atom, *dtypes: DType) -> None:
        """A scalar of one of these types, bound here."""
        if isinstance(atom, Var):
            self._require(atom in self._bound, "{} is used before it is bound", atom)
            self._require(atom.type.dtype in dtypes, f"{{}} must be {_either(dtypes)}", atom)
        else:
            self._require(_is_constant(atom), "{} is no constant of its type", atom)
            self._require(atom.dtype in dtypes, f"{{}} must be {_either(dtypes)}", atom)

    def _dtype(self, var: Var, dtype: DType) -> None:
        self._require(var.type.dtype is dtype, f"{{}} must be {dtype!r}", var)

    def _bind(self, var: Var, declared: bool = False) -> None:
        self._require(var.type.is_scalar, "{} is no scalar", var)
        self._require(var not in self._ever_bound, "{} is bound twice", var)
        self._ever_bound.add(var)
        self._bound[var] = self._parallel if declared else None

    def _cell(self, buffer: Buffer, index: Atom, end: bool = False) -> None:
        """An element of a buffer; a pointer may also stand just behind the last one."""
        self._buffer(buffer)
        self._atom(index, DType.i64)
        if isinstance(index, Const) and buffer.size is not None and not self._dead:
            self._require(0 <= index.value.real < buffer.size + end, f"index {index.value} is outside of {{}}", buffer)

    def _write(self, buffer: Buffer, index: Atom, value: Atom) -> None:
        self._cell(buffer, index)
        self._atom(value, buffer.dtype)
        self._require(buffer.space is not Space.param or buffer.written, "parameter {} is read-only", buffer)

    def _buffer(self, buffer: Buffer) -> None:
        """A buffer that has memory here."""
        match buffer.space:
            case Space.param:
                self._require(buffer in self._program.params, "{} is not among the parameters", buffer)
            case Space.heap | Space.device | Space.managed:
                self._require(buffer in self._path.live, "{} is not allocated, or is gone already", buffer)
            case Space.stack:
                self._require(buffer.size is not None, "{} has no size", buffer)
            case Space.shared:
                self._require(buffer.size is not None, "{} has no size", buffer)
                inside = Tag.grid in self._tags or Tag.block in self._tags
                self._require(inside, "shared buffer {} is used outside of grid and block loops", buffer)


def _either(dtypes: tuple[DType, ...]) -> str:
    return " or ".join(map(repr, dtypes))


def _is_constant(const: Const) -> bool:
    """Whether the value can be one of its type: an integer within range, a bool, a number without imaginary part."""
    value, dtype = const.value, const.dtype
    if dtype is DType.bool or isinstance(value, bool):
        return dtype is DType.bool and isinstance(value, bool)
    if dtype.is_int:
        return isinstance(value, int) and dtype.lowest <= value <= dtype.highest
    return dtype.is_complex or not isinstance(value, complex)
