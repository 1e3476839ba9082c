"""One routine for all elements of a sweep, on a GPU: an element is too much for a thread, and too little for all of them.

`as_one` takes a sweep whose elements do nothing but call a routine (Note [Distribution] in passes/parallel/distribute.py
cuts others until they do), and lowers it as the routine on arrays with a row for each element, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from tapeless.ir.core import Atom, Library, Sweep, Var
from tapeless.lower.core.fourier import transform
from tapeless.lower.core.lowerer import Lowerer


def as_one(lo: Lowerer, vars: tuple[Var, ...], exp: Sweep) -> bool:
    """False where there is no such routine."""
    found = _only_call(exp)
    if found is None or found[0].name not in ROUTINES:
        return False
    called, arrays, own = found
    return ROUTINES[called.name](lo, vars, called, arrays, own)


def _only_call(exp: Sweep) -> tuple[Library, dict[Atom, Var], set[Var]] | None:
    """The call that all elements of a nest make, the arrays of which they take rows, and all that is an element's own."""
    body = exp.lam.body
    if exp.reduces or exp.scans or len(body.stms) != 1 or body.results != body.stms[0].vars:
        return None
    arrays: dict[Atom, Var] = dict(zip(exp.lam.params[1:], exp.arrays, strict=True))
    own = set(exp.lam.params)
    match body.stms[0].exp:
        case Library() as called:
            return called, arrays, own
        case Sweep() as inner if (found := _only_call(inner)) is not None and inner.width not in own:
            called, rows, more = found
            return called, {p: arrays[a] for p, a in rows.items() if a in arrays}, own | more
    return None


def _transforms(
    lo: Lowerer, vars: tuple[Var, ...], called: Library, arrays: Mapping[Atom, Var], own: AbstractSet[Var]
) -> bool:
    """Of the rows of one array, by one table."""
    x, table = called.args
    if x not in arrays or table in own:
        return False
    out = lo.place(vars[0])
    lo.arrays[vars[0]] = out
    transform(lo, called, lo.loc(arrays[x]), out)
    return True


ROUTINES: dict[str, Callable[[Lowerer, tuple[Var, ...], Library, Mapping[Atom, Var], AbstractSet[Var]], bool]] = {
    "fft": _transforms,
    "ifft": _transforms,
}
