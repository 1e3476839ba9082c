"""The benchmark's tables: the same rows for the terminal (rich) and for a Markdown page."""

import datetime
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from benchmarks import native

Judge = Callable[[float], str]  # the colour of a number


@dataclass(frozen=True)
class Column:
    """A heading, how its numbers are written, and what colour they have."""

    heading: str
    form: str = "{}"
    judge: Judge | None = None

    def text(self, value: float | str | None) -> str:
        match value:
            case None:
                return "-"
            case str():
                return value
            case number:
                return self.form.format(number)

    def style(self, value: float | str | None) -> str:
        return self.judge(value) if self.judge and isinstance(value, float) else ""


@dataclass
class Table:
    """Rows in sections; the last row of a section may sum it up."""

    title: str
    columns: Sequence[Column]
    sections: list[list[Sequence[float | str | None]]] = field(default_factory=list)

    def rich(self) -> RichTable:
        table = RichTable(title=self.title, box=box.SIMPLE_HEAD, title_justify="left")
        for position, column in enumerate(self.columns):
            table.add_column(column.heading, justify="right" if position else "left", no_wrap=bool(position == 0))
        for section in self.sections:
            for row in section:
                pairs = zip(self.columns, row, strict=True)
                table.add_row(*(Text(column.text(value), column.style(value)) for column, value in pairs))
            table.add_section()
        return table

    def markdown(self) -> str:
        lines = [
            "| " + " | ".join(column.heading for column in self.columns) + " |",
            "|---" + "|--:" * (len(self.columns) - 1) + "|",
        ]
        for row in (row for section in self.sections for row in section):
            cells = (column.text(value) for column, value in zip(self.columns, row, strict=True))
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)


def at_most(good: float, acceptable: float) -> Judge:
    """Green up to `good`, yellow up to `acceptable`, red beyond."""
    return lambda value: "green" if value <= good else "yellow" if value <= acceptable else "red"


def at_least(good: float) -> Judge:
    return lambda value: "green" if value >= good else "yellow"


COMPILE_TIMES = (
    Column("cold compile s", "{:.2f}", at_most(1.0, 1.0)),
    Column("from cache ms", "{:.0f}", at_most(60.0, 60.0)),
)


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def environment(others: Iterable[str]) -> list[str]:
    """What the numbers depend on, one line each; `others` are the packages to compare with."""
    packages = ("tapeless", *others, "llvmlite", "numpy", "scipy")
    return [
        f"CPU: {native.cpu_model()}",
        f"Python {platform.python_version()}, " + ", ".join(map(_version, packages)),
        f"C: {native.compiler_version()}, `gcc {' '.join(native.FLAGS)}`",
        f"Date: {datetime.date.today().isoformat()}",
    ]


def show(console: Console, tables: Iterable[Table]) -> None:
    for table in tables:
        console.print(table.rich())


def page(command: str, tables: Iterable[Table], notes: Iterable[str], packages: Iterable[str]) -> str:
    """The tables as a Markdown page that says how they were made."""
    facts = "\n".join(f"* {line}" for line in (f"Command: `{command}`", *environment(packages), *notes))
    body = "\n\n".join(f"## {table.title}\n\n{table.markdown()}" for table in tables)
    return f"# Benchmark results\n\n{facts}\n\n{body}\n"
