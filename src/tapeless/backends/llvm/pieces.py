"""Large programs in pieces: statements that hold many others become functions of their own.

`split` takes a loop or a branch and the code around it, and says whether it has written it as a call.

Note [Pieces]
LLVM's register allocator and loop passes take more than linear time in the size of a function, and derivatives of
derivatives, or with several ways back through a loop, are large. Programs of more than `LARGE` statements are cut from
the inside out, so that each piece holds at least `PIECE` statements beside the pieces in it; and their loops are not
unrolled, nor written in two forms (tails.py). Small programs stay whole. A parallel loop with pieces in it does not mark its accesses: it is too large to be
a vector loop.
Scalars that a piece assigns, and buffers that it allocates, frees or swaps for others to see, are handed over by their
addresses; the piece has the scalars in slots of its own meanwhile, which are registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tapeless.backends.llvm import errors, stopping
from tapeless.backends.llvm.handover import Context
from tapeless.backends.llvm.uses import Block, Counts, inner_blocks, walk
from tapeless.backends.llvm.writer import MEMORY, Writer
from tapeless.ir.types import Var
from tapeless.lower.loopir import Alloc, Assign, Declare, For, Free, Give, If, Return, Stm, Swap, While

if TYPE_CHECKING:
    from tapeless.backends.llvm.code import Code

LARGE = 2400
PIECE = 180


class Pieces:
    """Which statements are functions of their own, and which parallel loops have such in them."""

    def __init__(self, body: Block) -> None:
        self.chosen: set[int] = set()
        self.cut: set[int] = set()
        self.large = sum(1 for _ in walk(body)) > LARGE
        if self.large:
            self._rest(body)

    def _rest(self, block: Block) -> int:
        """How many statements stay in the function, once pieces are cut out."""
        total = 0
        for stm in block:
            before = len(self.chosen)
            inner = sum(map(self._rest, inner_blocks(stm)))
            if len(self.chosen) > before:
                self.cut.add(id(stm))
            if inner >= PIECE and _may_leave(stm):
                self.chosen.add(id(stm))
                inner = 0
            total += 1 + inner
        return total


def _may_leave(stm: Stm) -> bool:
    """A parallel loop becomes a function anyway."""
    loop = isinstance(stm, For) and stm.tag == "seq"
    return (loop or isinstance(stm, While | If)) and not any(isinstance(s, Give | Return) for s in walk((stm,)))


def write(outer: Code, stm: Stm) -> None:
    """The statement as a function, and its call."""
    w, shared = outer.w, outer.shared
    block = (stm,)
    counts = Counts(block)
    own = counts.private(shared.mentions)
    inside = list(walk(block))
    assigned = {s.var for s in inside if isinstance(s, Assign | Declare)}
    moved = {b for s in inside if isinstance(s, Alloc | Free) for b in (s.buffer,)}
    moved |= {b for s in inside if isinstance(s, Swap) for b in (s.a, s.b)}

    shared.regions += 1
    name = f"{shared.program.name}.piece{shared.regions}"
    inner = type(outer)(shared, Writer(w.module, shared.flags), "", parallel=outer.parallel)
    context = Context(outer, inner)
    changing = [v for v in counts.free if v in assigned]
    context.values(v for v in counts.free if v not in assigned)
    if not outer.parallel and shared.program.threads not in inner.values:
        context.values([shared.program.threads])
    places = {v: [context.slot("ptr", address) for address in outer.slots[v]] for v in changing}
    for buffer in (b for b in counts.buffers if b not in own):
        if buffer in moved:
            inner.borrowed[buffer] = context.slot("ptr", outer.heap_slot(buffer))
            if buffer in outer.kept:
                inner.kept[buffer] = context.slot("ptr", outer.kept[buffer])
        else:
            context.pointers([buffer])
    context.close()
    stopping.begin(inner, block)
    for v, addresses in places.items():
        inner.slots[v] = tuple(inner.w.alloca(MEMORY[v.type.dtype], v.name) for _ in addresses)
        _copy(inner, v, addresses, inner.slots[v])
    inner.whole = id(stm)
    inner.statement(stm)
    for v, addresses in places.items():
        _copy(inner, v, inner.slots[v], addresses)
    inner.finish()
    attributes = shared.attributes("noinline ")
    function = w.module.function(name, "ptr noalias readonly %context", attributes, inner.w.body())
    w.do(f"call void {function}(ptr {context.address})")
    if inner.can_fail:
        errors.leave_if_failed(outer)


def _copy(code: Code, var: Var, froms: Sequence[str], tos: Sequence[str]) -> None:
    kind = MEMORY[var.type.dtype]
    for a, b in zip(froms, tos, strict=True):
        code.w.do(f"store {kind} {code.load_part(var.type.dtype, a)}, ptr {b}, align {var.type.dtype.real.bytes}")
