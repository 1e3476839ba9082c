"""Comprehensions and generator expressions.

Over what is known at compile time, with conditions that are: one copy of the element each. Otherwise a loop that fills a list
whose length is known when it runs (Note [Lists that grow]).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tapeless.errors import CompileError
from tapeless.frontend.data import atoms
from tapeless.frontend.data.constants import ConstantSet
from tapeless.frontend.data.iterables import items_of, iteration
from tapeless.frontend.data.python_operators import static_key
from tapeless.frontend.python.assignment import assign
from tapeless.frontend.python.carried import known_sizes
from tapeless.frontend.python.choices import truth
from tapeless.frontend.python.growth import ANYWHERE, Growth, start
from tapeless.frontend.python.loop_statements import run_for
from tapeless.frontend.python.references import OVER, boxes_in, current, either, new_dict, new_list
from tapeless.frontend.python.rules import evaluate, expression
from tapeless.frontend.source.sources import by_node
from tapeless.frontend.state.code_copies import SHORT, attempt, counted, refuse_beyond
from tapeless.frontend.state.context import Context, new_box
from tapeless.frontend.state.values import (
    Array,
    Builtin,
    Grown,
    Planned,
    RangeValue,
    Scalar,
    Sequence_,
    Static,
    Value,
    Zipped,
    weak,
)
from tapeless.ir.types import Atom, Const, i64

Comprehension = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


class Unknown(Exception):
    """A length or a condition is known when it runs only."""


def known_items(ctx: Context, source: Value) -> list[Value]:
    """The items of what has a known length. Raises Unknown."""
    match source:
        case Planned(iterable=inner):
            return known_items(ctx, inner)
        case RangeValue():
            bounds = [x.atom for x in (source.start, source.stop, source.step)]
            if not all(isinstance(b, Const) for b in bounds):
                raise Unknown
            count = len(range(*(int(b.value.real) for b in bounds if isinstance(b, Const))))
            refuse_beyond(ctx, "this comprehension", count, 0, 1)
        case Zipped(parts=parts):
            for p in parts:
                known_items(ctx, p)
        case Array(type=t):
            size = ctx.canon(t.shape[0])
            if not isinstance(size, int) or size > SHORT:
                raise Unknown
        case Sequence_():
            pass
        case Static():
            pass
        case _:
            raise Unknown
    return items_of(ctx, "this comprehension", source)


def unrolled(ctx: Context, generators: Sequence[ast.comprehension], act: Callable[[], None]) -> None:
    """Runs `act` for each element. Raises Unknown."""
    if not generators:
        act()
        return
    generator, *others = generators
    source = evaluate(ctx, generator.iter)
    held = ctx.key(f"{OVER}{ctx.number()}>")
    ctx.state.names[held] = source
    items = known_items(ctx, source)
    for k, value in enumerate(items):
        before = ctx.b.made
        with counted(ctx, k > 0):
            assign(ctx, generator.target, value)
            if all(_holds(ctx, test) for test in generator.ifs):
                unrolled(ctx, others, act)
        refuse_beyond(ctx, "this comprehension", len(items), k + 1, ctx.b.made - before)
    del ctx.state.names[held]


def _holds(ctx: Context, test: ast.expr) -> bool:
    cond = truth(ctx, test)
    if not isinstance(cond, Const):
        raise Unknown
    return bool(cond.value)


@contextmanager
def _scoped(ctx: Context, node: Comprehension) -> Iterator[None]:
    """The names of a comprehension are its own."""
    names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    saved = {n: ctx.state.names.get(ctx.key(n)) for n in names}
    yield
    for n, old in saved.items():
        if old is None:
            ctx.state.names.pop(ctx.key(n), None)
        else:
            ctx.state.names[ctx.key(n)] = old


def elements_of(ctx: Context, node: Comprehension, make: Callable[[], Any]) -> list[Any] | None:
    """What `make` gives for each element, with the names of the comprehension bound; None where it takes a loop."""
    before, made, copied = ctx.state.copy(), ctx.b.made, ctx.copied
    cells = set(ctx.written_cells), set(ctx.read_cells), set(ctx.apart)
    found: list[Any] = []
    with ctx.part() as stms:
        try:
            with _scoped(ctx, node):
                unrolled(ctx, node.generators, lambda: found.append(make()))
        except Unknown:
            ctx.state, ctx.b.made, ctx.copied = before, made, copied
            ctx.written_cells, ctx.read_cells, ctx.apart = cells
            return None
    ctx.b.stms.extend(stms)
    return found


@expression(ast.GeneratorExp)
def _kept(ctx: Context, node: ast.GeneratorExp) -> Value:
    """A generator that is not used at once: in Python its elements are made later, of what there is then."""
    since = len(ctx.changed)
    found = elements_of(ctx, node, lambda: evaluate(ctx, node.elt))
    if found is None:
        ctx.fail(
            "TP101", "a generator of unknown length must be used at once, as the argument of a call", "use a list."
        )
    made = new_list(ctx, current(ctx, found, since))
    return replace(made, ref=replace(either(ctx, [new_box(ctx), *boxes_in(ctx.state)]), lazy=True))


@expression(ast.ListComp)
def list_of(ctx: Context, node: ast.ListComp | ast.GeneratorExp) -> Value:
    since = len(ctx.changed)
    found = elements_of(ctx, node, lambda: evaluate(ctx, node.elt))
    return _filled(ctx, node) if found is None else new_list(ctx, current(ctx, found, since))


@expression(ast.SetComp)
def _set(ctx: Context, node: ast.SetComp) -> Value:
    found = elements_of(ctx, node, lambda: evaluate(ctx, node.elt))
    if found is None or not all(isinstance(v, Static) or (isinstance(v, Scalar) and v.static) for v in found):
        ctx.fail("TP101", "a set holds what is known at compile time", "use an array or a tuple.")
    return Static(ConstantSet(static_key(ctx, v) for v in found))


@expression(ast.DictComp)
def _dict(ctx: Context, node: ast.DictComp) -> Value:
    since = len(ctx.changed)
    found = elements_of(ctx, node, lambda: (static_key(ctx, evaluate(ctx, node.key)), evaluate(ctx, node.value)))
    if found is None:
        ctx.fail("TP101", "the keys of a dict must be known at compile time", "use arrays.")
    pairs = dict(found)
    return new_dict(ctx, dict(zip(pairs, current(ctx, list(pairs.values()), since), strict=True)))


# -- as loops

ITEMS, TOTAL, COUNT = "<items>", "<total>", "<count>"


def _run(ctx: Context, node: Comprehension, name: str, first: Value, loop: ast.For) -> Value:
    """What the name is after the loop, which finds it bound to `first`."""
    if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)) or any(g.is_async for g in node.generators):
        ctx.fail("TP101", "':=' and 'async' in a comprehension of this kind cannot be compiled", "write a loop.")
    liveness = ctx.frames[ctx.frame].liveness
    for n in ast.walk(loop):
        if isinstance(n, ast.For):
            liveness.head[n] = liveness.after[n] = frozenset({name})
    key = ctx.key(name)
    outer = ctx.state.names.get(key)  # of a comprehension around this one
    ctx.state.names[key] = first
    with _scoped(ctx, node):
        run_for(ctx, loop)
    result = ctx.state.names.pop(key)
    if outer is not None:
        ctx.state.names[key] = outer
    return ctx.use(result)


def _nest(
    node: Comprehension, generators: Sequence[ast.comprehension], inner: list[ast.stmt], between: list[ast.stmt]
) -> ast.For:
    """The loops of a comprehension around `inner`; `between` comes after each loop inside of another one."""
    body = inner
    for g in reversed(generators):
        for test in reversed(g.ifs):
            body = [ast.If(test, body, [])]
        loop = ast.For(g.target, g.iter, body, [])
        body = [loop, *between]
    for n in ast.walk(loop):
        if not hasattr(n, "lineno"):
            ast.copy_location(n, node)
    return loop


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


@by_node
def _filling(node: ast.ListComp | ast.GeneratorExp) -> ast.For:
    call = ast.Call(ast.Attribute(_load(ITEMS), "append", ast.Load()), [node.elt], [])
    return _nest(node, node.generators, [ast.Expr(call)], [])


@by_node
def _counting(node: Comprehension) -> ast.For:
    """Counts the elements, if all conditions held."""
    *outer, last = node.generators
    more = ast.Call(_load(COUNT), [last.iter], [])
    bare = [ast.comprehension(g.target, g.iter, [], 0) for g in outer]
    return _nest(node, bare, [_store(TOTAL, ast.BinOp(_load(TOTAL), ast.Add(), more))], [])


def _filled(ctx: Context, node: ast.ListComp | ast.GeneratorExp) -> Value:
    """A list whose length is known when it runs."""
    if len(node.generators) == 1 and not node.generators[0].ifs:
        return _run(ctx, node, ITEMS, new_list(ctx, ()), _filling(node))
    box = new_box(ctx)
    growth = Growth(ANYWHERE, exact=False)
    before, made = ctx.state.copy(), ctx.b.made
    growing = ctx.growing
    ctx.growing = {**growing, box: growth}
    with ctx.part():  # a trial, for the type of the elements
        _run(ctx, node, ITEMS, Grown(None, weak(0), ref=box), _filling(node))
    ctx.state, ctx.b.made = before, made
    if growth.dtype is None:
        ctx.growing = growing
        return new_list(ctx, ())
    count = _number_of(ctx, node)
    start_ = start(ctx, growth, Sequence_((), "list", ref=box), count, known_sizes(ctx, ctx.state))
    result = _run(ctx, node, ITEMS, start_, _filling(node))
    ctx.growing = growing
    return result


def _number_of(ctx: Context, node: Comprehension) -> Atom:
    """How many elements there are at most."""

    def count(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        match args[0]:
            case Array() | RangeValue() | Grown() | Zipped() | Planned():
                return Scalar(atoms.apply(ctx, "max", iteration(ctx, args[0], True)[0], i64(0)), True)
            case _:
                return weak(len(items_of(ctx, "this comprehension", args[0])))

    counter = Builtin(COUNT, count)
    if len(node.generators) == 1:
        total = count(ctx, [evaluate(ctx, node.generators[0].iter)], {})
    else:
        ctx.bind(COUNT, counter)
        total = _run(ctx, node, TOTAL, weak(0), _counting(node))
        ctx.state.names.pop(ctx.key(COUNT))
    assert isinstance(total, Scalar)
    return total.atom


# -- sums and tests


@by_node
def _adding(node: ast.ListComp | ast.GeneratorExp) -> ast.For:
    return _nest(node, node.generators, [_store(TOTAL, ast.BinOp(_load(TOTAL), ast.Add(), node.elt))], [])


@by_node
def _testing(node: ast.GeneratorExp) -> dict[bool, ast.For]:
    """For any (True) and all."""
    return {wanted: _until(node, wanted) for wanted in (True, False)}


def _until(node: ast.GeneratorExp, wanted: bool) -> ast.For:
    """Ends at the first element that is true, or false."""
    found = node.elt if wanted else ast.UnaryOp(ast.Not(), node.elt)
    inner: list[ast.stmt] = [ast.If(found, [_store(TOTAL, ast.Constant(wanted)), ast.Break()], [])]
    now = _load(TOTAL) if wanted else ast.UnaryOp(ast.Not(), _load(TOTAL))
    return _nest(node, node.generators, inner, [ast.If(now, [ast.Break()], [])])


def reduced(ctx: Context, function: object, node: ast.expr, first: ast.expr | None) -> Value | None:
    """sum, any and all of a generator expression, without a list of its elements; None where there is another way."""
    if not isinstance(node, ast.GeneratorExp) or function not in (sum, any, all):
        return None
    if _is_known(ctx, node):
        return None
    if function is sum:
        found = attempt(
            ctx,
            lambda: _run(ctx, node, TOTAL, weak(0) if first is None else evaluate(ctx, first), _adding(node)),
        )
        return None if isinstance(found, CompileError) else found
    wanted = function is any
    return _run(ctx, node, TOTAL, weak(not wanted), _testing(node)[wanted])


def _is_known(ctx: Context, node: ast.GeneratorExp) -> bool:
    """Whether all lengths and conditions are known."""
    before, made, copied = ctx.state.copy(), ctx.b.made, ctx.copied
    with ctx.part():
        found = elements_of(ctx, node, lambda: None)
    ctx.state, ctx.b.made, ctx.copied = before, made, copied
    return found is not None
