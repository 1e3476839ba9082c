"""Which buffers are in the memory of the device: those that kernels take and the host never looks into.

`placed` takes a program of launches. What both touch stays on the heap, where only a host can find it: before such a
program can run, the host's part of it has to become a kernel, or a copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from tapeless.lower.ir.loopir import Alloc, Buffer, Free, Give, Launch, Program, Space, Stm, Swap
from tapeless.lower.ir.walk import buffers, walk


def placed(program: Program) -> Program:
    """The same program: its buffers know their space now."""
    host = list(_host(program))
    taken = {b for stm in host if isinstance(stm, Launch) for b in stm.kernel.params if isinstance(b, Buffer)}
    touched = {b for stm in host if not isinstance(stm, Alloc | Free | Give | Swap) for b in buffers(stm)}
    swaps = [stm for stm in host if isinstance(stm, Swap)]
    device = {b for b in taken - touched if b.space is Space.heap}
    while apart := [b for s in swaps for b in (s.a, s.b) if b in device and not {s.a, s.b} <= device]:
        device.difference_update(apart)
    for buffer in device:
        buffer.space = Space.device
    return program


def _host(program: Program) -> Iterator[Stm]:
    """What the host runs itself."""
    launches = {id(stm) for stm in walk(program.body) if isinstance(stm, Launch)}
    return walk(program.body, closed=launches)
