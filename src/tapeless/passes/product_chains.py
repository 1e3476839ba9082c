"""A product of three matrices in the order that takes fewer multiplications.

Takes and gives a verified function. Relies on `recognise` having found the products, and on `product_sums` for sums of
rows.

Note [Chains of products]
In P @ (f * (A @ B)), where f is a factor for each row, the product A @ B is made for the sake of this alone: it is the
adjoint of B where a function adds up squares of A @ B. It is also (P @ (f * A)) @ B, and the sum of the rows of f * (A @ B)
is (the sum of the rows of f * A) @ B. Which is less work is decided at run time, by the sizes.
Terms are added in another order, within the same bound of the error, unless P @ (f * A) leaves the range of numbers where
A @ B does not. So that is looked at, and the order kept where it happens: where the largest number of P @ (f * A)
is not a number, infinite, or so small that what is below the least normal number counts beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Body,
    Broadcast,
    Concat,
    Copy,
    Full,
    Function,
    Index,
    Iota,
    Lambda,
    Library,
    Reduction,
    Reshape,
    Stm,
    Sweep,
    Transpose,
    UpdateAcc,
    WithAcc,
)
from tapeless.ir.types import BOOL, I64, Atom, Dim, DType, Type, Var, const, dim_atom, i64, zero_of
from tapeless.ir.walk import Substitution, all_stms
from tapeless.passes.dce import dce
from tapeless.passes.product_sums import bound_in, factors_of, only_user, sum_of_rows, uses_in
from tapeless.passes.recognise import elementwise
from tapeless.passes.rewrite import Rewriter
from tapeless.passes.sweeps import is_whole, mapped_vars

REALS = (DType.f32, DType.f64)
CONSUMING_NOTHING = (Apply, ArrayLit, Broadcast, Concat, Copy, Full, Index, Iota, Library, Reshape, Sweep, Transpose)


def chain_products(function: Function) -> Function:
    if sum(isinstance(stm.exp, Library) for stm in all_stms(function.body)) < 2:
        return function
    function = dce(function)  # products that `product_sums` has made unnecessary
    zeros = {
        s.vars[0] for s in all_stms(function.body) if isinstance(s.exp, Full) and s.exp.value == const(0.0, _kind(s))
    }
    return Chains(uses_in(function.body), zeros).function(function)


def _kind(stm: Stm) -> DType:
    return stm.vars[0].type.dtype


@dataclass(frozen=True)
class Chain:
    """The statements of P @ (f * (A @ B)), in this order; `sums` are those that add up the rows of the second."""

    inner: Stm
    scaling: Stm
    outer: Stm
    scaled: Var
    sums: Sequence[Stm]

    @property
    def right(self) -> tuple[Var, Var]:
        return _operands(self.inner)

    @property
    def left(self) -> Var:
        return _operands(self.outer)[0]


def _operands(stm: Stm) -> tuple[Var, Var]:
    assert isinstance(stm.exp, Library)
    left, right = stm.exp.args
    assert isinstance(left, Var) and isinstance(right, Var)
    return left, right


def _is_product(stm: Stm | None) -> bool:
    match stm:
        case Stm((made,), Library("matmul", (Var() as left, Var() as right))):
            return left.type.rank == right.type.rank == 2 and made.type.dtype in REALS
    return False


class Chains(Rewriter):
    """`uses` is how often the function uses each variable, `zeros` its arrays of zeros."""

    def __init__(self, uses: Counter[Atom], zeros: set[Var]) -> None:
        super().__init__()
        self.uses, self.zeros = uses, zeros

    def body(self, body: Body) -> Body:
        new = super().body(body)
        while chain := self.first(new):
            new = _in_order(new, chain)
        return new

    def first(self, body: Body) -> Chain | None:
        found = (self.chain(body, stm) for stm in body.stms if _is_product(stm))
        return next((chain for chain in found if chain), None)

    def chain(self, body: Body, outer: Stm) -> Chain | None:
        made = {v: s for s in body.stms for v in s.vars}
        scaled = _operands(outer)[1]
        scaling = made.get(scaled)
        if scaling is None or not isinstance(scaling.exp, Sweep) or scaled not in mapped_vars(scaling):
            return None
        for array in scaling.exp.arrays:
            inner = made.get(array)
            if inner is None or not _is_product(inner) or self.uses[array] != 1:
                continue
            if _row_factors(scaling, array, scaled) is None:
                continue
            at, end = body.stms.index(inner), body.stms.index(outer)
            if not all(isinstance(s.exp, CONSUMING_NOTHING) for s in body.stms[at:end]):
                return None
            later = Body(body.stms[end + 1 :], ())
            sums = [s for s in all_stms(later) if self.adds_rows(s, scaled)]
            return Chain(inner, scaling, outer, scaled, sums) if self.uses[scaled] == 1 + len(sums) else None
        return None

    def adds_rows(self, stm: Stm, matrix: Var) -> bool:
        """As `sum_of_rows` writes it."""
        match stm.exp:
            case WithAcc((zero,), Lambda((acc,), Body((Stm((), Sweep(_, (array,), lam)),), ()))):
                match lam:
                    case Lambda((_, row), Body((Stm((), UpdateAcc(into, (axis,), value)),), ())):
                        whole = into is acc and value is row and is_whole(axis, row.type.shape[0])
                        return whole and array is matrix and zero in self.zeros
        return False


def _row_factors(scaling: Stm, array: Var, scaled: Var) -> tuple[Stm, tuple[Atom, ...]] | None:
    """The statement of the sweep's lambda that scales a row of the array, and by what, if that is all there is to it."""
    assert isinstance(scaling.exp, Sweep)
    lam = scaling.exp.lam
    row = lam.params[1 + scaling.exp.arrays.index(array)]
    result = lam.body.results[scaling.vars.index(scaled)]
    match only_user(lam, row):
        case Stm((made,), Sweep(_, (_,), inner, (), ())) as user if made is result:
            others = [s for s in lam.body.stms if s is not user and made in uses_in(Body((s,), ()))]
            scale = factors_of(inner, bound_in(inner))
            return (user, scale) if scale and not others and lam.body.results.count(made) == 1 else None
    return None


# -- the other order


def _in_order(body: Body, chain: Chain) -> Body:
    factors, before = _factors_alone(chain)
    b = Builder(chain.outer.span)
    found = _either(b, chain, factors)
    stms: list[Stm] = []
    for stm in body.stms:
        if stm is chain.scaling:
            stms.append(before)
        elif stm is chain.outer:
            stms.extend(b.stms)
        elif stm is not chain.inner:
            stms.append(stm)
    gone: dict[Var, Atom] = {chain.outer.vars[0]: found[0], **{s.vars[0]: found[1] for s in chain.sums}}
    return Substitution(gone).body(_without(Body(tuple(stms), body.results), chain.sums))


def _without(body: Body, gone: Sequence[Stm]) -> Body:
    class Removed(Rewriter):
        def stm(self, stm: Stm) -> None:
            if not any(stm is g for g in gone):
                super().stm(stm)

    return Removed().body(body)


def _factors_alone(chain: Chain) -> tuple[Var, Stm]:
    """The sweep that makes the factor of each row in place of the scaled rows."""
    exp, array = chain.scaling.exp, chain.inner.vars[0]
    assert isinstance(exp, Sweep)
    found = _row_factors(chain.scaling, array, chain.scaled)
    assert found is not None
    user, scale = found
    item = Type(array.type.dtype)
    b = Builder(user.span)
    total = scale[0]
    for factor in scale[1:]:
        total = b.let(item, Apply("mul", (total, factor)))
    k = chain.scaling.vars.index(chain.scaled)
    lam, at = exp.lam, 1 + exp.arrays.index(array)
    stms = [s for old in lam.body.stms for s in (b.stms if old is user else [old])]
    results = (*lam.body.results[:k], total, *lam.body.results[k + 1 :])
    made = Var("factors", Type(item.dtype, (array.type.shape[0],)))
    vars = (*chain.scaling.vars[:k], made, *chain.scaling.vars[k + 1 :])
    arrays = (*exp.arrays[: at - 1], *exp.arrays[at:])
    params = (*lam.params[:at], *lam.params[at + 1 :])
    new = replace(exp, arrays=arrays, lam=Lambda(params, Body(tuple(stms), results)))
    return made, Stm(vars, new, chain.scaling.span)


def _either(b: Builder, chain: Chain, factors: Var) -> list[Var]:
    """The outer product, and the sum of rows where there is one, in the order that the sizes and the numbers say."""
    (a, right), left = chain.right, chain.left
    dtype, summed = a.type.dtype, bool(chain.sums)
    weights, total = Type(dtype, (left.type.shape[0], a.type.shape[1])), Type(dtype, (a.type.shape[1],))
    product, outer = chain.inner.vars[0], chain.outer.vars[0]

    def matmul(x: Var, y: Var, like: Var) -> Var:
        return b.let(like.type, Library("matmul", (x, y)), like.name)

    def with_sum(outer: Var, scaled: Var) -> list[Var]:
        return [outer, sum_of_rows(b, scaled)] if summed else [outer]

    def first() -> list[Atom]:
        scaled = elementwise(b, "mul", a, factors)
        made = matmul(left, scaled, Var("weights", weights))
        return [_in_range(b, made, factors), *with_sum(made, scaled)]

    def nothing() -> list[Atom]:
        blanks = [b.full(t.shape, None, dtype, "unused") for t in (weights, total)[: 1 + summed]]
        return [const(False, DType.bool), *blanks]

    def associated() -> list[Atom]:
        return [matmul(made, right, like) for made, like in zip(halves, results, strict=True)]

    def as_written() -> list[Atom]:
        scaled = elementwise(b, "mul", matmul(a, right, product), factors)
        return [*with_sum(matmul(left, scaled, outer), scaled)]

    results = [outer, *(s.vars[0] for s in chain.sums[:1])]
    shorter = _shorter(b, *left.type.shape, *right.type.shape)
    fits, *halves = _branch(b, shorter, first, nothing, ("fits", "weights", "sum"))
    return _branch(b, fits, associated, as_written, [v.name for v in results])


def _branch(
    b: Builder, cond: Atom, then: Callable[[], list[Atom]], orelse: Callable[[], list[Atom]], names: Sequence[str]
) -> list[Var]:
    yes, no = b.lam((), then).body, b.lam((), orelse).body
    vars = [Var(name, r.type) for name, r in zip(names, yes.results, strict=False)]
    return list(b.if_(cond, yes, no, vars))


def _shorter(b: Builder, rows: Dim, middle: Dim, inside: Dim, columns: Dim) -> Atom:
    """Whether the other order takes a quarter of the multiplications less, at least."""

    def times(*factors: Dim) -> Atom:
        total: Atom = i64(1)
        for factor in factors:
            total = b.let(I64, Apply("mul", (total, dim_atom(factor))))
        return total

    def add(x: Atom, y: Atom) -> Atom:
        return b.let(I64, Apply("add", (x, y)))

    now = add(times(3, middle, inside, columns), times(3, rows, middle, columns))
    then = add(times(4, rows, middle, inside), times(4, rows, inside, columns))
    return b.let(BOOL, Apply("lt", (then, now)))


def _in_range(b: Builder, weights: Var, factors: Var) -> Atom:
    """Whether nothing that counts was lost beyond the range of numbers; without any weight nothing was."""
    dtype = weights.type.dtype
    limits = np.finfo(np.float32 if dtype is DType.f32 else np.float64)
    least = float(limits.tiny) / float(limits.eps) ** 2
    top = _largest(b, weights)

    def test(op: str, x: Atom, number: float) -> Var:
        return b.let(BOOL, Apply(op, (x, const(number, dtype))))

    inside = b.let(BOOL, Apply("and", (test("ge", top, least), test("le", top, float(limits.max)))))
    return b.let(BOOL, Apply("or", (inside, test("eq", _largest(b, factors), 0.0))))


def _largest(b: Builder, array: Var) -> Var:
    """The largest magnitude; NaN if there is one."""
    item = Type(array.type.dtype)
    x, y, top = Var("x", item), Var("y", item), Var("t", item)
    operator = Lambda((x, y), Body((Stm((top,), Apply("maximum", (x, y)), b.span),), (top,)))
    biggest = Reduction(operator, (zero_of(item.dtype),), commutative=True)

    def element(_: Var, row: Var) -> list[Atom]:
        return [_largest(b, row) if row.type.shape else b.let(item, Apply("abs", (row,)))]

    lam = b.lam([Var("i", I64), Var("e", array.type.row())], element)
    return b.let(item, Sweep(array.type.shape[0], (array,), lam, (biggest,)), "top")
