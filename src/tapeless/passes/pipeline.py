"""The order of the passes over Core: the compiler's policy, in one place.

`Pipeline.run` takes one of the lists below and a verified program, and gives one that computes the same. Relies on a
pass giving the same object back when it has nothing to do: a pass is not run again on what it left alone, in whichever
list it stands.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import is_not
from time import perf_counter
from typing import TypeVar

from tapeless.ir.contents import TESTS, Kind, contents
from tapeless.ir.core import Check, For, Function, Hist, If, Library, Scatter, Sweep, Update, UpdateAcc, While, WithAcc
from tapeless.ir.segments import Segment
from tapeless.ir.target import Target
from tapeless.passes.accumulators.added_rows import add_in_place
from tapeless.passes.accumulators.cleared import leave_cleared
from tapeless.passes.accumulators.gather import gather
from tapeless.passes.accumulators.loop_sums import sum_in_loops
from tapeless.passes.accumulators.nothing_added import skip_additions_of_nothing
from tapeless.passes.accumulators.own_cells import own_cells
from tapeless.passes.accumulators.tiles import write_tiles
from tapeless.passes.accumulators.written_slices import write_at_once
from tapeless.passes.bounds.comparisons import SETTLED, settle_comparisons
from tapeless.passes.bounds.ranges import DECIDED, eliminate_checks
from tapeless.passes.bounds.tests_once import test_once
from tapeless.passes.bounds.version import version_loops
from tapeless.passes.check.verify import verify as check_function
from tapeless.passes.coarsen.closed_loops import close_loops
from tapeless.passes.coarsen.counters import count_at_once
from tapeless.passes.coarsen.moments import sum_data_first
from tapeless.passes.coarsen.stable import stable_logs
from tapeless.passes.inline import inline
from tapeless.passes.parallel.device_loops import free_loops
from tapeless.passes.parallel.distribute import distribute
from tapeless.passes.parallel.fuse import fuse
from tapeless.passes.parallel.parallelise import parallelise_derivable, parallelise_marked
from tapeless.passes.parallel.summed import sum_outer_maps
from tapeless.passes.products.product_sums import sum_products_first
from tapeless.passes.products.recognise import recognise_products
from tapeless.passes.tidy.branches import merge_branches
from tapeless.passes.tidy.cse import cse
from tapeless.passes.tidy.dce import dce
from tapeless.passes.tidy.hoist import hoist
from tapeless.passes.tidy.picked import compute_what_is_picked
from tapeless.passes.tidy.quotients import settle_quotients
from tapeless.passes.tidy.repeated_loops import drop_repeated_loops
from tapeless.passes.tidy.scales import HANDING_ON, lift_scales
from tapeless.passes.tidy.simplify import simplify
from tapeless.passes.tidy.sizes import equal_sizes

CPU = frozenset({Target.cpu})
VERIFY = bool(os.environ.get("TAPELESS_VERIFY"))  # check the program after every pass
ROUNDS = 4  # so many times at most is a list gone through


@dataclass(frozen=True)
class Pass:
    """`name` is what times are recorded under. Run for these targets only, on each function of a program or on it as a
    `whole`. Has nothing to do with a function that holds none of the things that it is `about`, by `ir/contents.py`, or
    does what `otherwise` does. One that `settles` finds next to nothing in what it has just made, and is not run on it.
    """

    name: str
    run: Callable[..., Function]
    targets: frozenset[Target] = frozenset(Target)
    whole: bool = False
    about: frozenset[Kind] | None = None
    otherwise: Pass | None = None
    reports: bool = False  # what it did
    coarsens: bool = False  # without telling: `coarsen=False` leaves it out, like those that do tell
    settles: bool = False


@dataclass(frozen=True)
class Repeated:
    """Passes that make work for each other: until none of them changes anything, or for so many rounds."""

    name: str
    passes: tuple[Pass, ...]
    rounds: int = ROUNDS


@dataclass(frozen=True)
class Followed:
    """A pass, and those that come after it where it changes something."""

    first: Pass
    passes: tuple[Pass | Repeated, ...]


Step = Pass | Repeated | Followed


def passes_in(steps: Sequence[Step]) -> Iterator[Pass]:
    """One by one, in order."""
    for step in steps:
        if isinstance(step, Pass):
            yield step
        else:
            yield from passes_in((step.first, *step.passes) if isinstance(step, Followed) else step.passes)


log = logging.getLogger("tapeless")
Result = TypeVar("Result")

LOOPS = frozenset({For, While, Sweep, Hist, Scatter})
SWEPT = frozenset({Sweep, Hist, Scatter, WithAcc})

_SIMPLIFY = Pass("simplify", simplify, settles=True)
_TIDYING = (
    _SIMPLIFY,
    Pass("cse", cse, settles=True),
    Pass("branches", merge_branches, about=frozenset({If})),
    Pass("repeated loops", drop_repeated_loops, about=frozenset({For, While})),
    Pass("hoist", hoist, about=LOOPS),
    Pass("dce", dce),
)
TIDY = Repeated("tidy", _TIDYING)
TIDY_ONCE = replace(TIDY, rounds=1)  # between other passes: what a second round would find, the last ones do

# The last time, before lowering: see Note [Branches as selections] in `selections`.
_SPECULATE = partial(simplify, speculate=True)
_SELECT = Pass("simplify", _SPECULATE, about=frozenset({If, "select"}), otherwise=_SIMPLIFY, settles=True)
TIDY_FINALLY = Repeated("tidy finally", (_SELECT, *_TIDYING[1:]))

INLINE = Pass("inline", inline, CPU, whole=True)
DEVICES = frozenset(Target) - CPU
INLINE_ALL = Pass("inline all", partial(inline, everything=True), DEVICES, whole=True)
LOOP_SUMS = Pass("loop sums", sum_in_loops, about=frozenset({WithAcc}))
OWN_CELLS = Pass("own cells", own_cells, about=frozenset({WithAcc}))
CHECKS = Pass("ranges", eliminate_checks, about=DECIDED, settles=True)
NO_CHECKS = Pass("unchecked", partial(eliminate_checks, unsafe=True), about=DECIDED)
COMPARISONS = Pass("intervals", settle_comparisons, about=SETTLED)
CLOSED_LOOPS = Pass("closed loops", close_loops, about=frozenset({For}), reports=True)
STABLE_LOGS = Pass("stable logs", stable_logs, about=frozenset({"log", "log1p"}), coarsens=True)
DATA_SUMS = Followed(
    Pass("data sums", sum_data_first, about=frozenset({For}), reports=True), (TIDY_ONCE, CLOSED_LOOPS, TIDY_ONCE)
)
_COUNTING = Pass("counters", count_at_once, about=frozenset({For})), _SIMPLIFY, CHECKS
COUNTERS = Repeated("counters", tuple(replace(step, targets=DEVICES) for step in _COUNTING))
SCALES = Followed(Pass("scales", lift_scales, about=HANDING_ON), (_SELECT,))
SIZES = Pass("sizes", equal_sizes, about=frozenset({Check}))
FUSE = Pass("fuse", fuse, about=SWEPT)
PRODUCTS = Pass("recognise", recognise_products, about=frozenset({Sweep, For}))

# Before a function is differentiated: rules shall see few and large statements.
PREPARING: tuple[Step, ...] = (
    TIDY_ONCE,
    SIZES,
    COMPARISONS,
    CLOSED_LOOPS,
    Pass("parallelise", parallelise_derivable, about=frozenset({For})),
    CHECKS,
    TIDY_ONCE,
    LOOP_SUMS,
    OWN_CELLS,
    TIDY_ONCE,
    FUSE,
    STABLE_LOGS,
    DATA_SUMS,
    PRODUCTS,
    TIDY,
)


# Before a function is lowered: put small functions in place of their calls, prove parallel loops, drop tests of indices, fuse, find products, polish.
FINISHING: tuple[Step, ...] = (
    INLINE,
    INLINE_ALL,
    TIDY_ONCE,
    SIZES,
    COMPARISONS,
    CLOSED_LOOPS,
    Pass("parallelise", parallelise_marked, about=frozenset({For})),
    CHECKS,
    TIDY_ONCE,
    Pass("cleared", leave_cleared, about=frozenset({For})),
    COUNTERS,
    Pass("free loops", free_loops, DEVICES, about=frozenset({For})),
    LOOP_SUMS,
    OWN_CELLS,
    TIDY_ONCE,
    Pass("gather", gather, about=frozenset({WithAcc})),
    TIDY_ONCE,
    FUSE,
    DATA_SUMS,
    PRODUCTS,
    Pass("product sums", sum_products_first, about=frozenset({Library})),
    Pass("added rows", add_in_place, about=frozenset({UpdateAcc})),
    Pass("version", version_loops, about=frozenset({For, Sweep})),
    Pass("tests once", test_once, about=frozenset({TESTS, Check})),
    Pass("written slices", write_at_once, DEVICES, about=frozenset({Update})),
    Pass("distribute", distribute, DEVICES, about=frozenset({Sweep})),
    Pass("summed", sum_outer_maps, DEVICES, about=frozenset({UpdateAcc})),
    TIDY_FINALLY,
    SCALES,
    Pass("picked", compute_what_is_picked, about=frozenset({"select"})),
    Pass("quotients", settle_quotients, about=frozenset({"quotient"})),
    Pass("tiles", write_tiles, CPU, about=frozenset({WithAcc})),
    Pass("nothing added", skip_additions_of_nothing, about=frozenset({UpdateAcc})),
)


@dataclass
class Pipeline:
    """Runs passes. `times` gets the seconds spent in each under its name, those of the verifier under "verify"."""

    times: dict[str, float] = field(default_factory=dict)
    target: Target = Target.cpu
    verify: bool = VERIFY
    settled: dict[tuple[Pass, str], Function] = field(default_factory=dict)  # what a pass need not see again, by name
    contents: dict[str, tuple[Function, set[Kind]]] = field(default_factory=dict)  # of the latest function of a name
    coarsen: bool = True
    segments: list[Segment] = field(default_factory=list)  # what coarsening replaced

    def run(self, steps: Sequence[Step], function: Function) -> Function:
        for step in steps:
            match step:
                case Pass():
                    function = self._pass(step, function)
                case Repeated():
                    function = self._repeated(step, function)
                case Followed(first, passes):
                    before, function = function, self._pass(first, function)
                    function = function if function is before else self.run(passes, function)
        return function

    def _repeated(self, repeated: Repeated, function: Function) -> Function:
        for _ in range(repeated.rounds):
            before = function
            function = self.run(repeated.passes, function)
            if function is before:
                break
        return function

    def _pass(self, step: Pass, program: Function) -> Function:
        if self.target not in step.targets or ((step.reports or step.coarsens) and not self.coarsen):
            return program
        calls = program.calls if step.whole else tuple(self._one(step, f) for f in program.calls)
        new = self._one(step, program)
        if not step.whole and any(map(is_not, calls, program.calls)):
            new = replace(new, calls=calls)
        if new is not program and self.verify:
            self._timed("verify", check_function, new)
        return new

    def _one(self, step: Pass, function: Function) -> Function:
        if step.about is not None and step.about.isdisjoint(self._contents(function)):
            if step.otherwise is None:
                self.times.setdefault(step.name, 0.0)
                return function
            step = step.otherwise
        if self.settled.get((step, function.name)) is function:
            return function
        run = partial(step.run, report=self.segments.append) if step.reports else step.run
        new = self._timed(step.name, run, function)
        if new is function or step.settles:
            self.settled[step, function.name] = new
        return new

    def _contents(self, function: Function) -> set[Kind]:
        known = self.contents.get(function.name)
        if known is None or known[0] is not function:
            known = self.contents[function.name] = function, contents(function.body)
        return known[1]

    def _timed(self, name: str, run: Callable[[Function], Result], function: Function) -> Result:
        start = perf_counter()
        result = run(function)
        seconds = perf_counter() - start
        self.times[name] = self.times.get(name, 0.0) + seconds
        log.debug("%s of %s: %.1f ms", name, function.name, 1000 * seconds)
        return result


def tidied(function: Function) -> Function:
    return Pipeline().run((TIDY,), function)


def finished(
    function: Function,
    *,
    unsafe: bool = False,
    coarsen: bool = True,
    target: Target = Target.cpu,
    times: dict[str, float] | None = None,
    segments: list[Segment] | None = None,
) -> Function:
    """What the in-place check and lowering take. With `unsafe`, without tests of indices. `segments` gets what
    coarsening replaced.
    """
    steps = tuple(NO_CHECKS if step is CHECKS and unsafe else step for step in FINISHING)
    found = [] if segments is None else segments
    return Pipeline({} if times is None else times, target, coarsen=coarsen, segments=found).run(steps, function)
