"""Large modules in units, which LLVM works on at the same time.

`units` takes a module and gives the texts of modules that make the same program together: what each of them becomes
does not depend on how many threads there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tapeless.backends.llvm.writer import Defined, Module

UNIT = 400  # lines of a unit that is worth a module of its own
MOST = 12  # units
NODE = re.compile(r"!(\d+)")
GLOBAL = re.compile(r'@(?:[\w.$-]+|"[^"]*")')


def units(module: Module) -> tuple[str, ...]:
    """Their texts, the largest first; the whole text where there is only one."""
    groups = _shared_out(module.functions)
    if len(groups) == 1:
        return (str(module),)
    mentions = [{name for f in group for name in GLOBAL.findall(f.body)} for group in groups]
    return tuple(_unit(module, groups, mentions, k) for k in range(len(groups)))


def _shared_out(functions: Sequence[Defined]) -> list[list[Defined]]:
    """Groups of about the same length, in the order of the module."""
    lengths = [f.body.count("\n") for f in functions]
    count = min(MOST, len(functions), sum(lengths) // UNIT)
    if count < 2:
        return [list(functions)]
    groups: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for k in sorted(range(len(functions)), key=lambda k: -lengths[k]):
        least = loads.index(min(loads))
        groups[least].append(k)
        loads[least] += lengths[k]
    largest_first = sorted((g for g in groups if g), key=lambda g: -sum(lengths[k] for k in g))
    return [[functions[k] for k in sorted(group)] for group in largest_first]


def _unit(module: Module, groups: Sequence[list[Defined]], mentions: Sequence[set[str]], k: int) -> str:
    elsewhere = set().union(*mentions[:k], *mentions[k + 1 :])
    functions = [f.text(visible=f.name in elsewhere) for f in groups[k]]
    own = {f.name for f in groups[k]}
    called = [f.declaration for group in groups for f in group if f.name in mentions[k] and f.name not in own]
    return module.assembled([*functions, *called], _nodes(module.metadata, functions))


def _nodes(metadata: Sequence[str], functions: Sequence[str]) -> list[int]:
    """The numbers of the nodes that functions mention, and of those that these mention."""
    found: set[int] = set()
    left = [int(n) for text in functions for n in set(NODE.findall(text))]
    while left:
        n = left.pop()
        if n not in found:
            found.add(n)
            left += map(int, NODE.findall(metadata[n]))
    return sorted(found)
