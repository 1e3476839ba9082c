"""Calls of reversible functions in compiled code.

Outside of derivatives the plain form of the function is compiled in place. Under a transform the call is one statement
with a rule of its own (`custom_calls`): backwards the function is undone step by step, with the adjoints of its state
(`reversible/dialect/adjoint.py`), and nothing is kept but the state at both ends. One that cannot be undone, because a
second condition is missing, is differentiated like any other function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeless.ad.recovery.drift import TOLERANCE, compare_inputs
from tapeless.frontend.data.arrays import as_numeric, broadcast_to, write
from tapeless.frontend.data.leaves import atom_of, leaves_of, number_of, own, rebuilt, tangents_like, type_of, value_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_value, operator
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Array, Builtin, Scalar, Sequence_, Static, Value, weak
from tapeless.ir.types import Type, Var
from tapeless.ops.emit import Emit, differentiable
from tapeless.transforms import reversible_checks  # noqa: F401  (it fills a table)
from tapeless.transforms.custom_calls import Rules, Uncovered, call_with
from tapeless.transforms.reversible_arrays import keep_apart
from tapeless.transforms.reversible_trails import compare_trails
from tapeless.transforms.traced import Arguments, Keywords, pull, trace

NONE = Static(None)


def call(ctx: Context, function: Any, args: Arguments, keywords: Keywords) -> Value:
    """`function`: an object with the forms of a reversible function (`api/reversible.py`)."""
    if not ctx.transforms or ctx.reversing or function.undecided is not None:
        form = "checked" if ctx.options.check and not ctx.transforms else "unchecked"
        return call_value(ctx, _form(ctx, function, form), args, keywords)
    args, keywords = _by_position(function, args, keywords)
    state = ctx.state.copy()
    try:
        return _Rule(ctx, function, len(args), list(keywords)).call(args, keywords)
    except Uncovered:  # by functions among the keywords
        ctx.state = state
        return call_value(ctx, _form(ctx, function, "unchecked"), args, keywords)


def _by_position(function: Any, args: Arguments, keywords: Keywords) -> tuple[Arguments, Keywords]:
    """State that was given by name, in its place; what is missing is for the call to say."""
    names = function.state[len(args) :]
    if not all(n in keywords for n in names):
        return args, keywords
    return [*args, *(keywords[n] for n in names)], {n: v for n, v in keywords.items() if n not in names}


def _form(ctx: Context, function: Any, *path: str) -> Value:
    """A Python function that a reversible one has."""
    origin = ctx.reads.origin_of(function)
    for name in path:
        origin = ctx.reads.step(origin, "own attribute", name)
    return from_python(ctx, origin, path[-1])


def _adjoint_form(ctx: Context, function: Any, active: tuple[str, ...], trailed: bool) -> Value:
    name = "trailed_adjoint_forms" if trailed else "adjoint_forms"
    forms = ctx.reads.step(ctx.reads.origin_of(function), "own attribute", name)
    return from_python(ctx, ctx.reads.step(forms, "own item", active), "adjoint")


@contextmanager
def _reversing(ctx: Context) -> Iterator[None]:
    """Calls of other reversible functions inside are part of this one."""
    ctx.reversing += 1
    try:
        yield
    finally:
        ctx.reversing -= 1


class _Rule:
    """A call with a rule. Its arguments are the state, then the values of keywords."""

    def __init__(self, ctx: Context, function: Any, count: int, keywords: list[str]) -> None:
        self.ctx, self.function, self.count, self.keywords = ctx, function, count, keywords

    def call(self, args: Arguments, keywords: Keywords) -> Value:
        ctx = self.ctx
        names = (*self.function.state, *keywords)
        if len(names) == len(args) + len(keywords):  # if not, the call says so
            keep_apart(ctx, names, self.function.changed, [*args, *keywords.values()])
        parts = {"function": self.forward, "fwd": self.both, "bwd": self.backward, "inverse": self.inverse}
        rules = Rules(
            self.function,
            self.function.__name__,
            lambda word: Builtin(self.function.__name__, parts[word]),
            frozenset({"fwd", "bwd", "inverse"}),
            open=True,
            complete=True,
        )
        found = call_with(ctx, rules, [*args, *keywords.values()])
        assert isinstance(found, Sequence_)
        return Sequence_(tuple(self._in_place(a, v) for a, v in zip(args, found.items, strict=True)))

    def _in_place(self, given: Value, found: Value) -> Value:
        """Arrays of the caller hold what the function has made of them."""
        leaves: list[Value] = []
        for old, new in zip(leaves_of(given), leaves_of(found), strict=True):
            if isinstance(old, Array) and isinstance(new, Array):
                write(self.ctx, old, atom_of(self.ctx, new))
                leaves.append(old)
            else:
                leaves.append(new)
        return rebuilt(given, leaves)

    # -- parts

    def run(self, args: list[Value], *form: str) -> Value:
        """A form of the function, on arrays of its own."""
        ctx, given = self.ctx, args[self.count :]
        with _reversing(ctx):
            state = [own(ctx, a) for a in args[: self.count]]
            return call_value(
                ctx, _form(ctx, self.function, *form), state, dict(zip(self.keywords, given, strict=True))
            )

    def forward(self, ctx: Context, args: list[Value], _: dict[str, Value]) -> Value:
        return self.run(args, "unchecked")

    def inverse(self, ctx: Context, args: list[Value], _: dict[str, Value]) -> Value:
        return self.run(args, "inverse", "unchecked")

    def both(self, ctx: Context, args: list[Value], _: dict[str, Value]) -> Value:
        """The results, both ends of the way, and what was left on it."""
        trail: Value = NONE
        if self.function.watched:
            found = self.run(args, "trailed")
            assert isinstance(found, Sequence_)
            end, trail = Sequence_(found.items[: self.count]), Sequence_(found.items[self.count :])
        else:
            end = self.forward(ctx, args, {})  # type: ignore[assignment]
        start = Sequence_(tuple(args))
        return Sequence_((end, Sequence_((start, own(ctx, end), trail))))

    def backward(self, ctx: Context, args: list[Value], _: dict[str, Value]) -> Value:
        ends, adjoints = args
        assert isinstance(ends, Sequence_) and isinstance(adjoints, Sequence_)
        start, end, trail = ends.items
        assert isinstance(start, Sequence_) and isinstance(end, Sequence_)
        given = start.items[self.count :]
        keywords = dict(zip(self.keywords, given, strict=True))
        given_adjoints = [_beside(v, a) for v, a in zip(end.items, adjoints.items, strict=True)]
        found, sums, rest = back(ctx, self.function, list(end.items), given_adjoints, keywords, trail)
        names = self.function.state
        if rest is not None:
            types = [type_of(v) for v in leaves_of(end)]
            dtypes = [t.dtype for t in types if t is not None and t.dtype in TOLERANCE]
            compare_trails(ctx, self.function.__name__, trail, rest, dtypes)
        for name, a, b, z in zip(names, start.items[: self.count], found, end.items, strict=True):
            if name in self.function.remembered:  # what nobody reads cannot spoil an adjoint
                _compare(ctx, name, a, b, z)
        mine = dict(zip((*names, *self.keywords), sums, strict=True))
        return Sequence_(
            tuple(_zero_unless(a, mine[n]) for n, a in zip((*names, *self.keywords), start.items, strict=True))
        )


def _beside(value: Value, adjoint: Value) -> Value:
    """An adjoint with what has none as it is in the value."""
    pairs = zip(leaves_of(value), leaves_of(adjoint), strict=True)
    return tangents_like(value, [a if _moves(v) else v for v, a in pairs])


def _zero_unless(argument: Value, adjoint: Value) -> Value:
    return adjoint if any(_moves(leaf) for leaf in leaves_of(argument)) else NONE


def _moves(leaf: Value) -> bool:
    type = type_of(leaf)
    return type is not None and differentiable(type)


def _compare(ctx: Context, name: str, start: Value, found: Value, end: Value) -> None:
    """What the backward pass ended at, with what is known."""
    for a, b, z in zip(leaves_of(start), leaves_of(found), leaves_of(end), strict=True):
        if _moves(a):
            assert isinstance(a, (Scalar, Array)) and isinstance(b, (Scalar, Array)) and isinstance(z, (Scalar, Array))
            types = [type_of(x) for x in (a, b, z)]
            if all(t is not None and t.dtype is types[0].dtype for t in types):  # type: ignore[union-attr]
                first, last, final = (atom_of(ctx, x) for x in (a, b, z))
                compare_inputs(Emit(ctx.b), Var(name, first.type), first, last, final, ctx.span)


# -- what adjoint forms call


def back(
    ctx: Context, function: Any, end: list[Value], adjoints: list[Value], keywords: Keywords, trail: Value = NONE
) -> tuple[list[Value], list[Value], Value | None]:
    """A function backwards, from the state at its end and its adjoints (None where there is none): the state at its
    start, adjoints of that and of the keywords, and what was not found of the trail, if there is one.
    """
    names = (*function.state, *keywords)
    values = [*end, *keywords.values()]
    active = function.active([n for n, v in zip(names, values, strict=True) if any(map(_moves, leaves_of(v)))])
    seeds = dict(zip(function.state, adjoints, strict=True))
    given = [_start(ctx, v, seeds.get(n, NONE)) for n, v in zip(names, values, strict=True) if n in active]
    trails = [own(ctx, part) for part in trail.items] if isinstance(trail, Sequence_) else []
    form = _adjoint_form(ctx, function, active, bool(trails))
    with _reversing(ctx):
        result = call_value(ctx, form, [*(own(ctx, v) for v in end), *given, *trails], keywords)
    assert isinstance(result, Sequence_)
    found = list(result.items)
    rest = Sequence_(tuple(found[-len(trails) :])) if trails else None
    found = found[: len(found) - len(trails)]
    state, sums = found[: len(end)], dict(zip(active, found[len(end) :], strict=True))
    return state, [sums.get(n, weak(0)) for n in names], rest


def _start(ctx: Context, value: Value, adjoint: Value) -> Value:
    """The adjoint that a name goes back with."""
    if isinstance(value, Scalar) and not _moves(value):
        return weak(0)
    return _zeros_of(ctx, value) if adjoint == NONE else own(ctx, adjoint)


@operator("reversible.back")
def _back(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """(state, adjoints of what has some, adjoints of keywords) in one tuple; arrays stay where they are."""
    called, state, adjoints = args
    assert isinstance(state, Sequence_) and isinstance(adjoints, Sequence_)
    function = _reversible(ctx, called)
    if function.undecided is not None:
        ctx.not_invertible("TP406", f"'{function.__name__}' has no inverse")
    rule = _Rule(ctx, function, len(state.items), list(keywords))
    found, sums, _ = back(ctx, function, list(state.items), list(adjoints.items), keywords)
    states = [rule._in_place(a, v) for a, v in zip(state.items, found, strict=True)]
    mine = [rule._in_place(a, s) for a, s in zip(adjoints.items, sums, strict=False) if a != NONE]
    return Sequence_((*states, *mine, *sums[len(adjoints.items) :]))


@operator("reversible.tested")
def _tested(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A reversible function with its tests, in one that has its own."""
    function = _reversible(ctx, args[0])
    return _form(ctx, function, "checked" if function.check else "unchecked")


def _reversible(ctx: Context, value: Value) -> Any:
    """What must be a reversible function: a keyword may have been anything."""
    if not isinstance(value, Static) or not getattr(value.value, "__tapeless_reversible__", False):
        ctx.not_invertible("TP401", f"{type_text(value)} is not reversible", hint="give it @tp.reversible.")
    return value.value


@operator("reversible.zeros")
def _zeros(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Of an ancilla: a whole number may become another."""
    (value,) = args
    return weak(0) if isinstance(value, Scalar) and not _moves(value) else _zeros_of(ctx, value)


def _zeros_of(ctx: Context, value: Value) -> Value:
    """An adjoint to begin with. In the place of what has no derivatives is that itself."""
    leaves: list[Value] = []
    for leaf in leaves_of(value):
        type = type_of(leaf)
        if type is None or not differentiable(type):
            leaves.append(leaf)
        else:
            leaves.append(value_of(ctx, Emit(ctx.b).zero(Type(type.dtype, ctx.dims(type.shape)))))
    return tangents_like(value, leaves)


@operator("reversible.pull")
def _pull(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """What adjoints of targets, to which a function of the operands is added, are pulled back to."""
    function, given_targets, adjoints, *operands = args
    assert isinstance(given_targets, Sequence_) and isinstance(adjoints, Sequence_)
    targets = [number_of(t) for t in given_targets.items]

    def fitting(ctx: Context, given: list[Value], _: dict[str, Value]) -> Value:
        """What is added is as large as the target, and of its type."""
        leaves = iter(given)
        value = call_value(ctx, function, [rebuilt(o, [next(leaves) for _ in leaves_of(o)]) for o in operands])
        values = value.items if isinstance(value, Sequence_) and value.cls is None else (value,)
        found: list[Value] = []
        for t, v in zip(targets, values, strict=True):
            type = type_of(t)
            assert type is not None
            number = as_numeric(ctx, v, "a reversible step")
            shape = ctx.dims(type.shape)
            atom = broadcast_to(ctx, number, shape, type.dtype, "a reversible step")
            found.append(value_of(ctx, Emit(ctx.b).broadcast(atom, shape) if shape and not atom.type.shape else atom))
        return Sequence_(tuple(found))

    given = [leaf for o in operands for leaf in leaves_of(o)]
    wrt = [k for k, v in enumerate(given) if _moves(v)]
    if not wrt or not all(_moves(t) for t in targets):
        return Sequence_(tuple(tangents_like(o, [weak(0) for _ in leaves_of(o)]) for o in operands))
    traced = trace(ctx, Builtin("step", fitting), given, {}, wrt)
    seeds = [_seed(ctx, a, t) for a, t in zip(adjoints.items, targets, strict=True)]
    _, found = pull(traced, seeds)
    sums = iter(found)
    adjoints_of = iter([value_of(ctx, next(sums)) if k in wrt else weak(0) for k in range(len(given))])
    return Sequence_(tuple(tangents_like(o, [next(adjoints_of) for _ in leaves_of(o)]) for o in operands))


def _seed(ctx: Context, adjoint: Value, target: Value) -> Any:
    assert isinstance(adjoint, (Scalar, Array))
    atom, type = atom_of(ctx, adjoint), type_of(target)
    assert type is not None
    return atom if atom.type.dtype is type.dtype else Emit(ctx.b).convert(atom, type.dtype)
