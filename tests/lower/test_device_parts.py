"""Programs for a GPU, host and kernels, by the interpreter of Loop IR: the same answers, and a host that goes through no array."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.strategies import booleans
from scipy import special

import tapeless as tp
from benchmarks.gradients import GRADIENTS
from benchmarks.workloads import WORKLOADS
from tapeless.ir.target import Target
from tapeless.ir.types import F64, I64, Const, DType, Var, i64
from tapeless.lower.ir.interp import run_program
from tapeless.lower.ir.loopir import (
    Atomic,
    Buffer,
    Call,
    For,
    Launch,
    Let,
    Load,
    Program,
    Space,
    Stm,
    Store,
    Tag,
    While,
)
from tapeless.lower.ir.verify import LoopIRError, verify_program
from tapeless.lower.ir.walk import buffers, walk
from tapeless.lower.lowering import lower
from tapeless.ops.table import TABLE
from tapeless.passes.pipeline import finished
from tapeless.testing.compare import Raised, Returned, compare, refused
from tapeless.testing.programs import Program as GeneratedProgram
from tapeless.testing.programs import programs
from tapeless.testing.stages import by_python, on_device, trace

PROGRAMS = {w.name: (w.tapeless(), w.make_inputs(small=True)) for w in WORKLOADS}
PROGRAMS |= {
    f"{g.name}'": (tp.value_and_grad(g.loss(), g.argnums).python, g.make_inputs(small=True)) for g in GRADIENTS
}
BY_BLOCKS = ("heat'", "gmm'", "nbody'", "floyd'")  # loops of small kernels


def of_host(program: Program) -> list[Stm]:
    launches = {id(s) for s in walk(program.body) if isinstance(s, Launch)}
    return list(walk(program.body, closed=launches))


def assert_alike(got: Any, want: Any) -> None:
    if isinstance(want, Sequence):
        for x, y in zip(got, want, strict=True):
            assert_alike(x, y)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "blocks"), [*((name, False) for name in PROGRAMS), *((name, True) for name in BY_BLOCKS)]
)
def test_programs_of_the_benchmarks(name: str, blocks: bool) -> None:
    function, args = PROGRAMS[name]
    python = getattr(function, "python", function)
    outcome, lowered = on_device(python, lambda: copy.deepcopy(list(args)), seed=1, blocks=blocks)
    assert isinstance(outcome, Returned)
    assert_alike(outcome.result, tp.function(python)(*copy.deepcopy(list(args))))
    for s in of_host(lowered.program):
        if isinstance(s, For | While):  # around launches, or without arrays
            inside = list(walk((s,)))
            touched = any(isinstance(x, Load | Store | Atomic) for x in inside)
            assert not touched or any(isinstance(x, Launch) for x in inside)
        assert not any(b.space is Space.heap for b in buffers(s)) and not isinstance(s, Atomic)


@pytest.mark.parametrize("combining", [False, True])
def test_iterations_that_meet_in_a_cell(combining: bool) -> None:
    i, e, more = Var("i", I64), Var("e", F64), Var("more", F64)
    y = Buffer("y", DType.f64, Space.param)
    one = Const(1.0, DType.f64)
    added = (Load(e, y, i64(0)), Let(more, "add", (e, one)), Store(y, i64(0), more))
    body = (Atomic("add", y, i64(0), one),) if combining else added
    program = Program("f", (y,), Var("threads", I64), (), (), (For(i, i64(0), i64(3), body, tag=Tag.grid),))
    cell = np.zeros(1)
    if combining:
        run_program(program, [cell])
        assert cell[0] == 3.0
    else:
        with pytest.raises(LoopIRError, match="at the same time"):
            run_program(program, [cell])


def carried(x: np.ndarray, n: int) -> tuple[float, float, np.ndarray]:
    """Scalars that change in parts, and between them."""
    s, t = 0.0, 1.0
    for k in range(n):
        for i in range(len(x)):
            s += x[i] * t
        y = np.sqrt(np.abs(x) + s)
        t = y[0] + k
        if t > 3.0:
            x[1] = t
            s = s - 1.0
    return s, t, x


def looked_up(x: np.ndarray, n: int) -> float:
    """What ends the loop is itself in an array, at a position in an array."""
    goes_on, at, total = x > 0.5, np.zeros(1, np.int64), 0.0
    while goes_on[at[0]]:
        total = total + np.sum(x) * x[at[0]] * n
        at[0] += 1
    return total


def until(x: np.ndarray, least: float) -> int:
    """The end is decided by what is in an array."""
    rounds = 0
    while x[0] > least:
        x = x * 0.5
        rounds += 1
    return rounds


def small(x: np.ndarray) -> float:
    """An array of constant size, written by the host's part and read by a kernel."""
    w = np.zeros(3)
    for i in range(3):
        w[i] = x[i] + i
    y = np.zeros(len(x))
    for i in tp.prange(len(x)):
        y[i] = w[0] * x[i] + w[1] - w[2]
    return np.sum(y)


@pytest.mark.parametrize(
    "f, args",
    [
        (carried, (np.arange(1.0, 6.0), 4)),
        (until, (np.ones(4), 0.01)),
        (looked_up, (np.array([1.0, 0.9, 0.8, 0.2, 0.9]), 3)),
        (small, (np.arange(5.0),)),
    ],
)
def test_scalars_cross_between_host_and_parts(f: Any, args: tuple[Any, ...]) -> None:
    outcome, _ = on_device(f, lambda: copy.deepcopy(list(args)))
    want = by_python(f, lambda: copy.deepcopy(list(args)))
    assert isinstance(outcome, Returned) and isinstance(want, Returned)
    assert_alike(outcome.result, want.result)
    assert_alike(outcome.arguments, want.arguments)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), booleans())
def test_generated_programs(program: GeneratedProgram, blocks: bool) -> None:
    function = program.load()
    try:
        outcome, _ = on_device(function, program.arguments, blocks=blocks)
    except tp.TapelessError:
        assume(False)
    want = by_python(function, program.arguments)
    assume(not _has_no_neutral_element(program, want))
    assume(not (isinstance(outcome, Raised) and "must keep its size" in str(outcome.error)))
    assert refused(want, outcome) or not compare(outcome, want, kinds=False, any_error=True, empty=False)


def _has_no_neutral_element(program: GeneratedProgram, want: Any) -> bool:
    """(1, 0) is neutral for p[1] * q[0] + q[1] among numbers; with infinity 0 * q[0] is none."""
    if "p[1] * q[0]" not in program.source or not isinstance(want, Returned):
        return False
    results = want.result if isinstance(want.result, tuple) else (want.result,)
    return not all(np.all(np.isfinite(x)) for x in results if isinstance(x, float | np.ndarray))


def stacked(a: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(np.stack([a, 2.0 * a]))


@pytest.mark.parametrize("function", [np.linalg.eigvalsh, stacked], ids=["one", "several"])
def test_routines_that_only_the_host_has(function) -> None:
    """They take memory that it sees, and no kernel calls them."""
    traced = trace(lambda a: function(a) * 2.0, (np.eye(3),))
    program = lower(finished(traced.core, target=Target.ptx), target=Target.ptx).program
    verify_program(program)
    launched = {
        b for s in walk(program.body) if isinstance(s, Launch) for b in s.kernel.params if isinstance(b, Buffer)
    }
    calls = [s for s in of_host(program) if isinstance(s, Call)]
    assert [c.name for c in calls] == ["dsyevd"]
    taken = {b for c in calls for b in buffers(c)}
    assert all(b.space is Space.managed for b in taken)
    assert taken & launched, "kernels write the matrix, and read the eigenvalues"
    assert not any(b.space is Space.managed for b in launched - taken)


def integrals(x):
    return special.dawsn(x) * 2.0


def sum_of_integrals(x):
    return np.sum(special.dawsn(x) * x)


def table_of_integrals(x):
    return special.dawsn(np.outer(x, x) + 1.0) + x


def integral_of_a_number(x):
    return special.dawsn(x[0]) + x


def integrals_in_order(x):
    t = 0.0
    for i in range(len(x)):
        t = special.dawsn(t + x[i]) + 3.0
    return t


def integrals_in_place(x):
    x[:] = special.dawsn(x)
    return x[1]


def in_a_branch(x):
    out = np.zeros_like(x)
    for i in tp.prange(len(x)):
        out[i] = special.gammainc(x[i], 2.0) if x[i] > 1.0 else x[i]
    return out


def in_steps(x):
    for _ in range(3):
        x = special.dawsn(x + 2.0) + 0.1 * np.roll(x, 1)
    return x


OF_SCIPY = [
    integrals, sum_of_integrals, table_of_integrals, integral_of_a_number, integrals_in_order, integrals_in_place, in_a_branch, in_steps,
    tp.grad(sum_of_integrals).python,
]  # fmt: skip


@pytest.mark.parametrize("function", OF_SCIPY, ids=lambda f: f.__name__)
def test_functions_that_only_the_host_has(function) -> None:
    """Note [Memory that both see]: no kernel has them, and the host copies no single elements for them."""
    x = np.linspace(0.5, 3.0, 7)
    found, lowered = on_device(function, lambda: (x.copy(),))
    assert isinstance(found, Returned), found
    np.testing.assert_allclose(found.result, tp.function(function)(x.copy()), rtol=1e-12)
    program = lowered.program
    kernels = [s.kernel for s in walk(program.body) if isinstance(s, Launch)]
    assert not any(isinstance(s, Let) and TABLE[s.op].only_host for k in kernels for s in walk(k.block))
    loops = [s for s in of_host(program) if isinstance(s, For)]
    touched = {b for loop in loops for s in of_host(replace(program, body=loop.body)) for b in buffers(s)}
    assert all(b.space is Space.managed for b in touched), touched


def test_small_arrays_of_routines_of_the_host() -> None:
    """They would be on the host's stack, where kernels do not see them, or on the device, where it does not."""
    traced = trace(lambda x: np.polyfit(x, x * x, 3), (np.arange(7.0),))
    program = lower(finished(traced.core, target=Target.ptx), target=Target.ptx).program
    verify_program(program)
    launched = {
        b for s in walk(program.body) if isinstance(s, Launch) for b in s.kernel.params if isinstance(b, Buffer)
    }
    taken = {b for c in of_host(program) if isinstance(c, Call) and not c.of_device for b in buffers(c)}
    assert taken & launched
    assert all(b.space is Space.managed for b in taken & launched)
    assert all(b.space in (Space.managed, Space.stack) for b in taken)
