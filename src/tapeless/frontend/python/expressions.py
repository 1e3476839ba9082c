"""Expressions: names, constants, operators, conditionals, attributes, subscripts, calls.

Takes an `ast` expression, gives a value, emitting Core for what is not known at compile time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tapeless.frontend.data import atoms, scalars
from tapeless.frontend.data.arguments import array, settled
from tapeless.frontend.data.arrays import as_numeric, elementwise, note_point
from tapeless.frontend.data.classes import special
from tapeless.frontend.data.constants import ConstantSet, constant
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import of_unknown_length
from tapeless.frontend.data.python_operators import BINARY, NUMERIC, binary_values, compare_values, static_key, truth_of
from tapeless.frontend.numpy.indexed_objects import rule_of
from tapeless.frontend.python.attributes import attribute
from tapeless.frontend.python.choices import conditional, truth
from tapeless.frontend.python.dict_methods import pairs_of
from tapeless.frontend.python.growth import item, rows
from tapeless.frontend.python.list_items import number_at
from tapeless.frontend.python.list_kinds import as_array, joined
from tapeless.frontend.python.made_lists import joined as joined_lists
from tapeless.frontend.python.made_lists import repeated, spread, table_of
from tapeless.frontend.python.references import current, evaluated, is_certain, new_dict, new_list
from tapeless.frontend.python.rules import elements, evaluate, expression, simple, spread_items
from tapeless.frontend.python.texts import joined_texts
from tapeless.frontend.source.liveness import assigned
from tapeless.frontend.source.marks import peek
from tapeless.frontend.source.plain_objects import UNARY
from tapeless.frontend.source.sources import nodes
from tapeless.frontend.state.context import Context, type_text, whole_number
from tapeless.frontend.state.parts import is_deque
from tapeless.frontend.state.refusals import refuse_index
from tapeless.frontend.state.surroundings import lookup
from tapeless.frontend.state.values import (
    Array,
    Conflict,
    Grown,
    MaybeUndefined,
    Never,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    Static,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.types import Const, DType


@expression(ast.Constant)
def _constant(ctx: Context, node: ast.Constant) -> Value:
    return _constant_of(ctx, node.value)


@simple(ast.Constant)
def _number(ctx: Context, node: ast.Constant) -> Value | None:
    value = node.value
    return weak(value) if type(value) is float or (type(value) is int and value < 2**63) else None


@simple(ast.Name)
def _variable(ctx: Context, node: ast.Name) -> Value | None:
    value = ctx.state.names.get((ctx.frame, node.id))
    return value if isinstance(value, NUMERIC) else None


@expression(ast.Name)
def _name(ctx: Context, node: ast.Name) -> Value:
    value = lookup(ctx, node.id)
    lazy = isinstance(value, (Sequence_, Grown)) and value.ref is not None and value.ref.lazy
    if lazy or isinstance(value, Zipped):
        _use_up(ctx, node)
    return value


def _use_up(ctx: Context, node: ast.Name) -> None:
    """An iterator can be gone over once; Python has nothing left in it the second time."""
    number, name = ctx.frame, node.id
    while (number, name) not in ctx.state.names:
        number = ctx.frames[number].outer
    reason = f"'{name}' is an iterator, which can be gone over once"
    hint = "make a list of it: list(...)."
    code = ctx.frames[number].code
    loops = [n for n in nodes(code) if isinstance(n, (ast.For, ast.While))] if isinstance(code, ast.AST) else []
    if any(node in nodes(s) and name not in assigned(loop.body) for loop in loops for s in loop.body):
        ctx.fail("TP104", f"{reason}, and not in each iteration", hint)
    ctx.state.names[number, name] = Conflict(reason, hint)


@expression(ast.NamedExpr)
def _named(ctx: Context, node: ast.NamedExpr) -> Value:
    result = evaluate(ctx, node.value)
    ctx.bind(node.target.id, result)
    return result


@expression(ast.Attribute)
def _attribute(ctx: Context, node: ast.Attribute) -> Value:
    return attribute(ctx, evaluate(ctx, node.value), node.attr)


def _constant_of(ctx: Context, value: Any) -> Value:
    if isinstance(value, (bool, float, complex)):
        return weak(value)
    if isinstance(value, int):
        return whole_number(ctx, value, f"the integer {value}")
    return Static(value)


# -- operators


@expression(ast.BinOp)
def _binary(ctx: Context, node: ast.BinOp) -> Value:
    return _operator(ctx, node)[0]


def _operator(ctx: Context, node: ast.BinOp) -> tuple[Value, bool]:
    """Its value, and whether that is a new one: Note [Terms of an expression] of `maps`."""
    since = len(ctx.changed)
    (left, left_is_new), (right, right_is_new) = _operand(ctx, node.left), _operand(ctx, node.right)
    a, b = current(ctx, [left, right], since)
    _refuse_deques(ctx, a, b)
    name = type(node.op).__name__
    if isinstance(a, NUMERIC) and isinstance(b, NUMERIC):
        return binary_values(ctx, name, a, b, (left_is_new, right_is_new)), name not in BINARY
    return _of_others(ctx, node.op, a, b), False


def _refuse_deques(ctx: Context, *values: Value) -> None:
    """What is done with them in another way than with lists."""
    if any(map(is_deque, values)):
        ctx.fail("TP104", "this is not done with a deque in compiled code", "make a list of it: list(...).")


def _of_others(ctx: Context, op: ast.operator, a: Value, b: Value) -> Value:
    """An operator on values of which one at least is no number and no array."""
    if isinstance(a, Never) or isinstance(b, Never):
        return Never(None)
    if isinstance(op, ast.Add) and (joined := joined_texts(a, b)) is not None:
        return joined
    if isinstance(a, Array) and isinstance(b, Grown):
        b = rows(ctx, b)
    elif isinstance(a, Grown) and isinstance(b, Array):
        a = rows(ctx, a)
    if isinstance(op, ast.BitOr) and _is_dict(a) and _is_dict(b):
        return new_dict(ctx, {**pairs_of(ctx, "'|'", a), **pairs_of(ctx, "'|'", b)})
    if isinstance(op, ast.Mult) and (again := repeated(ctx, a, b)) is not None:
        return again
    lists = [v for v in (a, b) if isinstance(v, Grown) or (isinstance(v, Sequence_) and v.kind == "list")]
    if isinstance(op, ast.Add) and len(lists) == 2 and any(isinstance(v, Grown) for v in lists):
        if (both := joined_lists(ctx, lists)) is not None:
            return both
    made = binary_values(ctx, type(op).__name__, a, b)
    plain = all(not isinstance(v, Sequence_) or v.cls is None for v in (a, b))
    if isinstance(made, Sequence_) and made.kind == "list" and made.ref is None and plain:
        return new_list(ctx, made.items)
    return made


def _operand(ctx: Context, node: ast.expr) -> tuple[Value, bool]:
    if not isinstance(node, ast.BinOp):
        return evaluate(ctx, node), False
    with ctx.at(node):
        return _operator(ctx, node)


def _is_dict(value: Value) -> bool:
    return isinstance(value, Sequence_) and value.kind == "dict"


@expression(ast.UnaryOp)
def _unary(ctx: Context, node: ast.UnaryOp) -> Value:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Scalar(atoms.logical_not(ctx, truth(ctx, operand)), True)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
            return _constant_of(ctx, -value)  # the lowest integer has no positive counterpart
    name = type(node.op).__name__
    given = evaluate(ctx, node.operand)
    if name == "Invert" and isinstance(given, Static) and peek(given.value, "__tapeless_reversible__"):
        return attribute(ctx, given, "inverse")
    if isinstance(given, Sequence_):
        if (defined := special(ctx, UNARY[name], given)) is not None:
            return defined
        ctx.fail("TP104", f"Python has no unary operator for {type_text(given)}", "make an array of it: np.array.")
    number = as_numeric(ctx, given, f"operand of unary {name}")
    return elementwise(ctx, lambda s: scalars.unary_op(ctx, name, s), [number])


@expression(ast.Compare)
def _compare(ctx: Context, node: ast.Compare) -> Value:
    ops, rights = node.ops, node.comparators
    if (known := _is_none(ctx, node)) is not None:
        return known
    a, b = evaluated(ctx, lambda: [evaluate(ctx, node.left), evaluate(ctx, rights[0])])
    if len(ops) == 1:
        return compared_values(ctx, ops[0], a, b)
    first = compared_values(ctx, ops[0], a, b)
    if not isinstance(first, Scalar):
        ctx.fail("TP120", "chained comparisons of arrays are ambiguous", "combine two comparisons with &.")
    cond = truth_of(ctx, first)

    def rest() -> Value:
        return _chain(ctx, b, ops[1:], rights[1:])

    return conditional(ctx, cond, rest, lambda: weak(False))


def _is_none(ctx: Context, node: ast.Compare) -> Value | None:
    """`x is None`, of a name that may be None when it runs."""
    match node:
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
            value = ctx.state.names.get(ctx.key(name))
            if (
                isinstance(value, MaybeUndefined)
                and value.none
                and isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
            ):
                there = isinstance(op, (ast.IsNot, ast.NotEq))
                return Scalar(value.defined if there else atoms.logical_not(ctx, value.defined), True)
    return None


def compared_values(ctx: Context, op: ast.cmpop, a: Value, b: Value) -> Value:
    """What compares by identity, or with constants, and then numbers."""
    if isinstance(a, Never) or isinstance(b, Never):
        return Never(None)
    if not isinstance(op, (ast.Is, ast.IsNot)):
        _refuse_deques(ctx, a, b if not isinstance(op, (ast.In, ast.NotIn)) else a)
    match op, a, b:
        case ast.Is() | ast.IsNot(), Sequence_() | Grown(), Sequence_() | Grown() if is_certain(a) and is_certain(b):
            return weak((a.ref is b.ref) == isinstance(op, ast.Is))
        case ast.Is() | ast.IsNot(), Array(cell=x), Array(cell=y) if x.item or y.item:
            reason = "'is' does not know which array an item of a list is that has grown in a loop"
            ctx.fail("TP104", reason, "compare what is in them: np.array_equal.")
        case ast.In() | ast.NotIn(), _, Static(value=frozenset() as known):
            b = Sequence_(tuple(constant(k) for k in sorted(known, key=repr)))
        case ast.In() | ast.NotIn(), Static(value=str() as part), Static(value=str() as whole):
            return weak((part in whole) == isinstance(op, ast.In))
        case _, Static(value=str() as left), Static(value=str() as right) if type(op) in ORDERS:
            return weak(ORDERS[type(op)](left, right))
    return compare_values(ctx, op, a, b)


ORDERS: dict[type[ast.cmpop], Callable[[str, str], bool]] = {
    ast.Lt: str.__lt__, ast.LtE: str.__le__, ast.Gt: str.__gt__, ast.GtE: str.__ge__,
}  # fmt: skip


def _chain(ctx: Context, a: Value, ops: list[ast.cmpop], rights: list[ast.expr]) -> Value:
    a, b = evaluated(ctx, lambda: [a, evaluate(ctx, rights[0])])
    first = compared_values(ctx, ops[0], a, b)
    if len(ops) == 1:
        return first
    cond = truth_of(ctx, first)
    return conditional(ctx, cond, lambda: _chain(ctx, b, ops[1:], rights[1:]), lambda: weak(False))


# -- containers


@expression(ast.Tuple)
def _tuple(ctx: Context, node: ast.Tuple) -> Value:
    return Sequence_(tuple(evaluated(ctx, lambda: list(elements(ctx, node.elts)))))


@expression(ast.List)
def _list(ctx: Context, node: ast.List) -> Value:
    stars = [isinstance(n, ast.Starred) for n in node.elts]
    if not any(stars):
        return new_list(ctx, evaluated(ctx, lambda: list(elements(ctx, node.elts))))
    bare = [n.value if isinstance(n, ast.Starred) else n for n in node.elts]
    values = evaluated(ctx, lambda: list(elements(ctx, bare)))
    pairs = list(zip(values, stars, strict=True))
    if any(star and of_unknown_length(ctx, v) for v, star in pairs) and (made := spread(ctx, pairs)) is not None:
        return made
    return new_list(ctx, [item for v, star in pairs for item in (spread_items(ctx, v) if star else [v])])


@expression(ast.Slice)
def _slice(ctx: Context, node: ast.Slice) -> Value:
    return SliceValue(*(None if p is None else evaluate(ctx, p) for p in (node.lower, node.upper, node.step)))


@expression(ast.Subscript)
def _subscript(ctx: Context, node: ast.Subscript) -> Value:
    base, index = evaluated(ctx, lambda: [evaluate(ctx, node.value), evaluate(ctx, node.slice)])
    if isinstance(index, SliceValue):
        _refuse_deques(ctx, base)
    return Never(None) if isinstance(base, Never) else subscript(ctx, base, index)


def subscript(ctx: Context, base: Value, index: Value) -> Value:
    match base:
        case Array():
            found = get_item(ctx, base, index)
            items = index.items if isinstance(index, Sequence_) else (index,)
            if isinstance(found, Scalar) and any(isinstance(i, Static) and i.value is Ellipsis for i in items):
                note_point(ctx, base)
            return found
        case Sequence_(kind="dict"):
            key = static_key(ctx, index)
            if key not in base.keys:
                ctx.fail("TP112", f"the dict has no key {key!r}")
            return base.items[base.keys.index(key)]
        case Sequence_(items=items, kind=kind):
            if (defined := special(ctx, "__getitem__", base, index)) is not None:
                return defined
            if kind == "dataclass":
                ctx.fail("TP104", f"{type_text(base)} cannot be indexed", "define __getitem__ in its class.")
            return _tuple_item(ctx, base, items, index)
        case Grown():
            return item(ctx, base, index)
        case Scalar(weak=False):  # an array without axes
            return settled(ctx, get_item(ctx, array(ctx, "index", base), index))
        case RangeValue():
            ctx.fail("TP101", "range objects cannot be indexed", "compute start + i * step.")
        case Static(value=known) if (rule := rule_of(known)) is not None:
            return rule(ctx, index)
        case _:
            refuse_index(ctx, base)


@expression(ast.Dict)
def _dict(ctx: Context, whole: ast.Dict) -> Value:
    """Of equal keys the last one counts, at the place of the first."""
    items: dict[Any, Value] = {}
    since = len(ctx.changed)
    for key, node in zip(whole.keys, whole.values, strict=True):
        name = None if key is None else static_key(ctx, evaluate(ctx, key))
        value = evaluate(ctx, node)
        if key is not None:
            items[name] = value
        elif isinstance(value, Sequence_) and value.kind == "dict":
            items |= zip(value.keys, value.items, strict=True)
        else:
            ctx.fail("TP104", f"'**' takes a dict, not {type_text(value)}")
    return new_dict(ctx, dict(zip(items, current(ctx, list(items.values()), since), strict=True)))


@expression(ast.Set)
def _set(ctx: Context, node: ast.Set) -> Value:
    items = list(elements(ctx, node.elts))
    if not all(isinstance(v, Static) or (isinstance(v, Scalar) and v.static) for v in items):
        ctx.fail("TP101", "a set holds what is known at compile time", "use an array or a tuple.")
    return Static(ConstantSet(static_key(ctx, v) for v in items))


def _tuple_item(ctx: Context, base: Sequence_, items: tuple[Value, ...], index: Value) -> Value:
    match index:
        case Scalar(atom=Const(value=int() as k)):
            if not -len(items) <= k < len(items):
                if ctx.loops and base.kind == "list":  # it may have got longer by then
                    ctx.check(Const(False, DType.bool), "IndexError", "list index out of range")
                    return Never(None)
                ctx.fail("TP203", f"index {k} is out of range for a {base.kind} of {len(items)}")
            return items[k]
        case SliceValue(start=start, stop=stop, step=step):
            parts: list[int | None] = []
            for p in (start, stop, step):
                if p is None or (isinstance(p, Static) and p.value is None):
                    parts.append(None)
                elif isinstance(p, Scalar) and isinstance(p.atom, Const):
                    parts.append(int(p.atom.value.real))
                elif base.kind == "list" and (kind := joined(ctx, base)) is not None:
                    return item(ctx, as_array(ctx, base, kind), index)
                else:
                    ctx.fail("TP104", f"slices of a {base.kind} need constant bounds", "use an array.")
            part = items[slice(*parts)]
            return new_list(ctx, part) if base.kind == "list" else Sequence_(part, base.kind)
        case Scalar():
            if (found := number_at(ctx, items, index)) is not None:
                return found
            if not items and not isinstance(index.atom, Const):
                ctx.check(Const(False, DType.bool), "IndexError", f"{base.kind} index out of range")
                return Never(None)
            if (table := table_of(ctx, base)) is not None:
                return item(ctx, table, index)
            ctx.fail(
                "TP104",
                f"the index of {type_text(base)} must be known at compile time, unless it has numbers only",
                "make an array of it: np.array(...)[i]."
                if all(isinstance(v, Array) for v in items)
                else "choose an item by if and elif.",
            )
        case _:
            ctx.fail("TP104", f"a {base.kind} is indexed by integers and slices, not by {type_text(index)}")
