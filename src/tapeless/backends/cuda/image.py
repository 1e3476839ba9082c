"""Machine code for a GPU, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceCode:
    """`images` are what the driver loads, each with the names of its kernels; `kernels` are all, in the order of their handles."""

    images: tuple[tuple[bytes, tuple[str, ...]], ...]
    kernels: tuple[str, ...]
    can_fail: bool
