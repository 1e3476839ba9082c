"""Lowering of branches and sequential loops: carried scalars become variables, carried arrays stay in place or
swap buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapeless.ir.core import Atom, Body, For, If, Var, While
from tapeless.ir.types import zero_of
from tapeless.lower.core.code import ZERO, Loc
from tapeless.lower.core.lowerer import Lowerer, lowers
from tapeless.lower.core.shown_loops import show_in_strips
from tapeless.lower.ir import loopir
from tapeless.lower.ir.loopir import Alloc, Buffer, Space, Swap
from tapeless.passes.analysis.places import branch_roots, in_place, roots_of, written_over

# -- branches


@lowers(If)
def lower_if(lo: Lowerer, vars: tuple[Var, ...], exp: If) -> None:
    code = lo.code
    slots: dict[int, Var] = {}
    places: dict[int, Loc] = {}
    late: dict[int, Buffer] = {}  # arrays whose size only the taken arm knows
    roots = branch_roots(exp)
    from_outside = _handed_on(exp)
    for k, v in enumerate(vars):
        if not v.type.shape:
            slots[k] = code.declare(zero_of(v.type.dtype), v.name)
            lo.scalars[v] = slots[k]
            continue
        root, _ = roots[k]
        if root is not None and root in lo.arrays:
            places[k] = lo.loc(root)
            lo.wanted.pop(v, None)
        elif any(d in vars for d in v.type.shape):
            late[k] = Buffer(v.name, v.type.dtype, Space.heap)
        else:
            places[k] = lo.place(v)
            if k not in from_outside:
                for arm in (exp.then, exp.orelse):
                    lo.plan(arm, {k: places[k]})

    def lower_arm(body: Body) -> None:
        def run() -> None:
            lo.body(body)
            for k, r in enumerate(body.results):
                if k in places:
                    code.copy(lo.loc(r), places[k])
                elif k in late:
                    source = lo.loc(r)
                    code.emit(Alloc(late[k], code.room(source.shape)))
                    code.copy(source, Loc(late[k], source.dtype, source.shape, code.row_major(source.shape)))
            assign_together(lo, [(slots[k], lo.atom(body.results[k])) for k in slots])

        lo.scoped(run)

    code.branch(lo.atom(exp.cond), lambda: lower_arm(exp.then), lambda: lower_arm(exp.orelse))
    for k, v in enumerate(vars):
        if k in places:
            lo.arrays[v] = places[k]
        elif k in late:
            lo.owned[-1].append(late[k])
            shape = lo.dims(v.type.shape)
            lo.arrays[v] = Loc(late[k], v.type.dtype, shape, code.row_major(shape))


def _handed_on(exp: If) -> set[int]:
    """The results that lie in memory of outside after one of the arms."""
    arms = [roots_of(arm, arm.results) for arm in (exp.then, exp.orelse)]
    return {k for roots in arms for k, (root, _) in enumerate(roots) if root is not None}


def assign_together(lo: Lowerer, pairs: Sequence[tuple[Var, Atom]]) -> None:
    """Assigns as if at once: a value that is itself among the targets is saved first."""
    code = lo.code
    targets = {v for v, _ in pairs}
    saved: list[tuple[Var, Atom]] = []
    for v, value in pairs:
        if value is v:
            continue
        if isinstance(value, Var) and value in targets:
            value = code.let("identity", value.type.dtype, value, label=value.name)
        saved.append((v, value))
    for v, value in saved:
        code.assign(v, value)


# -- loops


class Carried:
    """The carried values of one loop."""

    def __init__(self, lo: Lowerer, params: tuple[Var, ...], inits: tuple[Atom, ...], body: Body) -> None:
        self.lo, self.params, self.body = lo, params, body
        self.slots: dict[int, Var] = {}
        self.arrays: dict[int, Loc] = {}
        self.spare: dict[int, Loc] = {}
        self.moves: dict[int, int] = {}  # result k lies in the memory of parameter moves[k]
        self.over: set[int] = set()  # results that are written over their parameter
        code = lo.code
        for k, (p, a) in enumerate(zip(params, inits, strict=True)):
            if not p.type.shape:
                self.slots[k] = code.declare(lo.atom(a), p.name)
                lo.scalars[p] = self.slots[k]
            else:
                self.arrays[k] = lo.loc(a)
                lo.arrays[p] = self.arrays[k]
        for k in self.arrays:
            for j in self.arrays:
                if in_place(body, body.results[k], params[j]):
                    self.moves[k] = j
                    break
        for k in self.arrays:
            if k not in self.moves and k not in self.moves.values() and written_over(body, body.results[k], params[k]):
                self.moves[k] = k
                self.over.add(k)
        for k in self.arrays:
            if k not in self.moves:
                self.spare[k] = self._second_buffer(k)

    def _second_buffer(self, k: int) -> Loc:
        loc = self.arrays[k]
        spare = self.lo.code.allocate(loc.dtype, loc.shape, f"{self.params[k].name}_next")
        self.lo.owned[-1].append(spare.buffer)
        return spare

    def _keeps_size(self, k: int) -> bool:
        """Whether the result is known to fit into the spare buffer before it is made: a test may come after that."""
        result = self.body.results[k].type.shape
        return all(
            d is e or (isinstance(d, int) and d == e) for d, e in zip(self.params[k].type.shape, result, strict=True)
        )

    def iteration(self) -> None:
        """The body, and the carried values made ready for the next one."""
        lo, code = self.lo, self.lo.code
        lo.plan(self.body, {k: loc for k, loc in self.spare.items() if self._keeps_size(k)})
        lo.plan(self.body, {k: self.arrays[k] for k in self.over})

        def run() -> None:
            lo.body(self.body)
            for k, spare in self.spare.items():
                code.copy(lo.loc(self.body.results[k]), spare)
            assign_together(lo, [(slot, lo.atom(self.body.results[k])) for k, slot in self.slots.items()])

        lo.scoped(run)
        self._move_results()

    def _move_results(self) -> None:
        """Each result into the memory of its parameter: by exchanging buffers, by copying where that is not
        possible.
        """
        code = self.lo.code
        lies = {k: self.spare[k] if k in self.spare else self.arrays[self.moves[k]] for k in self.arrays}
        moving = [k for k in self.arrays if lies[k].buffer is not self.arrays[k].buffer]
        if all(_swappable(loc) for k in moving for loc in (lies[k], self.arrays[k])):
            for k in moving:
                target, source = self.arrays[k], lies[k]
                if source.buffer is target.buffer:
                    continue
                code.emit(Swap(target.buffer, source.buffer))
                for j in moving:  # what lay in the target now lies where the source was
                    if lies[j].buffer is target.buffer:
                        lies[j] = source
                lies[k] = target
            return
        saved: dict[int, Loc] = {}
        for k in moving:
            if k in self.spare:
                saved[k] = self.spare[k]
            else:
                saved[k] = self._second_buffer(k)
                code.copy(lies[k], saved[k])
        for k in moving:
            code.copy(saved[k], self.arrays[k])
            if k not in self.spare:
                code.free(saved[k].buffer)
                self.lo.owned[-1].remove(saved[k].buffer)

    def finish(self, vars: tuple[Var, ...]) -> None:
        for k, v in enumerate(vars):
            if k in self.slots:
                self.lo.scalars[v] = self.slots[k]
            else:
                self.lo.arrays[v] = self.arrays[k]


def _swappable(loc: Loc) -> bool:
    return loc.buffer.space is Space.heap and loc.offset == ZERO and loc.ordered


@lowers(For)
def lower_for(lo: Lowerer, vars: tuple[Var, ...], exp: For) -> None:
    code = lo.code
    carried = Carried(lo, exp.params, exp.inits, exp.body)
    with code.loop(lo.atom(exp.bound), label=exp.index.name, vectorize=not exp.hints.alike) as i:
        lo.scalars[exp.index] = i
        carried.iteration()
    show_in_strips(code)
    carried.finish(vars)


@lowers(While)
def lower_while(lo: Lowerer, vars: tuple[Var, ...], exp: While) -> None:
    code = lo.code
    carried = Carried(lo, exp.params, exp.inits, exp.body)
    with code.nested() as test:
        results: list[Atom] = []
        lo.scoped(lambda: results.extend(lo.body(exp.cond)))
    with code.nested() as body:
        carried.iteration()
    code.emit(loopir.While(tuple(test), results[0], tuple(body), code.span))
    carried.finish(vars)
