"""Which memory a result lies in: following updates backwards through a region.

Takes Core bodies that passed the in-place check; used to decide where carried arrays and results of branches live.
"""

from __future__ import annotations

from collections.abc import Iterable

from tapeless.ir.core import Atom, Body, For, Hist, If, Scatter, Update, Var, While, WithAcc

Root = tuple[Var | None, bool]  # an array of outside, and whether it was updated on the way
NONE: Root = (None, False)


def in_place(body: Body, result: Atom, param: Var) -> bool:
    """Whether a result of the body is `param` or a later version of it, in its memory."""
    return roots_of(body, [result])[0][0] is param


def branch_roots(exp: If) -> list[Root]:
    """For each result of a branch the array of outside in whose memory it lies, whichever arm was taken.

    One arm may update an array in place and the other make the result elsewhere: it is then copied there. That must
    not overwrite another result, so nothing shares the memory of an array that two results lie in.
    """
    arms = [roots_of(arm, arm.results) for arm in (exp.then, exp.orelse)]
    found: list[Root] = []
    for k, ((first, first_updated), (second, second_updated)) in enumerate(zip(*arms, strict=True)):
        updated = [r for r, u in ((first, first_updated), (second, second_updated)) if u]
        root = updated[0] if updated else first if first is second else None
        alone = all(r is not root for roots in arms for j, (r, _) in enumerate(roots) if j != k)
        found.append((root, bool(updated)) if root is not None and alone else NONE)
    return found


def roots_of(body: Body, results: Iterable[Atom]) -> list[Root]:
    """For each result the array of outside in whose memory it lies."""
    definitions = {v: s for s in body.stms for v in s.vars}
    branches: dict[int, list[Root]] = {}  # by statement: an `if` has many results

    def root(result: Atom) -> Root:
        updated = False
        while isinstance(result, Var) and result.type.shape:
            stm = definitions.get(result)
            if stm is None:
                return result, updated
            k = stm.vars.index(result)
            match stm.exp:
                case Update(array=array):
                    result, updated = array, True
                case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                    if not in_place(inner, inner.results[k], params[k]):
                        return NONE
                    result, updated = inits[k], True
                case If() as exp:
                    if id(stm) not in branches:
                        branches[id(stm)] = branch_roots(exp)
                    below, changed = branches[id(stm)][k]
                    if below is None:
                        return NONE
                    result, updated = below, updated or changed
                case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
                    if k >= len(arrays):
                        return NONE
                    result, updated = arrays[k], True
                case _:
                    return NONE
        return NONE

    return [root(r) for r in results]
