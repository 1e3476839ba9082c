"""LLVM's optimiser and code generator over the emitter's text.

`optimize` takes LLVM IR and gives a module after the O3 pipeline for this machine; `to_object` and `to_asm` take that.
The time of each phase goes into a dictionary of seconds.

Note [What LLVM keeps]
Types and constants stay in their context for ever, so each module has its own, which goes with it. Managers of passes
are given back by hand: those of llvmlite do not do it themselves (30 to 80 kB a module). Builders of passes keep a
kilobyte each, so there is one for each choice.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from tapeless.backends.llvm import host, unlocked
from tapeless.backends.llvm.polls import add_polls

_idle: list[_Tools] = []


class _Tools:
    """Target machines, which take a millisecond to make and serve one thread at a time, and builders of passes."""

    def __init__(self) -> None:
        self.machines: dict[int, Any] = {}  # by their level
        self.builders: dict[tuple[int, bool, bool], Any] = {}

    def machine(self, level: int = 3) -> Any:
        if level not in self.machines:
            self.machines[level] = host.machine(level)
        return self.machines[level]


@contextmanager
def _tools() -> Iterator[_Tools]:
    """Somebody else's that are not in use, or new ones."""
    try:
        tools = _idle.pop()
    except IndexError:
        tools = _Tools()
    yield tools
    _idle.append(tools)


@contextmanager
def timed(times: dict[str, float], phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[phase] = times.get(phase, 0.0) + time.perf_counter() - start


def parse(text: str, context: Any = None) -> Any:
    """A module in a context of its own, or in this one. Note [What LLVM keeps]"""
    host.initialize()
    context = context or llvm.create_context()
    module = in_context(llvm.parse_assembly(text, context), context)
    module.verify()
    return module


_contexts: dict[object, Any] = {}  # of modules that are there


def in_context(module: Any, context: Any) -> Any:
    """The module; its context goes after it, though Python collects both at once where an exception holds their frames."""
    key = object()
    _contexts[key] = context
    weakref.finalize(module, _contexts.pop, key).atexit = False
    return module


def optimize(module: Any, level: int = 3, machine: Any = None, vectorize: bool = True, unroll: bool = True) -> None:
    """Runs LLVM's standard pipeline of this level in place."""
    choice = (level, vectorize, unroll)
    if machine is not None:
        _run(module, _pass_builder(machine, *choice))
        return
    with _tools() as tools:
        if choice not in tools.builders:
            tools.builders[choice] = _pass_builder(tools.machine(), *choice)
        _run(module, tools.builders[choice])


def _run(module: Any, builder: Any) -> None:
    manager = builder.getModulePassManager()
    try:
        unlocked.run_passes(manager, module, builder)
    finally:  # Note [What LLVM keeps]
        NewPassManager._dispose(manager)
        manager.detach()


def _pass_builder(machine: Any, level: int, vectorize: bool, unroll: bool) -> Any:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectorize
    options.slp_vectorization = vectorize
    options.loop_interleaving = vectorize
    options.loop_unrolling = unroll
    return llvm.create_pass_builder(machine, options)


def with_polls(module: Any) -> Any:
    """Note [Polls], once it is optimised."""
    text = str(module)
    polled = add_polls(text)
    return module if polled is text else parse(polled)


def to_object(module: Any, level: int = 3) -> bytes:
    """Machine code, by the code generator of this level."""
    with _tools() as tools:
        return unlocked.emit_object(tools.machine(level), module)


def to_asm(module: Any) -> str:
    with _tools() as tools:
        text: str = tools.machine().emit_assembly(module)
    return text
