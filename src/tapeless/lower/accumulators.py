"""Lowering of accumulators: arrays that parallel iterations add to, one private copy a chunk where that is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapeless.ir.core import Atom, UpdateAcc, Var, WithAcc
from tapeless.ir.types import const
from tapeless.lower.arrays import view, write
from tapeless.lower.code import Loc

if TYPE_CHECKING:
    from tapeless.lower.lowering import Lowerer


@dataclass
class Acc:
    """An accumulator in scope: where it accumulates. `shared`: one copy for each chunk, along a first axis."""

    op: str
    loc: Loc
    shared: bool = False

    def private(self, lo: Lowerer, chunk: Atom) -> Acc:
        """The copy of one chunk, empty."""
        mine = lo.code.inside(self.loc, chunk)
        neutral = {"add": 0, "mul": 1}.get(self.op)
        assert neutral is not None, f"no private copies for {self.op}"
        lo.code.fill(mine, const(neutral, mine.dtype))
        return Acc(self.op, mine)


def lower_with_acc(lo: Lowerer, vars: tuple[Var, ...], exp: WithAcc) -> None:
    for p, a in zip(exp.lam.params, exp.arrays, strict=True):
        lo.accs[p] = Acc(p.type.acc, lo.loc(a))
    for v, a in zip(vars, exp.arrays, strict=False):
        lo.arrays[v] = lo.loc(a)
    results = lo.body(exp.lam.body)
    for v, r in zip(vars[len(exp.arrays) :], results, strict=True):
        if v.type.shape:
            lo.arrays[v] = lo.loc(r)
        else:
            lo.scalars[v] = r


def with_private(lo: Lowerer, accs: Sequence[Var], pieces: Atom, run: Callable[[], None]) -> None:
    """Each chunk accumulates into memory of its own, which is added up afterwards."""
    code = lo.code
    outer = {a: lo.accs[a] for a in accs}
    for a, acc in outer.items():
        memory = code.allocate(acc.loc.dtype, (pieces, *acc.loc.shape), "private")
        lo.accs[a] = Acc(acc.op, memory, shared=True)
    private = {a: lo.accs[a].loc for a in accs}
    run()
    for a, acc in outer.items():
        lo.accs[a] = acc

        def add(index: list[Atom], acc: Acc = acc, a: Var = a) -> None:
            part = code.load(private[a], index)
            total = code.load(acc.loc, index[1:])
            code.store(acc.loc, index[1:], code.let(acc.op, acc.loc.dtype, total, part, label="sum"))

        code.each(private[a].shape, add, simd=True)
        code.free(private[a].buffer)


def lower_update_acc(lo: Lowerer, exp: UpdateAcc) -> None:
    code = lo.code
    acc = lo.accs[exp.acc]
    target = view(lo, acc.loc, exp.axes)
    value = exp.value
    if acc.op == "set":
        write(lo, target, value)
        return
    source = lo.loc(value) if value.type.shape else None

    def combine(index: list[Atom]) -> None:
        new = code.load(source, index) if source is not None else lo.atom(value)
        old = code.load(target, index)
        code.store(target, index, code.let(acc.op, target.dtype, old, new, label="sum"))

    code.each(target.shape, combine)
