"""Writing Core: scalar rows that fold constants, and whole-array sums, zeros and copies over a `Builder`.

Gives `Emit`, which derivatives and inverses are written with. `emit("mul", x, 2.0)` is the `Scalars` of `ops.partials`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import Apply, Axis, Body, Check, Lambda, Reduction, Stm, Sweep
from tapeless.ir.quiet import unchecked
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import Atom, Const, Dim, DType, Type, Var, const, one_of, zero_of
from tapeless.ops.partials import PARTIALS
from tapeless.ops.table import INEXACT, unbounded
from tapeless.ops.table import op as row


def differentiable(type: Type) -> bool:
    """Whether values of a type have derivatives: integers and truth values have none."""
    return not type.acc and (type.dtype.is_float or type.dtype.is_complex)


def sum_operator(dtype: DType) -> Reduction:
    """Addition with 0."""
    item = Type(dtype)
    left, right, total = Var("x", item), Var("y", item), Var("t", item)
    stm = Stm((total,), Apply("add", (left, right)), NOWHERE)
    return Reduction(Lambda((left, right), Body((stm,), (total,))), (zero_of(dtype),), commutative=True)


class Emit:
    """Puts statements into a builder."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.steep = False  # making a factor that may be infinite, to be differentiated once more
        self.level: dict[Var, frozenset[int]] = {}  # results of rows: operands whose factors are finite

    # -- scalars

    def expect_numbers(self, value: Atom, message: str) -> None:
        """Raises where an element is NaN."""
        if value.type.shape:
            assert isinstance(value, Var)

            def element(_: Var, row: Var) -> tuple[Atom, ...]:
                self.expect_numbers(row, message)
                return ()

            self.b.map(value.type.shape[0], [value], element)
        elif (good := self("not", self("isnan", value))) != Const(True, DType.bool):
            self.b.effect(Check(good, "FloatingPointError", message))

    def __call__(self, op: str, *args: Atom | float, dtype: DType | None = None, label: str = "t") -> Atom:
        """A row of the ops table; Python numbers take the type of the other operands."""
        given = [a for a in args if isinstance(a, (Var, Const))]
        kind = next((a.type.dtype for a in given if a.type.dtype is not DType.bool), given[0].type.dtype)
        atoms = [a if isinstance(a, (Var, Const)) else const(a, kind) for a in args]
        if self.steep and kind in INEXACT:  # Note [Products of slopes]
            op, atoms = ("times", atoms * (2 // len(atoms))) if op in ("mul", "square") else (op, atoms)
        if op == "reciprocal" and kind.is_complex:  # of which NumPy's own function divides once more
            op, atoms = "quotient", [const(1.0, kind), *atoms]
        folded = _fold(op, atoms)
        if folded is not None:
            return folded
        result = dtype or row(op).result([a.type.dtype for a in atoms])
        if op != "convert" and all(isinstance(a, Const) for a in atoms):
            values = [a.dtype.numpy.type(a.value) for a in atoms if isinstance(a, Const)]
            return const(row(op).numpy(*values), result)
        return self.b.let(Type(result), Apply(op, tuple(atoms)), label)

    def convert(self, x: Atom, dtype: DType) -> Atom:
        if x.type.dtype is dtype:
            return x
        if isinstance(x, Const):
            return const(x.value, dtype)
        return self.b.let(Type(dtype), Apply("convert", (x,)), "t")

    def partial(self, name: str, k: int, result: Atom, args: Sequence[Atom]) -> Atom | None:
        """The slope of a row in its operand `k`; None where it is zero everywhere."""
        rules = PARTIALS.get(name)
        if rules is None:
            raise NotImplementedError(f"the operation {name} has no derivative")
        rule = rules[k]
        if rule is None:
            return None
        before, self.steep = self.steep, self.b.again and self._unbounded(name, k, result, args)
        found = rule(self, result, *args)
        self.steep = before
        return found if isinstance(found, (Var, Const)) else const(found, args[k].type.dtype)

    def term(
        self, name: str, k: int, result: Atom, args: Sequence[Atom], t: Atom, guarded: bool = False
    ) -> Atom | None:
        """The slope of a row in its operand `k` times a tangent or adjoint; None for zero."""
        factor = self.partial(name, k, result, args)
        if factor is None:
            return None
        moving = name == "times" and k == 0 and args[0] != args[1]
        return self.slope_times(factor, t, guarded or self._unbounded(name, k, result, args), moving)

    def _unbounded(self, name: str, k: int, result: Atom, args: Sequence[Atom]) -> bool:
        """Finite slopes may have slopes that are not, so what is differentiated again, or was before (`times`: Note
        [Products of slopes]), is not looked at more closely.
        """
        level = self.level.get(result, ()) if isinstance(result, Var) and not self.b.again and name != "times" else ()
        return k not in level and unbounded(name, args)

    def of_parts(self, exp: Apply) -> tuple[str, tuple[str, str], list[Atom]]:
        """The size or angle of a complex number as a row of its parts, so that both have the same slopes everywhere."""
        found = row(exp.op).of_parts
        assert found is not None, exp.op
        name, parts = found
        return name, parts, [self(p, exp.args[0]) for p in parts]

    def slope_times(self, factor: Atom, t: Atom, guarded: bool, both: bool = False) -> Atom:
        """`guarded`: 0 where t is 0, whatever the factor. `both`: the factor is a tangent too."""
        if t.type.shape:
            assert isinstance(t, Var)
            return self.b.map(t.type.shape[0], [t], lambda _, e: (self.slope_times(factor, e, guarded, both),))[0]
        product = self("times" if guarded and self.b.again else "mul", factor, t)
        if not isinstance(product, Var) or product in (factor, t) or not guarded:
            return product
        still = self("eq", t, 0.0)
        if both:
            still = self("or", still, self("eq", factor, 0.0))
        nothing = self("and", still, self("isnan", product))  # Note [Zero times infinity]
        return self("select", nothing, zero_of(product.type.dtype), product)

    # -- values of any rank

    def zero(self, type: Type) -> Atom:
        if not type.shape:
            return zero_of(type.dtype)
        return self.b.full(type.shape, zero_of(type.dtype), type.dtype, "zero")

    def elementwise(self, name: str, *args: Atom, label: str = "t") -> Atom:
        """A row on every element of arrays of one shape; scalars among them stay as they are."""
        arrays = [a for a in args if a.type.shape]
        if not arrays:
            return self(name, *args, label=label)
        first = arrays[0]
        assert isinstance(first, Var)

        def element(_: Var, *rows: Var) -> tuple[Atom]:
            given = iter(rows)
            return (self.elementwise(name, *(next(given) if a.type.shape else a for a in args), label=label),)

        vars_ = [a for a in arrays if isinstance(a, Var)]
        return self.b.map(first.type.shape[0], vars_, element, label)[0]

    def add(self, a: Atom, b: Atom) -> Atom:
        return self.elementwise("add", a, b)

    def scale(self, factor: Atom, x: Atom) -> Atom:
        return self.elementwise("mul", factor, x)

    def negate(self, x: Atom) -> Atom:
        return self.elementwise("neg", x)

    def index(self, array: Var, axes: Sequence[Axis], label: str = "e") -> Var:
        return self.b.index(array, unchecked(axes), label)

    def add_at(self, array: Var, axes: Sequence[Axis], value: Atom) -> Var:
        """`array` with `value` added at `axes`."""
        axes = unchecked(axes)
        return self.b.update(array, axes, self.add(self.b.index(array, axes), value))

    def broadcast(self, x: Atom, shape: Sequence[Dim]) -> Atom:
        """A value repeated along new first axes."""
        if not shape:
            return x
        if not x.type.shape:
            return self.b.full(shape, x, x.type.dtype, "full")
        assert isinstance(x, Var)
        places = range(len(shape), len(shape) + x.type.rank)
        return self.b.broadcast(x, (*shape, *x.type.shape), tuple(places))

    def sum_over(self, array: Var, axes: Sequence[int]) -> Atom:
        """The sum along some axes."""
        if not axes:
            return array
        rest = [k for k in range(array.type.rank) if k not in axes]
        perm = (*axes, *rest)
        if perm != tuple(range(array.type.rank)):
            array = self.b.transpose(array, perm)
        found: Atom = array
        for _ in axes:
            assert isinstance(found, Var)
            found = self.sum_rows(found)
        return found

    def sum_rows(self, array: Var) -> Atom:
        """The sum of the rows of an array."""
        if array.type.rank > 1:  # by columns: each a sum of its own
            perm = (*range(1, array.type.rank), 0)
            turned = self.b.transpose(array, perm)
            return self._sum_last(turned)
        item = array.type.row()
        i, e = Var("i", Type(DType.i64)), Var("e", item)
        total = Var("sum", item)
        reduces = (sum_operator(item.dtype),)
        self.b.bind([total], Sweep(array.type.shape[0], (array,), Lambda((i, e), Body((), (e,))), reduces))
        return total

    def sum_of(self, type: Type) -> Reduction:
        """Addition of numbers or of arrays."""
        if not type.shape:
            return sum_operator(type.dtype)
        zero = self.zero(type)
        left, right = Var("x", type), Var("y", type)
        with self.b.region() as stms:
            total = self.add(left, right)
        return Reduction(Lambda((left, right), Body(tuple(stms), (total,))), (zero,), commutative=True)

    def _sum_last(self, array: Var) -> Atom:
        if array.type.rank == 1:
            return self.sum_rows(array)
        return self.b.map(array.type.shape[0], [array], lambda _, r: (self._sum_last(r),), "sum")[0]


def whole(type: Type) -> tuple[Axis, ...]:
    return tuple(full_axes(type.shape))


def _fold(name: str, args: Sequence[Atom]) -> Atom | None:
    """Neutral elements of products and sums. A product with 0 stays: the other factor may be infinite."""
    match name, args:
        case "mul" | "times", [a, b]:
            if a == one_of(a.type.dtype):
                return b
            if b == one_of(b.type.dtype):
                return a
        case ("add", [a, b]):
            if isinstance(a, Const) and a.value == 0:
                return b
            if isinstance(b, Const) and b.value == 0:
                return a
        case ("sub", [a, b]):
            if isinstance(b, Const) and b.value == 0:
                return a
        case _:
            pass
    return None
