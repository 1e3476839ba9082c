"""What the parallel operators have in common: their arguments, rows, and the function that one of them applies.

Takes front-end values; gives Core variables and lambdas. The function sees its surroundings but must not write them:
results are what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.atoms import same_size
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Scalar, Sequence_, State, Value
from tapeless.ir.core import Body, Lambda
from tapeless.ir.types import Atom, Const, Dim, Var

# -- arguments


def bound_arguments(
    ctx: Context, what: str, args: list[Value], keywords: dict[str, Value], names: tuple[str, ...]
) -> dict[str, Value]:
    bound = dict(zip(names, args, strict=False))
    if len(args) > len(names):
        ctx.call_error(f"{what} takes at most {len(names)} arguments")
    for k, v in keywords.items():
        if k not in names:
            ctx.fail("TP112", f"{what} has no argument '{k}'")
        bound[k] = v
    return bound


def no_keywords(ctx: Context, what: str, keywords: dict[str, Value]) -> None:
    if keywords:
        ctx.fail("TP112", f"{what} has no argument '{next(iter(keywords))}'")


def need(ctx: Context, what: str, bound: dict[str, Value], names: Sequence[str]) -> None:
    for n in names:
        if n not in bound:
            ctx.call_error(f"{what} is missing the argument '{n}'")


def flag(ctx: Context, value: Value | None) -> bool:
    if value is None:
        return False
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return bool(value.atom.value)
    ctx.fail("TP104", "this option must be a constant True or False")


# -- containers of values


def leaves_of(value: Value) -> list[Value]:
    if isinstance(value, Sequence_):
        return [leaf for item in value.items for leaf in leaves_of(item)]
    return [value]


def rebuild(template: Value, leaves: list[Value]) -> Value:
    """The container `template` with other leaves; takes them from the front of the list."""
    if isinstance(template, Sequence_):
        items = tuple(rebuild(item, leaves) for item in template.items)
        return Sequence_(items, template.kind, template.keys, template.cls)
    return leaves.pop(0)


def rows_of(ctx: Context, what: str, value: Value) -> list[Var]:
    """The arrays in an argument, in order."""
    found: list[Var] = []
    for leaf in leaves_of(value):
        if not isinstance(leaf, Array):
            ctx.fail("TP104", f"{what} takes arrays, found {type_text(leaf)}", "pass an array, or a tuple of arrays.")
        found.append(read(ctx, leaf))
    return found


def common_width(ctx: Context, what: str, arrays: Sequence[Var]) -> Dim:
    width: Dim = ctx.canon(arrays[0].type.shape[0])
    for a in arrays[1:]:
        width = same_size(ctx, width, a.type.shape[0], f"arguments of {what}")
    return width


# -- the applied function


def element(ctx: Context, what: str, var: Var) -> Value:
    """A row inside the applied function."""
    if var.type.is_scalar:
        return Scalar(var)
    return ctx.new_cell(var, var.name, readonly=f"rows that {what} hands out cannot be written")


def pure_region(ctx: Context, what: str, params: Sequence[Var], make: Callable[[], Sequence[Atom]]) -> Lambda:
    """A lambda whose body may read but not write what is outside."""
    before: State = ctx.state
    ctx.state = before.copy()
    with ctx.b.region() as stms, ctx.showing_nothing():
        results = tuple(make())
    for cell, var in before.cells.items():
        if ctx.state.cells.get(cell) is not var or (cell in ctx.state.stale and cell not in before.stale):
            ctx.fail(
                "TP111",
                f"the function given to {what} writes the array '{cell.name}' of its surroundings",
                "return the value instead, or use 'for i in tp.prange(n)'.",
            )
    ctx.state = before
    return Lambda(tuple(params), Body(tuple(stms), results))


def atoms_of(ctx: Context, what: str, value: Value) -> list[Atom]:
    """What an applied function returned, leaf by leaf."""
    found: list[Atom] = []
    for leaf in leaves_of(value):
        match leaf:
            case Scalar(atom=atom):
                found.append(atom)
            case Array():
                found.append(read(ctx, leaf))
            case _:
                ctx.fail(
                    "TP104", f"the function given to {what} returns {type_text(leaf)}", "return numbers or arrays."
                )
    return found
