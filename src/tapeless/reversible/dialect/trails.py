"""What a reversible function leaves on its way, so that the way back can tell whether it was at the same values.

A `Trail` writes statements around the steps of loops: `seen` before a step and `left` after it, in both directions
(`support`). Both runs add to the same few integers; `transforms.reversible_trails` says what, and compares them.

Note [Watched names]
A loop that expands and then contracts loses its digits on the way back and finds them again (Note [Trails] of
ad/recovery/trails.py). What matters are values that an iteration changes and others read: names from outside of a loop
that its body both changes and uses. One that is only added to is watched around the loop, if a loop further out watches
it. So is an array of which each iteration changes the cell of its own number: every cell is changed once there.

Note [Rows of trails]
Iterations side by side cannot add to one trail. Each iteration of a parallel loop that always runs once leaves its own,
in a row of an array that is kept for the way back: a few numbers for each, however long it takes. In other parallel loops
(in loops, branches, blocks that are undone) nothing is left; a loop around watches what the parallel loop has changed.

Note [Trails of blocks]
A `compute` block that is undone in the end is run again on the way back, and undone with adjoints later. So the way there
leaves nothing in it; the second run begins a trail of the block alone, which has to be found when the block is undone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tapeless.reversible.dialect.places import names_in, reads, root_of, steps_of
from tapeless.reversible.dialect.syntax import Statements, as_load, helper, load, store
from tapeless.reversible.dialect.tree import (
    Ancilla,
    Block,
    Call,
    For,
    If,
    Reversible,
    Rotate,
    Step,
    Update,
    While,
    all_steps,
    blocks_of,
    changed_in,
    expressions_of,
    targets_of,
)

NAME = "_tapeless_trail"
OF_ROW = "_tapeless_row"  # the trail of an iteration
ROWS = "_tapeless_rows"


def used_in(block: Block, names: Iterable[str]) -> set[str]:
    """Of these names, those whose values matter to steps: what is only added to does not."""
    among = set(names)
    used: set[str | None] = set()
    for step in all_steps(block):
        targets = targets_of(step)
        if not isinstance(step, Update) or step.op in (ast.Mult, ast.Div):
            used.update(map(root_of, targets))
        indices = [i for t in targets for i in steps_of(t) if not isinstance(i, str)]
        for expr in (*expressions_of(step), *indices, *([step.after] if isinstance(step, (If, While)) else [])):
            used.update(root_of(place) for place in (reads(expr, among) if expr is not None else ()))
    return {n for n in used if n in among}


def changed_names(block: Block) -> list[str]:
    return [n for n in dict.fromkeys(root_of(t) for t in changed_in(block)) if n]


def watched(loop: For | While) -> frozenset[str]:
    """Note [Watched names]"""
    if isinstance(loop, For) and loop.parallel:
        return frozenset()
    own = {s.name for s in all_steps(loop.body) if isinstance(s, Ancilla)}
    changed = [n for n in changed_names(loop.body) if n not in own]
    counters = names_in(loop.target) if isinstance(loop, For) else set()
    targets = changed_in(loop.body)
    return frozenset(
        n for n in used_in(loop.body, changed) if not all(_by_counter(t, counters) for t in targets if root_of(t) == n)
    )


def _by_counter(place: ast.expr, counters: set[str]) -> bool:
    """Whether it is a cell, or cells, with the number of the iteration among its indices: no other iteration changes it."""
    match place:
        case ast.Subscript(value=ast.Name(), slice=ast.Name(id=name)):
            return name in counters
        case ast.Subscript(value=ast.Name(), slice=ast.Tuple(elts=elts)):
            return any(isinstance(e, ast.Name) and e.id in counters for e in elts)
        case _:
            return False


def watched_names(function: Reversible) -> tuple[str, ...]:
    """All that some loop of the function watches."""
    found: dict[str, None] = {}
    rowed = rowed_loops(function)

    def visit(block: Block) -> None:
        for step in block:
            if isinstance(step, (For, While)):
                found.update(dict.fromkeys(sorted(watched(step))))
            if not (isinstance(step, For) and step.parallel) or id(step) in rowed:
                for inner in blocks_of(step):
                    visit(inner)

    visit(function.body)
    return tuple(found)


def rowed_loops(function: Reversible) -> dict[int, str]:
    """Parallel loops that leave rows, by their ids, with the names of these: Note [Rows of trails]"""
    found: dict[int, str] = {}

    def visit(block: Block) -> None:
        for step in block:
            match step:
                case For(parallel=True) if _count_of(step) is not None:
                    inner = [s for s in all_steps(step.body) if isinstance(s, (For, While))]
                    if any(watched(s) for s in inner):
                        found[id(step)] = f"{ROWS}{len(found)}"
                case Ancilla(body=body):
                    visit(body)

    visit(function.body)
    return found


def _count_of(loop: For) -> ast.expr | None:
    """How many iterations it has, if it counts them from 0."""
    match loop:
        case For(target=ast.Name(), items=ast.Call(args=[count], keywords=[])):
            return count
        case _:
            return None


@dataclass
class Trail:
    """`slots`: the numbers of the names that are watched anywhere. `current`: those watched where it is writing."""

    slots: dict[str, int]
    rowed: dict[int, str]
    fresh: Callable[[str], str]
    backwards: bool = False
    name: str = NAME
    current: frozenset[str] = field(default=frozenset())
    silent: bool = False  # in parallel loops and blocks that are undone

    def around(self, step: Step, make: Callable[[], Statements]) -> Statements:
        """The statements of a step, which `make` writes, with what looks at the watched places that it changes."""
        match step:
            case For() if id(step) in self.rowed:
                return self._in_rows(step, make)
            case For() | While() if not self.silent:
                before, inside = self.current, watched(step)
                outside = [n for n in changed_names(step.body) if n in before and n not in inside]
                self.current, self.silent = inside, isinstance(step, For) and step.parallel
                made = make()
                self.current, self.silent = before, False
                return self._watching([load(n) for n in outside], made)
            case Update() | Rotate() | Call() if not self.silent:
                places = [t for t in targets_of(step) if root_of(t) in self.current]
                roots = {root_of(t) or "" for t in targets_of(step)}
                indices = [i for t in places for i in steps_of(t) if isinstance(i, ast.expr)]
                if any(True for i in indices for _ in reads(i, roots)):  # after the step it may be another place
                    return make()
                return self._watching(places, make())
            case _:
                return make()

    def without(self, make: Callable[[], Statements]) -> Statements:
        """Statements that leave nothing."""
        before, self.silent = self.silent, True
        made = make()
        self.silent = before
        return made

    def of_block(
        self, first: Callable[[], Statements], rest: Callable[[], Statements], last: Callable[[], Statements]
    ) -> Statements:
        """On the way back: a block that is run again, what is undone then, and the block undone. Note [Trails of blocks]"""
        before, direction, name = self.name, self.backwards, self.fresh("block")
        self.name, self.backwards = name, False
        run = first()
        self.name, self.backwards = before, direction
        undone = rest()
        self.name, self.backwards = name, True
        found = last()
        self.name, self.backwards = before, direction
        if self.silent or not any(isinstance(n, ast.Name) and n.id == name for s in run for n in ast.walk(s)):
            return [*run, *undone, *found]
        joined = ast.Assign([store(before)], helper("joined", load(before), load(name)))
        return [self.start(name), *run, *undone, *found, joined]

    def _watching(self, places: Sequence[ast.expr], made: Statements) -> Statements:
        if not places or not made:
            return made
        slots = ast.Tuple([ast.Constant(self.slots[root_of(p) or ""]) for p in places], ast.Load())
        seen, trail = self.fresh("seen"), load(self.name)
        now = ast.Tuple([as_load(p) for p in places], ast.Load())
        first = [ast.Assign([store(self.name)], helper("back_to", trail))] if self.backwards else []
        look = ast.Assign([store(seen)], helper("seen", trail, now))
        word = "found" if self.backwards else "left"
        last = ast.Assign([store(self.name)], helper(word, trail, slots, load(seen), now))
        return [*first, look, *made, last]

    def _in_rows(self, loop: For, make: Callable[[], Statements]) -> Statements:
        """Note [Rows of trails]"""
        before, self.current, self.name = self.current, frozenset(), OF_ROW
        made = make()
        self.current, self.name = before, NAME
        (parallel,) = [s for s in made if isinstance(s, ast.For)]
        rows, index = load(self.rowed[id(loop)]), as_load(loop.target)
        begin = ast.Assign([store(OF_ROW)], helper("row_of", rows, index)) if self.backwards else self.start(OF_ROW)
        parallel.body = [begin, *parallel.body, ast.Expr(helper("keep_row", rows, index, load(OF_ROW)))]
        if self.backwards:
            return made
        count = _count_of(loop)
        assert count is not None
        size = ast.Constant(len(self.slots))
        return [ast.Assign([store(self.rowed[id(loop)])], helper("rows", count, size)), *made]

    def start(self, name: str = NAME) -> ast.stmt:
        """Two totals, the number of steps, and for each name the size below which nothing counts."""
        parts = (0, 0, 0, *[0.0] * len(self.slots))
        return ast.Assign([store(name)], ast.Tuple([ast.Constant(x) for x in parts], ast.Load()))


def trail_of(function: Reversible, fresh: Callable[[str], str], backwards: bool = False) -> Trail:
    slots = {n: k for k, n in enumerate(watched_names(function))}
    return Trail(slots, rowed_loops(function), fresh, backwards)
