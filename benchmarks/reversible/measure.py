"""The times of one row. All results are compared first; what does not agree is not timed.

`measure` gives seconds by label, the fastest of many calls in turns. Every call gets arrays of its own, as programs write
over theirs; making them is not timed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from benchmarks.contest import Effort, Failures, quotient
from benchmarks.libraries import LIBRARIES
from benchmarks.peer import Peer
from benchmarks.reversible.cases import Case, agree, copied
from benchmarks.timing import Runner, race, set_threads

FORWARD, INVERSE, CHECKED, GRADIENT = "forward", "inverse", "checked", "gradient"
PLAIN, PLAIN_GRADIENT, STORED_GRADIENT = "plain forward", "plain gradient", "stored gradient"
PEERS = ("JAX", "PyTorch")
LOSSES = "benchmarks.reversible.array_losses"
DRIFT = 1e-6  # of the state that comes back: orbits of many bodies are chaotic


@dataclass
class Measured:
    case: Case
    seconds: dict[str, float]

    def micro(self, label: str) -> float | None:
        found = self.seconds.get(label)
        return None if found is None else 1e6 * found

    def ratio(self, label: str, other: str) -> float | None:
        return quotient(self.seconds.get(label), self.seconds.get(other))


@dataclass
class OwnArrays(Runner):
    """Calls with the state, in new arrays each time, and constants."""

    state: Sequence[Any] = ()
    constants: Sequence[Any] = ()

    def answer(self) -> Any:
        set_threads(self.threads)
        return self.call(*copied(self.state), *self.constants)

    def turn(self, args: Sequence[Any], slot: float) -> None:
        set_threads(self.threads)
        call, end = self.call, perf_counter() + slot
        while True:
            args = (*copied(self.state), *self.constants)
            start = perf_counter()
            call(*args)
            stop = perf_counter()
            self.best = min(self.best, stop - start)
            self.spent += stop - start
            if stop >= end:
                return


def measure(case: Case, effort: Effort, failures: Failures) -> Measured:
    state, constants = case.inputs()
    made = partial(OwnArrays, threads=1, state=state, constants=tuple(constants.values()))
    runners: dict[str, Runner] = {}

    def take(label: str, call: Callable[..., Any], wanted: Any, results: int | None, **own: Any) -> Any:
        """One more runner, if its first results are those; what it gave."""

        def checked() -> Any:
            runner = made(label, call=call, **own)
            found = runner.answer()
            if wanted is not None:
                agree(found[:results], wanted, f"{case.name}, {label}", DRIFT if label == INVERSE else 1e-7)
            runners[label] = runner
            return found

        return failures.attempt(label, case.name, checked)

    first = take(PLAIN, case.compiled(case.plain), None, None)
    count = case.outputs
    ends = take(FORWARD, case.compiled(case.reversible), first, count)
    take(CHECKED, case.compiled(case.reversible.checked), first, count)
    if ends is not None:
        take(INVERSE, case.compiled(~case.reversible), state, None, state=ends)
    slopes = take(PLAIN_GRADIENT, case.derivative(case.plain), None, None)
    take(GRADIENT, case.derivative(case.reversible), slopes, None)
    if case.store:
        take(STORED_GRADIENT, case.derivative(case.plain, recover="store"), slopes, None)
    for label in PEERS:
        if case.in_libraries and find_spec(LIBRARIES[label].package) and slopes is not None:
            attempt = partial(peer, case, label, (*state, *constants.values()), slopes)
            if (other := failures.attempt(label, case.name, attempt)) is not None:
                runners[label] = other
    race(list(runners.values()), (), rounds=effort.rounds, budget=effort.budget)
    for runner in runners.values():
        runner.close()
    return Measured(case, {label: runner.best for label, runner in runners.items()})


def peer(case: Case, label: str, args: Sequence[Any], slopes: Any) -> Runner:
    found = Peer(label, case.program, args, case.argnums, 1, LOSSES)
    try:
        agree(found.answer[1], slopes, f"{case.name}, {label}")
    except Exception:
        found.close()
        raise
    return found
