"""From a Python function and argument specs to something that can be called: trace, optimise, lower, emit, load.

Gives `Compiled` with the text of every stage. The disk cache has the code by the traced program with its places in the
source, the options and the machine, so nothing that decides the code is missing from its key; `recall` mostly finds
that key without a trace. Under a budget there may be several programs: Note [Programs for calls] in `budgets`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tapeless.backends.cpu.compile import compile_program, load
from tapeless.backends.cpu.libraries import is_fortran
from tapeless.backends.cuda.driver import driver
from tapeless.errors import DeviceError, RecoveryError
from tapeless.frontend.entry import Signature, Spec, Traced, trace_specs
from tapeless.frontend.state.context import Options
from tapeless.ir.core import Function
from tapeless.ir.digest import digest
from tapeless.ir.effects import is_callback
from tapeless.ir.printer import print_function
from tapeless.ir.segments import Segment
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.target import Target
from tapeless.ir.types import DType, Var
from tapeless.ir.walk import all_stms
from tapeless.lower.footprint import Outline, outline
from tapeless.lower.ir.launches import launches
from tapeless.lower.ir.loopir import Call as LibraryCall
from tapeless.lower.ir.loopir import Program as LoopProgram
from tapeless.lower.ir.printer import print_program
from tapeless.lower.ir.verify import verify_program
from tapeless.lower.ir.walk import shows_progress, walk
from tapeless.lower.lowering import ArrayResult, Lowered, lower
from tapeless.passes.check.consumption import Inserted, check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import VERIFY, finished
from tapeless.passes.tidy.assumed import assumed
from tapeless.runtime import cache, recall
from tapeless.runtime.budgets import Budget, Numbers, Program, Programs
from tapeless.runtime.collector import resting
from tapeless.runtime.deep import with_room
from tapeless.runtime.forks import steady
from tapeless.runtime.kept import Binary, ForCall, SizeOf
from tapeless.runtime.numbers import numbers_of
from tapeless.runtime.work import Work

if TYPE_CHECKING:
    from tapeless.backends.cuda.compile import Loaded


@dataclass
class Compiled:
    """One specialisation. What the cache did not keep is made on demand, beginning with the trace."""

    signature: Signature
    options: Options
    binary: Binary
    address: int
    device: Loaded | None
    trace: Callable[[], Traced]
    times: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False
    budget: Budget | None = None

    @cached_property
    def traced(self) -> Traced:
        return with_room(self.trace)

    @cached_property
    def optimized(self) -> Function:
        return self._finished()

    @cached_property
    def segments(self) -> list[Segment]:
        """What coarsening replaced, by place: first for derivatives, then in the whole."""
        found = list(self.traced.segments)
        self._finished(segments=found)
        return list(dict.fromkeys(found))

    def _finished(self, **more: Any) -> Function:
        return finished(self.traced.core, unsafe=self.options.unsafe, coarsen=self.options.coarsen, **more)

    @cached_property
    def in_place(self) -> Function:
        return check_in_place(self.optimized)[0]

    @cached_property
    def lowered(self) -> Lowered:
        return _lower(self.in_place, Target.cpu, self.options)

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
            case "kernels":
                return launches(self._for_a_gpu())
            case "ptx":
                from tapeless.backends.llvm.ptx import ptx  # starts faster

                return ptx(self._for_a_gpu())[0]
        raise ValueError(f"unknown stage {stage!r}: use core, optimized, loops, llvm, asm, kernels or ptx")

    def _for_a_gpu(self) -> LoopProgram:
        core = self._finished(target=Target.ptx)
        return _lower(check_in_place(core)[0], Target.ptx, self.options).program


def _lower(core: Function, target: Target, options: Options) -> Lowered:
    return lower(core, target, options.fastmath, options.alone, options.deterministic)


@dataclass(frozen=True)
class Call:
    """One that code is wanted for."""

    leaves: Sequence[Any]
    threads: int


@resting()
def compile_specs(
    function: Any,
    specs: Sequence[Spec],
    tree: Any,
    options: Options,
    use_cache: bool = True,
    level: int = 3,
    call: Call | None = None,
) -> Compiled:
    """`level` is LLVM's; code of a lower one than the highest stays out of the cache. Under a budget the code is for
    this `call`, if there is one, and others make what they need.
    """
    with Work(getattr(function, "__name__", "function")) as work:
        source = _Source(function, specs, tree, options, use_cache and level == 3, level)
        return source.compiled(work, call)


_Code = tuple[Binary, int, "Loaded | None"]  # with its address, and what is on a device


@dataclass
class _Lowered:
    """A program that is not machine code yet."""

    lowered: Lowered
    core: Function
    copies: list[Inserted]


class _Source:
    """A function for one kind of arguments, on its way to machine code."""

    def __init__(
        self, function: Any, specs: Sequence[Spec], tree: Any, options: Options, use_cache: bool, level: int
    ) -> None:
        self.function, self.specs, self.tree, self.options = function, specs, tree, options
        self.use_cache, self.level = use_cache, level
        self.target = Target.cpu if options.device == "cpu" else Target.ptx
        use_cache = self.use_cache
        self.place = recall.key_of(function, specs, tree, options) if use_cache else None

    @cached_property
    def traced(self) -> Traced:
        return trace_specs(self.function, self.specs, self.tree, self.options)

    def compiled(self, work: Work, call: Call | None) -> Compiled:
        if self.use_cache:
            with work.at("cache"):
                known = self._recalled(work, call)
            if known is not None:
                return known
        with work.at("trace"):
            traced = self.traced
        if traced.signature.memory is not None:
            return self._within_budget(work, call)
        key, found = self._known(work, traced.core)
        if key and self.place is not None:
            recall.remember(self.place, self.function, self.specs, self.tree, traced, key)
        from_cache = found is not None
        code = found or self._native(work, self._lowered(work, traced.core), key)
        return Compiled(traced.signature, self.options, *code, lambda: traced, work.times, from_cache)

    def _on_device(self, work: Work, made: _Lowered) -> _Code:
        from tapeless.backends.cuda.compile import compile_program  # starts faster

        program = made.lowered.program
        called = {s for s in walk(program.body) if isinstance(s, LibraryCall)}
        routines = sorted({s.name for s in called if not s.of_device and not is_fortran(s.name)})
        if routines:
            raise DeviceError(f"{', '.join(routines)} does not run on a GPU yet: use device='cpu'")
        try:
            with work.at("native"):
                native = compile_program(program, driver())
        except NotImplementedError as problem:
            raise DeviceError(f"this does not run on a GPU yet: {problem}") from None
        binary = self._binary(made, native.name, (native.object,), native.externals, {})
        binary.device = native.device
        with work.at("load"):
            return _loaded(binary)

    def _recalled(self, work: Work, call: Call | None) -> Compiled | None:
        """From the cache, without a trace."""
        if self.place is None:
            return None
        leaves = None if call is None else call.leaves
        known = recall.recall(self.place, self.function, self.specs, self.tree, leaves)
        found = None if known is None else _fetched(known.code)
        if known is None or found is None:
            return None
        binary, signature = found[0], known.signature
        compiled = Compiled(signature, self.options, *found, lambda: self._assumed(known.call), work.times, True)
        if signature.memory is not None and binary.outline is not None:
            program = Program(*binary.outline, binary.sites, lambda: compiled)
            compiled.budget = self._budget(signature.memory, call, [program])
            if known.call is not None and call is not None:
                numbers = numbers_of(signature, call.leaves)
                compiled.budget.known[compiled.budget.key(numbers)] = (program, known.call.room)
        return compiled

    # -- under a budget

    def _within_budget(self, work: Work, call: Call | None) -> Compiled:
        signature = self.traced.signature
        assert signature.memory is not None
        budget = self._budget(signature.memory, call, [], work)
        if call is None:
            budget.programs.add((), None)
            compiled: Compiled = budget.for_all.compiled()
            return compiled
        numbers, room = numbers_of(signature, call.leaves), 0
        try:
            program, room = budget.find(numbers)
        except RecoveryError:  # the call itself says so, if it comes to that
            program = budget.for_all
        compiled = program.compiled()
        if self.place is not None:
            for_call = None if program.serves_all else ForCall(budget.key(numbers), room)
            recall.remember(self.place, self.function, self.specs, self.tree, self.traced, program.key, for_call)
        return compiled

    def _budget(
        self, memory: tuple[int, int], call: Call | None, made: list[Program], work: Work | None = None
    ) -> Budget:
        def make(numbers: Numbers, room: int | None) -> Program:
            with nullcontext(first.pop()) if first else Work(self.function.__name__) as working, steady, resting():
                return with_room(lambda: self._program(working, budget, numbers, room))

        def where() -> Span:
            return next((s.span for s in self.traced.core.body.stms if s.span.line), NOWHERE)

        first = [work] if work is not None else []
        budget = Budget(
            *memory,
            Programs(make, [p for p in made if not p.serves_all], next((p for p in made if p.serves_all), None)),
            1 if call is None else call.threads,
            where,
        )
        return budget

    def _program(self, work: Work, budget: Budget, numbers: Numbers, room: int | None) -> Program:
        """One for such a call; without a room, for all."""
        traced = self._assumed(None if room is None else ForCall(tuple(numbers), room))
        key, found = self._known(work, traced.core)
        signature, options = traced.signature, self.options

        def compiled(code: _Code, from_cache: bool) -> Compiled:
            return Compiled(signature, options, *code, lambda: traced, work.times, from_cache, budget)

        if found is not None and found[0].outline is not None:
            ready = compiled(found, True)
            return Program(*found[0].outline, found[0].sites, lambda: ready, key)
        lowered = self._lowered(work, traced.core)
        sketch, inputs = _outlined(lowered)

        @functools.cache
        def made() -> Compiled:
            with steady, resting():
                return compiled(self._native(work, lowered, key), False)

        return Program(sketch, inputs, lowered.lowered.program.sites, made, key)

    def _assumed(self, call: ForCall | None) -> Traced:
        """With the ways that a call takes, if one is given."""
        traced = self.traced
        if call is None:
            return traced
        core = traced.core
        given = zip((*core.sizes, *core.params), (*call.numbers, call.room), strict=True)
        whole = {v: x for v, x in given if x is not None and not v.type.dtype.is_float and not v.type.dtype.is_complex}
        return replace(traced, core=assumed(core, whole, core.params[-1]))

    # -- stages

    def _key(self, core: Function) -> str:
        return cache.key_of(*recall.surroundings(replace(self.options, memory=None)), digest(core))

    def _known(self, work: Work, core: Function) -> tuple[str, _Code | None]:
        """The key of the code, and what the cache has."""
        if not self.use_cache or any(is_callback(s.exp) for f in (core, *core.calls) for s in all_stms(f.body)):
            return "", None
        with work.at("cache"):
            key = self._key(core)
            return key, _fetched(key)

    def _lowered(self, work: Work, core: Function) -> _Lowered:
        options = self.options
        with work.at("passes", record=False):
            core = finished(core, unsafe=options.unsafe, coarsen=options.coarsen, target=self.target, times=work.times)
        with work.at("in place"):
            core, copies = check_in_place(core)
        with work.at("lower"):
            lowered = _lower(core, self.target, options)
        if VERIFY:
            verify(core)
            verify_program(lowered.program)
        return _Lowered(lowered, core, copies)

    def _native(self, work: Work, made: _Lowered, key: str) -> _Code:
        code = self._on_cpu(work, made) if self.target is Target.cpu else self._on_device(work, made)
        if key:
            cache.store(key, code[0])
        return code

    def _on_cpu(self, work: Work, made: _Lowered) -> _Code:
        with work.at("native", record=False):
            native = compile_program(made.lowered.program, self.level, work)
            work.times.update(native.times)
        binary = self._binary(made, native.name, native.objects, native.externals, native.helpers)
        with work.at("load"):
            return _loaded(binary)

    def _binary(
        self,
        made: _Lowered,
        name: str,
        objects: tuple[bytes, ...],
        externals: tuple[str, ...],
        helpers: dict[str, bytes],
    ) -> Binary:
        program = made.lowered.program
        sizes = {v: SizeOf(k) for k, v in enumerate(made.core.sizes)}
        arrays = {k: _convention(r, sizes) for k, r in made.lowered.array_results.items()}
        return Binary(
            name,
            objects,
            externals,
            helpers,
            program.scalar_results,
            made.lowered.scalar_results,
            arrays,
            program.sites,
            made.copies,
            made.lowered.blas,
            None if self.traced.signature.memory is None else _outlined(made),
            made.core.name if shows_progress(program) else "",
        )


def _outlined(made: _Lowered) -> tuple[Outline, tuple[Var, ...]]:
    return outline(made.lowered), (*made.core.sizes, *made.core.params)


def _loaded(binary: Binary) -> _Code:
    if binary.device is None:
        return binary, load(binary.objects, binary.name, binary.externals, binary.helpers), None
    from tapeless.backends.cuda.compile import Loaded  # starts faster

    loaded = Loaded(binary.name, binary.objects[0], binary.externals, binary.device, driver())
    return binary, loaded.address, loaded


def _fetched(key: str) -> _Code | None:
    """Code from the cache, loaded; what does not load counts as absent."""
    found = cache.fetch(key)
    if not isinstance(found, Binary):
        return None
    try:
        return _loaded(found)
    except Exception:  # LLVM's, or that of a library which is not there any more
        return None


def _convention(
    result: ArrayResult, sizes: dict[Any, SizeOf]
) -> tuple[DType, bool, tuple[int | SizeOf, ...], tuple[int, ...], int]:
    """Without variables: sizes by their number."""
    shape = tuple(d if isinstance(d, int) else sizes[d] for d in result.shape)
    return (result.type.dtype, result.provided, shape, result.scalars, result.given)
