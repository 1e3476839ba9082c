"""Memory of a gradient by the number of steps: the reversible leapfrog, and the plain one that stores everything.

Each number of steps in a process of its own, compiled and warmed up on a few steps. Bytes are those that `explain` says
are kept, and what the system gave at the peak of the call (`tapeless.runtime.peak`), which comes in pages.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.contest import Failures
from benchmarks.reversible import inputs
from benchmarks.reversible.cases import Case, agree

ROOT = Path(__file__).parent.parent.parent
BODIES, FEW = 2, 10
STORED_UP_TO = 1_000_000  # steps: beyond that storing them takes gigabytes
WAYS = ("reversible", "stored")
AGREEMENT = 1e-4  # of gradients, after a million steps


@dataclass(frozen=True)
class Used:
    """`kept`: predicted. `peak`: measured; None where the system cannot tell. `gradient`: by the first positions."""

    kept: int | None
    peak: int | None
    seconds: float
    gradient: list[float]


def case(steps: int) -> Case:
    return Case("n-body", "leapfrog", "", partial(inputs.leapfrog, BODIES, steps), (0, 1), outputs=2)


def used_here(way: str, steps: int) -> dict[str, Any]:
    """In this process."""
    from tapeless.backends.cpu import buffers
    from tapeless.runtime.peak import peak_of

    few, many = case(FEW), case(steps)
    gradient = few.derivative(few.reversible) if way == "reversible" else few.derivative(few.plain, recover="store")
    for _ in range(3):
        state, constants = few.inputs()
        gradient(*state, *constants.values())
    state, constants = many.inputs()
    buffers.keep(0)
    found: list[Any] = []
    peak, seconds = peak_of(lambda: found.append(gradient(*state, *constants.values())))
    with contextlib.redirect_stdout(io.StringIO()):
        kept = gradient.explain(*state, *constants.values()).memory_bytes
    return {"kept": kept, "peak": peak, "seconds": seconds, "gradient": found[0][0].ravel().tolist()}


def used(way: str, steps: int) -> Used:
    """In a process of its own."""
    command = [sys.executable, "-m", "benchmarks.reversible", "--here", way, str(steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else f"exit status {done.returncode}")
    return Used(**json.loads(done.stdout.splitlines()[-1]))


def both(steps: int, failures: Failures) -> list[Used | None]:
    """Ways whose gradients agree."""
    found: list[Used | None] = []
    for way in WAYS:
        wanted = way == "reversible" or steps <= STORED_UP_TO
        found.append(failures.attempt(way, f"{steps} steps", partial(used, way, steps)) if wanted else None)
    own, stored = found
    if own is not None and stored is not None:
        check = partial(agree, [own.gradient], [stored.gradient], f"{steps} steps", AGREEMENT)
        failures.attempt("gradients in constant memory", f"{steps} steps", check)
    return found


def table(most: int, failures: Failures) -> report.Table:
    made = report.Table(
        f"Memory of the gradient of {BODIES} bodies: bytes, milliseconds",
        [
            report.Column("steps"),
            *(report.Column(f"{way} {what}", "{:,}") for way in WAYS for what in ("kept", "peak")),
            *(report.Column(f"{way} ms", "{:.1f}") for way in WAYS),
            report.Column("time / stored", "{:.2f}", report.at_most(1.6, 1.6)),
        ],
        [[]],
    )
    steps = 1000
    while steps <= most:
        own, stored = found = both(steps, failures)
        memory = [value for row in found for value in ((row.kept, row.peak) if row else (None, None))]
        times = [row.seconds * 1e3 if row else None for row in found]
        ratio = own.seconds / stored.seconds if own and stored else None
        made.sections[0].append((f"{steps:,}", *memory, *times, ratio))
        steps *= 10
    return made
