"""How much a program grows while it is compiled: what is written once and compiled again and again.

`counted` counts the statements of a copy, `refuse_beyond` says no before there are too many of them. Both take the
context.

Note [Copies]
Calls are compiled into their callers (but for Note [Shared functions] in `frontend/python/shared_functions.py`), and loops over
tuples whose items must be known are unrolled. So a program may be far larger than its text: functions that call the
next one twice, 14 deep, are 16,384 copies of the last one. Text of any length is compiled, for its time is linear in
it; copies are counted and refused beyond `LIMIT` statements. The first compilation of a function's or a loop's body is
not a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tapeless.errors import CompileError

if TYPE_CHECKING:
    from tapeless.frontend.state.context import Context

T = TypeVar("T")
LIMIT = 10_000  # statements of Core, refused within a second
CALL = 3  # a call takes about as long to compile as so many statements
SHORT = 64  # loops over more items than these are not unrolled when there is another way
WORTH = 1500  # statements of all copies: nor are short loops beyond these
MOST_ITEMS = 100_000  # of a tuple, list or dict
MOST_NUMBERS = 250_000  # if they are numbers of one type
ARRAY_HINT = "loop over an array (np.array(items)), or pass one as an argument: the body is then compiled once."
KNOWN_HINT = "use the items as numbers of one type only, as those of an array: the body is then compiled once."
CALL_HINT = "call it in a loop over an array or in tp.map: what is inside is compiled once."


@contextmanager
def counted(ctx: Context, again: bool) -> Iterator[None]:
    """What is made inside is a copy if it was compiled before (`again`). Copies inside a copy are a part of it."""
    if not again or ctx.copying is not None:
        yield
        return
    ctx.copying = ctx.b.made
    try:
        yield
    finally:
        ctx.copied += ctx.b.made - ctx.copying
        ctx.copying = None


def copied(ctx: Context) -> int:
    return ctx.copied + (0 if ctx.copying is None else ctx.b.made - ctx.copying)


@contextmanager
def call_counted(ctx: Context, node: ast.AST) -> Iterator[None]:
    """A function's body, compiled at a call."""
    if copied(ctx) > LIMIT and not ctx.inside_prelude:
        ctx.fail(
            "TP116",
            f"calls are compiled into their callers, and copies of the same functions have grown to {LIMIT:,} "
            f"statements here ({_chain(ctx)})",
            CALL_HINT,
        )
    again = node in ctx.compiled
    ctx.copied += CALL if again else 0
    ctx.compiled.add(node)
    with counted(ctx, again):
        yield


def _chain(ctx: Context) -> str:
    names = [getattr(kinds[0][0], "name", "<lambda>") for kinds in ctx.calls]
    if len(names) > 6:
        names = [*names[:3], "...", *names[-2:]]
    return " > ".join(names)


def refuse_beyond(ctx: Context, what: str, items: int, done: int, each: int, reason: str = "") -> None:
    """Refuses to go on after `done` items if the others, of `each` statements, are too many. `reason`: why they are
    copies. Short loops of the prelude are part of the call around them, which was not refused.
    """
    if ctx.inside_prelude and items <= SHORT:
        return
    if copied(ctx) + (items - done) * each > LIMIT:
        why = f", since {reason}" if reason else ""
        ctx.fail(
            "TP116",
            f"{what} over {items:,} items would be unrolled to about {items * each:,} statements{why}",
            KNOWN_HINT if reason else ARRAY_HINT,
        )


def refuse_long(ctx: Context, what: str, count: int, most: int = MOST_ITEMS) -> None:
    """Values of each item are kept while compiling."""
    if count > most:
        ctx.fail(
            "TP116", f"{what} has {count:,} items; more than {most:,} cannot be compiled", "use an array (np.array)."
        )


class Before:
    """What is known, so that a trial can be forgotten."""

    def __init__(self, ctx: Context) -> None:
        self.state = ctx.state.copy()
        self.cells = set(ctx.written_cells), set(ctx.read_cells), set(ctx.apart)
        self.counts = ctx.b.made, ctx.copied, ctx.inside_prelude, ctx.transforms, ctx.copying
        self.rules, self.readonly = len(ctx.rules), len(ctx.made_readonly)
        self.kept = set(ctx.kept_lists)

    def restore(self, ctx: Context) -> None:
        ctx.state = self.state.copy()
        written, read, apart = self.cells
        ctx.written_cells, ctx.read_cells, ctx.apart = set(written), set(read), set(apart)
        ctx.b.made, ctx.copied, ctx.inside_prelude, ctx.transforms, ctx.copying = self.counts
        del ctx.rules[self.rules :]
        ctx.kept_lists = set(self.kept)
        for cell in ctx.made_readonly[self.readonly :]:
            cell.readonly = ""
        del ctx.made_readonly[self.readonly :]


def attempt(ctx: Context, run: Callable[[], T]) -> T | CompileError:
    """What `run` gives, or why it cannot be compiled: then all is as it was before."""
    before = Before(ctx)
    found: T | CompileError
    with ctx.part() as stms:
        try:
            found = run()
        except CompileError as problem:
            if problem.code == "TP116":
                raise
            found = problem
    if not isinstance(found, CompileError):
        ctx.b.stms.extend(stms)
        return found
    before.restore(ctx)
    return found
