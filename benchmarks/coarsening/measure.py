"""The times of one row. All gradients are compared first, with the one that is not coarsened; what differs is not timed.

`measure` gives seconds by label, the fastest of many calls in turns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import tapeless as tp
from benchmarks.coarsening import compile_time, with_c, with_casadi
from benchmarks.coarsening.cases import Case
from benchmarks.contest import Effort, Failures, quotient
from benchmarks.libraries import LIBRARIES
from benchmarks.peer import Peer
from benchmarks.timing import Runner, race
from benchmarks.workloads import as_tuple

COARSENED, PLAIN, PRIMAL, C = "coarsened", "not coarsened", "primal", "C"
PEERS = {"JAX": "jax", "PyTorch": "torch", "CasADi": "casadi"}  # their packages
LOSSES = "benchmarks.coarsening.array_losses"
RTOL = 1e-7


@dataclass
class Measured:
    """Seconds by label, and compile times: with coarsening and without."""

    case: Case
    seconds: dict[str, float]
    cold: float | None = None
    cold_plain: float | None = None

    def micro(self, label: str) -> float | None:
        found = self.seconds.get(label)
        return None if found is None else 1e6 * found

    def ratio(self, label: str, other: str) -> float | None:
        return quotient(self.seconds.get(label), self.seconds.get(other))

    def best_peer(self) -> str | None:
        return min((label for label in PEERS if label in self.seconds), key=self.seconds.__getitem__, default=None)


@dataclass(frozen=True)
class Check:
    """What is right for a case. Gradients are compared by their largest entries."""

    case: Case
    value: float
    slopes: tuple[Any, ...]

    def agree(self, label: str, answer: Any) -> None:
        """Raises AssertionError unless the answer is right; `tp.grad` gives no value."""
        value, slopes = (self.value, as_tuple(answer)) if label == COARSENED else answer
        np.testing.assert_allclose(value, self.value, rtol=RTOL, err_msg="value")
        for one, other in zip(slopes, self.slopes, strict=True):
            largest = float(np.max(np.abs(other)))
            np.testing.assert_allclose(one, other, rtol=RTOL, atol=RTOL * largest, err_msg="gradient")


def gradient(case: Case, **options: bool) -> Callable[..., Any]:
    made: Callable[..., Any] = tp.grad(case.program, argnums=case.argnums, threads=1, **options)
    return made


def references(case: Case) -> list[Runner]:
    plain, primal = gradient(case, coarsen=False), tp.function(case.program, threads=1)
    return [Runner(PLAIN, 1, plain), Runner(PRIMAL, 1, primal)]


def right_answer(case: Case, plain: Runner, primal: Runner) -> Check:
    return Check(case, primal.run(case.args), as_tuple(plain.run(case.args)))


MAKERS: dict[str, Callable[[Case], Callable[..., Any]]] = {
    COARSENED: gradient, C: with_c.gradient, "CasADi": with_casadi.gradient,
}  # fmt: skip


def runner(label: str, case: Case) -> Runner:
    if label in LIBRARIES:
        return Peer(label, case.program.__name__, case.args, as_tuple(case.argnums), 1, LOSSES)
    return Runner(label, 1, MAKERS[label](case))


def right(label: str, check: Check) -> Runner:
    """The runner of a case, if its answer is right."""
    found = runner(label, check.case)
    try:
        check.agree(label, found.run(check.case.args))
    except Exception:
        found.close()
        raise
    return found


def labels(case: Case) -> list[str]:
    """Whose gradients are compared and timed: those installed that can express it."""
    found = [COARSENED, C, *(label for label, package in PEERS.items() if find_spec(package))]
    return [label for label in found if label != "CasADi" or with_casadi.has(case)]


def measure(case: Case, effort: Effort, failures: Failures) -> Measured:
    attempt = partial(failures.attempt, place=case.name)
    runners = references(case)
    if known := attempt("reference", action=partial(right_answer, case, *runners)):
        found = (attempt(label, action=partial(right, label, known)) for label in labels(case))
        runners += [one for one in found if one]
    else:
        runners = []
    race(runners, case.args, rounds=effort.rounds, budget=effort.budget)
    for one in runners:
        one.close()
    measured = Measured(case, {one.label: one.best for one in runners})
    if effort.compile_times:
        measured.cold = attempt("cold compile", action=lambda: compile_time.measure(case.name, coarsen=True))
        measured.cold_plain = attempt("cold compile", action=lambda: compile_time.measure(case.name, coarsen=False))
    return measured
