"""Sizes that a test has found equal are one size from there on: maps over either of them can be fused.

Takes and gives a verified function. A test of two integers goes up to where both are known, past whatever neither tests nor
prints, and what follows it has the one of them that was known first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapeless.errors import WARNINGS
from tapeless.ir.core import Apply, Body, Check, Function, Stm
from tapeless.ir.effects import effects_in
from tapeless.ir.types import I64, Atom, Const, Var
from tapeless.ir.walk import Substitution, all_stms, free_in_body, in_regions, map_function, type_vars, with_stms

Tests = Mapping[Var, tuple[Atom, Atom]]  # two integers are equal: by the name of the outcome


def equal_sizes(function: Function) -> Function:
    order = {v: k for k, v in enumerate((*function.sizes, *function.params))}
    return map_function(function, lambda body: _body(body, {}, order))


def _body(body: Body, outside: Tests, order: dict[Var, int]) -> Body:
    tests = dict(outside)
    for s in body.stms:
        for v in s.vars:
            order.setdefault(v, len(order))
        match s.exp:
            case Apply(op="eq", args=(a, b)) if a.type == b.type == I64:
                tests[s.vars[0]] = a, b
    any_tested = any(_tested(s, tests) for s in body.stms)
    stms = _in_front(body.stms, tests) if any_tested else body.stms
    uses = _last_uses(body, stms) if any_tested else {}
    same = Substitution({})
    out: list[Stm] = []
    for k, s in enumerate(stms):
        found = _tested(s, tests)
        new = same.stm(s) if same.map else s
        out.append(in_regions(new, lambda inner: _body(inner, tests, order)))
        if found is not None:
            keep, drop = sorted(map(same.atom, found), key=lambda a: _rank(a, order))
            names = [drop, *(v for v, a in same.map.items() if a is drop)]
            if keep != drop and any(isinstance(v, Var) and uses.get(v, -1) > k for v in names):
                same.map.update({v: keep for v in names if isinstance(v, Var)})
    return Body(tuple(out), same.atoms(body.results)) if same.map else with_stms(body, out)


def _rank(a: Atom, order: Mapping[Var, int]) -> int:
    """What is known first."""
    return -1 if isinstance(a, Const) else order.get(a, len(order))


def _tested(s: Stm, tests: Tests) -> tuple[Atom, Atom] | None:
    """What the program goes on with only if it is so."""
    if not isinstance(s.exp, Check) or not isinstance(s.exp.cond, Var) or s.exp.error in WARNINGS:
        return None
    return tests.get(s.exp.cond)


def _in_front(stms: Sequence[Stm], tests: Tests) -> Sequence[Stm]:
    """Tests of equal integers as early as they may be."""
    out: list[Stm] = []
    defined: dict[Var, int] = {}
    free_from = 0  # what comes before may not be passed
    for s in stms:
        found = _tested(s, tests)
        if found is not None:
            assert isinstance(s.exp, Check)
            cond = s.exp.cond
            needed = [a for a in (*found, *s.exp.args) if a in defined and a is not cond]
            early = max([free_from, *(defined[a] + 1 for a in needed if isinstance(a, Var))])
            moved = [s]
            if isinstance(cond, Var) and cond in defined and defined[cond] >= early:
                moved.insert(0, out.pop(defined[cond]))
            out[early:early] = moved
            defined = {v: k for k, t in enumerate(out) for v in t.vars} if early < len(out) - len(moved) else defined
            free_from = early + len(moved)
            continue
        defined.update({v: len(out) for v in s.vars})
        out.append(s)
        if any(effects_in([s])):
            free_from = len(out)
    return stms if all(a is b for a, b in zip(out, stms, strict=True)) else out


def _last_uses(body: Body, stms: Sequence[Stm]) -> dict[Var, int]:
    """Where each variable is used last, in types too."""
    uses: dict[Var, int] = {}
    for k, s in enumerate(stms):
        one = Body((s,), ())
        for v in free_in_body(one):
            uses[v] = k
        for inner in all_stms(one):
            for v in inner.vars:
                uses.update(dict.fromkeys(type_vars(v.type), k))
    return uses | {r: len(stms) for r in body.results if isinstance(r, Var)}
