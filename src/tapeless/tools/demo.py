"""`python -m tapeless.tools.demo`: a tour in a few seconds.

Compiles some ordinary Python functions, checks them against themselves as plain Python, draws what they compute, times
both, takes a gradient in several amounts of memory, and shows what the compiler makes of a small function and what it
says to one that it refuses.
TAPELESS_DEMO_QUICK=1 makes everything small.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.color import Color
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import tapeless as tp
from tapeless.api.function import Function, default_threads
from tapeless.tools.recovery import recovery_lines, size_text
from tapeless.tools.report import WIDTH, duration, make_console, tolerate_encoding

Array = np.ndarray[Any, np.dtype[Any]]
RAMP = " .,:;-=+*oxO#%@"
QUICK = os.environ.get("TAPELESS_DEMO_QUICK", "") not in ("", "0")


# -- the programs, as anybody would write them


def mandelbrot(xs: Array, ys: Array, limit: int) -> Any:
    """How long each point of a grid takes to escape: a while loop that ends when the data says so."""

    def escape(x: float, y: float) -> int:
        a, b, k = 0.0, 0.0, 0
        while k < limit and a * a + b * b < 4.0:
            a, b = a * a - b * b + x, 2.0 * a * b + y
            k += 1
        return k

    return tp.map(lambda y: tp.map(lambda x: escape(x, y), xs), ys)


def gray_scott(u: Array, v: Array, steps: int) -> None:
    """Two chemicals that react and spread, on a torus; the caller's arrays are updated in place."""
    n, m = u.shape
    du, dv = np.empty((n, m)), np.empty((n, m))
    for _ in range(steps):
        for i in tp.prange(n):
            for j in range(m):
                up, down, left, right = (i - 1) % n, (i + 1) % n, (j - 1) % m, (j + 1) % m
                a, b = u[i, j], v[i, j]
                reaction = a * b * b
                spread_u = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4.0 * a
                spread_v = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4.0 * b
                du[i, j] = 0.16 * spread_u - reaction + 0.06 * (1.0 - a)
                dv[i, j] = 0.08 * spread_v + reaction - 0.122 * b
        u += du
        v += dv


def n_body(position: Array, velocity: Array, mass: Array, dt: float, steps: int) -> None:
    """Everybody attracts everybody."""
    n = len(mass)
    for _ in range(steps):
        for i in tp.prange(n):
            ax = ay = 0.0
            for j in range(n):
                dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
                d = dx * dx + dy * dy + 0.01
                w = mass[j] / (d * np.sqrt(d))
                ax += w * dx
                ay += w * dy
            velocity[i, 0] += dt * ax
            velocity[i, 1] += dt * ay
        position += dt * velocity


def logsumexp(x: Array) -> Any:
    """Array code: NumPy makes three passes, the compiler two, and without temporary arrays."""
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def glowing_rod(u: Array, steps: int) -> Any:
    """Heat that spreads along a ring, and is radiated."""
    for _ in range(steps):
        u = u + 0.2 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)) - 0.001 * u**4
    return np.sum(u * u)


def positive_norm(x: Array) -> Any:
    s = 0.0
    for v in x:
        if v > 0.0:
            s += v * v
    return np.sqrt(s)


def refused(x: Array, scale: float) -> Array:
    y = x
    if scale > 1.0:
        y = x * scale
    y[0] = 0.0
    return y


# -- what is run, checked and timed


@dataclass(frozen=True)
class Program:
    """`inputs` are made anew for each run, since programs may write them."""

    name: str
    python: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    plain: str = "Python"


@dataclass
class Outcome:
    """Seconds of each way, and how far the answers are apart."""

    program: Program
    python: float = 0.0
    one: float = 0.0
    all: float = 0.0
    compile: float = 0.0
    from_cache: float = 0.0
    difference: str = ""
    right: bool = False


def programs() -> list[Program]:
    width, height, limit = (60, 48, 50) if QUICK else (160, 128, 200)
    grid, steps = (24, 2) if QUICK else (96, 10)
    bodies = 40 if QUICK else 300
    length = 20_000 if QUICK else 2_000_000
    return [
        Program(f"Mandelbrot set, {width} x {height}", mandelbrot, lambda: mandelbrot_inputs(width, height, limit)),
        Program(f"Gray-Scott {grid} x {grid}, {steps} steps", gray_scott, lambda: dish(grid, grid, steps)),
        Program(f"{bodies} bodies, 2 steps", n_body, lambda: galaxy(bodies)),
        Program(f"logsumexp of {length:,}", logsumexp, lambda: (np.sin(np.arange(float(length))),), "NumPy"),
    ]


def mandelbrot_inputs(width: int, height: int, limit: int) -> tuple[Any, ...]:
    return np.linspace(-2.2, 0.8, width), np.linspace(-1.2, 1.2, height), limit


def dish(height: int, width: int, steps: int) -> tuple[Any, ...]:
    """Mostly the first chemical, with some drops of the second."""
    rng = np.random.default_rng(7)
    u, v = np.ones((height, width)), np.zeros((height, width))
    for _ in range(max(3, height * width // 600)):
        i, j = int(rng.integers(height)), int(rng.integers(width))
        u[i : i + 8, j : j + 8], v[i : i + 8, j : j + 8] = 0.5, 0.4
    return u, v, steps


def galaxy(bodies: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(bodies, 2)), np.zeros((bodies, 2)), rng.random(bodies), 0.01, 2


def measure(program: Program, threads: int) -> Outcome:
    outcome = Outcome(program)
    expected, outcome.python = timed(program.python, program.inputs())
    first = tp.function(program.python, threads=1)
    _, outcome.compile = timed(first.compiled, program.inputs())
    _, outcome.from_cache = timed(anew(program.python).compiled, program.inputs())
    again = tp.function(program.python, threads=threads)
    found, _ = timed(first, program.inputs())
    outcome.difference, outcome.right = compare(found, expected)
    outcome.one = best(first, program)
    outcome.all = best(again, program) if threads > 1 else outcome.one
    return outcome


def anew(python: Callable[..., Any]) -> Function[..., Any]:
    """As another process would meet it: tp.function gives the same object again, with its code."""
    return Function(python, threads=1)


def timed(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[list[Array], float]:
    """What it returns and what it wrote, and the seconds it took."""
    start = time.perf_counter()
    result = function(*args)
    seconds = time.perf_counter() - start
    written = [a for a in args if isinstance(a, np.ndarray)]
    return [np.asarray(result), *written] if isinstance(result, (np.ndarray, np.generic)) else written, seconds


def best(function: Callable[..., Any], program: Program, budget: float = 0.05 if QUICK else 0.25) -> float:
    seconds = timed(function, program.inputs())[1]
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        seconds = min(seconds, timed(function, program.inputs())[1])
    return seconds


def compare(found: list[Array], expected: list[Array]) -> tuple[str, bool]:
    """Native code may fuse a multiplication with an addition, which rounds once instead of twice."""
    whole = [(f, e) for f, e in zip(found, expected, strict=True) if e.dtype.kind == "i"]
    if whole:
        same = min(float(np.mean(f == e)) for f, e in whole)
        return ("equal" if same == 1.0 else f"{same:.2%} equal"), same > 0.98
    gap = max(float(np.max(np.abs(f - e) / np.maximum(1.0, np.abs(e)))) for f, e in zip(found, expected, strict=True))
    return ("equal" if gap == 0.0 else f"{gap:.0e}"), gap < 1e-9


# -- pictures


@dataclass(frozen=True)
class Palette:
    """Colours at equal distances from 0 to 1."""

    stops: tuple[tuple[int, int, int], ...] = field(default=())

    def __call__(self, t: float) -> Color:
        place = min(max(t, 0.0), 1.0) * (len(self.stops) - 1)
        k = min(int(place), len(self.stops) - 2)
        parts = (a + (place - k) * (b - a) for a, b in zip(self.stops[k], self.stops[k + 1], strict=True))
        return Color.from_rgb(*parts)


NIGHT = Palette(
    ((4, 6, 40), (12, 60, 130), (60, 150, 200), (240, 240, 210), (250, 180, 40), (160, 50, 20), (10, 4, 16))
)
CORAL = Palette(((10, 12, 40), (60, 20, 90), (170, 40, 100), (245, 130, 80), (255, 240, 190)))
STEPS = 300 if QUICK else 6000  # of the picture


def picture(image: Array, palette: Palette, colour: bool) -> Text:
    """Values from 0 to 1, two rows of pixels to a line of text; shades of characters where there are no colours."""
    text = Text(no_wrap=True)
    for upper, lower in zip(image[0::2], image[1::2], strict=True):
        for top, bottom in zip(upper.tolist(), lower.tolist(), strict=True):
            if colour:
                text.append("▀", Style(color=palette(top), bgcolor=palette(bottom)))
            else:
                text.append(RAMP[min(int((top + bottom) / 2 * len(RAMP)), len(RAMP) - 1)])
        text.append("\n")
    text.right_crop(1)
    return text


def mandelbrot_image(width: int, height: int) -> Array:
    limit = 60 if QUICK else 400
    counts = tp.function(mandelbrot)(*mandelbrot_inputs(4 * width, 4 * height, limit))
    return smaller(np.log(counts) / np.log(limit), 4)


def dish_image(width: int, height: int) -> Array:
    u, v, steps = dish(2 * height, 2 * width, STEPS)
    tp.function(gray_scott)(u, v, steps)
    return smaller(v / max(float(v.max()), 1e-9), 2)


def smaller(image: Array, factor: int) -> Array:
    """Each pixel is the mean of `factor` x `factor` of them."""
    height, width = image.shape
    blocks = image.reshape(height // factor, factor, width // factor, factor)
    mean: Array = blocks.mean(axis=(1, 3))
    return mean


# -- the tour


def main() -> int:
    tolerate_encoding()
    console = make_console()
    parts = (pictures, race, gradient, inside, refusal)
    problems = [part.__name__ for part in parts if not attempt(console, part)]
    console.print()
    console.print(
        "Next: `tapeless explain FILE.py:f` for what became of each line, `tapeless doctor` for this machine."
    )
    if problems:
        console.print(f"Something went wrong in: {', '.join(problems)}. `tapeless doctor` may tell why.", style="red")
    return 1 if problems else 0


@contextmanager
def own_cache() -> Iterator[None]:
    """A compile cache for a part of the tour alone, so that compile times are those of a first run."""
    before = os.environ.get("TAPELESS_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="tapeless-demo-") as folder:
        os.environ["TAPELESS_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["TAPELESS_CACHE_DIR"]
            else:
                os.environ["TAPELESS_CACHE_DIR"] = before


def attempt(console: Console, part: Callable[[Console], bool]) -> bool:
    """A part that fails does not take the rest of the tour with it."""
    try:
        with own_cache():
            return part(console)
    except Exception as problem:
        console.print(f"{type(problem).__name__}: {problem}", style="red", markup=False, highlight=False)
        return False


def heading(console: Console, text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}[/]", align="left", style="dim")


def note(console: Console, text: str) -> None:
    console.print(text, style="dim", markup=False, highlight=False)


def pictures(console: Console) -> bool:
    heading(console, "Two Python functions, compiled")
    colour = bool(console.color_system) and not console.no_color and console.encoding.startswith("utf")
    wide = console.width >= WIDTH
    left, right, rows = (60, 36, 24) if wide else (min(console.width, 60), min(console.width, 36), 20)
    start = time.perf_counter()
    first = picture(mandelbrot_image(left, 2 * rows), NIGHT, colour)
    second = picture(dish_image(right, 2 * rows), CORAL, colour)
    seconds = time.perf_counter() - start
    console.print(Columns([first, second], padding=(0, 2)))
    note(
        console,
        f"Left: a while loop for each pixel, under tp.map. Right: {STEPS} steps of reaction-diffusion, in place.\n"
        f"Both in {duration(seconds)}, compiling included.",
    )
    return True


def race(console: Console) -> bool:
    heading(console, "The same functions as plain Python, and compiled")
    threads = default_threads()
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("program", min_width=12)
    titles = ["plain", "compiled", f"{threads} threads", "faster", "differs", "compile", "cached"]
    shown = [k for k in range(len(titles)) if console.width >= WIDTH or k not in (2, 4)]
    for k in shown:
        table.add_column(titles[k], justify="right", no_wrap=True)
    outcomes = []
    with console.status("") as status:
        for program in programs():
            status.update(program.name)
            outcomes.append(measure(program, threads))
    for o in outcomes:
        plain = duration(o.python) + ("*" if o.program.plain == "NumPy" else " ")
        faster = f"[bold green]{o.python / min(o.one, o.all):,.0f} x[/]"
        others = (duration(t) for t in (o.compile, o.from_cache))
        difference = o.difference if o.right else f"[red]{o.difference}[/]"
        cells = [plain, duration(o.one), duration(o.all), faster, difference, *others]
        table.add_row(o.program.name, *(cells[k] for k in shown))
    console.print(table)
    note(
        console,
        "* NumPy. Compiling happens once for each combination of argument types; later processes load it from disk.",
    )
    return all(o.right for o in outcomes)


def gradient(console: Console) -> bool:
    """Plans for one gradient: what they keep, what they take, and that they agree."""
    heading(console, "A gradient, in the memory that you allow")
    console.print(Syntax(inspect.getsource(glowing_rod).rstrip(), "python", background_color="default", word_wrap=True))
    cells, steps, budget = (500, 40, "40kB") if QUICK else (20_000, 500, "8MB")
    plans = {
        "no limit": {},
        f'memory="{budget}"': {"memory": budget},
        'recover="checkpoint:3"': {"recover": "checkpoint:3"},
    }
    u = 1.0 + 0.5 * np.sin(np.linspace(0.0, 20.0, cells))
    value = tp.function(glowing_rod, threads=1)
    seconds = best_of(lambda: value(u, steps))
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("value and gradient", min_width=18)
    for title in ("kept", "at the peak", "time", "/ value alone", "differs"):
        table.add_column(title, justify="right", no_wrap=True)
    found, reports = [], []
    for text, plan in plans.items():
        derived = tp.value_and_grad(value, **plan)
        found.append(derived(u, steps)[1])
        with contextlib.redirect_stdout(io.StringIO()):
            reports.append(derived.explain(u, steps))
        taken = best_of(functools.partial(derived, u, steps))
        memory = [size(reports[-1].memory_bytes), size(reports[-1].peak_bytes)]
        table.add_row(text, *memory, duration(taken), f"{taken / seconds:.1f} x", compare(found[-1:], found[:1])[0])
    console.print(table)
    note(console, "Without a limit, .explain(u, steps) says how the values come back that the backward pass needs:")
    lines = [line for plan in reports[0].plans for line in recovery_lines(plan)]
    console.print("\n".join(lines), markup=False, highlight=False)
    direction = 1e-5 * np.cos(np.linspace(0.0, 7.0, cells))
    slope, difference = (
        float(np.sum(found[0] * direction)),
        (value(u + direction, steps) - value(u - direction, steps)) / 2,
    )
    note(console, f"In one direction its slope is {slope:.7g}; differences of the function give {difference:.7g}.")
    return all(compare([x], found[:1])[1] for x in found) and bool(np.isclose(slope, difference, rtol=1e-5))


def size(count: int | None) -> str:
    return "?" if count is None else size_text(count)


def best_of(run: Callable[[], Any]) -> float:
    return min(timed(run, ())[1] for _ in range(3))


def inside(console: Console) -> bool:
    heading(console, "What the compiler sees")
    source = Syntax(inspect.getsource(positive_norm).rstrip(), "python", background_color="default", word_wrap=True)
    core = Text(tp.function(positive_norm).ir(np.ones(3), stage="core").rstrip())
    for title, text in (("Python", source), ('.ir(x, stage="core")', core)):
        console.print(Panel(text, title=title, title_align="left", border_style="dim", width=console.width))
    note(console, 'The stages after that: "optimized", "loops", "llvm", "asm".')
    return True


def refusal(console: Console) -> bool:
    heading(console, "What cannot be compiled is refused, with the reason")
    try:
        tp.function(refused)(np.ones(3), 2.0)
    except tp.CompileError as problem:
        here = os.path.dirname(os.path.abspath(__file__))
        console.print(str(problem).replace(here + os.sep, ""), style="yellow", markup=False, highlight=False)
        return True
    console.print("it was not refused", style="red")
    return False


if __name__ == "__main__":
    sys.exit(main())
