"""Loop IR to machine code for this CPU, in one call.

`compile_program` gives a `Native`, whose object can be kept on disk and loaded by another process on the same kind of
machine with `load`. The entry's calling convention is Note [Entry] of backends/llvm/emit.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

from tapeless.backends.cpu import interrupts, products
from tapeless.backends.cpu.engine import load
from tapeless.backends.llvm import host, optimize
from tapeless.backends.llvm.at_once import AtOnce
from tapeless.backends.llvm.emit import emit
from tapeless.backends.llvm.uninterrupted import uninterrupted
from tapeless.backends.llvm.units import Unit
from tapeless.lower.ir.loopir import Program


class Parts(Protocol):
    """Somebody who wants to know how far the work is."""

    def expect(self, parts: int) -> None: ...

    def part_done(self) -> None: ...


@dataclass
class Native:
    """A compiled program. `times` holds seconds by phase: emit, parse, optimize, codegen; those of all threads."""

    name: str
    llvm: str
    objects: tuple[bytes, ...]
    externals: tuple[str, ...]
    helpers: dict[str, bytes]  # objects for some of them
    times: dict[str, float] = field(default_factory=dict)

    @cached_property
    def address(self) -> int:
        """Loads the object."""
        with optimize.timed(self.times, "load"):
            return load(self.objects, self.name, self.externals, self.helpers)

    @cached_property
    @uninterrupted
    def optimized(self) -> str:
        module = optimize.parse(self.llvm)
        optimize.optimize(module)
        return str(module)

    @cached_property
    @uninterrupted
    def asm(self) -> str:
        return optimize.to_asm(optimize.parse(self.optimized))


@uninterrupted
def compile_program(program: Program, level: int = 3, parts: Parts | None = None) -> Native:
    """Machine code at LLVM's optimisation level `level`; 0 compiles fastest, for tests. `parts` is told how far it is."""
    times: dict[str, float] = {}
    with AtOnce(partial(_object, level, times, parts)) as units:
        with optimize.timed(times, "emit"):
            emitted = emit(program, host.host(), early=units.put)
        if parts is not None:
            parts.expect(len(emitted.units))
        objects = tuple(units.results(emitted.units[units.count :]))
    helpers = {name: products.guarded(name) for name in emitted.externals if products.is_guarded(name)}
    signals = [name for name in interrupts.EXPORTED if name in emitted.externals]
    if signals:  # one object for all of them
        helpers[signals[0]] = interrupts.object_code()
    return Native(program.name, emitted.text, objects, emitted.externals, helpers, times)


def _object(level: int, times: dict[str, float], parts: Parts | None, unit: Unit) -> bytes:
    level = min(level, 1) if unit.plain else level
    with optimize.timed(times, "parse"):
        module = optimize.parse(unit.text)
    with optimize.timed(times, "optimize"):
        optimize.optimize(module, level, vectorize=level > 1, unroll=not unit.large)
        if unit.polls:
            module = optimize.with_polls(module)
    with optimize.timed(times, "codegen"):
        data = optimize.to_object(module, level)
    if parts is not None:
        parts.part_done()
    return data


__all__ = ["Native", "compile_program", "load"]
