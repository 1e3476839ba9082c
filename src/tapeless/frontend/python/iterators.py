"""Functions of `itertools`, of items that are known: what they give is known too. `pairwise` goes over arrays as well."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tapeless.frontend.data.arguments import integer
from tapeless.frontend.data.indexing import get_item
from tapeless.frontend.data.iterables import items_of
from tapeless.frontend.python.references import boxes_in, either, new_list
from tapeless.frontend.state.code_copies import refuse_long
from tapeless.frontend.state.context import Context, new_box
from tapeless.frontend.state.handlers import MODULES, register
from tapeless.frontend.state.values import Array, Sequence_, SliceValue, Value, Zipped, weak

MODULES.setdefault("itertools", itertools)


def _used_once(ctx: Context, items: Iterable[Value]) -> Value:
    """An iterator: a list that must be used at once."""
    made = new_list(ctx, tuple(items))
    return replace(made, ref=replace(either(ctx, [new_box(ctx), *boxes_in(ctx.state)]), lazy=True))


def _tuples(ctx: Context, what: str, count: int, rows: Iterator[Sequence[Value]]) -> Value:
    refuse_long(ctx, what, count)
    return _used_once(ctx, (Sequence_(tuple(row)) for row in rows))


def _product(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    what = "itertools.product"
    repeat = integer(ctx, f"{what}: repeat", keywords.pop("repeat", weak(1)))
    if keywords or repeat < 0:
        ctx.call_error("product() takes iterables and a repeat from 0 on")
    pools = [items_of(ctx, what, a) for a in args]
    return _tuples(ctx, what, math.prod(map(len, pools)) ** repeat, itertools.product(*pools, repeat=repeat))


register("itertools.product", _product)


def _chosen(name: str) -> None:
    """combinations, permutations and their like: of r items each."""
    count = {"combinations": math.comb, "permutations": math.perm}.get(name, lambda n, r: math.comb(n + r - 1, r))
    what = f"itertools.{name}"

    def choose(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
        args = [*args, *(keywords.pop("r") for _ in range("r" in keywords))]
        if keywords or not 1 <= len(args) <= 2 or (len(args) == 1 and name != "permutations"):
            ctx.call_error(f"{name}() takes an iterable and a length r")
        items = items_of(ctx, what, args[0])
        r = integer(ctx, f"{what}: r", args[1]) if len(args) == 2 else len(items)
        if r < 0:
            ctx.fail("TP112", f"{what}: r must be non-negative")
        number = count(len(items), r) if items or not r else 0
        return _tuples(ctx, what, number, getattr(itertools, name)(items, r))

    register(what, choose)


for _name in ("combinations", "permutations", "combinations_with_replacement"):
    _chosen(_name)


def _chain(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords:
        ctx.call_error("chain() takes no keyword arguments")
    return _used_once(ctx, [v for a in args for v in items_of(ctx, "itertools.chain", a)])


register("itertools.chain", _chain)


def _pairwise(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    if keywords or len(args) != 1:
        ctx.call_error(f"pairwise() takes exactly one argument ({len(args)} given)")
    if isinstance(args[0], Array):
        return Zipped((args[0], get_item(ctx, args[0], SliceValue(weak(1), None, None))))
    items = items_of(ctx, "itertools.pairwise", args[0])
    return _tuples(ctx, "itertools.pairwise", len(items), itertools.pairwise(items))


register("itertools.pairwise", _pairwise)
