"""Polls: optimised LLVM IR asks at the back-edges of its loops whether it should stop.

`add_polls` takes the text of a module after the optimiser and gives it with polls. Relies on the beginning that
stopping.py has written: it says where the error record is, and where to go when the function should stop.

Note [Polls]
Ctrl-C sets a flag inside of Python, and somebody in the main thread has to look at it (Note [Interrupts] in
backends/cpu/interrupts.py says who does). Compiled code does at its polls: it reads one word, and calls the runtime where that is
not 0. Between two polls a thread runs about `WORK` instructions at most, well below a millisecond:
* a loop with nothing but instructions inside asks once in a strip of iterations. Where it ends when its index reaches a bound, the bound
  of the strip takes its place: the iterations are what they were, and only the last one of a strip finds out whether it is the last of all.
  Other loops count down.
* a loop with such loops inside asks in each iteration.
* a loop of few iterations, in constant number, asks nothing and counts as a part of what is around it.
LLVM sees none of it before the code is final. Polls that were there from the start made compiling a sixth to a half longer: loops over strips are
vectorised with bounds that change, and empty loops could not be removed any more. Now LLVM vectorises, unrolls and removes loops as before, and what
is left of them gets polls. One rule serves primal, derivatives and budgets, since they are all loops here.
A stop means that the function is left with its results half made; the error record is set, so nobody reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

WORK = 1 << 18  # instructions between two polls
CALL = 50  # instructions that a call counts for

FUNCTION = re.compile(r"^define [^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):')
TARGET = re.compile(r'label %([\w.$-]+|"[^"]*")')
START = re.compile(r"^  (%\S+) = load volatile i64, ptr (%\S+), align 8")
BRANCH = re.compile(r'^  br i1 (%[\w.$-]+), label %([\w.$-]+|"[^"]*"), label %([\w.$-]+|"[^"]*")')
PHI = re.compile(r"^  (%[\w.$-]+) = phi ")
INCOMING = re.compile(r'\[ ([^\[\]]+), %([\w.$-]+|"[^"]*") \]')
TEST = re.compile(r"^  (%[\w.$-]+) = icmp (?:samesign )?(eq|ne) (i\d+) (%[\w.$-]+), (%[\w.$-]+|-?\d+)$")
STEP = re.compile(r"^  (%[\w.$-]+) = add (?:nuw |nsw )*i\d+ (%[\w.$-]+), (-?\d+)$")
METADATA = re.compile(r"^!(\d+) = ", re.MULTILINE)


def add_polls(text: str) -> str:
    likely = 1 + max((int(n) for n in METADATA.findall(text)), default=-1)
    changed = FUNCTION.sub(lambda found: _Function(found, f", !prof !{likely}").polled(), text)
    if changed == text:
        return text
    missing = [d for d in ("i64 @rt_poll(ptr)", "ptr @rt_watched(ptr)") if f"declare {d[: d.index('(')]}(" not in text]
    declared = "".join(f"declare {d} nounwind\n" for d in missing)
    return f'{changed}\n{declared}!{likely} = !{{!"branch_weights", i32 {1 << 20}, i32 1}}\n'


@dataclass
class _Block:
    label: str
    lines: list[str] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Where the terminator begins: a switch has several lines."""
        if self.lines[-1].startswith("  ]"):
            return max(k for k, line in enumerate(self.lines) if line.startswith("  switch "))
        return len(self.lines) - 1

    def targets(self) -> list[str]:
        return TARGET.findall("\n".join(self.lines[self.end :]))

    def retarget(self, old: str, new: str) -> None:
        for k in range(self.end, len(self.lines)):
            self.lines[k] = TARGET.sub(lambda t: f"label %{new}" if t[1] == old else t[0], self.lines[k])

    def work(self) -> int:
        return sum(CALL if " call " in line and "@llvm." not in line else 1 for line in self.lines)

    def phis(self) -> Iterable[int]:
        return (k for k, line in enumerate(self.lines) if PHI.match(line))

    def incoming(self, old: str, new: Iterable[str], keep: bool = False) -> None:
        """Values that came from one block come from others, or from others too."""
        for k in self.phis():
            line = self.lines[k]
            entries = INCOMING.findall(line)
            value = next((v for v, label in entries if label == old), None)
            if value is None:
                continue
            entries = [e for e in entries if keep or e[1] != old] + [(value, label) for label in new]
            head = line[: INCOMING.search(line).start()]  # type: ignore[union-attr]
            self.lines[k] = head + ", ".join(f"[ {v}, %{label} ]" for v, label in entries)


@dataclass
class _Loop:
    header: str
    latches: list[str]
    body: set[str]
    work: int | None = None  # of all iterations, if that is little


@dataclass(frozen=True)
class _Count:
    """The index of a loop that ends when it reaches `bound`. `test` is the comparison in the latch."""

    test: str
    kind: str
    start: str
    following: str
    step: int
    bound: str

    @property
    def trips(self) -> int | None:
        if self.bound.startswith("%") or self.start.startswith("%"):
            return None
        return (int(self.bound) - int(self.start)) // self.step


class _Function:
    def __init__(self, found: re.Match[str], likely: str) -> None:
        self.text, self.body, self.likely = found[0], found[1], likely
        self.names = 0

    def polled(self) -> str:
        if "load volatile i64, ptr" not in self.body:
            return self.text
        self.blocks = _blocks(self.body)
        loops = self._loops()
        if not loops:
            return self.text
        self._find_start()
        for loop in loops:
            self._poll(loop, loops)
        if not self.names:
            return self.text
        begin = self.blocks[self.start]
        begin.lines.insert(self.line + 1, f"  %tp.watched = call ptr @rt_watched(ptr {self.err})")
        body = "\n\n".join(f"{b.label}:\n" + "\n".join(b.lines) for b in self.blocks.values())
        return f"{self.text[: self.text.index('{') + 1]}\n{body}\n}}"

    def _find_start(self) -> None:
        """Note [Stopping]: the error record, and the way out."""
        for block in self.blocks.values():
            for k, line in enumerate(block.lines):
                found = START.match(line)
                if found:
                    self.start, self.line, self.err = block.label, k, found[2]
                    self.stopped = _when_set(block, found[1])
                    return
        raise AssertionError("a function with loops does not ask whether it should stop")

    # -- loops

    def _loops(self) -> list[_Loop]:
        """Inner ones first."""
        found: dict[str, _Loop] = {}
        before: dict[str, list[str]] = {label: [] for label in self.blocks}
        targets = {label: list(dict.fromkeys(block.targets())) for label, block in self.blocks.items()}
        for label, others in targets.items():
            for other in others:
                before[other].append(label)
        for latch, header in _back_edges(next(iter(self.blocks)), targets):
            loop = found.setdefault(header, _Loop(header, [], {header}))
            loop.latches.append(latch)
            left = [latch]
            while left:
                label = left.pop()
                if label not in loop.body:
                    loop.body.add(label)
                    left += before[label]
        return sorted(found.values(), key=lambda loop: len(loop.body))

    def _poll(self, loop: _Loop, loops: list[_Loop]) -> None:
        inner = [other for other in loops if other is not loop and other.header in loop.body]
        count = self._count(loop)
        if any(other.work is None for other in inner):
            self._each_time(loop)
            return
        work = sum(self.blocks[label].work() for label in loop.body) + sum(other.work or 0 for other in inner)
        trips = count.trips if count is not None else None
        if trips is not None and 0 <= trips * work <= WORK:
            loop.work = trips * work
        elif count is not None:
            self._in_strips(loop, count, max(1, WORK // work), loops)
        else:
            self._counted_down(loop, max(1, WORK // work))

    def _count(self, loop: _Loop) -> _Count | None:
        """How a loop is counted, if it is by a comparison at its one end."""
        if len(loop.latches) != 1 or len(self._outside(loop)) != 1:
            return None
        latch, header = self.blocks[loop.latches[0]], self.blocks[loop.header]
        branch = BRANCH.match(latch.lines[-1])
        tests = [t for t in map(TEST.match, latch.lines) if t and branch and t[1] == branch[1]]
        if branch is None or not tests or (tests[0][2] == "eq") != (branch[3] == loop.header) or branch[2] == branch[3]:
            return None
        _, _, kind, following, bound = tests[0].groups()
        lines = [line for label in loop.body for line in self.blocks[label].lines]
        if sum(line.count(branch[1]) for line in lines) != 2 or any(line.startswith(f"  {bound} = ") for line in lines):
            return None
        for step in filter(None, map(STEP.match, lines)):
            if step[1] == following:
                for k in header.phis():
                    entries = dict((label, v) for v, label in INCOMING.findall(header.lines[k]))
                    if header.lines[k].startswith(f"  {step[2]} = ") and entries[latch.label] == following:
                        start = entries[self._outside(loop)[0]]
                        return _Count(tests[0][0], kind, start, following, int(step[3]), bound)
        return None

    def _outside(self, loop: _Loop) -> list[str]:
        """Where the loop is entered from. Only headers of phis tell, and all have some here or are entered once."""
        return [b.label for b in self.blocks.values() if b.label not in loop.latches and loop.header in b.targets()]

    # -- polls

    def _name(self, hint: str) -> str:
        self.names += 1
        return f"tp.{hint}.{self.names}"

    def _new(self, hint: str) -> _Block:
        block = _Block(self._name(hint))
        self.blocks[block.label] = block
        return block

    def _ask(self, header: str, block: _Block) -> list[str]:
        """Ends `block` with a poll before `header`; the blocks from which that is reached then."""
        word, quiet, error, sound = (f"%{self._name(hint)}" for hint in ("word", "quiet", "error", "sound"))
        look = self._new("look")
        block.lines += [
            f"  {word} = load volatile i64, ptr %tp.watched, align 8",
            f"  {quiet} = icmp eq i64 {word}, 0",
            f"  br i1 {quiet}, label %{header}, label %{look.label}{self.likely}",
        ]
        look.lines += [
            f"  {error} = call i64 @rt_poll(ptr {self.err})",
            f"  {sound} = icmp eq i64 {error}, 0",
            f"  br i1 {sound}, label %{header}, label %{self.stopped}{self.likely}",
        ]
        self.blocks[self.stopped].incoming(self.start, [look.label], keep=True)
        return [block.label, look.label]

    def _each_time(self, loop: _Loop) -> None:
        for latch in loop.latches:
            ask = self._new("ask")
            self.blocks[latch].retarget(loop.header, ask.label)
            self.blocks[loop.header].incoming(latch, self._ask(loop.header, ask))

    def _counted_down(self, loop: _Loop, every: int) -> None:
        left = f"%{self._name('left')}"
        entries = [(str(every), label) for label in self._outside(loop)]
        for latch in loop.latches:
            count, ask = self._new("count"), self._new("ask")
            less, none = f"%{self._name('less')}", f"%{self._name('none')}"
            count.lines += [
                f"  {less} = add nsw i64 {left}, -1",
                f"  {none} = icmp ne i64 {less}, 0",
                f"  br i1 {none}, label %{loop.header}, label %{ask.label}{self.likely}",
            ]
            self.blocks[latch].retarget(loop.header, count.label)
            asked = self._ask(loop.header, ask)
            self.blocks[loop.header].incoming(latch, [count.label, *asked])
            entries += [(less, count.label), *((str(every), label) for label in asked)]
        self._phi(loop.header, left, "i64", entries)

    def _in_strips(self, loop: _Loop, count: _Count, every: int, loops: list[_Loop]) -> None:
        (before,), (latch,) = self._outside(loop), loop.latches
        end, most = self.blocks[latch], every * abs(count.step)
        bound, first, following = (f"%{self._name(hint)}" for hint in ("bound", "first", "following"))
        turn, ask = self._new("turn"), self._new("ask")
        outside = self.blocks[before]
        outside.lines[outside.end : outside.end] = self._strip(count, count.start, most, first)
        _, test, kind, here, whole = TEST.match(count.test).groups()  # type: ignore[union-attr]
        end.lines[end.lines.index(count.test)] = count.test.removesuffix(whole) + bound
        (exit_,) = (label for label in end.targets() if label != loop.header)
        end.retarget(exit_, turn.label)
        done = f"%{self._name('done')}"
        turn.lines += [
            f"  {done} = icmp eq {kind} {here}, {whole}",
            f"  br i1 {done}, label %{exit_}, label %{ask.label}{self.likely}",
        ]
        self.blocks[exit_].incoming(latch, [turn.label])
        ask.lines += self._strip(count, here, most, following)
        asked = self._ask(loop.header, ask)
        self.blocks[loop.header].incoming(latch, [latch, *asked])
        entries = [(first, before), (bound, latch), *((following, label) for label in asked)]
        self._phi(loop.header, bound, kind, entries)
        for other in loops:
            if other.header == exit_ and latch in other.latches:
                other.latches[other.latches.index(latch)] = turn.label

    def _strip(self, count: _Count, here: str, most: int, result: str) -> list[str]:
        """The bound of the strip that begins here."""
        left, few, length = (f"%{self._name(hint)}" for hint in ("left", "few", "length"))
        ends = (count.bound, here) if count.step > 0 else (here, count.bound)
        return [
            f"  {left} = sub {count.kind} {', '.join(ends)}",
            f"  {few} = icmp ult {count.kind} {left}, {most}",
            f"  {length} = select i1 {few}, {count.kind} {left}, {count.kind} {most}",
            f"  {result} = {'add' if count.step > 0 else 'sub'} {count.kind} {here}, {length}",
        ]

    def _phi(self, label: str, name: str, kind: str, entries: list[tuple[str, str]]) -> None:
        text = ", ".join(f"[ {value}, %{source} ]" for value, source in entries)
        self.blocks[label].lines.insert(0, f"  {name} = phi {kind} {text}")


def _blocks(body: str) -> dict[str, _Block]:
    blocks: dict[str, _Block] = {}
    block = _Block("")
    for line in body.splitlines():
        label = LABEL.match(line)
        if label:
            block = blocks[label[1]] = _Block(label[1])
        elif line:
            block.lines.append(line)
    return blocks


def _back_edges(entry: str, targets: dict[str, list[str]]) -> Iterable[tuple[str, str]]:
    """From the end of a loop to its beginning, which has been passed on the way."""
    state: dict[str, bool] = {entry: True}  # whether it is on the way
    way = [(entry, iter(targets[entry]))]
    while way:
        label, rest = way[-1]
        following = next(rest, None)
        if following is None:
            state[label] = False
            way.pop()
        elif following not in state:
            state[following] = True
            way.append((following, iter(targets[following])))
        elif state[following]:
            yield label, following


def _when_set(block: _Block, error: str) -> str:
    """Where the block goes when the error record is not 0."""
    branch = BRANCH.match(block.lines[-1])
    for line in block.lines:
        test = TEST.match(line)
        if branch and test and test[1] == branch[1] and test[4] == error and test[5] == "0":
            return branch[3] if test[2] == "eq" else branch[2]
    raise AssertionError(f"a function does not stop where its error record is set: {block.lines[-1]}")
