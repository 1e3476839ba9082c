"""Reads the text form of Core: the inverse of `ir/printer.py`, where the grammar stands.

Takes text, printed or written by hand; gives a Function whose statements have no spans, or raises CoreSyntaxError with
a line. It checks names and what the text cannot do without; types are checked by `passes/check/verify.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Body,
    Broadcast,
    Call,
    Check,
    Concat,
    Copy,
    Exp,
    For,
    Full,
    Function,
    Hist,
    If,
    Index,
    Iota,
    Lambda,
    Library,
    Print,
    Progress,
    Range,
    Reduction,
    Reshape,
    Rule,
    Scatter,
    Shown,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.hints import Hints, read_hints
from tapeless.ir.lexer import CoreSyntaxError, Token
from tapeless.ir.operand_parser import OperandParser, TypeWords
from tapeless.ir.printer import row_types
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import I64, Atom, Dim, Type, Var, i64

__all__ = ["CoreSyntaxError", "parse_function"]
T = TypeVar("T")


def parse_function(text: str) -> Function:
    """The last function of the text, with those before it as the rest of its program."""
    parser = Parser(text)
    found: list[Function] = []
    parser.skip_lines()
    while not found or parser.here.kind != "end":
        parser.scopes = [{}]
        found.append(parser.function())
        parser.skip_lines()
    return replace(found[-1], calls=tuple(found[:-1]))


class Parser(OperandParser):
    # -- functions, bodies, statements

    def function(self) -> Function:
        self.expect("def")
        name = self.take("name")
        sizes = [self.bind(t, I64) for t in self.listed(self.name_token, "[", "]")] if self.sees("[") else None
        words = self.listed(self.typed_name, "(", ")")
        if sizes is None:
            dims = {d.text: d for _, type in words for d in type.dims if isinstance(d, Token)}
            names = {name.text for name, _ in words}
            sizes = [self.bind(d, I64) for text, d in dims.items() if text not in names]
        params = self.bind_all(words)
        start = self.expect("->")
        result_words = self.one_or_tuple(self.type_words)
        written: list[int] = []
        if self.accept("writes"):
            written.append(self.position_of(params))
            while self.accept(","):
                written.append(self.position_of(params))
        options = tuple((key, bool(value)) for key, value in self.attributes())
        rule = self.rule() if self.accept("rule") else None
        body = self.body()
        if [self.resolve(w) for w in result_words] != [r.type for r in body.results]:
            raise self.error("the results of the body have other types than the function", start)
        return Function(name, tuple(sizes), params, body, tuple(written), options, rule=rule)

    def rule(self) -> Rule:
        token, words = self.here, dict(self.attributes())
        try:
            return Rule(**words)  # type: ignore[arg-type]
        except TypeError:
            raise self.error("cannot read this rule", token) from None

    def position_of(self, params: Sequence[Var]) -> int:
        token = self.here
        var = self.var()
        if var not in params:
            raise self.error(f"{token.text} is no parameter", token)
        return params.index(var)

    def region(self, read: Callable[[], T]) -> T:
        self.scopes.append({})
        result = read()
        self.scopes.pop()
        return result

    def body(self) -> Body:
        """In the current scope."""
        stms: list[Stm] = []
        while True:
            self.skip_lines()
            if self.accept("in"):
                return Body(tuple(stms), self.one_or_tuple(self.atom))
            if not stms and self.is_bare_result():
                return Body((), self.one_or_tuple(self.atom))
            stms.append(self.stm())
            if self.here.kind != "line":
                raise self.unexpected("the end of the statement")

    def is_bare_result(self) -> bool:
        """Results without `in`: no statement is a single word or starts like this."""
        ends = self.next.kind in ("line", "end") or self.next.text in (")", "else", "do")
        return self.sees("(") or self.here.kind == "const" or (self.here.kind == "name" and ends)

    def stm(self) -> Stm:
        words: list[tuple[Token, TypeWords | Type]] = []
        if self.next.text == ":":
            words.append(self.typed_name())
            while self.accept(","):
                words.append(self.typed_name())
            self.expect("=")
        exp = self.exp()
        return Stm(self.bind_all(words), exp, NOWHERE)

    # -- expressions

    def exp(self) -> Exp:
        if self.sees("["):
            return ArrayLit(self.listed(self.atom, "[", "]"))
        if self.accept("@"):
            return Library(self.take("name"), self.atoms(), self.attributes())
        if self.here.kind != "name":
            raise self.unexpected("an expression")
        if self.next.text == "[" and not self.takes_list():
            array = self.var()
            return Index(array, self.axes(array))
        head = self.advance().text
        match head:
            case "if":
                return self.if_()
            case "loop":
                return self.loop()
            case "update" | "update_acc":
                array = self.var()
                axes = self.axes(array)
                self.expect("=")
                return Update(array, axes, self.atom()) if head == "update" else UpdateAcc(array, axes, self.atom())
            case "iota":
                return Iota(self.dim())
            case "keep":
                return Full(self.dims(), None, kept=True)
            case "full":
                return Full(self.dims(), None if self.accept("_") else self.atom())
            case "reshape":
                return Reshape(self.var(), self.dims())
            case "transpose":
                return Transpose(self.var(), self.listed(self.integer, "[", "]"))
            case "broadcast":
                array, shape = self.var(), self.dims()
                self.expect("axes")
                return Broadcast(array, shape, self.listed(self.integer, "[", "]"))
            case "concat":
                arrays = self.listed(self.var, "[", "]")
                self.expect("axis")
                return Concat(arrays, self.integer())
            case "copy":
                return Copy(self.var())
            case "map" | "sweep":
                return self.sweep()
            case "reduce" | "scan":
                return self.plain_sweep(head)
            case "hist":
                op, dests, width = self.operator(), self.one_or_tuple(self.var), self.dim()
                arrays, lam = self.lambda_and_arrays()
                return Hist(op, dests, width, arrays, lam)
            case "scatter":
                dests, width = self.one_or_tuple(self.var), self.dim()
                arrays, lam = self.lambda_and_arrays()
                return Scatter(dests, width, arrays, lam)
            case "with_acc":
                token, word = self.here, self.braces()
                if word not in ("", "slopes"):
                    raise self.error(f"accumulators are not {word!r}", token)
                return WithAcc(self.one_or_tuple(self.var), self.lam(()), word == "slopes")
            case "check":
                cond, error, message = self.atom(), self.take("name", "the name of an error"), self.string()
                return Check(cond, error, message, self.atoms())
            case "call":
                name, args, words = self.take("name"), self.atoms(), dict(self.attributes())
                return Call(name, args, bool(words.get("effects")))
            case "print":
                return Print(self.listed(self.print_part, "(", ")"), self.atoms())
            case "progress":
                done, total = self.atom(), self.atom()
                return Progress(done, total, bool(dict(self.attributes()).get("backward")))
        return Apply(head, self.atoms())

    def takes_list(self) -> bool:
        """`full [n] x` or `concat [a, b] axis 0` rather than an element of an array of such a name."""
        if not self.sees("full", "concat"):
            return False
        for k, token in enumerate(self.tokens[self.position :], self.position):
            if token.text == "]":
                return self.tokens[k + 1].kind in ("name", "const")
        return True

    def if_(self) -> If:
        cond = self.atom()
        self.expect("then")
        then = self.region(self.body)
        self.expect("else")
        return If(cond, then, self.region(self.body))

    def loop(self) -> For | While:
        starts = self.listed(self.carried, "(", ")")
        inits = tuple(init for _, _, init in starts)
        self.scopes.append({})
        if self.accept("for"):
            name = self.name_token()
            type = self.type_words() if self.accept(":") else I64
            self.expect("<")
            bound = self.atom()
            params = self.bind_all([(n, t) for n, t, _ in starts])
            (index,) = self.bind_all([(name, type)])
            self.expect("do")
            hints = self.hints()
            exp: For | While = For(index, bound, params, inits, self.body(), hints)
        else:
            self.expect("while")
            params = self.bind_all([(n, t) for n, t, _ in starts])
            cond = self.region(self.body)
            self.expect("do")
            hints = self.hints()
            exp = While(params, inits, cond, self.body(), hints)
        self.scopes.pop()
        return exp

    def carried(self) -> tuple[Token, TypeWords, Atom]:
        name, type = self.typed_name()
        self.expect("=")
        return name, type, self.atom()

    # -- sweeps and lambdas

    def sweep(self) -> Sweep:
        width = self.dim()
        arrays, lam = self.lambda_and_arrays()
        operators: dict[str, list[Reduction]] = {"reduce": [], "scan": []}
        while self.accept("|"):
            if not self.sees("reduce", "scan"):
                raise self.unexpected("reduce or scan")
            operators[self.advance().text].append(self.operator())
        return Sweep(width, arrays, lam, tuple(operators["reduce"]), tuple(operators["scan"]))

    def plain_sweep(self, kind: str) -> Sweep:
        """The lambda hands its rows on."""
        width, operator, arrays = self.dim(), self.operator(), self.vars()
        index, *rows = row_types(arrays)
        params = tuple(Var(a.name, t) for a, t in zip(arrays, rows, strict=True))
        lam = Lambda((Var("i", index), *params), Body((), params))
        return Sweep(width, arrays, lam, *((operator,), ()) if kind == "reduce" else ((), (operator,)))

    def operator(self) -> Reduction:
        commutative = self.accept("comm")
        if self.here.kind == "name":
            op, only = self.advance().text, self.atom()
            a, b, t = (Var(name, only.type) for name in ("a", "b", "t"))
            return Reduction(Lambda((a, b), Body((Stm((t,), Apply(op, (a, b)), NOWHERE),), (t,))), (only,), commutative)
        neutral, op_lam = self.reading_ahead(
            lambda: self.one_or_tuple(self.atom), lambda neutral: self.lam([a.type for a in neutral] * 2)
        )
        return Reduction(op_lam, neutral, commutative)

    def lambda_and_arrays(self) -> tuple[tuple[Var, ...], Lambda]:
        return self.reading_ahead(self.vars, lambda arrays: self.lam(row_types(arrays)))

    def reading_ahead(self, behind: Callable[[], T], read: Callable[[T], Lambda]) -> tuple[T, Lambda]:
        """What stands behind the lambda here gives the types of its parameters."""
        start = self.position
        if not self.sees("("):
            raise self.unexpected("a lambda")
        self.position = self.after_parentheses()
        found = behind()
        end, self.position = self.position, start
        lam = read(found)
        self.position = end
        return found, lam

    def lam(self, defaults: Sequence[Type]) -> Lambda:
        self.expect("(")
        self.expect("\\")
        words: list[tuple[Token, TypeWords | Type]] = []
        while not self.accept("->"):
            if self.accept("("):
                words.append(self.typed_name())
                self.expect(")")
                continue
            name = self.name_token()
            if len(words) >= len(defaults):
                raise self.error(f"{name.text} needs a type: ({name.text}: type)", name)
            words.append((name, defaults[len(words)]))
        self.scopes.append({})
        params = self.bind_all(words)
        body = self.body()
        self.scopes.pop()
        self.expect(")")
        return Lambda(params, body)

    # -- axes, texts, attributes

    def axes(self, array: Var) -> tuple[Axis, ...]:
        shape = iter(array.type.shape)
        return self.listed(lambda: self.axis(next(shape, None)), "[", "]")

    def axis(self, dim: Dim | None) -> Axis:
        if self.accept(":"):
            if dim is None:
                raise self.error("the array has fewer axes")
            return Range(i64(0), dim, i64(1))
        start = self.atom()
        if self.accept(":+"):
            length = self.dim()
            return Range(start, length, self.atom() if self.accept(":") else i64(1))
        flags = {"?": (True, True), "!": (False, True), "~": (True, False)}
        if self.here.kind == "symbol" and self.here.text in flags:
            return At(start, *flags[self.advance().text])
        return At(start)

    def string(self) -> str:
        return str(json.loads(self.take("string", "a string in quotes")))

    def print_part(self) -> str | Shown:
        if self.here.kind == "string":
            return self.string()
        position = self.integer()
        return Shown(position, self.string()) if self.here.kind == "string" else Shown(position)

    def braces(self) -> str:
        return self.advance().text[1:-1] if self.here.kind == "braces" else ""

    def hints(self) -> Hints:
        token = self.here
        try:
            return read_hints(self.braces())
        except ValueError as problem:
            raise self.error(str(problem), token) from None

    def attributes(self) -> tuple[tuple[str, int | str | bool], ...]:
        token, text = self.here, self.braces()
        found, position = [], 0
        decoder = json.JSONDecoder()
        while position < len(text):
            key, colon, rest = text[position:].partition(": ")
            try:
                value, used = decoder.raw_decode(rest)
            except ValueError:
                raise self.error(f"cannot read {{{text}}} as attributes", token) from None
            found.append((key.strip(), value))
            position += len(key) + len(colon) + used + len(", ")
        return tuple(found)
