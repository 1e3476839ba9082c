"""Loop IR: every node of the low-level representation that `lower` makes and the LLVM emitter takes.

    program ::= name, params, results, body, functions   the host program, and the functions that it invokes
    stm     ::= let v = op(atom...)                   a row of the ops table on scalars, v is bound once
              | v = load buf[atom] | store buf[atom] = atom | atomic op buf[atom] atom
              | declare v = atom | assign v = atom    a scalar that changes: carried values, results of branches
              | for i in lo..hi step k {tag} block    tag: seq | simd | threads | grid | block
              | while block, atom do block | if atom block else block
              | alloc buf[atom] | free buf | swap buf buf
              | check atom error args | call library args | v... = invoke function args
              | launch kernel                         Note [Kernels]
              | give k buf | return k atom | barrier | wait | print | progress
Atoms are `Var` and `Const` of ir.types, scalars only. A buffer is a flat run of elements; shapes are gone, index
arithmetic is explicit. Two different buffers never overlap when one of them is written.

Note [Tags]
`seq`: in order. `simd`: the iterations are independent except for reductions into declared scalars, so they may be
vectorised without asking about memory. `threads`: the iterations may run at the same time on different threads;
the block declares all scalars that it assigns, and it allocates what it writes or writes disjoint cells.
`grid` and `block` are the two levels of a GPU launch, with the same promise as `threads`. A block has BLOCK_THREADS
threads; all of them meet at a barrier, which stands in a block loop of so many iterations.

Note [Kernels]
The outermost parallel loops of a finished program are launched (`lower/kernels.py`): a kernel is such a loop, by itself
in a block, with the scalars and buffers of outside that its body uses. The host works out the bounds of the loop and
hands the rest over; nothing else of the host is seen inside. A kernel is launched at one place, so it stands there.

Note [Errors]
A failing check records the error (first one wins) and leaves the program; each function frees its heap buffers on the
way out. In a `threads` loop only that iteration is left, and the program is left after the loop; others may be left as
well.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tapeless.ir.core import Shown
from tapeless.ir.node import node
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import LARGEST_SIZE, Atom, DType, Type, Var


class Tag(enum.Enum):
    """How the iterations of a loop may run: Note [Tags]."""

    seq = "seq"
    simd = "simd"
    threads = "threads"
    grid = "grid"
    block = "block"

    @property
    def parallel(self) -> bool:
        """Iterations have scalars of their own."""
        return self in (Tag.threads, Tag.grid, Tag.block)


class Space(enum.Enum):
    param = "param"  # the caller's memory, contiguous; read-only unless the parameter is written
    heap = "heap"  # allocated and freed by the program
    device = "device"  # allocated and freed by the program, in the memory of a GPU: the host copies single elements
    managed = "managed"  # the same, in memory that moves to whoever looks at it: routines of the host take it
    stack = "stack"  # constant size, becomes registers where LLVM can
    shared = "shared"  # of a GPU block


ALLOCATED = (Space.heap, Space.device, Space.managed)


@dataclass(eq=False)
class Buffer:
    """Compared by identity. `size` counts elements: an int for stack and shared buffers, None for parameters."""

    name: str
    dtype: DType
    space: Space
    size: int | None = None
    written: bool = True


@node(frozen=True)
class Pointer:
    """The address of an element, as an argument of a library call."""

    buffer: Buffer
    offset: Atom


@node(frozen=True)
class Let:
    """`exact`: index arithmetic that cannot overflow (nsw); of a quotient, no operand is negative, and the divisor is not 0.
    `reassoc`: the order of this operation may change.
    """

    var: Var
    op: str
    args: tuple[Atom, ...]
    exact: bool = False
    reassoc: bool = False


@node(frozen=True)
class Load:
    var: Var
    buffer: Buffer
    index: Atom


@node(frozen=True)
class Store:
    buffer: Buffer
    index: Atom
    value: Atom


@node(frozen=True)
class Atomic:
    """Combines into a cell that several threads may meet: op is a row of the ops table (add, min, max, ...)."""

    op: str
    buffer: Buffer
    index: Atom
    value: Atom


@node(frozen=True)
class Declare:
    """A scalar that changes; in scope to the end of the enclosing block."""

    var: Var
    init: Atom


@node(frozen=True)
class Assign:
    var: Var
    value: Atom


@node(frozen=True)
class For:
    """`var` runs over lo, lo + step, ... below hi (above for a negative step)."""

    var: Var
    lo: Atom
    hi: Atom
    body: tuple[Stm, ...]
    step: int = 1
    tag: Tag = Tag.seq
    vectorize: bool = True
    span: Span = NOWHERE  # where it comes from, for `explain` and for errors


@node(frozen=True)
class While:
    """Runs `test`, leaves when `cond` is false, runs `body`, and again."""

    test: tuple[Stm, ...]
    cond: Atom
    body: tuple[Stm, ...]
    span: Span = NOWHERE


@node(frozen=True)
class If:
    cond: Atom
    then: tuple[Stm, ...]
    orelse: tuple[Stm, ...] = ()
    likely: bool | None = None


@node(frozen=True)
class Alloc:
    """Heap only; `size` in elements. Uninitialised, 64-byte aligned. A size below 0 counts as 0."""

    buffer: Buffer
    size: Atom


@node(frozen=True)
class Free:
    buffer: Buffer


@node(frozen=True)
class Swap:
    """Exchanges the memory of two heap buffers of equal size."""

    a: Buffer
    b: Buffer


BLOCK_THREADS = 256
SHARED_BYTES = 48 * 1024  # of memory that a block has for its threads, on any GPU
CHECK_RECORD = 4  # i64 that a failed check leaves: the number of its site, and three arguments
INTERRUPT = 2 * CHECK_RECORD  # behind one for an error and one for a warning: an exception of Python, in three words
PROGRESS = INTERRUPT + 3  # how many iterations a loop has done, and of how many: negative in a backward pass
RECORDS = PROGRESS + 2


@node(frozen=True)
class Check:
    """Note [Errors]. `site` is an index into the program's error sites; up to three i64 or f64 arguments are kept.

    One that is not `fatal` warns: it leaves a record of its own, and the program goes on.
    """

    cond: Atom
    site: int
    args: tuple[Atom, ...] = ()
    fatal: bool = True


@node(frozen=True)
class Call:
    """A native routine by name (see backends/cpu/libraries.py); scalars by value, pointers as addresses.

    The routine answers with an i64, bound to `result`, when that is given.
    """

    name: str
    args: tuple[Atom | Pointer, ...]
    result: Var | None = None

    @property
    def of_device(self) -> bool:
        """Whether libraries of a GPU have the routine; else it is the host's there, too."""
        return self.name[1:] in DEVICE_ROUTINES and self.name[0] in "sdcz"


DEVICE_ROUTINES = frozenset({"gemm", "gemm_batched", "syrk", "trsm", "getrf", "getrs", "potrf"})


@node(frozen=True)
class Invoke:
    """Runs a function of the program, on as many threads as there are here; its scalar results are bound.

    What it writes overlaps nothing else that it is given.
    """

    name: str
    args: tuple[Atom | Pointer, ...]
    results: tuple[Var, ...]


@node(frozen=True)
class Kernel:
    """Note [Kernels]. `block` has one statement."""

    name: str
    params: tuple[Var | Buffer, ...]
    block: tuple[Stm, ...]

    @property
    def loop(self) -> For:
        (loop,) = self.block
        assert isinstance(loop, For)
        return loop


@node(frozen=True)
class Launch:
    kernel: Kernel


@node(frozen=True)
class Give:
    """Hands a heap buffer to the caller as result `k` (the dimensions are returned as scalars)."""

    k: int
    buffer: Buffer


@node(frozen=True)
class Return:
    """Sets scalar result `k`; does not leave the program."""

    k: int
    value: Atom


@node(frozen=True)
class Barrier:
    pass


@node(frozen=True)
class Wait:
    """The host waits for all that was launched: it is about to look into memory of the device."""


@node(frozen=True)
class Print:
    parts: tuple[str | Shown, ...]
    args: tuple[Atom, ...]


@node(frozen=True)
class Progress:
    """Leaves two words in the record of the call, where others may read them at any time: Note [Progress] in ir/core.py."""

    done: Atom
    total: Atom
    backward: bool


Stm = (
    Let
    | Load
    | Store
    | Atomic
    | Declare
    | Assign
    | For
    | While
    | If
    | Alloc
    | Free
    | Swap
    | Check
    | Call
    | Invoke
    | Launch
    | Give
    | Return
    | Barrier
    | Wait
    | Print
    | Progress
)


@node(frozen=True)
class Site:
    """What a failing check raises: the class name of an exception and its message with {0}.. for the arguments."""

    error: str
    message: str
    span: Span
    kinds: tuple[DType, ...] = ()  # of the arguments


@node(frozen=True)
class Program:
    """Parameters in call order: scalars as Var, arrays as Buffer, then `threads` (i64): how many a region may use.

    `functions` are what it invokes, directly or through others, callees first; they have its sites, and give no arrays.
    """

    name: str
    params: tuple[Var | Buffer, ...]
    threads: Var
    scalar_results: tuple[DType, ...]  # by Return.k
    given_results: tuple[DType, ...]  # by Give.k
    body: tuple[Stm, ...]
    sites: tuple[Site, ...] = ()
    fastmath: bool = False
    strict: bool = (
        False  # what is computed twice must have the same bits: Note [Strict arithmetic] of lower/lowering.py
    )
    sizes: int = 0  # so many of the first parameters are sizes: not negative, below 2**60
    functions: tuple[Program, ...] = ()
    shared: bool = False  # many call it: there is one copy of its code


__all__ = [
    "ALLOCATED", "LARGEST_SIZE", "SHARED_BYTES", "Alloc", "Assign", "Atom", "Atomic", "Barrier", "Buffer", "Call", "Check", "DType", "Declare", "For", "Free", "Give",
    "If", "Invoke", "Kernel", "Launch", "Let", "Load", "Pointer", "Print", "Program", "Progress", "Return", "Site", "Space", "Stm", "Store", "Swap",
    "Tag", "Type", "Var", "Wait", "While",
]  # fmt: skip
