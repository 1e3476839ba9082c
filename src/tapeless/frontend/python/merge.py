"""Joining control flow: what a name and an array are after two paths meet.

Takes the states at the ends of two arms (or at the entry and the end of a loop body); gives the variables that a
Core `if` or loop must return, and the joined state. See Note [References] in values.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from operator import is_, is_not, or_

from tapeless.frontend.data import scalars
from tapeless.frontend.data.arrays import cast, in_order, read
from tapeless.frontend.python.list_kinds import as_array, is_list, joined
from tapeless.frontend.python.references import contents, either, is_alone, settle
from tapeless.frontend.state.context import Context, new_box, type_text
from tapeless.frontend.state.parts import cells_of, parts_of, same_form, with_parts
from tapeless.frontend.state.values import (
    LISTS,
    Array,
    Box,
    Cell,
    Conflict,
    Grown,
    MaybeUndefined,
    Reshaped,
    Scalar,
    Sequence_,
    State,
    Static,
    Step,
    Strided,
    Value,
)
from tapeless.ir.core import At, Body, Full, Range, Stm
from tapeless.ir.types import I64, Atom, Const, Dim, DType, Type, Var, atom_dim, dim_atom, i64, zero_of

TRUE, FALSE = Const(True, DType.bool), Const(False, DType.bool)
NEW = i64(-1)  # an array that is no argument: `Cell.which`

COUNTER = "<for {} {}>"  # of a loop over this name, with a number of its own


@dataclass
class Arm:
    """One path: its statements, its state at the end, and whether it never gets there (an exception)."""

    stms: list[Stm]
    state: State
    diverges: bool = False
    results: list[Atom] = field(default_factory=list)


def join(ctx: Context, cond: Atom, before: State, arms: tuple[Arm, Arm]) -> bool:
    """Emits the `if` of two arms and goes on after it. False if neither gets there."""
    ctx.state = before
    met = Join(ctx, before, arms)
    goes_on = not all(arm.diverges for arm in arms)
    if goes_on:
        met.run()
    then, orelse = (Body(tuple(arm.stms), tuple(arm.results)) for arm in arms)
    ctx.b.if_(cond, then, orelse, met.vars)
    return goes_on


class Join:
    """Collects what the arms of an `if` return; `vars` are the variables to bind."""

    def __init__(self, ctx: Context, before: State, arms: tuple[Arm, Arm]) -> None:
        self.ctx, self.before, self.arms = ctx, before, arms
        self.vars: list[Var] = []
        self.lists: dict[tuple[Box | None, Box | None], Value] = {}  # those of the arms -> what they are afterwards
        self.joined: dict[object, Array] = {}  # references of the arms -> what they are afterwards

    def run(self) -> State:
        ctx = self.ctx
        after = self.before.copy()
        first, second = self.arms
        alive = [a for a in self.arms if not a.diverges]
        if len(alive) == 1:
            after.equal = {**after.equal}
        for cell, a, b in self._old_cells():
            after.cells[cell] = a if a is b else self._array(a, b, cell.name)
        for arm in self.arms:
            after.stale.update(arm.state.stale)
        keys = dict.fromkeys([*first.state.names, *second.state.names])
        for key in keys:
            x, y = first.state.names.get(key), second.state.names.get(key)
            if key[0] == LISTS:
                x, y = contents(first.state, key), contents(second.state, key)
            if x is y and x is not None:
                after.names[key] = x
                for cell in cells_of(x):
                    if cell not in after.cells:  # made in one arm, bound to equal values: cannot happen for both
                        after.cells[cell] = first.state.cells[cell]
                continue
            if x is None and y is None:
                continue
            after.names[key] = self._value(x, y, key[1], after)
        if any(key[0] == LISTS and first.state.names.get(key) is not second.state.names.get(key) for key in keys):
            settle(after, now=len(ctx.changed))
        ctx.state = after
        return after

    def _old_cells(self) -> list[tuple[Cell, Var, Var]]:
        """Those that an arm has written, with what they hold at its end."""
        old, (first, second) = self.before.cells, [arm.state.cells for arm in self.arms]
        written: Iterable[Cell] = old
        if all(map(is_, old, first)) and all(map(is_, old, second)):  # as copies are: then no loop is needed
            changes = map(is_not, old.values(), first.values()), map(is_not, old.values(), second.values())
            written = compress(old, map(or_, *changes))
        return [(cell, first[cell], second[cell]) for cell in written]

    # -- one result

    def _result(self, a: Atom, b: Atom, type: Type, name: str) -> Atom:
        if a is b or (isinstance(a, Const) and isinstance(b, Const) and a == b):
            return a
        var = Var(name, type)
        self.vars.append(var)
        self.arms[0].results.append(a)
        self.arms[1].results.append(b)
        return var

    def _in_arm(self, k: int, make: object) -> Atom:
        """Emits statements at the end of an arm."""
        ctx, arm = self.ctx, self.arms[k]
        saved = ctx.state
        ctx.state = arm.state
        with ctx.b.region() as stms:
            result = make()  # type: ignore[operator]
        arm.stms.extend(stms)
        ctx.state = saved
        assert isinstance(result, (Var, Const))
        return result

    def _in_order(self, k: int, value: Array) -> bool:
        saved, self.ctx.state = self.ctx.state, self.arms[k].state
        found = in_order(self.ctx, value)
        self.ctx.state = saved
        return found

    def _value(self, x: Value | None, y: Value | None, name: str, after: State) -> Value:
        ctx = self.ctx
        if self.arms[0].diverges or self.arms[1].diverges:
            return self._one_sided(x, y, name, after)
        if x is None or y is None or isinstance(x, MaybeUndefined) or isinstance(y, MaybeUndefined):
            return self._maybe(x, y, name, after)
        if (is_none(x) or is_none(y)) and not name.startswith("<") and (is_plain(x) or is_plain(y)):
            return self._maybe(x, y, name, after)
        match x, y:
            case Conflict(), _:
                return x
            case _, Conflict():
                return y
            case Scalar(), Scalar():
                if x == y:
                    return x
                dtype, is_weak = scalars.join(ctx, x, y)
                a = self._in_arm(0, lambda: scalars.exactly(ctx, x.atom, dtype))
                b = self._in_arm(1, lambda: scalars.exactly(ctx, y.atom, dtype))
                return Scalar(self._result(a, b, Type(dtype), shown(name)), is_weak)
            case Array(), Array():
                return self._arrays(x, y, name, after)
            case Static(), Static() if x.value is y.value or (type(x.value) is type(y.value) and x.value == y.value):
                return x
            case Grown(), Grown() if x.weak != y.weak and same_form(replace(x, weak=y.weak), y):
                return self._value(replace(x, weak=False), replace(y, weak=False), name, after)
            case Sequence_() | Grown(), Sequence_() | Grown() if self._may_meet(x, y):
                pair = self._as_arrays(x, y)
                if pair is not None:
                    both = x.ref, y.ref
                    if None in both:  # lists of others, which have no identity
                        return self._value(*pair, name, after)
                    if both not in self.lists:
                        self.lists[both] = self._value(*pair, name, after)
                    return self.lists[both]
            case _ if same_form(x, y) and (parts_of(x) or isinstance(x, Sequence_)):
                pairs = zip(parts_of(x), parts_of(y), strict=True)
                joined = with_parts(x, [self._value(p, q, name, after) for p, q in pairs])
                refs = [v.ref for v in (x, y) if isinstance(v, (Sequence_, Grown))]
                if isinstance(joined, (Sequence_, Grown)) and refs[0] is not refs[1]:
                    alone = all(is_alone(ctx, arm.state, ref) for arm, ref in zip(self.arms, refs, strict=True))
                    return replace(joined, ref=new_box(ctx) if alone else either(ctx, refs))
                return joined
        if x == y:
            return x
        label = "the list" if name.startswith("<list") else "the result" if name.startswith("<") else f"'{name}'"
        return Conflict(
            f"{label} is {type_text(x)} on one path and {type_text(y)} on another",
            "give it the same type on every path.",
        )

    def _may_meet(self, x: Sequence_ | Grown, y: Sequence_ | Grown) -> bool:
        if x.ref in self.ctx.growing or y.ref in self.ctx.growing:  # there is room in their arrays
            return False
        changed = x.ref is y.ref and x.ref is not None  # by an arm
        return is_list(x) and is_list(y) and not same_form(x, y) and (self.ctx.lists_may_meet or not changed)

    def _as_arrays(self, x: Sequence_ | Grown, y: Sequence_ | Grown) -> tuple[Grown, Grown] | None:
        kind = joined(self.ctx, x, y)
        if kind is None:
            return None
        made: list[Grown] = []

        def convert(value: Sequence_ | Grown) -> Atom:
            made.append(as_array(self.ctx, value, kind))
            return made[-1].length.atom

        self._in_arm(0, lambda: convert(x))
        self._in_arm(1, lambda: convert(y))
        return made[0], made[1]

    def _one_sided(self, x: Value | None, y: Value | None, name: str, after: State) -> Value:
        """One arm raises: the other one decides; its scalars and arrays still have to be results of the `if`."""
        k = 1 if self.arms[0].diverges else 0
        value = y if k else x
        if value is None:
            return Conflict(f"'{name}' is not defined here")
        return self._carry_out(k, value, name, after)

    def _carry_out(self, k: int, value: Value, name: str, after: State) -> Value:
        ctx = self.ctx
        match value:
            case Scalar(atom=atom, weak=is_weak):
                if isinstance(atom, Const):
                    return value
                dummy = zero_of(atom.type.dtype)
                pair: tuple[Atom, Atom] = (atom, dummy) if k == 0 else (dummy, atom)
                return Scalar(self._result(pair[0], pair[1], atom.type, shown(name)), is_weak)
            case Array(cell=cell):
                if cell in self.before.cells:
                    return self._outer_view(k, value)
                place = (k, cell, value.view)
                if place in self.joined:
                    return self.joined[place]
                var = self._in_arm(k, lambda: read(ctx, value))
                assert isinstance(var, Var)
                shape = self._existential(k, var.type.shape, name)
                empty = tuple(
                    d if d is e else 0 for d, e in zip(shape, var.type.shape, strict=True)
                )  # as in _existential
                other = self._in_arm(1 - k, lambda: _dummy(ctx, Type(var.type.dtype, empty)))
                pair = (var, other) if k == 0 else (other, var)
                out = self._result(pair[0], pair[1], Type(var.type.dtype, shape), shown(name))
                assert isinstance(out, Var)
                scattered = not self._in_order(k, value)
                self.joined[place] = _in_state(after, out, name, cell.possible, scattered)
                return self.joined[place]
            case MaybeUndefined(value=inner, defined=defined):
                first, second = (defined, FALSE) if k == 0 else (FALSE, defined)
                flag = self._result(first, second, Type(DType.bool), "defined")
                return replace(value, value=self._carry_out(k, inner, name, after), defined=flag)
            case _:
                return with_parts(value, [self._carry_out(k, v, name, after) for v in parts_of(value)])

    def _outer_view(self, k: int, value: Array) -> Array:
        """A view of an array of before, made in one arm: where it begins and ends has to be known outside."""
        seen: dict[Var, Var] = {}
        outer = self._visible()

        def out(atom: Atom) -> Atom:
            if isinstance(atom, Const) or atom in outer:
                return atom
            if atom not in seen:
                zero = zero_of(atom.type.dtype)
                made = self._result(atom if k == 0 else zero, zero if k == 0 else atom, atom.type, atom.name)
                assert isinstance(made, Var)
                seen[atom] = made
            return seen[atom]

        def dim(d: Dim) -> Dim:
            return atom_dim(out(dim_atom(d)))

        def step(s: Step) -> Step:
            if isinstance(s, Reshaped):
                return Reshaped(tuple(dim(d) for d in s.shape))
            axes = [
                replace(a, index=out(a.index)) if isinstance(a, At) else Range(out(a.start), dim(a.length), out(a.step))
                for a in s.axes
            ]
            return Strided(tuple(axes), s.order)

        view = tuple(step(s) for s in value.view)
        return Array(value.cell, value.type.with_shape([dim(d) for d in value.type.shape]), view)

    def _existential(self, k: int, shape: tuple[Dim, ...], name: str) -> tuple[Dim, ...]:
        """Sizes that are only known inside the arm become results of the `if`."""
        outer = self._visible()
        dims: list[Dim] = []
        for d in shape:
            if isinstance(d, int) or d in outer:
                dims.append(d)
                continue
            zero = zero_of(DType.i64)
            out = self._result(d if k == 0 else zero, zero if k == 0 else d, d.type, "n")
            assert isinstance(out, Var)
            dims.append(out)
        return tuple(dims)

    def _visible(self) -> set[Var]:
        bound: set[Var] = set()
        for arm in self.arms:
            for stm in arm.stms:
                bound.update(stm.vars)
        return _Complement(bound)

    def _arrays(self, x: Array, y: Array, name: str, after: State) -> Value:
        ctx = self.ctx
        if x.cell is y.cell and x.view == y.view and x.cell in self.before.cells:
            return x
        if x.type.rank != y.type.rank:
            return Conflict(
                f"'{name}' has {x.type.rank} dimensions on one path and {y.type.rank} on another",
                "give it the same rank on every path.",
            )
        place = (x.cell, x.view, y.cell, y.view)
        if place in self.joined:  # one array under two names on both paths
            return self.joined[place]
        dtype, _ = scalars.join(ctx, Scalar(Const(0, x.type.dtype)), Scalar(Const(0, y.type.dtype)))
        a = self._in_arm(0, lambda: cast(ctx, read(ctx, x), dtype, scalars.exactly))
        b = self._in_arm(1, lambda: cast(ctx, read(ctx, y), dtype, scalars.exactly))
        assert isinstance(a, Var) and isinstance(b, Var)
        out = self._array(a, b, name)
        scattered = not (self._in_order(0, x) and self._in_order(1, y))
        possible = x.cell.possible | y.cell.possible
        alone = self._only_here(0, x) and self._only_here(1, y)
        self.joined[place] = found = _in_state(after, out, name, set() if alone else possible, scattered)
        found.cell.was = possible if alone else set()
        first, second = self._which(x, dtype), self._which(y, dtype)
        if (first, second) != (NEW, NEW):
            found.cell.which = self._result(first, second, I64, "which")
        return found

    def _only_here(self, k: int, value: Array) -> bool:
        """Whether nothing else refers to this array at the end of an arm: then nothing does afterwards, whichever arm is
        taken. So it is with each of two arrays that one arm exchanges.
        """
        seen = self._seen[k]
        return all(
            seen[c] == 1 and not (c.argument or c.readonly or c.stands_for or c.seen_through)
            for c in value.cell.possible
        )

    @cached_property
    def _seen(self) -> list[Counter[Cell]]:
        """At the end of each arm: how many references there are to an array."""
        return [
            Counter(c for v in arm.state.names.values() for cell in cells_of(v) for c in cell.possible)
            for arm in self.arms
        ]

    def _which(self, value: Array, dtype: DType) -> Atom:
        """The number of the argument that it is as a whole."""
        cell = value.cell
        if value.view or value.type.dtype is not dtype:
            return NEW
        if cell.argument:
            return i64(self.ctx.arguments.setdefault(cell, len(self.ctx.arguments)))
        return NEW if cell.which is None else cell.which

    def _array(self, a: Var, b: Var, name: str) -> Var:
        dims: list[Dim] = []
        outer = self._visible()
        for d, e in zip(a.type.shape, b.type.shape, strict=True):
            same = d is e or (isinstance(d, int) and isinstance(e, int) and d == e)
            if same and (isinstance(d, int) or d in outer):
                dims.append(d)
                continue
            var = self._result(dim_atom(d), dim_atom(e), Type(DType.i64), "n")
            dims.append(var if isinstance(var, Var) else int(var.value.real))
        out = self._result(a, b, Type(a.type.dtype, tuple(dims)), shown(name))
        assert isinstance(out, Var)
        return out

    def _maybe(self, x: Value | None, y: Value | None, name: str, after: State) -> Value:
        """Bound on one path only: usable where it is bound, which a flag tells at run time."""
        flags: list[Atom] = []
        values: list[Value | None] = []
        hidden = name.startswith("<")  # results and exits: read only where they are bound
        nones = [v for v in (x, y) if not hidden and (is_none(v) or (isinstance(v, MaybeUndefined) and v.none))]
        unbound = [v for v in (x, y) if v is None or (isinstance(v, MaybeUndefined) and not v.none)]
        if nones and unbound:
            return Conflict(f"'{name}' is None on one path and has no value on another", "bind it on every path.")
        for v in (x, y):
            if v is None or (is_none(v) and not hidden):
                flags.append(FALSE)
                values.append(None)
            elif isinstance(v, MaybeUndefined):
                flags.append(v.defined)
                values.append(v.value)
            else:
                flags.append(TRUE)
                values.append(v)
        flag = TRUE if hidden else self._result(flags[0], flags[1], Type(DType.bool), "defined")
        if values[0] is None or values[1] is None:
            k = 0 if values[1] is None else 1
            inner = values[k]
            assert inner is not None
            if isinstance(inner, Conflict):
                return inner
            value = self._carry_out(k, inner, name, after)
        else:
            value = self._value(values[0], values[1], name, after)
        return value if flag == TRUE else MaybeUndefined(value, flag, bool(nones))


def is_none(value: Value | None) -> bool:
    return isinstance(value, Static) and value.value is None


def is_plain(value: Value | None) -> bool:
    """A number, or a tuple of numbers: what may be None on another path."""
    if isinstance(value, MaybeUndefined):
        return is_plain(value.value)
    if isinstance(value, Sequence_):
        return value.kind == "tuple" and bool(value.items) and all(map(is_plain, value.items))
    return isinstance(value, Scalar)


class _Complement(set[Var]):
    """All variables but these."""

    def __contains__(self, item: object) -> bool:
        return not super().__contains__(item)


def shown(name: str) -> str:
    """A name for Core and for reports, of a variable that may be hidden."""
    if name.startswith("<for "):
        return name.split()[1]
    return "exit" if name == "<flow>" else "r" if name.startswith("<") else name


def _dummy(ctx: Context, type: Type) -> Var:
    """An array for a path that never uses it."""
    return ctx.b.let(type, Full(type.shape, zero_of(type.dtype)), "unused")


def _in_state(state: State, var: Var, name: str, may_be: set[Cell], scattered: bool) -> Array:
    cell = Cell(shown(name), may_be, scattered=scattered, named=shown(name) == name)
    state.cells[cell] = var
    return Array(cell, var.type)
