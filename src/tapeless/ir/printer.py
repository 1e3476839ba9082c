"""Core as text that a person reads and that `ir/parser.py` reads back: `print(parse(print(f))) == print(f)`.

Takes any node, also one that `verify` would reject. Gives text in which each variable has a name of its own.
Relies on nothing but the nodes: what cannot be known without the ops table (types of results) is always printed.

    program  ::= function...               the entry last
    function ::= def f[sizes](x: type, ...) -> type writes x, ... {option: true, ...} rule {forward: "g", ...}   then a body
    body     ::= stm... in results        stm, one per line or divided by ;  ::= v: type, ... = exp  | exp
    results  ::= atom | (atom, ...)
    type     ::= dtype | [dim]type | acc<op, type>
    exp      ::= op atom ...                                a row of the ops table
               | @name atom ... {attribute: value, ...}     a library operation
               | call f atom ... {effects: true}            a function of the program
               | if atom then body else body
               | loop (p: type = atom, ...) for i < atom do {hints} body
               | loop (p: type = atom, ...) while body do {hints} body
               | a[axis, ...] | update a[axis, ...] = atom | update_acc acc[axis, ...] = atom
               | iota n | full [dim, ...] atom | full [dim, ...] _ | [atom, ...]
               | reshape a [dim, ...] | transpose a [1, 0] | broadcast a [dim, ...] axes [0]
               | concat [a, b] axis 0 | copy a
               | map n lam a ... | reduce n operator a ... | scan n operator a ...
               | sweep n lam a ... | reduce operator | scan operator
               | hist operator dests n lam a ... | scatter dests n lam a ... | with_acc [{slopes}] arrays lam
               | check atom Error "message {0}" atom ... | print ("x is ", 0) atom ...
    axis     ::= i | i? (wrap and check) | i! (check) | i~ (wrap) | start:+length | start:+length:step | :
    operator ::= comm? lam results                          the neutral elements are the results
    lam      ::= (\\p ... -> body) | op                      p ::= name | (name: type) where the type is no row
A body without statements may leave out `in` when it belongs to a lambda, a branch or the test of a loop.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import assert_never

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
    Reduction,
    Reshape,
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
from tapeless.ir.hints import NONE, Hints
from tapeless.ir.operands import regions
from tapeless.ir.span import NOWHERE
from tapeless.ir.text import FUNCTION, Names, const_text, readable
from tapeless.ir.types import I64, Atom, Dim, Type, Var, i64
from tapeless.ir.walk import type_vars

WIDTH = 100
SMALL = 4  # statements of a region that may share a line


def print_function(f: Function, spans: bool = False) -> str:
    """The whole program that it is the entry of."""
    return "\n".join(Printer(spans).function(part) for part in (*f.calls, f))


def print_body(body: Body, spans: bool = False) -> str:
    return Printer(spans).body(body, 0)


def print_stm(stm: Stm, spans: bool = False) -> str:
    return Printer(spans).stm(stm, 0)


def print_exp(exp: Exp) -> str:
    return Printer().exp(exp, 0, 0)


class Printer:
    """Prints any number of pieces of one program with the same names."""

    def __init__(self, spans: bool = False) -> None:
        self.spans = spans
        self.name = Names()
        self.only_heads = False  # leave bodies out

    # -- functions, bodies, statements

    def function(self, f: Function) -> str:
        sizes = "" if f.sizes == implied_sizes(f.params) else f"[{', '.join(map(self.name, f.sizes))}]"
        params = ", ".join(map(self.binding, f.params))
        body = self.body(f.body, 2)  # before the result types: a dimension of a result may be bound inside
        results = self.tuple([self.type(t) for t in f.result_types])
        names = dict(enumerate(map(self.name, f.params)))
        writes = " writes " + ", ".join(names.get(p, str(p)) for p in f.written) if f.written else ""
        options = " " + _attributes(f.options) if f.options else ""
        rule = " rule " + _attributes([(k, v) for k, v in asdict(f.rule).items() if v]) if f.rule else ""
        return f"def {readable(f.name, FUNCTION)}{sizes}({params}) -> {results}{writes}{options}{rule}\n{body}\n"

    def body(self, body: Body, indent: int) -> str:
        if self.only_heads:
            return ""
        pad = " " * indent
        lines = [pad + self.stm(s, indent) for s in body.stms]
        return "\n".join([*lines, f"{pad}in {self.atoms(body.results)}"])

    def stm(self, stm: Stm, indent: int) -> str:
        """Without the padding of the first line."""
        head = ", ".join(map(self.binding, stm.vars))
        used = len(head) + 3
        if not stm.vars:
            text = self.exp(stm.exp, indent, used)
        elif len(head) > 30 and _has_regions(stm.exp) and self._is_too_wide(stm.exp, indent, used):
            text = f"{head} =\n{' ' * (indent + 2)}{self.exp(stm.exp, indent + 2, 0)}"
        else:
            text = f"{head} = {self.exp(stm.exp, indent, used)}"
        if self.spans and stm.span != NOWHERE:
            first, newline, rest = text.partition("\n")
            text = f"{first}  -- {stm.span}{newline}{rest}"
        return text

    def _is_too_wide(self, exp: Exp, indent: int, used: int) -> bool:
        """Whether its first line does not fit beside the `used` columns. Bodies are not printed to find that out:
        each level of a nest would double the work."""
        if indent < 0:
            return False
        self.only_heads = True
        first = self.exp(exp, indent, used).partition("\n")[0]
        self.only_heads = False
        return indent + used + len(first) > WIDTH

    def exp(self, exp: Exp, indent: int, used: int) -> str:
        """On one line if it is small and fits beside the `used` columns, else with its regions below."""
        if self._is_small(exp):
            line = self._exp(exp, indent, True)
            if indent + used + len(line) <= WIDTH:
                return line
        return self._exp(exp, indent, False)

    def _is_small(self, exp: Exp) -> bool:
        """May be printed on one line: no loops, no branches with statements, few statements in lambdas."""
        if isinstance(exp, (For, While)):
            return False
        stms = [s for r in regions(exp) for s in r.body.stms]
        if stms and (self.spans or isinstance(exp, If) or len(stms) > SMALL):
            return False
        return all(self._is_small(s.exp) for s in stms)

    def _exp(self, exp: Exp, indent: int, flat: bool) -> str:
        name, pad = self.name, " " * indent

        def lam(f: Lambda, defaults: Sequence[Type]) -> str:
            return self.lam(f, defaults, indent, flat)

        def operator(r: Reduction) -> str:
            return self.operator(r, indent)

        def region(body: Body) -> str:
            """Between two keywords."""
            return f"\n{self.body(body, indent + 2)}\n{pad}" if body.stms else f" {self.atoms(body.results)} "

        match exp:
            case Apply(op, args):
                return " ".join([op, *map(self.atom, args)])
            case Library(op, args, attrs):
                return " ".join(["@" + op, *map(self.atom, args), *([_attributes(attrs)] if attrs else [])])
            case Call(function, args, effects):
                text = " ".join(["call", readable(function, FUNCTION), *map(self.atom, args)])
                return f"{text} {_attributes([('effects', True)])}" if effects else text
            case If(cond, then, orelse):
                return f"if {self.atom(cond)} then{region(then)}else{region(orelse)}".rstrip()
            case For(index, bound, params, inits, body, hints):
                starts = self.inits(params, inits)
                counter = name(index) if index.type == I64 else self.binding(index)
                head = f"loop {starts} for {counter} < {self.atom(bound)} do{_hints(hints)}"
                return f"{head}\n{self.body(body, indent + 2)}"
            case While(params, inits, cond, body, hints):
                head = f"loop {self.inits(params, inits)} while{region(cond)}do{_hints(hints)}"
                return f"{head}\n{self.body(body, indent + 2)}"
            case Index(array, axes):
                return self.place(array, axes)
            case Update(array, axes, value):
                return f"update {self.place(array, axes)} = {self.atom(value)}"
            case UpdateAcc(acc, axes, value):
                return f"update_acc {self.place(acc, axes)} = {self.atom(value)}"
            case Iota(length):
                return f"iota {self.dim(length)}"
            case Full(shape, kept=True):
                return f"keep {self.dims(shape)}"
            case Full(shape, value):
                return f"full {self.dims(shape)} {'_' if value is None else self.atom(value)}"
            case ArrayLit(items):
                return f"[{', '.join(map(self.atom, items))}]"
            case Reshape(array, shape):
                return f"reshape {name(array)} {self.dims(shape)}"
            case Transpose(array, perm):
                return f"transpose {name(array)} {self.dims(perm)}"
            case Broadcast(array, shape, places):
                return f"broadcast {name(array)} {self.dims(shape)} axes {self.dims(places)}"
            case Concat(arrays, axis):
                return f"concat [{', '.join(map(name, arrays))}] axis {axis}"
            case Copy(array):
                return f"copy {name(array)}"
            case Sweep(width, arrays, f, reduces, scans):
                operators = [("reduce", r) for r in reduces] + [("scan", r) for r in scans]
                if len(operators) == 1 and hands_rows_on(exp):
                    kind, r = operators[0]
                    return " ".join([kind, self.dim(width), operator(r), *map(name, arrays)])
                words = [
                    "sweep" if operators else "map",
                    self.dim(width),
                    lam(f, row_types(arrays)),
                    *map(name, arrays),
                ]
                return " ".join([*words, *(f"| {kind} {operator(r)}" for kind, r in operators)])
            case Hist(op, dests, width, arrays, f):
                words = ["hist", operator(op), self.atoms(dests), self.dim(width), lam(f, row_types(arrays))]
                return " ".join([*words, *map(name, arrays)])
            case Scatter(dests, width, arrays, f):
                words = ["scatter", self.atoms(dests), self.dim(width), lam(f, row_types(arrays))]
                return " ".join([*words, *map(name, arrays)])
            case WithAcc(arrays, f, slopes):
                return f"with_acc {'{slopes} ' if slopes else ''}{self.atoms(arrays)} {lam(f, ())}"
            case Check(cond, error, message, args):
                return " ".join(["check", self.atom(cond), error, _quoted(message), *map(self.atom, args)])
            case Print(parts, args):
                texts = ", ".join(_quoted(p) if isinstance(p, str) else _shown(p) for p in parts)
                return " ".join([f"print ({texts})", *map(self.atom, args)])
            case Progress(done, total, backward):
                way = [_attributes([("backward", True)])] if backward else []
                return " ".join(["progress", self.atom(done), self.atom(total), *way])
            case _:
                assert_never(exp)

    # -- lambdas and operators

    def lam(self, f: Lambda, defaults: Sequence[Type], indent: int, flat: bool) -> str:
        """The types of the first parameters are left out where they are the `defaults`."""
        expected = [*defaults, *[None] * len(f.params)]
        params = [
            self.name(p) if p.type == t else f"({self.binding(p)})" for p, t in zip(f.params, expected, strict=False)
        ]
        head = "\\" + "".join(f"{p} " for p in params) + "->"
        if not f.body.stms:
            return f"({head} {self.atoms(f.body.results)})"
        if flat:
            stms = "; ".join(self.stm(s, -WIDTH) for s in f.body.stms)  # room enough: the caller looks at the length
            return f"({head} {stms}; in {self.atoms(f.body.results)})"
        return f"({head}\n{self.body(f.body, indent + 2)})"

    def operator(self, r: Reduction, indent: int) -> str:
        neutral = [a.type for a in r.neutral]
        text = plain_operator(r)
        if not text:
            if len(r.op.body.stms) <= SMALL and not self.spans and all(self._is_small(s.exp) for s in r.op.body.stms):
                text = self.lam(r.op, neutral * 2, indent, True)
            if not text or len(text) > WIDTH * 2 // 3:
                text = self.lam(r.op, neutral * 2, indent, False)
        return f"{'comm ' if r.commutative else ''}{text} {self.atoms(r.neutral)}"

    # -- words

    def binding(self, v: Var) -> str:
        return f"{self.name(v)}: {self.type(v.type)}"

    def inits(self, params: Sequence[Var], inits: Sequence[Atom]) -> str:
        starts = [*map(self.atom, inits), *["_"] * (len(params) - len(inits))]
        return f"({', '.join(f'{self.binding(p)} = {a}' for p, a in zip(params, starts, strict=False))})"

    def atom(self, a: Atom) -> str:
        return self.name(a) if isinstance(a, Var) else const_text(a)

    def atoms(self, many: Sequence[Atom]) -> str:
        return self.tuple([self.atom(a) for a in many])

    @staticmethod
    def tuple(texts: Sequence[str]) -> str:
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def dim(self, d: Dim) -> str:
        return self.name(d) if isinstance(d, Var) else str(d)

    def dims(self, many: Iterable[Dim]) -> str:
        return f"[{', '.join(map(self.dim, many))}]"

    def type(self, t: Type) -> str:
        text = "".join(f"[{self.dim(d)}]" for d in t.shape) + t.dtype.value
        return f"acc<{t.acc}, {text}>" if t.acc else text

    def place(self, array: Var, axes: Sequence[Axis]) -> str:
        shape = [*array.type.shape, *[None] * len(axes)]
        return f"{self.name(array)}[{', '.join(self.axis(a, d) for a, d in zip(axes, shape, strict=False))}]"

    def axis(self, axis: Axis, dim: Dim | None) -> str:
        if isinstance(axis, At):
            flag = {(True, True): "?", (False, True): "!", (True, False): "~"}.get((axis.wrap, axis.check), "")
            return self.atom(axis.index) + flag
        if axis.start == i64(0) and axis.step == i64(1) and axis.length == dim:
            return ":"
        step = "" if axis.step == i64(1) else f":{self.atom(axis.step)}"
        return f"{self.atom(axis.start)}:+{self.dim(axis.length)}{step}"


def implied_sizes(params: Sequence[Var]) -> tuple[Var, ...]:
    """The dimensions of the parameters that are no parameters themselves, in order of appearance."""
    found = {d: None for p in params for d in type_vars(p.type)}
    return tuple(d for d in found if d not in params)


def row_types(arrays: Sequence[Var]) -> list[Type]:
    """What a lambda of a sweep takes: the index and a row of each array."""
    return [I64, *(a.type.row() for a in arrays)]


def hands_rows_on(sweep: Sweep) -> bool:
    """The lambda gives just its rows, one for each operand of the only operator."""
    lam, operators = sweep.lam, sweep.reduces + sweep.scans
    rows = [p.type for p in lam.params] == row_types(sweep.arrays)
    return (
        rows
        and not lam.body.stms
        and lam.body.results == lam.params[1:]
        and len(operators[0].neutral) == len(sweep.arrays)
    )


def plain_operator(r: Reduction) -> str:
    """The name of the operation if the operator is just that, else nothing."""
    match r:
        case Reduction(Lambda((a, b), Body((Stm((t,), Apply(op, (x, y))),), (result,))), (neutral,)):
            same = (x, y, result) == (a, b, t) and {a.type, b.type, t.type} == {neutral.type}
            return op if same else ""
    return ""


def _has_regions(exp: Exp) -> bool:
    return bool(regions(exp))


def _hints(hints: Hints) -> str:
    return f" {{{hints}}}" if hints != NONE else ""


def _attributes(attrs: Sequence[tuple[str, int | str | bool]]) -> str:
    return "{" + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in attrs) + "}"


def _shown(part: Shown) -> str:
    return f"{part.position} {_quoted(part.field)}" if part.field else str(part.position)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
