"""A counted loop, with what LLVM is told of it."""

from __future__ import annotations

from collections.abc import Callable

from tapeless.backends.llvm.code import Code, Group
from tapeless.backends.llvm.writer import Bounds
from tapeless.ir.target import Target
from tapeless.lower.ir.counts import Counts
from tapeless.lower.ir.walk import Block

MAX_VECTOR_BODY = 1500  # instructions; the loop vectoriser takes more than linear time in them
MAX_INTERLEAVED_BODY = 80  # several copies of a vectorised body only pay in small ones without calls
MAX_UNROLLED_BODY = 40  # of a kernel: several loads on their way at once are worth it, the time to compile more is not


def counted(
    code: Code,
    span: Bounds,
    hint: str,
    body: Callable[[str], None],
    independent: Block | None,
    vectorize: bool,
    more_hints: tuple[str, ...] = (),
) -> None:
    """A loop with its test at the end and a guard before it. `independent` is the block when iterations are."""
    w, kind = code.w, span.kind
    head, exit_ = w.label("loop"), w.label("done")
    before = w.block
    compare = f"icmp {'sgt' if span.down else 'slt'} {kind}"
    w.branch(w.let(f"{compare} {span.lo}, {span.hi}"), head, exit_)
    w.open(head)
    i, start, calls = w.fresh(hint), len(w.lines), w.calls
    w.lines.append("")  # the phi, once the latch is known
    if independent is not None:
        private = Counts(independent, scalars=False).private(code.shared.mentions)
        code.groups.append(Group(code.module.node("", distinct=True), private))
    body(i)
    following = w.let(f"add nsw {kind} {i}, {span.step}", hint)
    w.lines[start] = f"  {i} = phi {kind} [ {span.lo}, %{before} ], [ {following}, %{w.block} ]"
    hints = ['!{!"llvm.loop.mustprogress"}', *more_hints]
    if independent is not None:
        hints.append(f'!{{!"llvm.loop.parallel_accesses", {code.groups.pop().node}}}')
    if not vectorize or len(w.lines) - start > MAX_VECTOR_BODY:
        hints.append('!{!"llvm.loop.vectorize.enable", i1 false}')
    if w.calls > calls or len(w.lines) - start > MAX_INTERLEAVED_BODY:
        hints.append('!{!"llvm.loop.interleave.count", i32 1}')
    if w.target.kind == Target.ptx and len(w.lines) - start > MAX_UNROLLED_BODY:
        hints.append('!{!"llvm.loop.unroll.disable"}')
    node = code.module.node(", ".join(["@self", *hints]), distinct=True)
    w.branch(w.let(f"{compare} {following}, {span.hi}"), head, exit_, f", !llvm.loop {node}")
    w.open(exit_)
