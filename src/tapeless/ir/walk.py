"""Walking and rebuilding Core: operands, regions, free variables, substitution, fresh copies.

Takes any node; gives sets, or a new node. Every pass is written with these, so a new node is taught here once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
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
    Range,
    Reduction,
    Reshape,
    Scatter,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
    While,
    WithAcc,
)
from tapeless.ir.operands import REGIONS, operands, regions
from tapeless.ir.types import Atom, Dim, Type, Var, atom_dim

Rename = Callable[[Atom], Atom]
OnBody = Callable[[Body], Body]
OnLambda = Callable[[Lambda], Lambda]


def map_exp(exp: Exp, atom: Rename, body: OnBody, lam: OnLambda) -> Exp:
    """The same expression with every operand, direct body and direct lambda replaced."""
    if isinstance(exp, Apply):
        return Apply(exp.op, tuple([atom(a) for a in exp.args]))

    def var(v: Var) -> Var:
        new = atom(v)
        assert isinstance(new, Var), f"{v} must stay a variable, got {new}"
        return new

    def dim(d: Dim) -> Dim:
        return atom_dim(atom(d)) if isinstance(d, Var) else d

    def axis(a: Axis) -> Axis:
        if isinstance(a, At):
            return At(atom(a.index), a.wrap, a.check)
        return Range(atom(a.start), dim(a.length), atom(a.step))

    def atoms(many: Iterable[Atom]) -> tuple[Atom, ...]:
        return tuple(atom(a) for a in many)

    def vars(many: Iterable[Var]) -> tuple[Var, ...]:
        return tuple(var(v) for v in many)

    def reduction(r: Reduction) -> Reduction:
        return Reduction(lam(r.op), atoms(r.neutral), r.commutative)

    match exp:
        case Sweep(width, arrays, f, reduces, scans):
            return Sweep(
                dim(width),
                vars(arrays),
                lam(f),
                tuple([reduction(r) for r in reduces]),
                tuple([reduction(r) for r in scans]),
            )
        case Index(array, axes):
            return Index(var(array), tuple(axis(a) for a in axes))
        case Update(array, axes, value):
            return Update(var(array), tuple(axis(a) for a in axes), atom(value))
        case If(cond, then, orelse):
            return If(atom(cond), body(then), body(orelse))
        case For(index, bound, params, inits, inner, hints):
            new = lam(Lambda((index, *params), inner))
            return For(new.params[0], atom(bound), new.params[1:], atoms(inits), new.body, hints)
        case While(params, inits, cond_body, inner, hints):
            test = lam(Lambda(params, cond_body))
            step = lam(Lambda(params, inner))
            if test.params is not step.params and any(
                a is not b for a, b in zip(test.params, step.params, strict=True)
            ):
                test = substitute_lambda(test, step.params)
            return While(step.params, atoms(inits), test.body, step.body, hints)
        case Iota(length):
            return Iota(dim(length))
        case Full(shape, fill, kept):
            return Full(tuple(dim(d) for d in shape), None if fill is None else atom(fill), kept)
        case ArrayLit(items):
            return ArrayLit(atoms(items))
        case Reshape(array, shape):
            return Reshape(var(array), tuple(dim(d) for d in shape))
        case Transpose(array, perm):
            return Transpose(var(array), perm)
        case Broadcast(array, shape, places):
            return Broadcast(var(array), tuple(dim(d) for d in shape), places)
        case Concat(arrays, axis_number):
            return Concat(vars(arrays), axis_number)
        case Copy(array):
            return Copy(var(array))
        case Hist(op, dests, width, arrays, f):
            return Hist(reduction(op), vars(dests), dim(width), vars(arrays), lam(f))
        case Scatter(dests, width, arrays, f):
            return Scatter(vars(dests), dim(width), vars(arrays), lam(f))
        case WithAcc(arrays, f, slopes):
            return WithAcc(vars(arrays), lam(f), slopes)
        case UpdateAcc(acc, axes, value):
            return UpdateAcc(var(acc), tuple(axis(a) for a in axes), atom(value))
        case Library(name, args, attrs):
            return Library(name, atoms(args), attrs)
        case Call(name, args, effects):
            return Call(name, atoms(args), effects)
        case Check(cond, error, message, args):
            return Check(atom(cond), error, message, atoms(args))
        case Print(parts, args):
            return Print(parts, atoms(args))
        case Progress(done, total, backward):
            return Progress(atom(done), atom(total), backward)
        case _:
            assert_never(exp)


def map_regions(exp: Exp, body: OnBody) -> Exp:
    """The same expression with the body of each region replaced; parameters stay. The same object where no body
    changes.
    """
    if type(exp) not in REGIONS:
        return exp
    old = [r.body for r in regions(exp)]
    new = [body(b) for b in old]
    if all(map(is_, old, new)):  # mostly: an expression is not made again for nothing
        return exp
    made = dict(zip(map(id, old), new, strict=True))
    return map_exp(exp, lambda a: a, lambda b: made[id(b)], lambda lam: Lambda(lam.params, made[id(lam.body)]))


def type_vars(type: Type) -> Iterator[Var]:
    for d in type.shape:
        if isinstance(d, Var):
            yield d


def free_in_body(body: Body) -> Mapping[Var, None]:
    """Variables used and not bound inside, in order of first use (a dict keeps the order).

    Found once and kept on the body: walkers ask at every level of a nest, which would make them quadratic in its depth.
    """
    if body.free is not None:
        return body.free
    bound: set[Var] = set()
    free: dict[Var, None] = {}

    def use(v: Atom) -> None:
        if isinstance(v, Var) and v not in bound:
            free.setdefault(v)

    for stm in body.stms:
        for a in operands(stm.exp):
            use(a)
        for region in regions(stm.exp):
            for v in free_in_lambda(region):
                use(v)
        for v in stm.vars:
            bound.add(v)
        for v in stm.vars:
            for d in type_vars(v.type):
                use(d)
    for a in body.results:
        use(a)
    object.__setattr__(body, "free", free)
    return free


def free_in_lambda(lam: Lambda) -> Mapping[Var, None]:
    free = free_in_body(lam.body)
    if not lam.params:
        return free
    params = set(lam.params)
    sizes = [d for p in lam.params for d in type_vars(p.type)]
    return {v: None for v in (*free, *sizes) if v not in params}


def free_in_exp(exp: Exp) -> Mapping[Var, None]:
    free: dict[Var, None] = {a: None for a in operands(exp) if isinstance(a, Var)}
    if type(exp) in REGIONS:
        for region in regions(exp):
            free.update(free_in_lambda(region))
    return free


def all_stms(body: Body) -> Iterator[Stm]:
    """Every statement, those of inner regions after the statement that holds them."""
    left = list(reversed(body.stms))
    while left:
        stm = left.pop()
        yield stm
        if type(stm.exp) in REGIONS:
            for region in reversed(regions(stm.exp)):
                left.extend(reversed(region.body.stms))


def use_counts(body: Body) -> Counter[Atom]:
    """How often each atom is an operand or a result, in regions too."""
    uses = Counter(body.results)
    for stm in all_stms(body):
        uses.update(operands(stm.exp))
        for region in regions(stm.exp):
            uses.update(region.body.results)
    return uses


class Substitution:
    """Replaces variables, in types too; bound names are renamed where `refresh` asks for it."""

    def __init__(self, mapping: Mapping[Var, Atom], refresh: bool = False) -> None:
        self.map: dict[Var, Atom] = dict(mapping)
        self.refresh = refresh

    def atom(self, a: Atom) -> Atom:
        return self.map.get(a, a) if isinstance(a, Var) else a

    def atoms(self, many: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """The same tuple if nothing in it changes."""
        map = self.map
        for a in many:
            if isinstance(a, Var) and a in map:
                return tuple([self.atom(a) for a in many])
        return many

    def type(self, t: Type) -> Type:
        for d in t.shape:
            if isinstance(d, Var) and d in self.map:
                shape = tuple([atom_dim(self.map.get(d, d)) if isinstance(d, Var) else d for d in t.shape])
                return Type(t.dtype, shape, t.acc)
        return t

    def bind(self, v: Var) -> Var:
        """A binding occurrence: renamed when fresh names are wanted or its type has changed."""
        if not self.refresh and not v.type.shape:
            return v
        new_type = self.type(v.type)
        if not self.refresh and new_type is v.type:
            return v
        new = Var(v.name, new_type)
        self.map[v] = new
        return new

    def lam(self, lam: Lambda) -> Lambda:
        params = tuple([self.bind(p) for p in lam.params])
        return Lambda(params, self.body(lam.body))

    def body(self, body: Body) -> Body:
        return Body(tuple([self.stm(s) for s in body.stms]), self.atoms(body.results))

    def stm(self, stm: Stm) -> Stm:
        exp = self.exp(stm.exp)
        return Stm(tuple([self.bind(v) for v in stm.vars]), exp, stm.span)

    def exp(self, exp: Exp) -> Exp:
        if isinstance(exp, Apply):
            args = self.atoms(exp.args)
            return exp if args is exp.args else Apply(exp.op, args)
        if isinstance(exp, While):  # both regions bind the same parameters
            params = tuple([self.bind(p) for p in exp.params])
            return While(params, self.atoms(exp.inits), self.body(exp.cond), self.body(exp.body), exp.hints)
        return map_exp(exp, self.atom, self.body, self.lam)


def substitute_body(body: Body, mapping: Mapping[Var, Atom]) -> Body:
    return Substitution(mapping).body(body) if mapping else body


def substitute_lambda(lam: Lambda, args: Iterable[Atom]) -> Lambda:
    """The lambda with its parameters replaced by variables (kept as its parameters)."""
    new = tuple(args)
    assert all(isinstance(a, Var) for a in new)
    body = Substitution(dict(zip(lam.params, new, strict=True))).body(lam.body)
    return Lambda(tuple(a for a in new if isinstance(a, Var)), body)


def apply_lambda(lam: Lambda, args: Iterable[Atom]) -> Body:
    """The body for these arguments, with fresh names, so that it may be put anywhere, any number of times."""
    return Substitution(dict(zip(lam.params, args, strict=True)), refresh=True).body(lam.body)


def refresh_lambda(lam: Lambda) -> Lambda:
    """A copy with fresh names."""
    return Substitution({}, refresh=True).lam(lam)


def refresh_body(body: Body) -> Body:
    return Substitution({}, refresh=True).body(body)


def map_function(function: Function, body: OnBody) -> Function:
    """The same object where `body` gives the same."""
    new = body(function.body)
    return function if new is function.body else replace(function, body=new)


def in_regions(stm: Stm, body: OnBody) -> Stm:
    """The statement with `body` done to its regions; the same object where that gives the same."""
    exp = stm.exp if isinstance(stm.exp, Apply) else map_regions(stm.exp, body)
    return stm if exp is stm.exp else Stm(stm.vars, exp, stm.span)


def with_stms(body: Body, stms: Sequence[Stm]) -> Body:
    """The body with other statements; the same object where they are the same ones."""
    changed = len(stms) != len(body.stms) or any(a is not b for a, b in zip(stms, body.stms, strict=True))
    return Body(tuple(stms), body.results) if changed else body


def size_of(exp: Exp) -> int:
    """How many statements an expression holds, itself included."""
    return 1 + sum(size_of(s.exp) for r in regions(exp) for s in r.body.stms)
