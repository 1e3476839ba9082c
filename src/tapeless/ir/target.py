"""What a program is compiled for."""

from __future__ import annotations

from enum import Enum


class Target(Enum):
    cpu = "cpu"
    ptx = "ptx"
