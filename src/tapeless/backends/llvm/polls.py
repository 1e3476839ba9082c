"""Where compiled code asks whether it should stop: at the back-edges of loops that may run long.

`Polls` takes a program and says after how many iterations each loop asks. `poll` writes the question, `in_strips` a
counted loop that asks between strips of its iterations.

Note [Polls]
Ctrl-C sets a flag inside of Python, and somebody in the main thread has to look at it (Note [Interrupts] in
backends/cpu/interrupts.py says who does). Compiled code does at its polls: it reads one word, and calls the runtime where
that is not 0. Between two polls a thread does about `WORK` scalar operations at most, a millisecond or two:
* a loop whose iterations have a known, small amount of work asks once in a strip of them. A counted one is two loops, over strips and over
  the iterations of a strip, and nothing is asked in the inner one, which is vectorised as before; with fewer iterations than a strip has, all that is left is
  a comparison. A `while` loop counts its iterations down.
* a loop with loops of that kind inside asks in each iteration.
* a loop that is known to end soon asks nothing, and counts as a part of the iteration around it.
A thread of a parallel region reads the error record of the call instead of the word: it is left as soon as another thread has
failed, or has been interrupted. One question serves primal, derivatives and budgets: they are all loops here.
The word is read as volatile, since nothing in the program changes it, and marked as no part of any buffer, so that LLVM
moves other loads past it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.backends.llvm.uses import Block
from tapeless.backends.llvm.writer import LIKELY, UNLIKELY, Bounds
from tapeless.ir.types import Const
from tapeless.lower.loopir import Call, For, If, Let, Print, Stm, While
from tapeless.ops.library import WORD
from tapeless.ops.table import TABLE

if TYPE_CHECKING:
    from tapeless.backends.llvm.code import Code

WORK = 1 << 21  # scalar operations between two polls
CALL = 100  # of a library function


class Polls:
    """The loops that ask, and after how many iterations."""

    def __init__(self, body: Block) -> None:
        self.every: dict[int, int] = {}  # by id
        self._block(body)

    def _block(self, block: Block) -> int | None:
        """Its work, or None when that is not known to be small."""
        costs = [self._work(stm) for stm in block]
        total = sum(cost or 0 for cost in costs)
        return None if None in costs or total > WORK else total

    def _work(self, stm: Stm) -> int | None:
        match stm:
            case For():
                return self._loop(stm, self._block(stm.body), _trips(stm))
            case While():
                test, body = self._block(stm.test), self._block(stm.body)
                return self._loop(stm, None if test is None or body is None else test + body, None)
            case If():
                then, orelse = self._block(stm.then), self._block(stm.orelse)
                return None if then is None or orelse is None else 1 + max(then, orelse)
            case Let():
                return TABLE[stm.op].cost
            case Call() | Print():
                return CALL
            case _:
                return 1

    def _loop(self, stm: For | While, iteration: int | None, trips: int | None) -> int | None:
        if iteration is not None and trips is not None and trips * (iteration + 1) <= WORK:
            return trips * (iteration + 1)
        self.every[id(stm)] = 1 if iteration is None else WORK // (iteration + 1)
        return None


def _trips(loop: For) -> int | None:
    if loop.tag == "lanes":  # the bits of a word
        return WORD
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const):
        return len(range(int(loop.lo.value.real), int(loop.hi.value.real), loop.step))
    return None


def poll(code: Code) -> None:
    """Leaves the function if it should stop."""
    w = code.w
    ok, look = w.label("ok"), w.label("look")
    word = w.let(f"load volatile i64, ptr {code.watched()}, align 8{code.shared.no_scope()}")
    w.branch(w.let(f"icmp eq i64 {word}, 0"), ok, look, w.weights(LIKELY, UNLIKELY))
    hot, w.lines = w.lines, w.cold
    w.open(look)
    memory = "memory(argmem: readwrite, inaccessiblemem: readwrite)"
    callee = code.module.declare("rt_poll", f"i64 @(ptr captures(none)) nounwind cold {memory}")
    error = w.let(f"call i64 {callee}(ptr {code.err}){code.shared.no_scope()}")
    w.branch(w.let(f"icmp eq i64 {error}, 0"), ok, "failed", w.weights(LIKELY, UNLIKELY))
    w.lines = hot
    w.open(ok)
    code.can_fail = True


def in_strips(code: Code, span: Bounds, every: int, write: Callable[[Bounds], None]) -> None:
    """The loop that `write` writes for given bounds, with a poll after each strip but the last one."""
    w, kind = code.w, span.kind
    strip, turn, exit_ = w.label("strip"), w.label("turn"), w.label("done")
    compare = f"icmp {'sgt' if span.down else 'slt'} {kind}"
    before = w.block
    w.branch(w.let(f"{compare} {span.lo}, {span.hi}"), strip, exit_)
    w.open(strip)
    first, start = w.fresh("first"), len(w.lines)
    w.lines.append("")  # the phi, once the latch is known
    left = w.let(f"sub nsw {kind} {span.hi}, {first}")
    most = str(every * int(span.step))
    last = w.let(f"add nsw {kind} {first}, {w.intrinsic('smax' if span.down else 'smin', kind, left, most)}")
    write(replace(span, lo=first, hi=last))
    w.branch(w.let(f"{compare} {last}, {span.hi}"), turn, exit_, w.weights(UNLIKELY, LIKELY))
    w.open(turn)
    poll(code)
    w.jump(strip)
    w.lines[start] = f"  {first} = phi {kind} [ {span.lo}, %{before} ], [ {last}, %{w.block} ]"
    w.open(exit_)


class Turns:
    """The iterations of a `while` loop, counted down to the next poll: two loops with one head each, as above."""

    def __init__(self, code: Code, every: int) -> None:
        self.code, self.every, w = code, every, code.w
        self.strip, self.left = w.label("strip"), w.alloca("i64", "left")
        w.jump(self.strip)
        w.open(self.strip)
        w.do(f"store i64 {every}, ptr {self.left}, align 8")

    def end(self, head: str) -> None:
        """Ends an iteration of the loop that begins at `head`."""
        w = self.code.w
        if self.every > 1:
            turn = w.label("turn")
            left = w.let(f"sub nsw i64 {w.let(f'load i64, ptr {self.left}, align 8')}, 1")
            w.do(f"store i64 {left}, ptr {self.left}, align 8")
            w.branch(w.let(f"icmp eq i64 {left}, 0"), turn, head, w.weights(UNLIKELY, LIKELY))
            w.open(turn)
        poll(self.code)
        w.jump(self.strip)
