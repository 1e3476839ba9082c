"""Large programs in pieces: statements that hold many others, and runs of many statements, become functions of their
own.

`Pieces` chooses them; `write` takes statements and the code around them, and writes them as a function and its call.

Note [Pieces]
LLVM's register allocator and loop passes take more than linear time in the size of a function, and derivatives of
derivatives, or with several backward passes through a loop, are large. Programs of more than `LARGE` statements are cut
from the inside out, so that each piece holds at least `PIECE` statements beside the pieces in it; and their loops are
not unrolled, nor written in two forms (tails.py). Small programs stay whole. A parallel loop with pieces in it does not
mark its accesses: it is too large to be a vector loop. What is left of a block after that may still be long: more than
two `RUN`s of statements are written as a function for each run, which is shorter where its statements are mostly accesses
of memory. Scalars that a piece assigns, and buffers that it allocates, frees or swaps for others to see, are handed over
by their addresses; the piece has the scalars in slots of its own meanwhile, which are registers. What a run binds for
those after it is stored at its end.

Note [Code that runs once]
A run of the entry without loops, which stands in none, computes each of its values once in a call. Looking for vectors
among its scalars takes LLVM a third of all its time, and gains little: so it is not asked to (by `noimplicitfloat`,
which is what its vectorisers go by). Kernels are functions of their own, and have it as before. Where such runs are
plain, they are optimised at level 1, in half the time and to the same code: what is missing there, beside passes over
loops, looks for stores that are overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapeless.ir.types import Var
from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.loopir import For, Give, If, Invoke, Load, Return, Stm, Store, Tag, While
from tapeless.lower.ir.walk import HOLDING, Block, binds, children, reads, walk

GIVING = (Give, Return)
REPEATING = (For, While, Invoke)
LARGE = 2400
LOOP = 10  # statements that a loop counts for: LLVM looks at each with many passes
PIECE = 180
RUN = 600
ACCESSES = 300  # of memory, in a run: LLVM's schedulers compare each of them with all others


@dataclass(frozen=True)
class Run:
    """Statements `start` to `stop` of a block, and the scalars bound there that later ones read."""

    start: int
    stop: int
    bound: tuple[Var, ...]
    once: bool
    plain: bool


@dataclass(frozen=True)
class Piece:
    """Statements that become a function of their own, and the scalars bound there that later ones read."""

    stms: Block
    bound: tuple[Var, ...] = ()
    once: bool = False  # each statement runs once in a call of the program at most
    plain: bool = False  # that, and no cell is stored twice: Note [Code that runs once]


@dataclass(frozen=True)
class Table:
    """Memory for the scalars that the runs of a block bind for others."""

    bound: tuple[Var, ...]


class Pieces:
    """Which statements are functions of their own, and which parallel loops have such in them."""

    def __init__(self, body: Block, entry: bool = False) -> None:
        self.chosen: dict[int, Counts] = {}  # by the id of the statement
        self.counted: dict[int, Counts] = {}  # those, and other statements that stand in runs
        self.cut: set[int] = set()
        self.runs: dict[int, list[Run]] = {}  # by the id of the block
        self.large = sum(map(_weight, walk(body))) > LARGE
        if self.large:
            self._rest(body, entry)

    def _rest(self, block: Block, once: bool) -> int:
        """How many statements stay in the function, once pieces are cut out."""
        weights: list[int] = []
        for stm in block:
            if type(stm) not in HOLDING:
                weights.append(1)
                continue
            before = len(self.chosen) + len(self.runs)
            inner_once = once and isinstance(stm, If)
            inner = sum(self._rest(b, inner_once) for b in children(stm))
            if len(self.chosen) + len(self.runs) > before:
                self.cut.add(id(stm))
            counts = Counts((stm,), self.chosen) if inner >= PIECE and _may_leave(stm) else None
            if counts is not None and not counts.gives:
                self.chosen[id(stm)] = self.counted[id(stm)] = counts
                inner = 0
            weights.append(_weight(stm) + inner)
        if sum(weights) <= 2 * RUN:
            return sum(weights)
        self.runs[id(block)] = runs = _runs(block, weights, self.counted, once)
        return len(block) - sum(r.stop - r.start - 1 for r in runs)


def _runs(block: Block, weights: Sequence[int], counted: dict[int, Counts], once: bool) -> list[Run]:
    last: dict[Var, int] = {}  # where a scalar is read last
    taken: dict[int, Sequence[Var]] = {}  # what a statement without others inside reads
    gives: set[int] = set()
    for k, stm in enumerate(block):
        if type(stm) in HOLDING:
            counts = counted.get(id(stm)) or counted.setdefault(id(stm), Counts((stm,), counted))
            last.update(dict.fromkeys(counts.free, k))
            if counts.gives:
                gives.add(k)
        else:
            taken[k] = reads(stm)
            for v in taken[k]:
                last[v] = k
            if isinstance(stm, GIVING):
                gives.add(k)
    runs: list[Run] = []
    made: dict[Var, int] = {}  # where a scalar is bound
    start = weight = accesses = 0
    for k in range(len(block) + 1):
        stays = k == len(block) or k in gives
        if weight >= RUN or (weight >= PIECE and (stays or accesses >= ACCESSES)):
            bound = [v for s in block[start:k] if not isinstance(s, For) for v in binds(s)]
            straight = once and not any(map(_repeats, block[start:k]))
            plain = straight and not _overwrites(block[start:k])
            runs.append(Run(start, k, tuple(v for v in bound if last.get(v, -1) >= k), straight, plain))
            start, weight, accesses = k, 0, 0
        if stays:
            start, weight, accesses = k + 1, 0, 0
        else:
            weight += weights[k]
            if k in taken:
                accesses += _accesses(block[k], k, taken[k], last, made)
    return runs


def _weight(stm: Stm) -> int:
    return LOOP if type(stm) in (For, While) else 1


def _accesses(stm: Stm, k: int, taken: Sequence[Var], last: Mapping[Var, int], made: dict[Var, int]) -> int:
    """Of memory, in a run: its own, and those for scalars that come from another run or go to one."""
    found = int(type(stm) in (Load, Store))
    for v in taken:
        if made.get(v, k) < k - RUN:
            found += 1
    for v in binds(stm):
        made[v] = k
        if last.get(v, k) > k + RUN:
            found += 1
    return found


def _repeats(stm: Stm) -> bool:
    """Whether there is a loop in it; those of kernels are functions of their own."""
    if isinstance(stm, If):
        return any(_repeats(s) for block in children(stm) for s in block)
    return isinstance(stm, REPEATING)


def _overwrites(block: Block) -> bool:
    stored = [(s.buffer, s.index) for s in walk(block) if isinstance(s, Store)]
    return len(set(stored)) < len(stored)


def _may_leave(stm: Stm) -> bool:
    """A parallel loop becomes a function anyway."""
    loop = isinstance(stm, For) and stm.tag == Tag.seq
    return loop or isinstance(stm, (While, If))
