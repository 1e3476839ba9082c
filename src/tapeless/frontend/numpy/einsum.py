"""np.einsum: sums of products over named axes.

Takes arrays with a letter for each axis, '...' standing for the others; gives a new array. Products of two operands
that sum over one letter are matrix products; anything else is a nest of maps over the letters that stay with a
reduction over the others inside.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import reduce

from tapeless.frontend.data.arguments import array, integer, known, text
from tapeless.frontend.data.arrays import cast, read, wrap
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.scalars import arithmetic
from tapeless.frontend.numpy.elementwise import common_dtype
from tapeless.frontend.numpy.library_calls import library, tested
from tapeless.frontend.numpy.reductions import operator
from tapeless.frontend.numpy.shapes import WHOLE
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.core import Sweep
from tapeless.ir.types import I64, Atom, Dim, DType, Type, Var, const

Operand = tuple[Var, list[str]]  # contents and letters

REST = "."  # stands for '...' in a term
LETTERS = string.ascii_uppercase + string.ascii_lowercase


@known("np.einsum")
def einsum(ctx: Context, subscripts: Value, *operands: Value, optimize: Value | None = None) -> Value:
    if isinstance(subscripts, Static):
        spec = text(ctx, "np.einsum: the subscripts", subscripts).replace(" ", "")
    else:
        spec, operands = _by_lists(ctx, (subscripts, *operands))
    left, arrow, right = spec.replace("...", REST).partition("->")
    terms = left.split(",")
    legal = all(c.isalpha() or c in f",{REST}" for c in left + right) and REST not in spec.replace("...", "")
    if not legal or any(term.count(REST) > 1 for term in (*terms, right)):
        ctx.fail("TP112", f"np.einsum: the subscripts '{spec}' cannot be compiled", "name every axis with a letter.")
    if len(terms) != len(operands):
        ctx.fail("TP112", f"np.einsum: '{spec}' has {len(terms)} operands, but {len(operands)} were given")
    values = [array(ctx, "np.einsum", operand) for operand in operands]
    others = [_others(ctx, term, v.type.rank) for term, v in zip(terms, values, strict=True)]
    most = max(others, key=len)
    if not arrow:  # letters that occur once, in alphabetical order
        right = "".join(sorted(c for c in set(left) - {",", REST} if left.count(c) == 1))
        right = REST * (REST in left) + right
    if most and REST not in right:
        ctx.fail("TP112", f"np.einsum: the result '{right}' must have the axes of '...'", "write '...' there, too.")
    if len(set(right)) != len(right) or not set(right) - {REST} <= set(left):
        ctx.fail("TP112", f"np.einsum: the result '{right}' must name axes of the operands, each once")
    named = [list(term.replace(REST, rest)) for term, rest in zip(terms, others, strict=True)]
    return contract(ctx, "np.einsum", _without_ones(ctx, values, named), list(right.replace(REST, most)))


def _by_lists(ctx: Context, args: Sequence[Value]) -> tuple[str, tuple[Value, ...]]:
    """Operands and lists of numbers in turn, a last list being that of the result: as a string and the operands."""
    pairs = len(args) // 2
    terms = [_letters(ctx, v) for v in args[1 : 2 * pairs : 2]]
    spec = ",".join(terms)
    return spec if len(args) == 2 * pairs else f"{spec}->{_letters(ctx, args[-1])}", tuple(args[0 : 2 * pairs : 2])


def _letters(ctx: Context, numbers: Value) -> str:
    found = []
    for item in numbers.items if isinstance(numbers, Sequence_) else (numbers,):
        if isinstance(item, Static) and item.value is Ellipsis:
            found.append("...")
            continue
        number = integer(ctx, "np.einsum: the number of an axis", item)
        if not 0 <= number < len(LETTERS):
            ctx.fail("TP112", f"np.einsum: axes are numbered from 0 to {len(LETTERS) - 1}, not {number}")
        found.append(LETTERS[number])
    return "".join(found)


def _others(ctx: Context, term: str, rank: int) -> str:
    """Names for the axes that '...' stands for: digits, so that the last axes of all operands have the same ones."""
    count = rank - len(term.replace(REST, ""))
    if count < 0 or (count and REST not in term):
        shown = term.replace(REST, "...")
        ctx.shape_error("TP202", f"np.einsum: '{shown}' names {rank - count} axes of an array that has {rank}")
    return "".join(str(k) for k in reversed(range(count)))


def _without_ones(ctx: Context, values: Sequence[Array], named: Sequence[list[str]]) -> list[tuple[Array, list[str]]]:
    """Leaves out axes of length 1 that are repeated, since other operands are longer there."""
    shapes = [ctx.dims(v.type.shape) for v in values]
    longer = {
        c for dims, letters in zip(shapes, named, strict=True) for c, d in zip(letters, dims, strict=True)
        if d != 1 and d not in ctx.short
    }  # fmt: skip
    found = []
    for value, dims, letters in zip(values, shapes, named, strict=True):
        away = [
            (d == 1 or d in ctx.short) and c in longer and letters.count(c) == 1
            for c, d in zip(letters, dims, strict=True)
        ]
        if any(away):
            first = Sequence_(tuple(weak(0) if a else WHOLE for a in away))
            value = array(ctx, "np.einsum", get_item(ctx, value, first))
            letters = [c for c, a in zip(letters, away, strict=True) if not a]
        found.append((value, letters))
    return found


def contract(ctx: Context, name: str, operands: Sequence[tuple[Array, list[str]]], result: list[str]) -> Value:
    """The sum over all letters that are not in `result`."""
    sizes: dict[str, Dim] = {}
    for value, letters in operands:
        for c, d in zip(letters, value.type.shape, strict=True):
            sizes[c] = same_size(ctx, sizes[c], d, f"{name}: axis '{c}'") if c in sizes else ctx.canon(d)
    kind = common_dtype([Scalar(const(0, v.type.dtype)) for v, _ in operands])
    if kind is DType.bool:
        ctx.fail("TP104", f"{name} of bools cannot be compiled", "convert them to numbers first.")
    parts = [_without_repeats(ctx, cast(ctx, read(ctx, v), kind), list(letters)) for v, letters in operands]
    atom = summed(ctx, parts, result)
    return wrap(ctx, atom) if isinstance(atom, Var) else Scalar(atom)


def summed(ctx: Context, parts: list[Operand], result: list[str]) -> Atom:
    """The same, for operands of one element type in which no letter occurs twice."""
    product = None if tested(ctx, parts[0][0].type.dtype) else _as_matmul(ctx, parts, result)
    if product is not None:
        return product
    sizes = {c: ctx.canon(d) for v, letters in parts for c, d in zip(letters, v.type.shape, strict=True)}
    order = [*result, *sorted(set(sizes) - set(result))]
    return _nest(ctx, [_in_order(ctx, p, order) for p in parts], order, len(result), sizes)


def _without_repeats(ctx: Context, var: Var, letters: list[str]) -> Operand:
    """The diagonal of axes that have the same letter."""
    for c in letters:
        places = [k for k, other in enumerate(letters) if other == c]
        if len(places) > 1:
            first, second = places[:2]
            front = [first, second, *(k for k in range(len(letters)) if k not in (first, second))]
            turned = ctx.b.transpose(var, front)

            def element(i: Var, turned: Var = turned) -> list[Atom]:
                row = ctx.b.row(turned, i)
                return [ctx.b.row(row, i)]

            line = ctx.b.map(ctx.canon(turned.type.shape[0]), [], element)[0]
            return _without_repeats(ctx, line, [c, *(letters[k] for k in front[2:])])
    return var, letters


def _in_order(ctx: Context, operand: Operand, order: list[str]) -> Operand:
    var, letters = operand
    wanted = [c for c in order if c in letters]
    if wanted == letters:
        return operand
    return ctx.b.transpose(var, [letters.index(c) for c in wanted]), wanted


def _as_matmul(ctx: Context, parts: list[Operand], result: list[str]) -> Var | None:
    """ij,jk->ik, its transposes, and the same with vectors."""
    if len(parts) != 2:
        return None
    (_, a), (_, b) = parts
    shared = [c for c in a if c in b]
    rows, columns = [c for c in a if c not in shared], [c for c in b if c not in shared]
    if len(shared) != 1 or shared[0] in result or len(rows) > 1 or len(columns) > 1:
        return None
    if sorted(result) != sorted(rows + columns):
        return None
    (left, _), (right, _) = _in_order(ctx, parts[0], rows + shared), _in_order(ctx, parts[1], shared + columns)
    product = library(ctx, "matmul", left, right)[0]
    return product if result == rows + columns else ctx.b.transpose(product, (1, 0))


def _nest(ctx: Context, parts: list[Operand], order: list[str], kept: int, sizes: dict[str, Dim]) -> Atom:
    """Maps over the first `kept` letters, then sums over the others."""
    if not order:
        factors: list[Atom] = [v for v, _ in parts]
        return reduce(lambda x, y: arithmetic(ctx, "mul", x, y), factors)
    letter = order[0]
    moving = [k for k, (_, letters) in enumerate(parts) if letters[:1] == [letter]]
    arrays = [parts[k][0] for k in moving]

    def step(_: Var, *rows: Var) -> list[Atom]:
        inner = list(parts)
        for k, row in zip(moving, rows, strict=True):
            inner[k] = (row, parts[k][1][1:])
        return [_nest(ctx, inner, order[1:], kept - 1, sizes)]

    if kept > 0:
        return ctx.b.map(sizes[letter], arrays, step)[0]
    lam = ctx.b.lam([Var("i", I64), *(Var(a.name, a.type.row()) for a in arrays)], step)
    (type,) = lam.result_types
    sweep = Sweep(sizes[letter], tuple(arrays), lam, (operator(ctx, "add", type.dtype),))
    return ctx.b.bind([Var("r", Type(type.dtype))], sweep)[0]
