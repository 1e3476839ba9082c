"""Native code that calls Python: Note [Callbacks] in `ops/callbacks.py`."""

from __future__ import annotations

from collections.abc import Callable

from tapeless.ops.callbacks import during


def with_callbacks(native: Callable[..., None], keeps: bool) -> Callable[..., None]:
    """Raises what a callback raised, in the place of what the program made of it."""

    def run(*arguments: int | float) -> None:
        with during(keeps) as frame:
            native(*arguments)
        if frame.problem is not None:
            raise frame.problem

    return run
