"""From a Python function and argument specs to something that can be called: trace, optimise, lower, emit, load.

Gives `Compiled` with the text of every stage. The disk cache has the code by the traced program with its places in the
source, the options and the machine, so nothing that decides the code is missing from its key; `recall` mostly finds
that key without a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tapeless.backends.cpu.compile import compile_program, load
from tapeless.frontend.entry import Signature, Spec, Traced, trace_specs
from tapeless.frontend.state.context import Options
from tapeless.ir.core import Function
from tapeless.ir.digest import digest
from tapeless.ir.printer import print_function
from tapeless.ir.target import Target
from tapeless.ir.types import DType
from tapeless.lower.footprint import outline
from tapeless.lower.ir.printer import print_program
from tapeless.lower.ir.verify import verify_program
from tapeless.lower.ir.walk import shows_progress
from tapeless.lower.lowering import ArrayResult, Lowered, lower
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import VERIFY, finished
from tapeless.runtime import cache, recall
from tapeless.runtime.collector import resting
from tapeless.runtime.deep import with_room
from tapeless.runtime.kept import Binary, SizeOf
from tapeless.runtime.work import Work


@dataclass
class Compiled:
    """One specialisation. What the cache did not keep is made on demand, beginning with the trace."""

    signature: Signature
    options: Options
    binary: Binary
    address: int
    trace: Callable[[], Traced]
    times: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False

    @cached_property
    def traced(self) -> Traced:
        return with_room(self.trace)

    @cached_property
    def optimized(self) -> Function:
        return finished(self.traced.core, unsafe=self.options.unsafe)

    @cached_property
    def in_place(self) -> Function:
        return check_in_place(self.optimized)[0]

    @cached_property
    def lowered(self) -> Lowered:
        return lower(self.in_place, fastmath=self.options.fastmath, alone=self.options.alone)

    def text(self, stage: str) -> str:
        return with_room(lambda: self._text(stage))

    def _text(self, stage: str) -> str:
        match stage:
            case "core":
                return print_function(self.traced.core)
            case "optimized":
                return print_function(self.in_place)
            case "loops":
                return print_program(self.lowered.program)
            case "llvm":
                return compile_program(self.lowered.program).optimized
            case "asm":
                return compile_program(self.lowered.program).asm
            case "ptx":
                from tapeless.backends.llvm.ptx import ptx  # starts faster

                core = finished(self.traced.core, unsafe=self.options.unsafe, target=Target.ptx)
                return ptx(lower(check_in_place(core)[0], target=Target.ptx, fastmath=self.options.fastmath).program)[0]
        raise ValueError(f"unknown stage {stage!r}: use core, optimized, loops, llvm, asm or ptx")


@resting()
def compile_specs(
    function: Any, specs: Sequence[Spec], tree: Any, options: Options, use_cache: bool = True, level: int = 3
) -> Compiled:
    """`level` is LLVM's; code of a lower one than the highest stays out of the cache."""
    with Work(getattr(function, "__name__", "function")) as work:
        return _compile(work, function, specs, tree, options, use_cache and level == 3, level)


def _compile(
    work: Work, function: Any, specs: Sequence[Spec], tree: Any, options: Options, use_cache: bool, level: int
) -> Compiled:
    if use_cache:
        with work.at("cache"):
            place = recall.key_of(function, specs, tree, options)
            known = recall.recall(place, function, specs, tree) if place is not None else None
            found = _fetched(known[0]) if known is not None else None
        if known is not None and found is not None:
            again = lambda: trace_specs(function, specs, tree, options)  # noqa: E731
            return Compiled(known[1], options, *found, again, work.times, True)
    with work.at("trace"):
        traced = trace_specs(function, specs, tree, options)
    if use_cache:
        with work.at("cache"):
            key = cache.key_of(*recall.surroundings(replace(options, memory=None)), digest(traced.core))
            if place is not None:
                recall.remember(place, function, specs, tree, traced, key)
            found = _fetched(key)
        if found is not None:
            return Compiled(traced.signature, options, *found, lambda: traced, work.times, True)
    binary = _binary(work, traced, options, level)
    with work.at("load"):
        address = load(binary.objects, binary.name, binary.externals, binary.helpers)
    if use_cache:
        cache.store(key, binary)
    return Compiled(traced.signature, options, binary, address, lambda: traced, work.times)


def _binary(work: Work, traced: Traced, options: Options, level: int) -> Binary:
    with work.at("passes", record=False):
        core = finished(traced.core, unsafe=options.unsafe, times=work.times)
    with work.at("in place"):
        core, copies = check_in_place(core)
    with work.at("lower"):
        lowered = lower(core, fastmath=options.fastmath, alone=options.alone)
    if VERIFY:
        verify(core)
        verify_program(lowered.program)
    with work.at("native", record=False):
        native = compile_program(lowered.program, level, work)
        work.times.update(native.times)
    sizes = {v: SizeOf(k) for k, v in enumerate(traced.core.sizes)}
    arrays = {k: _convention(r, sizes) for k, r in lowered.array_results.items()}
    program = lowered.program
    return Binary(
        native.name,
        native.objects,
        native.externals,
        native.helpers,
        program.scalar_results,
        lowered.scalar_results,
        arrays,
        program.sites,
        copies,
        lowered.blas,
        None if traced.signature.memory is None else (outline(lowered), (*core.sizes, *core.params)),
        core.name if shows_progress(program) else "",
    )


def _fetched(key: str) -> tuple[Binary, int] | None:
    """Code from the cache, loaded; what does not load counts as absent."""
    found = cache.fetch(key)
    if not isinstance(found, Binary):
        return None
    try:
        return found, load(found.objects, found.name, found.externals, found.helpers)
    except Exception:  # LLVM's, or that of a library which is not there any more
        return None


def _convention(
    result: ArrayResult, sizes: dict[Any, SizeOf]
) -> tuple[DType, bool, tuple[int | SizeOf, ...], tuple[int, ...], int]:
    """Without variables: sizes by their number."""
    shape = tuple(d if isinstance(d, int) else sizes[d] for d in result.shape)
    return (result.type.dtype, result.provided, shape, result.scalars, result.given)
