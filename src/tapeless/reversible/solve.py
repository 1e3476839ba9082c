"""Solving the statements of a region for what is not known of them: Note [Solving] in `reversible.invert`.

`Solver` takes a region and what is known of its variables, emits statements that compute the rest into a builder, and
tells what it found out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tapeless.ir.builder import Builder
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    At,
    Axis,
    Body,
    Call,
    Check,
    Copy,
    For,
    If,
    Index,
    Lambda,
    Print,
    Progress,
    Range,
    Reshape,
    Stm,
    Sweep,
    Transpose,
    Update,
    UpdateAcc,
)
from tapeless.ir.quiet import quiet
from tapeless.ir.types import I64, Atom, Const, Dim, DType, Type, Var, atom_dim, dim_atom, i64
from tapeless.ir.walk import Substitution, all_stms, free_in_exp, free_in_lambda, type_vars
from tapeless.ops.emit import Emit
from tapeless.ops.op import Inverse
from tapeless.ops.table import TABLE
from tapeless.reversible.split import split_sweeps


class Solver:
    """`known` holds what stands for variables of the region in the emitted code."""

    def __init__(self, b: Builder, body: Body, params: Iterable[Var], exact: bool, outer: Solver | None = None) -> None:
        self.b, self.emit, self.exact = b, Emit(b), exact
        self.body = split_sweeps(quiet(body))
        self.local = {*params, *(v for s in all_stms(self.body) for v in s.vars)}
        self.known: dict[Var, Atom] = dict(outer.known) if outer else {}
        self.dark: set[Var] = (outer.dark | outer.local) - set(self.known) if outer else set()
        self.definitions = {v: s for s in self.body.stms for v in s.vars}

    def knows(self, a: Atom) -> bool:
        return not isinstance(a, Var) or a in self.known or not (a in self.local or a in self.dark)

    def atom(self, a: Atom) -> Atom:
        return self.known.get(a, a) if isinstance(a, Var) else a

    def typed(self, type: Type) -> Type:
        """With sizes of here."""
        return Type(type.dtype, tuple(self.size(d) for d in type.shape), type.acc)

    def size(self, d: Dim) -> Dim:
        return atom_dim(self.atom(dim_atom(d)))

    def sized(self, *vars: Atom) -> bool:
        """Whether the sizes of these are known."""
        return all(self.knows(d) for v in vars for d in type_vars(v.type))

    def learn(self, v: Atom, value: Atom) -> bool:
        if not isinstance(v, Var) or self.knows(v):
            return False
        self.known[v] = value
        return True

    def learn_all(self, pairs: Iterable[tuple[Atom, Atom]]) -> bool:
        return sum(self.learn(v, value) for v, value in pairs) > 0

    def run(self) -> None:
        """Until nothing new is learned."""
        learned = True
        while learned:
            ahead = [self.forwards(s) for s in self.body.stms]
            back = [self.backwards(s) for s in reversed(self.body.stms)]
            learned = any(ahead) or any(back)

    # -- with the program

    def forwards(self, stm: Stm) -> bool:
        if all(self.knows(v) for v in stm.vars) or isinstance(stm.exp, (Check, Print, Progress, UpdateAcc)):
            return False
        used = [*free_in_exp(stm.exp), *(d for v in stm.vars for d in type_vars(v.type) if d not in stm.vars)]
        if not all(self.knows(v) for v in used):
            return self._read(stm) if isinstance(stm.exp, Index) else False
        new = Substitution(self.known, refresh=True)
        copy = new.stm(stm)
        self.b.add(copy)
        return self.learn_all(zip(stm.vars, copy.vars, strict=True))

    def _read(self, stm: Stm) -> bool:
        """A cell of an array of which only a later version is known, at a place that was not written in between."""
        exp = stm.exp
        assert isinstance(exp, Index)
        if not self._places_known(exp.axes):
            return False
        for update in self.body.stms:
            match update.exp:
                case Update(array=array, axes=axes) if array is exp.array and self._apart(exp.axes, axes):
                    version = update.vars[0]
                    if self.knows(version):
                        return self.learn(stm.vars[0], self._cell(version, exp.axes))
        return False

    def _cell(self, array: Var, axes: Sequence[Axis]) -> Atom:
        source = self.atom(array)
        assert isinstance(source, Var)
        return self.b.index(source, self._axes(axes))

    def _axes(self, axes: Sequence[Axis]) -> list[Axis]:
        found: list[Axis] = []
        for a in axes:
            if isinstance(a, At):
                found.append(At(self.atom(a.index), a.wrap))
            else:
                found.append(Range(self.atom(a.start), self.size(a.length), self.atom(a.step)))
        return found

    def _places_known(self, axes: Sequence[Axis]) -> bool:
        atoms = [x for a in axes for x in ([a.index] if isinstance(a, At) else [a.start, dim_atom(a.length), a.step])]
        return all(self.knows(x) for x in atoms)

    def _apart(self, one: Sequence[Axis], other: Sequence[Axis]) -> bool:
        """Whether two places are certainly different: on some axis, a fixed distance."""
        pairs = [(a, b) for a, b in zip(one, other, strict=True) if isinstance(a, At) and isinstance(b, At)]
        for a, b in pairs:
            (base, offset), (base2, offset2) = self._affine(a.index), self._affine(b.index)
            if base is base2 and offset != offset2 and not a.wrap and not b.wrap:
                return True
        return False

    def _affine(self, a: Atom) -> tuple[Atom | None, int]:
        offset = 0
        while isinstance(a, Var):
            stm = self.definitions.get(a)
            match stm.exp if stm else None:
                case Apply(op="add", args=(x, Const(value=int(c)))) | Apply(op="add", args=(Const(value=int(c)), x)):
                    a, offset = x, offset + c
                case Apply(op="sub", args=(x, Const(value=int(c)))):
                    a, offset = x, offset - c
                case Apply(op="identity", args=(x,)):
                    a = x
                case _:
                    return a, offset
        return None, offset + int(a.value.real)

    # -- against it

    def backwards(self, stm: Stm) -> bool:
        if not any(self.knows(v) for v in stm.vars):
            return False
        match stm.exp:
            case Apply(op=op, args=args):
                return self._apply(op, args, stm.vars[0])
            case Update(array=array, axes=axes, value=value):
                return self._update(stm.vars[0], array, axes, value)
            case Index(array=array, axes=axes) if not self.knows(array):
                return self._view(stm.vars[0], array, axes)
            case Reshape(array=array) if not self.knows(array) and self.sized(array):
                return self.learn(array, self.b.reshape(self._array(stm.vars[0]), self.typed(array.type).shape))
            case Transpose(array=array, perm=perm) if not self.knows(array):
                back = [perm.index(k) for k in range(len(perm))]
                return self.learn(array, self.b.transpose(self._array(stm.vars[0]), back))
            case Copy(array=array) if not self.knows(array):
                return self.learn(array, self._array(stm.vars[0]))
            case ArrayLit(items=items):
                whole = self._array(stm.vars[0])
                return self.learn_all((x, self.b.row(whole, i64(k))) for k, x in enumerate(items) if not self.knows(x))
            case Sweep(reduces=(), scans=()):
                return self._sweep(stm, stm.exp)
            case Call():
                return self._call(stm, stm.exp)
            case If():
                return self._branch(stm, stm.exp)
            case For():
                return self._loop(stm, stm.exp)
            case _:
                return False

    def _call(self, stm: Stm, exp: Call) -> bool:
        """A function that says itself how it is undone, from all its results."""
        f = self.b.functions.by_name.get(exp.function)
        if f is None or f.rule is None or not f.rule.inverse or not all(self.knows(v) for v in stm.vars):
            return False
        first = len(f.sizes)
        found, others = exp.args[first : first + len(stm.vars)], exp.args[first + len(stm.vars) :]
        if all(map(self.knows, found)) or not all(map(self.knows, (*exp.args[:first], *others))):
            return False
        args = [*exp.args[:first], *stm.vars, *others]
        return self.learn_all(zip(found, self.b.call(f.rule.inverse, [*map(self.atom, args)], False), strict=True))

    def _array(self, v: Var) -> Var:
        found = self.atom(v)
        assert isinstance(found, Var)
        return found

    def _apply(self, op: str, args: Sequence[Atom], result: Var) -> bool:
        missing = [k for k, a in enumerate(args) if not self.knows(a)]
        if len(missing) != 1:
            return False
        k = missing[0]
        x = args[k]
        assert isinstance(x, Var)
        value, others = self.atom(result), [self.atom(a) for a in args if a is not x]
        row = TABLE[op]
        inverse = row.inverse[k] if row.inverse else None
        if inverse and self._trusts(inverse, x.type.dtype):
            operands = [*others, value] if inverse.swapped else [value, *others]
            return self.learn(x, value if inverse.op == "identity" else self.emit(inverse.op, *operands))
        return self._integer(op, x, value, others)

    def _trusts(self, inverse: Inverse, dtype: DType) -> bool:
        return dtype in inverse.exact or (dtype in inverse.rounded and not self.exact)

    def _integer(self, op: str, x: Var, value: Atom, others: Sequence[Atom]) -> bool:
        """Products with odd numbers, and conversions to a type that holds all of them."""
        dtype, given = x.type.dtype, value.type.dtype
        if not dtype.is_int:
            return False
        match op, others:
            case "mul", [Const(value=factor)] if int(factor.real) % 2:
                return self.learn(x, self.emit("mul", value, pow(int(factor.real), -1, 1 << (8 * dtype.bytes))))
            case "convert", [] if given.is_int and given.bytes >= dtype.bytes:
                return self.learn(x, self.emit.convert(value, dtype))
        return False

    def _update(self, result: Var, array: Var, axes: Sequence[Axis], value: Atom) -> bool:
        """What was written is there to be read; what was overwritten, if somebody had read it at the same place."""
        if not self.knows(result) or not self._places_known(axes):
            return False
        same_shape = value.type.shape or not any(isinstance(a, Range) for a in axes)
        learned = bool(same_shape) and not self.knows(value) and self.learn(value, self._cell(result, axes))
        if self.knows(array):
            return learned
        for s in self.body.stms:
            if isinstance(s.exp, Index) and s.exp.array is array and _same(s.exp.axes, axes) and self.knows(s.vars[0]):
                before = self.b.update(self._array(result), self._axes(axes), self.atom(s.vars[0]))
                return self.learn(array, before)
        return learned

    def _view(self, result: Var, array: Var, axes: Sequence[Axis]) -> bool:
        """All of an array, some axes backwards perhaps."""
        turned: list[Axis] = []
        if not self.sized(array):
            return False
        for a, n in zip(axes, array.type.shape, strict=True):
            if not isinstance(a, Range) or (a.length is not n and a.length != n) or a.step not in (i64(1), i64(-1)):
                return False
            last = self.emit("sub", dim_atom(self.size(n)), 1)
            turned.append(Range(i64(0) if a.step == i64(1) else last, self.size(n), a.step))
        return self.learn(array, self.b.index(self._array(result), turned))

    # -- regions

    def _sweep(self, stm: Stm, exp: Sweep) -> bool:
        """Element by element, where what is not known are rows of the arrays."""
        rows = dict(zip(exp.lam.params[1:], exp.arrays, strict=True))
        missing = [p for p, a in rows.items() if not self.knows(a)]
        given = [p for p in rows if p not in missing]
        free = [v for v in free_in_exp(exp) if v not in exp.arrays or v in _free(exp.lam)]
        if not missing or not all(self.knows(v) for v in free) or not self.sized(*exp.arrays, *stm.vars):
            return False
        outs = [(v, r) for v, r in zip(stm.vars, exp.lam.body.results, strict=True) if self.knows(v)]
        index = Var(exp.lam.params[0].name, I64)
        params = [Var(p.name, self.typed(p.type)) for p in given]
        ends = [Var(v.name, self.typed(r.type)) for v, r in outs]
        with self.b.region() as stms:
            inner = Solver(self.b, exp.lam.body, exp.lam.params, self.exact, self)
            for old, new in zip((exp.lam.params[0], *given), (index, *params), strict=True):
                inner.learn(old, new)
            for (_, r), end in zip(outs, ends, strict=True):
                inner.learn(r, end)
            inner.run()
        if not all(inner.knows(p) for p in missing):
            return False
        arrays = (*(self._array(rows[p]) for p in given), *(self._array(v) for v, _ in outs))
        lam = Lambda((index, *params, *ends), Body(tuple(stms), tuple(inner.atom(p) for p in missing)))
        vars = [Var(rows[p].name, self.typed(rows[p].type)) for p in missing]
        found = self.b.bind(vars, Sweep(self.size(exp.width), arrays, lam))
        return self.learn_all((rows[p], v) for p, v in zip(missing, found, strict=True))

    def _branch(self, stm: Stm, exp: If) -> bool:
        if not self.knows(exp.cond):
            return False
        arms: list[tuple[list[Stm], Solver]] = []
        for arm in (exp.then, exp.orelse):
            with self.b.region() as stms:
                inner = Solver(self.b, arm, (), self.exact, self)
                for v, r in zip(stm.vars, arm.results, strict=True):
                    if self.knows(v):
                        inner.learn(r, self.atom(v))
                inner.run()
            arms.append((stms, inner))
        free = [v for v in free_in_exp(exp) if not self.knows(v)]
        solved = [v for v in free if all(inner.knows(v) for _, inner in arms) and self.sized(v)]
        if not solved:
            return False
        bodies = [Body(tuple(stms), tuple(inner.atom(v) for v in solved)) for stms, inner in arms]
        found = self.b.bind(
            [Var(v.name, self.typed(v.type)) for v in solved], If(self.atom(exp.cond), bodies[0], bodies[1])
        )
        return self.learn_all(zip(solved, found, strict=True))

    def _loop(self, stm: Stm, exp: For) -> bool:
        """Backwards, where all it carries is known at its end and solved for in each iteration."""
        if not self.knows(exp.bound) or all(self.knows(a) for a in exp.inits):
            return False
        unknown = [v for v in free_in_exp(exp) if not self.knows(v) and v not in exp.inits]
        carried = [k for k, v in enumerate(stm.vars) if self.knows(v) and self.sized(v)]
        if unknown or not carried:
            return False
        step, index = Var("j", I64), Var(exp.index.name, I64)
        while carried:
            ends = {k: Var(exp.params[k].name, self.typed(exp.params[k].type)) for k in carried}
            with self.b.region() as stms:
                last = self.emit("sub", self.atom(exp.bound), 1)
                self.b.bind([index], Apply("sub", (last, step)))
                inner = Solver(self.b, exp.body, (*exp.params, exp.index), self.exact, self)
                inner.learn(exp.index, index)
                for k, end in ends.items():
                    inner.learn(exp.body.results[k], end)
                inner.run()
            solved = [k for k in carried if inner.knows(exp.params[k])]
            if solved == carried:
                break
            carried = solved
        if not any(not self.knows(exp.inits[k]) for k in carried):
            return False
        results = tuple(inner.atom(exp.params[k]) for k in carried)
        vars = [Var(exp.params[k].name, self.typed(exp.params[k].type)) for k in carried]
        inits = tuple(self.atom(stm.vars[k]) for k in carried)
        bound = self.atom(exp.bound)
        found = self.b.bind(vars, For(step, bound, tuple(ends.values()), inits, Body(tuple(stms), results)))
        return self.learn_all((exp.inits[k], v) for k, v in zip(carried, found, strict=True))


def _free(lam: Lambda) -> set[Var]:
    return set(free_in_lambda(lam))


def _same(one: Sequence[Axis], other: Sequence[Axis]) -> bool:
    def key(a: Axis) -> tuple[object, ...]:
        return (a.index, a.wrap) if isinstance(a, At) else (a.start, a.length, a.step)

    return all(key(a) == key(b) for a, b in zip(one, other, strict=True))
