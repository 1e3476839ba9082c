"""Machine code for a GPU, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceCode:
    """`image` is what the driver loads; `kernels` are in the order of their handles."""

    image: bytes
    kernels: tuple[str, ...]
    can_fail: bool
