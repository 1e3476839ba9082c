"""Calls of functions with `tp.custom_vjp` or `tp.custom_jvp` in compiled code.

Outside of derivatives the function is compiled as if it had no rule. Inside, function and rules are traced apart, each
over fresh names of its arguments, and the call becomes one statement (`ad.rules.custom`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tapeless.ad.rules import custom
from tapeless.frontend.data.leaves import atom_of, leaves_of, rebuilt, tangents_like, type_of, value_of
from tapeless.frontend.source.origins import made_here
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import Handler, call_value, handles
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Array, Closure, Scalar, Sequence_, Static, Value
from tapeless.ir.builder import Builder
from tapeless.ir.core import Body, Lambda
from tapeless.ir.types import Atom, Type, Var, atom_dim
from tapeless.ir.walk import type_vars
from tapeless.ops.emit import Emit, differentiable
from tapeless.passes.tidy.dce import live_part
from tapeless.prelude.registry import Ruled
from tapeless.transforms.traced import Arguments, Keywords, fitted, leaves_like, resized

WRITES = "copy it (.copy()) and return the copy: derivatives see results only."
SAME = "return what the function itself returns."
DEEPEST = 3  # calls of a function in its own rule, each with other constants: so many derivatives can be taken


@dataclass(frozen=True)
class Rules:
    """A function with its rules: `function`, and `fwd` and `bwd`, or `jvp`, or all three, and perhaps `inverse`, read
    when they are needed. `of` tells it from others.
    """

    of: Any
    name: str
    part: Callable[[str], Value]
    has: frozenset[str]
    open: bool = False  # forward mode looks into the function itself
    complete: bool = False  # it gives all derivatives there are


class Uncovered(Exception):
    """See `call_with`."""


@dataclass(frozen=True)
class _Open:
    """A function whose rule is being traced, for arguments of this kind."""

    of: Any
    kinds: tuple[Any, ...]
    name: str
    out: Value
    types: tuple[Type, ...]


def call(ctx: Context, custom_rules: Any, args: Arguments, keywords: Keywords) -> Value:
    """`custom_rules`: an object with `function`, `nondiff_argnums`, and `fwd` and `bwd` or `jvp`."""
    if keywords:
        ctx.fail("TP112", "a function with a derivative of its own takes positional arguments only")

    def part(name: str) -> Value:
        return from_python(ctx, ctx.reads.step(ctx.reads.origin_of(custom_rules), "attribute", name), name)

    if not ctx.transforms:
        return call_value(ctx, part("function"), args)
    has = frozenset(word for word in ("fwd", "bwd", "jvp") if getattr(custom_rules, word) is not None)
    name = custom_rules.function.__name__
    if not has:
        ctx.fail("TP306", f"'{name}' has no rule yet", custom_rules.missing)
    return call_with(ctx, Rules(custom_rules, name, part, has), args, custom_rules.nondiff_argnums)


@handles(Ruled)
def _ruled(function: Ruled) -> Handler:
    """A function of the prelude with rules of its own."""

    def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        def part(name: str) -> Value:
            return from_python(ctx, made_here(getattr(function, name)), name)

        if not ctx.transforms:
            return call_value(ctx, part("function"), args)
        has = frozenset(word for word in ("fwd", "bwd", "jvp") if getattr(function, word) is not None)
        made, copies = ctx.b.made, ctx.copied
        found = call_with(ctx, Rules(function, function.function.__name__, part, has), args, function.constant)
        ctx.copied = copies  # rules are no copies that the user wrote
        if ctx.copying is not None:
            ctx.copying += ctx.b.made - made
        return found

    return handler


def call_with(ctx: Context, rules: Rules, args: Arguments, constant: Sequence[int] = ()) -> Value:
    """As one statement with rules of its own. `constant`: numbers of arguments that are not differentiated.

    Raises `Uncovered` if a rule is to be `complete`, and uses numbers of outside, of which it knows no derivatives.
    """
    function = rules.part("function")
    kept = {k: a for k, a in enumerate(args) if k in constant}
    given = [a for k, a in enumerate(args) if k not in kept]
    order = [k for k in range(len(args)) if k not in kept]
    atoms = [atom_of(ctx, leaf) for a in given for leaf in leaves_of(a) if isinstance(leaf, (Scalar, Array))]
    kinds = (kept, *map(_kind, given))
    same = _own_rule(ctx, rules, kinds)
    if same is not None:
        return _results(ctx, custom.call(ctx.b, same.name, atoms, same.types), same.out)

    def placed(values: Sequence[Value]) -> list[Value]:
        """All arguments, with these in place of the differentiable ones."""
        found = dict(kept)
        found.update(zip(order, values, strict=True))
        return [found[k] for k in range(len(args))]

    names = [_fresh(ctx, leaf) for a in given for leaf in leaves_of(a)]
    params = [p for p, _ in names if p is not None]
    values = _together(given, [v for _, v in names])
    out, lam = _traced(ctx, params, lambda: call_value(ctx, function, placed(values)), rules.name)
    out, lam = _with_sizes(ctx, out, lam, atoms)
    name = ctx.b.functions.reserve(rules.name)
    forward = backward = tangent = inverse = None
    if sum(r.of is rules.of for r in ctx.rules) < DEEPEST:
        with _being_made(ctx, _Open(rules.of, kinds, name, out, lam.result_types)):
            if "bwd" in rules.has:
                forward, backward = _with_bwd(ctx, rules, kept, given, placed, out, leaves_of(out))
            if "jvp" in rules.has:
                tangent = _with_jvp(ctx, rules, kept, given, out)
            if "inverse" in rules.has:
                inverse = _with_inverse(ctx, rules, given, out)
    outside = custom.complete(ctx.b.functions, name, lam, forward, backward, tangent, inverse, rules.open)
    fixed = {c.param for c in ctx.captured.values()}
    if rules.complete and any(differentiable(v.type) and v not in fixed for v in outside.others):
        raise Uncovered
    return _results(ctx, custom.call(ctx.b, name, outside.around(atoms)), out)


def _with_sizes(ctx: Context, out: Value, lam: Lambda, args: Sequence[Atom]) -> tuple[Value, Lambda]:
    """The result of a function and its lambda, in sizes that are known where it is called: those that the function
    works out are worked out here, too.
    """
    inside = {v for s in lam.body.stms for v in s.vars} | set(lam.params)
    sizes = list(dict.fromkeys(d for t in lam.result_types for d in type_vars(t) if d in inside))
    if not sizes:
        return out, lam
    needed, _ = live_part(Body(lam.body.stms, tuple(sizes)))
    here = dict(zip(sizes, ctx.b.inline(Lambda(lam.params, needed), args), strict=True))
    types = [
        Type(t.dtype, tuple(atom_dim(here[d]) if isinstance(d, Var) and d in here else d for d in t.shape))
        for t in lam.result_types
    ]
    b = Builder(ctx.span)
    results = [
        b.reshape(r, t.shape) if isinstance(r, Var) and t.shape else r
        for r, t in zip(lam.body.results, types, strict=True)
    ]
    left = iter(types)
    leaves = [
        value_of(ctx, Var("c", next(left)), isinstance(leaf, Scalar) and leaf.weak)
        if type_of(leaf) is not None
        else leaf
        for leaf in leaves_of(out)
    ]
    return rebuilt(out, leaves), Lambda(lam.params, Body((*lam.body.stms, *b.stms), tuple(results)))


def _own_rule(ctx: Context, rules: Rules, kinds: tuple[Any, ...]) -> _Open | None:
    """The rule that this call is part of: Note [Rules that call their function] in `ad.rules.custom`."""
    found: _Open | None = next((r for r in ctx.rules if r.of is rules.of and r.kinds == kinds), None)
    if found is not None and found is not ctx.rules[-1]:
        ctx.fail("TP306", f"the rules of '{rules.name}' and of what they call need each other")
    return found


@contextmanager
def _being_made(ctx: Context, rule: _Open) -> Iterator[None]:
    """While a rule is traced. That it calls the function again is not recursion."""
    ctx.rules.append(rule)
    calls, ctx.calls = ctx.calls, []
    try:
        yield
    finally:
        ctx.calls = calls
        ctx.rules.pop()


def _kind(value: Value) -> Value:
    """The container of a value with its types."""
    return rebuilt(value, [_leaf_kind(leaf) for leaf in leaves_of(value)])


def _leaf_kind(leaf: Value) -> Value:
    type = type_of(leaf)
    return leaf if type is None else Static((type, isinstance(leaf, Scalar) and leaf.weak))


def _results(ctx: Context, results: Sequence[Var], out: Value) -> Value:
    found = iter(results)
    leaves = [
        value_of(ctx, next(found), isinstance(leaf, Scalar) and leaf.weak)
        if isinstance(leaf, (Scalar, Array))
        else leaf
        for leaf in leaves_of(out)
    ]
    return rebuilt(out, leaves)


def _fresh(ctx: Context, leaf: Value) -> tuple[Var | None, Value]:
    """A parameter for a number or an array, and the value that it is in a rule."""
    type = type_of(leaf)
    if type is None:
        return None, leaf
    p = Var("x", type)
    if isinstance(leaf, Scalar):
        return p, Scalar(p, leaf.weak)
    return p, ctx.new_cell(p, "x")


def _together(shapes: Sequence[Value], leaves: Sequence[Value]) -> list[Value]:
    """Leaves in the containers of `shapes`."""
    rest = list(leaves)
    found = []
    for shape in shapes:
        count = len(leaves_of(shape))
        found.append(rebuilt(shape, rest[:count]))
        rest = rest[count:]
    return found


def _traced(ctx: Context, params: Sequence[Var], run: Any, pure: str = "") -> tuple[Value, Lambda]:
    """What a function gives, and the lambda that computes the numbers in it. Rules may write what they are given, for
    themselves; a function of the name `pure` must not.
    """
    state, written = ctx.state.copy(), set(ctx.written_cells)
    with ctx.b.region() as stms:
        out = run()
        atoms = tuple(atom_of(ctx, leaf) for leaf in leaves_of(out) if isinstance(leaf, (Scalar, Array)))
    cells = ctx.state.cells
    for cell in state.cells:
        if cells.get(cell) is not state.cells[cell] and (pure or state.cells[cell] not in params):
            ctx.fail("TP306", f"'{pure or 'the rule'}' writes an array that it did not make", WRITES)
    ctx.state, ctx.written_cells = state, written
    for leaf in leaves_of(out):  # so that its types can be asked for later
        if isinstance(leaf, Array):
            ctx.state.cells.setdefault(leaf.cell, cells[leaf.cell])
    return out, Lambda(tuple(params), Body(tuple(stms), atoms))


def _derivatives_of(ctx: Context, outs: Sequence[Value], out: Value) -> tuple[list[Var], Value]:
    """Parameters for adjoints (or tangents) of results, and the container of them that a rule gets."""
    params: list[Var] = []
    leaves: list[Value] = []
    for leaf in outs:
        type = type_of(leaf)
        if type is None or not differentiable(type):
            leaves.append(leaf)
            continue
        p, value = _fresh(ctx, leaf)
        assert p is not None
        params.append(p)
        leaves.append(value)
    return params, tangents_like(out, leaves)


def _with_bwd(
    ctx: Context,
    rules: Rules,
    kept: dict[int, Value],
    given: Sequence[Value],
    placed: Any,
    out: Value,
    outs: list[Value],
) -> tuple[Lambda, Lambda]:
    names = [_fresh(ctx, leaf) for a in given for leaf in leaves_of(a)]
    params = [p for p, _ in names if p is not None]
    values = _together(given, [v for _, v in names])
    name = rules.name

    def run_forward() -> Value:
        rule = rules.part("fwd")
        found = call_value(ctx, rule, placed(values))
        with _at_rule(ctx, rule):
            if not isinstance(found, Sequence_) or len(found.items) != 2:
                ctx.fail(
                    "TP306", f"the forward rule of '{name}' returns {type_text(found)}", "return (result, residuals)."
                )
            return Sequence_(
                (_as_result(ctx, found.items[0], out, f"result of the forward rule of '{name}'"), found.items[1])
            )

    both, forward = _traced(ctx, params, run_forward)
    assert isinstance(both, Sequence_)
    residuals = both.items[1]
    kept_names = [_fresh(ctx, leaf) for leaf in leaves_of(residuals)]
    again = rebuilt(residuals, [v for _, v in kept_names])
    adj_params, adjs = _derivatives_of(ctx, outs, out)
    args = [*kept.values(), again, adjs]

    def run() -> Value:
        rule = rules.part("bwd")
        found = call_value(ctx, rule, args)
        with _at_rule(ctx, rule):
            if not isinstance(found, Sequence_) or len(found.items) != len(given):
                hint = f"return a tuple of {len(given)}: the adjoint of each argument, None for zeros."
                ctx.fail("TP306", f"the backward rule of '{name}' returns {type_text(found)}", hint)
            return _fitted(ctx, given, found.items, f"adjoint that the backward rule of '{name}' returns")

    _, backward = _traced(ctx, [*(p for p, _ in kept_names if p is not None), *adj_params], run)
    return forward, backward


@contextmanager
def _at_rule(ctx: Context, rule: Value) -> Iterator[None]:
    """What is wrong with what a rule returns is shown at the rule."""
    if not isinstance(rule, Closure):
        yield
        return
    ctx.sources[rule.source.file] = rule.source
    with ctx.at_span(rule.source.span(rule.node)):
        yield


def _as_result(ctx: Context, found: Value, out: Value, what: str) -> Value:
    """The result that a rule computes: what the function returns, in structure, types and sizes."""
    leaves: list[Value] = []
    leaves_found = leaves_of(found) if _kind_of(found) == _kind_of(out) else leaves_like(ctx, found, out, what, "TP306")
    for given, like in zip(leaves_found, leaves_of(out), strict=True):
        have, want = type_of(given), type_of(like)
        if (have is None) != (want is None) or (have is None and given != like):
            ctx.fail("TP306", f"the {what} is {type_text(given)} where the value is {type_text(like)}", SAME)
        if have is None or want is None:
            leaves.append(given)
            continue
        if (have.dtype, have.rank) != (want.dtype, want.rank):
            ctx.fail("TP306", f"the {what} is {type_text(given)} where the value is {type_text(like)}", SAME)
        assert isinstance(given, (Scalar, Array))
        atom = atom_of(ctx, given)
        if have.shape != want.shape:
            assert isinstance(atom, Var)
            atom = resized(ctx, atom, want, what)
        leaves.append(value_of(ctx, atom, isinstance(given, Scalar) and given.weak))
    return rebuilt(out, leaves)


def _kind_of(value: Value) -> Value:
    """The container of a value alone."""
    return rebuilt(value, [Static(None) for _ in leaves_of(value)])


def _fitted(ctx: Context, given: Sequence[Value], found: Sequence[Value], what: str) -> Value:
    """Adjoints of the leaves of arguments that have some, in their types; None stands for zeros."""
    leaves: list[Value] = []
    for a, value in zip(given, found, strict=True):
        for x, t in zip(leaves_of(a), leaves_like(ctx, value, a, what), strict=True):
            type = type_of(x)
            if type is None or not differentiable(type):
                continue
            atom = Emit(ctx.b).zero(type) if t == Static(None) else fitted(ctx, t, type, what)
            assert atom is not None
            leaves.append(value_of(ctx, atom))
    return Sequence_(tuple(leaves))


def _with_inverse(ctx: Context, rules: Rules, given: Sequence[Value], out: Value) -> Lambda | None:
    """From results to the arguments that they stand for; None if they are of other kinds."""
    assert isinstance(out, Sequence_)
    count = len(out.items)
    if [_kind(a) for a in given[:count]] != [_kind(v) for v in out.items]:
        return None
    names = [_fresh(ctx, leaf) for a in (*out.items, *given[count:]) for leaf in leaves_of(a)]
    values = _together([*out.items, *given[count:]], [v for _, v in names])
    params = [p for p, _ in names if p is not None]
    _, lam = _traced(ctx, params, lambda: call_value(ctx, rules.part("inverse"), values))
    return lam


def _with_jvp(ctx: Context, rules: Rules, kept: dict[int, Value], given: Sequence[Value], out: Value) -> Lambda:
    names = [_fresh(ctx, leaf) for a in given for leaf in leaves_of(a)]
    params = [p for p, _ in names if p is not None]
    values = _together(given, [v for _, v in names])
    moving: list[Var] = []
    tangents: list[Value] = []
    for a in given:
        more, value = _derivatives_of(ctx, leaves_of(a), a)
        moving.extend(more)
        tangents.append(value)
    args = [*kept.values(), Sequence_(tuple(values)), Sequence_(tuple(tangents))]

    def run() -> Value:
        rule, name = rules.part("jvp"), rules.name
        found = call_value(ctx, rule, args)
        with _at_rule(ctx, rule):
            if not isinstance(found, Sequence_) or len(found.items) != 2:
                ctx.fail("TP306", f"the rule of '{name}' returns {type_text(found)}", "return (result, tangent).")
            result = _as_result(ctx, found.items[0], out, f"result of the rule of '{name}'")
            return Sequence_(
                (result, _fitted(ctx, [out], [found.items[1]], f"tangent that the rule of '{name}' returns"))
            )

    _, tangent = _traced(ctx, [*params, *moving], run)
    return tangent
