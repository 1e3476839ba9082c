"""Algebra of single operations on scalars: constants, neutral elements, inverses, conversions.

Takes an operation whose operands are renamed already, and the definitions of variables; gives an atom, another
operation, or None. Relies on the ops table for values.

Note [Exact algebra]
A rule holds for every value of the type, bit for bit but for the sign of NaN. On floats that excludes x * 0 (NaN,
infinities), x - x, x + 0.0 (for x = -0.0) and everything that rounds differently; x + -0.0 and x - 0.0 are x. Complex
multiplication mixes the parts, so not even x * 1 is exact there. Integers wrap, which makes them a ring.

Note [Own roots]
x * sqrt(x), the cube of a distance whose square is x, has the slope 3/2 sqrt(x). Taken as a product of two numbers it
would cost a division more, by the root, and be 0 times infinity at 0: so the product is a row of its own, `times_root`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import copysign

import numpy as np

from tapeless.ir.core import Apply, Exp
from tapeless.ir.types import Atom, Const, DType, Type, Var, const, one_of, zero_of
from tapeless.ops.op import Comparison
from tapeless.ops.table import TABLE

Defs = Mapping[Var, Exp]
Rule = Callable[[tuple[Atom, ...], Defs], Atom | Apply | None]

TRUE, FALSE = Const(True, DType.bool), Const(False, DType.bool)


def simplify_apply(exp: Apply, type: Type, defs: Defs) -> Atom | Apply | None:
    """`type` is that of the variable bound to the operation."""
    args = exp.args
    if exp.op == "convert":
        return _convert(args[0], type.dtype, defs)
    for a in args:
        if isinstance(a, Var):
            rule = RULES.get(exp.op)
            return rule(args, defs) if rule else None
    return fold(exp, type.dtype)


def fold(exp: Apply, dtype: DType) -> Const | None:
    """The value of an operation on constants. Declines where NumPy raises or gives another type."""
    values = [a.dtype.numpy.type(a.value) for a in exp.args if isinstance(a, Const)]
    more = [dtype.numpy] if exp.op == "convert" else []
    try:
        result = np.asarray(TABLE[exp.op].numpy(*values, *more))
    except Exception:
        return None
    return Const(result.item(), dtype) if result.dtype == dtype.numpy and not result.shape else None


# -- looking at operands


def inner(atom: Atom, op: str, defs: Defs) -> tuple[Atom, ...] | None:
    """The operands of `op` if that is how the atom was made."""
    made = defs.get(atom) if isinstance(atom, Var) else None
    return made.args if isinstance(made, Apply) and made.op == op else None


def is_value(atom: Atom, value: bool | int | float) -> bool:
    """Is it this constant? -0.0 is not 0.0 here."""
    if not isinstance(atom, Const) or atom.value != value:
        return False
    return not atom.dtype.is_float or copysign(1.0, atom.value.real) == copysign(1.0, value)


def is_zero(atom: Atom, sign: float) -> bool:
    """Is it the float or complex constant zero, all parts of which have this sign?"""
    if not isinstance(atom, Const) or atom.value != 0:
        return False
    parts = [atom.value.real, atom.value.imag] if atom.dtype.is_complex else [atom.value.real]
    return all(copysign(1.0, part) == sign for part in parts)


def is_integer(atom: Atom) -> bool:
    return atom.type.dtype.is_int


def never_negative_zero(atom: Atom, defs: Defs, depth: int = 4) -> bool:
    """Is it known not to be -0.0? A sum is -0.0 only if both of its terms are."""
    if isinstance(atom, Const):
        return not is_zero(atom, -1.0)
    made = defs.get(atom)
    if not isinstance(made, Apply) or not depth or atom.type.dtype.is_complex:
        return False
    if TABLE[made.op].nonnegative:
        return True
    match made.op:
        case "convert":
            return not made.args[0].type.dtype.is_float
        case "add":
            return any(never_negative_zero(a, defs, depth - 1) for a in made.args)
        case "sub":
            return never_negative_zero(made.args[0], defs, depth - 1)
        case "select":
            return all(never_negative_zero(a, defs, depth - 1) for a in made.args[1:])
    return False


# -- arithmetic


def _shifted(atom: Atom, defs: Defs) -> tuple[Atom, int] | None:
    """(x, c) if the integer is x + c for a constant c."""
    made = defs.get(atom) if isinstance(atom, Var) else None
    match made:
        case Apply("add", (x, Const(c)) | (Const(c), x)):
            return x, int(c.real)
        case Apply("sub", (x, Const(c))):
            return x, -int(c.real)
    return None


def _plus(x: Atom, constant: int) -> Atom | Apply:
    dtype = x.type.dtype
    amount = const(constant, dtype)
    return x if amount.value == 0 else Apply("add", (x, amount))


def _add(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    if isinstance(x, Const):
        x, y = y, x
    if isinstance(y, Const):
        if not is_integer(x):
            return x if is_zero(y, -1.0) or (is_zero(y, 1.0) and never_negative_zero(x, defs)) else None
        base, offset = _shifted(x, defs) or (x, 0)
        return _plus(base, offset + int(y.value.real)) if offset or not y.value else None
    if negated := inner(y, "neg", defs):
        return Apply("sub", (x, negated[0]))
    if negated := inner(x, "neg", defs):
        return Apply("sub", (y, negated[0]))
    if is_integer(x):
        for whole, part in ((x, y), (y, x)):
            if (difference := inner(whole, "sub", defs)) and difference[1] is part:
                return difference[0]
    return None


def _sub(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    if isinstance(y, Const):
        if not is_integer(x):
            return x if is_zero(y, 1.0) else None
        base, offset = _shifted(x, defs) or (x, 0)
        return _plus(base, offset - int(y.value.real)) if offset or not y.value else None
    if is_zero(x, -1.0) or (is_integer(x) and is_value(x, 0)):
        return Apply("neg", (y,))
    if negated := inner(y, "neg", defs):
        return Apply("add", (x, negated[0]))
    if is_integer(x):
        if x is y:
            return zero_of(x.type.dtype)
        if total := inner(x, "add", defs):
            for part, rest in (total, total[::-1]):
                if part is y:
                    return rest
    return None


def _mul(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    if isinstance(x, Const):
        x, y = y, x
    dtype = x.type.dtype
    if isinstance(y, Const):
        if is_value(y, 1) and not dtype.is_complex:
            return x
        if negated := inner(x, "neg", defs):
            return Apply("mul", (negated[0], const(-y.value, dtype)))
        if dtype.is_int:
            if y.value == 0:
                return y
            if y.value == -1:
                return Apply("neg", (x,))
            match inner(x, "mul", defs):
                case (z, Const(c)) | (Const(c), z):
                    return Apply("mul", (z, const(int(c.real) * int(y.value.real), dtype)))
        return None
    if (a := inner(x, "neg", defs)) and (b := inner(y, "neg", defs)):
        return Apply("mul", (a[0], b[0]))
    if x is y and (root := _of_either_sign(x, defs)) is not None:
        return Apply("mul", (root, root))
    for whole, part in ((x, y), (y, x)):  # Note [Own roots]
        if dtype.is_float and inner(part, "sqrt", defs) == (whole,):
            return Apply("times_root", (whole,))
    return None


def _div(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    if x.type.dtype.is_complex:
        return None
    if is_value(y, 1):
        return x
    if (a := inner(x, "neg", defs)) and (b := inner(y, "neg", defs)):
        return Apply("div", (a[0], b[0]))
    return None


def _floordiv(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    return x if is_integer(x) and is_value(y, 1) else None


def _mod(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    return zero_of(x.type.dtype) if is_integer(x) and isinstance(y, Const) and y.value in (1, -1) else None


def _pow(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    if x.type.dtype.is_complex or not isinstance(y, Const):
        return None
    return x if y.value == 1 else one_of(x.type.dtype) if y.value == 0 else None


def _neg(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    if negated := inner(args[0], "neg", defs):
        return negated[0]
    if is_integer(args[0]) and (difference := inner(args[0], "sub", defs)):
        return Apply("sub", difference[::-1])
    return None


def _even(op: str) -> Rule:
    def rule(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
        x = _of_either_sign(args[0], defs)
        return None if x is None else Apply(op, (x,))

    return rule


def _of_either_sign(atom: Atom, defs: Defs) -> Atom | None:
    """x if it is -x, or one of the two."""
    if negated := inner(atom, "neg", defs):
        return negated[0]
    if arms := inner(atom, "select", defs):
        for x, y in (arms[1:], arms[:0:-1]):
            if inner(y, "neg", defs) == (x,):
                return x
    return None


def _idempotent(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    return args[0] if args[0] is args[1] else None


# -- comparisons, bits, choice


def _compare(op: str, means: Comparison) -> Rule:
    reflexive = TRUE if means.reflexive else FALSE

    def rule(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
        x, y = args
        dtype = x.type.dtype
        if x is y:  # NaN is not even equal to itself
            return reflexive if dtype.is_int or dtype is DType.bool else None
        if dtype is DType.bool:
            if isinstance(x, Const):
                x, y = y, x
            if isinstance(y, Const):
                return x if bool(y.value) == (op == "eq") else Apply("not", (x,))
        return None

    return rule


def _and(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    return _lattice(args, top=-1, bottom=0)


def _or(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    return _lattice(args, top=0, bottom=-1)


def _lattice(args: tuple[Atom, ...], top: int, bottom: int) -> Atom | None:
    """x with itself or with `top` is x, with `bottom` it is `bottom`; -1 is True on booleans."""
    x, y = args
    if x is y:
        return x
    if isinstance(x, Const):
        x, y = y, x
    if isinstance(y, Const):
        value = -int(y.value.real) if y.dtype is DType.bool else y.value
        return x if value == top else y if value == bottom else None
    return None


def _xor(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    x, y = args
    if x is y:
        return zero_of(x.type.dtype)
    if isinstance(x, Const):
        x, y = y, x
    if isinstance(y, Const):
        if not y.value:
            return x
        return Apply("not", (x,)) if y.value == (1 if y.dtype is DType.bool else -1) else None
    return None


def _not(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    made = defs.get(args[0]) if isinstance(args[0], Var) else None
    if not isinstance(made, Apply):
        return None
    if made.op == "not":
        return made.args[0]
    means = TABLE[made.op].comparison
    if means and (not means.order or is_integer(made.args[0])):  # NaN is not below nor above
        return Apply(means.negated, made.args)
    return None


def _shift(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    return args[0] if is_value(args[1], 0) else None


def _select(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    cond, x, y = args
    if isinstance(cond, Const):
        return x if cond.value else y
    if x == y:
        return x
    if negated := inner(cond, "not", defs):
        return Apply("select", (negated[0], y, x))
    if x.type.dtype is DType.bool:
        if isinstance(x, Const):
            if isinstance(y, Const):  # they differ
                return cond if x.value else Apply("not", (cond,))
            return Apply("or", (cond, y)) if x.value else None
        if isinstance(y, Const):
            return None if y.value else Apply("and", (cond, x))
    for k, arm in ((1, x), (2, y)):  # the same question asked twice
        if (again := inner(arm, "select", defs)) and again[0] is cond:
            return Apply("select", (cond, again[1], y) if k == 1 else (cond, x, again[2]))
    return _extremum(cond, x, y, defs)


def plain_guard(exp: Apply, defs: Defs) -> Apply:
    """0 in place of a product that is NaN though a factor is 0: 0 wherever that factor is. The product would be a zero
    otherwise, perhaps a negative one. Its slope in the factor is lost.
    """
    cond, zero, product = exp.args
    factors = inner(product, "mul", defs)
    tests = inner(cond, "and", defs)
    if not is_zero(zero, 1.0) or not factors or not tests:
        return exp
    for one, other in (tests, tests[::-1]):
        compared, asked = inner(one, "eq", defs), inner(other, "isnan", defs)
        if compared and asked and asked[0] is product:
            for factor, number in (compared, compared[::-1]):
                if factor in factors and is_zero(number, 1.0):
                    return Apply("select", (one, zero, product))
    return exp


def _extremum(cond: Atom, x: Atom, y: Atom, defs: Defs) -> Apply | None:
    """The greater or smaller one of what was compared. With >= and <= only of integers: a NaN would be the other one."""
    made = defs.get(cond) if isinstance(cond, Var) else None
    means = TABLE[made.op].comparison if isinstance(made, Apply) else None
    if not isinstance(made, Apply) or not means or not means.order or (means.reflexive and not is_integer(x)):
        return None
    if (x, y) not in (made.args, made.args[::-1]):
        return None
    greatest = (means.order > 0) == ((x, y) == made.args)
    return Apply("max" if greatest else "min", (x, y) if means.reflexive else (y, x))


# -- conversions and parts

LOSSLESS = frozenset(
    (small, wide)
    for small in DType
    for wide in DType
    if small is not wide and np.can_cast(small.numpy, wide.numpy) and not (small.is_int and small.bytes == 8)
)  # NumPy casts 64-bit integers to floats that do not hold them all


def _convert(x: Atom, target: DType, defs: Defs) -> Atom | Apply | None:
    if isinstance(x, Const):
        return fold(Apply("convert", (x,)), target)
    if x.type.dtype is target:
        return x
    first = inner(x, "convert", defs)
    if not first or (first[0].type.dtype, x.type.dtype) not in LOSSLESS:
        return None
    source = first[0].type.dtype
    if source is target:
        return first[0]
    if not x.type.dtype.is_int and source.is_int and target.is_int and (source, target) not in LOSSLESS:
        return None  # an integer wraps, a float that does not fit does not
    return Apply("convert", first)


def _identity(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    return args[0]


def _part(number: int) -> Rule:
    def rule(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
        parts = inner(args[0], "complex", defs)
        return parts[number] if parts else None

    return rule


def _complex(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    real, imag = inner(args[0], "real", defs), inner(args[1], "imag", defs)
    return real[0] if real and imag and real[0] is imag[0] else None


def _conj(args: tuple[Atom, ...], defs: Defs) -> Atom | Apply | None:
    conjugated = inner(args[0], "conj", defs)
    return conjugated[0] if conjugated else None


RULES: dict[str, Rule] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "quotient": _div, "floordiv": _floordiv, "mod": _mod, "pow": _pow, "ipow": _pow,
    "neg": _neg, "abs": _even("abs"), "square": _even("square"),
    **{name: _idempotent for name, row in TABLE.items() if row.extremum},
    **{name: _compare(name, row.comparison) for name, row in TABLE.items() if row.comparison},
    "and": _and, "or": _or, "xor": _xor, "not": _not, "shl": _shift, "shr": _shift, "select": _select,
    "identity": _identity, "real": _part(0), "imag": _part(1), "complex": _complex, "conj": _conj,
}  # fmt: skip
