"""Expressions as text: in Python's notation, in LaTeX, and as SymPy's expressions."""

from __future__ import annotations

import importlib
from fractions import Fraction
from typing import Any

from tapeless.symbolic.formulas.expressions import Expression

SUM, PRODUCT, POWER, ATOM = range(1, 5)  # how strongly parts of a text hold together
CHOICE = 0
COMPARISONS = {"gt": ">", "eq": "==", ">=": ">=", "lt": "<", "<=": "<="}
BACKWARDS = {"gt": "lt", ">=": "<="}
LATEX_FUNCTIONS = {
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log",
}  # fmt: skip
LATEX_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "theta", "kappa", "lambda", "mu", "nu", "pi", "rho", "sigma", "tau",
    "phi", "omega",
}  # fmt: skip


def text_of(x: Expression) -> str:
    return _Python().write(x)[0]


def latex_of(x: Expression) -> str:
    return _Latex().write(x)[0]


class _Python:
    """Each `write` gives a text and how strongly it holds together."""

    def write(self, x: Expression) -> tuple[str, int]:
        match x.kind:
            case "number":
                return self.number(x.parts[0])
            case "symbol":
                return self.name(x.parts[0]), ATOM
            case "sum":
                return self.sum(x), SUM
            case "product":
                return self.product(Fraction(1), x)
            case "call":
                args = [self.write(a)[0] for a in x.parts[1:]]
                return (self.element(args) if x.parts[0] == "element" else self.call(x.parts[0], args)), ATOM
            case "choice":
                return self.choice(*x.parts), CHOICE
            case "total":
                return self.total(*x.parts)
            case "compare":
                op, a, b = x.parts
                if a.kind == "number" and op in BACKWARDS:
                    op, a, b = BACKWARDS[op], b, a
                return f"{self.held(a, SUM)} {self.comparison(op)} {self.held(b, SUM)}", CHOICE
            case "logic":
                op, a, b = x.parts
                return f"{self.held(a, SUM)} {self.word(op)} {self.held(b, SUM)}", CHOICE
        raise AssertionError(x.kind)

    def held(self, x: Expression, least: int) -> str:
        text, strength = self.write(x)
        return text if strength >= least else self.inside(text)

    def inside(self, text: str) -> str:
        return f"({text})"

    def name(self, name: str) -> str:
        return name

    def number(self, value: Fraction) -> tuple[str, int]:
        if value < 0:
            return f"-{self.number(-value)[0]}", SUM
        if value.denominator == 1:
            return str(value.numerator), ATOM
        digits = _decimal(value)
        return (digits, ATOM) if digits else self.quotient(str(value.numerator), str(value.denominator))

    def quotient(self, above: str, below: str) -> tuple[str, int]:
        return f"{above} / {below}", PRODUCT

    def sum(self, x: Expression) -> str:
        const, terms = x.parts
        parts = [(f < 0, self.scaled(abs(f), t)) for t, f in terms]
        if const:
            parts.append((const < 0, self.number(abs(const))[0]))
        parts.sort(key=lambda part: part[0])  # a text rather begins without a sign
        text = "".join(f" {'-' if minus else '+'} {part}" for minus, part in parts)
        return text[3:] if text.startswith(" +") else "-" + text[3:]

    def scaled(self, factor: Fraction, term: Expression) -> str:
        if term.kind == "product":
            text, strength = self.product(factor, term)
            return text if strength >= PRODUCT else self.inside(text)
        if factor == 1:
            return self.held(term, PRODUCT)
        if factor.numerator == 1 and not _decimal(factor):
            return self.quotient(self.held(term, PRODUCT), str(factor.denominator))[0]
        return self.times([self.number(factor)[0], self.held(term, PRODUCT)])

    def product(self, factor: Fraction, x: Expression) -> tuple[str, int]:
        above: list[str] = []
        below: list[str] = []
        pairs = x.parts[0]
        alone = len(pairs) == 1 and factor == 1
        strength = ATOM
        for base, exponent in pairs:
            value = exponent.value
            side, e = (below, -value) if value is not None and value < 0 else (above, value)
            if e == 1:
                side.append(self.held(base, PRODUCT if side is above and not alone else POWER))
                strength = POWER
            elif e == Fraction(1, 2):
                side.append(self.root(base))
            else:
                side.append(self.power(base, self.number(e) if e is not None else self.write(exponent)))
                strength = POWER
        if factor != 1 or not above:
            digits = _decimal(factor) or factor.denominator == 1
            if digits or factor.numerator != 1:
                above.insert(0, self.number(factor)[0] if digits else str(factor.numerator))
            if not digits:
                below.insert(0, str(factor.denominator))
            above = above or ["1"]
        if below:
            return self.quotient(self.times(above), self.times(below) if len(below) == 1 else self.grouped(below))
        if len(above) == 1:
            return above[0], strength if alone else PRODUCT
        return self.times(above), PRODUCT

    def grouped(self, parts: list[str]) -> str:
        return self.inside(self.times(parts))

    def times(self, parts: list[str]) -> str:
        return " * ".join(parts)

    def power(self, base: Expression, exponent: tuple[str, int]) -> str:
        text, strength = exponent
        return f"{self.held(base, ATOM)}**{text if strength >= ATOM else self.inside(text)}"

    def root(self, base: Expression) -> str:
        return f"sqrt({self.write(base)[0]})"

    def call(self, name: str, args: list[str]) -> str:
        return f"{name}({', '.join(args)})"

    def element(self, args: list[str]) -> str:
        return f"{args[0]}[{', '.join(args[1:])}]"

    def choice(self, condition: Expression, then: Expression, other: Expression) -> str:
        return f"{self.held(then, SUM)} if {self.write(condition)[0]} else {self.write(other)[0]}"

    def total(self, index: Expression, bound: Expression, body: Expression) -> tuple[str, int]:
        return f"sum({self.write(body)[0]} for {index.parts[0]} in range({self.write(bound)[0]}))", ATOM

    def comparison(self, op: str) -> str:
        return COMPARISONS[op]

    def word(self, op: str) -> str:
        return op


class _Latex(_Python):
    def inside(self, text: str) -> str:
        return rf"\left({text}\right)"

    def name(self, name: str) -> str:
        head, _, tail = name.partition("_")
        if "[" in head:
            head, _, rest = head.partition("[")
            tail = rest.rstrip("]") + tail
        if not tail and head[:1].isalpha() and head[1:].isdigit():
            head, tail = head[0], head[1:]
        head = "\\infty" if head == "inf" else "\\" + head if head in GREEK else head
        head = head if len(head) == 1 or head.startswith("\\") else rf"\mathrm{{{head}}}"
        return f"{head}_{{{tail}}}" if tail else head

    def quotient(self, above: str, below: str) -> tuple[str, int]:
        return rf"\frac{{{above}}}{{{below}}}", PRODUCT

    def grouped(self, parts: list[str]) -> str:
        return self.times(parts)

    def times(self, parts: list[str]) -> str:
        return r" \, ".join(parts)

    def power(self, base: Expression, exponent: tuple[str, int]) -> str:
        return f"{self.held(base, ATOM)}^{{{exponent[0]}}}"

    def root(self, base: Expression) -> str:
        return rf"\sqrt{{{self.write(base)[0]}}}"

    def call(self, name: str, args: list[str]) -> str:
        if name == "abs":
            return rf"\left|{args[0]}\right|"
        name = LATEX_NAMES.get(name, name)
        command = f"\\{name}" if name in LATEX_FUNCTIONS or name.startswith("arc") else rf"\mathrm{{{name}}}"
        return rf"{command}\left({', '.join(args)}\right)"

    def element(self, args: list[str]) -> str:
        return f"{args[0]}_{{{', '.join(args[1:])}}}"

    def choice(self, condition: Expression, then: Expression, other: Expression) -> str:
        rows: list[str] = []
        while True:
            rows.append(rf"{self.write(then)[0]} & \text{{if }} {self.write(condition)[0]}")
            if other.kind != "choice":
                break
            condition, then, other = other.parts
        rows.append(rf"{self.write(other)[0]} & \text{{otherwise}}")
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"

    def total(self, index: Expression, bound: Expression, body: Expression) -> tuple[str, int]:
        name = index.parts[0]
        return rf"\sum_{{{name}=0}}^{{{self.write(bound)[0]} - 1}} {self.held(body, PRODUCT)}", SUM

    def comparison(self, op: str) -> str:
        return {"gt": ">", "eq": "=", ">=": r"\geq", "lt": "<", "<=": r"\leq"}[op]

    def word(self, op: str) -> str:
        return rf"\text{{ {op} }}"


def _decimal(value: Fraction) -> str:
    """A short decimal that is exactly this number, or nothing."""
    text = repr(float(value))
    return text if Fraction(text) == value and len(text) <= 8 and "e" not in text else ""


def sympy_of(x: Expression) -> Any:
    """Needs SymPy."""
    sympy = importlib.import_module("sympy")
    names = {"abs": "Abs", "rint": "round", "asin": "asin", "expit": None}
    done: dict[Expression, Any] = {}

    def visit(y: Expression) -> Any:
        if y not in done:
            done[y] = made(y)
        return done[y]

    def made(y: Expression) -> Any:
        match y.kind:
            case "number":
                return sympy.Rational(y.parts[0].numerator, y.parts[0].denominator)
            case "symbol":
                known = {"pi": sympy.pi, "e": sympy.E, "inf": sympy.oo, "nan": sympy.nan}
                return known.get(y.parts[0]) or sympy.Symbol(y.parts[0], real=True)
            case "sum":
                const, terms = y.parts
                return sympy.Add(sympy.Rational(const.numerator, const.denominator), *(
                    sympy.Rational(f.numerator, f.denominator) * visit(t) for t, f in terms
                ))  # fmt: skip
            case "product":
                return sympy.Mul(*(visit(b) ** visit(e) for b, e in y.parts[0]))
            case "call":
                name, *args = y.parts
                given = [visit(a) for a in args]
                if name == "not":
                    return sympy.Not(given[0])
                function = getattr(sympy, names.get(name) or name, None) or sympy.Function(name)
                return function(*given)
            case "choice":
                condition, then, other = map(visit, y.parts)
                return sympy.Piecewise((then, condition), (other, True))
            case "total":
                index, bound, body = map(visit, y.parts)
                return sympy.Sum(body, (index, 0, bound - 1))
            case "compare":
                op, a, b = y.parts
                kind = {"gt": sympy.Gt, "eq": sympy.Eq, ">=": sympy.Ge}[op]
                return kind(visit(a), visit(b))
            case "logic":
                op, a, b = y.parts
                return (sympy.And if op == "and" else sympy.Or)(visit(a), visit(b))
        raise AssertionError(y.kind)

    return visit(x)
