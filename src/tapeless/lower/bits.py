"""Loops over truth values that are packed 64 to a word: Note [Packed] in `ops/library.py`.

`lower_pack` lowers the library operation; where a sweep makes the truth values for it alone, `emit_packing` writes that
sweep's loop so that no bytes are stored. `find_words` and `emit_words` do the same for loops that read bits: a word is loaded once.

Note [Blocks of a word]
Both are a loop over words and in it one over 64 bits, whose number is a constant: LLVM unrolls and vectorises that, and the shifts
of bits become constants. The rest of the last word is one more loop of that kind. Simple ones are in vectors from the start: Note [Lanes]
in `lanes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tapeless.ir.core import Apply, Body, Index, Library, Sweep
from tapeless.ir.target import Target
from tapeless.ir.types import Atom, Const, DType, Var, i64
from tapeless.ir.walk import free_in_exp
from tapeless.lower.code import ONE, ZERO, Code, Loc
from tapeless.lower.lanes import tag_of
from tapeless.lower.loopir import Assign, Buffer, Declare, For, Let, Load, Space, Stm, Store
from tapeless.lower.skipping import Gate, emit_load, is_sum, renamed, sums_apart
from tapeless.lower.work import worth_cutting
from tapeless.ops.library import WORD

if TYPE_CHECKING:
    from tapeless.lower.lowering import Lowerer

SHIFT = i64(WORD.bit_length() - 1)


# -- packing


def packed_in(body: Body) -> dict[Var, Var]:
    """Results of sweeps that nobody but `pack` looks at, and what they are packed into."""
    packs = [(s.exp.args[0], s.vars[0]) for s in body.stms if isinstance(s.exp, Library) and s.exp.name == "pack"]
    if not packs:
        return {}
    uses = [v for s in body.stms for v in free_in_exp(s.exp)] + [r for r in body.results if isinstance(r, Var)]
    made = {v for s in body.stms if isinstance(s.exp, Sweep) for v in s.vars}
    return {v: words for v, words in packs if isinstance(v, Var) and v in made and uses.count(v) == 1}


def place_of_bits(lo: Lowerer, var: Var, exp: Sweep) -> Loc | None:
    """For a result that is packed while the sweep runs: memory that is never there, noted with that of the words."""
    words = lo.packed.get(var)
    simple = all(isinstance(s.exp, Apply | Index) and not s.vars[0].type.shape for s in exp.lam.body.stms)
    if words is None or not simple or exp.scans or lo.target != Target.cpu or worth_cutting(lo, exp):
        return None
    lo.arrays[words] = lo.place(words)
    place = Loc(Buffer(var.name, DType.bool, Space.heap), DType.bool, lo.dims(var.type.shape), (ONE,))
    lo.bits[place.buffer] = lo.arrays[words]
    return place


def lower_pack(lo: Lowerer, var: Var, exp: Library) -> None:
    if var in lo.arrays:  # by the sweep
        return
    source, lo.arrays[var] = lo.loc(exp.args[0]), lo.place(var)
    place = Loc(Buffer(var.name, DType.bool, Space.heap), DType.bool, source.shape, (ONE,))
    i = Var("i", ZERO.type)
    with lo.code.nested() as body:
        lo.code.store(place, [i], lo.code.load(source, [i]))
    emit_packing(lo.code, For(i, ZERO, source.shape[0], tuple(body), 1, "simd"), {place.buffer: lo.arrays[var]})


def emit_packing(code: Code, loop: For, places: Mapping[Buffer, Loc]) -> None:
    """The loop, from 0 on, with bits of words instead of stores into these places."""

    opposite: dict[Atom, Atom] = {s.var: s.args[0] for s in loop.body if isinstance(s, Let) and s.op == "not"}
    turned = {s.buffer for s in loop.body if isinstance(s, Store) and s.buffer in places and s.value in opposite}
    body = [
        replace(s, value=opposite[s.value]) if isinstance(s, Store) and s.buffer in turned else s for s in loop.body
    ]

    def block(first: Atom, number: Atom, length: Atom) -> None:
        words = {place: code.declare(ZERO, "word") for place in places}
        k = Var(loop.var.name, loop.var.type)
        with code.nested() as inner:
            for stm in renamed(body, {loop.var: code.add(first, k)}):
                if isinstance(stm, Store) and stm.buffer in words:
                    word = words[stm.buffer]
                    bit = code.let("select", DType.i64, stm.value, code.let("shl", DType.i64, ONE, k), ZERO)
                    code.assign(word, code.let("or", DType.i64, word, bit))
                else:
                    code.emit(stm)
        made = For(k, ZERO, length, tuple(inner), 1, tag_of(inner, k, loop.tag))
        code.mark(made)
        code.emit(made)
        beyond = code.sub(i64(WORD), length)
        for place, word in words.items():
            value = code.let("not", DType.i64, word) if place in turned else word
            if beyond != ZERO:
                value = code.let("shr", DType.i64, code.let("shl", DType.i64, value, beyond), beyond)
            code.store(places[place], [number], value)

    _by_words(code, loop, block)


def _by_words(code: Code, loop: For, block: Callable[[Atom, Atom, Atom], None]) -> None:
    """Note [Blocks of a word]. `block` takes its first element, its number and its length."""
    assert loop.lo == ZERO
    count = code.let("shr", DType.i64, loop.hi, SHIFT, label="words")
    with code.loop(count, label="number") as number:
        block(code.mul(number, i64(WORD)), number, i64(WORD))
    end = code.mul(count, i64(WORD))
    rest = code.sub(loop.hi, end)
    code.branch(code.compare("gt", rest, ZERO), lambda: block(end, count, rest))


# -- reading


def find_words(body: Sequence[Stm], index: Var) -> dict[Var, Load]:
    """The bits that the body reads at the loop's index, and where their words come from."""
    if not all(isinstance(s, Let | Load | Store | Declare | Assign) for s in body):
        return {}
    written = {s.buffer for s in body if isinstance(s, Store)}
    makers = {s.var: s for s in body if isinstance(s, Let | Load | Declare)}
    found: dict[Var, Load] = {}
    for stm in body:
        match stm:
            case Let(var=var, op="bit", args=(Var() as word, at)) if at is index:
                load = makers.get(word)
                if isinstance(load, Load) and load.buffer not in written and _by_number(load.index, index, makers):
                    found[var] = load
    return found


def _by_number(at: Atom, index: Var, makers: Mapping[Var, Stm]) -> bool:
    """Whether a position depends on nothing inside of the loop but the number of the word."""
    if not isinstance(at, Var) or at not in makers:
        return at is not index
    match makers[at]:
        case Let(op="shr", args=(x, Const() as shift)) if x is index:
            return shift == SHIFT
        case Let(op="add" | "sub" | "mul", args=args):
            return all(_by_number(a, index, makers) for a in args)
        case _:
            return False


def emit_words(code: Code, loop: For, bits: Mapping[Var, Load], gate: Gate | None) -> None:
    """The loop, from 0 on, with each word loaded once, and nothing done where the gate's says so."""
    totals = [s.var for s in loop.body if isinstance(s, Assign) and is_sum(loop.body, s.var)]
    loads = {load.var: load for load in bits.values()}
    lets = {s.var: s for s in loop.body if isinstance(s, Let)}
    body = [s for s in loop.body if not (isinstance(s, Load) and s.var in loads)]
    tag = tag_of(body, loop.var, "simd")
    apart = [] if tag == "lanes" else totals  # lanes have sums of their own

    def block(first: Atom, number: Atom, length: Atom) -> None:
        words = {var: emit_load(code, load, lets, {loop.var: first}) for var, load in loads.items()}

        def run() -> None:
            with sums_apart(code, apart) as parts, code.loop(length, tag=tag, label=loop.var.name) as k:
                for stm in renamed(body, {loop.var: code.add(first, k), **parts, **words}):
                    own = isinstance(stm, Let) and stm.op == "bit" and stm.args[0] in words.values()
                    code.emit(replace(stm, args=(stm.args[0], k)) if own and isinstance(stm, Let) else stm)

        if gate is None:
            run()
        else:
            idle = code.compare("eq", words[bits[gate.truth].var], i64(-1 if gate.idle else 0))
            code.branch(idle, lambda: None, run)

    _by_words(code, loop, block)
