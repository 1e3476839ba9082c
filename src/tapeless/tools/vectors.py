"""Which loops of a program LLVM has vectorised.

Takes a Loop IR program; gives one `Verdict` for each of its loops, in the order in which they end. Compiles the program
once more with a mark on each loop and reads the optimised LLVM IR.

Note [Marks]
A `for` loop is emitted with a metadata node of its own, or with several, where it has a form of its own for few
iterations. LLVM keeps the operands of such a node when it vectorises, unrolls or copies the loop, so a number that the
emitter adds to it comes back with every loop that was made of it. The vector form also gets `llvm.loop.isvectorized`,
as does a loop that was only interleaved: the lanes are those of the vector types in its own blocks. A `while` loop has
no node and thus no mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tapeless.backends.llvm import host, optimize
from tapeless.backends.llvm.code import MARK
from tapeless.backends.llvm.emit import emit
from tapeless.lower.ir.loopir import For, Program, Stm, While
from tapeless.lower.ir.walk import children

FUNCTION = re.compile(r"^define .*?\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r'^(?:([\w.$-]+)|"([^"]*)"):')
TARGET = re.compile(r'label %(?:([\w.$-]+)|"([^"]*)")')
LOOP = re.compile(r"!llvm\.loop (!\d+)")
VECTOR = re.compile(r"<(\d+) x [a-z]")
METADATA = re.compile(r"^(!\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
NUMBER = re.compile(rf'!"{re.escape(MARK)}", i32 (\d+)')
VECTORISED = '!"llvm.loop.isvectorized"'


@dataclass(frozen=True)
class Verdict:
    """What became of a loop. `lanes` are the elements at a time, 1 for a scalar loop, None when it is not known."""

    lanes: int | None
    within: bool = False  # vectors inside one iteration, not across iterations
    gone: bool = False  # unrolled, or replaced by a call or by nothing


UNKNOWN = Verdict(None)


def loops_of(program: Program) -> Iterator[For | While]:
    for f in (*program.functions, program):
        yield from loops_inside_out(f.body)


def loops_inside_out(stms: Iterable[Stm]) -> Iterator[For | While]:
    """All loops, each after those inside it: the order in which lowering and the emitter finish them."""
    for stm in stms:
        for block in children(stm):
            yield from loops_inside_out(block)
        if isinstance(stm, (For, While)):
            yield stm


def verdicts(program: Program) -> list[Verdict]:
    loops = list(loops_of(program))
    target = host.host()
    text = emit(program, target, {id(stm): number for number, stm in enumerate(loops)}).text
    found, strays = _found(_optimised(text))
    answer = []
    for number, stm in enumerate(loops):
        if isinstance(stm, While):
            answer.append(UNKNOWN if strays else Verdict(1))
        else:
            answer.append(_best(found.get(number, [])))
    return answer


def _best(copies: list[Verdict]) -> Verdict:
    """LLVM makes several loops of one: the vector form, what is left over, versions."""
    if not copies:
        return Verdict(None, gone=True)
    return max(copies, key=lambda v: (not v.within and (v.lanes or 1) > 1, v.lanes or 1))


def _optimised(text: str) -> str:
    module = optimize.parse(text)
    optimize.optimize(module)
    return str(module)


def _found(text: str) -> tuple[dict[int, list[Verdict]], bool]:
    """The loops of optimised code by number, and whether there are vectorised ones without a number."""
    nodes = dict(METADATA.findall(text))
    found: dict[int, list[Verdict]] = {}
    strays = False
    for function in FUNCTION.finditer(text):
        for node, lanes in _lanes(function.group(1)):
            operands = " ".join(nodes.get(name, "") for name in re.findall(r"!\d+", nodes.get(node, "")))
            vectorised = VECTORISED in operands
            mark = NUMBER.search(operands)
            if mark is None:
                strays = strays or (vectorised and lanes > 1)
            else:
                verdict = Verdict(lanes, within=lanes > 1 and not vectorised)
                found.setdefault(int(mark.group(1)), []).append(verdict)
    return found, strays


# -- the loops of one function


@dataclass
class _Block:
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    @property
    def lanes(self) -> int:
        return max((int(n) for line in self.lines for n in VECTOR.findall(line)), default=1)


def _lanes(body: str) -> list[tuple[str, int]]:
    """For each loop with a node: the node, and the widest vector in the blocks that belong to no loop inside it."""
    blocks = _blocks(body)
    latches = [(name, m.group(1)) for name, b in blocks.items() if b.lines and (m := LOOP.search(b.lines[-1]))]
    if not latches:
        return []
    dominators = _dominators(blocks)
    loops = []
    for latch, node in latches:
        heads = [h for h in blocks[latch].after if h in dominators.get(latch, ())]
        if heads:
            loops.append((node, _natural(blocks, heads[0], latch)))
    result = []
    for node, inside in loops:
        nested = {name for _, other in loops if other < inside for name in other}
        result.append((node, max((blocks[name].lanes for name in inside - nested), default=1)))
    return result


def _blocks(body: str) -> dict[str, _Block]:
    blocks: dict[str, _Block] = {}
    current = blocks.setdefault("", _Block())  # the first block, when it has no label
    for line in body.splitlines():
        if label := LABEL.match(line):
            current = blocks.setdefault(label.group(1) or label.group(2), _Block())
        elif line.strip():
            current.lines.append(line)
    if not blocks[""].lines:
        del blocks[""]
    for name, block in blocks.items():
        text = "\n".join(block.lines[_terminator(block.lines) :])
        block.after = list(dict.fromkeys(a or b for a, b in TARGET.findall(text)))
        for target in block.after:
            if target in blocks:
                blocks[target].before.append(name)
    return blocks


def _terminator(lines: list[str]) -> int:
    """Where the last instruction starts: a switch takes several lines."""
    for k in range(len(lines) - 1, -1, -1):
        if lines[k].lstrip().startswith(("br ", "switch ")):
            return k
    return len(lines)


def _dominators(blocks: dict[str, _Block]) -> dict[str, frozenset[str]]:
    order = _reverse_postorder(blocks)
    entry = order[0]
    every = frozenset(order)
    dominators = dict.fromkeys(order, every) | {entry: frozenset({entry})}
    changed = True
    while changed:
        changed = False
        for name in order[1:]:
            above = [dominators[p] for p in blocks[name].before if p in dominators]
            new = frozenset.intersection(*above) | {name}
            if new != dominators[name]:
                dominators[name] = new
                changed = True
    return dominators


def _reverse_postorder(blocks: dict[str, _Block]) -> list[str]:
    entry = next(iter(blocks))
    order: list[str] = []
    seen = {entry}
    stack = [(entry, iter(blocks[entry].after))]
    while stack:
        name, rest = stack[-1]
        target = next((t for t in rest if t in blocks and t not in seen), None)
        if target is None:
            order.append(name)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(blocks[target].after)))
    return order[::-1]


def _natural(blocks: dict[str, _Block], head: str, latch: str) -> frozenset[str]:
    inside, work = {head}, [latch]
    while work:
        name = work.pop()
        if name not in inside:
            inside.add(name)
            work.extend(blocks[name].before)
    return frozenset(inside)
