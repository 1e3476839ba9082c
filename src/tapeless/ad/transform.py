"""A lambda made ready for differentiation: cleaned up and fused, so that rules see few and large statements.

It may use variables of outside, which count as constants. With `TAPELESS_VERIFY=1`, what it is before and after, and
what differentiation makes of it (`checked`), is verified.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.calls import Functions
from tapeless.ir.core import Body, Function, Lambda, Stm
from tapeless.ir.walk import free_in_lambda, type_vars
from tapeless.passes import pipeline
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import PREPARING, Pipeline


def prepared(lam: Lambda, functions: Functions | None = None, coarsen: bool = True) -> Lambda:
    """The same, in the form that derivatives are taken of. `functions` are those of the program, which may forbid to
    `coarsen` too.
    """
    f = _standing_alone(lam, functions)
    if pipeline.VERIFY:
        verify(f)
    program = Functions() if functions is None else functions
    run = Pipeline(verify=pipeline.VERIFY, coarsen=coarsen and program.coarsen, segments=program.segments)
    return Lambda(lam.params, run.run(PREPARING, f).body)


def checked(stms: Sequence[Stm], functions: Functions) -> None:
    """What a derivative emitted is legal Core, or an error names the statement, before passes work on it."""
    if pipeline.VERIFY:
        verify(_standing_alone(Lambda((), Body(tuple(stms), ())), functions))


def _standing_alone(lam: Lambda, functions: Functions | None) -> Function:
    outside = (*free_in_lambda(lam), *lam.params)
    sizes = dict.fromkeys(d for v in outside for d in type_vars(v.type))
    f = Function("region", tuple(sizes), tuple(v for v in outside if v not in sizes), lam.body)
    return functions.program(f) if functions is not None and pipeline.VERIFY else f
