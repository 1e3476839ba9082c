"""The memory that a call takes at its peak, predicted: read off the lowered program.

`outline` takes a program and gives what decides its memory; `footprint` takes an outline and what is known of the
arguments, and gives the bytes of all arrays that are there when most are: what is kept, adjoints, temporary arrays and
results. Arguments do not count. Sizes are followed through arithmetic as far as they are known before the program
runs; where they are not, neither are the bytes (None).

Note [First and last]
Of a loop the first and the last iteration are looked at: what is linear in its index is largest there. What bends in
between (i % 3, i * (n - i), i == n // 2) is not known in loops of more than `EACH` iterations; in shorter ones all of
them are looked at. Of a choice by something unknown it is the larger. What iterations hand on is unknown inside, and
afterwards. Both arms of an undecided branch are looked at, and the larger of each array goes on. Arrays of an element
of a parallel loop are there once per thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapeless.ir.types import Atom, Var
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Buffer,
    Check,
    Declare,
    For,
    Free,
    Give,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Pointer,
    Stm,
    Tag,
    While,
)
from tapeless.lower.ir.walk import children, walk
from tapeless.lower.lowering import Lowered
from tapeless.ops.evaluations import ON_SCALARS
from tapeless.ops.table import TABLE

FOLLOWED = 10_000  # iterations of a loop that counts, which are worth running before the call
IN_ALL = 10 * FOLLOWED
EACH = 64  # iterations of a loop that allocates
ROUND = 64  # allocations are multiples of it: backends/llvm/code.py


@dataclass(frozen=True)
class Outline:
    """A program without all that has nothing to do with its memory.

    results: arrays that the caller allocates, as bytes of an element and dimensions. `budgets` are the error sites of
    tests whether a plan fits its budget, `plans` those of tests whether this is the plan at all. `needed` are the
    variables that all this depends on. `functions` are what it invokes: names, parameters and statements.
    """

    threads: Var
    results: tuple[tuple[int, tuple[int | Var, ...]], ...]
    budgets: frozenset[int]
    plans: frozenset[int]
    needed: frozenset[Var]
    stms: tuple[Stm, ...]
    functions: tuple[tuple[str, tuple[Var | Buffer, ...], tuple[Stm, ...]], ...] = ()


@dataclass(frozen=True)
class Footprint:
    """`peak` has the results in it. `refused` is the error site of a budget that is too small, if one is. `at_least` is
    what arrays of known sizes take at their peak, without results. `fits`: whether the program is for such a call,
    None where that is not known.
    """

    peak: int | None
    results: int | None
    refused: int | None
    at_least: int
    fits: bool | None = True


def outline(lowered: Lowered) -> Outline:
    program = lowered.program
    results = tuple((r.type.dtype.bytes, r.shape) for r in lowered.array_results.values() if r.provided)
    budgets, plans = (
        frozenset(k for k, site in enumerate(program.sites) if site.error == error)
        for error in ("RecoveryError", "OtherPlan")
    )
    needed = {d for _, shape in results for d in shape if isinstance(d, Var)}
    invoked: dict[str, tuple[Var | Buffer, ...]] = {}  # parameters of functions that allocate
    functions: list[tuple[str, tuple[Var | Buffer, ...], tuple[Stm, ...]]] = []
    for f in program.functions:
        found = _settled(f.body, needed, budgets | plans, invoked)
        if found:
            invoked[f.name] = f.params
            functions.append((f.name, f.params, found))
    found = _settled(program.body, needed, budgets | plans, invoked)
    return Outline(program.threads, results, budgets, plans, frozenset(needed), found, tuple(functions))


Invoked = Mapping[str, tuple[Var | Buffer, ...]]


def _settled(stms: tuple[Stm, ...], needed: set[Var], tests: frozenset[int], invoked: Invoked) -> tuple[Stm, ...]:
    while True:
        count = len(needed)
        found = _sketch(stms, needed, tests, invoked)
        if len(needed) == count:
            return found


def _sketch(stms: tuple[Stm, ...], needed: set[Var], tests: frozenset[int], invoked: Invoked) -> tuple[Stm, ...]:
    """What allocates, and what computes the variables that are needed: those that the rest depends on are added.

    Backwards, so that what stands before a use is found the first time; what a loop hands on takes another time.
    """
    found: list[Stm] = []
    for stm in reversed(stms):
        uses: tuple[Atom, ...]
        match stm:
            case Alloc(size=size):
                uses = (size,)
            case Check(cond=cond, site=site) if site in tests:
                uses = (cond,)
            case Free() | Give():
                uses = ()
            case Let(var=var, args=args) if var in needed:
                uses = args
            case Declare(var=var, init=value) | Assign(var=var, value=value) if var in needed:
                uses = (value,)
            case Load(var=var) if var in needed:
                uses = ()
            case For() if body := _sketch(stm.body, needed, tests, invoked):
                stm, uses = replace(stm, body=body), (stm.lo, stm.hi)
            case While() if any(parts := [_sketch(part, needed, tests, invoked) for part in (stm.body, stm.test)]):
                stm, uses = replace(stm, test=parts[1], body=parts[0]), ()
            case If() if any(parts := [_sketch(part, needed, tests, invoked) for part in (stm.then, stm.orelse)]):
                stm, uses = replace(stm, then=parts[0], orelse=parts[1]), (stm.cond,)
            case Launch(kernel) if block := _sketch(kernel.block, needed, tests, invoked):
                stm, uses = Launch(replace(kernel, block=block)), ()
            case Invoke(name=name, args=args) if name in invoked:
                pairs = zip(invoked[name], args, strict=True)
                uses = tuple(a for p, a in pairs if p in needed and not isinstance(a, Pointer))
            case _:
                continue
        needed.update(a for a in uses if isinstance(a, Var))
        found.append(stm)
    return tuple(reversed(found))


def footprint(outline: Outline, values: Mapping[Var, Any], threads: int = 1) -> Footprint:
    reader = _Reader({v: np.asarray(x, v.type.dtype.numpy)[()] for v, x in values.items()}, threads, outline)
    reader.values[outline.threads] = np.int64(threads)
    reader.functions = {name: (params, stms) for name, params, stms in outline.functions}
    provided: int | None = 0
    for size, shape in outline.results:
        cells = [reader.number(d) if isinstance(d, Var) else d for d in shape]
        provided = None if None in cells or provided is None else provided + _product(cells) * size
    with np.errstate(all="ignore"):
        reader.block(outline.stms)
    if provided is None or reader.unknown:
        return Footprint(None, None, reader.refused, reader.peak - reader.given, reader.fits)
    return Footprint(
        provided + reader.peak, provided + reader.given, reader.refused, reader.peak - reader.given, reader.fits
    )


class _Reader:
    def __init__(self, values: dict[Var, Any], threads: int, outline: Outline) -> None:
        self.values, self.threads, self.outline = values, threads, outline
        self.functions: dict[str, tuple[tuple[Var | Buffer, ...], tuple[Stm, ...]]] = {}
        self.live: dict[Buffer, int] = {}
        self.peak = 0
        self.given = 0  # bytes of results that the program allocates
        self.at_once = 1  # elements of a parallel loop that run now
        self.unknown = False  # whether an array of unknown size was met
        self.refused: int | None = None
        self.fits: bool | None = True
        self.left = IN_ALL  # iterations that may be followed
        self.bent: set[Var] = set()  # Note [First and last]
        self.constants: dict[int, Any] = {}  # by the atom, which the outline holds
        self.assigned: dict[int, set[Var]] = {}  # by the statement

    def number(self, a: Atom) -> Any | None:
        if isinstance(a, Var):
            return self.values.get(a)
        known = self.constants.get(id(a))
        if known is None:
            known = self.constants[id(a)] = a.dtype.numpy.type(a.value)
        return known

    def set(self, var: Var, value: Any | None) -> None:
        if value is None:
            self.values.pop(var, None)
        else:
            self.values[var] = value

    def block(self, stms: Sequence[Stm]) -> None:
        for stm in stms:
            self.stm(stm)

    def stm(self, stm: Stm) -> None:
        match stm:
            case Let():
                self.set(stm.var, self.operation(stm))
            case Declare(var=var, init=value) | Assign(var=var, value=value):
                self.set(var, self.number(value))
            case Load(var=var):
                self.set(var, None)
            case For():
                self.loop(stm)
            case While(test=test, body=body):
                self.forget(stm)
                self.block(test)
                self.block(body)
                self.forget(stm)
            case If():
                self.branch(stm)
            case Alloc(buffer=buffer, size=size):
                self.allocate(buffer, self.number(size))
            case Free(buffer=buffer):
                self.live.pop(buffer, None)
            case Give(buffer=buffer):  # it is there to the end
                self.given += self.live.get(buffer, 0)
            case Invoke(name=name, args=args):
                params, stms = self.functions[name]
                for param, arg in zip(params, args, strict=True):
                    if isinstance(param, Var) and not isinstance(arg, Pointer):
                        self.set(param, self.number(arg))
                self.block(stms)
            case Check(cond=cond, site=site):
                holds = self.number(cond)
                if site in self.outline.plans:
                    self.fits = self.fits if holds else False if holds is not None else self.fits and None
                elif site in self.outline.budgets and holds is not None and not holds and self.refused is None:
                    self.refused = site
            case _:
                for block in children(stm):
                    self.block(block)

    def operation(self, stm: Let) -> Any | None:
        op, args, bent = stm.op, [self.number(a) for a in stm.args], stm.var in self.bent
        if op == "select" and (args[0] is None or bent):
            return None if args[1] is None or args[2] is None else max(args[1], args[2])
        if bent:
            return None
        for a in args:
            if a is None:
                return None
        if op in ON_SCALARS:
            return ON_SCALARS[op](*args)
        return TABLE[op].evaluate(*args, *([stm.var.type.dtype.numpy] if op == "convert" else []))

    def allocate(self, buffer: Buffer, size: Any | None) -> None:
        if size is None:
            self.unknown = True
            return
        self.live[buffer] = self.at_once * ((max(0, int(size)) * buffer.dtype.bytes + ROUND) // ROUND * ROUND)
        self.peak = max(self.peak, sum(self.live.values()))

    def loop(self, stm: For) -> None:
        """Note [First and last]."""
        lo, hi = self.number(stm.lo), self.number(stm.hi)
        steps = None if lo is None or hi is None else range(int(lo), int(hi), stm.step)
        if steps is not None and not steps:
            return
        if steps is not None and len(steps) <= min(FOLLOWED, self.left) and _counts(stm):
            self.left -= len(steps)
            for step in steps:
                self.set(stm.var, np.int64(step))
                self.block(stm.body)
            return
        alone = self.at_once
        if stm.tag == Tag.threads and alone == 1:
            self.at_once = self.threads if steps is None else min(self.threads, len(steps))
        before, looked_at = self.bent, (None,) if steps is None else dict.fromkeys((steps[0], steps[-1]))
        if steps is not None and len(steps) > 2 and (bent := _bent(stm)):
            if len(steps) <= min(EACH, self.left):
                self.left -= len(steps)
                looked_at = dict.fromkeys(steps)
            else:
                self.bent = before | bent
        for index in looked_at:
            if steps is None or len(steps) > 1:
                self.forget(stm)
            self.set(stm.var, None if index is None else np.int64(index))
            self.block(stm.body)
        self.at_once, self.bent = alone, before
        if steps is None or len(steps) > 1:
            self.forget(stm)

    def branch(self, stm: If) -> None:
        taken = self.number(stm.cond)
        if taken is not None:
            self.block(stm.then if taken else stm.orelse)
            return
        before, values = dict(self.live), dict(self.values)
        self.block(stm.then)
        first, self.live = self.live, before
        self.values = values
        self.block(stm.orelse)
        self.live = {b: max(first.get(b, 0), self.live.get(b, 0)) for b in {**first, **self.live}}
        self.forget(stm)

    def forget(self, stm: Stm) -> None:
        """What the statement assigns."""
        known = self.assigned.get(id(stm))
        if known is None:
            known = self.assigned[id(stm)] = {s.var for s in walk((stm,)) if isinstance(s, Assign)}
        for var in known:
            self.values.pop(var, None)


def _bent(loop: For) -> set[Var]:
    """Variables of the body that depend on the index and may be larger in between than at both ends."""
    linear, monotone, bent = {loop.var}, set[Var](), set[Var]()
    for stm in walk(loop.body):
        match stm:
            case Let(var=var, args=args):
                op = stm.op
            case Declare(var=var, init=value) | Assign(var=var, value=value):
                args, op = (value,), "identity"
            case _:
                continue
        moving = [a for a in args if a in linear or a in monotone or a in bent]
        if not moving:
            continue
        straight = all(a in linear for a in moving)
        row, alone = TABLE[op], len(moving) == 1
        if straight and (row.linear or (op == "mul" and alone)):
            linear.add(var)
        elif bent.isdisjoint(moving) and (row.linear or (row.monotone and alone)):
            monotone.add(var)  # a strip, less the start of a strip in it: taken for monotone
        else:
            bent.add(var)
    return bent


def _counts(stm: For) -> bool:
    """Whether a loop has nothing but arithmetic on whole numbers: then it is run."""
    return all(
        _counts(s) if isinstance(s, For) else isinstance(s, (Let, Assign, Declare)) and not s.var.type.dtype.is_float
        for s in stm.body
    )


def _product(cells: Sequence[Any]) -> int:
    total = 1
    for c in cells:
        total *= max(0, int(c))
    return total
