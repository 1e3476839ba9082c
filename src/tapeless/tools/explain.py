"""`f.explain`: what the compiler made of each line.

`explain` takes a compiled specialisation; gives a `Report` and prints it. Operations, bytes and copies are read off the
optimised program, threads off the lowered one, and vectors off LLVM's own result (tools/vectors.py). What is not known
is called unknown.

Note [Loops of the user]
A loop of Core is a loop of the user. Those that stand at the same place of the source, one in the other, are one: a
whole-array operation on a matrix is a loop in a loop. The Loop IR loops made of it carry the same place: one over
threads, one over the elements of a thread's share, one that combines results. The elements are what counts for vectors.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any

from tapeless.ir.operands import regions

from tapeless.ir.core import (  # isort: skip
    Apply, ArrayLit, At, Axis, Body, Check, Concat, Copy, For, Full, Hist, Index, Iota, Library, Scatter, Stm, Sweep,
    Update, UpdateAcc, While,
)  # fmt: skip
from tapeless.ir.span import Span
from tapeless.ir.types import DType, Var
from tapeless.lower.footprint import footprint, outline
from tapeless.lower.ir import loopir
from tapeless.lower.ir.walk import children
from tapeless.lower.lowering import Lowered
from tapeless.ops.table import op as row
from tapeless.passes.inline import inline
from tapeless.runtime.compile import Compiled
from tapeless.runtime.deep import with_room
from tapeless.tools.plots import Measure
from tapeless.tools.recovery import Recovered, recoveries
from tapeless.tools.report import GAP, CopyMade, Line, Loop, Report
from tapeless.tools.vectors import Verdict, loops_of, verdicts

Place = tuple[str, int]  # file and line
Swept = Sweep | Hist | Scatter


def explain(
    compiled: Compiled,
    values: Mapping[Var, Any] | None = None,
    measure: Measure | None = None,
    threads: int = 1,
    refusal: str = "",
) -> Report:
    """Prints the report and gives it. `values`: of sizes and scalar arguments; `measure`: for plots of gradients;
    `refusal`: why a call raises.
    """
    report = replace(make_report(compiled, values, measure, threads), refusal=refusal)
    report.show()
    return report


def make_report(
    compiled: Compiled, values: Mapping[Var, Any] | None = None, measure: Measure | None = None, threads: int = 1
) -> Report:
    return with_room(lambda: _make_report(compiled, values or {}, measure, threads))


def _make_report(compiled: Compiled, values: Mapping[Var, Any], measure: Measure | None, threads: int) -> Report:
    core = compiled.in_place
    counts = Counts()
    for f in (*core.calls, core):
        counts.body(f.body, ())
    native = _native_loops(compiled.lowered)
    notes = {n.span: n.what for n in compiled.lowered.notes if isinstance(n.span, Span)}
    loops = [_loop(found, native, notes) for found in counts.loops]
    lines = _lines(counts, loops, native)
    names = {p.name for p in core.params}
    copies = [
        CopyMade(
            c.span.file, c.span.line, _user_name(c.name, names, lines), c.reason, counts.copied_in.get((c.span, c.name))
        )
        for c in compiled.binary.copies
    ]
    plans, total = recoveries(inline(compiled.traced.core, everything=True), values)
    loops = _with_recoveries(loops, plans)
    peak = footprint(outline(compiled.lowered), values, threads).peak if plans else None
    return Report(
        core.name, lines, loops, copies, dict(compiled.times), compiled.from_cache, total,
        segments=compiled.segments, plans=plans, peak_bytes=peak, measure=measure,
    )  # fmt: skip


def _with_recoveries(loops: Sequence[Loop], plans: Sequence[Recovered]) -> list[Loop]:
    """Loops that derivatives have a plan for; one that is left of nothing else is a loop all the same."""
    found = list(loops)
    for plan in plans:
        mine = [k for k, x in enumerate(found) if (x.file, x.line) == (plan.file, plan.line)]
        if not mine:
            mine = [len(found)]
            found.append(Loop(plan.file, plan.line, "for", False, "computed without a loop"))
        for k in mine:
            found[k] = replace(found[k], recovery=plan.recovery, memory_bytes=plan.memory_bytes)
    return found


# -- what each line does


@dataclass
class _Work:
    operations: Counter[str] = field(default_factory=Counter)
    tests: int = 0
    read: int = 0
    written: int = 0
    library: bool = False


@dataclass
class _Found:
    """A loop of the user: Note [Loops of the user]."""

    span: Span
    kind: str
    around: tuple[_Found, ...] = ()
    innermost: bool = True


class Counts:
    """Goes through Core once. `path` holds the loops around a statement."""

    def __init__(self) -> None:
        self.work: dict[Place, _Work] = {}
        self.loops: list[_Found] = []
        self.copied_in: dict[tuple[Span, str], int] = {}  # place and name of a copy in a loop, and the line of the loop

    def body(self, body: Body, path: tuple[_Found, ...], around: Span | None = None) -> None:
        for stm in body.stms:
            self.stm(stm, path, stm.span if stm.span.line else around)

    def stm(self, stm: Stm, path: tuple[_Found, ...], span: Span | None) -> None:
        if span is not None:
            self.count(stm, self.work.setdefault((span.file, span.line), _Work()))
        if isinstance(stm.exp, Copy) and span is not None and path:
            self.copied_in[span, stm.exp.array.name] = path[-1].span.line
        kind = _kind(stm, span)
        if kind and span is not None and not (path and path[-1].span == span):
            if path:
                path[-1].innermost = False
            path = (*path, _Found(span, kind, path))
            self.loops.append(path[-1])
        for region in regions(stm.exp):
            self.body(region.body, path, span)

    def count(self, stm: Stm, work: _Work) -> None:
        match stm.exp:
            case Apply(op=name, args=args):
                if name != "identity":
                    work.operations[_word(name, args[0].type.dtype if args else None)] += 1
            case Index(array=array, axes=axes):
                work.tests += _tests(axes)
                if not stm.vars[0].type.shape:
                    work.read += array.type.dtype.bytes
            case Update(array=array, axes=axes, value=value):
                work.tests += _tests(axes)
                work.written += array.type.dtype.bytes
                work.read += array.type.dtype.bytes if value.type.shape else 0
            case UpdateAcc(acc=acc, axes=axes):
                work.tests += _tests(axes)
                work.written += acc.type.dtype.bytes
                work.read += 0 if acc.type.acc == "set" else acc.type.dtype.bytes
            case Sweep(lam=lam, reduces=reduces) as sweep:
                work.read += _row_bytes(sweep)
                reduced = sum(len(r.neutral) for r in reduces)
                work.written += sum(r.type.dtype.bytes for r in lam.body.results[reduced:] if not r.type.shape)
            case Hist(dests=dests) | Scatter(dests=dests) as swept:
                cells = sum(d.type.dtype.bytes for d in dests)
                work.read += _row_bytes(swept) + (cells if isinstance(swept, Hist) else 0)
                work.written += cells
            case Iota() | ArrayLit() | Full():
                made = not isinstance(stm.exp, Full) or stm.exp.value is not None
                work.written += stm.vars[0].type.dtype.bytes if made else 0
            case Copy() | Concat():
                work.read += stm.vars[0].type.dtype.bytes
                work.written += stm.vars[0].type.dtype.bytes
            case Library(name=name, args=args):
                work.operations[name] += 1
                work.library = True
                work.read += sum(a.type.dtype.bytes for a in args if a.type.shape)
                work.written += sum(v.type.dtype.bytes for v in stm.vars if v.type.shape)
            case Check():
                work.tests += 1
            case _:
                pass


def _word(name: str, dtype: DType | None) -> str:
    if dtype is DType.bool and iskeyword(name):
        return name
    return row(name).word or row(name).symbol or name


def _tests(axes: Iterable[Axis]) -> int:
    return sum(isinstance(a, At) and a.check for a in axes)


def _row_bytes(swept: Swept) -> int:
    """Elements read for one element of the sweep. Rows that are arrays are read where they are used."""
    return sum(p.type.dtype.bytes for p in swept.lam.params[1:] if not p.type.shape)


def _kind(stm: Stm, span: Span | None) -> str:
    written_for = span is not None and _text(span.file, span.line)[span.column :].startswith("for ")
    match stm.exp:
        case For():
            return "for"
        case While():
            return "for" if written_for else "while"  # a `for` with a break
        case Sweep(reduces=reduces, scans=scans):
            return "parallel for" if written_for else "scan" if scans else "reduce" if reduces else "map"
        case Hist():
            return "hist"
        case Scatter():
            return "scatter"
        case _:
            return ""


# -- what became of the loops


@dataclass(eq=False)
class _Native:
    """A loop of Loop IR."""

    stm: loopir.For | loopir.While
    verdict: Verdict
    inside: list[_Native] = field(default_factory=list)

    @property
    def on_threads(self) -> bool:
        return isinstance(self.stm, loopir.For) and self.stm.tag == loopir.Tag.threads

    def subtree(self) -> Iterator[_Native]:
        yield self
        for n in self.inside:
            yield from n.subtree()


def _native_loops(lowered: Lowered) -> list[_Native]:
    """The outermost loops, with those inside them."""
    program = lowered.program
    order = list(loops_of(program))
    facts = iter(zip(order, verdicts(program), strict=True))

    def block(stms: Iterable[loopir.Stm]) -> list[_Native]:
        found: list[_Native] = []
        for stm in stms:
            inside = [n for b in children(stm) for n in block(b)]
            if isinstance(stm, (loopir.For, loopir.While)):
                same, verdict = next(facts)
                assert same is stm
                found.append(_Native(stm, verdict, inside))
            else:
                found += inside
        return found

    return [n for f in (*program.functions, program) for n in block(f.body)]


def _loop(found: _Found, native: Sequence[_Native], notes: dict[Span, str]) -> Loop:
    mine = list(_at(native, found.span))
    threads = [n for n in mine if n.on_threads]
    vectorised, lanes, vectors = _vectors(found, threads or mine) if found.innermost else (None, None, "")
    if threads or found.span in notes:
        runs = notes.get(found.span, "parallel on threads")
    elif found.kind not in ("for", "while") and any(f.span in notes for f in found.around):
        runs = "within one thread"
    else:
        runs = "sequential loop"
    where, parallel = found.span, bool(threads or found.span in notes)
    return Loop(where.file, where.line, found.kind, parallel, runs, vectors, vectorised, lanes)


def _at(native: Sequence[_Native], span: Span) -> Iterator[_Native]:
    """The outermost loops at a place. A loop at the same place inside one of them belongs to it."""
    for n in native:
        if n.stm.span == span:
            yield n
        else:
            yield from _at(n.inside, span)


def _vectors(found: _Found, roots: Sequence[_Native]) -> tuple[bool | None, int | None, str]:
    """Whether the elements are handled several at a time: Note [Loops of the user]."""
    everything = [n for r in roots for n in r.subtree()]
    elements = [n for n in everything if not n.inside]
    if found.kind in ("for", "while"):  # loops inside are copies of carried arrays
        elements = [n for n in roots if not n.inside] or list(roots)
    known = [n.verdict for n in elements if n.verdict.lanes is not None]
    across = max((v.lanes or 1 for v in known if not v.within), default=0)
    within = max((v.lanes or 1 for v in known if v.within), default=0)
    if across > 1:
        return True, across, "vectorised"
    if within > 1:
        return False, within, "vectors within one iteration only"
    if known:
        return False, 1, "not vectorised"
    if elements and all(n.verdict.gone for n in elements):
        return None, None, "unrolled or replaced by a call"
    return None, None, "unknown whether vectorised"


# -- lines


def _lines(counts: Counts, loops: Sequence[Loop], native: Sequence[_Native]) -> list[Line]:
    files: dict[str, dict[int, Line]] = {}
    hows: dict[Place, list[Loop]] = {}
    for loop in loops:
        hows.setdefault((loop.file, loop.line), []).append(loop)
    copied = _fills(native)
    for place in dict.fromkeys([*counts.work, *hows]):
        work = counts.work.get(place, _Work())
        here = hows.get(place, [])
        how = _how(here) or (() if work.library else copied.get(place, ()))
        files.setdefault(place[0], {})[place[1]] = Line(
            *place, _text(*place), dict(sorted(work.operations.items())), work.tests, work.read, work.written,
            any(x.parallel for x in here), how,
        )  # fmt: skip
    return [line for found in files.values() for line in _with_context(found)]


def _how(loops: Sequence[Loop]) -> tuple[str, ...]:
    """For a line with several loops: threads of any of them, and what is known of the innermost ones."""
    if not loops:
        return ()
    runs = "parallel on threads" if any(x.parallel for x in loops) else loops[0].runs
    vectors = tuple(dict.fromkeys(x.vectors for x in loops if x.vectors))
    whole_arrays = all(x.kind not in ("for", "while") for x in loops)
    return vectors if vectors == ("vectorised",) and whole_arrays and runs == "sequential loop" else (runs, *vectors)


def _fills(native: Sequence[_Native]) -> dict[Place, tuple[str, ...]]:
    """Loops at places that hold none of the user: arrays are filled or copied there."""
    found: dict[Place, tuple[str, ...]] = {}
    for n in (m for root in native for m in root.subtree()):
        if n.stm.span.line:
            place = (n.stm.span.file, n.stm.span.line)
            vector = (n.verdict.lanes or 1) > 1 and not n.verdict.within
            if vector or place not in found:
                found[place] = ("fills an array", "vectorised") if vector else ("fills an array",)
    return found


def _with_context(found: dict[int, Line]) -> list[Line]:
    """In order, with the lines between two that have code when there are few of them."""
    file = next(iter(found.values())).file
    lines: list[Line] = []
    for number in sorted(found):
        if lines and number - lines[-1].number <= GAP + 1:
            lines += [Line(file, k, _text(file, k)) for k in range(lines[-1].number + 1, number)]
        lines.append(found[number])
    return lines


def _text(file: str, line: int) -> str:
    return linecache.getline(file, line).rstrip("\n")


def _user_name(name: str, params: Collection[str], lines: Sequence[Line]) -> str:
    """A name that stands in the source; empty for one of ours."""
    return name if name in params or any(re.search(rf"\b{re.escape(name)}\b", x.text) for x in lines) else ""
