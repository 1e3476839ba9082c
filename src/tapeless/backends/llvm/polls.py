"""Polls: optimised LLVM IR asks at the back-edges of its loops whether it should stop.

`add_polls` takes the text of a module after the optimiser and gives it with polls. Relies on the beginning that
stopping.py has written: it says where the error record is, and where to go when the function should stop.

Note [Polls]
Ctrl-C sets a flag inside of Python, and somebody in the main thread has to look at it (Note [Interrupts] in
backends/cpu/interrupts.py says who does). Compiled code does at its polls: it reads one word, and calls the runtime
where that is not 0. Between two polls a thread runs about `WORK` instructions at most, well below a millisecond:
* a loop with nothing but instructions inside asks once in a strip of iterations. It counts them down; where it is small and ends when its index
  reaches a bound, the bound of the strip takes the place of that one: the iterations are what they were, and only the
  last one of a strip finds out whether it is the last of all. (LLVM takes longer over such loops.)
* a loop with such loops inside asks in each iteration. A short one among them that walks over the row of an array asks nothing
  itself: rows of hundreds of megabytes would take as long as a person notices.
* a loop of few iterations, in constant number, asks nothing and counts as a part of what is around it.
* a call that is given memory counts as a loop: nobody knows how long it takes.
LLVM sees none of it before the code is final. Polls that were there from the start made compiling a sixth to a half longer: loops over strips are
vectorised with bounds that change, and empty loops could not be removed any more. Now LLVM vectorises, unrolls and removes loops as before, and what
is left of them gets polls. One rule serves primal, derivatives and budgets, since they are all loops here.
A stop means that the function is left with its results half made; the error record is set, so nobody reads them.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile

WORK = 1 << 18  # instructions between two polls
CALL = 50  # instructions that a call counts for
SMALL = 80  # instructions in an iteration of a loop over a row, which asks nothing inside another one
REST = 500  # and all iterations that an unrolled loop has left

REST_OF_UNROLLED = re.compile(r"\.(epil|prol)\b")
OFFSET = re.compile(r"^  (%[\w.$-]+) = (?:add|or|sub) (?:\w+ )*i64 (.*)$")
CELL = re.compile(r"^  %[\w.$-]+ = getelementptr .*, i64 (%[\w.$-]+)$")

ROWS = re.compile(r"@llvm\.mem(?:cpy|move|set)\..*, i64 %")

TARGET = re.compile(r'label %([\w.$-]+|"[^"]*")')
START = re.compile(r"^  (%\S+) = load volatile i64, ptr (%\S+), align 8")
BRANCH = re.compile(r'^  br i1 (%[\w.$-]+), label %([\w.$-]+|"[^"]*"), label %([\w.$-]+|"[^"]*")')
PHI = re.compile(r"^  (%[\w.$-]+) = phi ")
INCOMING = re.compile(r'\[ ([^\[\]]+), %([\w.$-]+|"[^"]*") \]')
TEST = re.compile(r"^  (%[\w.$-]+) = icmp (?:samesign )?(eq|ne) (i\d+) (%[\w.$-]+), (%[\w.$-]+|-?\d+)$")
STEP = re.compile(r"^  (%[\w.$-]+) = add (?:nuw |nsw )*i\d+ (%[\w.$-]+), (-?\d+)$")
# How the runtime is called, so that loops keep their registers. On x86 it saves those of integers alone: with
# `preserve_allcc`, LLVM 22 takes vector registers for saved that are not, and a poll that called changed results.
CONVENTION = {"aarch64": "preserve_allcc", "x86_64": "preserve_mostcc"}.get(platform.machine(), "ccc")
DECLARED = f"declare {CONVENTION} i64 @rt_poll(ptr) nounwind cold\ndeclare ptr @rt_watched(ptr) nounwind\n"
METADATA = re.compile(r"^!(\d+) = ", re.MULTILINE)


def add_polls(text: str) -> str:
    likely = 1 + max((int(n) for n in METADATA.findall(text, text.rfind("\n}\n") + 1)), default=-1)
    parts: list[str] = []
    done = 0
    while (begin := text.find("\ndefine ", done)) >= 0:
        body = text.index("{\n", begin) + 2
        end = text.index("\n}", body) + 1
        parts += [text[done:body], _Function(text[body:end], f", !prof !{likely}").polled()]
        done = end
    changed = "".join([*parts, text[done:]])
    if changed == text:
        return text
    return f'{changed}\n{DECLARED}!{likely} = !{{!"branch_weights", i32 {1 << 20}, i32 1}}\n'


def _work(line: str) -> int:
    """The instructions of a line. A call that is given memory may work for a long time: it moves rows, or multiplies matrices."""
    if " call " not in line:
        return 1
    if "@llvm." in line:
        return WORK if ROWS.search(line) else 1
    return WORK if "(ptr " in line or ", ptr " in line else CALL


@dataclass
class _Block:
    label: str
    lines: list[str] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Where the terminator begins: a switch has several lines."""
        if self.lines[-1] == "  ]" or self.lines[-1].startswith("  ],"):
            return max(k for k, line in enumerate(self.lines) if line.startswith("  switch "))
        return len(self.lines) - 1

    def targets(self) -> list[str]:
        return TARGET.findall("".join(self.lines[self.end :]))

    def retarget(self, old: str, new: str) -> None:
        for k in range(self.end, len(self.lines)):
            self.lines[k] = TARGET.sub(lambda t: f"label %{new}" if t[1] == old else t[0], self.lines[k])

    def work(self) -> int:
        return sum(map(_work, self.lines))

    def phis(self) -> Iterable[int]:
        return takewhile(lambda k: PHI.match(self.lines[k]) is not None, range(len(self.lines)))

    def incoming(self, old: str, new: str, keep: bool = False) -> None:
        """Values that came from one block come from another, or from that too."""
        for k in self.phis():
            line = self.lines[k]
            entries = INCOMING.findall(line)
            value = next((v for v, label in entries if label == old), None)
            if value is None:
                continue
            entries = [e for e in entries if keep or e[1] != old] + [(value, new)]
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
    index: str
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
    def __init__(self, body: str, likely: str) -> None:
        self.body, self.likely = body, likely
        self.names = 0

    def polled(self) -> str:
        if "load volatile i64, ptr" not in self.body:
            return self.body
        self.blocks = _blocks(self.body)
        loops = self._loops()
        if not loops:
            return self.body
        self._find_start()
        self.works = {label: block.work() for label, block in self.blocks.items()}
        for loop in loops:
            self._poll(loop, loops)
        if not self.names:
            return self.body
        begin = self.blocks[self.start]
        begin.lines.insert(self.line + 1, f"  %tp.watched = call ptr @rt_watched(ptr {self.err})")
        return "\n\n".join(f"{b.label}:\n" + "\n".join(b.lines) for b in self.blocks.values()) + "\n"

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
        self.before = before
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
        if REST_OF_UNROLLED.search(loop.header):
            loop.work = REST
            return
        if any(other.work is None for other in inner):
            self._each_time(loop)
            return
        work = sum(self.works[label] for label in loop.body) + sum(other.work or 0 for other in inner)
        nested = any(loop.header in other.body for other in loops if other is not loop)
        trips = count.trips if count is not None else None
        if trips is not None and 0 <= trips * work <= WORK:
            loop.work = trips * work
        elif count is None or (nested and work > SMALL):
            self._counted_down(loop, max(1, WORK // work))
        elif not (nested and self._walks(loop, count)):
            self._in_strips(loop, count, max(1, WORK // work), loops)

    def _walks(self, loop: _Loop, count: _Count) -> bool:
        """Whether each iteration has cells of its own, so that there are no more iterations than memory."""
        lines = [line for label in loop.body for line in self.blocks[label].lines]
        indices = {count.index, *(found[1] for found in map(OFFSET.match, lines) if found and count.index in found[2])}
        return any(found[1] in indices for found in map(CELL.match, lines) if found)

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
        text = "\n".join(line for label in loop.body for line in self.blocks[label].lines)
        if text.count(branch[1]) != 2 or f"\n  {bound} = " in text:
            return None
        for step in filter(None, map(STEP.match, latch.lines)):
            if step[1] == following:
                for k in header.phis():
                    entries = {label: v for v, label in INCOMING.findall(header.lines[k])}
                    if header.lines[k].startswith(f"  {step[2]} = ") and entries[latch.label] == following:
                        start = entries[self._outside(loop)[0]]
                        return _Count(tests[0][0], kind, step[2], start, following, int(step[3]), bound)
        return None

    def _outside(self, loop: _Loop) -> list[str]:
        """Where the loop is entered from."""
        return [label for label in self.before[loop.header] if label not in loop.latches]

    # -- polls

    def _name(self, hint: str) -> str:
        self.names += 1
        return f"tp.{hint}.{self.names}"

    def _new(self, hint: str) -> _Block:
        block = _Block(self._name(hint))
        self.blocks[block.label] = block
        return block

    def _look(self, block: _Block, following: str) -> None:
        """Ends `block` with a call of the runtime."""
        error, sound = f"%{self._name('error')}", f"%{self._name('sound')}"
        block.lines += [
            f"  {error} = call {CONVENTION} i64 @rt_poll(ptr {self.err})",
            f"  {sound} = icmp eq i64 {error}, 0",
            f"  br i1 {sound}, label %{following}, label %{self.stopped}{self.likely}",
        ]
        self.blocks[self.stopped].incoming(self.start, block.label, keep=True)

    def _again(self, loop: _Loop, latch: str, first: str) -> _Block:
        """A block for the way back to the header, which goes through `first` before: loops with one back-edge stay
        such.
        """
        again = self._new("again")
        again.lines.append(f"  br label %{loop.header}")
        self.blocks[latch].retarget(loop.header, first or again.label)
        self.blocks[loop.header].incoming(latch, again.label)
        return again

    def _each_time(self, loop: _Loop) -> None:
        for latch in loop.latches:
            ask, look = self._new("ask"), self._new("look")
            again = self._again(loop, latch, ask.label)
            word, quiet = f"%{self._name('word')}", f"%{self._name('quiet')}"
            ask.lines += [
                f"  {word} = load volatile i64, ptr %tp.watched, align 8",
                f"  {quiet} = icmp eq i64 {word}, 0",
                f"  br i1 {quiet}, label %{again.label}, label %{look.label}{self.likely}",
            ]
            self._look(look, again.label)

    def _counted_down(self, loop: _Loop, every: int) -> None:
        left = f"%{self._name('left')}"
        entries = [(str(every), label) for label in self._outside(loop)]
        for latch in loop.latches:
            count, look = self._new("count"), self._new("look")
            again = self._again(loop, latch, count.label)
            less, more, now = (f"%{self._name(hint)}" for hint in ("less", "more", "now"))
            count.lines += [
                f"  {less} = add nsw i64 {left}, -1",
                f"  {more} = icmp ne i64 {less}, 0",
                f"  br i1 {more}, label %{again.label}, label %{look.label}{self.likely}",
            ]
            self._look(look, again.label)
            self._phi(again.label, now, "i64", [(less, count.label), (str(every), look.label)])
            entries.append((now, again.label))
        self._phi(loop.header, left, "i64", entries)

    def _in_strips(self, loop: _Loop, count: _Count, every: int, loops: list[_Loop]) -> None:
        (before,), (latch,) = self._outside(loop), loop.latches
        end, most = self.blocks[latch], every * abs(count.step)
        bound, first, following, now = (f"%{self._name(hint)}" for hint in ("bound", "first", "following", "now"))
        turn, look = self._new("turn"), self._new("look")
        outside = self.blocks[before]
        outside.lines[outside.end : outside.end] = self._strip(count, count.start, most, first)
        end.lines[end.lines.index(count.test)] = count.test.removesuffix(count.bound) + bound
        (exit_,) = (label for label in end.targets() if label != loop.header)
        again = self._again(loop, latch, "")
        end.retarget(exit_, turn.label)
        done = f"%{self._name('done')}"
        turn.lines += [
            f"  {done} = icmp eq {count.kind} {count.following}, {count.bound}",
            f"  br i1 {done}, label %{exit_}, label %{look.label}{self.likely}",
        ]
        self.blocks[exit_].incoming(latch, turn.label)
        look.lines += self._strip(count, count.following, most, following)
        self._look(look, again.label)
        self._phi(again.label, now, count.kind, [(bound, latch), (following, look.label)])
        self._phi(loop.header, bound, count.kind, [(first, before), (now, again.label)])
        self.before[exit_] = [turn.label if label == latch else label for label in self.before[exit_]]
        for other in loops:
            if other.header == exit_:
                other.latches = [turn.label if label == latch else label for label in other.latches]

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
        if line.startswith("  "):
            block.lines.append(line)
        elif line:
            label = line[: line.index(":", 1 + line.rfind('"'))]
            block = blocks[label] = _Block(label)
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
