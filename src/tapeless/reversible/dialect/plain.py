"""From steps to statements that Python and the front end know: the plain form of a reversible function.

`plain_function` takes the function and whether its tests are wanted; gives a `FunctionDef` that returns its state. Helpers
are functions of `support`, under the name HELPERS. Statements keep the places of the steps they were made from.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tapeless.frontend.source.liveness import put_into, tested_before
from tapeless.reversible.dialect.inverse import inverse_block
from tapeless.reversible.dialect.places import Relation, reads, relation, root_of, steps_of
from tapeless.reversible.dialect.syntax import (
    HELPERS,
    Statements,
    as_load,
    as_store,
    defined,
    helper,
    load,
    placed,
    store,
)
from tapeless.reversible.dialect.text import assign, iterated
from tapeless.reversible.dialect.trails import NAME, Trail, trail_of
from tapeless.reversible.dialect.tree import (
    Ancilla,
    Block,
    Call,
    Computed,
    Exchange,
    For,
    If,
    Mapped,
    Move,
    Reversible,
    Rotate,
    Step,
    Update,
    While,
    all_steps,
    changed_in,
    expressions_of,
    targets_of,
)


def plain_function(function: Reversible, checks: bool, tolerance: float) -> ast.FunctionDef:
    names = {*function.state, *function.constants}
    writer = Writer(checks, tolerance, names)
    body = writer.distinct(function) if function.changed else []
    body += writer.block(function.body)
    state: ast.expr = ast.Tuple([load(n) for n in function.state], ast.Load())
    return defined(function.node, function.node.name, function.node.args, [*body, ast.Return(state)])


def trailed_function(function: Reversible) -> ast.FunctionDef:
    """The plain form without tests. It returns the state, then the trail."""
    writer = Writer(False, 0.0, {*function.state, *function.constants})
    trail = writer.trail = trail_of(function, writer.fresh)
    results = ast.Tuple([load(n) for n in (*function.state, NAME, *trail.rowed.values())], ast.Load())
    body = [trail.start(), *writer.block(function.body), ast.Return(results)]
    return defined(function.node, function.node.name, function.node.args, body)


_ONE = ast.Constant(1)


def _tuple(*items: ast.expr) -> ast.expr:
    return ast.Tuple(list(items), ast.Load())


@dataclass
class Writer:
    """`names` are those in use."""

    checks: bool
    tolerance: float
    names: set[str]
    made: int = field(default=0)
    trail: Trail | None = None

    def fresh(self, base: str = "kept") -> str:
        self.made += 1
        name = f"_{base}{self.made}"
        return name if name not in self.names else self.fresh(base)

    def block(self, block: Block) -> Statements:
        found: Statements = []
        for step in block:
            found += [placed(s, step.at) for s in self.step(step)]
        return found

    def body(self, block: Block) -> Statements:
        return self.block(block) or [ast.Pass()]

    def test(self, name: str, *args: ast.expr) -> Statements:
        return [ast.Expr(helper(name, *args))] if self.checks else []

    def distinct(self, function: Reversible) -> Statements:
        changed = function.changed
        others = [n for n in (*function.state, *function.constants) if n not in changed]
        names = [_tuple(*map(ast.Constant, part)) for part in (changed, others)]
        values = map(load, (*changed, *others))
        return [placed(ast.Expr(helper("distinct", *names, *values)), function.node)]

    def step(self, step: Step) -> Statements:
        if self.trail is not None:
            return self.trail.around(step, lambda: self.statements(step))
        return self.statements(step)

    def statements(self, step: Step) -> Statements:
        match step:
            case Update():
                return self.update(step)
            case Exchange(targets=targets, sources=sources):
                values = [as_load(x) if isinstance(x, ast.Name) else helper("fresh", as_load(x)) for x in sources]
                stored = self.stored(targets, ast.Tuple(values, ast.Load()), into=False)
                return [*self.cells_apart(targets, or_same=len(targets) == 2), *stored]
            case Rotate(rot=rot, targets=targets, angle=angle):
                turned = ast.Call(rot, [*map(as_load, targets), angle], [])
                return [*self.cells_apart(targets, (angle,)), *self.stored(targets, turned)]
            case Call():
                return self.call(step)
            case Mapped():
                return self.step(self.rows(step))
            case Move():
                return self.move(step)
            case If(test=test, after=after, then=then, orelse=orelse):
                if not self.checks or after is None:
                    return [ast.If(test, self.body(then), self.block(orelse))]
                before = self.fresh("test")
                chosen = ast.Assign([store(before)], ast.Call(load("bool"), [test], []))
                made = ast.If(load(before), self.body(then), self.block(orelse))
                return [chosen, made, *self.test("branch", after, load(before))]
            case While(test=test, after=after, body=body):
                if after is None:
                    return [ast.While(test, self.body(body), [])]
                again = self.test("again", after)
                return [*self.test("entry", after), ast.While(test, [*self.body(body), *again], [])]
            case For(target=target, body=body):
                return [ast.For(target, iterated(step), self.body(body), [])]
            case Ancilla(name=name, value=value, body=body):
                made_ = ast.Assign([store(name)], helper("fresh", value))
                limit = ast.Constant(self.tolerance)
                test_ = self.test("clean", ast.Constant(name), load(name), value, limit)
                return [made_, *self.block(body), *test_]
            case Computed(compute=compute, body=body):
                undo = self.silently(inverse_block(compute))
                if undo and at_the_same_places(step):
                    undo = [tested_before(ast.If(ast.Constant(True), undo, []))]
                return [*self.silently(compute), *self.block(body), *undo]

    def silently(self, block: Block) -> Statements:
        """A block that is undone, which leaves no trail: Note [Trails of blocks]"""
        return self.block(block) if self.trail is None else self.trail.without(lambda: self.block(block))

    def update(self, step: Update) -> Statements:
        tests: Statements = self.cells_apart((step.target,), (step.value,))
        scales = step.op in (ast.Mult, ast.Div)
        if step.op is not ast.BitXor:
            text = ast.Constant(ast.unparse(step.target))
            given = (text, as_load(step.target), step.value, ast.Constant(step.op is ast.Mult))
            tests.append(ast.Expr(helper("undoable", *given)))
        if scales:
            tests += self.test("factor", step.value)
        return [*tests, *self.changed(step.target, step.op(), step.value)]

    def changed(self, target: ast.expr, op: ast.operator, value: ast.expr) -> Statements:
        """`target += value`."""
        if not isinstance(target, ast.Attribute):
            return [put_into(ast.AugAssign(as_store(target), op, value))]  # type: ignore[arg-type]
        field_ = self.fresh("field")
        taken = ast.Assign([store(field_)], as_load(target))
        made = ast.AugAssign(ast.Name(field_, ast.Store()), op, value)
        return [taken, made, self.put(target, load(field_))]

    def put(self, target: ast.Attribute, value: ast.expr) -> ast.stmt:
        """A field gets another value: that of its object, and so on up to a name."""
        whole = helper("put", as_load(target.value), ast.Constant(target.attr), value)
        if isinstance(target.value, ast.Attribute):
            return self.put(target.value, whole)
        return ast.Assign([as_store(target.value)], whole)

    def stored(self, targets: Sequence[ast.expr], value: ast.expr, into: bool = True) -> Statements:
        """Several results, each in its place; arrays stay where they are."""
        names = [self.fresh("field") if isinstance(t, ast.Attribute) else "" for t in targets]
        made = assign(tuple(store(n) if n else as_store(t) for n, t in zip(names, targets, strict=True)), value)
        if into:
            put_into(made)
        puts = [self.put(t, load(n)) for n, t in zip(names, targets, strict=True) if isinstance(t, ast.Attribute)]
        return [made, *puts]

    def rows(self, step: Mapped) -> For:
        """The loop that it stands for."""
        index, call = self.fresh("row"), step.call
        at = [ast.Subscript(as_load(a), load(index), ast.Load()) for a in call.args]
        count = ast.Call(load("len"), [as_load(call.args[0])], [])
        items = ast.Call(ast.Attribute(load(HELPERS), "prange", ast.Load()), [count], [])
        body = (replace(call, args=tuple(at), bare=False),)
        return For(step.at, store(index), items, False, True, (), body)

    def call(self, step: Call) -> Statements:
        function = ast.Attribute(step.function, "inverse", ast.Load()) if step.inverse else step.function
        args = [as_load(a) for a in step.args]
        call = ast.Call(helper("tested", function) if self.checks else function, args, list(step.keywords))
        values = tuple(k.value for k in step.keywords)
        return [*self.cells_apart(step.args, values), *self.stored(step.args, call)]

    def move(self, step: Move) -> Statements:
        """Between a place and the cell on top of a stack. The one that is left holds 0."""
        stack, value = as_load(step.stack), as_load(step.value)
        data, top = (ast.Attribute(stack, name, ast.Load()) for name in ("data", "top"))
        cell = ast.Subscript(data, top, ast.Store())
        up = ast.Attribute(stack, "top", ast.Store())
        if step.push:
            nothing = _tuple(helper("nothing", value))
            return [ast.Assign([cell], value), *self.stored([step.value], nothing), *self.changed(up, ast.Add(), _ONE)]
        tests: Statements = [ast.Expr(helper("filled", top)), *self.test("vacant", value)]
        taken = self.fresh("taken")
        return [
            *tests,
            *self.changed(up, ast.Sub(), _ONE),
            ast.Assign([store(taken)], as_load(cell)),
            ast.Assign([cell], helper("nothing", load(taken))),
            *self.stored([step.value], _tuple(load(taken))),
        ]

    def cells_apart(
        self, targets: tuple[ast.expr, ...], values: Sequence[ast.expr] = (), or_same: bool = False
    ) -> Statements:
        """Tests that cells of one array, which differ in writing, are not the same. They are never left out: a gradient
        would be wrong without a word. `or_same`: unless each of them is one cell.
        """
        pairs = [(t, u) for k, t in enumerate(targets) for u in targets[:k]]
        roots = {root_of(t) or "" for t in targets}
        pairs += [(t, place) for t in targets for value in values for place in reads(value, roots)]
        found: Statements = []
        for one, other in pairs:
            if relation(one, other) is Relation.perhaps:
                found.append(ast.Expr(self._apart(one, other, or_same)))
        return found

    def _apart(self, one: ast.expr, other: ast.expr, or_same: bool) -> ast.expr:
        array, here, there = _common(one, other)
        texts = [ast.Constant(ast.unparse(x)) for x in (one, other)]
        shape = ast.Attribute(as_load(array), "shape", ast.Load())
        return helper("apart", *texts, shape, _indices(here), _indices(there), ast.Constant(or_same))


def at_the_same_places(step: Computed) -> bool:
    """Whether undoing a block goes to the cells that it was at, and nowhere else, whatever rounding does: there are loops
    only, and what subscripts and bounds use is changed by nobody.
    """
    used: list[ast.expr] = []
    for inner in all_steps(step.compute):
        if not isinstance(inner, (Update, Exchange, Rotate, For, Ancilla)):
            return False
        indices = [i for t in targets_of(inner) for i in steps_of(t) if not isinstance(i, str)]
        indices += [n.slice for e in expressions_of(inner) for n in ast.walk(e) if isinstance(n, ast.Subscript)]
        used += [*indices, *([inner.items] if isinstance(inner, For) else [])]
    changed = [*changed_in(step.compute), *changed_in(step.body)]
    names = {root_of(t) or "" for t in changed}
    return not any(relation(t, p) is not Relation.apart for e in used for p in reads(e, names) for t in changed)


def _common(one: ast.expr, other: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr]:
    """The array of two places, and the first subscripts by which they differ."""
    chain = [[x] for x in (one, other)]
    for places in chain:
        while isinstance(places[-1], (ast.Attribute, ast.Subscript)):
            places.append(places[-1].value)
    mine, others = ([*reversed(c)] for c in chain)
    for a, b in zip(mine, others, strict=False):
        if isinstance(a, ast.Subscript) and isinstance(b, ast.Subscript) and ast.dump(a.slice) != ast.dump(b.slice):
            return a.value, a.slice, b.slice
    raise AssertionError("the places do not differ by a subscript")


def _indices(index: ast.expr) -> ast.expr:
    """As a tuple, slices as tuples in it."""
    axes = index.elts if isinstance(index, ast.Tuple) else [index]
    return ast.Tuple([_index(a) for a in axes], ast.Load())


def _index(axis: ast.expr) -> ast.expr:
    if not isinstance(axis, ast.Slice):
        return axis
    parts = [x or ast.Constant(None) for x in (axis.lower, axis.upper, axis.step)]
    return ast.Tuple(parts, ast.Load())
