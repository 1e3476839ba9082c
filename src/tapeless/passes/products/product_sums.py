"""Sums of a matrix product along one of its axes, without the product.

Takes and gives a verified function. Relies on `recognise` having found the products; dead code goes afterwards.

Note [Sums of products]
The sum of the rows of A @ B is (the sum of the rows of A) @ B, the sum of its columns is A @ (the sum of B's): a
product with a vector in place of one with a matrix. The adjoint of what was broadcast into a product is such a sum.
Terms are added in another order than before, within the same bound of the error. A product has to be there for its sum
alone: it is an input of one sweep, as it is or transposed, whose lambda
    adds up its row, each element times the same factors         r = reduce add (w * row)
    or adds its row to an accumulator                            update_acc acc[:] = w * row
and does nothing else with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import Apply, At, Body, Exp, Function, Lambda, Library, Stm, Sweep, Transpose, UpdateAcc, WithAcc
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import I64, Atom, Type, Var, const, zero_of
from tapeless.ir.walk import all_stms, free_in_exp, use_counts
from tapeless.ops.emit import sum_operator
from tapeless.passes.parallel.merged_sweeps import is_whole
from tapeless.passes.products.recognise import KINDS, elementwise, is_sum


def sum_products_first(function: Function) -> Function:
    if not any(isinstance(stm.exp, Library) for stm in all_stms(function.body)):
        return function
    return ProductSums(use_counts(function.body)).function(function)


@dataclass(frozen=True)
class Product:
    """left @ right, or the transpose of that."""

    left: Var
    right: Var
    turned: bool = False

    def row_sums(self, b: Builder) -> Var:
        return self._sums(b, along_rows=not self.turned)

    def sum_of_rows(self, b: Builder) -> Var:
        return self._sums(b, along_rows=self.turned)

    def _sums(self, b: Builder, along_rows: bool) -> Var:
        """One sum for each row of left @ right, or for each column."""
        dtype, rows, columns = self.left.type.dtype, self.left.type.shape[0], self.right.type.shape[1]
        if along_rows:
            return b.let(Type(dtype, (rows,)), Library("matmul", (self.left, _sums_of_rows(b, self.right))), "sums")
        return b.let(Type(dtype, (columns,)), Library("matmul", (_sum_of_rows(b, self.left), self.right)), "sums")


def _sums_of_rows(b: Builder, matrix: Var) -> Var:
    rows, columns = matrix.type.shape
    dtype = matrix.type.dtype
    index, element = Var("i", I64), Var("e", Type(dtype))
    handed_on = Lambda((index, element), Body((), (element,)))

    def total(_: Var, row: Var) -> list[Atom]:
        return [b.let(Type(dtype), Sweep(columns, (row,), handed_on, (sum_operator(dtype),)), "sum")]

    return b.map(rows, [matrix], total, "sums")[0]


def _sum_of_rows(b: Builder, matrix: Var) -> Var:
    """Row by row, in the order of memory."""
    rows, columns = matrix.type.shape
    dtype = matrix.type.dtype
    acc, index, row = Var("acc", Type(dtype, (columns,), "add")), Var("i", I64), Var("row", Type(dtype, (columns,)))
    add = Stm((), UpdateAcc(acc, tuple(full_axes((columns,))), row), b.span)
    each = Stm((), Sweep(rows, (matrix,), Lambda((index, row), Body((add,), ()))), b.span)
    zero = b.full((columns,), zero_of(dtype), dtype, "zero")
    return b.let(Type(dtype, (columns,)), WithAcc((zero,), Lambda((acc,), Body((each,), ()))), "sum")


class ProductSums(Rewriter):
    """`products` are those of this region, or around its accumulators, that have one use."""

    def __init__(self, uses: Counter[Atom]) -> None:
        super().__init__()
        self.uses = uses
        self.products: dict[Var, Product] = {}

    def stm(self, stm: Stm) -> None:
        match stm.exp:
            case Library("matmul", (Var() as left, Var() as right)) if left.type.rank == right.type.rank == 2:
                self.note(stm.vars[0], Product(left, right))
            case Transpose(array, (1, 0)) if array in self.products:
                self.note(stm.vars[0], replace(self.products[array], turned=not self.products[array].turned))
            case Sweep(_, arrays) if any(array in self.products for array in arrays):
                self.sweep(stm, stm.exp)
                return
        super().stm(stm)

    def note(self, var: Var, product: Product) -> None:
        if self.uses[var] == 1 and var.type.dtype in KINDS:
            self.products[var] = product

    def inside(self, exp: Exp) -> Exp:
        if isinstance(exp, WithAcc):
            return super().inside(exp)
        outer, self.products = self.products, {}
        new = super().inside(exp)
        self.products = outer
        return new

    def sweep(self, stm: Stm, exp: Sweep) -> None:
        before, after = Builder(stm.span), Builder(stm.span)
        for array in exp.arrays:
            if array in self.products:
                product = self.products[array]
                exp = _with_sums(exp, array, product, before) or _without_updates(exp, array, product, after) or exp
        self.out.extend(before.stms)
        super().stm(stm if exp is stm.exp else Stm(stm.vars, exp, stm.span))
        self.out.extend(after.stms)


def _with_sums(exp: Sweep, array: Var, product: Product, b: Builder) -> Sweep | None:
    """The sweep over the sums of the rows, if all it does with a row is to add it up."""
    lam, k = exp.lam, exp.arrays.index(array)
    match _only_user(lam, lam.params[k + 1]):
        case Stm((total,), Sweep(_, (_,), inner, (operator,), ()), span) as user if is_sum(operator):
            scale = _factors_of(inner, _bound_in(inner))
        case _:
            return None
    if scale is None:
        return None
    local = Builder(span)
    param = value = Var("sum", total.type) if scale else total
    for n, factor in enumerate(scale, 1):
        made = total if n == len(scale) else Var("t", total.type)
        (value,) = local.bind([made], Apply("mul", (value, factor)))
    stms = [s for old in lam.body.stms for s in (local.stms if old is user else [old])]
    params = (*lam.params[: k + 1], param, *lam.params[k + 2 :])
    arrays = (*exp.arrays[:k], product.row_sums(b), *exp.arrays[k + 1 :])
    return replace(exp, arrays=arrays, lam=Lambda(params, Body(tuple(stms), lam.body.results)))


def _without_updates(exp: Sweep, array: Var, product: Product, b: Builder) -> Sweep | None:
    """The sweep without a product whose rows it adds to an accumulator; that is done afterwards, at once."""
    lam, k = exp.lam, exp.arrays.index(array)
    row = lam.params[k + 1]
    bound = _bound_in(lam)
    scale: tuple[Atom, ...] | None = ()
    gone = [_only_user(lam, row)]
    match gone[0]:
        case Stm((scaled,), Sweep(_, (_,), inner, (), ())):
            row, scale = scaled, _factors_of(inner, bound | _bound_in(inner))
            gone.append(_only_user(lam, scaled))
    match gone[-1]:
        case Stm(_, UpdateAcc(acc, (*places, last), value)) if value is row:
            steady = all(isinstance(a, At) and not a.check and a.index not in bound for a in places)
            whole = is_whole(last, acc.type.shape[-1])
        case _:
            return None
    if scale is None or not steady or not whole or acc in bound or acc.type.acc != "add":
        return None
    total = product.sum_of_rows(b)
    for factor in scale:
        total = elementwise(b, "mul", total, factor)
    b.effect(UpdateAcc(acc, (*places, last), total))
    stms = tuple(s for s in lam.body.stms if s not in gone)
    params = (*lam.params[: k + 1], *lam.params[k + 2 :])
    arrays = (*exp.arrays[:k], *exp.arrays[k + 1 :])
    return replace(exp, arrays=arrays, lam=Lambda(params, Body(stms, lam.body.results)))


# -- reading lambdas


def _bound_in(lam: Lambda) -> set[Atom]:
    return {*lam.params, *(v for stm in all_stms(lam.body) for v in stm.vars)}


def _only_user(lam: Lambda, var: Var) -> Stm | None:
    """The statement of the lambda that uses the variable, if there is just one and it is no result."""
    users = [stm for stm in lam.body.stms if var in free_in_exp(stm.exp)]
    return users[0] if len(users) == 1 and var not in lam.body.results else None


def _factors_of(lam: Lambda, bound: Collection[Atom]) -> tuple[Atom, ...] | None:
    """What the lambda of a sweep over one array multiplies each element by, if that is all it does."""
    value, found = lam.params[1], list[Atom]()
    for stm in lam.body.stms:
        match stm.exp:
            case Apply("mul", (x, factor)) if x is value and factor not in bound:
                found.append(factor)
            case Apply("mul", (factor, x)) if x is value and factor not in bound:
                found.append(factor)
            case Apply("neg", (x,)) if x is value:
                found.append(const(-1, x.type.dtype))
            case Apply("add", (x, y)) if x is value and y is value:
                found.append(const(2, x.type.dtype))
            case _:
                return None
        (value,) = stm.vars
    return tuple(found) if lam.body.results == (value,) else None
