"""tp.reduce and tp.scan inside compiled functions, and the associative operators that tp.hist takes too.

Takes operator, neutral elements and arrays as front-end values; emits sweeps. The operator is compiled in the types of
the elements, or in wider ones if that is what it returns.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.frontend.data import atoms
from tapeless.frontend.data.arrays import cast, read
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.operators.applied import (
    bound_arguments,
    common_width,
    element,
    flag,
    leaves_of,
    need,
    pure_region,
    rebuild,
    rows_of,
)
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_value, operator
from tapeless.frontend.state.values import Array, Scalar, Value
from tapeless.ir.builder import full_axes
from tapeless.ir.core import Body, If, Lambda, Range, Reduction, Sweep
from tapeless.ir.types import I64, Atom, Dim, DType, Type, Var, i64
from tapeless.ops.promotion import promote


class Operator:
    """An associative operator with its neutral elements, in the types of the elements."""

    def __init__(
        self, ctx: Context, what: str, function: Value, neutral: Value, elements: Sequence[Type], template: Value
    ) -> None:
        self.ctx, self.what, self.function, self.template = ctx, what, function, template
        given = leaves_of(neutral)
        if len(given) != len(elements):
            ctx.fail(
                "TP112", f"{what}: {len(given)} neutral elements for {len(elements)} arrays", "give one for each array."
            )
        self.types: list[Type] = []
        for ne, t in zip(given, elements, strict=True):
            match ne:
                case Scalar():
                    dtype, _ = promote(t.dtype, False, ne.dtype, ne.weak)
                case Array():
                    dtype, _ = promote(t.dtype, False, ne.type.dtype, False)
                case _:
                    ctx.fail("TP104", f"{what}: the neutral element is {type_text(ne)}", "use numbers or arrays.")
            self.types.append(t.with_dtype(dtype))
        self.lam = self._lambda()
        self.neutral = tuple(self._neutral(ne, t) for ne, t in zip(given, self.types, strict=True))

    def _lambda(self, flip: bool = False) -> Lambda:
        ctx = self.ctx
        for _ in range(4):
            left = [Var("a", t) for t in self.types]
            right = [Var("b", t) for t in self.types]
            wider: list[DType] = []

            def make(left: list[Var] = left, right: list[Var] = right, wider: list[DType] = wider) -> list[Atom]:
                a = rebuild(self.template, [element(ctx, self.what, v) for v in left])
                b = rebuild(self.template, [element(ctx, self.what, v) for v in right])
                result = call_value(ctx, self.function, [a, b])
                leaves = leaves_of(result)
                if len(leaves) != len(self.types):
                    ctx.fail("TP112", f"{self.what}: the operator returns {len(leaves)} values for {len(self.types)}")
                return [self._as(leaf, t, wider) for leaf, t in zip(leaves, self.types, strict=True)]

            lam = pure_region(ctx, self.what, [*left, *right], make)
            if all(w is t.dtype for w, t in zip(wider, self.types, strict=True)):
                return lam
            self.types = [t.with_dtype(w) for w, t in zip(wider, self.types, strict=True)]
        ctx.fail("TP104", f"{self.what}: the operator's result has another type than its operands")

    def _as(self, leaf: Value, t: Type, wider: list[DType]) -> Atom:
        ctx = self.ctx
        match leaf:
            case Scalar() if not t.shape:
                dtype, _ = promote(t.dtype, False, leaf.dtype, leaf.weak)
                wider.append(dtype)
                return atoms.convert(ctx, leaf.atom, dtype)
            case Array() if leaf.type.rank == t.rank:
                dtype, _ = promote(t.dtype, False, leaf.type.dtype, False)
                wider.append(dtype)
                for d, e in zip(t.shape, leaf.type.shape, strict=True):
                    same_size(ctx, d, e, f"{self.what}: the operator's result and its operands")
                return cast(ctx, read(ctx, leaf), dtype)
            case _:
                want = f"an array of {t.rank} dimensions" if t.shape else "a number"
                ctx.fail(
                    "TP104", f"{self.what}: the operator returns {type_text(leaf)}, its operands are each {want}",
                    "return what the operands are.",
                )  # fmt: skip

    def _neutral(self, ne: Value, t: Type) -> Atom:
        ctx = self.ctx
        if isinstance(ne, Scalar):
            atom = atoms.convert(ctx, ne.atom, t.dtype)
            return atom if not t.shape else ctx.b.full(t.shape, atom, t.dtype, "ne")
        assert isinstance(ne, Array)
        if ne.type.rank != t.rank:
            ctx.shape_error("TP202", f"{self.what}: the neutral element has rank {ne.type.rank}, the elements {t.rank}")
        for d, e in zip(t.shape, ne.type.shape, strict=True):
            same_size(ctx, d, e, f"{self.what}: neutral element and elements")
        return cast(ctx, read(ctx, ne), t.dtype)


def pick_types(ctx: Context, arrays: Sequence[Var], op: Operator) -> Lambda:
    """The lambda of a sweep that hands its rows on, in the operator's types."""
    index = Var("i", I64)
    rows = [Var(a.name, a.type.row()) for a in arrays]

    def make() -> list[Atom]:
        out: list[Atom] = []
        for r, t in zip(rows, op.types, strict=True):
            out.append(cast(ctx, r, t.dtype) if r.type.shape else atoms.convert(ctx, r, t.dtype))
        return out

    with ctx.b.region() as stms:
        results = make()
    return Lambda((index, *rows), Body(tuple(stms), tuple(results)))


# -- reduce and scan


@operator("reduce")
def op_reduce(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.reduce", args, keywords, ("op", "ne", "xs", "commutative"))
    need(ctx, "tp.reduce", a, ("op", "ne", "xs"))
    arrays = rows_of(ctx, "tp.reduce", a["xs"])
    width = common_width(ctx, "tp.reduce", arrays)
    op = Operator(ctx, "tp.reduce", a["op"], a["ne"], [x.type.row() for x in arrays], a["xs"])
    reduction = Reduction(op.lam, op.neutral, flag(ctx, a.get("commutative")))
    vars = [Var("r", t) for t in op.types]
    ctx.b.bind(vars, Sweep(width, tuple(arrays), pick_types(ctx, arrays, op), (reduction,)))
    return rebuild(a["xs"], [Scalar(v) if v.type.is_scalar else ctx.new_cell(v) for v in vars])


@operator("scan")
def op_scan(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = bound_arguments(ctx, "tp.scan", args, keywords, ("op", "ne", "xs", "exclusive", "reverse"))
    need(ctx, "tp.scan", a, ("op", "ne", "xs"))
    arrays = rows_of(ctx, "tp.scan", a["xs"])
    width = common_width(ctx, "tp.scan", arrays)
    op = Operator(ctx, "tp.scan", a["op"], a["ne"], [x.type.row() for x in arrays], a["xs"])
    reverse, exclusive = flag(ctx, a.get("reverse")), flag(ctx, a.get("exclusive"))
    lam = op.lam
    if reverse:  # from the right, the operands keep their order
        arrays = [reversed_rows(ctx, x) for x in arrays]
        k = len(op.types)
        lam = Lambda((*lam.params[k:], *lam.params[:k]), lam.body)
    vars = [Var("s", Type(t.dtype, (width, *t.shape))) for t in op.types]
    ctx.b.bind(vars, Sweep(width, tuple(arrays), pick_types(ctx, arrays, op), (), (Reduction(lam, op.neutral),)))
    if exclusive:
        vars = list(_shifted(ctx, width, vars, op.neutral))
    if reverse:
        vars = [reversed_rows(ctx, v) for v in vars]
    return rebuild(a["xs"], [ctx.new_cell(v) for v in vars])


def reversed_rows(ctx: Context, array: Var) -> Var:
    n = ctx.size_atom(array.type.shape[0])
    last = atoms.apply(ctx, "sub", n, i64(1))
    axes = [Range(last, array.type.shape[0], i64(-1)), *full_axes(array.type.shape[1:])]
    return ctx.b.index(array, axes, array.name)


def _shifted(ctx: Context, width: Dim, vars: Sequence[Var], neutral: Sequence[Atom]) -> tuple[Var, ...]:
    """Each result one place later, the neutral element first."""

    def make(i: Var) -> list[Atom]:
        first = atoms.apply(ctx, "eq", i, i64(0))
        with ctx.b.region() as stms:
            before = atoms.apply(ctx, "sub", i, i64(1))
            rows = [ctx.b.row(v, before) for v in vars]
        out = [Var("e", r.type) for r in rows]
        return list(ctx.b.bind(out, If(first, Body((), tuple(neutral)), Body(tuple(stms), tuple(rows)))))

    return ctx.b.map(width, [], make, "s")
