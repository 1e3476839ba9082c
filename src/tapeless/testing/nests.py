"""Random loop nests, for comparing recoveries: `nests()` gives `Nest`s, the text of a function of floats, arrays and
trips.

Every statement keeps values within bounds, so that derivatives stay of a size that can be compared. Many can be solved
backwards, others not; some overwrite parts of arrays, some replace them, some carry integers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tapeless.testing.programs import HEADER, Program
from tapeless.testing.scope import Choose, Writer

HINTS = ("store", "undo", "checkpoint", "checkpoint:3", "recompute", "auto")


@dataclass(frozen=True)
class Nest:
    """`f(x, y, a, w, n, m)`: two floats, two arrays, the trips of outer loops and those of inner ones."""

    source: str

    def load(self) -> Callable[..., Any]:
        return Program(self.source, ()).load()

    def arguments(self, trips: int) -> list[Any]:
        a, w = np.array([0.3, -0.4, 0.8]), np.array([0.9, 0.5, -0.7])
        return [0.7, -0.3, a, w, trips, 2]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        return self.source.removeprefix(HEADER)


class Nests(Writer):
    """Statements about x, y (floats), s (a sum), a, b (arrays), w (an array that stays), k, u (integers)."""

    def __init__(self, choose: Choose, size: int) -> None:
        super().__init__(choose, size)
        self.indices: list[str] = []
        self.kinds: list[tuple[int, Callable[[], None]]] = [
            (4, self.solvable),
            (4, self.nonlinear),
            (2, self.sum_up),
            (3, self.element),
            (3, self.whole),
            (2, self.part),
            (2, self.swap),
            (2, self.integer),
            (3, self.branch),
            (3, self.inner_loop),
            (1, self.temporary),
            (1, self.leave),
        ]

    def statements(self, most: int) -> None:
        for _ in range(1 + self.below(most)):
            if self.left > 0:
                self.left -= 1
                self.weighted(self.kinds)()

    # -- expressions

    def number(self, without: str = "") -> str:
        """Between -1 and 1 or so, reading anything but one name."""
        names = [v for v in ("x", "y", "s") if v != without]
        if without != "a":
            names += [f"a[{self.place()}]"]
        if without != "b":
            names += [f"b[{self.place()}]"]
        names += [f"w[{self.place()}]"]
        one, two = self.pick(names), self.pick(names)
        forms = [
            f"math.sin({one})",
            f"math.cos({one} + {two})",
            f"math.tanh({one} * {two})",
            f"math.sin({one}) * {two}",
        ]
        forms += [f"math.sin({one} + 0.1 * {self.whole_number()})", f"math.sqrt(1.1 + math.sin({one}))"]
        forms += [f"max(math.sin({one}), {two})", f"np.sum(np.sin({self.array(without)}))", "0.25"]
        return self.pick(forms)

    def whole_number(self) -> str:
        return self.pick([*self.indices, "k", "u % 5", "n", "m"])

    def place(self) -> str:
        return self.pick(["0", "1", "2", "-1", *(f"{v} % 3" for v in (*self.indices, "k", "abs(u)"))])

    def array(self, without: str = "") -> str:
        return self.pick([v for v in ("w", "a", "b") if v != without])

    def test(self) -> str:
        whole = self.whole_number()
        tests = [f"{whole} % 2 == 0", f"{whole} > 2", "x > y", "s < 0.5", "a[0] > a[1]"]
        return self.pick(tests)

    # -- statements

    def solvable(self) -> None:
        """What can be run backwards."""
        v = self.pick(("x", "y"))
        forms = (
            f"{v} += 0.1 * {self.number(v)}",
            f"{v} -= 0.1 * {self.number(v)}",
            f"{v} = 0.1 * {self.number(v)} + {v}",
            f"{v} = 0.9 * {v} + 0.1 * {self.number(v)}",
            f"{v} = {v} * (0.9 + 0.01 * {self.number(v)})",
            f"{v} = 0.2 * {self.number(v)} - {v}",
        )
        self.line(self.pick(forms))

    def nonlinear(self) -> None:
        v = self.pick(("x", "y", "s"))
        forms = (
            f"{v} = {self.number()}",
            f"{v} = math.sin({v}) + 0.1 * {self.number()}",
            f"{v} *= 0.5 * {self.number()}",
        )
        self.line(self.pick(forms))

    def sum_up(self) -> None:
        self.line(
            self.pick((f"s += 0.1 * {self.number('s')}", "s = 0.5 * s + x * y", f"s += {self.array()}[{self.place()}]"))
        )

    def element(self) -> None:
        v = self.pick(("a", "b"))
        p = self.place()
        forms = (
            f"{v}[{p}] = {self.number()}",
            f"{v}[{p}] += 0.1 * {self.number(v)}",
            f"{v}[{p}] = 0.5 * {v}[{p}] * {v}[{self.place()}]",
            f"{v}[{p}] = {v}[{self.place()}]",
            f"{v}[{p}] *= {self.number(v)}",
        )
        self.line(self.pick(forms))

    def whole(self) -> None:
        v = self.pick(("a", "b"))
        o = self.array(v)
        forms = (
            f"{v} += 0.1 * np.sin({o})",
            f"{v} = np.sin({v}) * {self.number()} + 0.1 * {o}",
            f"{v} *= 0.9",
            f"{v} = {v} - 0.1 * {o}",
            f"{v} = np.cos({o}) * {v}[{self.place()}]",
            f"{v} = {o} + 0.0",
            f"{v} = 0.9 * {v}[::-1]",
        )
        self.line(self.pick(forms))

    def part(self) -> None:
        v, k = self.pick(("a", "b")), self.whole_number()
        forms = (
            f"{v}[{k} % 4 :] *= {self.number(v)}",
            f"{v}[: {k} % 3] = 0.5 * {v}[: {k} % 3] * {self.number()}",
            f"{v}[{k} % 2 :: 2] += 0.1 * np.sin({self.array(v)}[{k} % 2 :: 2])",
            f"{v}[1:] = 0.5 * {v}[:-1] + 0.1 * {self.array()}[1:]",
            f"{v}[:2] += 0.1 * {self.array()}[1:]",
            f"{v}[::2] *= {self.number(v)}",
            f"{v}[:] = np.sin({v})",
            f"{v}[1:] = {self.number()}",
        )
        self.line(self.pick(forms))

    def swap(self) -> None:
        forms = (
            "x, y = y, x",
            f"x, y = y, x + 0.1 * {self.number('x')}",
            "a, b = b, a",
            f"a[0], a[{self.place()}] = a[{self.place()}], a[0]",
            "x, s = 0.5 * s, x",
            f"x, a[{self.place()}] = a[{self.place()}], x",
        )
        self.line(self.pick(forms))

    def integer(self) -> None:
        self.line(
            self.pick(
                (
                    "k += 1",
                    "u = u * 5 + 3",
                    f"u ^= {self.whole_number()}",
                    "k = k + m",
                    "k, u = u % 7, k",
                    "u = u % 11 + 1",
                )
            )
        )

    def temporary(self) -> None:
        t = self.name("t")
        self.line(f"{t} = {self.number()}")
        self.line(self.pick((f"x += 0.1 * {t} * {t}", f"a[{self.place()}] = {t} * y", f"y = {t} * math.cos({t})")))

    def branch(self) -> None:
        self.line(f"if {self.test()}:")
        with self.block():
            self.statements(2)
        if self.chance(50):
            self.line("else:")
            with self.block():
                self.statements(2)

    def leave(self) -> None:
        if self.scope.leave:
            self.line(f"if {self.pick(('abs(x) > 1.6', 's > 3.0', f'{self.indices[-1]} == 5', 'a[1] > 0.9'))}:")
            with self.block():
                self.line(self.pick(("break", "continue")))

    # -- loops

    def loop(self, bound: str) -> None:
        i = self.name("i")
        kind = self.weighted([(8, "for"), (2, "hint"), (1, "while"), (1, "backwards")])
        if kind == "while":
            self.line(f"{i} = 0")
            self.line(f"while {i} < {bound}:" if self.chance(50) else f"while {i} < {bound} and abs(x) < 1.8:")
        elif kind == "backwards":
            self.line(f"for {i} in range({bound}, 0, -1):")
        elif kind == "hint":
            self.line(f'for {i} in tp.loop(range({bound}), recover="{self.pick(HINTS)}"):')
        else:
            self.line(f"for {i} in range({bound}):")
        self.indices.append(i)
        with self.block(leave=kind != "while") as inner:
            inner.loops += 1
            if kind == "while":
                self.line(f"{i} += 1")
            self.statements(4)
        self.indices.pop()

    def inner_loop(self) -> None:
        if self.scope.loops < 3:
            varying = [*(f"{v} % 4" for v in self.indices), "abs(u) % 3", "int(3.0 * abs(x)) % 4"]
            self.loop(self.pick(["m", "3", *varying, "m + 2"]))

    def mapped(self) -> None:
        """A loop inside a function that is mapped."""
        g, e, i = self.name("g"), self.name("e"), self.name("i")
        update = self.pick(
            (f"{e} = math.sin({e}) + 0.1 * x", f"{e} = 0.9 * {e} + 0.1 * {i}", f"{e} += 0.1 * math.sin(y) * {i}")
        )
        self.line(f"def {g}({e}):")
        self.line(f"    for {i} in range(n):")
        self.line(f"        {update}")
        self.line(f"    return {e}")
        self.line(f"b = tp.map({g}, {self.array()})")


@st.composite
def nests(draw: Callable[[Any], Any], size: int = 12) -> Nest:
    return write_nest(lambda n: int(draw(st.integers(0, n - 1))), size)


def write_nest(choose: Choose, size: int = 12) -> Nest:
    w = Nests(choose, size)
    w.line("s, k, u = 0.0, 1, 17")
    w.line("b = 0.5 * a")
    if w.chance(10):
        w.mapped()
    w.loop("n")
    if w.chance(25):
        w.loop(w.pick(("n", "m")))
    w.line("return x * y + s + np.sum(a * w) + 0.5 * np.sum(b * b)")
    return Nest(f"{HEADER}def f(x, y, a, w, n, m):\n" + "\n".join(w.lines) + "\n")
