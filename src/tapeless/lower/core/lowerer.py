"""What all rules that lower Core to Loop IR have in common: where values are, memory, and wishes for places.

`Lowerer` takes bodies in which every consumption is legal (`passes.check.consumption`) and runs the rules of their
statements, which are in modules of their own and register themselves with `lowers`.

Note [Destinations]
An array is best made where it will end up: a row of a map's result inside that result, a carried array in the spare
buffer,
the result of the function in the caller's memory. Before a region is lowered, `plan` walks backwards from what is
wanted:
a result made by a fresh statement takes the wanted place; one that updates an array hands the wish on to that array.
Memory that is wished for is not read by anybody else while the region runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tapeless.ir.core import (
    ArrayLit,
    At,
    Atom,
    Axis,
    Body,
    Call,
    Concat,
    Copy,
    For,
    Full,
    Function,
    Hist,
    If,
    Iota,
    Lambda,
    Library,
    Range,
    Scatter,
    Stm,
    Sweep,
    Update,
    While,
    WithAcc,
)
from tapeless.ir.effects import effects_in
from tapeless.ir.rules import Rules
from tapeless.ir.types import Const, Dim, DType, Type, Var, dim_atom
from tapeless.ir.walk import free_in_exp, refresh_lambda
from tapeless.lower.core.code import ONE, ZERO, Code, Loc
from tapeless.lower.core.schedule import Schedule
from tapeless.lower.core.uses import by_cells, last_uses, own_cells, single_updates, size_test, unread, updated_by
from tapeless.lower.ir import loopir
from tapeless.lower.ir.loopir import Buffer, Space
from tapeless.ops.table import TABLE
from tapeless.passes.analysis.places import in_place, written_over


@dataclass(frozen=True)
class Note:
    """What happened to a sweep or loop, for `explain`."""

    span: object
    what: str


# Note [Tested sizes]
# Behind `check (n == 4)`, to the end of the region that it is in, the size n is the number 4. Small products then need no
# loops for sizes of all kinds, and results have memory of constant size.


@dataclass
class Acc:
    """An accumulator in scope: where it accumulates. `own`: one thread alone does; `copies`: so many, which elements take
    in turn.
    """

    op: str
    loc: Loc
    own: bool = False
    copies: Atom | None = None

    @property
    def unit(self) -> Const:
        unit = TABLE[self.op].unit
        assert unit and unit.left, f"no private copies for {self.op}"
        return unit.of(self.loc.dtype)

    def private(self, lo: Lowerer, chunk: Atom) -> Acc:
        """The copy of one chunk, of those along a first axis. It begins empty, as all of them do already on a GPU."""
        mine = lo.code.inside(self.loc, chunk)
        if not lo.schedule.each:
            lo.code.fill(mine, self.unit)
        return Acc(self.op, mine, own=True)


@dataclass(frozen=True)
class Lanes:
    """Threads that work on one element: which one this is, its number in the block, and the distance of the next one."""

    lane: Atom
    thread: Atom
    step: int


Rule = Callable[["Lowerer", tuple[Var, ...], Any], None]
RULES: Rules[type, Rule] = Rules()
lowers = RULES.of  # a rule emits code that makes the variables


class Lowerer:
    """`callees` are the functions of the program that are `Lowered` already, `routines` those that lowering itself
    needs; `sites` are those of its errors.
    """

    def __init__(
        self,
        function: Function,
        schedule: Schedule,
        rules: Mapping[type, Rule],
        callees: Mapping[str, Any],
        sites: dict[loopir.Site, int],
        routines: dict[str, loopir.Program] | None = None,
    ) -> None:
        self.function, self.schedule, self.rules, self.callees = function, schedule, rules, callees
        self.routines: dict[str, loopir.Program] = {} if routines is None else routines
        self.code = Code(sites)
        self.code.launched = schedule.launched if schedule.each else None
        self.scalars: dict[Var, Atom] = {}
        self.arrays: dict[Var, Loc] = {}
        self.accs: dict[Var, Acc] = {}
        self.tested: dict[Var, Const] = {}  # Note [Tested sizes]
        self.tests: dict[Var, tuple[Var, Const]] = {}  # the size that a condition compares with a number
        self.wanted: dict[Var, Loc] = {}
        self.threads = Var("threads", Type(DType.i64))
        self.lanes: Lanes | None = None  # that share reductions
        self.blas = ""
        self.notes: list[Note] = []
        self.owned: list[list[Buffer]] = [[]]
        self.scratch: dict[tuple[DType, int], Buffer] = {}  # partial results of one sweep after the other
        self.in_target: dict[Var, Loc] = {}  # where arrays are made that a later update would have put there

    @cached_property
    def unread(self) -> set[Var]:
        """Results of several that nobody asks for."""
        return unread(self.function.body)

    @property
    def launches(self) -> bool:
        """Whether this is code of a host whose kernels have a thread for each element."""
        return self.schedule.each and not self.code.parallel

    # -- operands

    def atom(self, a: Atom) -> Atom:
        if isinstance(a, Var):
            a = self.scalars.get(a, a)
        return self.tested.get(a, a) if isinstance(a, Var) else a

    def dim(self, d: Dim) -> Atom:
        return self.atom(dim_atom(d))

    def dims(self, shape: Sequence[Dim]) -> tuple[Atom, ...]:
        return tuple(self.dim(d) for d in shape)

    def loc(self, v: Atom) -> Loc:
        assert isinstance(v, Var)
        return self.arrays[v]

    def note(self, what: str) -> None:
        self.notes.append(Note(self.code.span, what))

    def note_blas(self, inside: bool = False) -> None:
        """BLAS is called here; `inside`: of a parallel region."""
        self.blas = "inside" if inside or self.code.parallel or self.blas == "inside" else "outside"

    # -- memory

    def allocate(self, type: Type, label: str) -> Loc:
        loc = self.code.allocate(type.dtype, self.dims(type.shape), label)
        self.owned[-1].append(loc.buffer)
        return loc

    def place(self, var: Var) -> Loc:
        """Where a fresh array goes: the place that is wanted for it, or new memory."""
        wanted = self.wanted.pop(var, None)
        return wanted if wanted is not None else self.allocate(var.type, var.name)

    def scoped(self, run: Callable[[], None], keep: Sequence[Buffer] = ()) -> None:
        """Frees what `run` allocates at the end of the current block, but for `keep`."""
        self.owned.append([])
        run()
        for buffer in self.owned.pop():
            if buffer in keep:
                self.owned[-1].append(buffer)
            else:
                self.code.free(buffer)

    def hand_over(self, source: Loc) -> Buffer:
        """The buffer to give to the caller: that of the array itself when it is all of it and ours, else a copy."""
        code = self.code
        whole = source.ordered and source.offset == ZERO and source.buffer.space is Space.heap
        if whole and source.buffer in self.owned[-1]:
            self.owned[-1].remove(source.buffer)
            return source.buffer
        out = Buffer("result", source.dtype, Space.heap)
        code.emit(loopir.Alloc(out, code.room(source.shape)))
        code.copy(source, Loc(out, source.dtype, source.shape, code.row_major(source.shape)))
        return out

    # -- wishes

    def plan(self, body: Body, wishes: Mapping[int, Loc]) -> None:
        """Note [Destinations]: hands the wished places of results on to the statements that make them."""
        definitions = {v: s for s in body.stms for v in s.vars}
        for k, loc in wishes.items():
            result = body.results[k]
            if isinstance(result, Var):
                self._wish(result, loc, definitions)

    def _wish(self, v: Var, loc: Loc, definitions: Mapping[Var, Stm]) -> None:
        wished: Atom | None = v
        while isinstance(wished, Var) and wished in definitions and wished not in self.wanted:
            stm, v, wished = definitions[wished], wished, None
            match stm.exp:
                case Full() | Iota() | ArrayLit() | Copy() | Concat() | Sweep() | If():
                    self.wanted[v] = loc
                case Update(array=array):
                    wished = array
                case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                    k = stm.vars.index(v)
                    made, p = inner.results[k], params[k]
                    if in_place(inner, made, p) or written_over(inner, made, p):
                        wished = inits[k]
                case WithAcc(arrays=arrays, lam=lam) if stm.vars.index(v) >= len(arrays):
                    wished = lam.body.results[stm.vars.index(v) - len(arrays)]
                    definitions = {**definitions, **{w: s for s in lam.body.stms for w in s.vars}}
                case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
                    k = stm.vars.index(v)
                    wished = arrays[k] if k < len(arrays) else None
                case Library() | Call() if v.type.shape:
                    self.wanted[v] = loc

    # -- statements

    def body(self, body: Body) -> list[Atom]:
        """Lowers the statements; gives the scalar results, arrays are found in `arrays`."""
        updates = single_updates(body)
        fading = Fading(self, body) if any(isinstance(s.exp, Sweep) for s in body.stms) else None
        early: set[int] = set()  # positions of statements that are lowered already
        tested = self.tested
        for k, stm in enumerate(body.stms):
            if k in early:
                continue
            for v in stm.vars:
                if v in updates:
                    self._make_in_target(v, k, updates[v], body, early)
            if fading is None:
                self.stm(stm)
            else:
                fading.lower(stm, k)
        results = [self.atom(r) if not r.type.shape else r for r in body.results]
        self.tested = tested
        return results

    def _make_in_target(self, v: Var, first: int, last: int, body: Body, early: set[int]) -> None:
        """An array that is only made to be written into a part of another one is made there.

        The other one must not be read from here on until then, but for the cells themselves, one by one. The place must
        be known now, with the size of the array: a test of that which comes later is made first. With tests in between,
        positions are not known to be inside.
        """
        update = body.stms[last].exp
        assert isinstance(update, Update) and isinstance(update.value, Var)
        found = updated_by(body, first, last)
        if v in self.wanted or found is None or found[0] not in self.arrays:
            return
        array, updates = found
        target = self.arrays[array]
        own = own_cells(body, v, first, update)
        for k, stm in enumerate(body.stms[first:last]):
            for used in free_in_exp(stm.exp):
                if used is array and id(stm) in updates:
                    continue
                if used in self.arrays and self.arrays[used].buffer is target.buffer and (k or used not in own):
                    return
        made = {w for s in body.stms[first:last] for w in s.vars}
        tested = any(effects_in(body.stms[first + 1 : last + 1]))
        for axis in update.axes:
            if isinstance(axis, Range):
                if any(x in made for x in (axis.start, axis.step, axis.length)):
                    return
            elif tested or axis.wrap or axis.index in made:  # a position may be inside only after the test
                return
        lengths = [axis.length for axis in update.axes if isinstance(axis, Range)]
        if not all(self._equal(d, e, first, last, body, early) for d, e in zip(lengths, v.type.shape, strict=True)):
            return
        place = self.arrays[own[0]] if own else view(self, target, update.axes)
        if place.ordered or not any(v in free_in_exp(s.exp) for s in body.stms[first:last]):
            self.wanted[v] = self.in_target[update.value] = place

    def _equal(self, d: Dim, e: Dim, first: int, last: int, body: Body, early: set[int]) -> bool:
        """Whether two sizes are equal at `first`. If there is a test of that before `last`, it is made now."""
        if d is e or (isinstance(d, int) and d == e):
            return True
        test = size_test(body, dim_atom(d), dim_atom(e), last)
        steps = [k for k in test if k >= first and k not in early]
        made = {v for s in body.stms[first:last] for v in s.vars} - {v for k in steps for v in body.stms[k].vars}
        if not test or any(a in made for k in steps for a in free_in_exp(body.stms[k].exp)):
            return False
        for k in steps:
            self.stm(body.stms[k])
            early.add(k)
        return True

    def stm(self, stm: Stm) -> None:
        before = self.code.span
        if stm.span.line:
            self.code.span = stm.span
        self.rules[type(stm.exp)](self, stm.vars, stm.exp)
        self.code.span = before

    def inline(self, lam: Lambda, args: Sequence[Atom | Loc]) -> list[Atom]:
        """Lowers a lambda's body here, for these arguments. A lambda may be lowered several times."""
        fresh = refresh_lambda(lam)
        for p, a in zip(fresh.params, args, strict=True):
            if isinstance(a, Loc):
                self.arrays[p] = a
            else:
                self.scalars[p] = a
        return self.body(fresh.body)


class Fading:
    """Arrays of one body that nobody needs any more: a map that reads one of them cell by cell is made in its memory."""

    def __init__(self, lo: Lowerer, body: Body) -> None:
        self.lo, self.last = lo, last_uses(body)
        self.until: dict[Buffer, int] = {}  # the last use of memory that was allocated for a statement of the body

    def lower(self, stm: Stm, k: int) -> None:
        lo = self.lo
        if isinstance(stm.exp, Sweep):
            self._reuse(stm, stm.exp, k)
        before = len(lo.owned[-1])
        lo.stm(stm)
        for buffer in lo.owned[-1][before:]:
            if buffer.space is Space.heap:
                self.until[buffer] = -1
        for v in stm.vars:
            if v in lo.arrays and (buffer := lo.arrays[v].buffer) in self.until:
                self.until[buffer] = max(self.until[buffer], self.last.get(v, -1))

    def _reuse(self, stm: Stm, exp: Sweep, k: int) -> None:
        lo = self.lo
        taken: set[Buffer] = set()
        for v in stm.vars[sum(len(r.neutral) for r in exp.reduces) :]:
            for a in exp.arrays if v not in lo.wanted else ():
                loc = lo.arrays[a]
                if (
                    a.type != v.type
                    or loc.buffer in taken
                    or not self._is_over(loc, a, stm, k)
                    or not by_cells(stm, v, a)
                ):
                    continue
                lo.wanted[v] = loc
                taken.add(loc.buffer)
                break

    def _is_over(self, loc: Loc, a: Var, stm: Stm, k: int) -> bool:
        """Whether this statement is the last one to see the memory, and sees it under one name."""
        if not loc.ordered or loc.offset != ZERO or self.until.get(loc.buffer, k + 1) > k:
            return False
        arrays = self.lo.arrays
        return all(w is a or w not in arrays or arrays[w].buffer is not loc.buffer for w in free_in_exp(stm.exp))


def position(lo: Lowerer, at: At, length: Atom, axis: int) -> Atom:
    """The position of an `At` axis, wrapped and tested as its flags say."""
    code = lo.code
    index = lo.atom(at.index)
    given = index
    if not at.check:
        if at.wrap and isinstance(index, Const):
            return code.add(index, length) if int(index.value.real) < 0 else index
        if at.wrap:
            negative = code.compare("lt", index, ZERO)
            return code.let("select", DType.i64, negative, code.add(index, length), index, label="at")
        return index
    message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    if not at.wrap or isinstance(index, Const):
        if at.wrap and isinstance(index, Const) and int(index.value.real) < 0:
            index = code.add(index, length)
        code.check(_inside(lo, index, length), "IndexError", message, given, length)
        return index
    # The usual case is one comparison; a negative position is wrapped and tested apart.
    place = code.declare(index, "at")
    with code.nested() as otherwise:
        wrapped = code.add(index, length)
        code.check(_inside(lo, wrapped, length), "IndexError", message, given, length)
        code.assign(place, wrapped)
    code.emit(loopir.If(_inside(lo, index, length), (), tuple(otherwise), likely=True))
    return place


def _inside(lo: Lowerer, index: Atom, length: Atom) -> Atom:
    code = lo.code
    if isinstance(index, Const) and index.value.real >= 0:
        return code.compare("lt", index, length)
    low, high = code.compare("ge", index, ZERO), code.compare("lt", index, length)
    return code.let("and", DType.bool, low, high, label="inside")


def view(lo: Lowerer, loc: Loc, axes: Sequence[Axis]) -> Loc:
    """The cells at `axes`; rank 0 when every axis is a position."""
    code = lo.code
    offset = loc.offset
    shape: list[Atom] = []
    strides: list[Atom] = []
    ordered, upward = loc.ordered, loc.upward
    for k, (axis, length, stride) in enumerate(zip(axes, loc.shape, loc.strides, strict=True)):
        if isinstance(axis, At):
            offset = code.add(offset, code.mul(position(lo, axis, length, k), stride))
            ordered = ordered and not shape
        else:
            start, step = lo.atom(axis.start), lo.atom(axis.step)
            count = lo.dim(axis.length)
            offset = code.add(offset, code.mul(start, stride))
            whole = start == ZERO and step == ONE and (count is length or count == length)
            ordered = ordered and (whole or (not shape and step == ONE))
            upward = upward and isinstance(step, Const) and int(step.value.real) > 0
            shape.append(count)
            strides.append(code.mul(stride, step))
    return Loc(loc.buffer, loc.dtype, tuple(shape), tuple(strides), offset, ordered, upward)
