"""Rules for loops and branches."""

from __future__ import annotations

from tapeless.backends.llvm.block_copies import as_call
from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.counted import counted
from tapeless.backends.llvm.tails import MASKED, SHORT, has_short_form
from tapeless.backends.llvm.writer import LIKELY, REGISTER, UNLIKELY, Bounds
from tapeless.lower.ir.loopir import For, If, Tag, While


@emits(For)
def loop(code: Code, stm: For) -> None:
    if as_call(code, stm):
        return
    kind = REGISTER[stm.var.type.dtype]
    lo, hi = code.value(stm.lo)[0], code.value(stm.hi)[0]

    def body(i: str) -> None:
        code.values[stm.var] = (i,)
        before, code.w.vector_math = code.w.vector_math, code.w.vector_math and stm.vectorize
        code.block(stm.body)
        code.w.vector_math = before

    independent = stm.body if stm.tag != Tag.seq and id(stm) not in code.shared.pieces.cut else None
    span = Bounds(kind, lo, hi, str(stm.step), down=stm.step < 0)
    if code.shared.pieces.large or not has_short_form(stm, code.module.target):
        counted(code, span, stm.var.name, body, independent, stm.vectorize, code.shared.mark(stm))
        return
    w = code.w
    short, long, merge = w.label("short"), w.label("long"), w.label("merge")
    few = w.let(f"icmp slt {kind} {w.let(f'sub {kind} {hi}, {lo}')}, {SHORT}")
    w.branch(few, short, long)
    for label, hints in ((short, (MASKED,)), (long, ())):
        w.open(label)
        counted(code, span, stm.var.name, body, independent, stm.vectorize, (*hints, *code.shared.mark(stm)))
        w.jump(merge)
    w.open(merge)


@emits(If)
def choice(code: Code, stm: If) -> None:
    w = code.w
    then, merge = w.label("then"), w.label("merge")
    orelse = w.label("else") if stm.orelse else merge
    weights = ""
    if stm.likely is not None:
        weights = w.weights(LIKELY, UNLIKELY) if stm.likely else w.weights(UNLIKELY, LIKELY)
    w.branch(code.value(stm.cond)[0], then, orelse, weights)
    w.open(then)
    code.block(stm.then)
    w.jump(merge)
    if stm.orelse:
        w.open(orelse)
        code.block(stm.orelse)
        w.jump(merge)
    w.open(merge)


@emits(While)
def repeat(code: Code, stm: While) -> None:
    w = code.w
    head, body, exit_ = w.label("test"), w.label("while"), w.label("done")
    w.jump(head)
    w.open(head)
    code.block(stm.test)
    w.branch(code.value(stm.cond)[0], body, exit_)
    w.open(body)
    code.block(stm.body)
    w.jump(head)
    w.open(exit_)
