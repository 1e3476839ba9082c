"""Maps inside of maps on a GPU whose length only an element tells, as the entries of a row of a sparse matrix.

Note [Ragged rows]
Such a nest has no number of elements that a kernel could be launched for, and one thread for each row reads far from its
neighbours. So there are LANES threads for each row. All of them do its arithmetic; of what is inside, which hands nothing
back, each takes every LANES-th element: they read and add side by side.
"""

from __future__ import annotations

from tapeless.ir.core import Atom, If, Sweep, UpdateAcc
from tapeless.ir.effects import effects_in
from tapeless.ir.types import DType, i64
from tapeless.lower.core.lowerer import Lowerer
from tapeless.lower.parallel.elements import bind_rows, element
from tapeless.passes.analysis.free import is_free

LANES = 8


def is_ragged(lo: Lowerer, exp: Sweep) -> bool:
    """Whether its elements only go through maps of their own length, which only add to what all threads add to."""
    body = exp.lam.body
    if exp.reduces or exp.scans or body.results:
        return False
    inside = {*exp.lam.params, *(v for s in body.stms for v in s.vars)}
    maps = [s.exp for s in body.stms if isinstance(s.exp, Sweep)]
    if not maps or not all(m.width in inside and _only_adds(lo, m) for m in maps):
        return False
    rest = [s for s in body.stms if not isinstance(s.exp, Sweep)]
    return all(is_free(s) and not isinstance(s.exp, If) for s in rest) and not any(effects_in(rest))


def _only_adds(lo: Lowerer, exp: Sweep) -> bool:
    if exp.reduces or exp.scans or exp.lam.body.results:
        return False
    effects = list(effects_in(exp.lam.body.stms))
    return bool(effects) and all(isinstance(e, UpdateAcc) and not _is_own(lo, e) for e in effects)


def _is_own(lo: Lowerer, update: UpdateAcc) -> bool:
    """Of one thread, or made inside."""
    return update.acc not in lo.accs or lo.accs[update.acc].own


def run_ragged(lo: Lowerer, exp: Sweep, n: Atom) -> None:
    """Note [Ragged rows]"""
    code = lo.code
    with code.loop(code.mul(n, i64(LANES)), tag=lo.schedule.launched) as t:
        row = code.let("floordiv", DType.i64, t, i64(LANES), label="row")
        lane = code.sub(t, code.mul(row, i64(LANES)))
        bind_rows(lo, exp.lam, row, exp.arrays)

        def run() -> None:
            for stm in exp.lam.body.stms:
                if isinstance(stm.exp, Sweep):
                    inner = stm.exp
                    count = code.sub(code.add(lo.dim(inner.width), i64(LANES - 1)), lane)
                    with code.loop(code.let("floordiv", DType.i64, count, i64(LANES), label="count"), label="k") as k:
                        element(lo, inner, inner.lam, code.add(lane, code.mul(k, i64(LANES))), [], [], [], 0)
                else:
                    lo.stm(stm)

        lo.scoped(run)
