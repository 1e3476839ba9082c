"""What the disk cache keeps, and the table of all classes that may occur in it.

Gives `Binary` (code and how to call it), `Memory` (what a trace had read) and `CODEC`, which turns them into bytes and
back. Values with anything else in them are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from tapeless.backends.cuda.image import DeviceCode
from tapeless.frontend import returned
from tapeless.frontend.entry import Signature
from tapeless.frontend.returned import Output
from tapeless.frontend.source.origins import Row
from tapeless.ir.core import Shown
from tapeless.ir.span import Span
from tapeless.ir.types import Const, DType, Type, Var
from tapeless.lower.footprint import Outline
from tapeless.lower.ir.loopir import Buffer, Kernel, Pointer, Site, Space, Stm, Tag
from tapeless.ops.callbacks import AGAIN, FIRST
from tapeless.passes.check.consumption import Inserted
from tapeless.runtime.plain import Codec


@dataclass(frozen=True)
class SizeOf:
    """The k-th size of a function."""

    k: int


@dataclass
class Binary:
    """Objects and how to call what is in them."""

    name: str
    objects: tuple[bytes, ...]
    externals: tuple[str, ...]
    helpers: dict[str, bytes]
    scalar_results: tuple[DType, ...]
    scalar_slots: dict[int, int]
    array_results: dict[int, tuple[DType, bool, tuple[int | SizeOf, ...], tuple[int, ...], int]]
    sites: tuple[Site, ...]
    copies: list[Inserted]
    blas: str = ""  # "inside" when a parallel region calls BLAS, "outside" when only other code does
    outline: tuple[Outline, tuple[Var, ...]] | None = None  # for budgets, with the variables of sizes and parameters
    progress: str = ""  # the name to show, when a loop says how far it is
    device: DeviceCode | None = None

    @property
    def callbacks(self) -> bool:
        return any(name.startswith(FIRST) for name in self.externals)

    @property
    def asks_again(self) -> bool:
        """For results of callbacks."""
        return any(name.startswith(AGAIN) for name in self.externals)


@dataclass(frozen=True)
class ForCall:
    """Code with only the ways that some calls take: the numbers that decide, None for others, and the hidden argument."""

    numbers: tuple[int | float | bool | None, ...]
    room: int


@dataclass(frozen=True)
class Memory:
    """One trace: what it had read, the key of the code that came of it, and its signature, read only where all is as it
    was.
    """

    rows: tuple[Row, ...]
    code: str
    signature: bytes
    call: ForCall | None = None


@dataclass(frozen=True)
class Hidden:
    """A captured array: its origin is that of a row, and of its cell only what each call asks for is left."""

    row: int
    param: Var
    name: str
    readonly: str
    scattered: bool


@dataclass(frozen=True)
class Called:
    """How a traced function is called, without what belongs to one process."""

    signature: Signature
    hidden: tuple[Hidden, ...]


CODEC = Codec(
    [
        Binary, DeviceCode, Memory, ForCall, Called, Hidden, SizeOf, Signature, *get_args(Output), *returned.PARTS, Row, Inserted, Site, Span, DType, Type, Var, Const,
        Outline, *get_args(Stm), Kernel, Buffer, Space, Tag, Pointer, Shown,
    ]
)  # fmt: skip
