"""Calls of functions that are small, or called once, become the functions themselves.

`inline` takes a program and gives one in which the calls that are left are worth it: of functions whose copies would be
more than a budget. Such a function is compiled once, and passes do not look through its calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from tapeless.ir import calls
from tapeless.ir.builder import Builder
from tapeless.ir.calls import Functions, called_in, in_place_of
from tapeless.ir.core import Body, Call, Function, Stm
from tapeless.ir.effects import has_effects
from tapeless.ir.quiet import quiet
from tapeless.ir.walk import all_stms, in_regions, with_stms

Wanted = Callable[[Function], bool]


def inline(program: Function, everything: bool = False) -> Function:
    """`everything`: no call is left."""
    return _inlined(_with_versions(program), everything) if program.calls else program


def inline_here(body: Body, functions: Functions, everything: bool = False) -> Body:
    """The same for a body that is about to be differentiated: functions with rules stay. `everything`: no others do."""
    here = functions.program(Function("region", (), (), body))
    if not here.calls:
        return body
    here = _inlined(here, everything)
    for f in here.calls:
        functions.add(f)
    return here.body


def _inlined(program: Function, everything: bool) -> Function:
    uses = Counter(name for f in (*program.calls, program) for name in called_in(f.body))

    def wanted(f: Function) -> bool:
        return f.rule is None and (everything or worth_a_copy(f, uses[f.name]))

    done = Functions()
    for f in program.calls:  # callees come first
        done.add(replace(f, body=expanded(f.body, done.by_name, wanted)))
    return done.program(replace(program, body=expanded(program.body, done.by_name, wanted)))


def worth_a_copy(f: Function, uses: int) -> bool:
    """Whether each call of a function should be its body."""
    size = sum(1 for _ in all_stms(f.body))
    return uses == 1 or size <= calls.SMALL or uses * size <= calls.BUDGET


def expanded(body: Body, table: Mapping[str, Function], wanted: Wanted) -> Body:
    """The functions themselves in place of calls of those that are `wanted`."""
    stms: list[Stm] = []
    for s in body.stms:
        f = table.get(s.exp.function) if isinstance(s.exp, Call) else None
        if not isinstance(s.exp, Call) or f is None or not wanted(f):
            stms.append(in_regions(s, lambda inside: expanded(inside, table, wanted)))
            continue
        b = Builder(s.span)
        inner = expanded(in_place_of(f, s.exp.args, s.exp.effects), table, wanted)
        for v, value in zip(s.vars, inner.results, strict=True):
            b.alias(v, value)
        stms += [*inner.stms, *b.stms]
    return with_stms(body, stms)


def _with_versions(program: Function) -> Function:
    """Calls that run a function silently call a version of it that is silent. Rules have done their work."""
    table = {f.name: f for f in program.calls}
    done = Functions(taken=set(table))
    silent: dict[str, str] = {}

    def on_body(body: Body) -> Body:
        return with_stms(body, [on_stm(s) for s in body.stms])

    def on_stm(s: Stm) -> Stm:
        if not isinstance(s.exp, Call):
            return in_regions(s, on_body)
        name = version(table[s.exp.function], s.exp.effects)
        return s if name == s.exp.function else Stm(s.vars, replace(s.exp, function=name), s.span)

    def version(f: Function, effects: bool) -> str:
        name, body = f.name, f.body
        if not effects and has_effects(body):
            if name in silent:
                return silent[name]
            name = silent[name] = done.reserve(f"{name}.silent")
            body = quiet(body)
        if name not in done:
            done.add(replace(f, name=name, body=on_body(body), rule=None))
        return name

    return done.program(replace(program, body=on_body(program.body)))
