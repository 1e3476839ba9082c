"""Which tests of one index may go, and which may move in front of the loop.

Takes an axis with what is known where it is used; gives the axis with fewer flags. Relies on `hoisted_tests` for the
statements of tests that move.

Note [Wrapping]
`wrap` goes when the index is never negative, `check` when it is in -n .. n-1 with `wrap` and in 0 .. n-1 without. An
index that is always negative becomes n + index. Where `wrap` goes and `check` stays, an index that became negative by
leaving 64 bits raises IndexError, as Python's big one would.

Note [Hoisting]
A test of index c*i + r in each step of a loop over i, with c, r and the size n from outside the loop, becomes one test
before it: is the bound within the number of steps that stay inside, (n - 1 - r) // c + 1 for c > 0? Put this way,
nothing in it leaves 64 bits. The access must stand directly in the body: not in a branch, nor in a `while`. It is
declined where the index could be negative and wrap, since the program may mean that. The error names the index that
fails first. It may come a little earlier than in Python: before the effects of the steps that would still have been
right, and before another error in them.
"""

from __future__ import annotations

from tapeless.ir.core import Apply, At, Stm
from tapeless.ir.span import Span
from tapeless.ir.types import I64, Atom, Const, Dim, Var, dim_atom, i64
from tapeless.passes.bounds.hoisted_tests import Group, Loop, Tests
from tapeless.passes.bounds.numbers import Numbers
from tapeless.symbolic.affine import Facts, Form


class IndexTests:
    """Decides over the forms of one run. With `unsafe` every test goes, proved or not."""

    def __init__(self, numbers: Numbers, unsafe: bool) -> None:
        self.numbers, self.unsafe = numbers, unsafe

    def position(self, at: At, size: Dim, axis: int, span: Span, facts: Facts, out: list[Stm], loop: Loop | None) -> At:
        """Note [Wrapping]."""
        n = self.numbers.form(size)
        if isinstance(at.index, Const) and 0 <= at.index.value.real < facts.minimum(n):
            return At(at.index)
        exact, modular = self.numbers.form(at.index), self.numbers.modular_form(at.index)
        below = True
        for form in (exact, modular) if at.check and modular != exact else (exact,):
            inside = not at.check or facts.prove(n.plus(form, -1).shifted(-1))
            if facts.prove(form):
                below = False
                if inside:
                    return At(at.index)
            elif inside and at.wrap and (not at.check or facts.prove(form.plus(n))):
                if facts.prove(form.scaled(-1).shifted(-1)):
                    return At(self.from_end(at.index, size, span, facts, out))
                return At(at.index, wrap=True)
        wrap = at.wrap and below
        if self.unsafe or not at.check:
            return At(at.index, wrap)
        hoisted = not wrap and loop is not None and self.hoist(loop, modular, size, axis, span, below, facts)
        facts.assume(exact.plus(n) if wrap else exact)  # the test has passed
        facts.assume(n.plus(exact, -1).shifted(-1))
        facts.assume(n.shifted(-1))
        return At(at.index) if hoisted else At(at.index, wrap, True)

    def from_end(self, index: Atom, size: Dim, span: Span, facts: Facts, out: list[Stm]) -> Atom:
        """size + index"""
        form = self.numbers.form(index)
        if isinstance(size, int) and not form.terms:
            return i64(size + form.const)
        add = Apply("add", (dim_atom(size), index))
        at = Var("at", I64)
        self.numbers.define(at, add, facts)
        out.append(Stm((at,), add, span))
        return at

    # -- hoisting

    def hoist(self, loop: Loop, index: Form, size: Dim, axis: int, span: Span, below: bool, facts: Facts) -> bool:
        """Asks for a test before the loop instead of one here. `below`: the index is not known to be >= 0."""
        n = self.numbers.form(size)
        parts = index.split(loop.index)
        if parts is None or not all(self.numbers.available(f, loop.outside) for f in (*parts, n)):
            return False
        factor, start = parts
        if factor.terms and not (loop.outside.fits(factor) and loop.outside.prove(factor.shifted(-1))):
            return False  # its sign is not known
        # A start that may have left 64 bits is tested by itself, and at both ends whatever is known of the index.
        fits = loop.outside.fits(start)
        key = (size, axis, factor, start.shifted(-start.const), None if fits else start.const)
        if key not in loop.groups:
            loop.groups[key] = Group(size, axis, factor, start.shifted(-start.const), span, start.const)
        group = loop.groups[key]
        group.high = max(group.high, start.const)
        tested = not fits or (not facts.prove(start) if group.rises else below)
        if tested:
            group.low = start.const if group.low is None else min(group.low, start.const)
        if fits:
            last = start.plus(factor.times(self.numbers.form(loop.bound).shifted(-1)))
            if tested:
                facts.assume(start if group.rises else last)
            facts.assume(n.plus(last if group.rises else start, -1).shifted(-1))
        return True

    def tests(self, loop: Loop) -> list[Stm]:
        return [stm for group in loop.groups.values() for stm in Tests(self.numbers, loop, group).stms()]
