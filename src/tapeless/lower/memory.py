"""Where buffers are allocated and freed: out of loops where their size allows it, freed after their last use.

Takes the statements of a program in which each block frees what it allocates at its end; gives the same program with
allocations moved out of sequential loops and frees moved up. Parallel loops keep theirs: each iteration has its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tapeless.ir.types import I64, Var, i64
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Atom,
    Buffer,
    DType,
    For,
    Free,
    Give,
    If,
    Let,
    Stm,
    While,
)
from tapeless.lower.ir.walk import binds, buffers, children

NONE: frozenset[Buffer] = frozenset()


def place_allocations(body: tuple[Stm, ...]) -> tuple[Stm, ...]:
    return _placed(body)[0]


def _placed(body: tuple[Stm, ...]) -> tuple[tuple[Stm, ...], set[Buffer]]:
    """The block with its allocations moved, and the buffers that it mentions: each level of a nest hands them to the
    next.
    """
    block: list[tuple[Stm, AbstractSet[Buffer]]] = []
    for stm in body:
        if isinstance(stm, Let):  # most are
            block.append((stm, NONE))
        else:
            block += _hoisted(stm)
    return tuple(_freed_early(block)), set().union(*[mentioned for _, mentioned in block if mentioned])


def _hoisted(stm: Stm) -> list[tuple[Stm, AbstractSet[Buffer]]]:
    """The statement with its inner blocks done, and the allocations that can stand before it (frees after it); each
    with the buffers that it mentions.
    """
    match stm:
        case For(tag=tag):
            inner, mentioned = _placed(stm.body)
            if tag.parallel:
                return [(replace(stm, body=inner), mentioned)]
            before, inner, after = _split(_lifted(inner, {stm.var}), {stm.var})
            return [*_alone(before), (replace(stm, body=inner), mentioned), *_alone(after)]
        case While():
            inner, mentioned = _placed(stm.body)
            test, tested = _placed(stm.test)
            bound = _inside(stm.test, set())
            before, inner, after = _split(_lifted(inner, bound), bound)
            return [*_alone(before), (replace(stm, test=test, body=inner), mentioned | tested), *_alone(after)]
        case If():
            (then, first), (orelse, second) = _placed(stm.then), _placed(stm.orelse)
            return [(replace(stm, then=then, orelse=orelse), first | second)]
        case _:
            return _alone([stm])


def _alone(stms: Sequence[Stm]) -> list[tuple[Stm, AbstractSet[Buffer]]]:
    """Statements without blocks."""
    return [(stm, set(buffers(stm))) for stm in stms]


def _lifted(body: tuple[Stm, ...], bound: set[Var]) -> tuple[Stm, ...]:
    """The body of a loop, with the allocations that stand in its branches beside them, where a condition is known before the
    loop: of size 0 where the other arm runs.
    """
    if not any(isinstance(s, If) for s in body):
        return body
    inside = _inside(body, bound)
    out: list[Stm] = []
    for stm in body:
        if not isinstance(stm, If) or stm.cond in inside:
            out.append(stm)
            continue
        arms, frees = [], []
        for arm, holds in ((stm.then, True), (stm.orelse, False)):
            before, rest, after = _split(arm, inside)
            if any(isinstance(s, Let) and s.exact for s in before):  # which may divide by 0 where the other arm runs
                arms.append(arm)
                continue
            for s in before:
                if isinstance(s, Alloc):
                    size = Var("size", I64)
                    out.append(Let(size, "select", (stm.cond, s.size, i64(0)) if holds else (stm.cond, i64(0), s.size)))
                    s = replace(s, size=size)
                out.append(s)
            arms.append(rest)
            frees += after
        out += [replace(stm, then=arms[0], orelse=arms[1]), *frees]
    return tuple(out)


def _inside(body: Sequence[Stm], bound: set[Var]) -> set[Var]:
    """The scalars that are not known before a loop of this body."""
    return bound.union(*map(binds, body)) | _assigned(body)


def _split(body: tuple[Stm, ...], bound: set[Var]) -> tuple[list[Stm], tuple[Stm, ...], list[Stm]]:
    """Allocations of a loop body whose size is known before the loop, the rest, and their frees.

    The arithmetic of a size moves with it.
    """
    freed = {s.buffer for s in body if isinstance(s, Free)}
    given = {s.buffer for s in body if isinstance(s, Give)}
    once = Counter(s.buffer for s in body if isinstance(s, Alloc))
    lets = {s.var: s for s in body if isinstance(s, Let) and s.var.type.dtype in (DType.i64, DType.bool)}
    inside = _inside(body, bound)

    def outside(atom: Atom, needed: dict[Var, Stm]) -> bool:
        """Whether a size is known before the loop, given that the arithmetic in `needed` moves too."""
        if not isinstance(atom, Var) or atom not in inside or atom in needed:
            return True
        let = lets.get(atom)
        if let is None or not all(outside(a, needed) for a in let.args):
            return False
        needed[atom] = let
        return True

    moved: dict[Var, Stm] = {}
    movable: set[Buffer] = set()
    for stm in body:
        if not isinstance(stm, Alloc) or stm.buffer not in freed or stm.buffer in given or once[stm.buffer] != 1:
            continue
        needed = dict(moved)
        if outside(stm.size, needed):
            moved = needed
            movable.add(stm.buffer)
    arithmetic = [s for s in body if isinstance(s, Let) and s.var in moved]
    before: list[Stm] = [*arithmetic, *(s for s in body if isinstance(s, Alloc) and s.buffer in movable)]
    after: list[Stm] = [s for s in body if isinstance(s, Free) and s.buffer in movable]
    rest = tuple(
        s
        for s in body
        if not (isinstance(s, (Alloc, Free)) and s.buffer in movable) and not (isinstance(s, Let) and s.var in moved)
    )
    return before, rest, after


def _assigned(body: Sequence[Stm]) -> set[Var]:
    found: set[Var] = set()
    for stm in body:
        if isinstance(stm, Assign):
            found.add(stm.var)
        for block in children(stm):
            found |= _assigned(block)
    return found


def _freed_early(block: Sequence[tuple[Stm, AbstractSet[Buffer]]]) -> list[Stm]:
    last: dict[Buffer, int] = {}
    for k, (stm, mentioned) in enumerate(block):
        if not isinstance(stm, Free):
            for b in mentioned:
                last[b] = k
    frees = {s.buffer: s for s, _ in block if isinstance(s, Free)}
    if not frees:
        return [stm for stm, _ in block]
    after: dict[int, list[Stm]] = {}
    for b, free in frees.items():
        after.setdefault(last.get(b, len(block) - 1), []).append(free)
    result: list[Stm] = []
    for k, (stm, _) in enumerate(block):
        if not isinstance(stm, Free):
            result.append(stm)
        result.extend(after.get(k, ()))
    return result
