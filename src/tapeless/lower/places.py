"""Which memory a result lies in: following updates backwards through a region.

Takes Core bodies that passed the in-place check; used to decide where carried arrays and results of branches live.
"""

from __future__ import annotations

from tapeless.ir.core import Atom, Body, For, Hist, If, Scatter, Stm, Update, Var, While, WithAcc


def in_place(body: Body, result: Atom, param: Var) -> bool:
    """Whether a result of the body is `param` or a later version of it, in its memory."""
    return updated_root(body, result)[0] is param


def updated_root(body: Body, result: Atom, around: dict[Var, Stm] | None = None) -> tuple[Var | None, bool]:
    """The variable of outside whose memory a result lies in, and whether it was updated on the way."""
    definitions = {v: s for s in body.stms for v in s.vars}
    updated = False
    while isinstance(result, Var):
        stm = definitions.get(result)
        if stm is None:
            return (result if result.type.shape else None), updated
        match stm.exp:
            case Update(array=array):
                result, updated = array, True
            case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                k = stm.vars.index(result)
                if not in_place(inner, inner.results[k], params[k]):
                    return None, False
                result, updated = inits[k], True
            case If(then=then, orelse=orelse):
                k = stm.vars.index(result)
                a, first = updated_root(then, then.results[k])
                b, second = updated_root(orelse, orelse.results[k])
                if (a is None or not first) and (b is None or not second) and a is not b:
                    return None, False
                root = a if a is not None and first else b if b is not None and second else a
                assert root is not None or a is b
                if root is None:
                    return None, False
                result, updated = root, updated or first or second
            case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
                k = stm.vars.index(result)
                if k >= len(arrays):
                    return None, False
                result, updated = arrays[k], True
            case _:
                return None, False
    return None, False
