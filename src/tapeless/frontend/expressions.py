"""Expressions: names, constants, operators, conditionals, attributes, subscripts, calls.

Takes an `ast` expression, gives a value, emitting Core for what is not known at compile time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tapeless.frontend import atoms, scalars
from tapeless.frontend.arrays import as_numeric, elementwise
from tapeless.frontend.comparisons import compare_others
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.copies import counted, refuse_beyond
from tapeless.frontend.indexing import get_item
from tapeless.frontend.merge import Arm, Join
from tapeless.frontend.refusals import refuse_index
from tapeless.frontend.values import (
    Array,
    Conflict,
    RangeValue,
    Scalar,
    Sequence_,
    SliceValue,
    State,
    Static,
    Value,
    weak,
)
from tapeless.ir.core import Body
from tapeless.ir.types import Atom, Const, DType


def evaluate(ctx: Context, node: ast.expr) -> Value:
    with ctx.at(node):
        return _evaluate(ctx, node)


def _evaluate(ctx: Context, node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=value):
            return _constant(ctx, value)
        case ast.Name(id=name):
            from tapeless.frontend.names import lookup

            return lookup(ctx, name)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = evaluate(ctx, left), evaluate(ctx, right)
            return binary_values(ctx, type(op).__name__, a, b)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Scalar(atoms.logical_not(ctx, truth_of(ctx, evaluate(ctx, operand))), True)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
            return _constant(ctx, -value)  # the lowest integer has no positive counterpart
        case ast.UnaryOp(op=op, operand=operand):
            name = type(op).__name__
            given = evaluate(ctx, operand)
            if isinstance(given, Sequence_):
                ctx.fail(
                    "TP104", f"Python has no unary operator for {type_text(given)}", "make an array of it: np.array."
                )
            number = as_numeric(ctx, given, f"operand of unary {name}")
            return elementwise(ctx, lambda s: scalars.unary_op(ctx, name, s), [number])
        case ast.BoolOp(op=op, values=values):
            return _bool_op(ctx, isinstance(op, ast.And), values)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            return _compare(ctx, left, ops, rights)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            cond = truth_of(ctx, evaluate(ctx, test))
            return conditional(ctx, cond, lambda: evaluate(ctx, body), lambda: evaluate(ctx, orelse))
        case ast.Tuple(elts=elts):
            return Sequence_(tuple(elements(ctx, elts)))
        case ast.List(elts=elts):
            return Sequence_(tuple(elements(ctx, elts)), "list")
        case ast.Dict(keys=keys, values=values):
            return _dict(ctx, keys, values)
        case ast.Subscript(value=base, slice=index):
            return subscript(ctx, evaluate(ctx, base), evaluate(ctx, index))
        case ast.Slice(lower=lower, upper=upper, step=step):
            parts = [None if p is None else evaluate(ctx, p) for p in (lower, upper, step)]
            return SliceValue(*parts)
        case ast.Attribute(value=base, attr=attr):
            from tapeless.frontend.names import attribute

            return attribute(ctx, evaluate(ctx, base), attr)
        case ast.Call():
            from tapeless.frontend.calls import call

            return call(ctx, node)
        case ast.Lambda():
            from tapeless.frontend.calls import nested_function

            return nested_function(ctx, node)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            result = evaluate(ctx, value)
            ctx.bind(name, result)
            return result
        case ast.ListComp() | ast.GeneratorExp():
            return _comprehension(ctx, node)
        case ast.JoinedStr():
            ctx.fail("TP101", "f-strings cannot be compiled", "use a constant text, or print the values one by one.")
        case _:
            ctx.fail("TP101", "this expression is not part of the language")


def elements(ctx: Context, nodes: Iterable[ast.expr]) -> Iterator[Value]:
    """Of a tuple, a list or a call, with those that `*` spreads."""
    for n in nodes:
        if not isinstance(n, ast.Starred):
            yield evaluate(ctx, n)
            continue
        with ctx.at(n):
            spread = evaluate(ctx, n.value)
            if not isinstance(spread, Sequence_) or spread.kind not in ("tuple", "list", "namedtuple"):
                ctx.fail("TP101", "'*' needs a tuple or a list of known length", "name each element.")
        yield from spread.items


def _constant(ctx: Context, value: Any) -> Value:
    if isinstance(value, bool | float | complex):
        return weak(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            ctx.fail("TP109", f"the integer {value} does not fit into 64 bits", "write it as a float.")
        return weak(value)
    return Static(value)


def static_key(ctx: Context, value: Value) -> Any:
    match value:
        case Static(value=key):
            return key
        case Scalar(atom=Const(value=key)):
            return key
        case _:
            ctx.fail("TP104", "a key must be known at compile time", "use constant keys.")


# -- operators


def binary_values(ctx: Context, name: str, a: Value, b: Value) -> Value:
    """A Python binary operator on any two values."""
    if name == "MatMult":
        from tapeless.frontend.linalg import matmul

        return matmul(ctx, a, b)
    if (
        isinstance(a, Sequence_)
        and isinstance(b, Sequence_)
        and name == "Add"
        and a.kind == b.kind in ("tuple", "list")
    ):
        return Sequence_((*a.items, *b.items), a.kind)
    if isinstance(a, Sequence_) and a.kind in ("tuple", "list") and name == "Mult" and isinstance(b, Scalar):
        if isinstance(b.atom, Const) and isinstance(b.atom.value, int):
            return Sequence_(a.items * b.atom.value, a.kind)
        ctx.fail("TP104", "the length of a list must be known at compile time", "use np.full or np.zeros.")
    if isinstance(b, Sequence_) and name == "Mult" and isinstance(a, Scalar):
        return binary_values(ctx, name, b, a)
    symbol = scalars.SYMBOLS[name]
    if isinstance(a, Static) and isinstance(b, Static) and isinstance(a.value, str) and isinstance(b.value, str):
        if name == "Add":
            return Static(a.value + b.value)
    for v in (a, b):
        if not isinstance(v, Scalar | Array | Sequence_) or (isinstance(v, Sequence_) and not _is_numpy(a, b)):
            ctx.fail("TP104", f"unsupported operand types for {symbol}: {type_text(a)} and {type_text(b)}")
    if isinstance(a, Array) and isinstance(b, Array) and a.type.dtype is b.type.dtype is DType.bool:
        name = {"Add": "BitOr", "Mult": "BitAnd"}.get(name, name)
        if name == "Sub":
            ctx.fail("TP104", "NumPy does not subtract bool arrays", "use ^ or np.logical_xor.")
    if name == "Pow" and isinstance(a, Array) and a.type.dtype.is_complex and b == weak(0.5):
        return elementwise(
            ctx, lambda x: Scalar(atoms.apply(ctx, "sqrt", x.atom)), [a]
        )  # not np.power(a, 0.5), nor numbers
    b = _as_python_sees_it(a, b)
    return elementwise(ctx, lambda x, y: scalars.binary(ctx, name, x, y), [a, b], f"operands of {symbol}")


def _is_numpy(*values: Value) -> bool:
    """Whether one of the operands makes arrays of lists and tuples beside it."""
    return any(isinstance(v, Array) or (isinstance(v, Scalar) and not v.weak) for v in values)


def _as_python_sees_it(a: Value, b: Value) -> Value:
    """The right operand: a complex of Python takes a np.float64 for the float that it is."""
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.weak and a.dtype.is_complex and b.dtype is DType.f64:
        return Scalar(b.atom, True)
    return b


def _compare(ctx: Context, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> Value:
    a = evaluate(ctx, left)
    if len(ops) == 1:
        return compare_values(ctx, ops[0], a, evaluate(ctx, rights[0]))
    b = evaluate(ctx, rights[0])
    first = compare_values(ctx, ops[0], a, b)
    if not isinstance(first, Scalar):
        ctx.fail("TP120", "chained comparisons of arrays are ambiguous", "combine two comparisons with &.")
    cond = truth_of(ctx, first)

    def rest() -> Value:
        return _chain(ctx, b, ops[1:], rights[1:])

    return conditional(ctx, cond, rest, lambda: weak(False))


def _chain(ctx: Context, a: Value, ops: list[ast.cmpop], rights: list[ast.expr]) -> Value:
    b = evaluate(ctx, rights[0])
    first = compare_values(ctx, ops[0], a, b)
    if len(ops) == 1:
        return first
    cond = truth_of(ctx, first)
    return conditional(ctx, cond, lambda: _chain(ctx, b, ops[1:], rights[1:]), lambda: weak(False))


def compare_values(ctx: Context, op: ast.cmpop, a: Value, b: Value) -> Value:
    name = type(op).__name__
    if name in ("Is", "IsNot"):
        same = _is(ctx, a, b)
        return weak(same if name == "Is" else not same)
    if name in ("In", "NotIn"):
        return _contains(ctx, a, b, name == "NotIn")
    if not (isinstance(a, Scalar | Array) and isinstance(b, Scalar | Array)):
        if not _is_numpy(a, b):
            return compare_others(ctx, name, a, b, lambda op, x, y: truth_of(ctx, compare_values(ctx, op, x, y)))
        a, b = as_numeric(ctx, a, "comparison"), as_numeric(ctx, b, "comparison")
    b = _as_python_sees_it(a, b)
    return elementwise(ctx, lambda x, y: scalars.compare(ctx, name, x, y), [a, b], "operands of a comparison")


def _is(ctx: Context, a: Value, b: Value) -> bool:
    if isinstance(a, Static) and isinstance(b, Static):
        return a.value is b.value
    if (isinstance(a, Static) and a.value is None) or (isinstance(b, Static) and b.value is None):
        return False
    if isinstance(a, Array) and isinstance(b, Array):
        return a.cell is b.cell and a.view == b.view
    ctx.fail("TP104", "'is' only compares with None or between arrays here", "use == to compare values.")


def _contains(ctx: Context, a: Value, b: Value, negate: bool) -> Value:
    if not (isinstance(b, Sequence_)):
        ctx.fail("TP104", f"'in' is not supported on {type_text(b)}", "use np.any(a == x).")
    if b.kind == "dict":
        return weak((static_key(ctx, a) in b.keys) != negate)
    found: Atom = Const(False, DType.bool)
    for item in b.items:
        equal = truth_of(ctx, compare_values(ctx, ast.Eq(), a, item))
        found = (
            atoms.apply(ctx, "or", found, equal) if not isinstance(found, Const) else (found if found.value else equal)
        )
    return Scalar(atoms.logical_not(ctx, found) if negate else found, True)


def _bool_op(ctx: Context, is_and: bool, values: list[ast.expr]) -> Value:
    """`and` and `or` evaluate the right side only when the left one does not decide."""
    first = evaluate(ctx, values[0])
    for node in values[1:]:
        cond = truth_of(ctx, first)
        if isinstance(cond, Const):
            if bool(cond.value) != is_and:
                return first
            first = evaluate(ctx, node)
            continue
        left = first

        def right(node: ast.expr = node) -> Value:
            return evaluate(ctx, node)

        def keep(left: Value = left) -> Value:
            return left

        first = conditional(ctx, cond, right, keep) if is_and else conditional(ctx, cond, keep, right)
    return first


def truth_of(ctx: Context, value: Value) -> Atom:
    match value:
        case Scalar():
            return scalars.truth(ctx, value)
        case Array():
            ctx.fail("TP120", "the truth value of an array is ambiguous", "use np.any(...) or np.all(...).")
        case Sequence_(items=items):
            return Const(bool(items), DType.bool)
        case Static(value=inner):
            return Const(bool(inner), DType.bool)
        case _:
            ctx.fail("TP104", f"{type_text(value)} has no truth value here")


def conditional(ctx: Context, cond: Atom, then: Any, orelse: Any) -> Value:
    """`a if c else b`: only the chosen side is evaluated."""
    if isinstance(cond, Const):
        result: Value = then() if cond.value else orelse()
        return result
    before: State = ctx.state
    arms: list[Arm] = []
    key = ctx.key(f"<value{ctx.number()}>")
    for make in (then, orelse):
        ctx.state = before.copy()
        with ctx.b.region() as stms:
            ctx.state.names[key] = make()
        arms.append(Arm(stms, ctx.state))
    ctx.state = before
    join = Join(ctx, before, (arms[0], arms[1]))
    join.run()
    ctx.b.if_(
        cond,
        Body(tuple(arms[0].stms), tuple(arms[0].results)),
        Body(tuple(arms[1].stms), tuple(arms[1].results)),
        join.vars,
    )
    value = ctx.state.names.pop(key)
    if isinstance(value, Conflict):
        ctx.fail("TP104", value.reason, value.hint)
    return value


# -- containers


def subscript(ctx: Context, base: Value, index: Value) -> Value:
    match base:
        case Array():
            return get_item(ctx, base, index)
        case Sequence_(kind="dict"):
            key = static_key(ctx, index)
            if key not in base.keys:
                ctx.fail("TP112", f"the dict has no key {key!r}")
            return base.items[base.keys.index(key)]
        case Sequence_(items=items):
            return _tuple_item(ctx, base, items, index)
        case Scalar(weak=False):  # an array without axes
            from tapeless.frontend.registry import array, settled

            return settled(ctx, get_item(ctx, array(ctx, "index", base), index))
        case RangeValue():
            ctx.fail("TP101", "range objects cannot be indexed", "compute start + i * step.")
        case _:
            refuse_index(ctx, base)


def _dict(ctx: Context, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> Value:
    """Of equal keys the last one counts, at the place of the first."""
    items: dict[Any, Value] = {}
    for key, node in zip(keys, values, strict=True):
        name = None if key is None else static_key(ctx, evaluate(ctx, key))
        value = evaluate(ctx, node)
        if key is not None:
            items[name] = value
        elif isinstance(value, Sequence_) and value.kind == "dict":
            items |= zip(value.keys, value.items, strict=True)
        else:
            ctx.fail("TP104", f"'**' takes a dict, not {type_text(value)}")
    return Sequence_(tuple(items.values()), "dict", tuple(items))


def _tuple_item(ctx: Context, base: Sequence_, items: tuple[Value, ...], index: Value) -> Value:
    match index:
        case Scalar(atom=Const(value=int() as k)):
            if not -len(items) <= k < len(items):
                ctx.fail("TP203", f"index {k} is out of range for a {base.kind} of {len(items)}")
            return items[k]
        case SliceValue(start=start, stop=stop, step=step):
            parts: list[int | None] = []
            for p in (start, stop, step):
                if p is None or (isinstance(p, Static) and p.value is None):
                    parts.append(None)
                elif isinstance(p, Scalar) and isinstance(p.atom, Const):
                    parts.append(int(p.atom.value.real))
                else:
                    ctx.fail("TP104", f"slices of a {base.kind} need constant bounds", "use an array.")
            return Sequence_(items[slice(*parts)], base.kind)
        case Scalar():
            if items and all(isinstance(i, Scalar) for i in items):
                made = as_numeric(ctx, Sequence_(items, "list"), "index")
                assert isinstance(made, Array)
                item = get_item(ctx, made, index)
                numbers = isinstance(item, Scalar) and all(isinstance(i, Scalar) and i.weak for i in items)
                return Scalar(item.atom, True) if isinstance(item, Scalar) and numbers else item
            ctx.fail(
                "TP104",
                f"the index of {type_text(base)} must be known at compile time, unless it has numbers only",
                "make an array of it: np.array(...)[i].",
            )
        case _:
            ctx.fail("TP104", f"a {base.kind} is indexed by integers and slices, not by {type_text(index)}")


def _comprehension(ctx: Context, node: ast.ListComp | ast.GeneratorExp) -> Value:
    """Over something of known length: one copy of the element each."""
    from tapeless.frontend.assignment import assign

    if len(node.generators) != 1 or node.generators[0].ifs or node.generators[0].is_async:
        ctx.fail("TP101", "comprehensions with conditions or several loops cannot be compiled", "write a loop.")
    generator = node.generators[0]
    source = evaluate(ctx, generator.iter)
    items: list[Value]
    match source:
        case Sequence_(items=known):
            items = list(known)
        case RangeValue() if all(isinstance(x.atom, Const) for x in (source.start, source.stop, source.step)):
            bounds = [
                int(x.atom.value.real) for x in (source.start, source.stop, source.step) if isinstance(x.atom, Const)
            ]
            refuse_beyond(ctx, "this comprehension", len(range(*bounds)), 0, 1)
            items = [weak(k) for k in range(*bounds)]
        case _:
            ctx.fail(
                "TP101", "comprehensions need a length known at compile time", "fill an array in a loop, or use tp.map."
            )
    names = [n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)]
    saved = {n: ctx.state.names.get(ctx.key(n)) for n in names}
    results: list[Value] = []
    for k, item in enumerate(items):
        before = ctx.b.made
        with counted(ctx, k > 0):
            assign(ctx, generator.target, item)
            results.append(evaluate(ctx, node.elt))
        refuse_beyond(ctx, "this comprehension", len(items), k + 1, ctx.b.made - before)
    for n, old in saved.items():
        if old is None:
            ctx.state.names.pop(ctx.key(n), None)
        else:
            ctx.state.names[ctx.key(n)] = old
    return Sequence_(tuple(results), "list")
