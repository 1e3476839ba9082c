"""Core to Loop IR.

Takes Core in which every consumption is legal (`passes.consumption`); gives a `Program` and how to call it.
Regions, sweeps and library operations are lowered in modules of their own, over the `Lowerer` made here.

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
from dataclasses import dataclass, field

from tapeless.errors import WARNINGS
from tapeless.ir.core import (
    Apply,
    ArrayLit,
    Atom,
    Body,
    Broadcast,
    Check,
    Concat,
    Copy,
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
    Range,
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
from tapeless.ir.target import Target
from tapeless.ir.types import Const, Dim, DType, Type, Var, dim_atom
from tapeless.ir.walk import all_stms, free_in_exp, refresh_lambda
from tapeless.lower import accumulators, arrays, control, histograms, libraries, loopir, sweeps
from tapeless.lower.code import ZERO, Code, Loc
from tapeless.lower.loopir import Buffer, Give, Program, Return, Space
from tapeless.lower.memory import place_allocations
from tapeless.lower.uses import own_cells, single_updates, size_test, updated_by
from tapeless.passes.facts import is_effect
from tapeless.passes.places import in_place, written_over


@dataclass(frozen=True)
class ArrayResult:
    """An array result: `provided` when the caller allocates it, with its dimensions as ints or size parameters."""

    k: int
    type: Type
    provided: bool
    shape: tuple[int | Var, ...]  # provided: known before the call
    scalars: tuple[int, ...] = ()  # given: the scalar results that hold the dimensions
    given: int = -1


@dataclass
class Lowered:
    """A program with its calling convention: what to pass, and where each Core result comes back."""

    program: Program
    sizes: tuple[Var, ...]
    scalar_results: dict[int, int] = field(default_factory=dict)  # Core result -> scalar slot
    array_results: dict[int, ArrayResult] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    blas: str = ""  # whether BLAS is called: "inside" of a parallel region, or only "outside"


@dataclass(frozen=True)
class Note:
    """What happened to a sweep or loop, for `explain`."""

    span: object
    what: str


# Note [Tested sizes]
# Behind `check (n == 4)`, to the end of the region that it is in, the size n is the number 4. Small products then need no
# loops for sizes of all kinds, and results have memory of constant size.


class Lowerer:
    def __init__(self, function: Function, target: Target = Target.cpu) -> None:
        self.function, self.target = function, target
        self.code = Code()
        self.scalars: dict[Var, Atom] = {}
        self.arrays: dict[Var, Loc] = {}
        self.accs: dict[Var, accumulators.Acc] = {}
        self.tested: dict[Var, Const] = {}  # Note [Tested sizes]
        self.tests: dict[Var, tuple[Var, Const]] = {}  # the size that a condition compares with a number
        self.wanted: dict[Var, Loc] = {}
        self.threads = Var("threads", Type(DType.i64))
        self.parallel = False  # inside a parallel region
        self.alone = False  # for one thread
        self.blas = ""
        self.notes: list[Note] = []
        self.owned: list[list[Buffer]] = [[]]
        self.in_target: dict[Var, Loc] = {}  # where arrays are made that a later update would have put there

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
        stm = definitions.get(v)
        if stm is None or v in self.wanted:
            return
        match stm.exp:
            case Full() | Iota() | ArrayLit() | Copy() | Concat() | Sweep():
                self.wanted[v] = loc
            case If():
                self.wanted[v] = loc
            case Update(array=array):
                self._wish(array, loc, definitions)
            case For(params=params, inits=inits, body=inner) | While(params=params, inits=inits, body=inner):
                k = stm.vars.index(v)
                init = inits[k]
                made, p = inner.results[k], params[k]
                if isinstance(init, Var) and (in_place(inner, made, p) or written_over(inner, made, p)):
                    self._wish(init, loc, definitions)
            case WithAcc(arrays=arrays, lam=lam) if stm.vars.index(v) >= len(arrays):
                made = lam.body.results[stm.vars.index(v) - len(arrays)]
                if isinstance(made, Var):
                    self._wish(made, loc, {**definitions, **{w: s for s in lam.body.stms for w in s.vars}})
            case Hist(dests=arrays) | Scatter(dests=arrays) | WithAcc(arrays=arrays):
                k = stm.vars.index(v)
                if k < len(arrays):
                    self._wish(arrays[k], loc, definitions)
            case Library() if v.type.shape:
                self.wanted[v] = loc
            case _:
                pass

    # -- statements

    def body(self, body: Body) -> list[Atom]:
        """Lowers the statements; gives the scalar results, arrays are found in `arrays`."""
        updates = single_updates(body)
        early: set[int] = set()  # positions of statements that are lowered already
        tested = self.tested
        for k, stm in enumerate(body.stms):
            if k in early:
                continue
            for v in stm.vars:
                if v in updates:
                    self._make_in_target(v, k, updates[v], body, early)
            self.stm(stm)
        results = [self.atom(r) if not r.type.shape else r for r in body.results]
        self.tested = tested
        return results

    def _make_in_target(self, v: Var, first: int, last: int, body: Body, early: set[int]) -> None:
        """An array that is only made to be written into a part of another one is made there.

        The other one must not be read from here on until then, but for the cells themselves, one by one. The place must be known
        now, with the size of the array: a test of that which comes later is made first. With tests in between, positions are not known to be inside.
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
        tested = any(is_effect(s.exp) for part in body.stms[first + 1 : last + 1] for s in all_stms(Body((part,), ())))
        for axis in update.axes:
            if isinstance(axis, Range):
                if any(x in made for x in (axis.start, axis.step, axis.length)):
                    return
            elif tested or axis.wrap or axis.index in made:  # a position may be inside only after the test
                return
        lengths = [axis.length for axis in update.axes if isinstance(axis, Range)]
        if not all(self._equal(d, e, first, last, body, early) for d, e in zip(lengths, v.type.shape, strict=True)):
            return
        place = self.arrays[own[0]] if own else arrays.view(self, target, update.axes)
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
        self._stm(stm)
        self.code.span = before

    def _stm(self, stm: Stm) -> None:
        code = self.code
        match stm.exp:
            case Apply(op=name, args=args):
                v = stm.vars[0]
                if name in ("identity", "stop_gradient"):
                    self.scalars[v] = self.atom(args[0])
                else:
                    self.scalars[v] = code.let(name, v.type.dtype, *(self.atom(a) for a in args), label=v.name)
                match name, args:
                    case "eq", (Var() as size, Const() as number) if size in self.function.sizes:
                        self.tests[v] = (size, number)
            case Index():
                arrays.lower_index(self, stm.vars[0], stm.exp)
            case Update():
                arrays.lower_update(self, stm.vars[0], stm.exp)
            case Iota() | Full() | ArrayLit() | Reshape() | Transpose() | Broadcast() | Concat() | Copy():
                arrays.lower_shape(self, stm.vars[0], stm.exp)
            case UpdateAcc():
                accumulators.lower_update_acc(self, stm.exp)
            case If():
                control.lower_if(self, stm.vars, stm.exp)
            case For():
                control.lower_for(self, stm.vars, stm.exp)
            case While():
                control.lower_while(self, stm.vars, stm.exp)
            case Sweep():
                sweeps.lower_sweep(self, stm.vars, stm.exp)
            case Hist():
                histograms.lower_hist(self, stm.vars, stm.exp)
            case Scatter():
                histograms.lower_scatter(self, stm.vars, stm.exp)
            case WithAcc():
                accumulators.lower_with_acc(self, stm.vars, stm.exp)
            case Library():
                libraries.lower_library(self, stm.vars, stm.exp)
            case Check(cond=cond, error=error, message=message, args=args):
                code.check(self.atom(cond), error, message, *(self.atom(a) for a in args))
                if isinstance(cond, Var) and cond in self.tests and error not in WARNINGS:
                    size, number = self.tests[cond]
                    self.tested = {**self.tested, size: number}
            case Print(parts=parts, args=args):
                self._print(parts, args)

    def inline(self, lam: Lambda, args: Sequence[Atom | Loc]) -> list[Atom]:
        """Lowers a lambda's body here, for these arguments. A lambda may be lowered several times."""
        fresh = refresh_lambda(lam)
        for p, a in zip(fresh.params, args, strict=True):
            if isinstance(a, Loc):
                self.arrays[p] = a
            else:
                self.scalars[p] = a
        return self.body(fresh.body)

    def _print(self, parts: tuple[str | int, ...], args: tuple[Atom, ...]) -> None:
        """Arrays print element by element in brackets, as NumPy does on one line."""
        code = self.code
        if not any(a.type.shape for a in args):
            code.emit(loopir.Print((*parts, "\n"), tuple(self.atom(a) for a in args)))
            return
        for part in parts:
            if isinstance(part, str):
                code.emit(loopir.Print((part,), ()))
            elif not args[part].type.shape:
                code.emit(loopir.Print((0,), (self.atom(args[part]),)))
            else:
                self._print_array(self.loc(args[part]))
        code.emit(loopir.Print(("\n",), ()))

    def _print_array(self, loc: Loc) -> None:
        code = self.code
        code.emit(loopir.Print(("[",), ()))
        with code.loop(loc.shape[0]) as i:
            code.branch(code.compare("gt", i, ZERO), lambda: code.emit(loopir.Print((" ",), ())))
            if loc.rank == 1:
                code.emit(loopir.Print((0,), (code.load(loc, [i]),)))
            else:
                self._print_array(code.inside(loc, i))
        code.emit(loopir.Print(("]",), ()))


def write_back(lo: Lowerer, results: Sequence[Atom], params: Sequence[Var]) -> None:
    """The final contents of written parameters into their memory, first aside where that memory is read by a
    later copy.
    """
    sources = [lo.loc(r) for r in results]
    targets = [lo.arrays[p] for p in params]
    overwritten: set[Buffer] = set()
    for k, (result, target) in enumerate(zip(results, targets, strict=True)):
        if sources[k].same_place(target):
            continue
        overwritten.add(target.buffer)  # also its own: x[:] = x[::-1]
        if sources[k].buffer in overwritten:
            aside = lo.allocate(result.type, "aside")
            lo.code.copy(sources[k], aside)
            sources[k] = aside
    for source, target in zip(sources, targets, strict=True):
        lo.code.copy(source, target)


def lower(function: Function, target: Target = Target.cpu, fastmath: bool = False, alone: bool = False) -> Lowered:
    """The whole function. Results of known size are provided by the caller, the others are handed over.

    alone: it will run on one thread, so that there are no parallel loops.
    """
    lo = Lowerer(function, target)
    lo.alone = alone
    code = lo.code
    sizes = {s: s for s in function.sizes}
    params: list[Var | Buffer] = [*function.sizes]
    for k, p in enumerate(function.params):
        if p.type.shape:
            buffer = Buffer(p.name, p.type.dtype, Space.param, None, k in function.written)
            params.append(buffer)
            lo.arrays[p] = Loc(buffer, p.type.dtype, lo.dims(p.type.shape), code.row_major(lo.dims(p.type.shape)))
        else:
            params.append(p)
    plain = len(function.body.results) - len(function.written)
    lowered_results: dict[int, ArrayResult] = {}
    wishes: dict[int, Loc] = {}
    provided: dict[int, Loc] = {}
    for k, r in enumerate(function.body.results[:plain]):
        if r.type.shape and all(isinstance(d, int) or d in sizes for d in r.type.shape):
            buffer = Buffer(f"result{k}", r.type.dtype, Space.param, None, True)
            params.append(buffer)
            provided[k] = Loc(buffer, r.type.dtype, lo.dims(r.type.shape), code.row_major(lo.dims(r.type.shape)))
            wishes[k] = provided[k]
            lowered_results[k] = ArrayResult(k, r.type, True, r.type.shape)
    lo.plan(function.body, wishes)
    scalar_types: list[DType] = []
    scalar_slots: dict[int, int] = {}
    given: list[DType] = []
    handed: list[Give] = []

    def scalar(value: Atom) -> int:
        code.emit(Return(len(scalar_types), value))
        scalar_types.append(value.type.dtype)
        return len(scalar_types) - 1

    def run() -> None:
        lo.body(function.body)
        for k, r in enumerate(function.body.results[:plain]):
            if not r.type.shape:
                scalar_slots[k] = scalar(lo.atom(r))
            elif k in provided:
                code.copy(lo.loc(r), provided[k])
            else:
                source = lo.loc(r)
                dims = tuple(scalar(d) for d in source.shape)
                handed.append(Give(len(given), lo.hand_over(source)))
                lowered_results[k] = ArrayResult(k, r.type, False, (), dims, len(given))
                given.append(r.type.dtype)
        write_back(lo, function.body.results[plain:], [function.params[k] for k in function.written])
        for give in handed:  # last: a buffer is gone once it is given
            code.emit(give)

    lo.scoped(run)
    body = place_allocations(tuple(code.block))
    name = "".join(c if c.isalnum() else "_" for c in function.name) or "f"
    program = Program(
        f"tp_{name}",
        tuple(params),
        lo.threads,
        tuple(scalar_types),
        tuple(given),
        body,
        tuple(code.sites),
        code.spans,
        fastmath,
        len(function.sizes),
    )
    return Lowered(program, function.sizes, scalar_slots, lowered_results, lo.notes, lo.blas)
