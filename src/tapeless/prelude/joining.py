"""Arrays put together and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude.registry import stands_for


@stands_for("np.dstack")
def dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(a) for a in tup], axis=2)


@stands_for("np.atleast_3d")
def atleast_3d(a: Any) -> Any:
    if np.ndim(a) == 0:
        return np.reshape(a, (1, 1, 1))
    if np.ndim(a) == 1:
        return a[None, :, None]
    if np.ndim(a) == 2:
        return a[:, :, None]
    return a
