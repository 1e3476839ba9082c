"""From the syntax tree of a function to the steps of the dialect, with all that can be checked without running it.

Takes a `FunctionDef` and what its names stand for; gives a `Reversible`, or raises `InvertibilityError` with the place.

Note [Static checks]
A step can be undone if what it used is still there afterwards. So a target is not read on the right side, a test not
changed by its branch (or there is a second one), a bound not changed by its loop, the value of an ancilla not changed in
its block, and what a `compute` block used not changed before it is undone. Places are compared as they are written.
Cells of one array at places that differ in writing may be the same: those are compared when the function runs.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tapeless.reversible.dialect.inverse import undecided, why_undecided
from tapeless.reversible.dialect.places import Relation, names_in, reads, relation, root_of, steps_of
from tapeless.reversible.dialect.scope import Scope
from tapeless.reversible.dialect.tree import (
    INVERSE_OPERATORS,
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
from tapeless.reversible.dialect.words import word_of

ADD = "write `+=`, or a block `with tp.ancilla(value) as name:`."
OUTSIDE: dict[type[ast.stmt], tuple[str, str]] = {
    ast.Assign: ("an assignment forgets the old value", ADD),
    ast.AnnAssign: ("an assignment forgets the old value", ADD),
    ast.Return: ("a reversible function returns its state at its end", "leave 'return' out."),
    ast.Break: ("'break' leaves a loop in two ways, and the way back needs one", "put it into the condition."),
    ast.Continue: ("'continue' leaves an iteration in two ways", "use 'if'."),
    ast.Delete: ("'del' forgets a value", "undo what made it."),
    ast.FunctionDef: ("functions are not defined inside of reversible ones", "define it outside."),
}


def parse(node: ast.FunctionDef, scope: Scope) -> Reversible:
    given = node.args
    if given.vararg is not None or given.kwarg is not None:
        scope.fail(node, "TP401", "the state of a reversible function has names", "name the parameters.")
    if given.defaults:
        hint = "make it a keyword (after '*'), or pass it."
        scope.fail(given.defaults[0], "TP401", "state has no default: what goes in comes out", hint)
    for a in (*given.posonlyargs, *given.args):
        scope.state.add(a.arg)
    scope.fixed.update({a.arg: "a keyword parameter is a constant" for a in given.kwonlyargs})
    body = node.body
    doc = body[0] if ast.get_docstring(node) is not None else None
    return Reversible(node, doc, _block(body[1:] if doc else body, scope))


def _block(statements: Sequence[ast.stmt], scope: Scope) -> Block:
    """Up to its end, or to where an open `compute` is undone."""
    steps, rest = _steps(list(statements), scope)
    if rest:
        scope.fail(rest[0], "TP404", "there is no 'compute' block to undo here")
    return steps


def _steps(statements: list[ast.stmt], scope: Scope) -> tuple[Block, list[ast.stmt]]:
    """Steps, and what is left from a `tp.uncompute()` on."""
    found: list[Step] = []
    while statements:
        s, statements = statements[0], statements[1:]
        if isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
            continue
        if _is_uncompute(s, scope):
            return tuple(found), [s, *statements]
        if isinstance(s, ast.With):
            if len(s.items) > 1:
                inner = ast.copy_location(ast.With(s.items[1:], s.body), s)
                s = ast.copy_location(ast.With(s.items[:1], [inner]), s)
            marker = _with(s, scope)
            if isinstance(marker, ast.expr):
                compute = _block(s.body, scope)
                body, rest = _steps(statements, scope)
                statements = rest[1:]
                found.append(_computed(Computed(s, marker, compute, body), scope))
                continue
            found.append(_ancilla(s, marker, scope))
            continue
        found.append(_step(s, scope))
    return tuple(found), []


def _step(s: ast.stmt, scope: Scope) -> Step:
    match s:
        case ast.AugAssign():
            return _update(s, scope)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=sources)):
            return _exchange(s, targets, sources, scope)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call() as call):
            return _assigned_call(s, targets, call, scope)
        case ast.Expr(value=ast.Call() as call):
            return _bare_call(s, call, scope)
        case ast.If():
            return _if(s, scope)
        case ast.While():
            return _while(s, scope)
        case ast.For():
            return _for(s, scope)
    reason, hint = OUTSIDE.get(type(s), (f"'{type(s).__name__.lower()}' is not part of reversible functions", ""))
    scope.fail(s, "TP401", reason, hint)


# -- changes


def _target(target: ast.expr, scope: Scope) -> None:
    """A place of the state."""
    root = root_of(target)
    if root is None:
        scope.fail(target, "TP401", "only names, cells and attributes of the state can be changed")
    if root in scope.fixed:
        scope.fail(target, "TP403", f"'{root}' cannot be changed: {scope.fixed[root]}")
    if root in scope.gone and root not in scope.state:
        scope.fail(target, "TP404", f"the ancilla '{root}' ended with its block, line {scope.gone[root]}")
    if root not in scope.state:
        hint = "make it a parameter, or an ancilla."
        scope.fail(target, "TP403", f"'{root}' is no state of this function", hint)
    for index in (i for i in steps_of(target) if not isinstance(i, str)):
        for place in reads(index, scope.names):
            if relation(place, target) is not Relation.apart:
                scope.fail(place, "TP402", f"the place of '{ast.unparse(target)}' depends on what is written there")
    _used(target, scope)


def _used(expr: ast.expr, scope: Scope) -> None:
    """Ancillas are there only in their blocks."""
    for node in ast.walk(expr):
        if isinstance(node, ast.Name) and node.id in scope.gone and node.id not in scope.names:
            line = scope.gone[node.id]
            scope.fail(node, "TP404", f"the ancilla '{node.id}' ended with its block, line {line}")


def _update(s: ast.AugAssign, scope: Scope) -> Update:
    op = type(s.op)
    if op not in INVERSE_OPERATORS:
        scope.fail(s, "TP401", "this operator cannot be undone", "use +=, -=, ^=, *= or /=.")
    _target(s.target, scope)
    _used(s.value, scope)
    _not_read(s.target, s.value, scope)
    return Update(s, s.target, op, s.value)


def _not_read(target: ast.expr, value: ast.expr, scope: Scope) -> None:
    for place in reads(value, scope.names):
        if relation(place, target) in (Relation.same, Relation.inside):
            name = ast.unparse(target)
            hint = "copy it into an ancilla first, and undo that afterwards."
            scope.fail(place, "TP402", f"'{name}' is changed by a value that it is part of", hint)


def _exchange(s: ast.Assign, targets: list[ast.expr], sources: list[ast.expr], scope: Scope) -> Exchange:
    for t in targets:
        _target(t, scope)
    names = [ast.unparse(t) for t in targets]
    if sorted(names) != sorted(ast.unparse(x) for x in sources) or len(set(names)) < len(names):
        hint = "write the same places on both sides: a, b = b, a."
        scope.fail(s, "TP401", "an assignment forgets the old value", hint)
    _all_apart(targets, scope)
    return Exchange(s, tuple(targets), tuple(sources))


def _all_apart(places: Sequence[ast.expr], scope: Scope) -> None:
    for k, p in enumerate(places):
        for q in places[:k]:
            if relation(p, q) in (Relation.same, Relation.inside):
                scope.fail(p, "TP402", f"'{ast.unparse(p)}' and '{ast.unparse(q)}' are the same memory")


def _assigned_call(s: ast.Assign, targets: list[ast.expr], call: ast.Call, scope: Scope) -> Step:
    if word_of(scope.object_of(call.func)) == "rot":
        if (
            len(call.args) != 3
            or call.keywords
            or [ast.unparse(x) for x in call.args[:2]] != [*map(ast.unparse, targets)]
        ):
            scope.fail(s, "TP401", "a rotation turns two places", "write a, b = tp.rot(a, b, angle).")
        for t in targets:
            _target(t, scope)
            _not_read(t, call.args[2], scope)
        _all_apart(targets, scope)
        return Rotate(s, call.func, (targets[0], targets[1]), call.args[2])
    if _mark(call, scope) == "map" and call.args:
        inner = ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)
        made = _assigned_call(s, targets, inner, scope)
        assert isinstance(made, Call)
        return Mapped(s, call.func, made)
    found = _call(s, call, False, scope)
    if [*map(ast.unparse, targets)] != [*map(ast.unparse, call.args)]:
        hint = f"write {ast.unparse(ast.Tuple(call.args, ast.Load()))[1:-1]} on the left."
        scope.fail(s, "TP401", "the state that goes in is the state that comes out", hint)
    return found


def _bare_call(s: ast.Expr, call: ast.Call, scope: Scope) -> Step:
    word = word_of(scope.object_of(call.func))
    if word in ("push", "pop"):
        if len(call.args) != 2 or call.keywords:
            scope.fail(s, "TP401", f"tp.{word} takes a stack and a place", f"write tp.{word}(stack, x).")
        for place in call.args:
            _target(place, scope)
        _all_apart(call.args, scope)
        return Move(s, call.func, word == "push", call.args[0], call.args[1])
    return _call(s, call, True, scope)


def _call(s: ast.stmt, call: ast.Call, bare: bool, scope: Scope) -> Call:
    function, inverse = _forward_part(call.func)
    called = scope.object_of(function)
    if isinstance(function, ast.Name) and function.id in scope.fixed:
        called = None
    elif getattr(called, "written", None) is scope.function:
        scope.fail(s, "TP106", f"'{scope.function.__name__}' calls itself: recursion cannot be compiled")
    elif not getattr(called, "__tapeless_reversible__", False):
        name = ast.unparse(call.func)
        hint = "give it @tp.reversible, or use what it returns in an expression: y += f(x)."
        scope.fail(s, "TP401", f"'{name}' is not reversible", hint)
    for place in call.args:
        _target(place, scope)
    _all_apart(call.args, scope)
    for k in call.keywords:
        for place in call.args:
            _not_read(place, k.value, scope)
    return Call(s, function, called, tuple(call.args), tuple(call.keywords), inverse, bare)


def _forward_part(function: ast.expr) -> tuple[ast.expr, bool]:
    match function:
        case ast.UnaryOp(op=ast.Invert(), operand=inner) | ast.Attribute(attr="inverse", value=inner):
            found, inverse = _forward_part(inner)
            return found, not inverse
        case _:
            return function, False


# -- control flow


def _if(s: ast.If, scope: Scope) -> If:
    then, orelse = _block(s.body, scope), _block(s.orelse, scope)
    test, after = _conditions(s.test, "branch", scope)
    if after is None and not _changes((*then, *orelse), test, scope):
        after = test
    return If(s, test, after, s.test, then, orelse)


def _while(s: ast.While, scope: Scope) -> While:
    if s.orelse:
        scope.fail(s.orelse[0], "TP401", "'else' of a loop is not part of reversible functions", "use 'if'.")
    test, after = _conditions(s.test, "between", scope)
    return While(s, test, after, s.test, _block(s.body, scope))


def _conditions(test: ast.expr, word: str, scope: Scope) -> tuple[ast.expr, ast.expr | None]:
    _used(test, scope)
    if not isinstance(test, ast.Call):
        return test, None
    found = word_of(scope.object_of(test.func))
    if not found:
        return test, None
    if found != word or len(test.args) != 2 or test.keywords:
        wanted = "if tp.branch(before, after):" if word == "branch" else "while tp.between(before, after):"
        scope.fail(test, "TP401", f"tp.{found} does not fit here", f"write {wanted}")
    return test.args[0], test.args[1]


def _changes(block: Block, expr: ast.expr, scope: Scope) -> ast.expr | None:
    """A place that a block changes and an expression uses."""
    used = list(reads(expr, scope.names))
    for target in changed_in(block):
        if any(relation(target, place) is not Relation.apart for place in used):
            return target
    return None


def _for(s: ast.For, scope: Scope) -> For:
    if s.orelse:
        scope.fail(s.orelse[0], "TP401", "'else' of a loop is not part of reversible functions", "use 'if'.")
    names = names_in(s.target)
    taken = names & scope.names
    if taken or not isinstance(s.target, (ast.Name, ast.Tuple)):
        scope.fail(s.target, "TP403", f"'{min(taken, default='this')}' is used already", "use another name.")
    items, backwards, around = s.iter, False, list[ast.Call]()
    while isinstance(items, ast.Call) and _mark(items, scope) in ("progress", "loop") and items.args:
        around.append(items)
        items = items.args[0]
    while isinstance(items, ast.Call) and scope.object_of(items.func) is reversed and len(items.args) == 1:
        items, backwards = items.args[0], not backwards
    if isinstance(items, ast.Call) and scope.object_of(items.func) in (enumerate, zip, map, filter):
        reason = f"{ast.unparse(items.func)}(...) cannot be run backwards, as in Python"
        scope.fail(items, "TP401", reason, "loop over range(len(...)), and use the index.")
    parallel = isinstance(items, ast.Call) and _mark(items, scope) == "prange"
    _used(items, scope)
    with scope.fixing(names, "it counts a loop"):
        body = _block(s.body, scope)
    changed = _changes(body, items, scope)
    if changed is not None:
        reason = f"the loop runs over what its body changes: '{ast.unparse(changed)}'"
        scope.fail(changed, "TP405", reason, "copy the bound into an ancilla around the loop.")
    return For(s, s.target, items, backwards, parallel, tuple(around), body)


def _mark(call: ast.Call, scope: Scope) -> str:
    """Which operator of the package is called."""
    return str(getattr(scope.object_of(call.func), "__tapeless__", ""))


# -- blocks


def _is_uncompute(s: ast.stmt, scope: Scope) -> bool:
    return (
        isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and word_of(scope.object_of(s.value.func)) == "uncompute"
    )


def _with(s: ast.With, scope: Scope) -> ast.expr | tuple[ast.expr, str, ast.expr]:
    """The marker of a compute block; or the function, the name and the value of an ancilla."""
    match s.items:
        case [ast.withitem(context_expr=marker, optional_vars=None)] if word_of(scope.object_of(marker)) == "compute":
            return marker
        case [ast.withitem(context_expr=ast.Call(func=f, args=[value], keywords=[]), optional_vars=ast.Name(id=name))]:
            if word_of(scope.object_of(f)) == "ancilla":
                return f, name, value
    hint = "write 'with tp.ancilla(value) as name:' or 'with tp.compute:'."
    scope.fail(s.items[0].context_expr, "TP401", "this 'with' is not part of reversible functions", hint)


def _ancilla(s: ast.With, parts: tuple[ast.expr, str, ast.expr], scope: Scope) -> Ancilla:
    function, name, value = parts
    if name in scope.names:
        scope.fail(s.items[0].optional_vars or s, "TP404", f"'{name}' is in use already", "use another name.")
    _used(value, scope)
    with scope.with_ancilla(name, s):
        body = _block(s.body, scope)
        changed = _changes(body, value, scope)
        if changed is not None:
            reason = f"the block changes '{ast.unparse(changed)}', from which the ancilla '{name}' was made"
            scope.fail(changed, "TP404", reason, "the ancilla could not be compared with its first value.")
        _comes_back(name, body, scope)
    return Ancilla(s, function, name, value, body)


def _comes_back(name: str, body: Block, scope: Scope) -> None:
    """A single change that nothing undoes."""
    undone = {id(x) for step in all_steps(body) if isinstance(step, Computed) for x in all_steps(step.compute)}
    changes = [x for x in all_steps(body) for t in targets_of(x) if root_of(t) == name]
    if len(changes) == 1 and isinstance(changes[0], Update) and id(changes[0]) not in undone and changes[0] in body:
        reason = f"the ancilla '{name}' is changed here and never changed back"
        scope.fail(changes[0].at, "TP404", reason, "put what makes it into a block 'with tp.compute:'.")


def _computed(step: Computed, scope: Scope) -> Computed:
    """What comes before it is undone leaves alone what it used and made."""
    missing = undecided(step.compute)
    if missing is not None:
        scope.fail(missing.at, "TP406", *why_undecided(missing))
    used = list(changed_in(step.compute))
    for inner in all_steps(step.compute):
        used += [place for expr in expressions_of(inner) for place in reads(expr, scope.names)]
    for target in changed_in(step.body):
        if any(relation(target, place) in (Relation.same, Relation.inside) for place in used):
            name = ast.unparse(target)
            scope.fail(target, "TP404", f"'{name}' is changed before the block that used it is undone")
    return step
