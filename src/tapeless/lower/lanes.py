"""Loops over the bits of a word that the emitter writes in vectors itself: what each statement of the body is.

Takes the body of a loop that begins at 0; `lanes_of` gives `Lanes`, or None where such vectors cannot do it.

Note [Lanes]
A comparison of vectors gives a mask, and eight bits of a word are one: packing truth values and asking for them costs
nothing in vectors. LLVM does not see that when it vectorises `word |= truth << k`: it shifts, selects and combines in each
lane, and then across the lanes. So a loop with the tag `lanes` is written in vectors from the start. Its body is simple: loads and
stores of neighbours, operations that have a vector form, index arithmetic that is the same in all lanes or counts
them, bits (`bit(word, k)` with the loop's own index), sums, and words that bits are put into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tapeless.ir.types import Atom, Const, DType, Var
from tapeless.lower.loopir import Assign, Let, Load, Stm, Store
from tapeless.lower.skipping import growth
from tapeless.ops.op import Instruction, Intrinsic
from tapeless.ops.table import TABLE

TYPES = (DType.bool, DType.i32, DType.i64, DType.f32, DType.f64)
SPELLED = ("not", "isnan", "bit")  # besides single instructions
LARGEST = 60  # statements


@dataclass
class Lanes:
    """body:   what is done in vectors, in order
    scalars: index arithmetic, once for a vector, and loads of what all lanes share
    sums:    what is added to a variable from outside
    words:   the truth value whose bits become those of a variable
    """

    body: list[Let | Load | Store] = field(default_factory=list)
    scalars: dict[Var, int] = field(default_factory=dict)  # by how much they grow from lane to lane
    sums: dict[Var, Atom] = field(default_factory=dict)
    words: dict[Var, Atom] = field(default_factory=dict)

    def number(self, bits: int) -> int:
        """How many lanes vectors of so many bits have."""
        types = [s.buffer.dtype if isinstance(s, Store) else s.var.type.dtype for s in self.body if self.is_vector(s)]
        types += [v.type.dtype for v in self.sums]
        return bits // 8 // max((t.bytes for t in types if t is not DType.bool), default=8)

    def is_vector(self, stm: Let | Load | Store) -> bool:
        return isinstance(stm, Store) or stm.var not in self.scalars


def lanes_of(body: Sequence[Stm], index: Var) -> Lanes | None:
    """Note [Lanes]."""
    if len(body) > LARGEST or not all(isinstance(s, Let | Load | Store | Assign) for s in body):
        return None
    try:
        return _Sorting(body, index).run()
    except _NoLanes:
        return None


class _NoLanes(Exception):
    pass


def _require(condition: bool) -> None:
    if not condition:
        raise _NoLanes


class _Sorting:
    def __init__(self, body: Sequence[Stm], index: Var) -> None:
        self.body, self.index = body, index
        self.makers: Mapping[Atom, Let | Load] = {s.var: s for s in body if isinstance(s, Let | Load)}
        self.written = {s.buffer for s in body if isinstance(s, Store)}
        self.found = Lanes(scalars={index: 1})
        self.needed: set[Atom] = set()

    def run(self) -> Lanes:
        assigned = [s for s in self.body if isinstance(s, Assign)]
        for assign in assigned:
            self._assigned(assign)
        changing = {s.var for s in assigned}
        for stm in reversed(self.body):
            if isinstance(stm, Store):
                self.needed.add(stm.value)
                self.needed.add(stm.index)
            elif isinstance(stm, Load) and stm.var in self.needed:
                self.needed.add(stm.index)
            elif isinstance(stm, Let) and stm.var in self.needed:
                self.needed.update(stm.args)
        _require(changing.isdisjoint(self.needed) and len(changing) == len(assigned))
        for stm in self.body:
            if isinstance(stm, Store) or (isinstance(stm, Let | Load) and stm.var in self.needed):
                self._sort(stm)
        return self.found

    def _assigned(self, stm: Assign) -> None:
        """A sum, or a word."""
        match self.makers.get(stm.value):
            case Let(op="add", args=args, reassoc=True) if args.count(stm.var) == 1:
                self.found.sums[stm.var] = value = args[args[0] is stm.var]
            case Let(op="or", args=(word, put)) if word is stm.var:
                match self.makers.get(put):
                    case Let(op="select", args=(value, bit, Const(value=0))) if self._is_own_bit(bit):
                        self.found.words[stm.var] = value
                    case _:
                        raise _NoLanes
            case _:
                raise _NoLanes
        _require(stm.var.type.dtype in TYPES)
        self.needed.add(value)

    def _is_own_bit(self, bit: Atom) -> bool:
        match self.makers.get(bit):
            case Let(op="shl", args=(Const(value=1), k)):
                return k is self.index
        return False

    def _sort(self, stm: Let | Load | Store) -> None:
        match stm:
            case Store(buffer=buffer, index=index):
                _require(self._step(index) == 1 and buffer.dtype in TYPES)
                self._used(stm.value)
            case Load(buffer=buffer, index=index, var=var):
                step = self._step(index)
                _require(buffer.dtype in TYPES and (step == 1 or (step == 0 and buffer not in self.written)))
                if step == 0:
                    self.found.scalars[var] = 0
            case Let(var=var, op="bit", args=(word, k)):
                _require(k is self.index and self._step(word) == 0)
            case Let(var=var, op=op, args=args):
                steps = [self._step(a) for a in args]
                if var.type.dtype is DType.i64 and None not in steps:
                    step = growth(op, steps)
                    _require(step in (0, 1))
                    self.found.scalars[var] = step or 0
                else:
                    for a in args:
                        self._used(a)
                    self._has_vector_form(stm)
        self.found.body.append(stm)

    def _step(self, a: Atom) -> int | None:
        """By how much it grows from lane to lane. None for what is in vectors."""
        if a in self.makers or a is self.index:
            assert isinstance(a, Var)
            return self.found.scalars.get(a)
        return 0

    def _used(self, a: Atom) -> None:
        """Can it stand in a vector? All but what counts the lanes can."""
        _require(self._step(a) != 1)

    def _has_vector_form(self, let: Let) -> None:
        types = {a.type.dtype for a in (*let.args, let.var)}
        spelling = TABLE[let.op].llvm
        known = isinstance(spelling, Instruction) or (isinstance(spelling, Intrinsic) and let.var.type.dtype.is_float)
        _require(all(t in TYPES for t in types) and (known or let.op in SPELLED))


def tag_of(body: Sequence[Stm], index: Var, otherwise: str) -> str:
    return "lanes" if otherwise == "simd" and lanes_of(body, index) is not None else otherwise
