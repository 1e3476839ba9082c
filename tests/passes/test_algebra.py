"""Every rule of `algebra` on every pair of operations, on values where floating point is tricky."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tapeless.ir.core import Apply, Exp
from tapeless.ir.types import SCALAR, Atom, Const, DType, Type, Var, const
from tapeless.ops.table import TABLE
from tapeless.passes.tidy.algebra import RULES, simplify_apply

VALUES = {
    DType.bool: [False, True],
    DType.i32: [0, 1, -1, 2, 7, -(2**31), 2**31 - 1],
    DType.i64: [0, 1, -1, 2, 7, -(2**63), 2**63 - 1],
    **{d: [0, 1, 2, 7, d.highest // 2, d.lowest, d.highest] for d in DType if d.work is not d},
    DType.f32: [0.0, -0.0, 1.0, -1.0, 2.5, 1e-45, 3e38, np.inf, -np.inf, np.nan],
    DType.f64: [0.0, -0.0, 1.0, -1.0, 2.5, 5e-324, 1e308, np.inf, -np.inf, np.nan],
    DType.c128: [0j, complex(-0.0, -0.0), 1 + 0j, complex(-2, -0.0), complex(0.5, 3), complex(np.inf, 1)],
}
CONSTANTS = {dtype: values[:5] for dtype, values in VALUES.items()}


def result_type(op: str, args: tuple[Atom, ...]) -> Type:
    return SCALAR[TABLE[op].result([a.type.dtype for a in args])]


def applications(op: str, operands: list[Atom]) -> list[Apply]:
    """The operation on all choices of operands of a type that it takes."""
    row, found = TABLE[op], []
    for args in itertools.product(operands, repeat=row.arity):
        dtypes = [a.type.dtype for a in args]
        legal = dtypes[0] is DType.bool and dtypes[1] is dtypes[2] if op == "select" else len(set(dtypes)) == 1
        if legal and dtypes[-1] in row.dtypes:
            found.append(Apply(op, args))
    return found


def value(atom: Atom, defs: dict[Var, Exp], env: dict[Var, object]) -> object:
    if isinstance(atom, Const):
        return atom.dtype.numpy.type(atom.value)
    if atom in env:
        return env[atom]
    made = defs[atom]
    assert isinstance(made, Apply)
    return apply(made, atom.type, defs, env)


def apply(exp: Apply, type: Type, defs: dict[Var, Exp], env: dict[Var, object]) -> object:
    args = [value(a, defs, env) for a in exp.args]
    if exp.op == "convert":
        return TABLE["convert"].numpy(args[0], type.dtype.numpy)
    return TABLE[exp.op].numpy(*args)


def bits(x: np.ndarray) -> np.ndarray:
    """Bit patterns; NaN is one value, and so is a complex number with a NaN in it."""
    x = x.copy()
    if x.dtype.kind in "fc":
        x[np.isnan(x)] = 12345.0
    return np.ascontiguousarray(x).view(np.uint8)


def check(exp: Apply, type: Type, defs: dict[Var, Exp], params: list[Var]) -> bool:
    new = simplify_apply(exp, type, defs)
    if new is None:
        return False
    grid = list(zip(*itertools.product(*(VALUES[p.type.dtype] for p in params))))
    env: dict[Var, object] = {p: np.array(column, p.type.dtype.numpy) for p, column in zip(params, grid)}
    before = apply(exp, type, defs, env)
    after = apply(new, type, defs, env) if isinstance(new, Apply) else value(new, defs, env)
    before, after = (np.broadcast_to(v, len(grid[0])) for v in (before, after))
    assert before.dtype == after.dtype == type.dtype.numpy
    assert np.array_equal(bits(before), bits(after)), f"{exp} with {defs} became {new}: {before} is now {after}"
    return True


@pytest.mark.parametrize("dtype", VALUES, ids=repr)
@pytest.mark.parametrize("op", RULES)
def test_rules_are_exact(op: str, dtype: DType) -> None:
    x, y, c = Var("x", SCALAR[dtype]), Var("y", SCALAR[dtype]), Var("c", SCALAR[DType.bool])
    constants: list[Atom] = [const(v, dtype) for v in CONSTANTS[dtype]]
    params = [x, y] + ([c] if op == "select" else [])
    for exp in applications(op, [*params, *constants]):
        check(exp, result_type(op, exp.args), {}, params)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", VALUES, ids=repr)
@pytest.mark.parametrize("op", [op for op in RULES if op != "select"])
def test_rules_on_results_of_operations_are_exact(op: str, dtype: DType) -> None:
    x, y = Var("x", SCALAR[dtype]), Var("y", SCALAR[dtype])
    constants: list[Atom] = [const(v, dtype) for v in CONSTANTS[dtype][1:4]]
    for first in RULES:
        for made in applications(first, [x, y, constants[0]]):
            t = Var("t", result_type(first, made.args))
            for exp in applications(op, [t, x, y, *constants]):
                if t in exp.args:
                    check(exp, result_type(op, exp.args), {t: made}, [x, y])


@pytest.mark.thorough
def test_selections_of_selections_are_exact() -> None:
    params = [Var(n, SCALAR[DType.bool]) for n in "cde"]
    known: list[Atom] = [*params, *(const(v, DType.bool) for v in (False, True))]
    for first in ("select", "not", "and", "eq"):
        for made in applications(first, known):
            t = Var("t", SCALAR[DType.bool])
            for exp in applications("select", [t, *known]):
                check(exp, t.type, {t: made}, params)


@pytest.mark.parametrize("middle", list(DType), ids=repr)
@pytest.mark.parametrize("source", VALUES, ids=repr)
def test_conversions_of_conversions_are_exact(source: DType, middle: DType) -> None:
    x, t = Var("x", SCALAR[source]), Var("t", SCALAR[middle])
    for target in DType:
        check(Apply("convert", (t,)), SCALAR[target], {t: Apply("convert", (x,))}, [x])


def test_what_is_not_exact_is_left_alone() -> None:
    x = Var("x", SCALAR[DType.f64])
    z = Var("z", SCALAR[DType.c128])
    for op, args in [
        ("add", (x, Const(0.0))), ("mul", (x, Const(0.0))), ("sub", (x, x)), ("div", (x, x)), ("eq", (x, x)),
        ("sub", (Const(0.0), x)), ("floordiv", (x, Const(1.0))), ("mul", (z, Const(1 + 0j, DType.c128))),
    ]:  # fmt: skip
        assert simplify_apply(Apply(op, args), result_type(op, args), {}) is None


def test_a_sum_with_something_positive_is_never_negative_zero() -> None:
    x, s, t = (Var(n, SCALAR[DType.f64]) for n in "xst")
    defs: dict[Var, Exp] = {s: Apply("square", (x,)), t: Apply("add", (x, s))}
    assert simplify_apply(Apply("add", (t, Const(0.0))), t.type, defs) is t
    assert check(Apply("add", (t, Const(0.0))), t.type, defs, [x])


def test_folding_declines_what_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> object:
        raise ZeroDivisionError

    exp = Apply("add", (Const(1.0), Const(2.0)))
    assert simplify_apply(exp, SCALAR[DType.f64], {}) == Const(3.0)
    monkeypatch.setitem(TABLE, "add", replace(TABLE["add"], evaluate=fail))
    assert simplify_apply(exp, SCALAR[DType.f64], {}) is None
