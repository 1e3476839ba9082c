"""The backward pass of a reversible function as a plain function: it undoes one step after the other, and carries the
adjoints of the state along.

`adjoint_function` gives a `FunctionDef` over the state at the end and its adjoints. It returns the state at the start and
the adjoints there. Nothing is kept: what a step used is there again once the step is undone.

Note [Adjoints of steps]
Each name x of the state that has derivatives has another beside it, for its adjoint, of the same structure; the adjoint
of the place x[i].w is the same place of that. A step `y += f(a, b)` is undone, then what `f` pulls the adjoint of `y` back
to is added to the adjoints of `a` and `b` (`support.pull`); the adjoint of `y` stays. The operands of f are the places
that it reads, so adding to the adjoint of a cell costs a cell.

An ancilla begins its way back with the adjoint 0: what came after its block did not see it. While that is so, undoing a
`compute` block that made it needs no adjoints.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tapeless.reversible.dialect.inverse import inverse_block, inverse_step
from tapeless.reversible.dialect.places import names_in, reads, root_of
from tapeless.reversible.dialect.plain import Writer
from tapeless.reversible.dialect.syntax import Statements, as_load, defined, helper, load, placed, store
from tapeless.reversible.dialect.text import iterated
from tapeless.reversible.dialect.trails import NAME, Trail, changed_names, trail_of, used_in
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
    targets_of,
)


def adjoint_function(function: Reversible, active: Sequence[str], trailed: bool = False) -> ast.FunctionDef:
    """`active`: names of the state, and of constants, that have derivatives. `trailed`: it takes what the way there has
    left behind, too, and gives what the way back has not found of it.
    """
    state = function.state
    names = {*names_in(function.node), *state, *function.constants}
    back = _Back(Writer(False, 0.0, names), {}, set(active))
    left: list[str] = []
    if trailed:
        back.trail = trail_of(function, back.writer.fresh, backwards=True)
        left = [NAME, *back.trail.rowed.values()]
    adjoints = [back.name(n) for n in active]
    body = back.block(function.body)
    all_names = (*state, *adjoints, *left)
    results = ast.Tuple([load(n) for n in all_names], ast.Load())
    given = function.node.args
    args = ast.arguments([], [ast.arg(n) for n in all_names], None, given.kwonlyargs, given.kw_defaults, None, [])
    return defined(function.node, f"{function.node.name}_adjoint", args, [*body, ast.Return(results)])


def remembered(function: Reversible) -> frozenset[str]:
    """Names of the state that steps change, and whose values matter to others: what is only added to does not."""
    used = used_in(function.body, function.state)
    return frozenset(n for n in changed_names(function.body) if n in used)


def linked(function: Reversible, active: Collection[str]) -> tuple[str, ...]:
    """With the names that values go to and come from: a whole number may end where a float began, or in an ancilla."""
    found = {*active, *(s.name for s in all_steps(function.body) if isinstance(s, Ancilla))}
    groups, before = exchanged(function), -1
    while len(found) != before:
        before = len(found)
        found.update(*(names for names in groups if names & found))
    return tuple(n for n in (*function.state, *function.constants) if n in found)


def exchanged(function: Reversible) -> list[set[str]]:
    """Names whose values change places, in each step that does such a thing."""
    found: list[set[str | None]] = []
    for step in all_steps(function.body):
        step = step.call if isinstance(step, Mapped) else step
        match step:
            case Exchange() | Move() | Call(called=None):
                found.append({root_of(t) for t in targets_of(step)})
            case Call(called=called, args=args):
                by_name = dict(zip(called.state, map(root_of, args), strict=False))
                found += [{by_name.get(n) for n in names} for names in called.exchanged]
    return [{n for n in names if n is not None} for names in found]


@dataclass
class _Back:
    """`adjoints`: by name of the state, and of ancillas. `zero`: ancillas whose adjoint is still 0."""

    writer: Writer
    adjoints: dict[str, str]
    active: set[str]
    zero: set[str] = field(default_factory=set)
    trail: Trail | None = None

    def name(self, of: str) -> str:
        found = f"{of}_adjoint"
        while found in self.writer.names:
            found += "_"
        self.writer.names.add(found)
        self.adjoints[of] = found
        return found

    def adjoint(self, place: ast.expr) -> ast.expr:
        """The place beside it."""
        match place:
            case ast.Name(id=name):
                return load(self.adjoints[name])
            case ast.Attribute(value=base, attr=attr):
                return ast.Attribute(self.adjoint(base), attr, ast.Load())
            case ast.Subscript(value=base, slice=index):
                return ast.Subscript(self.adjoint(base), index, ast.Load())
        raise AssertionError(f"{ast.unparse(place)} is no place")

    def is_active(self, place: ast.expr) -> bool:
        return root_of(place) in self.active

    def block(self, block: Block) -> Statements:
        found: Statements = []
        for step in reversed(block):
            made = self.step(step)
            found += [placed(s, step.at) for s in made]
            self.zero -= {n for n in self.zero if _mentions(step, n)}
        return found

    def body(self, block: Block) -> Statements:
        return self.block(block) or [ast.Pass()]

    def undone(self, step: Step) -> Statements:
        return self.writer.step(inverse_step(step))

    def step(self, step: Step) -> Statements:
        if self.trail is not None:
            return self.trail.around(step, lambda: self.statements(step))
        return self.statements(step)

    def statements(self, step: Step) -> Statements:
        match step:
            case Update():
                return [*self.undone(step), *self.update(step)]
            case Exchange(targets=targets, sources=sources):
                found = self.undone(step)
                if any(self.is_active(t) for t in targets):
                    moved = replace(
                        step, targets=tuple(map(self.adjoint, targets)), sources=tuple(map(self.adjoint, sources))
                    )
                    found += self.undone(moved)
                return found
            case Rotate():
                return [*self.undone(step), *self.rotate(step)]
            case Call():
                return self.call(step)
            case Mapped():
                return self.step(self.writer.rows(step))
            case Move():
                return self.move(step)
            case If(after=after, then=then, orelse=orelse):
                assert after is not None
                zero = set(self.zero)
                chosen = self.body(then)
                self.zero = zero
                return [ast.If(after, chosen, self.block(orelse))]
            case While(after=after, body=body):
                assert after is not None
                return [ast.While(after, self.loop(body), [])]
            case For(target=target, body=body, backwards=backwards, parallel=parallel):
                items = iterated(replace(step, backwards=not backwards and not parallel))
                names = [n for n in dict.fromkeys(root_of(t) for t in changed_in(body)) if n]
                if not parallel:
                    items = helper("undone", items, *map(ast.Constant, names))
                return [ast.For(target, items, self.loop(body), [])]
            case Ancilla():
                return self.ancilla(step)
            case Computed():
                return self.computed(step)

    def loop(self, body: Block) -> Statements:
        """Adjoints that are 0 in the first iteration need not be in the next."""
        self.zero -= {n for n in self.zero if any(_mentions(s, n) for s in all_steps(body))}
        return self.body(body)

    # -- leaves

    def pulled(
        self, value: ast.expr, targets: Sequence[ast.expr], adjoints: Sequence[ast.expr], always: bool = False
    ) -> Statements:
        """Adds to the adjoints of what a value uses: what the adjoints of `targets`, to which the value is added, are
        pulled back to. (Several of them for a tuple.) A target that the value uses has that as its adjoint. `always`:
        whatever the targets are.
        """
        places: dict[str, ast.expr] = {}
        for place in reads(value, self.active):
            places.setdefault(ast.unparse(place), place)
        if not places or not (always or any(self.is_active(t) for t in targets)):
            return []
        params = {text: self.writer.fresh("x") for text in places}
        function = ast.Lambda(_parameters(params.values()), _with_names(value, params, self.active))
        call = helper("pull", function, _tuple(map(as_load, targets)), _tuple(adjoints), *map(as_load, places.values()))
        found = {text: self.writer.fresh("d") for text in places}
        made: Statements = [ast.Assign([ast.Tuple([store(n) for n in found.values()], ast.Store())], call)]
        for t in [] if always else targets:
            if ast.unparse(t) in found:
                d = load(found.pop(ast.unparse(t)))
                made += self.writer.stored([self.adjoint(t)], _tuple([d]))
        for text, d_ in found.items():
            made += self.writer.changed(self.adjoint(places[text]), ast.Add(), load(d_))
        return made

    def update(self, step: Update) -> Statements:
        if not self.is_active(step.target) or step.op is ast.BitXor:
            return []
        target, value = as_load(step.target), step.value
        match step.op():
            case ast.Add():
                added = value
            case ast.Sub():
                added = ast.UnaryOp(ast.USub(), value)
            case op:
                added = ast.BinOp(target, op, value)
        return self.pulled(added, [target], [self.adjoint(target)])

    def rotate(self, step: Rotate) -> Statements:
        if not all(map(self.is_active, step.targets)):
            return []
        a, b = (as_load(t) for t in step.targets)
        mine = [self.adjoint(t) for t in step.targets]
        turned = ast.Call(step.rot, [a, b, step.angle], [])
        places = list(reads(step.angle, self.active))
        found: Statements = []
        if places:
            kept = [self.writer.fresh("t") for _ in mine]
            for name, t in zip(kept, (a, b), strict=True):
                found.append(ast.Assign([store(name)], helper("fresh", t)))
            turned = ast.Call(step.rot, [load(kept[0]), load(kept[1]), step.angle], [])
            found += self.pulled(turned, [a, b], mine)
        back = ast.Call(step.rot, [*mine, ast.UnaryOp(ast.USub(), step.angle)], [])
        return [*found, *self.writer.stored(mine, back)]

    def call(self, step: Call) -> Statements:
        active = [a for a in step.args if self.is_active(a)]
        if not active:
            return self.undone(step)
        mine = [self.adjoint(a) for a in active]
        adjoints = [self.adjoint(a) if self.is_active(a) else ast.Constant(None) for a in step.args]
        function = ast.Attribute(step.function, "inverse", ast.Load()) if step.inverse else step.function
        call = helper("back", function, _tuple(map(as_load, step.args)), _tuple(adjoints))
        assert isinstance(call, ast.Call)
        call.keywords = list(step.keywords)
        given = [self.writer.fresh("d") for _ in step.keywords]
        targets = (*step.args, *mine, *map(load, given))
        made = [*self.writer.cells_apart(step.args), *self.writer.stored(targets, call)]
        for k, d in zip(step.keywords, given, strict=True):
            made += self.pulled(k.value, [k.value], [load(d)], always=True)
        return made

    def move(self, step: Move) -> Statements:
        found = self.undone(step)
        if self.is_active(step.stack):
            found += self.undone(replace(step, stack=self.adjoint(step.stack), value=self.adjoint(step.value)))
        return found

    # -- blocks

    def ancilla(self, step: Ancilla) -> Statements:
        name, value = step.name, step.value
        made: Statements = [ast.Assign([store(name)], helper("fresh", value))]
        self.active.add(name)
        mine = self.name(name)
        self.zero.add(name)
        made.append(ast.Assign([store(mine)], helper("zeros", load(name))))
        made += self.block(step.body)
        made += self.pulled(value, [load(name)], [load(mine)])
        self.active.discard(name)
        self.zero.discard(name)
        return made

    def computed(self, step: Computed) -> Statements:
        roots = {root_of(t) for t in changed_in(step.compute)}
        plainly = roots <= self.zero | {n for n in roots if n not in self.active}

        def first() -> Statements:
            if not plainly:
                return self.block(inverse_block(step.compute))
            self.writer.trail = self.trail
            made = self.writer.block(step.compute)
            self.writer.trail = None
            return made

        def rest() -> Statements:
            self.zero -= {n for n in self.zero if any(_mentions(s, n) for s in step.body)}
            return self.block(step.body)

        def last() -> Statements:
            return self.block(step.compute)

        if self.trail is not None:
            return self.trail.of_block(first, rest, last)
        return [*first(), *rest(), *last()]


def _mentions(step: Step, name: str) -> bool:
    return name in names_in(step.at)


def _parameters(names: Collection[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _tuple(items: Collection[ast.expr] | map[ast.expr]) -> ast.expr:
    return ast.Tuple(list(items), ast.Load())


def _with_names(value: ast.expr, names: dict[str, str], active: Collection[str]) -> ast.expr:
    """A copy with names in place of places. What measures an array stays as it is."""
    chosen = {id(p): names[ast.unparse(p)] for p in reads(value, active)}

    def copied(node: Any) -> Any:
        if isinstance(node, list):
            return [copied(n) for n in node]
        if not isinstance(node, ast.AST):
            return node
        if id(node) in chosen:
            return ast.copy_location(load(chosen[id(node)]), node)
        fields = {name: copied(part) for name, part in ast.iter_fields(node)}
        return ast.copy_location(type(node)(**fields), node)

    new: ast.expr = copied(value)
    return new
