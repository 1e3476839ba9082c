"""`node`: how the classes of the intermediate representations are declared.

Gives a decorator that is used as `dataclass(frozen=True)` is, and means the same to the type checker, which refuses
assignments to fields. Python itself refuses them only with TAPELESS_VERIFY set: making a frozen object takes three
times as long, and a compilation makes millions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

FROZEN = bool(os.environ.get("TAPELESS_VERIFY"))

if TYPE_CHECKING:
    from dataclasses import dataclass as node
else:

    def node(*, frozen: bool, eq: bool = True, slots: bool = True) -> Any:
        def made(cls: type) -> type:
            hashed = eq and not FROZEN and not cls.__dict__.get("__hash__")
            return dataclass(frozen=frozen and FROZEN, eq=eq, slots=slots, unsafe_hash=hashed)(cls)

        return made


__all__ = ["node"]
