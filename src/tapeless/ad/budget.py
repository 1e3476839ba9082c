"""Memory budgets: which ways a loop has, and which of them the sizes of a call allow.

Bytes are known when the loop starts, so the choice is made then: everything is kept where it fits; else strips of two
levels; else snapshots in as many slots as fit (`ad.treeverse`). Less than the least is an error that says how much it
takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tapeless.ad.treeverse import LEAST, Snapshots
from tapeless.ad.ways import Choice, Kept, Way
from tapeless.ir.core import Check
from tapeless.ir.types import Atom, Dim, Type, dim_atom, i64

if TYPE_CHECKING:
    from tapeless.ad.reverse import Reverse


def share_of(reverse: Reverse) -> Atom:
    """What one of the loops of a body may take of the budget."""
    assert reverse.budget is not None
    return reverse.emit("floordiv", reverse.budget, max(1, reverse.loops))


def choices(reverse: Reverse, plain: Kept, cut: Kept | None, share: Atom) -> Way:
    """`cut` None: not everything, and not strips."""
    emit = reverse.emit
    snapshots = Snapshots(plain, share)
    least = emit("mul", snapshots.state_bytes, i64(LEAST))
    if cut is None:
        _test(reverse, emit("le", least, share), least, share)
        return snapshots
    one = bytes_of(reverse, plain.kept_types())
    assert cut.strip is not None
    outer = emit("mul", dim_atom(cut.length()), bytes_of(reverse, cut.kept_types()))
    fits = emit("le", emit("mul", dim_atom(plain.length()), one), share)
    fits_cut = emit("le", emit("add", outer, emit("mul", cut.strip, one)), share)
    any_of_them = emit("or", emit("or", fits, fits_cut), emit("le", least, share))
    _test(reverse, any_of_them, least, share)
    return Choice(fits, plain, Choice(fits_cut, cut, snapshots))


def _test(reverse: Reverse, fits: Atom, least: Atom, share: Atom) -> None:
    """Stops where nothing fits."""
    message = "the way back of this loop needs {0} bytes at least, and its share of the memory budget is {1}"
    reverse.b.effect(Check(fits, "RecoveryError", message, (least, share)))


def bytes_of(reverse: Reverse, types: Iterable[Type]) -> Atom:
    """Of one value of each."""
    total: Atom = i64(0)
    for t in types:
        total = reverse.emit("add", total, cells(reverse, t.shape, t.dtype.bytes))
    return total


def cells(reverse: Reverse, shape: Iterable[Dim], factor: int = 1) -> Atom:
    total: Atom = i64(factor)
    for d in shape:
        total = reverse.emit("mul", total, dim_atom(d))
    return total
