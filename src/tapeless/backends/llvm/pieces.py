"""Large programs in pieces: statements that hold many others, and runs of many statements, become functions of their own.

`Pieces` chooses them; `write` takes statements and the code around them, and writes them as a function and its call.

Note [Pieces]
LLVM's register allocator and loop passes take more than linear time in the size of a function, and derivatives of
derivatives, or with several ways back through a loop, are large. Programs of more than `LARGE` statements are cut from
the inside out, so that each piece holds at least `PIECE` statements beside the pieces in it; and their loops are not
unrolled, nor written in two forms (tails.py). Small programs stay whole. A parallel loop with pieces in it does not mark its accesses: it is too large to be
a vector loop. What is left of a block after that may still be long: more than two `RUN`s of statements are written as a
function for each run.
Scalars that a piece assigns, and buffers that it allocates, frees or swaps for others to see, are handed over by their
addresses; the piece has the scalars in slots of its own meanwhile, which are registers. What a run binds for those after it
is stored at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapeless.backends.llvm import errors, stopping
from tapeless.backends.llvm.handover import Context
from tapeless.backends.llvm.uses import Block, Counts, binds, inner_blocks, operands, walk
from tapeless.backends.llvm.writer import MEMORY, Value, Writer
from tapeless.ir.types import Var
from tapeless.lower.loopir import For, Give, If, Return, Stm, Tag, While

if TYPE_CHECKING:
    from tapeless.backends.llvm.code import Code

LARGE = 2400
PIECE = 180
RUN = 600


@dataclass(frozen=True)
class Run:
    """Statements `start` to `stop` of a block, and the scalars bound there that later ones read."""

    start: int
    stop: int
    bound: tuple[Var, ...]


class Pieces:
    """Which statements are functions of their own, and which parallel loops have such in them."""

    def __init__(self, body: Block) -> None:
        self.chosen: dict[int, Counts] = {}  # by the id of the statement
        self.cut: set[int] = set()
        self.runs: dict[int, list[Run]] = {}  # by the id of the block
        self.large = sum(1 for _ in walk(body)) > LARGE
        if self.large:
            self._rest(body)

    def _rest(self, block: Block) -> int:
        """How many statements stay in the function, once pieces are cut out."""
        weights: list[int] = []
        for stm in block:
            before = len(self.chosen) + len(self.runs)
            inner = sum(map(self._rest, inner_blocks(stm)))
            if len(self.chosen) + len(self.runs) > before:
                self.cut.add(id(stm))
            counts = Counts((stm,), self.chosen) if inner >= PIECE and _may_leave(stm) else None
            if counts is not None and not counts.gives:
                self.chosen[id(stm)] = counts
                inner = 0
            weights.append(1 + inner)
        if sum(weights) <= 2 * RUN:
            return sum(weights)
        self.runs[id(block)] = runs = _runs(block, weights, self.chosen)
        return len(block) - sum(r.stop - r.start - 1 for r in runs)


def _runs(block: Block, weights: Sequence[int], known: Mapping[int, Counts]) -> list[Run]:
    last: dict[Var, int] = {}  # where a scalar is read last
    gives: set[int] = set()
    for k, stm in enumerate(block):
        if inner_blocks(stm):
            counts = known.get(id(stm)) or Counts((stm,), known)
            last.update(dict.fromkeys(counts.free, k))
            gives.update([k] if counts.gives else [])
        else:
            last.update((a, k) for a in operands(stm) if isinstance(a, Var))
            gives.update([k] if isinstance(stm, Give | Return) else [])
    runs: list[Run] = []
    start = weight = 0
    for k in range(len(block) + 1):
        stays = k == len(block) or k in gives
        if weight >= RUN or (stays and weight >= PIECE):
            bound = [v for s in block[start:k] if (v := binds(s)) is not None and not isinstance(s, For)]
            runs.append(Run(start, k, tuple(v for v in bound if last.get(v, -1) >= k)))
            start, weight = k, 0
        if stays:
            start, weight = k + 1, 0
        else:
            weight += weights[k]
    return runs


def _may_leave(stm: Stm) -> bool:
    """A parallel loop becomes a function anyway."""
    loop = isinstance(stm, For) and stm.tag == Tag.seq
    return loop or isinstance(stm, While | If)


def write(outer: Code, block: Block, bound: Sequence[Var] = ()) -> None:
    """Statements as a function, and its call. `bound` are the scalars that it binds for others."""
    w, shared = outer.w, outer.shared
    known = shared.pieces.chosen
    counts = (known.get(id(block[0])) if len(block) == 1 else None) or Counts(block, known)
    own = counts.private(shared.mentions)
    assigned, moved = counts.assigned, counts.moved

    shared.regions += 1
    name = f"{shared.program.name}.piece{shared.regions}"
    inner = type(outer)(shared, Writer(w.module, shared.flags), "", parallel=outer.parallel)
    context = Context(outer, inner)
    changing = [v for v in counts.free if v in assigned]
    read = [v for v in counts.free if v not in assigned]
    context.values(v for v in read if v not in outer.tables)
    in_tables = _in_tables(outer, inner, context, [*(v for v in read if v in outer.tables), *bound])
    inner.slots.update((v, in_tables[v]) for v in read if v in outer.tables)
    for v in bound:  # pieces inside find it where it was made: it is in the table only at the end
        del inner.tables[v]
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
    inner.whole = id(block[0]) if len(block) == 1 else 0
    inner.statements(block)
    for v, addresses in places.items():
        _copy(inner, v, inner.slots[v], addresses)
    for v in bound:
        inner.store_value(v.type.dtype, inner.value(v), in_tables[v])
    inner.finish()
    attributes = shared.attributes("noinline ")
    function = w.module.function(name, "ptr noalias readonly %context", attributes, inner.w.body())
    w.do(f"call void {function}(ptr {context.address})")
    if inner.can_fail:
        errors.leave_if_failed(outer)


def table(code: Code, runs: Sequence[Run]) -> None:
    """Memory for all that the runs of a block bind for others: they hand on one pointer to it, and no values."""
    array, used = code.w.fresh("table"), 0
    for v in (v for run in runs for v in run.bound):
        parts = tuple(range(used, used + (2 if v.type.dtype.is_complex else 1)))
        code.tables[v] = (array, parts)
        code.slots[v] = tuple(code.w.slot(array, k) for k in parts)
        used += len(parts)
    code.w.allocas.append(f"  {array} = alloca [{max(used, 1)} x i64], align 8")


def _in_tables(outer: Code, inner: Code, context: Context, scalars: Iterable[Var]) -> dict[Var, Value]:
    """Where scalars lie that are in a table of the code around."""
    pointers: dict[str, str] = {}
    found: dict[Var, Value] = {}
    for v in scalars:
        array, parts = outer.tables[v]
        if array not in pointers:
            pointers[array] = context.slot("ptr", array)
        inner.tables[v] = (pointers[array], parts)
        found[v] = tuple(inner.w.slot(pointers[array], k) for k in parts)
    return found


def _copy(code: Code, var: Var, froms: Sequence[str], tos: Sequence[str]) -> None:
    kind = MEMORY[var.type.dtype]
    for a, b in zip(froms, tos, strict=True):
        code.w.do(f"store {kind} {code.load_part(var.type.dtype, a)}, ptr {b}, align {var.type.dtype.real.bytes}")
