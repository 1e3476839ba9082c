"""Plots of what gradients trade: memory against time, over the plans that are possible.

Takes the plans of a report; needs Matplotlib, which is an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tapeless.errors import TapelessError
from tapeless.ir.hints import How
from tapeless.runtime.peak import GRAIN
from tapeless.tools.recovery import Alternative, Recovered, size_text

Measure = Callable[[str], tuple[int, float]]  # a recovery: its peak of memory in bytes, and seconds

MARKS = "os^vDPX"  # one shape for each plan
MANY = 50  # runs: beyond, a plan is not measured and its point would only stretch the axis


def plot_plans(
    function: str, plans: Sequence[Recovered], path: str | Path | None, measured: bool, measure: Measure | None
) -> Any:
    """The figure; also written to `path`, when that is given."""
    if not plans:
        raise TapelessError(
            "there is nothing to plot: plots show how gradients trade memory against time, and this is not a gradient"
        )
    points = [p for p in possible(plans) if p.runs <= MANY or p.recover != How.recompute]
    if not points:
        raise TapelessError("there is nothing to plot: no loop of this gradient keeps anything that could be traded")
    if measured:
        points = _measured(measure, points)
    try:
        from matplotlib.figure import Figure  # optional
    except ImportError:
        raise TapelessError("plots need Matplotlib: pip install 'tapeless[plot]'") from None
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    axes = figure.add_subplot()
    times = [p.runs if p.seconds is None else 1e3 * p.seconds for p in points]
    axes.plot([p.memory_bytes for p in points], times, "-", color="0.7", zorder=1)
    now = {how for loop in plans for how in loop.recovery.values()}
    for k, (p, t) in enumerate(zip(points, times, strict=True)):
        mine, large = (", this plan", 11) if p.recover in now else ("", 7)
        axes.plot([p.memory_bytes], [t], MARKS[k % len(MARKS)], markersize=large, label=f"{_label(p)}{mine}")
    figure.legend(loc="outside right upper", fontsize=8)  # beside the axes, where no label hides another
    axes.set_xscale("symlog" if any(p.memory_bytes == 0 for p in points) else "log")
    axes.margins(0.1, 0.1)
    axes.set_xlabel(
        f"memory, bytes (measured; below {size_text(GRAIN)} predicted)" if measure else "memory kept, bytes (predicted)"
    )
    axes.set_ylabel("milliseconds" if measure else "runs of each iteration forwards")
    axes.set_title(f"{function}: memory against time")
    axes.grid(alpha=0.3)
    if path is not None:
        figure.savefig(path)
    return figure


def _label(p: Alternative) -> str:
    time = f"{p.runs:.3g} runs" if p.seconds is None else f"{1e3 * p.seconds:.3g} ms"
    return f"{p.recover}: {size_text(p.memory_bytes)}, {'1 run' if time == '1 runs' else time}"


def possible(plans: Sequence[Recovered]) -> list[Alternative]:
    """Plans for all loops at once: bytes of all of them, runs of the one that runs most."""
    by_name: dict[str, list[Alternative]] = {}
    for loop in plans:
        if loop.memory_bytes != 0 or loop.alternatives:
            for a in loop.alternatives:
                by_name.setdefault(a.recover, []).append(a)
    found = [
        Alternative(name, sum(a.memory_bytes for a in many), max(a.runs for a in many))
        for name, many in by_name.items()
    ]
    return sorted(found, key=lambda a: (a.memory_bytes, -a.runs))


def _measured(measure: Measure | None, points: list[Alternative]) -> list[Alternative]:
    if measure is None:
        raise TapelessError("only a gradient that was called from Python can be measured: tp.grad(f).explain(...)")
    found = []
    for p in points:
        memory, seconds = measure(p.recover)
        found.append(Alternative(p.recover, memory if memory >= GRAIN else p.memory_bytes, p.runs, seconds))
    return sorted(found, key=lambda a: (a.memory_bytes, -(a.seconds or 0.0)))
