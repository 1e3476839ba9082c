"""Core read as formulae: scalars, elements of arrays at known places, branches, and loops that have a closed form.

`Reader` takes statements and keeps what each variable is. What cannot be read is a symbol of its own: only where a
result depends on it, there is `NoFormula`, with the place.

Note [Closed forms]
A loop with few iterations, known beforehand, is written out. Otherwise what it does to a carried value d, in n
iterations from p, is solved for d, one value after the other; a and b do not depend on what the loop carries:
    d = d + b[i]        p + the sum of b
    d = a d + b         p a^n + b (1 + a + ... + a^(n-1))
    d = a d + b[i]      p a^n + the sum of a^i b[n-1-i]
    d = a d^b           a^(1 + b + ... + b^(n-1)) p^(b^n)
Values that the loop replaces by what does not depend on them are those of the last iteration, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tapeless.ir.core import Apply, At, Body, Check, Exp, For, If, Index, Print, Progress, Stm, While
from tapeless.ir.span import NOWHERE, Span
from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.symbolic.formulas.expressions import (
    ONE,
    ZERO,
    Expression,
    add,
    call,
    choice,
    compare,
    constant,
    divide,
    logic,
    multiply,
    negative,
    number,
    opposite,
    power,
    substitute,
    subtract,
    symbol,
    total,
)

WRITTEN_OUT = 64  # iterations of a loop

HALF, TWO = number(Fraction(1, 2)), number(2)
Rule = Callable[..., Expression]


def _greater(x: Expression, y: Expression) -> Expression:
    return choice(compare("gt", y, x), y, x)


def _smaller(x: Expression, y: Expression) -> Expression:
    return choice(compare("gt", x, y), y, x)


RULES: dict[str, Rule] = {
    "add": add, "sub": subtract, "mul": multiply, "times": multiply, "mul_rounded": multiply, "mul_error": lambda x, y: number(0),
    "div": divide, "quotient": divide, "neg": negative,
    "pow": power, "ipow": power, "square": lambda x: power(x, TWO), "sqrt": lambda x: power(x, HALF),
    "reciprocal": lambda x: power(x, number(-1)), "rsqrt": lambda x: power(x, negative(HALF)),
    "cbrt": lambda x: power(x, number(Fraction(1, 3))), "hypot": lambda x, y: power(add(power(x, TWO), power(y, TWO)), HALF),
    "times_root": lambda x: power(x, number(Fraction(3, 2))), "one_minus_square": lambda x: subtract(ONE, power(x, TWO)),
    "deg2rad": lambda x: multiply(x, divide(symbol("pi"), number(180))),
    "rad2deg": lambda x: multiply(x, divide(number(180), symbol("pi"))),
    "loose_tanh": lambda x: call("tanh", x), "exp2": lambda x: power(TWO, x),
    "xlogy": lambda x, y: multiply(x, call("log", y)),
    "logaddexp": lambda x, y: call("log", add(call("exp", x), call("exp", y))),
    "floordiv": lambda x, y: call("floor", divide(x, y)),
    "mod": lambda x, y: subtract(x, multiply(y, call("floor", divide(x, y)))),
    **dict.fromkeys(("max", "maximum", "fmax"), _greater), **dict.fromkeys(("min", "minimum", "fmin"), _smaller),
    "select": choice, "identity": lambda x: x, "stop_gradient": lambda x: call("constant", x), "not": opposite,
    "and": lambda x, y: logic("and", x, y), "or": lambda x, y: logic("or", x, y),
    **{op: (lambda x, y, op=op: compare(op, x, y)) for op in ("lt", "le", "gt", "ge", "eq", "ne")},
}  # fmt: skip
FUNCTIONS = {
    "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh",
    "log1p", "expm1", "log2", "log10", "erf", "erfc", "expit", "abs", "floor", "ceil", "rint", "trunc", "sign",
    "gamma", "gammaln", "digamma",
}  # fmt: skip


BITWISE = ("and", "or", "not")  # of truth values alone they are what the rules say


class NoFormula(Exception):
    def __init__(self, reason: str, span: Span = NOWHERE) -> None:
        super().__init__(reason)
        self.reason, self.span = reason, span


@dataclass
class Reader:
    """`names`: what the elements of an array are called."""

    known: dict[Var, Expression] = field(default_factory=dict)
    names: dict[Var, str] = field(default_factory=dict)
    elements: dict[Expression, tuple[Var, tuple[int, ...]]] = field(default_factory=dict)
    span: Span = NOWHERE
    counters: int = 0
    unread: dict[Expression, NoFormula] = field(default_factory=dict)
    scattered: set[Var] = field(default_factory=set)  # arrays that are read at places that are not known beforehand

    def counter(self) -> Expression:
        """A symbol to count with that nothing else is called: one inside of another sum must not take its place."""
        taken = {*self.names.values(), *(x.parts[0] for x in self.known.values() if x.kind == "symbol")}
        while True:
            self.counters += 1
            name = "ijklm"[self.counters - 1] if self.counters <= 5 else f"i{self.counters}"
            if name not in taken:
                return symbol(name)

    def formula(self, body: Body) -> Expression:
        """The only result of a function."""
        (found,) = self.results(body)
        for x in found.free:
            if x in self.unread:
                raise self.unread[x]
        return found

    def results(self, body: Body) -> list[Expression]:
        for stm in body.stms:
            self.statement(stm)
        return [self.atom(r) for r in body.results]

    def atom(self, atom: Atom) -> Expression:
        if isinstance(atom, Const):
            return constant(atom.value)
        if atom not in self.known:
            self.known[atom] = self.refused("whole arrays have no formula here")
        return self.known[atom]

    def refused(self, reason: str) -> Expression:
        found = symbol(f"<unread {len(self.unread)}>")
        self.unread[found] = NoFormula(reason, self.span)
        return found

    def statement(self, stm: Stm) -> None:
        self.span = stm.span
        match stm.exp:
            case Check() | Print() | Progress():
                return
            case If() as branch:
                found = self.branch(branch)
            case For() as loop:
                found = self.loop(loop, stm.span)
            case exp:
                found = [self.value(exp, stm)] * len(stm.vars)
        self.known.update(zip(stm.vars, found, strict=True))

    def value(self, exp: Exp, stm: Stm) -> Expression:
        match exp:
            case Apply(op="convert", args=(x,)):
                return self.converted(self.atom(x), x.type.dtype, stm.vars[0].type.dtype)
            case Apply(op=op, args=args) if any(a.type.dtype.is_complex for a in (*args, *stm.vars)):
                return self.refused("complex numbers have no formula here")
            case Apply(op=op, args=args) if op in BITWISE and not all(a.type.dtype is DType.bool for a in args):
                return self.refused(f"'{op}' of integers has no formula")
            case Apply(op=op, args=args):
                given_args = [self.atom(a) for a in args]
                if op in RULES:
                    return RULES[op](*given_args)
                if op in FUNCTIONS:
                    return call(op, *given_args)
                return self.refused(f"'{op}' has no formula")
            case Index(array=array, axes=axes) if array in self.names and all(isinstance(a, At) for a in axes):
                return self.element(array, [self.atom(a.index) for a in axes if isinstance(a, At)])
            case While():
                return self.refused("a while loop has no closed form")
            case _:
                return self.refused("whole arrays have no formula here")

    def converted(self, x: Expression, source: DType, target: DType) -> Expression:
        if source.is_complex or target.is_complex:
            return self.refused("complex numbers have no formula here")
        if source is DType.bool or target is DType.bool:
            if source is target:
                return x
            return choice(x, ONE, ZERO) if source is DType.bool else compare("ne", x, ZERO)
        if source.is_int and target.is_int and not np.can_cast(source.numpy, target.numpy):
            return self.refused("an integer that wraps has no formula here")
        return call("trunc", x) if source.is_float and target.is_int else x

    def element(self, array: Var, at: Sequence[Expression]) -> Expression:
        """A place counts as known if its cell has no other name: -1 is the same as some other number."""
        numbers = [int(a.value) for a in at if a.value is not None and a.value >= 0]
        if len(numbers) < len(at):
            self.scattered.add(array)
            return call("element", symbol(self.names[array]), *at)
        found = symbol(f"{self.names[array]}[{', '.join(map(str, numbers))}]")
        self.elements[found] = (array, tuple(numbers))
        return found

    def branch(self, branch: If) -> list[Expression]:
        condition = self.atom(branch.cond)
        return [
            choice(condition, a, b)
            for a, b in zip(self.results(branch.then), self.results(branch.orelse), strict=True)
        ]  # fmt: skip

    # -- loops

    def loop(self, loop: For, span: Span) -> list[Expression]:
        bound = self.atom(loop.bound)
        starts = [self.atom(x) for x in loop.inits]
        if bound.value is not None and bound.value <= WRITTEN_OUT:
            for k in range(max(int(bound.value), 0)):
                self.known.update(zip(loop.params, starts, strict=True))
                self.known[loop.index] = number(k)
                starts = self.results(loop.body)
            return starts
        index = self.counter()
        carried = [symbol(f"<{p.name}>") for p in loop.params]
        self.known[loop.index] = index
        self.known.update(zip(loop.params, carried, strict=True))
        ends = self.results(loop.body)
        self.span = span
        return self.solved(index, bound, carried, starts, ends, [p.name for p in loop.params])

    def solved(
        self, index: Expression, n: Expression, carried: Sequence[Expression], starts: Sequence[Expression],
        ends: Sequence[Expression], names: Sequence[str],
    ) -> list[Expression]:  # fmt: skip
        """Note [Closed forms]"""
        after: dict[Expression, Expression] = {}  # what each carried value is at the start of iteration `index`
        last: dict[Expression, Expression] = {}
        before = -1
        while len(after) != before:
            before = len(after)
            for d, p, end in zip(carried, starts, ends, strict=True):
                if d in after:
                    continue
                step = substitute(end, after)
                if (step.free & set(carried)) - {d}:
                    continue
                form, so_far = (_closed(index, m, d, p, step, self.counter) for m in (n, index))
                if form is not None and so_far is not None:
                    last[d], after[d] = form, so_far
        return [
            last[d] if d in last else self.refused(f"the loop has no closed form for '{name}'")
            for d, name in zip(carried, names, strict=True)
        ]


def _closed(
    index: Expression, n: Expression, d: Expression, p: Expression, step: Expression, counter: Callable[[], Expression]
) -> Expression | None:
    """What d is after n iterations, if `step` is what an iteration makes of it."""
    if step is d:
        return p
    if d not in step.free:  # the last one counts
        final = substitute(step, {index: subtract(n, ONE)})
        return final if n.value else choice(compare("gt", n, ZERO), final, p)
    j = counter()
    linear = _linear_in(step, d)
    if linear is not None:
        a, b = linear
        if a is ONE:
            return add(p, total(j, n, substitute(b, {index: j})))
        if index not in a.free:
            terms = multiply(power(a, j), substitute(b, {index: subtract(subtract(n, ONE), j)}))
            return add(multiply(p, power(a, n)), total(j, n, terms))
        return None
    if step.kind == "product" or (step.kind == "sum" and not step.parts[0] and len(step.parts[1]) == 1):
        factor, product = (Fraction(1), step) if step.kind == "product" else (step.parts[1][0][1], step.parts[1][0][0])
        pairs = dict(product.parts[0]) if product.kind == "product" else {product: ONE}
        b = pairs.pop(d, None)
        rest = multiply(number(factor), *(power(x, e) for x, e in pairs.items()))
        if b is not None and b.value is not None and not rest.free & {d, index} and b is not ONE:
            return multiply(power(rest, total(j, n, power(b, j))), power(p, power(b, n)))
    return None


def _linear_in(x: Expression, d: Expression) -> tuple[Expression, Expression] | None:
    """a and b of a d + b, where neither depends on d."""
    if d not in x.free:
        return ZERO, x
    if x is d:
        return ONE, ZERO
    if x.kind == "sum":
        parts = [(_linear_in(t, d), f) for t, f in x.parts[1]]
        if any(part is None for part, _ in parts):
            return None
        found = [(part, number(f)) for part, f in parts if part is not None]
        slope = add(*(multiply(f, part[0]) for part, f in found))
        return slope, add(number(x.parts[0]), *(multiply(f, part[1]) for part, f in found))
    if x.kind == "product":
        own = [(b, e) for b, e in x.parts[0] if d in b.free | e.free]
        if len(own) == 1 and own[0][1] is ONE:
            inner = _linear_in(own[0][0], d)
            if inner is not None:
                others = [power(b, e) for b, e in x.parts[0] if b is not own[0][0]]
                return multiply(inner[0], *others), multiply(inner[1], *others)
    if x.kind == "choice" and d not in x.parts[0].free:
        sides = [_linear_in(side, d) for side in x.parts[1:]]
        if sides[0] is not None and sides[1] is not None:
            return choice(x.parts[0], sides[0][0], sides[1][0]), choice(x.parts[0], sides[0][1], sides[1][1])
    return None
