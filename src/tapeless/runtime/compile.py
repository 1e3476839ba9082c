"""From a Python function and argument specs to something that can be called: trace, optimise, lower, emit, load.

Gives `Compiled` with the text of every stage. The disk cache has the code by the traced program with its places in the
source, the options and the machine, so nothing that decides the code is missing from its key; `recall` mostly finds
that key without a trace.
"""

from __future__ import annotations

import time
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
from tapeless.lower.lowering import ArrayResult, Lowered, lower
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import VERIFY, finished
from tapeless.runtime import cache, recall
from tapeless.runtime.collector import resting
from tapeless.runtime.deep import with_room
from tapeless.runtime.kept import Binary, SizeOf


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
    use_cache = use_cache and level == 3
    times: dict[str, float] = {}
    start = time.perf_counter()
    place = recall.key_of(function, specs, tree, options) if use_cache else None
    known = recall.recall(place, function, specs, tree) if place is not None else None
    if known is not None:
        found = _fetched(known[0])
        if found is not None:
            times["cache"] = time.perf_counter() - start
            again = lambda: trace_specs(function, specs, tree, options)  # noqa: E731
            return Compiled(known[1], options, *found, again, times, True)
    start = time.perf_counter()
    traced = trace_specs(function, specs, tree, options)
    times["trace"] = time.perf_counter() - start
    if use_cache:
        start = time.perf_counter()
        key = cache.key_of(*recall.surroundings(replace(options, memory=None)), digest(traced.core))
        if place is not None:
            recall.remember(place, function, specs, tree, traced, key)
        found = _fetched(key)
        if found is not None:
            times["cache"] = time.perf_counter() - start
            return Compiled(traced.signature, options, *found, lambda: traced, times, True)
    core = finished(traced.core, unsafe=options.unsafe, times=times)
    start = time.perf_counter()
    core, copies = check_in_place(core)
    times["in place"] = time.perf_counter() - start
    start = time.perf_counter()
    lowered = lower(core, fastmath=options.fastmath, alone=options.alone)
    times["lower"] = time.perf_counter() - start
    if VERIFY:
        verify(core)
        verify_program(lowered.program)
    native = compile_program(lowered.program, level)
    times.update(native.times)
    sizes = {v: SizeOf(k) for k, v in enumerate(traced.core.sizes)}
    arrays = {k: _convention(r, sizes) for k, r in lowered.array_results.items()}
    program = lowered.program
    binary = Binary(
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
    )
    start = time.perf_counter()
    address = load(binary.objects, binary.name, binary.externals, binary.helpers)
    times["load"] = time.perf_counter() - start
    if use_cache:
        cache.store(key, binary)
    return Compiled(traced.signature, options, binary, address, lambda: traced, times)


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
