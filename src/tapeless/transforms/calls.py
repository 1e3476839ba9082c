"""Transforms in compiled code: `tp.grad(f)(x)` traces `f` into a region of its own, differentiates that, and puts the
result here.

Gives handlers for the front end, by the name of the transform. An inner transform is worked off while an outer one's
function is traced, so nesting needs nothing more. What a transform differentiates with respect to are fresh names for
the arguments: the same array seen through a closure is a constant, so perturbations cannot be confused. The arrays of
the caller never change: the function works on references of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data.leaves import atom_of, kept_leaves, leaves_of, number_of, rebuilt, type_of, value_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import OPERATORS, call_numpy, call_value
from tapeless.frontend.state.values import Array, Builtin, Scalar, Sequence_, Static, Value
from tapeless.ir.types import Atom, Const, DType, one_of
from tapeless.ops.emit import Emit, differentiable
from tapeless.transforms.jacobians import jacobian_like, op_hessian
from tapeless.transforms.options import (
    by_argument,
    constants,
    function_and_options,
    only_number,
    policy_from,
    positions,
)
from tapeless.transforms.traced import (
    BY_ARGNUMS,
    CLOSE_OVER,
    Arguments,
    Keywords,
    Traced,
    fitted,
    has_slope,
    here,
    leaves_like,
    parameters_of,
    pull,
    push,
    results_of,
    same_structure,
    seeds_of,
    tangent_result,
    trace,
)


def grad_like(name: str, with_value: bool) -> Callable[[Context, Arguments, Keywords], Value]:
    def make(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        function, options = function_and_options(ctx, name, args, keywords)
        has_aux = bool(options.get("has_aux", False))

        def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
            wrt, single = positions(ctx, options.get("argnums", 0), len(args))
            hint = CLOSE_OVER if name == "hvp" else BY_ARGNUMS
            traced = trace(ctx, function, args, keywords, wrt, policy_from(ctx, options), hint, name == "hvp")
            value = traced.result
            if has_aux:
                if not isinstance(value, Sequence_) or len(value.items) != 2:
                    ctx.fail("TP302", f"tp.{name} with has_aux needs a function that returns a pair (value, aux)")
                value = value.items[0]
            value = number_of(value)
            only_number(ctx, value, name)
            count = sum(isinstance(leaf, (Scalar, Array)) for leaf in traced.leaves)
            assert isinstance(value, Scalar)
            seeds = [one_of(value.dtype), *([None] * (count - 1))]
            results, adjoints = pull(traced, seeds)
            found = [value_of(ctx, a, traced.weak(k)) for k, a in enumerate(adjoints)]
            gradient = by_argument(traced, args, wrt, single, found)
            whole_result = rebuilt(traced.result, results_of(traced, results))
            if not with_value and not has_aux:
                return gradient
            if not with_value:
                assert isinstance(whole_result, Sequence_)
                return Sequence_((gradient, whole_result.items[1]))
            return Sequence_((whole_result, gradient))

        return Builtin(f"tp.{name}", run, parameters_of(function))

    return make


def op_vjp(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(out, pullback)"""
    options = constants(ctx, "vjp", keywords, ("memory", "recover"))
    if not args:
        ctx.fail("TP112", "tp.vjp is missing the function")
    primals = args[1:]
    wrt = list(range(len(primals)))
    traced = trace(ctx, args[0], primals, {}, wrt, policy_from(ctx, options), constants=True)
    results = here(traced)
    out = rebuilt(traced.result, results_of(traced, results))

    def pullback(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        if len(args) != 1 or keywords:
            ctx.fail("TP112", "a pullback takes one argument, the adjoint of the result")
        _, adjoints = pull(traced, seeds_of(ctx, traced, results, args[0], "adjoint"))
        found = [value_of(ctx, a, traced.weak(k)) for k, a in enumerate(adjoints)]
        return by_argument(traced, primals, wrt, False, found)

    return Sequence_((out, Builtin("pullback", pullback)))


def op_call(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """The function itself."""
    return args[0]


def op_pull(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """A function of the arguments (a tuple) and the adjoint of the result."""
    function, options = args[0], keywords

    def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        primals, adjoint = args
        assert isinstance(primals, Sequence_)
        found = op_vjp(ctx, [function, *primals.items], options)
        assert isinstance(found, Sequence_)
        return call_value(ctx, found.items[1], [adjoint])

    return Builtin("pullback", run)


def op_value(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """The function itself, on arrays of its own."""
    function = args[0]

    def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        traced = trace(ctx, function, args, keywords, ())
        return rebuilt(traced.result, results_of(traced, here(traced)))

    return Builtin("function", run)


def op_jvp(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(out, tangent)"""
    constants(ctx, "jvp", keywords, ("memory", "recover"))
    function, primals, tangents = _primals(ctx, "jvp", args)
    traced = trace(ctx, function, primals, {}, range(len(primals)), constants=True)
    results, found = push(traced, _tangents(ctx, traced, primals, tangents))
    out = rebuilt(traced.result, results_of(traced, results))
    return Sequence_((out, tangent_result(traced, results, found)))


def _primals(ctx: Context, name: str, args: Arguments) -> tuple[Value, list[Value], list[Value]]:
    if len(args) != 3 or not all(isinstance(a, Sequence_) for a in args[1:]):
        ctx.fail("TP112", f"tp.{name} takes a function, a tuple of arguments and a tuple of tangents")
    function, primals, tangents = args
    assert isinstance(primals, Sequence_) and isinstance(tangents, Sequence_)
    return function, list(primals.items), list(tangents.items)


def _tangents(ctx: Context, traced: Traced, primals: Sequence[Value], given: Sequence[Value]) -> list[Atom | None]:
    if len(primals) != len(given):
        ctx.fail("TP304", f"{len(primals)} arguments and {len(given)} tangents were given")
    leaves = [leaf for g, v in zip(given, primals, strict=True) for leaf in leaves_like(ctx, g, v, "tangent")]
    found: list[Value] = []
    pairs = [(leaf, kept) for v in primals for leaf, kept in zip(leaves_of(v), kept_leaves(v), strict=True)]
    for leaf, (primal, kept) in zip(leaves, pairs, strict=True):
        if has_slope(primal):
            found.append(leaf)
        elif kept:
            same_structure(ctx, leaf, primal, "tangent")
        else:
            _only_zero(ctx, leaf, primal)
    return [fitted(ctx, leaf, type_of(x), "tangent") for leaf, x in zip(found, traced.inputs, strict=True)]


def _only_zero(ctx: Context, tangent: Value, primal: Value) -> None:
    """What has no derivative does not move."""
    if tangent == Static(None):
        return
    reason = f"the tangent of {type_text(primal)}, which has no derivative, must be 0 or None"
    if isinstance(tangent, Scalar) and isinstance(tangent.atom, Const):
        if tangent.atom.value:
            ctx.fail("TP301", reason)
        return
    if not isinstance(tangent, (Scalar, Array)):
        ctx.fail("TP301", reason)
    moves = call_numpy(ctx, "any", [tangent]) if isinstance(tangent, Array) else tangent
    assert isinstance(moves, Scalar)
    emit = Emit(ctx.b)
    ctx.check(emit("eq", moves.atom, emit.zero(moves.atom.type)), "ValueError", reason)


def op_linearize(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(out, function of the tangents)"""
    constants(ctx, "linearize", keywords, ("memory", "recover"))
    if not args:
        ctx.fail("TP112", "tp.linearize is missing the function")
    primals = args[1:]
    traced = trace(ctx, args[0], primals, {}, range(len(primals)), constants=True)
    out = rebuilt(traced.result, results_of(traced, here(traced)))

    def forward(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        results, found = push(traced, _tangents(ctx, traced, primals, args))
        return tangent_result(traced, results, found)

    return Sequence_((out, Builtin("linear map", forward)))


def op_hvp(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(grad, Hessian times vector)"""
    constants(ctx, "hvp", keywords, ("memory", "recover"))
    function, primals, tangents = _primals(ctx, "hvp", args)
    wrt = Sequence_(tuple(Scalar(Const(k, DType.i64), True) for k in range(len(primals))))
    gradient = grad_like("hvp", False)(ctx, [function], {**keywords, "argnums": wrt})
    both = op_jvp(ctx, [gradient, Sequence_(tuple(primals)), Sequence_(tuple(tangents))], {})
    if len(primals) > 1:
        return both
    assert isinstance(both, Sequence_)
    return Sequence_(tuple(v.items[0] if isinstance(v, Sequence_) else v for v in both.items))


def op_stop_gradient(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    if len(args) != 1 or keywords:
        ctx.fail("TP112", "tp.stop_gradient takes one argument")
    emit = Emit(ctx.b)

    def stopped(leaf: Value) -> Value:
        type = type_of(leaf)
        if type is None or not differentiable(type):
            return leaf
        assert isinstance(leaf, (Scalar, Array))
        atom = emit.elementwise("stop_gradient", atom_of(ctx, leaf))
        return value_of(ctx, atom, isinstance(leaf, Scalar) and leaf.weak)

    return rebuilt(args[0], [stopped(leaf) for leaf in leaves_of(args[0])])


OPERATORS.update(
    {
        "grad": grad_like("grad", False),
        "value_and_grad": grad_like("value_and_grad", True),
        "call": op_call,
        "pull": op_pull,
        "value": op_value,
        "vjp": op_vjp,
        "jvp": op_jvp,
        "linearize": op_linearize,
        "hvp": op_hvp,
        "jacfwd": jacobian_like("jacfwd", True),
        "jacrev": jacobian_like("jacrev", False),
        "jacobian": jacobian_like("jacobian", None),
        "hessian": op_hessian,
        "stop_gradient": op_stop_gradient,
    }
)
