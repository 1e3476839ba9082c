"""Which numbers of a program for a device its host has to know, and which only kernels take.

Note [Numbers on the device]
A number that a kernel has left in memory, as a sum of blocks, is often only there for the next kernel. A host that fetches
it waits for all that was launched, and the device has nothing to do until the next launch. So what is worked out from such
numbers is worked out on the device, by a kernel of one thread (Note [Parts of the host] in device_parts.py), if the host
decides nothing by it: no branch, no end of a loop, no size, no position, nothing that a library or the user is told.
Kernels read it from where it lies. What the program returns is fetched at the end. What the test of a `while` loop binds is
seen by its body, too, and by the loop itself: there numbers are fetched where they are, and keep their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tapeless.ir.types import Var
from tapeless.lower.ir.loopir import Assign, Buffer, Declare, For, Launch, Let, Load, Return, Stm, While
from tapeless.lower.ir.rename import renamed
from tapeless.lower.ir.walk import Block, children, reads, walk, with_blocks


class Needs:
    """Of the host's numbers, those by which it decides, and those that kernels take, by way of others; and those that
    follow from what is in memory (`of_device`).
    """

    def __init__(self, body: Block) -> None:
        made_from: dict[Var, set[Var]] = defaultdict(set)
        makes: dict[Var, set[Var]] = defaultdict(set)
        host, kernels, device = set[Var](), set[Var](), set[Var]()
        for stm in of_host(body):
            match stm:
                case Let(var=var) | Declare(var=var) | Assign(var=var):
                    made_from[var] |= set(reads(stm))
                case Launch(kernel=kernel):
                    kernels |= {v for v in kernel.params if isinstance(v, Var)}
                    host |= {v for s in walk(kernel.block) if isinstance(s, For) and s.tag.parallel for v in _ends(s)}
                case Return():
                    pass
                case _:
                    host |= set(reads(stm))
            if isinstance(stm, (Load, Declare)):
                device.add(stm.var)
        for v, sources in made_from.items():
            for source in sources:
                makes[source].add(v)
        self.by_host, self.by_kernels = _closed(host, made_from), _closed(kernels, made_from)
        self.of_device = _closed(device, makes)

    def stays(self, numbers: Sequence[Var]) -> bool:
        """Whether kernels take some of these, and the host needs none."""
        return self.by_host.isdisjoint(numbers) and not self.by_kernels.isdisjoint(numbers)


def of_host(body: Block) -> Iterator[Stm]:
    """Its statements, those in blocks too, but for what is in kernels."""
    return walk(body, {id(s) for s in walk(body) if isinstance(s, Launch)})


def _ends(loop: For) -> Iterator[Var]:
    return (v for v in (loop.lo, loop.hi) if isinstance(v, Var))


def _closed(some: set[Var], made_from: Mapping[Var, set[Var]]) -> AbstractSet[Var]:
    left = list(some)
    while left:
        for v in made_from.get(left.pop(), ()):
            if v not in some:
                some.add(v)
                left.append(v)
    return some


def settled(block: Block) -> Block:
    """Scalars of the host that only statements of one block assign, one after the other, under a name for each value."""
    new = tuple(_settled_inside(s) for s in block)
    own = {s.var for s in new if isinstance(s, Declare)}
    inside = {s.var for t in new for inner in children(t) for s in walk(inner) if isinstance(s, Assign)}
    mine = own - inside
    if not mine:
        return new if any(a is not b for a, b in zip(new, block, strict=True)) else block
    names: dict[Var, Var] = {}
    out: list[Stm] = []
    for stm in new:
        if isinstance(stm, (Declare, Assign)) and stm.var in mine:
            value = renamed(stm.init if isinstance(stm, Declare) else stm.value, names)
            names = {**names, stm.var: Var(stm.var.name, stm.var.type)}
            out.append(Let(names[stm.var], "identity", (value,)))
        else:
            out.append(renamed(stm, names))
    return tuple(out)


def _settled_inside(stm: Stm) -> Stm:
    return replace(stm, body=settled(stm.body)) if isinstance(stm, While) else with_blocks(stm, settled)


def taken_by_kernels(block: Block, words: AbstractSet[Buffer]) -> Block:
    """Note [Numbers on the device]. Kernels read from `words` what the host has fetched there for them; what is left for
    the host to fetch, it fetches when it needs it.
    """
    return _Taking(words).block(block, {})


class _Taking:
    def __init__(self, words: AbstractSet[Buffer]) -> None:
        self.words = words

    def block(self, block: Block, fetched: Mapping[Var, Load]) -> Block:
        return self.late(self.taking(block, fetched))

    def taking(self, block: Block, fetched: Mapping[Var, Load]) -> list[Stm]:
        known = dict(fetched)
        out: list[Stm] = []
        for stm in block:
            if isinstance(stm, Load) and stm.buffer in self.words:
                known[stm.var] = stm
            if isinstance(stm, Launch):
                out.append(_taking(stm, known))
            elif isinstance(stm, While):
                test, body = tuple(self.taking(stm.test, known)), self.block(stm.body, known)
                out.append(replace(stm, test=test, body=body))
            else:
                out.append(with_blocks(stm, lambda inner: self.block(inner, known)))
        return out

    def late(self, block: list[Stm]) -> Block:
        """Each number is fetched where it is looked at first."""
        waiting: dict[Var, Load] = {}
        out: list[Stm] = []
        for stm in block:
            if isinstance(stm, Load) and stm.buffer in self.words:
                waiting[stm.var] = stm
                continue
            for v in [v for s in walk((stm,)) for v in _read(s)] if waiting else ():
                if v in waiting:
                    out.append(waiting.pop(v))
            out.append(stm)
        return tuple(out)


def _read(stm: Stm) -> Iterator[Var]:
    yield from reads(stm)
    if isinstance(stm, Launch):
        yield from (v for v in stm.kernel.params if isinstance(v, Var))


def _taking(launch: Launch, known: Mapping[Var, Load]) -> Launch:
    kernel = launch.kernel
    ends = {v for s in walk(kernel.block) if isinstance(s, For) and s.tag.parallel for v in _ends(s)}
    taken = [v for v in kernel.params if isinstance(v, Var) and v in known and v not in ends]
    if not taken:
        return launch
    own = {v: Var(v.name, v.type) for v in taken}
    loads = tuple(replace(known[v], var=own[v]) for v in taken)
    loop = replace(kernel.loop, body=(*loads, *renamed(kernel.loop.body, own)))
    kept = [p for p in kernel.params if p not in taken]
    more = {s.buffer: None for s in loads if s.buffer not in kept}
    return Launch(replace(kernel, params=(*kept, *more), block=(loop,)))
