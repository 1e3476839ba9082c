"""Options of transforms: which must be known at compile time, and how results are put together by argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tapeless.ad.policy import Policy, policy_of
from tapeless.frontend.data.leaves import kept_leaves, leaves_of, tangents_like, type_of
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Scalar, Sequence_, Static, Value
from tapeless.ir.types import Const
from tapeless.ops.emit import differentiable
from tapeless.transforms.traced import Arguments, Keywords, Traced, has_slope

COMPILING = ("device", "threads", "fastmath", "cache", "check", "unsafe", "debug_nans", "coarsen", "deterministic")


def constants(ctx: Context, name: str, keywords: Keywords, allowed: Sequence[str]) -> dict[str, object]:
    """Options of a transform, which must be known."""
    found: dict[str, object] = {}
    for key, value in keywords.items():
        if key not in allowed:
            hint = f"give it to the function that is compiled: @tp.function({key}=...)." if key in COMPILING else ""
            ctx.fail("TP112", f"tp.{name} has no option '{key}' inside compiled code", hint)
        found[key] = constant(ctx, name, key, value)
    return found


def policy_from(ctx: Context, options: dict[str, object]) -> Policy:
    """What a transform, or else the function that is compiled, says about recoveries."""
    memory = options.get("memory")
    try:
        found = policy_of(ctx.options.memory if memory is None else memory, options.get("recover", "auto"))
    except ValueError as problem:
        ctx.fail("TP112", str(problem))
    if found.memory is None:
        return found
    room, more = ctx.room(found.memory)
    return replace(found, room=room, more=more)


def constant(ctx: Context, name: str, key: str, value: Value) -> object:
    match value:
        case Static(value=known):
            return known
        case Scalar(atom=Const(value=known)):
            return known
        case Sequence_(items=items):
            return tuple(constant(ctx, name, key, item) for item in items)
        case _:
            ctx.fail("TP104", f"tp.{name}: '{key}' must be known at compile time")


def positions(ctx: Context, argnums: object, count: int) -> tuple[list[int], bool]:
    """The positions of argnums, and whether it was a single one."""
    single = not isinstance(argnums, tuple)
    found: list[int] = []
    for k in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(k, int) or isinstance(k, bool) or not -count <= k < count:
            plural = "" if count == 1 else "s"
            ctx.call_error(
                f"argnums = {argnums} does not fit a call with {count} positional argument{plural}",
                "argnums count positional arguments from 0." if count else "pass the arguments by position.",
            )  # fmt: skip
        found.append(k % count)
    return found, single


OPTIONS = ("argnums", "has_aux", "memory", "recover")


def by_argument(
    traced: Traced, args: Sequence[Value], wrt: Sequence[int], single: bool, found: Sequence[Value]
) -> Value:
    """Leaves, which come in the order of the arguments, put together as these are, in the order of argnums. None stands
    for those without derivatives, but for indices of sparse matrices.
    """
    rest = iter(found)
    groups: dict[int, Value] = {}
    for k in sorted(set(wrt)):
        leaves = [
            next(rest) if has_slope(leaf) else leaf if kept else Static(None)
            for leaf, kept in zip(leaves_of(args[k]), kept_leaves(args[k]), strict=True)
        ]
        groups[k] = tangents_like(args[k], leaves)
    return groups[wrt[0]] if single else Sequence_(tuple(groups[k] for k in wrt))


def only_number(ctx: Context, value: Value, name: str) -> None:
    type = type_of(value)
    if type is None or type.shape or not differentiable(type):
        hint = "sum it, or use tp.jacobian." if type is not None and type.shape else ""
        ctx.fail("TP302", f"tp.{name} needs a function that returns one float, not {type_text(value)}", hint)
    if type.dtype.is_complex:
        ctx.fail("TP302", f"tp.{name} needs a real result, not a complex one", "take its real part, or use tp.vjp.")


def function_and_options(
    ctx: Context, name: str, args: Arguments, keywords: Keywords
) -> tuple[Value, dict[str, object]]:
    keywords = dict(keywords)
    if not args:
        ctx.fail("TP112", f"tp.{name} is missing the function")
    for key, value in zip(OPTIONS, args[1:], strict=False):
        keywords[key] = value
    return args[0], constants(ctx, name, keywords, OPTIONS)
