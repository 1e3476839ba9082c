"""Statements: assignment, branches, loops, leaving them.

Takes `ast` statements, emits Core through the context. `Flow` says how a block may be left; a block whose exit is
only known at run time carries a number, and what follows it is put under a condition.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapeless.frontend import scalars
from tapeless.frontend.arrays import as_numeric, broadcast_to, read, write
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.expressions import binary_values, evaluate, truth_of
from tapeless.frontend.indexing import get_item, masked_update, row_view, set_item
from tapeless.frontend.liveness import always_leaves, assigned, may_leave, written_through
from tapeless.frontend.loops import compile_loop
from tapeless.frontend.merge import Arm, Join
from tapeless.frontend.values import (
    Array,
    Cell,
    Key,
    RangeValue,
    Scalar,
    Sequence_,
    Static,
    Value,
    Zipped,
    cells_of,
    weak,
)
from tapeless.ir.core import Body, Print
from tapeless.ir.types import Atom, Const, DType, Var, i64

CODES = {"next": 0, "break": 1, "continue": 2, "return": 3}
FLOW, RETURN = "<flow>", "<return>"


@dataclass(frozen=True)
class Flow:
    """How control may leave a block; `atom` holds the code of the exit taken when there are several."""

    kinds: frozenset[str]
    atom: Atom | None = None

    @property
    def code(self) -> Atom:
        if self.atom is not None:
            return self.atom
        (kind,) = self.kinds
        return i64(CODES.get(kind, 0))

    @property
    def diverges(self) -> bool:
        return self.kinds == {"raise"}


def flow(*kinds: str) -> Flow:
    return Flow(frozenset(kinds))


NEXT = flow("next")


def run_block(ctx: Context, statements: Sequence[ast.stmt]) -> Flow:
    for k, s in enumerate(statements):
        rest = statements[k + 1 :]
        with ctx.at(s):
            if isinstance(s, ast.If) and (may_leave([s]) or _raises(s)):
                return _run_if(ctx, s, rest)
            result = run_statement(ctx, s)
        if result.kinds == {"next"}:
            continue
        if "next" not in result.kinds:
            return result
        return _guarded(ctx, result, lambda rest=rest: run_block(ctx, rest))  # type: ignore[misc]
    return NEXT


def _raises(s: ast.If) -> bool:
    return always_leaves(s.body) or (bool(s.orelse) and always_leaves(s.orelse))


def run_statement(ctx: Context, s: ast.stmt) -> Flow:
    match s:
        case ast.Assign(targets=targets, value=value):
            result = evaluate(ctx, value)
            for target in targets:
                assign(ctx, target, result)
        case ast.AnnAssign(target=target, value=annotated):
            if annotated is not None:
                assign(ctx, target, evaluate(ctx, annotated))
        case ast.AugAssign():
            _augmented(ctx, s)
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            pass
        case ast.Expr(value=expression):
            evaluate(ctx, expression)
        case ast.If():
            return _run_if(ctx, s, ())
        case ast.For():
            return _run_for(ctx, s)
        case ast.While():
            return _run_while(ctx, s)
        case ast.Return(value=returned):
            ctx.bind(RETURN, Static(None) if returned is None else evaluate(ctx, returned))
            ctx.returned = ctx.span
            return flow("return")
        case ast.Break():
            return flow("break")
        case ast.Continue():
            return flow("continue")
        case ast.Assert():
            _assert(ctx, s)
        case ast.Raise():
            _raise(ctx, s)
            return flow("raise")
        case ast.FunctionDef():
            from tapeless.frontend.calls import nested_function

            ctx.bind(s.name, nested_function(ctx, s))
        case _:
            ctx.fail("TP101", f"'{type(s).__name__.lower()}' statements are not part of the language")
    return NEXT


# -- assignment


def assign(ctx: Context, target: ast.expr, value: Value) -> None:
    with ctx.at(target):
        match target:
            case ast.Name(id=name):
                ctx.bind(name, _named(ctx, value, name))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                if any(isinstance(p, ast.Starred) for p in parts):
                    ctx.fail("TP101", "starred targets are not part of the language", "name each element.")
                for part, item in zip(parts, unpack(ctx, value, len(parts)), strict=True):
                    assign(ctx, part, item)
            case ast.Subscript(value=base, slice=index):
                array = evaluate(ctx, base)
                if not isinstance(array, Array):
                    ctx.fail(
                        "TP104",
                        f"items of {type_text(array)} cannot be assigned",
                        "use a NumPy array, or build a new tuple.",
                    )
                set_item(ctx, array, evaluate(ctx, index), value)
            case _:
                ctx.fail("TP101", "only names, tuples of names and array items can be assigned to")


def _named(ctx: Context, value: Value, name: str) -> Value:
    """A fresh array takes the name it is first bound to, for messages and printed code."""
    if isinstance(value, Array) and not value.view and value.cell.name in ("m", "t", "full", "copy", "array", "g", "r"):
        value.cell.name = name
    return value


def unpack(ctx: Context, value: Value, count: int) -> list[Value]:
    match value:
        case Sequence_(items=items):
            if len(items) != count:
                ctx.fail("TP112", f"cannot unpack {len(items)} values into {count} names")
            return list(items)
        case Array(type=t):
            n = ctx.canon(t.shape[0])
            if isinstance(n, int):
                if n != count:
                    ctx.fail("TP112", f"cannot unpack {n} values into {count} names")
            else:
                size = ctx.size_atom(n)
                ok = scalars.compare_atoms(ctx, "eq", size, i64(count))
                ctx.check(ok, "ValueError", f"cannot unpack {{0}} values into {count} names", size)
            return [row_view(ctx, value, i64(k)) for k in range(count)]
        case _:
            ctx.fail("TP104", f"cannot unpack {type_text(value)}")


def _augmented(ctx: Context, s: ast.AugAssign) -> None:
    name = type(s.op).__name__
    match s.target:
        case ast.Name(id=target):
            old = evaluate(ctx, ast.copy_location(ast.Name(target, ast.Load()), s.target))
            new = evaluate(ctx, s.value)
            if isinstance(old, Array):
                _in_place(ctx, name, old, new)
            else:
                if isinstance(old, Scalar) and old.atom in ctx.without_axes:
                    ctx.fail(
                        "TP115", f"'{target}' is an array without dimensions, which cannot be written in place",
                        "write a = a + b and return it, or pass an array of one element.",
                    )  # fmt: skip
                ctx.bind(target, binary_values(ctx, name, old, new))
        case ast.Subscript(value=base, slice=index):
            array, where = evaluate(ctx, base), evaluate(ctx, index)
            if not isinstance(array, Array):
                ctx.fail("TP104", f"items of {type_text(array)} cannot be assigned", "use a NumPy array.")
            if isinstance(where, Array) and where.type.dtype is DType.bool:
                by = evaluate(ctx, s.value)
                if not isinstance(by, Scalar):
                    ctx.fail("TP113", "assignment by a mask takes a single number", "use np.where.")
                masked_update(ctx, array, where, _same_kind(ctx, name, array, binary_values(ctx, name, array, by)))
                return
            old = get_item(ctx, array, where)
            new = evaluate(ctx, s.value)
            set_item(ctx, array, where, _same_kind(ctx, name, old, binary_values(ctx, name, old, new)))
        case _:
            ctx.fail("TP101", "only names and array items can be the target of an augmented assignment")


def _in_place(ctx: Context, name: str, old: Array, new: Value) -> None:
    """a += b writes into the array that `a` refers to."""
    if name == "MatMult":
        ctx.fail("TP101", "'@=' is not part of the language", "write a = a @ b.")
    value = _same_kind(ctx, name, old, binary_values(ctx, name, old, new))
    atom = broadcast_to(
        ctx, as_numeric(ctx, value, "assignment"), ctx.dims(old.type.shape), old.type.dtype, "assignment"
    )
    if isinstance(atom, Var) and atom.type.rank < old.type.rank:
        ctx.shape_error("TP201", "the result of an in-place operation must have the shape of its target")
    write(ctx, old, atom)


def _same_kind(ctx: Context, name: str, old: Value, value: Value) -> Value:
    have = old.type.dtype if isinstance(old, Array) else old.dtype if isinstance(old, Scalar) else None
    got = value.type.dtype if isinstance(value, Array) else value.dtype if isinstance(value, Scalar) else None
    order = {"bool": 0, "i32": 1, "i64": 1, "f32": 2, "f64": 2, "c64": 3, "c128": 3}
    if isinstance(old, Array) and have and got and order[got.value] > order[have.value]:
        symbol = scalars.SYMBOLS.get(name, name)
        ctx.fail(
            "TP104",
            f"'{symbol}=' on an array of {have.numpy.name} gives {got.numpy.name}, which does not fit in place",
            "convert the array first (.astype), or write a = a op b.",
        )
    return value


# -- branches


def _run_if(ctx: Context, s: ast.If, rest: Sequence[ast.stmt]) -> Flow:
    """An `if` with what follows it, which moves into the arm that falls through when the other one leaves."""
    with ctx.at(s.test):
        cond = truth_of(ctx, evaluate(ctx, s.test))
    if isinstance(cond, Const):
        return run_block(ctx, [*(s.body if cond.value else s.orelse), *rest])
    then, orelse = list(s.body), list(s.orelse)
    left: list[ast.stmt] = []
    if always_leaves(then):
        orelse += rest
    elif orelse and always_leaves(orelse):
        then += rest
    else:
        left = list(rest)
    result = branch(ctx, cond, lambda: run_block(ctx, then), lambda: run_block(ctx, orelse))
    if not left or "next" not in result.kinds:
        return result
    return _guarded(ctx, result, lambda: run_block(ctx, left))


def branch(ctx: Context, cond: Atom, then: Callable[[], Flow], orelse: Callable[[], Flow]) -> Flow:
    """A Core `if` around two ways to go on."""
    before = ctx.state
    arms: list[Arm] = []
    flows: list[Flow] = []
    for run in (then, orelse):
        ctx.state = before.copy()
        with ctx.b.region() as stms:
            result = run()
        ctx.bind(FLOW, Scalar(result.code))
        arms.append(Arm(stms, ctx.state, result.diverges))
        flows.append(result)
    ctx.state = before
    if all(a.diverges for a in arms):
        ctx.b.if_(cond, Body(tuple(arms[0].stms), ()), Body(tuple(arms[1].stms), ()), [])
        return flow("raise")
    join = Join(ctx, before, (arms[0], arms[1]))
    join.run()
    ctx.b.if_(
        cond,
        Body(tuple(arms[0].stms), tuple(arms[0].results)),
        Body(tuple(arms[1].stms), tuple(arms[1].results)),
        join.vars,
    )
    code = ctx.state.names.pop(ctx.key(FLOW))
    kinds = frozenset().union(*(f.kinds for f in flows)) - {"raise"}
    if len(kinds) == 1:
        return Flow(kinds)
    assert isinstance(code, Scalar)
    return Flow(kinds, code.atom)


def _guarded(ctx: Context, so_far: Flow, rest: Callable[[], Flow]) -> Flow:
    """`rest` when control falls through; otherwise the exit that was taken stays."""
    if so_far.kinds == {"next"}:
        return rest()
    if so_far.atom is None:
        return so_far
    falls = scalars.compare_atoms(ctx, "eq", so_far.atom, i64(0))
    others = Flow(so_far.kinds - {"next"}, so_far.atom)
    return branch(ctx, falls, rest, lambda: others)


# -- loops


def _keys(ctx: Context, names: frozenset[str]) -> list[Key]:
    return [ctx.key(n) for n in sorted(names)]


def _loop_keys(
    ctx: Context, s: ast.For | ast.While, extra: frozenset[str] = frozenset()
) -> tuple[list[Key], Callable[[Key], bool]]:
    """Names that go around, and which of them somebody reads after the loop."""
    liveness = ctx.frames[ctx.frame].liveness
    head, after = liveness.head.get(s, frozenset()), liveness.after.get(s, frozenset())
    names = assigned(s.body)
    if isinstance(s, ast.For):
        names |= assigned([ast.Assign(targets=[s.target], value=ast.Constant(0))])
    names = frozenset(n for n in names if n in head or n in after)
    frame = ctx.frame

    def live_after(key: Key) -> bool:
        return key[0] == frame and (key[1] in after or key[1].startswith("<"))

    return _keys(ctx, names | extra), live_after


def _guess_cells(ctx: Context, s: ast.For | ast.While) -> list[Cell]:
    """Arrays that the body writes, as far as its text shows; what a trial run finds is added."""
    found: list[Cell] = []
    for name in written_through(s.body):
        value = ctx.state.names.get(ctx.key(name))
        if value is not None and name not in assigned(s.body) - _augmented_names(s.body):
            found.extend(cells_of(value))
    return list(dict.fromkeys(found))


def _exchanged(ctx: Context, s: ast.For | ast.While) -> list[Key]:
    """Names that the body exchanges by `a, b = b, a`."""
    found: set[str] = set()
    for node in (n for b in s.body for n in ast.walk(b) if isinstance(n, ast.Assign)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Tuple(elts=right)):
                names = [n.id for n in left if isinstance(n, ast.Name)]
                values = [n.id for n in right if isinstance(n, ast.Name)]
                if len(names) == len(left) == len(right) and sorted(names) == sorted(values):
                    found.update(names)
            case _:
                pass
    return _keys(ctx, frozenset(found))


def _augmented_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    names = {
        n.target.id
        for s in body
        for n in ast.walk(s)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }
    plain = {
        t.id
        for s in body
        for n in ast.walk(s)
        if isinstance(n, ast.Assign)
        for t in ast.walk(n)
        if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)
    }
    return frozenset(names - plain)


def _run_while(ctx: Context, s: ast.While) -> Flow:
    leaves = _left_early(s)
    extra = frozenset({FLOW, RETURN} if leaves else set())
    keys, live_after = _loop_keys(ctx, s, extra)
    if leaves:
        ctx.bind(FLOW, Scalar(i64(0)))

    def test() -> Atom:
        def condition() -> Atom:
            with ctx.at(s.test):
                return truth_of(ctx, evaluate(ctx, s.test))

        return _still_running(ctx, condition) if leaves else condition()

    def run(_: Var | None) -> None:
        _finish_iteration(ctx, run_block(ctx, s.body), leaves)

    saved = ctx.state.names.pop(ctx.key(RETURN), None)
    compile_loop(
        ctx,
        _array_keys(ctx, keys, s),
        live_after,
        run,
        test=test,
        guess_cells=_guess_cells(ctx, s),
        exchanged=_exchanged(ctx, s),
    )
    return _after_loop(ctx, s, leaves, saved)


def _array_keys(ctx: Context, keys: list[Key], s: ast.For | ast.While) -> list[Key]:
    """Names that are only augmented stay bound to their array: the array is carried, not the name."""
    only_augmented = _augmented_names(s.body)
    return [k for k in keys if not (k[1] in only_augmented and isinstance(ctx.state.names.get(k), Array))]


def _still_running(ctx: Context, condition: Callable[[], Atom]) -> Atom:
    code = ctx.state.names[ctx.key(FLOW)]
    assert isinstance(code, Scalar)
    running = scalars.compare_atoms(ctx, "eq", code.atom, i64(0))
    return scalars.lazy_if(ctx, running, condition, lambda: Const(False, DType.bool), running.type)


def _finish_iteration(ctx: Context, result: Flow, leaves: bool) -> None:
    if not leaves:
        return
    code = result.code
    if "continue" in result.kinds:
        if result.atom is None:
            code = i64(0)
        else:
            again = scalars.compare_atoms(ctx, "eq", code, i64(CODES["continue"]))
            code = scalars.select(ctx, again, i64(0), code)
    ctx.bind(FLOW, Scalar(code))


def _after_loop(ctx: Context, s: ast.For | ast.While, leaves: bool, saved: Value | None) -> Flow:
    """What is left of the exits taken inside: a break ends the loop, a return goes on."""
    if saved is not None and ctx.key(RETURN) not in ctx.state.names:
        ctx.state.names[ctx.key(RETURN)] = saved
    result = NEXT
    if leaves:
        code = ctx.state.names.pop(ctx.key(FLOW))
        assert isinstance(code, Scalar)
        broke = scalars.compare_atoms(ctx, "eq", code.atom, i64(CODES["break"]))
        if not _breaks(s.body):
            if _endless(s):
                return flow("return")
            if s.orelse:
                return _else_part(ctx, s, code.atom)
        if s.orelse:
            inner = branch(ctx, broke, lambda: NEXT, lambda: _else_part(ctx, s, code.atom))
            return inner
        if _returns(s.body):
            rest = scalars.select(ctx, broke, i64(0), code.atom)
            result = Flow(frozenset({"next", "return"}), rest)
        return result
    return run_block(ctx, s.orelse) if s.orelse else result


def _else_part(ctx: Context, s: ast.For | ast.While, code: Atom) -> Flow:
    if not _returns(s.body):
        return run_block(ctx, s.orelse)
    return _guarded(ctx, Flow(frozenset({"next", "return"}), code), lambda: run_block(ctx, s.orelse))


def _left_early(s: ast.For | ast.While) -> bool:
    """Whether the body may end the loop; a `continue` only ends an iteration."""
    return _breaks(s.body) or _returns(s.body)


def _endless(s: ast.For | ast.While) -> bool:
    return isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and bool(s.test.value)


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a `break` of this loop stands in its body; those in the `else` of inner loops are its own."""

    def visit(node: ast.AST) -> bool:
        match node:
            case ast.Break():
                return True
            case ast.FunctionDef() | ast.Lambda():
                return False
            case ast.For() | ast.While():
                return any(visit(c) for c in node.orelse)
            case _:
                return any(visit(c) for c in ast.iter_child_nodes(node))

    return any(visit(s) for s in body)


def _returns(body: Sequence[ast.stmt]) -> bool:
    def visit(node: ast.AST) -> bool:
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            return False
        return any(visit(c) for c in ast.iter_child_nodes(node))

    return any(visit(s) for s in body)


def _run_for(ctx: Context, s: ast.For) -> Flow:
    with ctx.at(s.iter):
        iterable = evaluate(ctx, s.iter)
    held = ctx.key(f"<over{ctx.number()}>")  # what the loop goes over stays referred to, whatever happens to its name
    if cells_of(iterable):
        ctx.state.names[held] = iterable
    result = _run_for_over(ctx, s, iterable)
    ctx.state.names.pop(held, None)
    return result


def _run_for_over(ctx: Context, s: ast.For, iterable: Value) -> Flow:
    if isinstance(iterable, RangeValue) and iterable.parallel:
        if _left_early(s):
            ctx.fail("TP111", "a parallel loop cannot be left early", "use range, or an if around the work.")
        run_plain_for(ctx, s, iterable, "prange")
        return _after_loop(ctx, s, False, None)
    if isinstance(iterable, Sequence_) and iterable.kind in ("tuple", "list", "namedtuple"):
        return _unrolled(ctx, s, list(iterable.items))
    if isinstance(iterable, Sequence_) and iterable.kind == "dict":
        return _unrolled(ctx, s, [_static(k) for k in iterable.keys])
    if isinstance(iterable, Zipped) and all(isinstance(p, Sequence_) for p in iterable.parts):
        return _unrolled(ctx, s, _zipped_items(ctx, iterable))
    if not _left_early(s):
        run_plain_for(ctx, s, iterable)
        return _after_loop(ctx, s, False, None)
    count, element = iteration(ctx, iterable)
    plan = iterable.recover if isinstance(iterable, RangeValue) else ""
    return _for_with_exits(ctx, s, count, element, plan)


def run_plain_for(ctx: Context, s: ast.For, iterable: Value, plan: str = "") -> None:
    """A `for` that runs to its end: one Core loop. `plan` "prange" asks a later pass to make it parallel."""
    count, element = iteration(ctx, iterable)
    plan = plan or (iterable.recover if isinstance(iterable, RangeValue) else "")
    keys, live_after = _loop_keys(ctx, s)

    def run(index: Var | None) -> None:
        assert index is not None
        with ctx.at(s.target):
            assign(ctx, s.target, element(index))
        run_block(ctx, s.body)

    compile_loop(
        ctx,
        _array_keys(ctx, keys, s),
        live_after,
        run,
        bound=count,
        plan=plan,
        guess_cells=_guess_cells(ctx, s),
        exchanged=_exchanged(ctx, s),
    )


def _for_with_exits(ctx: Context, s: ast.For, count: Atom, element: Callable[[Atom], Value], plan: str) -> Flow:
    """A `for` that may be left early: a `while` that counts."""
    counter = f"<i{ctx.number()}>"
    keys, live_after = _loop_keys(ctx, s, frozenset({FLOW, RETURN, counter}))
    ctx.bind(FLOW, Scalar(i64(0)))
    ctx.bind(counter, Scalar(i64(0)))

    def position() -> Atom:
        value = ctx.state.names[ctx.key(counter)]
        assert isinstance(value, Scalar)
        return value.atom

    def test() -> Atom:
        return _still_running(ctx, lambda: scalars.compare_atoms(ctx, "lt", position(), count))

    def run(_: Var | None) -> None:
        at = position()
        with ctx.at(s.target):
            assign(ctx, s.target, element(at))
        result = run_block(ctx, s.body)
        _finish_iteration(ctx, result, True)
        ctx.bind(counter, Scalar(scalars.apply(ctx, "add", at, i64(1))))

    saved = ctx.state.names.pop(ctx.key(RETURN), None)
    compile_loop(
        ctx,
        _array_keys(ctx, keys, s),
        live_after,
        run,
        test=test,
        plan=plan,
        guess_cells=_guess_cells(ctx, s),
        exchanged=_exchanged(ctx, s),
    )
    ctx.state.names.pop(ctx.key(counter), None)
    return _after_loop(ctx, s, True, saved)


def _static(value: object) -> Value:
    return weak(value) if isinstance(value, bool | int | float | complex) else Static(value)


def _zipped_items(ctx: Context, value: Zipped) -> list[Value]:
    rows: list[Value] = []
    parts = [p.items for p in value.parts if isinstance(p, Sequence_)]
    for k, items in enumerate(zip(*parts, strict=False)):
        if value.start is not None:
            rows.append(Sequence_((scalars.binary(ctx, "Add", value.start, weak(k)), *items)))
        else:
            rows.append(Sequence_(tuple(items)))
    return rows


def _unrolled(ctx: Context, s: ast.For, items: list[Value]) -> Flow:
    """A loop over a tuple: one copy of the body for each element."""
    if not items:
        return run_block(ctx, s.orelse)
    with ctx.at(s.target):
        assign(ctx, s.target, items[0])
    result = run_block(ctx, s.body)
    if "continue" in result.kinds:
        again = Flow((result.kinds - {"continue"}) | {"next"}, result.atom)
        if result.atom is not None:
            is_continue = scalars.compare_atoms(ctx, "eq", result.atom, i64(CODES["continue"]))
            code = scalars.select(ctx, is_continue, i64(0), result.atom)
            again = Flow(again.kinds, code) if len(again.kinds) > 1 else Flow(again.kinds)
        result = again
    after = _guarded(ctx, result, lambda: _unrolled(ctx, s, items[1:])) if "next" in result.kinds else result
    return _without_break(ctx, after)


def _without_break(ctx: Context, result: Flow) -> Flow:
    if "break" not in result.kinds:
        return result
    kinds = (result.kinds - {"break"}) | {"next"}
    if len(kinds) == 1:
        return Flow(kinds)
    broke = scalars.compare_atoms(ctx, "eq", result.code, i64(CODES["break"]))
    return Flow(kinds, scalars.select(ctx, broke, i64(0), result.code))


def iteration(ctx: Context, iterable: Value) -> tuple[Atom, Callable[[Atom], Value]]:
    """How many iterations, and the element at a position."""
    match iterable:
        case RangeValue(start=start, step=step):
            return range_count(ctx, iterable), lambda i: _range_element(ctx, start, step, i)
        case Array(type=t):
            return ctx.size_atom(t.shape[0]), lambda i: row_view(ctx, iterable, i)
        case Zipped(parts=parts, start=first):
            found = [iteration(ctx, p) for p in parts]
            count = found[0][0]
            for other, _ in found[1:]:
                if other is not count and other != count:
                    count = scalars.apply(ctx, "min", count, other)

            def element(i: Atom) -> Value:
                items = [make(i) for _, make in found]
                if first is not None:
                    number = (
                        Scalar(i, True) if first.atom == i64(0) else scalars.binary(ctx, "Add", first, Scalar(i, True))
                    )
                    return Sequence_((number, *items))
                return Sequence_(tuple(items))

            return count, element
        case Sequence_(items=items):
            from tapeless.frontend.arrays import make_array

            made = make_array(ctx, Sequence_(items, "list"))
            return iteration(ctx, made)
        case _:
            ctx.fail(
                "TP104", f"cannot loop over {type_text(iterable)}", "loop over range, arrays, zip, enumerate or tuples."
            )


def range_count(ctx: Context, r: RangeValue) -> Atom:
    op = scalars.apply
    start, stop, step = (scalars.to_index(ctx, x, "an argument of range") for x in (r.start, r.stop, r.step))
    if isinstance(step, Const):
        k = int(step.value.real)
        if k == 0:
            ctx.fail("TP112", "range() step must not be zero")
        span = op(ctx, "sub", stop, start) if k > 0 else op(ctx, "sub", start, stop)
        if abs(k) != 1:
            span = op(ctx, "floordiv", op(ctx, "add", span, i64(abs(k) - 1)), i64(abs(k)))
        if start == i64(0) and k == 1:
            return span  # a negative count runs no iteration
        return op(ctx, "max", span, i64(0))
    ctx.check(op(ctx, "ne", step, i64(0)), "ValueError", "range() arg 3 must not be zero")
    up = op(ctx, "gt", step, i64(0))
    distance = scalars.select(ctx, up, op(ctx, "sub", stop, start), op(ctx, "sub", start, stop))
    size = op(ctx, "abs", step)
    count = op(ctx, "floordiv", op(ctx, "add", distance, op(ctx, "sub", size, i64(1))), size)
    return op(ctx, "max", count, i64(0))


def _range_element(ctx: Context, start: Scalar, step: Scalar, i: Atom) -> Scalar:
    value = i
    if step.atom != i64(1):
        value = scalars.apply(ctx, "mul", value, scalars.to_index(ctx, step))
    if start.atom != i64(0):
        value = scalars.apply(ctx, "add", scalars.to_index(ctx, start), value)
    return Scalar(value, True)


# -- assert, raise, print


def _assert(ctx: Context, s: ast.Assert) -> None:
    cond = truth_of(ctx, evaluate(ctx, s.test))
    message = _constant_text(ctx, s.msg) if s.msg is not None else ""
    if isinstance(cond, Const) and not cond.value:
        ctx.check(cond, "AssertionError", _escape(message))
        return
    ctx.check(cond, "AssertionError", _escape(message))


def _raise(ctx: Context, s: ast.Raise) -> None:
    error, message = "RuntimeError", ""
    match s.exc:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if len(args) <= 1:
            error = name
            message = _constant_text(ctx, args[0]) if args else ""
        case ast.Name(id=name):
            error = name
        case _:
            ctx.fail("TP101", "only 'raise SomeError(\"constant message\")' can be compiled")
    import builtins

    if not (isinstance(getattr(builtins, error, None), type) and issubclass(getattr(builtins, error), Exception)):
        ctx.fail("TP101", f"'{error}' is not a built-in exception", "raise ValueError, RuntimeError or the like.")
    ctx.check(Const(False, DType.bool), error, _escape(message))


def _constant_text(ctx: Context, node: ast.expr) -> str:
    value = evaluate(ctx, node)
    if isinstance(value, Static) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return str(value.atom.value)
    ctx.fail("TP101", "the message must be a constant text", "write it as a plain string.")


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def print_values(ctx: Context, args: Sequence[Value]) -> None:
    parts: list[str | int] = []
    atoms: list[Atom] = []
    for k, value in enumerate(args):
        if k:
            parts.append(" ")
        match value:
            case Static(value=str() as text):
                parts.append(text)
            case Scalar(atom=Const() as c, weak=True):
                parts.append(repr(c.value))
            case Scalar(atom=atom):
                parts.append(len(atoms))
                atoms.append(atom)
            case Array() if value.type.rank >= 1:
                parts.append(len(atoms))
                atoms.append(read(ctx, value))
            case _:
                ctx.fail(
                    "TP101",
                    f"{type_text(value)} cannot be printed from compiled code",
                    "print numbers, arrays and texts.",
                )
    ctx.b.effect(Print(tuple(parts), tuple(atoms)))
