"""Passes are for programs in general: each pass of the pipeline changes several programs of the collection.

The collection: the programs of the benchmarks with their gradients, some of textbooks, and those of the gallery of loops. A pass that fewer of them
need says in its module which (`PROGRAMS = ("spmv'",)`), and has to change these at least.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import pytest

import tapeless as tp
from benchmarks.coarsening.cases import cases
from benchmarks.gpu_programs import CASES
from benchmarks.gradbench.protocol import EVALS
from benchmarks.gradients import GRADIENTS
from benchmarks.memory_programs import PROGRAMS
from benchmarks.workloads import WORKLOADS
from tapeless.frontend.entry import trace
from tapeless.ir.core import Function
from tapeless.ir.target import Target
from tapeless.passes.pipeline import FINISHING, PREPARING, Pass, Pipeline, Step, finished, passes_in
from tests.passes.textbook import TEXTBOOK
from tests.recovery.gallery import loop

FEWEST = 3

pytestmark = pytest.mark.thorough


def collection() -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """Programs with arguments. Gradients have a prime at their name."""
    for workload in WORKLOADS:
        yield workload.name, workload.tapeless(), workload.make_inputs(small=True)
    for gradient in GRADIENTS:
        derived = tp.value_and_grad(gradient.loss(), gradient.argnums)
        yield f"{gradient.name}'", derived.python, gradient.make_inputs(small=True)
    for loss, program in {p.loss: p for p in PROGRAMS}.items():
        yield f"memory_{program.name}'", tp.grad(loss, program.argnums).python, program.inputs(program.small)
    for case in {case.program: case for case in cases()}.values():
        yield f"coarsening_{case.program.__name__}'", tp.grad(case.program, case.argnums).python, case.args
    for gpu in CASES.values():
        yield f"gpu_{gpu.name}'", gpu.gradient, gpu.make(gpu.tiny[0])
    for name in EVALS:
        module = import_module(f"benchmarks.gradbench.{name}")
        for what, task in module.TASKS.items():
            yield f"gradbench_{name}_{what}", task.function, task.arguments(module.EXAMPLE)
    for function, arguments in TEXTBOOK:
        yield f"textbook_{function.__name__}", function, arguments
    for entry in loop.loops:
        yield f"gallery_{entry.function.__name__}'", tp.grad(entry.function, entry.wrt).python, entry.args(3)


def passes_of(steps: Sequence[Step], target: Target) -> Iterator[Pass]:
    """For a GPU those that no CPU has: the others are counted there."""
    for_cpus = target is Target.cpu
    return (each for each in passes_in(steps) if target in each.targets and (Target.cpu in each.targets) == for_cpus)


def named_by(step: Pass) -> Sequence[str] | None:
    run = step.run.func if isinstance(step.run, partial) else step.run
    return getattr(sys.modules[run.__module__], "PROGRAMS", None)


def firings(monkeypatch: pytest.MonkeyPatch, target: Target) -> dict[str, list[str]]:
    """By the name of each pass, the programs that it changes before differentiation or before lowering."""
    found: dict[str, list[str]] = {step.name: [] for step in passes_of((*PREPARING, *FINISHING), target)}
    fired: set[str] = set()
    run_pass = Pipeline._pass

    def watched(self: Pipeline, step: Pass, function: Function) -> Function:
        new = run_pass(self, step, function)
        if new is not function:
            fired.add(step.name)
        return new

    monkeypatch.setattr(Pipeline, "_pass", watched)
    for program, python, args in collection():
        fired.clear()
        finished(trace(python, args).core, target=target)
        for step in fired & found.keys():
            found[step].append(program)
    return found


@pytest.mark.parametrize("target", [Target.cpu, Target.ptx])
def test_every_pass_serves_several_programs(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    found = firings(monkeypatch, target)
    for step in passes_of((*PREPARING, *FINISHING), target):
        programs, named = found[step.name], named_by(step)
        if named is None:
            assert len(programs) >= FEWEST, f"{step.name} changes {programs} alone: say so in its module, or let it go"
        else:
            assert set(named) <= set(programs), f"{step.name} changes {programs}, not all of {named}"
            assert len(programs) < FEWEST, f"{step.name} changes {programs}: there is no need to name any"
