"""Memory budgets: which ways a loop has, and which of them the sizes of a call allow.

Bytes are known when the loop starts, so the choice is made then: everything is kept where it fits; else strips of two
levels; else snapshots in as many slots as fit (`ad.recovery.by.treeverse`). Less than the least is an error that says
how much it takes.
"""

from __future__ import annotations

from tapeless.ad.recovery.by.treeverse import LEAST, Snapshots
from tapeless.ad.recovery.kept import Kept
from tapeless.ad.recovery.ways import Choice, Way
from tapeless.ad.reverse import Reverse
from tapeless.ir.core import Check, For, While
from tapeless.ir.types import Atom, dim_atom


def share_of(reverse: Reverse, exp: For | While) -> Atom:
    """What one of the loops of a body may take of the budget: half of its share, where there are loops in it."""
    assert reverse.scope.budget is not None
    parts = 2 if reverse.sharers(exp.body) else 1
    return reverse.emit("floordiv", reverse.scope.budget, parts * max(1, reverse.scope.sharers))


def within(reverse: Reverse, way: Kept, share: Atom | None, inside: Atom | None = None) -> Kept:
    """The way that was asked for, with a test that it fits. `inside`: bytes that its strips need."""
    if share is not None and way.keeps:
        total = way.total_bytes()
        if inside is not None:
            total = reverse.emit("add", total, inside)
        _test(reverse, reverse.emit("le", total, share), total, share)
    return way


def choices(reverse: Reverse, plain: Kept, cut: Kept | None, share: Atom) -> Way:
    """The first that fits: everything, `cut` in strips, snapshots."""
    found, least = snapshots(reverse, plain, share)
    emit = reverse.emit
    fits = emit("le", plain.total_bytes(), share)
    if cut is None:
        _test(reverse, emit("or", fits, emit("le", least, share)), least, share)
        return Choice(fits, plain, found)
    fits_cut = emit("le", emit("add", cut.total_bytes(), cut.inside(plain)), share)
    any_of_them = emit("or", emit("or", fits, fits_cut), emit("le", least, share))
    _test(reverse, any_of_them, least, share)
    return Choice(fits, plain, Choice(fits_cut, cut, found))


def only_snapshots(reverse: Reverse, plain: Kept, share: Atom) -> Way:
    found, least = snapshots(reverse, plain, share)
    _test(reverse, reverse.emit("le", least, share), least, share)
    return found


def snapshots(reverse: Reverse, plain: Kept, share: Atom) -> tuple[Snapshots, Atom]:
    """With the least that they take."""
    found = Snapshots(plain, share)
    slots = reverse.emit("min", dim_atom(plain.length()), LEAST)
    return found, reverse.emit("mul", found.state_bytes, slots)


def _test(reverse: Reverse, fits: Atom, least: Atom, share: Atom) -> None:
    """Stops where nothing fits."""
    message = "the backward pass of this loop needs at least {0} bytes, and its share of the memory budget is {1}"
    reverse.b.effect(Check(fits, "RecoveryError", message, (least, share)))
