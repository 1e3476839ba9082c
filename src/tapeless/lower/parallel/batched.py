"""One routine for all elements of a sweep, on a GPU: an element is too much for a thread, and too little for all of them.

`as_one` takes a sweep whose elements do nothing but call a routine (Note [Distribution] in passes/parallel/distribute.py
cuts others until they do), and lowers it as the routine on arrays with a row for each element, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tapeless.ir.core import At, Atom, Index, Library, Range, Reshape, Sweep, Transpose, Var
from tapeless.ir.operands import operands
from tapeless.ir.types import Const, i64
from tapeless.lower.core.blas import PREFIX, gemm_of_rows
from tapeless.lower.core.code import ONE, ZERO, Loc
from tapeless.lower.core.fourier import transform
from tapeless.lower.core.lowerer import Lowerer, view

TINY = 512  # multiplications of an element that a thread does by itself


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


# -- products


def products(lo: Lowerer, exp: Sweep, out: Loc) -> tuple[Atom, Callable[[], None]] | None:
    """Of a sweep whose elements multiply matrices: when it is better to do all products at once, and what does so."""
    found = _product(exp)
    if found is None or out.dtype not in PREFIX:
        return None
    factors = [_rows(lo, exp, factor) for factor in found]
    if any(f is None for f in factors):
        return None
    left, right = (f for f in factors if f is not None)
    if left.rank == 2:  # vectors
        left = replace(left, shape=(left.shape[0], ONE, left.shape[1]), strides=(left.strides[0], ONE, left.strides[1]))
        out = replace(out, shape=(out.shape[0], ONE, out.shape[1]), strides=(out.strides[0], ONE, out.strides[1]))
    elif right.rank == 2:
        right = replace(right, shape=(*right.shape, ONE), strides=(*right.strides, ONE))
        out = replace(out, shape=(*out.shape, ONE), strides=(*out.strides, ONE))
    code, (_, rows, depth), columns = lo.code, left.shape, right.shape[2]
    work = code.mul(code.mul(rows, depth), columns)
    if isinstance(work, Const) and work.value.real <= TINY:
        return None
    return code.compare("gt", work, i64(TINY)), lambda: gemm_of_rows(lo, left, right, out)


def _product(exp: Sweep) -> tuple[Var, Var] | None:
    """The factors. Nothing else is done but looking at them otherwise."""
    *before, last = exp.lam.body.stms or (None,)
    if exp.reduces or exp.scans or last is None or exp.lam.body.results != last.vars:
        return None
    if not isinstance(last.exp, Library) or last.exp.name != "matmul":
        return None
    if not all(isinstance(stm.exp, (Transpose, Reshape, Index)) for stm in before):
        return None
    x, y = last.exp.args
    if not isinstance(x, Var) or not isinstance(y, Var) or len(x.type.shape) + len(y.type.shape) < 3:
        return None
    return x, y


def _rows(lo: Lowerer, exp: Sweep, factor: Var) -> Loc | None:
    """The factors of all elements as one array; a factor of outside has one place for all of them."""
    made = {stm.vars[0]: stm.exp for stm in exp.lam.body.stms}
    arrays = dict(zip(exp.lam.params[1:], exp.arrays, strict=True))
    match made.get(factor):
        case Transpose(array=array):
            loc = _rows(lo, exp, array)
            if loc is None:
                return None
            (n, *sides), (step, *strides) = loc.shape, loc.strides
            return replace(loc, shape=(n, *sides[::-1]), strides=(step, *strides[::-1]), ordered=False)
        case Reshape(array=array, shape=shape):
            loc = _rows(lo, exp, array)
            if loc is None or not loc.ordered or any(d in made or d in exp.lam.params for d in shape):
                return None
            whole = (loc.shape[0], *map(lo.dim, shape))
            return replace(loc, shape=whole, strides=lo.code.row_major(whole))
        case Index(array=array, axes=axes) if not any(isinstance(axis, At) and axis.check for axis in axes):
            loc = _rows(lo, exp, array)
            own = {*made, *exp.lam.params}
            if loc is None or any(a in own for a in operands(Index(array, axes)) if a != array):
                return None
            return view(lo, loc, (Range(ZERO, exp.width, ONE), *axes))
    if factor in arrays:
        return lo.loc(arrays[factor])
    if factor in exp.lam.params or factor not in lo.arrays:
        return None
    one = lo.loc(factor)
    return replace(one, shape=(lo.dim(exp.width), *one.shape), strides=(ZERO, *one.strides), ordered=False)
