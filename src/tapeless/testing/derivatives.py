"""Derivatives of one program by several ways, which must agree.

`disagreement` takes a function and a way to make its arguments. It takes directions of the inputs and adjoints of the
results at random and compares <w, J v> of forward mode with <J^T w, v> of reverse mode, both with differences of the
program itself, all by the interpreter of Core. Where the program has a kink or jumps nearby, differences say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.ad.forward import jvp_body
from tapeless.ad.policy import DEFAULT, Policy
from tapeless.ad.reverse import vjp_body
from tapeless.ad.transform import prepared
from tapeless.frontend.entry import Traced, trace
from tapeless.interp.evaluate import evaluate
from tapeless.ir.builder import Builder
from tapeless.ir.core import Body, Function, Lambda
from tapeless.ir.operands import regions
from tapeless.ir.types import Atom, DType, Var
from tapeless.ir.walk import refresh_lambda
from tapeless.ops.emit import Emit, differentiable
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import finished
from tapeless.testing.stages import leaves_of, parameters_of

Values = list[Any]
STEP = 3e-6  # of the differences
CLOSE = 1e-6  # forward and reverse mode, relative to the size of the terms
NEAR = 1e-3  # and differences


def disagreement(
    function: Callable[..., Any], arguments: Callable[[], Sequence[Any]], seed: int = 0, policy: Policy = DEFAULT
) -> str:
    """What differs, or nothing; also nothing when the program raises or gives no finite numbers here. `policy` is for
    reverse mode; NoRecovery and RecoveryError are raised.
    """
    traced = trace(function, arguments())
    core = traced.core
    values = parameters_of(traced, leaves_of(arguments()))
    wrt = [k for k, p in enumerate(core.params) if differentiable(p.type) and p.type.dtype.is_float]
    known = set(core.sizes)
    outs = [
        k
        for k, r in enumerate(core.body.results)
        if r.type.dtype.is_float and all(isinstance(d, int) or d in known for d in r.type.shape)
    ]
    if not wrt or not outs:
        return ""
    rng = np.random.default_rng(seed)
    results = _run(core, values)
    if results is None or not _finite([results[k] for k in outs]):
        return ""
    directions = [_random(rng, values[k]) for k in wrt]
    weights = [_random(rng, results[k]) for k in outs]
    lam = prepared(Lambda(core.params, core.body))
    forward = _forward(traced, lam, wrt, outs)
    backward = _backward(traced, lam, wrt, outs, policy)
    for stage in (_same, _cleaned):
        tangents = _run(stage(forward), [*values, *directions])
        adjoints = _run(stage(backward), [*values, *weights])
        if tangents is None or adjoints is None:
            return f"{stage.__name__}: a derivative raised where the program does not"
        if not _finite(tangents) or not _finite(adjoints):
            return ""
        first = [np.sum(w * t) for w, t in zip(weights, tangents, strict=True)]
        second = [np.sum(a * v) for a, v in zip(adjoints, directions, strict=True)]
        size = max(np.sum(np.abs(x)) for x in (first, second, [1.0]))
        if abs(sum(first) - sum(second)) > CLOSE * size * _single(core, wrt, outs):
            return f"{stage.__name__}: <w, J v> is {sum(first)!r}, <J^T w, v> is {sum(second)!r}"
    return _against_differences(core, values, wrt, outs, directions, weights, float(sum(first)))


def _single(core: Function, wrt: Sequence[int], outs: Sequence[int]) -> float:
    """Programs that take or give single precision are compared less closely."""
    narrow = any("f32" in repr(p.type) for p in core.params) or any("f32" in repr(r.type) for r in core.body.results)
    return 1e4 if narrow else 1.0


def _same(f: Function) -> Function:
    return f


def _cleaned(f: Function) -> Function:
    return check_in_place(finished(f))[0]


def _run(f: Function, values: Sequence[Any]) -> Values | None:
    given = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    try:
        return list(evaluate(f, given))
    except (ArithmeticError, ValueError, IndexError, NameError):
        return None


def _finite(values: Sequence[Any]) -> bool:
    return all(bool(np.all(np.isfinite(v))) and bool(np.all(np.abs(v) < 1e12)) for v in values)


def _random(rng: np.random.Generator, like: Any) -> Any:
    made = rng.uniform(-1.0, 1.0, np.shape(like))
    return np.asarray(made).astype(np.asarray(like).dtype)[()]


def _forward(traced: Traced, lam: Lambda, wrt: Sequence[int], outs: Sequence[int]) -> Function:
    lam = refresh_lambda(lam)
    b = Builder()
    tangents = {lam.params[k]: Var("t", lam.params[k].type) for k in wrt}
    results, found = jvp_body(b, lam.body, dict(tangents))
    emit = Emit(b)
    wanted: list[Atom] = []
    for k in outs:
        tangent = found[k]
        wanted.append(emit.zero(results[k].type) if tangent is None else tangent)
    return _function(traced, b, (*lam.params, *tangents.values()), wanted)


def _backward(traced: Traced, lam: Lambda, wrt: Sequence[int], outs: Sequence[int], policy: Policy) -> Function:
    lam = refresh_lambda(lam)
    b = Builder()
    seeds: list[Atom | None] = [None] * len(lam.body.results)
    params: list[Var] = []
    for k in outs:
        params.append(Var("w", lam.body.results[k].type))
        seeds[k] = params[-1]
    chosen = [lam.params[k] for k in wrt]
    _, adjoints = vjp_body(b, lam.body, chosen, seeds, policy=policy, last=True)
    emit = Emit(b)
    wanted = [emit.zero(p.type) if a is None else a for a, p in zip(adjoints, chosen, strict=True)]
    return _function(traced, b, (*lam.params, *params), wanted)


def _function(traced: Traced, b: Builder, params: tuple[Var, ...], results: Sequence[Atom]) -> Function:
    made = Function(f"d_{traced.core.name}", traced.core.sizes, params, Body(tuple(b.stms), tuple(results)))
    verify(made)
    return made


def _against_differences(
    core: Function, values: Values, wrt: Sequence[int], outs: Sequence[int], directions: Values, weights: Values,
    expected: float,
) -> str:  # fmt: skip
    found = []
    for by in (0.0, STEP, -STEP, 3 * STEP):
        moved = list(values)
        for k, v in zip(wrt, directions, strict=True):
            moved[k] = np.asarray(values[k] + by * v).astype(np.asarray(values[k]).dtype)[()]
        results = _run(core, moved)
        if results is None:
            return ""
        found.append(sum(float(np.sum(w * results[k])) for k, w in zip(outs, weights, strict=True)))
    here, after, before, far = found
    sides = (after - here) / STEP, (here - before) / STEP, (far - here) / (3 * STEP)  # the last one shows jumps
    scale = max(1.0, abs(expected), *map(abs, sides))
    smooth = max(sides) - min(sides) < NEAR * scale and not _steps(core.body)
    if smooth and abs(sides[0] - expected) > 10 * NEAR * scale * _single(core, wrt, outs):
        return f"differences give {sides[0]!r}, derivatives {expected!r}"
    return ""


def _steps(body: Body) -> bool:
    """Whether numbers are rounded to single precision on the way: differences with small steps then say nothing."""
    for s in body.stms:
        if any(v.type.dtype in (DType.f32, DType.c64) for v in s.vars) or any(_steps(r.body) for r in regions(s.exp)):
            return True
    return False
