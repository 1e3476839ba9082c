"""How parallel work runs on a target: what lowering asks instead of the target's name.

One `Schedule` for each way of running. A rule that makes a loop over many elements asks it how; a target with other
ways gets fields of its own here, not tests of its name in the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tapeless.ir.target import Target
from tapeless.lower.ir.loopir import Tag


@dataclass(frozen=True)
class Schedule:
    """
    launched: the tag of loops that become kernels
    chunks:   sweeps, histograms and sums of private copies are cut into one chunk per thread, where that is worth it at run time
    each:     the elements of a map run each by itself in a kernel, and reductions by blocks of threads
    apart:    kernels have memory of their own, which the host cannot read
    deterministic: what threads add to together is added up in an order that is the same in each run
    """

    launched: Tag
    chunks: bool
    each: bool
    apart: bool = False
    deterministic: bool = False


MOST_THREADS = 1024  # of a CPU; programs have room for so many partial results, and are never called with more
THREADS = Schedule(Tag.threads, chunks=True, each=False)
ONE_THREAD = Schedule(Tag.threads, chunks=False, each=False)
GRID = Schedule(Tag.grid, chunks=False, each=True, apart=True)


def schedule_of(target: Target, alone: bool = False, deterministic: bool = False) -> Schedule:
    """
    alone:         it will run on one thread, so that there are no parallel loops
    deterministic: the same bits in each run; chunks of threads are added up in order, so a CPU always has that
    """
    match target:
        case Target.cpu:
            return ONE_THREAD if alone else THREADS
        case Target.ptx:
            return replace(GRID, deterministic=deterministic)
