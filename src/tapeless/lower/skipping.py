"""Loops in which most iterations do nothing, as a truth value in memory says: blocks of them are tested at once and skipped.

Takes the body of a `simd` loop; `find_gate` gives the truth values that say so, `emit_blocks` the loop that asks them first.

Note [Skipping]
The way back of a minimum moves an adjoint where the minimum was taken from elsewhere, which is rare in the end:
    t = kept[i];  moved = select(t, 0.0, x[i]);  x[i] = select(t, x[i], 0.0);  total = total + moved
With `t` true all that is left is to store what was just loaded and to add nothing. `find_gate` runs the body with the truth
value given: selections take their arm, zeros are not added, and a value is known by the operation that made it. If every
store then writes what its cell holds and every assignment keeps its variable, the iteration can be left out. (A sum that is -0.0
stays so.) The truth values lie next to each other and the loop does not write them, so the test of a block is one or
two vector instructions. The last block is tested with cells of the one before it: a rest of any length needs no other code.
A block has sums of its own, so that blocks do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tapeless.ir.types import Atom, Const, DType, Var, const, i64
from tapeless.lower.code import Code
from tapeless.lower.loopir import Assign, Declare, For, Let, Load, Stm, Store
from tapeless.lower.printer import operands

BLOCK = 64  # iterations that are tested at once: their truth values are a cache line


@dataclass(frozen=True)
class Gate:
    """Iterations with `truth` being `idle` do nothing. `totals` are the sums around the loop."""

    truth: Var
    idle: bool
    totals: tuple[Var, ...]


def find_gate(body: Sequence[Stm], index: Var, bits: Collection[Var] = ()) -> Gate | None:
    """Note [Skipping]. None if no truth value, a byte in memory or one of `bits`, says whether an iteration does something."""
    if not all(isinstance(s, Let | Load | Store | Declare | Assign) for s in body):
        return None
    lets = {s.var: s for s in body if isinstance(s, Let)}
    inside = {s.var for s in body if isinstance(s, Let | Load | Declare)}
    written = {s.buffer for s in body if isinstance(s, Store)}
    totals = tuple(s.var for s in body if isinstance(s, Assign) and s.var not in inside)
    if not written or len(set(totals)) < len(totals) or not all(is_sum(body, v) for v in totals):
        return None  # sums alone are not worth it: they are hardly more work than the test
    rows = [s for s in body if isinstance(s, Load) and s.buffer.dtype is DType.bool and s.buffer not in written]
    bytes_ = [s.var for s in rows if _step(s.index, index, lets, inside) == 1]
    for truth in (*bits, *bytes_):
        for idle in (False, True):
            if _Given(body, truth, idle).does_nothing():
                return Gate(truth, idle, totals)
    return None


def is_sum(body: Sequence[Stm], total: Var) -> bool:
    """Whether the body does nothing with a variable but to add to it, in any order."""
    match [s for s in body if total in (*operands(s)[1], *([s.var] if isinstance(s, Assign) else ()))]:
        case [Let(var=new, op="add", args=args, reassoc=True), Assign(value=value)]:
            return value is new and args.count(total) == 1
        case _:
            return False


def _step(at: Atom, index: Var, lets: Mapping[Var, Let], inside: set[Var]) -> int | None:
    """By how much an address grows from iteration to iteration. None if that is not known."""
    if at is index:
        return 1
    if not isinstance(at, Var) or at not in inside:
        return 0
    if at not in lets:
        return None
    let = lets[at]
    steps = [_step(a, index, lets, inside) for a in let.args]
    return growth(let.op, steps)


def growth(op: str, steps: Sequence[int | None]) -> int | None:
    """By how much a result grows from iteration to iteration, if its operands do by so much."""
    match op, steps:
        case _, _ if all(step == 0 for step in steps):
            return 0
        case "add", [int(a), int(b)]:
            return a + b
        case "sub", [int(a), int(b)]:
            return a - b
        case _:
            return None


def needed(at: Atom, lets: Mapping[Var, Let]) -> Iterable[Let]:
    """The statements that a position is computed by."""
    found: dict[Var, Let] = {}

    def visit(a: Atom) -> None:
        if isinstance(a, Var) and a in lets and a not in found:
            for arg in lets[a].args:
                visit(arg)
            found[a] = lets[a]

    visit(at)
    return found.values()


# -- an iteration with a truth value given

Value = Atom | tuple[object, ...]  # an operand from outside, or the operation that made it and its values


class _Given:
    def __init__(self, body: Sequence[Stm], truth: Var, value: bool) -> None:
        self.body = body
        self.truth = truth
        self.given: Value = const(value, DType.bool)
        self.own = {s.var for s in body if isinstance(s, Declare)}
        self.values: dict[Var, Value] = {}

    def does_nothing(self) -> bool:
        return all(self._runs_idle(s) for s in self.body)

    def _runs_idle(self, stm: Stm) -> bool:
        """Runs a statement; whether it changes nothing outside. All before it changed nothing."""
        match stm:
            case Load(var=var) | Let(var=var) if var is self.truth:
                self.values[var] = self.given
            case Load(var=var, buffer=buffer, index=index):
                self.values[var] = ("load", buffer, self._value(index))
            case Let(var=var, op=op, args=args):
                self.values[var] = _result(op, tuple(self._value(a) for a in args))
            case Declare(var=var, init=value):
                self.values[var] = self._value(value)
            case Store(buffer=buffer, index=index, value=value):
                return self._value(value) == ("load", buffer, self._value(index))
            case Assign(var=var, value=value) if var in self.own:
                self.values[var] = self._value(value)
            case Assign(var=var, value=value):
                return self._value(value) == var
            case _:
                return False
        return True

    def _value(self, a: Atom) -> Value:
        return self.values.get(a, a) if isinstance(a, Var) else a


def _result(op: str, args: tuple[Value, ...]) -> Value:
    """What an operation gives, as far as truth values and zeros say it."""
    match op, args:
        case "select", (Const(value=chosen), x, y):
            return x if chosen else y
        case "and", (Const(value=truth, dtype=DType.bool) as t, x) | (x, Const(value=truth, dtype=DType.bool) as t):
            return x if truth else t
        case "or", (Const(value=truth, dtype=DType.bool) as t, x) | (x, Const(value=truth, dtype=DType.bool) as t):
            return t if truth else x
        case "not", (Const(value=truth, dtype=DType.bool),):
            return const(not truth, DType.bool)
        case "add", (x, Const(value=0)) | (Const(value=0), x):
            return x
        case "sub", (x, Const(value=0)):
            return x
        case _:
            return (op, *args)


# -- the loop


def emit_blocks(code: Code, gate: Gate, loop: For) -> None:
    """The loop in blocks that are skipped where the gate says so; loops shorter than a block as they are."""
    rest = code.declare(loop.lo, "rest")
    length = code.sub(loop.hi, loop.lo)

    def blocks() -> None:
        count = code.mul(code.let("floordiv", DType.i64, length, i64(BLOCK)), i64(BLOCK))
        end = code.add(loop.lo, count)
        with code.loop(end, loop.lo, label="block", step=BLOCK) as first:
            _unless_idle(code, gate, loop, first, lambda: _emit_block(code, gate, loop, first))
        code.assign(rest, loop.hi)
        _unless_idle(code, gate, loop, code.sub(loop.hi, i64(BLOCK)), lambda: code.assign(rest, end))

    code.branch(code.compare("ge", length, i64(BLOCK)), blocks)
    short = replace(loop, lo=rest)
    code.mark(short)
    code.emit(short)


def _unless_idle(code: Code, gate: Gate, loop: For, first: Atom, run: Callable[[], None]) -> None:
    """Does `run` unless all iterations of the block from `first` on are idle."""
    alike = code.declare(const(gate.idle, DType.bool), "idle" if gate.idle else "busy")
    lets = {s.var: s for s in loop.body if isinstance(s, Let)}
    (load,) = (s for s in loop.body if isinstance(s, Load) and s.var is gate.truth)
    with _each(code, loop, first) as i:
        truth = emit_load(code, load, lets, {loop.var: i})
        code.assign(alike, code.let("and" if gate.idle else "or", DType.bool, alike, truth))
    if gate.idle:
        code.branch(alike, lambda: None, run)
    else:
        code.branch(alike, run)


def _emit_block(code: Code, gate: Gate, loop: For, first: Atom) -> None:
    with sums_apart(code, gate.totals) as parts, _each(code, loop, first) as i:
        for stm in renamed(loop.body, {loop.var: i, **parts}):
            code.emit(stm)


@contextmanager
def sums_apart(code: Code, totals: Sequence[Var]) -> Iterator[Mapping[Var, Var]]:
    """Sums of a block: they start from 0, and are added to the totals afterwards."""
    parts = {total: code.declare(const(0, total.type.dtype), total.name) for total in totals}
    yield parts
    before, code.reassoc = code.reassoc, True
    for total, part in parts.items():
        code.assign(total, code.let("add", total.type.dtype, total, part))
    code.reassoc = before


def emit_load(code: Code, load: Load, lets: Mapping[Var, Let], names: Mapping[Var, Atom]) -> Var:
    """Loads with other names, address and all; what."""
    *address, mine = renamed((*needed(load.index, lets), load), names)
    for stm in (*address, mine):
        code.emit(stm)
    assert isinstance(mine, Load)
    return mine.var


@contextmanager
def _each(code: Code, loop: For, first: Atom) -> Iterator[Atom]:
    """The iterations of a block: constantly many, which is what unrolls."""
    with code.loop(i64(BLOCK), tag="simd", label=loop.var.name) as k:
        yield code.add(first, k)


def renamed(body: Iterable[Stm], names: Mapping[Var, Atom]) -> tuple[Stm, ...]:
    """The statements with fresh names for what they bind."""
    names = dict(names)

    def new(a: Atom) -> Atom:
        return names.get(a, a) if isinstance(a, Var) else a

    def bind(v: Var) -> Var:
        names[v] = fresh = Var(v.name, v.type)
        return fresh

    stms: list[Stm] = []
    for stm in body:
        match stm:
            case Let(args=args):
                used = tuple(new(a) for a in args)
                stms.append(replace(stm, var=bind(stm.var), args=used))
            case Load(index=index):
                at = new(index)
                stms.append(replace(stm, var=bind(stm.var), index=at))
            case Declare(init=init):
                start = new(init)
                stms.append(Declare(bind(stm.var), start))
            case Store(buffer=buffer, index=index, value=value):
                stms.append(Store(buffer, new(index), new(value)))
            case Assign(var=var, value=value):
                target = new(var)
                assert isinstance(target, Var)
                stms.append(Assign(target, new(value)))
            case _:
                raise AssertionError(f"no statement of a loop with a gate: {stm}")
    return tuple(stms)
