"""Core to Loop IR.

Takes Core in which every consumption is legal (`passes.check.consumption`); gives a `Program` and how to call it.

Note [Strict arithmetic]
A step on exact numbers (Note [Patterns] of ops/exact.py) is undone by computing what was added once more, in other code
than before. It must have the same bits there: one unit in the last place may round to another fixed-point number. So in
a program with exact numbers nothing is contracted or put in another order, and functions are those of scalars. The same
holds for programs that ask for results of callbacks by their arguments, a second time.
`fastmath` has no effect on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tapeless.ir.core import Apply, Atom, Function
from tapeless.ir.effects import is_callback, runs_python
from tapeless.ir.target import Target
from tapeless.ir.types import DType, Type, Var
from tapeless.ir.walk import all_stms
from tapeless.lower.core.code import Loc
from tapeless.lower.core.lowerer import Lowerer, Note
from tapeless.lower.core.schedule import schedule_of
from tapeless.lower.device_blocks import by_blocks
from tapeless.lower.device_memory import outside
from tapeless.lower.device_parts import apart
from tapeless.lower.ir.loopir import Buffer, Give, Program, Return, Site, Space
from tapeless.lower.kernels import outlined
from tapeless.lower.loads_ahead import with_loads_ahead
from tapeless.lower.memory import place_allocations
from tapeless.lower.routines_by_loops import inside_kernels
from tapeless.lower.rules import RULES
from tapeless.ops.table import TABLE


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
    shapes: dict[Buffer, tuple[Atom, ...]] = field(default_factory=dict)  # of arrays that the caller hands over
    blas: str = ""  # whether BLAS is called: "inside" of a parallel region, or only "outside"


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


def lower(
    function: Function,
    target: Target = Target.cpu,
    fastmath: bool = False,
    alone: bool = False,
    deterministic: bool = False,
) -> Lowered:
    """The whole program that the function is the entry of.

    alone: it will run on one thread, so that there are no parallel loops.
    deterministic: it gives the same bits in each run.
    """
    schedule = schedule_of(target, alone, deterministic)
    strict = any(_has_patterns(f) or _asks_again(f) for f in (function, *function.calls))
    fastmath = fastmath and not strict
    known: dict[str, Lowered] = {}
    sites: dict[Site, int] = {}  # of all functions, with their numbers
    routines: dict[str, Program] = {}
    name = _symbol(function.name)
    for k, f in enumerate(function.calls):
        lo = Lowerer(f, schedule, RULES, known, sites, routines)
        known[f.name] = _lowered(lo, f"{name}.{k}.{_symbol(f.name)}", {*f.sizes, *f.params}, fastmath, strict)
    lo = Lowerer(function, schedule, RULES, known, sites, routines)
    entry = _lowered(lo, name, set(function.sizes), fastmath, strict)
    made = (*routines.values(), *(callee.program for callee in known.values()))
    functions = tuple(replace(f, sites=tuple(sites), fastmath=fastmath, strict=strict) for f in made)
    program = replace(entry.program, sites=tuple(sites), functions=functions)
    if schedule.apart:
        program = outside(inside_kernels(program))
    program = outlined(program, schedule.launched)
    entry.program = with_loads_ahead(apart(by_blocks(program), entry.shapes)) if schedule.apart else program
    for callee in known.values():
        entry.notes.extend(callee.notes)
    return entry


def _has_patterns(function: Function) -> bool:
    return any(isinstance(stm.exp, Apply) and TABLE[stm.exp.op].patterns for stm in all_stms(function.body))


def _asks_again(function: Function) -> bool:
    return any(is_callback(stm.exp) and not runs_python(stm.exp) for stm in all_stms(function.body))


def _symbol(name: str) -> str:
    return "tp_" + ("".join(c if c.isalnum() else "_" for c in name) or "f")


def _lowered(lo: Lowerer, name: str, sizes: set[Var], fastmath: bool, strict: bool) -> Lowered:
    """One function. Results of which the `sizes` are known are provided by the caller, the others are handed over."""
    function, code = lo.function, lo.code
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
    shapes = {loc.buffer: loc.shape for loc in (*lo.arrays.values(), *provided.values())}
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
    program = Program(
        name,
        tuple(params),
        lo.threads,
        tuple(scalar_types),
        tuple(given),
        body,
        fastmath=fastmath,
        strict=strict,
        sizes=len(function.sizes),
    )
    return Lowered(program, function.sizes, scalar_slots, lowered_results, lo.notes, shapes, lo.blas)
