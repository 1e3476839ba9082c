"""scipy.fft, whose functions take x where np.fft takes a."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeless.prelude import transforms
from tapeless.prelude.registry import stands_for

NO_MORE = (False, None)  # overwrite_x and workers


def _one(name: str) -> None:
    of = getattr(transforms, name)

    def function(
        x: Any, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False, workers: Any = None
    ) -> Any:
        return of(x, n, axis, norm)

    stands_for(f"scipy.fft.{name}")(function)


def _several(name: str, axes_of: Any) -> None:
    of = getattr(transforms, name)

    def function(
        x: Any, s: Any = None, axes: Any = axes_of, norm: Any = None, overwrite_x: bool = False, workers: Any = None
    ) -> Any:
        return of(x, s, axes, norm)

    stands_for(f"scipy.fft.{name}")(function)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _one(_name)
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _several(_name, None)
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _several(_name, (-2, -1))


@stands_for("scipy.fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Any:
    return np.fft.fftshift(x, axes)


@stands_for("scipy.fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    return np.fft.ifftshift(x, axes)


@stands_for("scipy.fft.fftfreq")
def fftfreq(n: int, d: float = 1.0) -> Any:
    return np.fft.fftfreq(n, d)


@stands_for("scipy.fft.rfftfreq")
def rfftfreq(n: int, d: float = 1.0) -> Any:
    return np.fft.rfftfreq(n, d)
