"""Walking Loop IR: the blocks inside statements, and what a statement reads, binds and mentions.

Takes statements. Every walker is written with these, so a new statement is taught here once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from typing import assert_never

from tapeless.ir.types import Atom, Const, Var
from tapeless.lower.ir.loopir import (
    BLOCK_THREADS,
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Check,
    Declare,
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
    Stm,
    Store,
    Swap,
    Tag,
    Wait,
    While,
)

Block = tuple[Stm, ...]


HOLDING = frozenset({For, While, If, Launch})  # the statements with blocks inside


def children(stm: Stm) -> tuple[Block, ...]:
    """The blocks inside a statement, in the order in which they run."""
    if type(stm) not in HOLDING:
        return ()
    match stm:
        case For(body=body):
            return (body,)
        case While(test=test, body=body):
            return test, body
        case If(then=then, orelse=orelse):
            return then, orelse
        case Launch(kernel):
            return (kernel.block,)
        case _:
            return ()


def walk(block: Block, closed: Container[int] = ()) -> Iterator[Stm]:
    """All statements, each before those inside it, but not those inside `closed` ones, given by their ids."""
    left = list(reversed(block))
    while left:
        stm = left.pop()
        yield stm
        if type(stm) not in HOLDING or (closed and id(stm) in closed):
            continue
        for inner in reversed(children(stm)):
            left.extend(reversed(inner))


def with_blocks(stm: Stm, change: Callable[[Block], Block]) -> Stm:
    """The statement with its blocks changed, but for those of kernels; itself where none is."""
    match stm:
        case For(body=body):
            new = change(body)
            return stm if new is body else replace(stm, body=new)
        case While(test=test, body=body):
            first, new = change(test), change(body)
            return stm if first is test and new is body else replace(stm, test=first, body=new)
        case If(then=then, orelse=orelse):
            first, new = change(then), change(orelse)
            return stm if first is then and new is orelse else replace(stm, then=first, orelse=new)
        case _:
            return stm


def shows_progress(program: Program) -> bool:
    blocks = [program.body, *(f.body for f in program.functions)]
    return any(isinstance(stm, Progress) for block in blocks for stm in walk(block))


def is_blocked(loop: For) -> bool:
    """Whether an iteration of a grid is one of a block, whose threads share loops inside."""
    return any(isinstance(s, For) and s.tag is Tag.block for s in walk(loop.body))


def block_threads(loop: For) -> int:
    """How many threads a block of such a grid has."""
    ends = [s.hi for s in walk(loop.body) if isinstance(s, For) and s.tag is Tag.block]
    return min(max((int(hi.value.real) for hi in ends if isinstance(hi, Const)), default=BLOCK_THREADS), BLOCK_THREADS)


def kernels_can_fail(program: Program) -> bool:
    """Whether one of its kernels may leave an error."""
    launches = [s for s in walk(program.body) if isinstance(s, Launch)]
    return any(isinstance(s, Check) for launch in launches for s in walk(launch.kernel.block))


def buffers(stm: Stm) -> tuple[Buffer, ...]:
    """The buffers that a statement itself names, those in its blocks apart."""
    if type(stm) is Let:
        return ()
    match stm:
        case Load() | Store() | Atomic() | Alloc() | Free() | Give():
            return (stm.buffer,)
        case Swap(a, b):
            return a, b
        case Call(args=args) | Invoke(args=args):
            return tuple(arg.buffer for arg in args if isinstance(arg, Pointer))
        case (
            Let()
            | Declare()
            | Assign()
            | For()
            | While()
            | If()
            | Check()
            | Return()
            | Barrier()
            | Print()
            | Launch()
            | Wait()
        ):
            return ()
        case Progress():
            return ()
        case _:
            assert_never(stm)


def operands(stm: Stm) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
    """The atoms that a statement itself uses as positions or sizes, and the others."""
    match stm:
        case Let(args=args) | Print(args=args):
            return (), args
        case Load(index=index):
            return (index,), ()
        case Store(index=index, value=value) | Atomic(index=index, value=value):
            return (index,), (value,)
        case Declare(init=value) | Return(value=value):
            return (), (value,)
        case Assign(var=var, value=value):
            return (), (value, var)
        case For(lo=lo, hi=hi):
            return (), (lo, hi)
        case While(cond=cond) | If(cond=cond):
            return (), (cond,)
        case Alloc(size=size):
            return (size,), ()
        case Check(cond=cond, args=args):
            return (), (cond, *args)
        case Call(args=mixed) | Invoke(args=mixed):
            offsets = tuple(arg.offset for arg in mixed if isinstance(arg, Pointer))
            return offsets, tuple(arg for arg in mixed if not isinstance(arg, Pointer))
        case Progress(done=done, total=total):
            return (), (done, total)
        case Free() | Swap() | Give() | Barrier() | Wait() | Launch():
            return (), ()
        case _:
            assert_never(stm)


def reads(stm: Stm) -> list[Var]:
    """The scalars that a statement itself uses, the one that it assigns included."""
    if isinstance(stm, Let):  # most are
        return [a for a in stm.args if isinstance(a, Var)]
    if isinstance(stm, Load):
        return [stm.index] if isinstance(stm.index, Var) else []
    positions, others = operands(stm)
    return [a for a in (*positions, *others) if isinstance(a, Var)]


def binds(stm: Stm) -> tuple[Var, ...]:
    """The scalars that a statement brings into being."""
    if isinstance(stm, (Let, Load)):  # most are
        return (stm.var,)
    match stm:
        case Let() | Load() | Declare() | For():
            return (stm.var,)
        case Call(result=result):
            return () if result is None else (result,)
        case Invoke(results=results):
            return results
        case Store() | Atomic() | Assign() | While() | If() | Alloc() | Free() | Swap() | Check() | Give() | Return():
            return ()
        case Barrier() | Wait() | Print() | Progress() | Launch():
            return ()
        case _:
            assert_never(stm)
