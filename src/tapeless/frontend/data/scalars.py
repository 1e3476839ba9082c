"""Scalar arithmetic of Python and NumPy on Core operands: promotion, conversion, Python's division, folding of
constants.

Takes scalars, gives scalars, emitting `Apply` statements. Relies on the ops table and on `ops.promotion`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tapeless.frontend.data.atoms import apply, convert, logical_and, logical_not, logical_or, select
from tapeless.frontend.data.overflow import check_overflow
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Scalar, weak
from tapeless.ir.types import Atom, Const, DType, const, i64, zero_of
from tapeless.ops.op import COMPLEX
from tapeless.ops.promotion import promote
from tapeless.ops.table import op as row

# Python operator -> (row, the operator itself for folding, the symbol in messages)
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any], str]] = {
    "Add": ("add", operator.add, "+"),
    "Sub": ("sub", operator.sub, "-"),
    "Mult": ("mul", operator.mul, "*"),
    "Div": ("div", operator.truediv, "/"),
    "FloorDiv": ("floordiv", operator.floordiv, "//"),
    "Mod": ("mod", operator.mod, "%"),
    "Pow": ("pow", operator.pow, "**"),
    "BitAnd": ("and", operator.and_, "&"),
    "BitOr": ("or", operator.or_, "|"),
    "BitXor": ("xor", operator.xor, "^"),
    "LShift": ("shl", operator.lshift, "<<"),
    "RShift": ("shr", operator.rshift, ">>"),
}
COMPARE: dict[str, tuple[str, Callable[[Any, Any], Any], str]] = {
    "Lt": ("lt", operator.lt, "<"),
    "LtE": ("le", operator.le, "<="),
    "Gt": ("gt", operator.gt, ">"),
    "GtE": ("ge", operator.ge, ">="),
    "Eq": ("eq", operator.eq, "=="),
    "NotEq": ("ne", operator.ne, "!="),
}
NEGATIVE_POWER = "an int to a negative power is a float in Python, and the type of a result cannot depend on the value of the exponent: write float(base) ** exponent"  # fmt: skip
NUMPY_POWER = "integers to negative integer powers are not allowed"
SYMBOLS = {name: text for name, (_, _, text) in {**BINARY, **COMPARE}.items()}


def narrowed(ctx: Context, atom: Atom, dtype: DType) -> Atom:
    """A conversion that the user asked for: with check=True, numbers that the integer type does not hold raise."""
    if ctx.options.check and _may_not_fit(atom.type.dtype, dtype):
        ctx.check(inside(ctx, atom, dtype), "OverflowError", f"{{0}} is out of bounds for {dtype.numpy.name}", atom)
    return convert(ctx, atom, dtype)


def stored(ctx: Context, a: Scalar, dtype: DType) -> Atom:
    """A number as an element of an array: NumPy refuses one that an array of integers does not hold."""
    atom = a.atom
    if not _may_not_fit(a.dtype, dtype) or ctx.options.unsafe:
        return convert(ctx, atom, dtype)
    if a.dtype.is_float:
        ctx.check(apply(ctx, "eq", atom, atom), "ValueError", "cannot convert float NaN to integer")
        atom = apply(ctx, "trunc", atom)
    fits = inside(ctx, atom, dtype)
    if isinstance(fits, Const) and not fits.value and isinstance(atom, Const) and not a.dtype.is_float:
        reason = f"Python integer {int(atom.value.real)} out of bounds for {dtype.numpy.name}"
        ctx.fail("TP104", reason, "use an array of int64.")
    ctx.check(fits, "OverflowError", f"{{0}} is out of bounds for {dtype.numpy.name}", atom)
    return convert(ctx, atom, dtype)


def _may_not_fit(source: DType, target: DType) -> bool:
    if source.is_int and target.is_int:
        return source.lowest < target.lowest or source.highest > target.highest
    return target.is_int and source.is_float


def inside(ctx: Context, atom: Atom, dtype: DType) -> Atom:
    """Whether an integer type holds the number."""
    kind, good = atom.type.dtype, const(True, DType.bool)
    if kind.is_float:
        above = apply(ctx, "ge", atom, const(dtype.lowest, kind))
        return logical_and(ctx, above, apply(ctx, "lt", atom, const(dtype.highest + 1, kind)))
    above = apply(ctx, "ge", atom, const(dtype.lowest, kind)) if kind.lowest < dtype.lowest else good
    below = apply(ctx, "le", atom, const(dtype.highest, kind)) if kind.highest > dtype.highest else good
    return logical_and(ctx, above, below)


SIGNIFICANT = {DType.f32: 24, DType.c64: 24, DType.f64: 53, DType.c128: 53}  # bits of a float


def exactly(ctx: Context, atom: Atom, dtype: DType) -> Atom:
    """Converted to the type of a variable that is an int on one path and a float on another. Python keeps the int
    there: one that the float does not hold is an error.
    """
    source = atom.type.dtype
    if source.is_int and dtype.is_int and _may_not_fit(source, dtype):
        return stored(ctx, Scalar(atom), dtype)
    if not source.is_int or 8 * source.bytes - 1 <= SIGNIFICANT.get(dtype, 64):
        return convert(ctx, atom, dtype)
    reason = f"becomes a {dtype.numpy.name} here, as on another path, which does not hold it exactly"
    if isinstance(atom, Const):
        whole = int(atom.value.real)
        if int(dtype.real.numpy.type(whole)) != whole:
            ctx.fail("TP104", f"the integer {whole} {reason}", "write float(...) there.")
        return convert(ctx, atom, dtype)
    result = convert(ctx, atom, dtype)
    if not ctx.options.unsafe and not (dtype.real is DType.f64 and (atom in ctx.counters or atom in ctx.sizes)):
        back = convert(ctx, apply(ctx, "real", result) if dtype.is_complex else result, source)
        ctx.check(apply(ctx, "eq", back, atom), "OverflowError", f"the integer {{0}} {reason}: write float(...)", atom)
    return result


def common(ctx: Context, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """Both operands in their common type."""
    dtype, is_weak = promote(a.dtype, a.weak, b.dtype, b.weak)
    return Scalar(fitted(ctx, a, dtype), is_weak), Scalar(fitted(ctx, b, dtype), is_weak)


def fitted(ctx: Context, a: Scalar, dtype: DType) -> Atom:
    """Converted; an int of Python that NumPy's type beside it does not hold is an error, as in NumPy."""
    return stored(ctx, a, dtype) if a.weak and a.dtype.is_int else convert(ctx, a.atom, dtype)


def binary(ctx: Context, name: str, a: Scalar, b: Scalar) -> Scalar:
    """A Python binary operator, by its `ast` class name."""
    op, fold_python, symbol = BINARY[name]
    if a.static and b.static and a.weak and b.weak:
        folded = _fold_python(ctx, fold_python, a, b)
        if folded is not None:
            return folded
    if name == "Div":
        return divide(ctx, a, b)
    if name == "Pow":
        return power(ctx, a, b)
    dtype, is_weak = promote(a.dtype, a.weak, b.dtype, b.weak)
    if dtype is DType.bool and name not in ("BitAnd", "BitOr", "BitXor"):
        if is_weak or name not in ("Add", "Sub", "Mult"):  # Python counts with bools
            dtype = DType.i64
        elif name == "Sub":
            ctx.fail("TP104", "NumPy does not subtract bools", "use ^ or np.logical_xor.")
        else:  # NumPy adds and multiplies bools by or and and
            op = "or" if name == "Add" else "and"
    if dtype.work not in row(op).dtypes:
        ctx.fail("TP104", f"unsupported operand types for {symbol}: {type_text(a)} and {type_text(b)}")
    x, y = fitted(ctx, a, dtype), fitted(ctx, b, dtype)
    if name in ("FloorDiv", "Mod") and is_weak:
        of_floats = "float modulo" if name == "Mod" else "float floor division by zero"
        _refuse_zero(ctx, y, "integer division or modulo by zero" if dtype.is_int else of_floats)
    if name in ("LShift", "RShift") and is_weak and not (isinstance(y, Const) and y.value.real >= 0):
        ctx.check(apply(ctx, "ge", y, zero_of(dtype)), "ValueError", "negative shift count")
    return Scalar(arithmetic(ctx, op, x, y), is_weak)


def _fold_python(ctx: Context, fold_python: Callable[[Any, Any], Any], a: Scalar, b: Scalar) -> Scalar | None:
    assert isinstance(a.atom, Const) and isinstance(b.atom, Const)
    try:
        value = fold_python(a.atom.value, b.atom.value)
    except (ZeroDivisionError, ValueError, OverflowError):
        return None  # left to the run time, which raises as Python does
    except TypeError:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        ctx.fail("TP109", f"the integer {value} does not fit into 64 bits", "write it as a float.")
    return weak(value)


def divide(ctx: Context, a: Scalar, b: Scalar) -> Scalar:
    dtype, is_weak = promote(a.dtype, a.weak, b.dtype, b.weak)
    target = dtype if dtype.is_float or dtype.is_complex else DType.f64
    x, y = convert(ctx, a.atom, target), convert(ctx, b.atom, target)
    if is_weak:
        _refuse_zero(ctx, y, "division by zero" if not dtype.is_float else "float division by zero")
    return Scalar(apply(ctx, "div", x, y), is_weak)


def power(ctx: Context, a: Scalar, b: Scalar) -> Scalar:
    dtype, is_weak = promote(a.dtype, a.weak, b.dtype, b.weak)
    if dtype is DType.bool:
        dtype = DType.i64
    exponent = b.atom.value if isinstance(b.atom, Const) else None
    x = convert(ctx, a.atom, dtype)
    if dtype.is_int:
        if isinstance(exponent, int) and exponent < 0:
            if is_weak:
                return power(ctx, Scalar(convert(ctx, a.atom, DType.f64), True), b)
            ctx.fail("TP104", NUMPY_POWER, "convert the base to float first.")
        if isinstance(exponent, int) and exponent <= 4:
            return Scalar(_small_power(ctx, x, exponent), is_weak)
        y = convert(ctx, b.atom, dtype)
        if exponent is None:
            ctx.check(apply(ctx, "ge", y, zero_of(dtype)), "ValueError", NEGATIVE_POWER if is_weak else NUMPY_POWER)
        return Scalar(arithmetic(ctx, "ipow", x, y), is_weak)
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
        if exponent in (0, 1, 2, 3, 4):
            return Scalar(_small_power(ctx, x, int(exponent)), is_weak)
        if exponent == -1 and not is_weak:
            return Scalar(apply(ctx, "reciprocal", x), is_weak)
        if exponent == 0.5 and not dtype.is_complex:
            root = apply(ctx, "sqrt", x)
            if is_weak:  # Python's (-inf) ** 0.5 is inf
                endless = apply(ctx, "eq", x, const(-math.inf, dtype))
                bad = logical_and(ctx, apply(ctx, "lt", x, zero_of(dtype)), logical_not(ctx, endless))
                _refuse_complex_power(ctx, bad)
                root = select(ctx, endless, const(math.inf, dtype), root)
            return Scalar(root, is_weak)
    y = convert(ctx, b.atom, dtype)
    checked = is_weak and not ctx.options.unsafe
    if checked:
        _check_power(ctx, x, y)
    result = apply(ctx, "pow", x, y)
    if checked:
        fine = logical_not(ctx, apply(ctx, "isinf", result))
        if not dtype.is_complex:  # an infinite operand may give an infinite result
            fine = logical_or(ctx, logical_or(ctx, fine, apply(ctx, "isinf", x)), apply(ctx, "isinf", y))
        ctx.check(fine, "OverflowError", "the result of ** is too large for a float")
    return Scalar(result, is_weak)


def _check_power(ctx: Context, x: Atom, y: Atom) -> None:
    """Python's own numbers raise for 0 to a negative power, and floats would become complex for a root of a negative
    number.
    """
    dtype = x.type.dtype
    zero, exponent = zero_of(dtype), y
    if dtype.is_complex:
        exponent = apply(ctx, "real", y)
    below = zero_of(exponent.type.dtype)
    positive_exponent = isinstance(y, Const) and y.value.imag == 0 and y.value.real >= 0
    if not positive_exponent and not (isinstance(x, Const) and x.value != 0):
        negative = apply(ctx, "lt", exponent, below)
        if dtype.is_complex:
            negative = logical_or(ctx, negative, apply(ctx, "ne", apply(ctx, "imag", y), below))
        else:  # 0.0 ** -inf is inf
            negative = logical_and(ctx, negative, apply(ctx, "isfinite", y))
        bad = logical_and(ctx, apply(ctx, "eq", x, zero), negative)
        ctx.check(logical_not(ctx, bad), "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    if dtype.is_complex or (isinstance(y, Const) and float(y.value.real).is_integer()):
        return
    if not (isinstance(x, Const) and x.value.real >= 0):
        whole = apply(ctx, "eq", apply(ctx, "floor", y), y)
        real = logical_or(ctx, logical_or(ctx, whole, apply(ctx, "isnan", y)), apply(ctx, "isinf", x))
        _refuse_complex_power(ctx, logical_and(ctx, apply(ctx, "lt", x, zero), logical_not(ctx, real)))


def _refuse_complex_power(ctx: Context, bad: Atom) -> None:
    if not ctx.options.unsafe:
        ctx.check(
            logical_not(ctx, bad), "ValueError", "a root of a negative float is complex: make the base complex first"
        )


def _small_power(ctx: Context, x: Atom, exponent: int) -> Atom:
    match exponent:
        case 0:
            return const(1, x.type.dtype)
        case 1:
            return x
        case 2:
            return arithmetic(ctx, "mul", x, x)
        case 3:
            return arithmetic(ctx, "mul", arithmetic(ctx, "mul", x, x), x)
    square = arithmetic(ctx, "mul", x, x)
    return arithmetic(ctx, "mul", square, square)


def _refuse_zero(ctx: Context, y: Atom, message: str) -> None:
    """Python's own numbers raise on division by zero; NumPy's do not."""
    if isinstance(y, Const) and y.value != 0:
        return
    if ctx.options.unsafe:
        return
    ctx.check(apply(ctx, "ne", y, zero_of(y.type.dtype)), "ZeroDivisionError", message)


# -- check=True


def arithmetic(ctx: Context, op: str, *args: Atom) -> Atom:
    """`apply` for what the user computes: with check=True, integers that leave their type raise OverflowError."""
    dtype = args[0].type.dtype
    if not (ctx.options.check and dtype.is_int):
        return apply(ctx, op, *args)
    if dtype.work is dtype or dtype is DType.u64:
        result = apply(ctx, op, *args)
        check_overflow(ctx, op, result, args)
        return result
    result = arithmetic(ctx, op, *(convert(ctx, a, DType.i64) for a in args))
    if result.type.dtype is not DType.i64:
        return result
    ctx.check(
        inside(ctx, result, dtype),
        "OverflowError",
        f"integer overflow: {{0}} is out of bounds for {dtype.numpy.name}",
        result,
    )
    return convert(ctx, result, dtype)


# -- comparisons and signs


def compare(ctx: Context, name: str, a: Scalar, b: Scalar) -> Scalar:
    op, fold_python, symbol = COMPARE[name]
    python = a.weak and b.weak
    if python and isinstance(a.atom, Const) and isinstance(b.atom, Const) and not {a.dtype, b.dtype} & COMPLEX:
        return Scalar(Const(bool(fold_python(a.atom.value, b.atom.value)), DType.bool), True)
    if python and {a.dtype, b.dtype} == {DType.i64, DType.f64}:
        return Scalar(_compare_exactly(ctx, op, a.atom, b.atom), True)
    if a.dtype.is_int and b.dtype.is_int and a.dtype is not b.dtype:
        return Scalar(_compare_integers(ctx, op, a.atom, b.atom), python)
    x, y = common(ctx, a, b)
    if x.dtype.work not in row(op).dtypes:
        if x.dtype is DType.bool:
            x, y = Scalar(convert(ctx, x.atom, DType.i64)), Scalar(convert(ctx, y.atom, DType.i64))
        elif not python:
            return Scalar(before(ctx, op, x.atom, y.atom))
        else:
            ctx.fail("TP104", f"'{symbol}' is not supported between {type_text(a)} and {type_text(b)}")
    return Scalar(apply(ctx, op, x.atom, y.atom), python)


def _compare_integers(ctx: Context, op: str, a: Atom, b: Atom) -> Atom:
    """Integers of two types, by their values. A negative number is below all of u64: where there is one, signs decide."""
    x, y = (v if v.type.dtype is DType.u64 else convert(ctx, v, DType.i64) for v in (a, b))
    if x.type.dtype is y.type.dtype:
        return apply(ctx, op, x, y)
    below = [const(False, DType.bool) if v.type.dtype is DType.u64 else apply(ctx, "lt", v, i64(0)) for v in (x, y)]
    signs = apply(ctx, op, *(select(ctx, v, i64(-1), i64(0)) for v in below))
    near = apply(ctx, op, convert(ctx, x, DType.u64), convert(ctx, y, DType.u64))
    return select(ctx, logical_or(ctx, *below), signs, near)


def before(ctx: Context, op: str, a: Atom, b: Atom) -> Atom:
    """`op` is a row of comparison. Complex numbers are ordered as NumPy has it: by their real parts, and where these are
    equal by their imaginary parts. NaN in any part is in no order.
    """
    if not a.type.dtype.is_complex:
        return apply(ctx, op, a, b)
    (ar, br), (ai, bi) = ([apply(ctx, part, z) for z in (a, b)] for part in ("real", "imag"))
    strict = {"le": "lt", "ge": "gt"}.get(op, op)
    known = apply(ctx, "and", apply(ctx, "eq", ai, ai), apply(ctx, "eq", bi, bi))
    first = apply(ctx, "and", apply(ctx, strict, ar, br), known)
    return apply(ctx, "or", first, apply(ctx, "and", apply(ctx, "eq", ar, br), apply(ctx, op, ai, bi)))


def _compare_exactly(ctx: Context, op: str, a: Atom, b: Atom) -> Atom:
    """An int and a float of Python, which compares their values; NumPy makes floats of both.

    Rounding keeps the order, so floats that differ decide. Where they are equal, the float is a whole number, and the
    difference of the ints decides: it is small, and right even where 2.0**63 wraps.
    """
    x, y = convert(ctx, a, DType.f64), convert(ctx, b, DType.f64)
    rounded = apply(ctx, op, x, y)
    if any(isinstance(v, Const) and abs(v.value.real) < 2.0**53 for v in (a, b)):
        return rounded
    rest = apply(ctx, "sub", convert(ctx, a, DType.i64), convert(ctx, b, DType.i64))
    return select(ctx, apply(ctx, "eq", x, y), apply(ctx, op, rest, i64(0)), rounded)


def unary_op(ctx: Context, name: str, a: Scalar) -> Scalar:
    """Python's unary operators, by `ast` class name."""
    match name:
        case "UAdd" | "USub":
            if a.dtype is DType.bool and not a.weak:
                ctx.fail(
                    "TP104",
                    f"NumPy has no unary {'+' if name == 'UAdd' else '-'} for bools",
                    "convert to an integer, or use ~.",
                )
            x = convert(ctx, a.atom, DType.i64) if a.dtype is DType.bool else a.atom
            if name == "UAdd":
                return Scalar(x, a.weak)
            return Scalar(Const(-x.value, x.dtype) if isinstance(x, Const) else arithmetic(ctx, "neg", x), a.weak)
        case "Invert":
            if not (a.dtype.is_int or a.dtype is DType.bool):
                ctx.fail("TP104", f"bad operand type for unary ~: {type_text(a)}")
            x = convert(ctx, a.atom, DType.i64) if a.dtype is DType.bool and a.weak else a.atom  # Python: ~True is -2
            return Scalar(apply(ctx, "not", x), a.weak)
    raise AssertionError(name)


def truth(ctx: Context, a: Scalar) -> Atom:
    return a.atom if a.dtype is DType.bool else convert(ctx, a.atom, DType.bool)


def to_index(ctx: Context, a: Scalar, what: str = "an index") -> Atom:
    """An integer operand as i64."""
    if a.dtype is DType.u64:  # what i64 does not hold is an index of no array
        return convert(ctx, apply(ctx, "min", a.atom, const(DType.i64.highest, DType.u64)), DType.i64)
    if a.dtype.is_int or a.dtype is DType.bool:
        return convert(ctx, a.atom, DType.i64)
    ctx.fail("TP104", f"{what} must be an integer, not {type_text(a)}", "use int(...) or // to make it one.")


def join(ctx: Context, a: Scalar, b: Scalar) -> tuple[DType, bool]:
    """The type of a variable that two paths bind, which holds both values. One of a number of Python and a narrower one of
    NumPy is a number of Python: beside an array it takes its type, as either would.
    """
    if a.dtype is b.dtype:
        return a.dtype, a.weak and b.weak
    if a.weak != b.weak and a.dtype is not DType.bool and b.dtype is not DType.bool:
        strong, soft = (b, a) if a.weak else (a, b)
        narrow, wide = (promote(strong.dtype, False, soft.dtype, is_weak)[0] for is_weak in (True, False))
        if narrow is wide or (soft.static and _holds(narrow, soft.atom)):  # as `s = 0.0` before a loop over float32
            return narrow, False
        return wide, True
    dtype, _ = promote(a.dtype, False, b.dtype, False)
    return dtype, a.weak and b.weak


def _holds(dtype: DType, atom: Atom) -> bool:
    """Whether a type has the constant. One of a float is rounded, as beside an array."""
    if not isinstance(atom, Const) or not dtype.is_int:
        return True
    return dtype.lowest <= atom.value.real <= dtype.highest
