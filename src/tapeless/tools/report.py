"""What `f.explain` gives: the data, and its three forms: plain text, a table for the terminal, a page.

Relies on nothing that computes: `tools.explain` fills these in. Plain text leaves out what differs from machine to
machine and from run to run (times, lanes), so that it can be compared.
"""

from __future__ import annotations

import html as escape
import io
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from tapeless.ir.segments import Segment
from tapeless.tools.plots import Measure, plot_plans
from tapeless.tools.recovery import Recovered, recovery_lines, size_text

WIDTH = 100
SOURCE = 42  # columns of source text shown
SMALL = 0.02  # of the compile time: phases below are told together
GAP = 3  # so many lines without code may stand between two that have some


@dataclass(frozen=True)
class Line:
    """A line of source. Counts are for one run of it, or one element of a whole array: loops are not multiplied."""

    file: str
    number: int
    text: str
    operations: dict[str, int] = field(default_factory=dict)
    tests: int = 0  # of indices and the like, that could not be proved away
    bytes_read: int = 0
    bytes_written: int = 0
    parallel: bool = False
    how: tuple[str, ...] = ()

    @property
    def busy(self) -> bool:
        return bool(self.operations or self.tests or self.bytes_read or self.bytes_written or self.how)


@dataclass(frozen=True)
class Loop:
    """A loop as the user wrote it; a whole-array operation is one loop.

    `runs` tells of threads, `vectors` of the elements of an innermost loop, in words. `vectorised` and `lanes`
    (elements at a time) are None when not known or not applicable. `recovery` and `memory_bytes` belong to gradients.
    """

    file: str
    line: int
    kind: str
    parallel: bool
    runs: str
    vectors: str = ""
    vectorised: bool | None = None
    lanes: int | None = None
    recovery: dict[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None

    @property
    def how(self) -> str:
        return f"{self.runs}, {self.vectors}" if self.vectors else self.runs


@dataclass(frozen=True)
class CopyMade:
    """An array that had to be copied, in each iteration when it is in a `loop` (the line of it).

    `name` is the user's, or empty for an intermediate value.
    """

    file: str
    line: int
    name: str
    reason: str
    loop: int | None = None

    def __str__(self) -> str:
        what = f"'{self.name}'" if self.name else "an intermediate array"
        often = f" in each iteration of the loop in line {self.loop}" if self.loop is not None else ""
        return f"line {self.line}: {what} is copied{often}: {self.reason}"


@dataclass(frozen=True, repr=False)
class Report:
    """Printed by `f.explain`, and returned by it.

    Of gradients: `memory_bytes` is what loops keep for the backward pass, `peak_bytes` all arrays of the call when most
    of them are there, without its arguments. None where that is not known before the call.
    """

    function: str
    lines: list[Line]
    loops: list[Loop]
    copies: list[CopyMade]
    times: dict[str, float]
    from_cache: bool = False
    memory_bytes: int | None = None
    segments: list[Segment] = field(default_factory=list)
    kernels: list[Any] = field(default_factory=list)
    plans: list[Recovered] = field(default_factory=list)
    peak_bytes: int | None = None
    refusal: str = ""  # why a call raises RecoveryError
    measure: Measure | None = None
    shown: list[int] = field(default_factory=list)  # notebook cells that have printed it

    def __repr__(self) -> str:
        """In a line: what `explain` returns has been printed already."""
        return f"<report of {self.function}: {_summary(self)}>"

    def _repr_html_(self) -> str | None:
        """For notebooks; nothing in a cell that has printed it."""
        return None if _cell() in self.shown else f"<style>{STYLE}</style>{_content(self)}"

    def __str__(self) -> str:
        return _plain(self)

    def __rich__(self) -> Group:
        return _rich(self)

    def show(self) -> None:
        cell = _cell()
        if cell is not None:
            self.shown.append(cell)
        try:
            make_console().print(self)
        except UnicodeEncodeError:  # no symbols on this output
            print(str(self).encode("ascii", "replace").decode())

    def html(self, path: str | Path) -> None:
        """Writes the report as one page that needs nothing else."""
        Path(path).write_text(_page(self), encoding="utf-8")

    def plot(self, path: str | Path | None = None, *, measure: bool = False) -> Any:
        """Memory against time over the plans that are possible, as a Matplotlib figure; into a file, if one is named.

        Times are predicted as runs of the loops; `measure=True` runs each plan and takes its time and memory.
        """
        return plot_plans(self.function, self.plans, path, measure, self.measure)


# -- output


def make_console() -> Console:
    """As wide as the terminal, up to the width that everything is laid out for."""
    console = Console()
    return console if console.is_terminal and console.width <= WIDTH else Console(width=WIDTH)


def _cell() -> int | None:
    """The number of the notebook cell that runs, if one does."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "execution_count", None)


def tolerate_encoding() -> None:
    """For commands: symbols that the output cannot show become question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


# -- words


def operations_text(line: Line) -> str:
    parts = [name if n == 1 else f"{name} ×{n}" for name, n in line.operations.items()]
    if line.tests:
        parts.append("1 test" if line.tests == 1 else f"{line.tests} tests")
    return ", ".join(parts)


def bytes_text(line: Line) -> str:
    return f"{line.bytes_read or '-'} / {line.bytes_written or '-'}" if line.bytes_read or line.bytes_written else ""


def loop_text(loop: Loop, lanes: bool = True) -> str:
    text = f"line {loop.line}: {loop.kind}: {loop.how}"
    return f"{text} ×{loop.lanes}" if lanes and loop.vectorised and loop.lanes else text


def kept_text(report: Report) -> str:
    kept, peak = report.memory_bytes, report.peak_bytes
    if report.refusal:
        return f"the call is refused: {report.refusal}"
    if kept is None:
        return "how much is kept is known only when it runs"
    text = f"{size_text(kept)} kept" if kept else "nothing kept"
    return f"{text}; {size_text(peak)} at the peak, with adjoints, temporary arrays and results" if peak else text


def copy_texts(report: Report) -> list[str]:
    """One line for copies of one kind at one place: the backward pass repeats code."""
    return list(dict.fromkeys(map(str, report.copies)))


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def _times_text(report: Report) -> str:
    total = sum(report.times.values())
    start = (
        f"found in the cache, loaded in {duration(total)}" if report.from_cache else f"compiled in {duration(total)}"
    )
    large = {name: t for name, t in report.times.items() if t >= SMALL * total}
    rest = total - sum(large.values())
    parts = [f"{name} {duration(t)}" for name, t in large.items()]
    return f"{start}: " + ", ".join(
        [*parts, *([f"the rest {duration(rest)}"] if len(large) < len(report.times) else [])]
    )


def by_file(lines: Sequence[Line]) -> list[tuple[str, list[list[Line]]]]:
    """Lines of each file in blocks without gaps, for headings and separators."""
    files: dict[str, list[list[Line]]] = {}
    for line in lines:
        blocks = files.setdefault(line.file, [])
        if blocks and blocks[-1][-1].number == line.number - 1:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return list(files.items())


def _file_name(file: str) -> str:
    return Path(file).name


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _indent(lines: Sequence[Line]) -> int:
    return min((len(x.text) - len(x.text.lstrip()) for x in lines if x.text.strip()), default=0)


# -- plain text


def _plain(report: Report) -> str:
    out = [f"{report.function}: {_summary(report)}"]
    for file, blocks in by_file(report.lines):
        out += ["", f"{_file_name(file)}"]
        indent = _indent([x for b in blocks for x in b])
        for k, block in enumerate(blocks):
            if k:
                out.append("     ⋮")
            out += [_plain_line(x, indent) for x in block]
    if report.loops:
        out += ["", "loops", *dict.fromkeys(f"  {loop_text(x, lanes=False)}" for x in report.loops)]
    if report.plans:
        out += ["", f"backward pass ({kept_text(report)})"]
        out += [line for plan in report.plans for line in recovery_lines(plan)]
    if report.segments:
        out += ["", "closed forms", *(x for s in report.segments for x in _wrapped(str(s)))]
    copies = copy_texts(report)
    wrapped = [x for c in copies for x in _wrapped(c)]
    out += ["", "copies", *wrapped] if copies else ["", "copies: none"]
    return "\n".join(out) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(f"  {text}", WIDTH, subsequent_indent="    ")


def _plain_line(line: Line, indent: int) -> str:
    right = "  ".join(x for x in (operations_text(line), _plain_bytes(line), ", ".join(line.how)) if x)
    left = f"{line.number:5}  {_cut(line.text[indent:], SOURCE)}"
    margin = SOURCE + 9
    first, *rest = textwrap.wrap(right, WIDTH - margin) or [""]
    return "\n".join([f"{left:<{margin}}{first}".rstrip(), *(" " * margin + x for x in rest)])


def _plain_bytes(line: Line) -> str:
    text = bytes_text(line)
    return f"[{text} B]" if text else ""


def _summary(report: Report) -> str:
    threads = sum(x.parallel for x in report.loops)
    vectors = sum(x.vectorised is True for x in report.loops)
    operations = sum(sum(x.operations.values()) for x in report.lines)
    parts = [_count(operations, "operation"), _count(len(report.loops), "loop")]
    if threads:
        parts.append(f"{threads} on threads")
    if vectors:
        parts.append(f"{vectors} vectorised")
    return ", ".join([*parts, _count(len(report.copies), "copy", "copies")])


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n or 'no'} {one if n == 1 else many or one + 's'}"


# -- the terminal

STYLES = {"parallel": "green", "vectorised": "green", "sequential": "yellow", "not vectorised": "yellow"}


def _rich(report: Report) -> Group:
    parts: list[Any] = [Text.assemble((report.function, "bold"), f"  {_summary(report)}")]
    lanes = {(x.file, x.line): x.lanes for x in report.loops if x.vectorised and x.lanes}
    for file, blocks in by_file(report.lines):
        table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("", justify="right", style="dim", no_wrap=True)
        table.add_column(_file_name(file), no_wrap=True, overflow="ellipsis", max_width=SOURCE, min_width=24)
        table.add_column("operations", overflow="fold", ratio=1)
        table.add_column("bytes r/w", no_wrap=True, style="cyan")
        table.add_column("how it runs", min_width=21, ratio=1)
        indent = _indent([x for b in blocks for x in b])
        for k, block in enumerate(blocks):
            if k:
                table.add_row("⋮")
            for line in block:
                style = "" if line.busy else "dim"
                how = _styled(line.how, lanes.get((file, line.number)))
                source = Text(line.text[indent:], style=style, no_wrap=True, overflow="ellipsis")
                table.add_row(str(line.number), source, Text(operations_text(line)), bytes_text(line), how)
        parts += ["", table]
    if report.plans:
        parts += ["", Text(f"backward pass ({kept_text(report)})", style="bold")]
        parts += [Text(line) for plan in report.plans for line in recovery_lines(plan)]
    if report.segments:
        parts += ["", Text("closed forms", style="bold"), *(Text(str(s)) for s in report.segments)]
    notes = [f"copy, {c}" for c in copy_texts(report)] or ["no copies inserted"]
    parts += ["", *(Text(n, style="magenta" if report.copies else "dim") for n in notes)]
    parts.append(Text(_times_text(report), style="dim"))
    return Group(*parts)


def _styled(how: Sequence[str], lanes: int | None) -> Text:
    text = Text()
    for k, part in enumerate(how):
        shown = f"{part} ×{lanes}" if lanes and part == "vectorised" else part
        style = next((s for word, s in STYLES.items() if part.startswith(word)), "")
        text.append((", " if k else "") + shown, style)
    return text


# -- a page

STYLE = """
.tapeless table { border-collapse: collapse; width: 100% }
.tapeless td, .tapeless th { padding: .1em .8em; text-align: left; vertical-align: top }
.tapeless th { font-weight: 600; border-bottom: 1px solid #bbb }
.tapeless td.n { color: #888; text-align: right }
.tapeless td.s { font: 13px/1.5 ui-monospace, monospace; white-space: pre }
.tapeless tr.idle td.s { color: #999 }
.tapeless tr.parallel { background: #e9f7ec }
.tapeless tr.vector { background: #eef4fd }
@media (prefers-color-scheme: dark) {
  .tapeless tr.parallel { background: #17301d } .tapeless tr.vector { background: #1a2638 }
}
"""
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em;
       color: #222; background: #fff }}
@media (prefers-color-scheme: dark) {{ body {{ color: #ddd; background: #181818 }} }}
{style}</style>
{content}</html>
"""
CONTENT = """<div class="tapeless"><h1>{title}</h1><p>{summary}</p>
{tables}
{plans}
{segments}
<h2>Copies</h2>{copies}
<h2>Compile time</h2><p>{times}</p></div>
"""


def _page(report: Report) -> str:
    return PAGE.format(title=_e(report.function), style=STYLE, content=_content(report))


def _content(report: Report) -> str:
    lanes = {(x.file, x.line): x.lanes for x in report.loops if x.vectorised and x.lanes}
    tables = []
    for file, blocks in by_file(report.lines):
        indent = _indent([x for b in blocks for x in b])
        rows = []
        for k, block in enumerate(blocks):
            if k:
                rows.append('<tr><td class="n">⋮</td></tr>')
            rows += [_page_row(x, indent, lanes.get((file, x.number))) for x in block]
        heads = "".join(f"<th>{t}</th>" for t in ("", _e(_file_name(file)), "operations", "bytes r/w", "how it runs"))
        tables.append(f"<table><tr>{heads}</tr>\n" + "\n".join(rows) + "\n</table>")
    copies = "".join(f"<li>{_e(c)}</li>" for c in copy_texts(report))
    plans = "\n".join(line for plan in report.plans for line in recovery_lines(plan))
    segments = "".join(f"<li>{_e(str(s))}</li>" for s in report.segments)
    title = f"Backward pass ({kept_text(report)})"
    return CONTENT.format(
        plans=f"<h2>{_e(title)}</h2><pre>{_e(plans)}</pre>" if plans else "",
        segments=f"<h2>Closed forms</h2><ul>{segments}</ul>" if segments else "",
        title=_e(report.function),
        summary=_e(_summary(report)),
        tables="\n".join(tables),
        copies=f"<ul>{copies}</ul>" if copies else "<p>none</p>",
        times=_e(_times_text(report)),
    )


def _page_row(line: Line, indent: int, lanes: int | None) -> str:
    kind = "parallel" if line.parallel else "vector" if "vectorised" in line.how else "" if line.busy else "idle"
    how = ", ".join(f"{x} ×{lanes}" if lanes and x == "vectorised" else x for x in line.how)
    cells = (operations_text(line), bytes_text(line), how)
    rest = "".join(f"<td>{_e(c)}</td>" for c in cells)
    return f'<tr class="{kind}"><td class="n">{line.number}</td><td class="s">{_e(line.text[indent:])}</td>{rest}</tr>'


def _e(text: str) -> str:
    return escape.escape(text)
