"""Rules for branches and loops, and for threads that wait for each other.

Note [Lockstep]
The iterations of a `block` loop with barriers run as generators. In each round every one runs up to its next barrier,
and all must meet at the same one; those that a failing check has ended are not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tapeless.lower.ir.interp.machine import LoopError, Machine, Scope, executes
from tapeless.lower.ir.interp.races import Races, Who
from tapeless.lower.ir.loopir import BLOCK_THREADS, Barrier, For, If, Stm, Tag, Wait, While
from tapeless.lower.ir.verify import LoopIRError


@executes(If)
def choice(machine: Machine, stm: If, scope: Scope) -> None:
    machine.block(stm.then if machine.value(stm, stm.cond, scope) else stm.orelse, scope)


@executes(While)
def repeat(machine: Machine, stm: While, scope: Scope) -> None:
    machine.block(stm.test, scope)
    while machine.value(stm, stm.cond, scope):
        machine.block(stm.body, scope)
        machine.block(stm.test, scope)


@executes(For)
def loop(machine: Machine, stm: For, scope: Scope) -> None:
    if id(stm) in machine.waits and stm.tag == Tag.block:
        for _ in lockstep(machine, stm, scope):  # all threads of the block wait: go on
            pass
    elif stm.tag.parallel:
        parallel(machine, stm, scope)
    else:
        for i in indices(machine, stm, scope):
            scope[stm.var] = np.int64(i)
            machine.block(stm.body, scope)


def parallel(machine: Machine, stm: For, scope: Scope) -> None:
    """A failing check ends its iteration; the first one ends the loop once all iterations have run."""
    first: LoopError | None = None
    outer = machine.races
    if stm.tag == Tag.grid:
        machine.races = Races()
    for i in indices(machine, stm, scope):
        if machine.races is not None:
            who = machine.races.who
            machine.races.who = Who(i) if stm.tag == Tag.grid else replace(who, thread=i % BLOCK_THREADS)
        try:
            machine.block(stm.body, {**scope, stm.var: np.int64(i)})
        except LoopError as error:
            first = first or error
    machine.races = outer
    if first is not None:
        raise first


def indices(machine: Machine, stm: For, scope: Scope) -> Iterable[int]:
    lo, hi = (int(machine.value(stm, atom, scope)) for atom in (stm.lo, stm.hi))
    forward = range(lo, hi, stm.step)
    if machine.random is None or stm.tag == Tag.seq:
        return forward
    return machine.random.sample(forward, len(forward))


# -- barriers


@executes(Barrier)
def stray_barrier(machine: Machine, stm: Barrier, scope: Scope) -> None:
    raise machine.fault(stm, "there is no block loop around")


@executes(Wait)
def wait(machine: Machine, stm: Wait, scope: Scope) -> None:
    """Kernels run when they are launched."""


def lockstep(machine: Machine, stm: For, scope: Scope) -> Iterator[Barrier]:
    """Note [Lockstep]. Yields where all threads wait, so that a block loop around this one can wait there too."""
    running = [(i, steps(machine, stm.body, {**scope, stm.var: np.int64(i)})) for i in indices(machine, stm, scope)]
    first: LoopError | None = None
    while running:
        if machine.random is not None:
            machine.random.shuffle(running)
        waiting: list[tuple[int, Iterator[Barrier]]] = []
        barriers: set[int] = set()
        barrier, finished = Barrier(), 0
        for i, thread in running:
            if machine.races is not None:
                machine.races.who = replace(machine.races.who, thread=i % BLOCK_THREADS)
            try:
                barrier = next(thread)
                barriers.add(id(barrier))
                waiting.append((i, thread))
            except StopIteration:
                finished += 1
            except LoopError as error:
                first = first or error
            except LoopIRError:
                if first is None:
                    raise  # else it looked for what a thread that failed did not write: nobody will see it
        if waiting and (finished or len(barriers) > 1):
            raise machine.fault(stm, f"{len(waiting)} threads wait at a barrier that others do not reach")
        if waiting:
            yield barrier
            if machine.races is not None:
                machine.races.who = replace(machine.races.who, barriers=machine.races.who.barriers + 1)
        running = waiting
    if first is not None:
        raise first


def steps(machine: Machine, stms: tuple[Stm, ...], scope: Scope) -> Iterator[Barrier]:
    """One thread of a block, from barrier to barrier."""
    machine.enter(stms, scope)
    for stm in stms:
        match stm:
            case _ if id(stm) not in machine.waits:
                machine.execute(stm, scope)
            case Barrier():
                yield stm
            case If(cond=cond, then=then, orelse=orelse):
                yield from steps(machine, then if machine.value(stm, cond, scope) else orelse, scope)
            case While(test=test, cond=cond, body=body):
                yield from steps(machine, test, scope)
                while machine.value(stm, cond, scope):
                    yield from steps(machine, body, scope)
                    yield from steps(machine, test, scope)
            case For(tag=Tag.block):
                yield from lockstep(machine, stm, scope)
            case For(tag=Tag.seq, var=var, body=body):
                for i in indices(machine, stm, scope):
                    scope[var] = np.int64(i)
                    yield from steps(machine, body, scope)
            case _:
                raise machine.fault(stm, "there is a barrier inside")
