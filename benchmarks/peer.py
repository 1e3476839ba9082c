"""A gradient by another library, in a process of its own: its threads are limited by the cores that it may use.

`Peer` is a `Runner`: its turns are run and timed over there.
"""

import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.libraries import LIBRARIES, LOSSES
from benchmarks.timing import Runner, set_threads


def serve(
    pipe: Connection, label: str, name: str, args: Sequence[Any], argnums: Sequence[int], threads: int, module: str
) -> None:
    """Answers "run" by the results and a slot in seconds by (best, spent)."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-threads:])
    try:
        set_threads(threads)
        call = LIBRARIES[label](threads).gradient_of(name, args, argnums, module)
        runner = Runner(label, threads, call)
        value, gradients = call()
        pipe.send((float(value), tuple(np.asarray(g) for g in gradients)))
    except Exception as error:
        pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))
        return
    while (slot := pipe.recv()) is not None:
        runner.turn((), slot)
        pipe.send((runner.best, runner.spent))


class Peer(Runner):
    """A runner whose calls are made elsewhere; `answer` is what the first one gave."""

    def __init__(
        self, label: str, name: str, args: Sequence[Any], argnums: Sequence[int], threads: int, module: str = LOSSES
    ) -> None:
        super().__init__(label, threads, lambda *_: self.answer)
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        given = (theirs, label, name, args, argnums, threads, module)
        self.process = context.Process(target=serve, args=given, daemon=True)
        self.process.start()
        theirs.close()
        self.answer = self._receive()

    def _receive(self) -> Any:
        try:
            got = self.pipe.recv()
        except EOFError:
            raise RuntimeError(f"the process ended with status {self.process.exitcode}") from None
        if isinstance(got, Exception):
            raise got
        return got

    def turn(self, args: Sequence[Any], slot: float) -> None:
        self.pipe.send(slot)
        self.best, self.spent = self._receive()

    def close(self) -> None:
        self.pipe.send(None)
        self.process.join()
