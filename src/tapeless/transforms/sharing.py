"""Arrays that a function under a transform knows by several names.

Takes what the trace of the function had read and written; refuses what Python would do otherwise, and leaves to the
call what only the call can tell.

Note [Shared arrays]
Under a transform a function works on references of its own, one for each argument, so that the caller's arrays never
change. What it writes through one is not seen through another, nor through a closure or a global. In Python it would be
seen if they share memory. So an array that is written must be known to the function by one name only: it is refused
otherwise (TP130). Arrays that are arguments of the compiled function, or arrays of its surroundings, may share memory
without being the same: `Context.apart` has the pairs that a call compares, and (a, a) for an array that must not
overlap itself. Arguments that are not differentiated and are the same whole array have one reference, as in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Cell


def keep_apart(ctx: Context, made: Sequence[Cell], read: Iterable[Cell], written: Iterable[Cell]) -> None:
    """`made`: the references of a function to its arguments; `read` and `written`: what it reads and writes."""
    references = [cell.roots for cell in dict.fromkeys(made)]
    outside = {c for cell in (*read, *written) for c in cell.possible} - set(made)
    references.append({r for cell in outside for r in cell.behind})
    for root in {r for cell in written for r in cell.roots}:
        if sum(root in known for known in references) > 1:
            ctx.fail(
                "TP130",
                f"'{root.name}' is written, but the function knows this array by another name too",
                "pass a copy of it (.copy()).",
            )
        ctx.apart |= {(root, other) for known in references for other in known if root in known or other is not root}
