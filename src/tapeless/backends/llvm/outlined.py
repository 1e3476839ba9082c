"""Pieces of a large program as functions of their own: Note [Pieces] in pieces.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tapeless.backends.llvm import errors, stopping
from tapeless.backends.llvm.code import Code, emits
from tapeless.backends.llvm.handover import Arguments, Handover
from tapeless.backends.llvm.pieces import Piece, Table
from tapeless.backends.llvm.writer import MEMORY, Value, Writer
from tapeless.ir.types import Var
from tapeless.lower.ir.counts import Counts


@emits(Piece)
def write(outer: Code, piece: Piece) -> None:
    """Statements as a function, and its call."""
    block, bound = piece.stms, piece.bound
    w, shared = outer.w, outer.shared
    known = shared.pieces.counted
    counts = (known.get(id(block[0])) if len(block) == 1 else None) or Counts(block, known)
    own = counts.private(shared.mentions)
    assigned, moved = counts.assigned, counts.moved

    shared.regions += 1
    name = f"{shared.program.name}.piece{shared.regions}"
    inner = type(outer)(shared, Writer(w.module, shared.flags), "", parallel=outer.parallel)
    given = Arguments(outer, inner)
    changing = [v for v in counts.free if v in assigned]
    read = [v for v in counts.free if v not in assigned]
    given.values(v for v in read if v not in outer.tables)
    in_tables = _in_tables(outer, inner, given, [*(v for v in read if v in outer.tables), *bound])
    inner.slots.update((v, in_tables[v]) for v in read if v in outer.tables)
    for v in bound:  # pieces inside find it where it was made: it is in the table only at the end
        del inner.tables[v]
    if not outer.parallel and shared.program.threads not in inner.values:
        given.values([shared.program.threads])
    places = {v: [given.slot("ptr", address) for address in outer.slots[v]] for v in changing}
    for buffer in (b for b in counts.buffers if b not in own):
        if buffer in moved:
            inner.borrowed[buffer] = given.slot("ptr", outer.heap_slot(buffer))
            if buffer in outer.kept:
                inner.kept[buffer] = given.slot("ptr", outer.kept[buffer])
        else:
            given.pointers([buffer])
    stopping.begin(inner, block)
    for v, addresses in places.items():
        inner.slots[v] = tuple(inner.w.alloca(MEMORY[v.type.dtype], v.name) for _ in addresses)
        _copy(inner, v, addresses, inner.slots[v])
    inner.whole = id(block[0]) if len(block) == 1 else 0
    inner.statements(block)
    for v, addresses in places.items():
        _copy(inner, v, inner.slots[v], addresses)
    for v in bound:
        inner.store_value(v.type.dtype, inner.value(v), in_tables[v])
    stopping.finish(inner)
    attributes = shared.attributes("noinline noimplicitfloat " if piece.once else "noinline ")
    function = w.module.function(name, ", ".join(given.taken), attributes, inner.w.body(), piece.plain)
    w.do(f"call void {function}({', '.join(given.given)})")
    if inner.can_fail:
        errors.leave_if_failed(outer)


@emits(Table)
def table(code: Code, stm: Table) -> None:
    """Runs hand on one pointer to it, and no values."""
    array, used = code.w.fresh("table"), 0
    for v in stm.bound:
        parts = tuple(range(used, used + (2 if v.type.dtype.is_complex else 1)))
        code.tables[v] = (array, parts)
        code.slots[v] = tuple(code.w.slot(array, k) for k in parts)
        used += len(parts)
    code.w.allocas.append(f"  {array} = alloca [{max(used, 1)} x i64], align 8")


def _in_tables(outer: Code, inner: Code, given: Handover, scalars: Iterable[Var]) -> dict[Var, Value]:
    """Where scalars lie that are in a table of the code around."""
    pointers: dict[str, str] = {}
    found: dict[Var, Value] = {}
    for v in scalars:
        array, parts = outer.tables[v]
        if array not in pointers:
            pointers[array] = given.slot("ptr", array)
        inner.tables[v] = (pointers[array], parts)
        found[v] = tuple(inner.w.slot(pointers[array], k) for k in parts)
    return found


def _copy(code: Code, var: Var, froms: Sequence[str], tos: Sequence[str]) -> None:
    kind = MEMORY[var.type.dtype]
    for a, b in zip(froms, tos, strict=True):
        code.w.do(f"store {kind} {code.load_part(var.type.dtype, a)}, ptr {b}, align {var.type.dtype.real.bytes}")
