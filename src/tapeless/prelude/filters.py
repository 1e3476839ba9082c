"""scipy.signal: filters along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse, stands_for


@stands_for("scipy.signal.lfilter")
def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """Each result is made of samples and of results before it, none of which is overwritten: a gradient keeps nothing else."""
    ahead, back, signal = np.atleast_1d(b), np.atleast_1d(a), np.asarray(x)
    if ahead.ndim != 1 or ahead.shape[0] == 0:
        raise ValueError("Parameter b is not a non-empty 1d array!")
    if back.ndim != 1 or back.shape[0] == 0:
        raise ValueError("Parameter a is not a non-empty 1d array!")
    kind = np.result_type(ahead, back, signal) if zi is None else np.result_type(ahead, back, signal, zi)
    if kind.kind != "f" and kind.kind != "c":
        refuse("scipy.signal.lfilter takes floats or complex numbers", "convert one of the arguments.")
    ahead, back = ahead.astype(kind) / back[0], back.astype(kind) / back[0]
    samples = np.moveaxis(signal.astype(kind), axis, 0)
    n, taps, poles = samples.shape[0], ahead.shape[0], back.shape[0]
    order = max(taps, poles) - 1
    driven = np.zeros((n, *samples.shape[1:]), dtype=kind)
    for k in range(min(taps, n)):
        driven[k:] += ahead[k] * samples[: n - k]
    if zi is None:
        return np.moveaxis(_fed_back(driven, back), 0, axis)
    start = np.moveaxis(np.asarray(zi).astype(kind), axis, 0)
    if start.shape[0] != order:
        raise ValueError(
            "Unexpected shape for parameter zi: along the axis it has as many numbers as the filter has delays."
        )
    given = np.broadcast_to(start, (order, *samples.shape[1:]))
    first = min(order, n)
    driven[:first] += given[:first]
    results = _fed_back(driven, back)
    end = np.zeros((order, *samples.shape[1:]), dtype=kind)
    for m in range(order):
        if n + m < order:
            end[m] += given[n + m]
        for k in range(m + 1, min(n + m, order) + 1):
            if k < taps:
                end[m] += ahead[k] * samples[n + m - k]
            if k < poles:
                end[m] -= back[k] * results[n + m - k]
    return np.moveaxis(results, 0, axis), np.moveaxis(end, 0, axis)


def _fed_back(driven: Any, back: Any) -> Any:
    results = np.zeros_like(driven)
    for t in range(driven.shape[0]):
        value = driven[t]
        for k in range(min(back.shape[0] - 1, t), 0, -1):  # the latest one last: only it has to be waited for
            value = value - back[k] * results[t - k]
        results[t] = value
    return results
