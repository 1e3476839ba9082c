"""Expressions over real numbers, each of which exists once: sums, powers, functions, choices, sums over a range.

The functions below make them, and simplify what they are given; nothing else does. Equal expressions of one
`fresh` block are one object, so that work is shared and comparing is free.

Note [Lazy choices]
`choice(c, a, b)` is `a` where the condition holds and `b` elsewhere, and the other one is not evaluated. Rules, with f any
function and c the same condition wherever it is written twice:
    choice(c, a, a) = a
    choice(not c, a, b) = choice(c, b, a)
    choice(c, choice(c, a, x), b) = choice(c, a, b)                       at any depth
    choice(c, choice(d, a, x), choice(d, a, y)) = choice(d, a, choice(c, x, y))
    choice(c, a, b) + choice(c, x, y) = choice(c, a + x, b + y)           products and powers likewise
    f(choice(c, a, b)) = choice(c, f(a), f(b))                            if that is simpler
A condition is constant to derivatives, so they go into both sides.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

Number = Fraction
_numbers: WeakValueDictionary[tuple[Any, ...], Expression] = WeakValueDictionary()


class TooLong(Exception):
    """More than anybody would read."""


class _Table(threading.local):
    """The expressions of a thread, but for numbers; how many have been made, and how much may still be written."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Expression] = {}
        self.made = count(1)
        self.room = math.inf


_table = _Table()


@contextmanager
def fresh(room: float = math.inf) -> Iterator[None]:
    """Expressions made inside are in the order in which they are made there, whatever was made before. `room`: so many
    terms and factors may be written, in the end or on the way, before it is `TooLong`.
    """
    before = _table.known, _table.made, _table.room
    _table.known, _table.made, _table.room = {}, count(1), room
    try:
        yield
    finally:
        _table.known, _table.made, _table.room = before


class Expression:
    """`kind` says what `parts` are:

    number     a Fraction
    symbol     a name
    sum        a Fraction, and pairs of a term and its factor, a Fraction
    product    pairs of a base and its exponent, an expression
    call       the name of a function, and arguments
    choice     a condition, and two expressions
    total      an index, a bound and an expression: the sum over index = 0, 1, ... below the bound
    compare    "gt", "eq" or ">=", and two expressions
    logic      "and" or "or", and two conditions
    """

    __slots__ = ("__weakref__", "_free", "kind", "parts", "serial")

    def __init__(self, kind: str, parts: tuple[Any, ...]) -> None:
        self.kind, self.parts, self.serial = kind, parts, 0 if kind == "number" else next(_table.made)
        self._free: frozenset[Expression] | None = None

    @property
    def children(self) -> tuple[Expression, ...]:
        match self.kind:
            case "sum":
                return tuple(term for term, _ in self.parts[1])
            case "product":
                return tuple(x for pair in self.parts[0] for x in pair)
            case "number" | "symbol":
                return ()
            case _:
                return tuple(x for x in self.parts if isinstance(x, Expression))

    @property
    def free(self) -> frozenset[Expression]:
        """The symbols that it depends on."""
        if self._free is None:
            found = {self} if self.kind == "symbol" else {s for child in self.children for s in child.free}
            self._free = frozenset(found - ({self.parts[0]} if self.kind == "total" else set()))
        return self._free

    @property
    def value(self) -> Number | None:
        """Of a number."""
        return self.parts[0] if self.kind == "number" else None


def made(kind: str, *parts: Any) -> Expression:
    """As it is, once."""
    _table.room -= len(parts[-1]) if kind in ("sum", "product") else 1
    if _table.room < 0:
        raise TooLong
    known = _numbers if kind == "number" else _table.known
    found = known.get((kind, *parts))
    if found is None:
        found = known[kind, *parts] = Expression(kind, parts)
    return found


# -- leaves


def in_order(pair: tuple[Expression, Any]) -> tuple[int, Fraction]:
    """Numbers first, then what was made first."""
    return pair[0].serial, pair[0].value or Fraction(0)


def number(value: float | Fraction) -> Expression:
    return made("number", Fraction(value) if not isinstance(value, float) else Fraction(repr(value)))


def symbol(name: str) -> Expression:
    return made("symbol", name)


def constant(value: complex | bool) -> Expression:
    """A number of a program. Floats count as the decimals that they are written as."""
    real = value.real
    if real in NAMED:
        return symbol(NAMED[real])
    if isinstance(real, float) and not math.isfinite(real):
        return symbol("nan" if real != real else "inf") if not real < 0 else negative(symbol("inf"))
    return number(real)


NAMED = {math.pi: "pi", math.e: "e"}
ZERO, ONE = number(0), number(1)


# -- sums and products


def add(*terms: Expression) -> Expression:
    return linear((t, Fraction(1)) for t in terms)


def linear(pairs: Iterable[tuple[Expression, Fraction]]) -> Expression:
    """The sum of terms, each times a number."""
    const, found = Fraction(0), dict[Expression, Fraction]()
    for term, factor in pairs:
        if term.kind == "number":
            const += term.parts[0] * factor
            continue
        inner, more = (term.parts[1], term.parts[0]) if term.kind == "sum" else (((term, Fraction(1)),), 0)
        const += more * factor
        for t, f in inner:
            found[t] = found.get(t, Fraction(0)) + f * factor
    return _merged_choices(const, {t: f for t, f in found.items() if f})


def _merged_choices(const: Fraction, terms: dict[Expression, Fraction]) -> Expression:
    """Note [Lazy choices]"""
    by_condition: dict[Expression, list[Expression]] = {}
    for t in terms:
        if t.kind == "choice":
            by_condition.setdefault(t.parts[0], []).append(t)
    for condition, choices in by_condition.items():
        if len(choices) > 1:
            sides = [linear((c.parts[k], terms[c]) for c in choices) for k in (1, 2)]
            rest = [(t, f) for t, f in terms.items() if t not in choices]
            return linear([*rest, (number(const), Fraction(1)), (choice(condition, *sides), Fraction(1))])
    if not terms:
        return number(const)
    if not const and len(terms) == 1:
        ((term, factor),) = terms.items()
        if factor == 1:
            return term
    return made("sum", const, tuple(sorted(terms.items(), key=in_order)))


def negative(x: Expression) -> Expression:
    return linear([(x, Fraction(-1))])


def subtract(x: Expression, y: Expression) -> Expression:
    return linear([(x, Fraction(1)), (y, Fraction(-1))])


def multiply(*factors: Expression) -> Expression:
    scale, bases = Fraction(1), dict[Expression, Expression]()
    for factor in factors:
        if factor.kind == "number":
            scale *= factor.parts[0]
            continue
        if factor.kind == "sum" and not factor.parts[0] and len(factor.parts[1]) == 1:  # a number times a term
            ((factor, by),) = factor.parts[1]
            scale *= by
        for base, exponent in factor.parts[0] if factor.kind == "product" else ((factor, ONE),):
            bases[base] = add(bases[base], exponent) if base in bases else exponent
    if not scale:
        return ZERO
    powers = {base: power(base, exponent) for base, exponent in bases.items()}
    for base, found in powers.items():
        if found is not base and (found.kind != "product" or found.parts[0] != ((base, bases[base]),)):
            return multiply(number(scale), *powers.values())  # it has become something else
    return linear([(_product(list(powers.values())), scale)])


def _product(factors: list[Expression]) -> Expression:
    by_condition: dict[Expression, list[Expression]] = {}
    for x in factors:
        if x.kind == "choice":
            by_condition.setdefault(x.parts[0], []).append(x)
    for condition, choices in by_condition.items():
        rest = [x for x in factors if x not in choices]
        gone = [k for k in (1, 2) if any(c.parts[k] is ZERO for c in choices)]
        if len(choices) > 1 or (gone and rest):  # what is multiplied by 0 need not be there
            inside, outside = (rest, []) if gone else ([], rest)
            sides = [multiply(*(c.parts[k] for c in choices), *inside) for k in (1, 2)]
            return multiply(*outside, choice(condition, *sides))
    pairs: list[tuple[Expression, Expression]] = []
    for x in factors:
        pairs += x.parts[0] if x.kind == "product" else [(x, ONE)]
    if not pairs:
        return ONE
    if len(pairs) == 1 and pairs[0][1] is ONE:
        return pairs[0][0]
    return made("product", tuple(sorted(pairs, key=in_order)))


def divide(x: Expression, y: Expression) -> Expression:
    return multiply(x, power(y, number(-1)))


def power(base: Expression, exponent: Expression) -> Expression:
    n = exponent.value
    if n == 0:
        return ONE
    if n == 1:
        return base
    if base.value is not None and n is not None and n.denominator == 1 and (base.value or n > 0) and abs(n) <= 64:
        return number(base.value ** int(n))
    if base is ONE:
        return ONE
    whole = n is not None and n.denominator == 1
    if base.kind == "choice" and n is not None:
        return choice(base.parts[0], power(base.parts[1], exponent), power(base.parts[2], exponent))
    if base.kind == "product" and whole:
        return multiply(*(power(b, multiply(e, exponent)) for b, e in base.parts[0]))
    if base.kind == "sum" and not base.parts[0] and len(base.parts[1]) == 1 and whole:
        ((term, factor),) = base.parts[1]
        return multiply(power(number(factor), exponent), power(term, exponent))
    if base.kind == "call" and base.parts[0] == "abs" and n is not None and whole and int(n) % 2 == 0:
        return power(base.parts[1], exponent)
    if base.kind == "product" and len(base.parts[0]) == 1:
        inner, e = base.parts[0][0]
        if e.value == 2 and n == Fraction(1, 2):
            return call("abs", inner)
    return made("product", ((base, exponent),))


# -- functions, choices


UNDONE = {"log": "exp", "exp": "log"}
AT = {
    "exp": {ZERO: ONE}, "log": {ONE: ZERO}, "sin": {ZERO: ZERO}, "cos": {ZERO: ONE}, "tan": {ZERO: ZERO},
    "tanh": {ZERO: ZERO}, "sinh": {ZERO: ZERO}, "cosh": {ZERO: ONE}, "abs": {},
}  # fmt: skip


def call(name: str, *args: Expression) -> Expression:
    first = args[0]
    if len(args) == 1:
        if first in AT.get(name, ()):
            return AT[name][first]
        if first.kind == "call" and UNDONE.get(name) == first.parts[0]:
            inner: Expression = first.parts[1]
            return inner
        if name == "abs" and first.value is not None:
            return number(abs(first.value))
    choices = [a for a in args if a.kind == "choice"]
    if choices and all(c.parts[0] is choices[0].parts[0] for c in choices):
        sides = [call(name, *(a.parts[k] if a.kind == "choice" else a for a in args)) for k in (1, 2)]
        if sides[0] is sides[1]:
            return sides[0]
    return made("call", name, *args)


def choice(condition: Expression, then: Expression, other: Expression) -> Expression:
    if condition.kind == "number":
        return then if condition.parts[0] else other
    if condition.kind == "compare" and condition.parts[0] == ">=":  # one of two opposites
        _, a, b = condition.parts
        return choice(compare("gt", b, a), other, then)
    then, other = assuming(then, condition, True), assuming(other, condition, False)
    if then is other:
        return then
    if then.kind == other.kind == "choice" and then.parts[0] is other.parts[0]:
        inner, a, b = then.parts
        _, c, d = other.parts
        if a is c:
            return choice(inner, a, choice(condition, b, d))
        if b is d:
            return choice(inner, choice(condition, a, c), b)
    return made("choice", condition, then, other)


def assuming(x: Expression, condition: Expression, holds: bool) -> Expression:
    """With choices by this condition made."""
    if not any(c is condition for c in conditions_in(x)):
        return x

    def visit(y: Expression) -> Expression:
        if y.kind == "choice" and y.parts[0] is condition:
            return visit(y.parts[1] if holds else y.parts[2])
        return rebuilt(y, visit)

    return visit(x)


def conditions_in(x: Expression) -> Iterator[Expression]:
    seen: set[Expression] = set()
    stack = [x]
    while stack:
        y = stack.pop()
        if y in seen:
            continue
        seen.add(y)
        if y.kind == "choice":
            yield y.parts[0]
        stack.extend(y.children)


def compare(op: str, a: Expression, b: Expression) -> Expression:
    """`op`: the name of a row."""
    match op:
        case "lt":
            return compare("gt", b, a)
        case "le":
            return compare(">=", b, a)
        case "ge":
            return compare(">=", a, b)
        case "ne":
            return opposite(compare("eq", a, b))
    if a.value is not None and b.value is not None:
        holds = {"gt": a.value > b.value, ">=": a.value >= b.value, "eq": a.value == b.value}[op]
        return number(int(holds))
    return made("compare", op, a, b)


def opposite(condition: Expression) -> Expression:
    match condition.kind, condition.parts:
        case "number", (value,):
            return number(int(not value))
        case "compare", ("gt", a, b):
            return made("compare", ">=", b, a)
        case "compare", (">=", a, b):
            return made("compare", "gt", b, a)
        case "logic", ("and", a, b):
            return logic("or", opposite(a), opposite(b))
        case "logic", ("or", a, b):
            return logic("and", opposite(a), opposite(b))
        case "call", ("not", a):
            return a  # type: ignore[no-any-return]
    return made("call", "not", condition)


def logic(op: str, a: Expression, b: Expression) -> Expression:
    for x, y in ((a, b), (b, a)):
        if x.kind == "number":
            decided = bool(x.parts[0]) == (op == "or")
            return x if decided else y
    return a if a is b else made("logic", op, a, b)


# -- sums over a range


def total(index: Expression, bound: Expression, body: Expression) -> Expression:
    """What does not depend on the index is taken out."""
    if body is ZERO or bound is ZERO:
        return ZERO
    if index not in body.free:
        return multiply(bound, body)
    if body.kind == "sum":
        const, terms = body.parts
        parts = [(total(index, bound, t), f) for t, f in terms]
        return linear([*parts, (multiply(bound, number(const)), Fraction(1))])
    if body is index:
        return multiply(number(Fraction(1, 2)), bound, subtract(bound, ONE))
    if body.kind == "product":
        outside = [power(b, e) for b, e in body.parts[0] if index not in b.free | e.free]
        if outside:
            inside = [power(b, e) for b, e in body.parts[0] if index in b.free | e.free]
            return multiply(*outside, total(index, bound, multiply(*inside)))
    return made("total", index, bound, body)


# -- walking


def rebuilt(x: Expression, visit: Callable[[Expression], Expression]) -> Expression:
    """With other children; simplified again."""
    match x.kind:
        case "number" | "symbol":
            return x
        case "sum":
            const, terms = x.parts
            return linear([*((visit(t), f) for t, f in terms), (number(const), Fraction(1))])
        case "product":
            return multiply(*(power(visit(b), visit(e)) for b, e in x.parts[0]))
        case "call":
            if x.parts[0] == "not":
                return opposite(visit(x.parts[1]))
            return call(x.parts[0], *(visit(a) for a in x.parts[1:]))
        case "choice":
            return choice(*(visit(p) for p in x.parts))
        case "total":
            return total(x.parts[0], visit(x.parts[1]), visit(x.parts[2]))
        case "compare":
            op = {">=": "ge"}.get(x.parts[0], x.parts[0])
            return compare(op, visit(x.parts[1]), visit(x.parts[2]))
        case "logic":
            return logic(x.parts[0], visit(x.parts[1]), visit(x.parts[2]))
    raise AssertionError(x.kind)


def substitute(x: Expression, values: dict[Expression, Expression]) -> Expression:
    done: dict[Expression, Expression] = {}

    def visit(y: Expression) -> Expression:
        if y in values:
            return values[y]
        if not y.free & values.keys():
            return y
        if y not in done:
            done[y] = rebuilt(y, visit)
        return done[y]

    return visit(x)
