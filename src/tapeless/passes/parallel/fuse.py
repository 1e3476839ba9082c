"""Fusion: sweeps over the same elements become one, so that what one gives to another stays in registers.

Takes and gives a verified function. Relies on `simplify` having removed views of whole arrays and rows that are known,
on `dependence` for what may be moved, and on `sweeps` for the construction. Lambdas are fused after what holds them.

Note [Vertical fusion]
A consumer (sweep, histogram, scatter) takes in a sweep of the same width whose mapped rows it reads. Results of the
producer that others use as well become results of the fused sweep, so nothing is computed twice. Instead, a producer of
a few operations is copied where every reader can take it in, or where the two cannot be one statement: an array less
is worth a multiplication. A producer with a scan stays: its lambda may run twice, and so would the consumer's.
The consumer must be in the producer's region. Note [Entering]

Note [Entering]
A sweep enters a lambda that runs once, that of `with_acc`, to be fused there: with a sweep that reads its rows, or
beside one that reads an array in common and does all costly work of it again, as the backward pass of a sum does. What
others use of it leaves the lambda as a result; arrays that another sweep may take in stay where that one is. A sweep
that may fail enters only where the accumulators are new: nobody sees half of their updates.

Note [Horizontal fusion]
Two sweeps of one width that do not depend on each other become one if they read an array in common, or if both are
small reductions. This comes after vertical fusion, which saves more and which a merged sweep could stand in the way of.

Note [Between two sweeps]
The fused statement goes where everything that either sweep uses is known. Of the statements between them, those that
must come after the first follow the fused statement, the others precede it; if the second sweep must come
after one of those, the sweeps stay apart. What must come after what: Note [Trading places].
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from tapeless.ir.core import Body, Copy, Full, Function, Index, Lambda, Stm, Sweep, WithAcc
from tapeless.ir.rewrite import Rewriter
from tapeless.ir.types import Atom, Dim, Var
from tapeless.ir.walk import Substitution, all_stms, substitute_body
from tapeless.passes.analysis.dependence import Footprint, Footprints, Memory, clash
from tapeless.passes.parallel.alike import are_alike, costly, is_cheap, same, works_again
from tapeless.passes.parallel.merged_sweeps import SWEPT, is_row, is_whole, mapped_vars, merge, reads_rows_only

HOLDERS = (*SWEPT, WithAcc)
LARGEST = 500  # statements of a sweep that has taken in others
LARGEST_BESIDE = 200  # statements of sweeps merged side by side
SMALL = 16  # statements of a reduction that is merged with one of other arrays
NEARBY = 4  # sweeps of an array that are tried for a merge


def fuse(function: Function) -> Function:
    swept = (s for s in all_stms(function.body) if isinstance(s.exp, HOLDERS))
    return Fuser(function).function(function) if len(list(islice(swept, 2))) > 1 else function


class Fuser(Rewriter):
    """Fuses each region, then the regions in it: their sweeps have come together by then."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.footprints = Footprints()
        self.memory = Memory()
        if self.footprints.region(Lambda((), function.body)).consumed:
            self.memory.body(function.body)

    def body(self, body: Body) -> Body:
        number = sum(isinstance(s.exp, SWEPT) for s in body.stms)
        if number > 1 or (number and any(isinstance(s.exp, WithAcc) for s in body.stms)):
            body = Region(self, body).fused()
        return super().body(body)


class Node:
    """A statement of a region, at `place` in the list of nodes."""

    def __init__(self, stm: Stm, footprint: Footprint, place: int) -> None:
        self.stm, self.footprint, self.place = stm, footprint, place


class Region:
    """The statements of one region with their uses. A node that took in another one leaves None at that place."""

    def __init__(self, fuser: Fuser, body: Body) -> None:
        self.footprints, self.memory = fuser.footprints, fuser.memory
        self.body = body
        self.nodes: list[Node | None] = [Node(s, self.footprints.stm(s), k) for k, s in enumerate(body.stms)]
        self.makers: dict[Var, Node] = {}
        self.users: dict[Var, dict[Node, None]] = {}
        self.results = set(body.results)
        self.only_uses = True  # no effects and nothing consumed: nothing else keeps statements in order
        for node in self.nodes:
            assert node is not None
            for v in node.stm.vars:
                self.makers[v] = node
            self.use(node, node.footprint.free)
            if node.footprint.consumed or node.footprint.ordered:
                self.only_uses = False

    def use(self, node: Node, vars: Iterable[Var]) -> None:
        users = self.users
        for v in vars:
            if v in users:
                users[v][node] = None
            else:
                users[v] = {node: None}

    def fused(self) -> Body:
        changed = False
        for k in range(len(self.nodes)):
            if (node := self.nodes[k]) is not None:
                while self.take_in(node):
                    changed = True
        changed = self.merge_beside() or changed
        return Body(tuple([n.stm for n in self.nodes if n is not None]), self.body.results) if changed else self.body

    # -- Note [Vertical fusion]

    def take_in(self, node: Node) -> bool:
        """Does the node take in something that it reads?"""
        exp = node.stm.exp
        if isinstance(exp, WithAcc):
            return any(self.enter_with_rows(v, node) for v in node.footprint.inner if v.type.shape)
        if not isinstance(exp, SWEPT):
            return False
        reads = [*exp.arrays, *[v for v in node.footprint.inner if v.type.shape and v not in exp.arrays]]
        for array in reads:
            maker = self.makers.get(array)
            if maker is None or maker is node:
                continue
            made = maker.stm.exp
            if isinstance(made, Sweep):
                if self.inline(maker, node):
                    return True
            elif isinstance(made, Index) and self.see_through(array, made, node):
                return True
        return False

    def see_through(self, view: Var, exp: Index, node: Node) -> bool:
        """Reads the array rather than a view of the whole of it, if that may lead on."""
        if exp.array not in self.makers or not all(map(is_whole, exp.axes, exp.array.type.shape)):
            return False
        new = Stm(node.stm.vars, Substitution({view: exp.array}).exp(node.stm.exp), node.stm.span)
        self.become(node, new, self.footprints.stm(new), [view])
        return True

    def inline(self, producer: Node, consumer: Node) -> bool:
        a, b = producer.stm.exp, consumer.stm.exp
        assert isinstance(a, Sweep) and isinstance(b, SWEPT)
        if a.scans or not same(a.width, b.width) or not self.may_join(producer, consumer, LARGEST):
            return False
        mapped = mapped_vars(producer.stm)
        free = consumer.footprint.free
        read = [v for v in producer.stm.vars if v in free]
        for v in read:
            if v not in mapped or not reads_rows_only(consumer.stm, v, self.footprints):
                return False  # a result of a reduction, or rows of other elements
        kept = [v for v in mapped if self.is_used_beside(v, consumer)]
        if kept and is_cheap(a) and self.is_read_by_rows(kept, b.width):
            return self.copy(producer, consumer, read)
        later = None
        if isinstance(b, Sweep) or not (kept or a.reduces):
            later = self.between(producer, consumer, read)
        if later is None:
            return is_cheap(a) and self.copy(producer, consumer, read)
        self.merge(producer, consumer, kept, read, later)
        return True

    def may_join(self, a: Node, b: Node, largest: int) -> bool:
        """Not if it grew too large, effects of two sweeps would mix, or one consumes what the other looks at."""
        first, second = a.footprint, b.footprint
        if first.size + second.size > largest:
            return False
        if self.only_uses:
            return True
        seen = replace(first, free={**first.free, **dict.fromkeys(a.stm.vars)})  # the rows it gives, too
        return not (first.ordered and second.ordered) and not clash(self.memory, seen, second)

    def is_used_beside(self, var: Var, node: Node) -> bool:
        users = self.users.get(var, {})
        return var in self.results or len(users) > (node in users)

    def is_read_by_rows(self, vars: Sequence[Var], width: Dim) -> bool:
        """Can every reader of the arrays take them in?"""
        for v in vars:
            if v in self.results:
                return False
            for user in self.users[v]:
                exp = user.stm.exp
                if not isinstance(exp, SWEPT) or not same(exp.width, width):
                    return False
                if not reads_rows_only(user.stm, v, self.footprints):
                    return False
        return True

    def copy(self, producer: Node, consumer: Node, read: list[Var]) -> bool:
        """The consumer computes the rows itself; the producer stays for the others."""
        if not self.only_uses:
            for node in self.nodes[producer.place + 1 : consumer.place]:
                if node is not None and clash(self.memory, producer.footprint, node.footprint):
                    return False  # what the producer reads is gone by then
        merged = merge(producer.stm, consumer.stm, (), inlined=read, copy=True)
        self.share(merged.same)
        self.become(consumer, merged.stm, joined(producer.footprint, consumer.footprint, read), read)
        return True

    # -- Note [Entering]

    def enter_with_rows(self, array: Var, node: Node) -> bool:
        """Moves the maker of an array that the node's lambda reads into it."""
        maker, exp = self.makers.get(array), node.stm.exp
        assert isinstance(exp, WithAcc)
        if maker is None or not isinstance(maker.stm.exp, Sweep):
            return False
        inside = exp.lam.body.stms
        width = maker.stm.exp.width
        if not any(isinstance(s.exp, SWEPT) and same(s.exp.width, width) and array in s.exp.arrays for s in inside):
            return False  # nobody to take it in
        return self.enter(maker, node)

    def enter(self, maker: Node, node: Node) -> bool:
        exp = node.stm.exp
        assert isinstance(exp, WithAcc)
        kept = [v for v in maker.stm.vars if self.is_used_beside(v, node)]
        if any(v in exp.arrays for v in maker.stm.vars) or any(self.is_swept_beside(v, node) for v in kept):
            return False
        if any(v in node.footprint.free for v in maker.stm.vars if not v.type.shape):
            return False  # a result of a reduction, which is there only after the sweep
        if maker.footprint.ordered and not all(self.is_fresh(a) for a in exp.arrays):
            return False  # what fails would leave an array of the caller half updated
        later = self.between(maker, node, maker.stm.vars) if self.may_join(maker, node, LARGEST) else None
        if later is None:
            return False
        inside = {v: Var(v.name, v.type) for v in kept}
        first = Stm(tuple(inside.get(v, v) for v in maker.stm.vars), maker.stm.exp, maker.stm.span)
        rest = substitute_body(exp.lam.body, inside)
        body = Body((first, *rest.stms), (*rest.results, *inside.values()))
        self.share(inside)
        stm = Stm((*node.stm.vars, *kept), replace(exp, lam=Lambda(exp.lam.params, body)), node.stm.span)
        footprint = joined(maker.footprint, node.footprint, maker.stm.vars)
        footprint = replace(footprint, inner={**footprint.inner, **maker.footprint.free})
        self.unite(maker, node, stm, footprint, later, maker.stm.vars)
        return True

    def is_fresh(self, array: Var) -> bool:
        maker = self.makers.get(array)
        return maker is not None and isinstance(maker.stm.exp, (Full, Copy))

    def is_swept_beside(self, var: Var, node: Node) -> bool:
        """Is it an array that another sweep reads?"""
        return bool(var.type.shape) and any(
            user is not node and isinstance(user.stm.exp, SWEPT) for user in self.users.get(var, ())
        )

    # -- Note [Horizontal fusion]

    def merge_beside(self) -> bool:
        changed = False
        recent: dict[object, list[Node]] = {}  # by arrays, and by widths of small reductions
        for k in range(len(self.nodes)):
            node = self.nodes[k]
            if node is None or not isinstance(node.stm.exp, (Sweep, WithAcc)):
                continue
            while self.merge_with(node, recent):
                changed = True
            if isinstance(node.stm.exp, Sweep):
                for key in keys(node.stm, node.footprint):
                    recent.setdefault(key, []).append(node)
        return changed

    def merge_with(self, node: Node, recent: dict[object, list[Node]]) -> bool:
        """Is the node merged with a sweep before it? The nearest one is tried first."""
        near: dict[Node, None] = {}
        exp = node.stm.exp
        for s in exp.lam.body.stms if isinstance(exp, WithAcc) else (node.stm,):
            if isinstance(s.exp, Sweep):
                for key in keys(s, self.footprints.exp(s.exp)):
                    near.update(dict.fromkeys(recent.get(key, [])[-NEARBY:]))
        for other in sorted(near, key=lambda n: n.place, reverse=True):
            if self.nodes[other.place] is not other or other.place >= node.place:
                continue  # taken in meanwhile, or moved behind this one
            if isinstance(exp, WithAcc):
                if works_again(other.stm.exp, exp) and self.enter(other, node):
                    return True
                continue
            if not are_alike(other.stm.exp, exp) or not self.may_join(other, node, largest_beside(other, node)):
                continue
            later = self.between(other, node, ())
            if later is not None:
                self.merge(other, node, set(other.stm.vars), (), later)
                return True
        return False

    # -- Note [Between two sweeps]

    def between(self, first: Node, second: Node, read: Collection[Var]) -> list[Node] | None:
        """What stands between them and must follow the first; None if the second must follow some of it.

        That the second uses the variables `read` of the first does not count.
        """
        start = first.place + 1
        used = second.footprint.free
        for v in first.stm.vars:
            if v in used and v not in read:
                return None
        if self.only_uses:  # nothing depends on the first before its first user
            places = [u.place for v in first.stm.vars for u in self.users.get(v, ())]
            start = min(places, default=second.place)
            if start >= second.place:
                return []
        later: list[Node] = []
        moved, with_first = Together(self), Together(self)
        with_first.add(first)
        for node in self.nodes[start : second.place]:
            if node is not None and with_first.precede(node):
                later.append(node)
                moved.add(node)
                with_first.add(node)
        return None if moved.precede(second) else later

    # -- keeping the books

    def merge(
        self, first: Node, second: Node, kept: Collection[Var], read: Collection[Var], later: Sequence[Node]
    ) -> None:
        """Makes one sweep of two, in front of `later`; the second reads rows of the variables `read` of the first."""
        merged = merge(first.stm, second.stm, kept, inlined=read)
        self.share(merged.same)
        self.unite(first, second, merged.stm, joined(first.footprint, second.footprint, read), later, read)

    def unite(
        self, first: Node, second: Node, stm: Stm, footprint: Footprint, later: Sequence[Node], gone: Collection[Var]
    ) -> None:
        """`second` becomes the statement for both, in front of `later`; it no longer uses the variables `gone`."""
        for v in first.footprint.free:
            self.users[v].pop(first, None)
        self.become(second, stm, footprint, gone)
        self.makers.update(dict.fromkeys(stm.vars, second))
        if not later:
            self.nodes[first.place] = None
            return
        moved = {first, second, *later}
        places = slice(first.place, second.place + 1)
        stay = [n for n in self.nodes[places] if n is not None and n not in moved]
        free = places.stop - places.start - len(stay) - len(later) - 1
        order: list[Node | None] = [*[None] * free, *stay, second, *later]
        self.nodes[places] = order
        for place, node in enumerate(order, places.start):
            if node is not None:
                node.place = place

    def become(self, node: Node, stm: Stm, footprint: Footprint, gone: Iterable[Var]) -> None:
        users, before = self.users, node.footprint.free
        for v in gone:
            if v in users:
                users[v].pop(node, None)
        self.use(node, [v for v in footprint.free if v not in before])
        node.stm, node.footprint = stm, footprint
        self.footprints.known[id(stm.exp)] = stm.exp, footprint

    def share(self, same: Mapping[Var, Atom]) -> None:
        """Names that have become one thing, or rows of it."""
        for a, b in same.items():
            if a.type.shape:
                self.memory.share(a, b)


class Together:
    """Nodes of a region that stay in their order: what must come after one of them, asked once for all."""

    def __init__(self, region: Region) -> None:
        self.only_uses, self.memory = region.only_uses, region.memory
        self.made: set[Var] = set()
        self.ordered = False
        self.consumed: set[Var] = set()  # groups of memory
        self.looked_at: set[Var] = set()

    def add(self, node: Node) -> None:
        self.made.update(node.stm.vars)
        if not self.only_uses:
            self.ordered = self.ordered or node.footprint.ordered
            self.consumed |= self.memory.groups(node.footprint.consumed)
            self.looked_at |= self.memory.groups(node.footprint.free)

    def precede(self, node: Node) -> bool:
        """Note [Trading places]."""
        footprint = node.footprint
        if not self.made.isdisjoint(footprint.free):
            return True
        if self.only_uses:
            return False
        if self.ordered and (footprint.ordered or footprint.bare):
            return True
        if self.consumed and not self.consumed.isdisjoint(self.memory.groups(footprint.free)):
            return True
        return bool(footprint.consumed) and not self.looked_at.isdisjoint(self.memory.groups(footprint.consumed))


def joined(first: Footprint, second: Footprint, gone: Collection[Var]) -> Footprint:
    free, inner = first.free | second.free, first.inner | second.inner
    for v in gone:
        if v not in first.free:
            free.pop(v, None)
        if v not in first.inner:
            inner.pop(v, None)
    return Footprint(
        free,
        inner,
        first.consumed | second.consumed,
        first.ordered or second.ordered,
        first.size + second.size,
        first.bare or second.bare,
    )


def keys(stm: Stm, footprint: Footprint) -> list[object]:
    """Under which a partner for a merge is looked for: Note [Horizontal fusion]."""
    sweep = stm.exp
    assert isinstance(sweep, Sweep)
    found: list[object] = [*dict.fromkeys(sweep.arrays)]
    if any(v.type.shape for v in footprint.inner):
        elements = (s.exp for s in sweep.lam.body.stms if isinstance(s.exp, Index))
        found += dict.fromkeys(e.array for e in elements if is_row(e, sweep.lam.params[0]) and e.array not in found)
    reduced = sum(len(r.neutral) for r in sweep.reduces)
    if reduced == len(stm.vars) > 0 and footprint.size <= SMALL:
        found.append(("reduction", sweep.width))
    return found


def largest_beside(a: Node, b: Node) -> int:
    """What two sweeps both do is done once then: that is worth more than their size."""
    assert isinstance(a.stm.exp, Sweep) and isinstance(b.stm.exp, Sweep)
    if a.footprint.size + b.footprint.size <= LARGEST_BESIDE:
        return LARGEST_BESIDE
    work = costly(a.stm.exp)
    return LARGEST if work and work <= costly(b.stm.exp) else LARGEST_BESIDE


__all__ = ["fuse"]
