"""Sums of exponentials with weights. Needs NumPy only, so that no one has to wait for SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def weighted_logsumexp(a: Any, axis: Any, b: Any, keepdims: Any) -> Any:
    """log(sum(b exp(a))), without overflow. Where an exponent that counts is infinite, slopes count as 0. The slope by a
    weight of 0 is right unless it is larger than exp(80).
    """
    none = b == 0
    top = np.max(np.where(none, -np.inf, a), axis=axis, keepdims=True)
    endless = ~np.isfinite(top)
    near = np.minimum(np.where(endless | (none & np.isnan(a)), 0.0, a - np.where(endless, 0.0, top)), 80.0)
    total = np.sum(b * np.exp(near), axis=axis, keepdims=True)
    some = (total > 0) & ~endless
    value = np.where(some, np.log(np.where(some, total, 1.0)) + np.where(endless, 0.0, top), np.nan)
    most = np.sum(np.where(a == np.inf, b, 0.0), axis=axis, keepdims=True)
    value = np.where((top == np.inf) & (most > 0), np.inf, value)
    value = np.where((top == -np.inf) | (~endless & (total == 0)), -np.inf, value)
    return value if keepdims else np.squeeze(value, axis=axis)
