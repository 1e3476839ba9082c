"""Programs that call any function of the table of the compiler, for hypothesis.

`calls()` gives `Calls`: source text of a function and its arguments. A program makes a few of the calls of `examples.py`, straight,
in loops, branches, functions of its own or under `tp.map`; results feed element-wise statements and a number `t` that moves the
arguments of later calls. `Calls.load` makes the function.
"""

from __future__ import annotations

import ast
import atexit
import copy
import itertools
import linecache
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.examples import NAMES, SCOPE, Example, examples_of, parts
from tests.prelude.docstrings import DEFINED

Choose = Callable[[int], int]  # gives a number below another
KINDS = ("straight", "straight", "loop", "branch", "function", "mapped")
# What of a result is defined, as text; vectors but for a factor, elements but not their order.
VIEWS = {
    "shape and element type": "np.zeros_like({})",
    "the elements, but not their order within a part": "np.sort({})",
    "vectors but for a factor of size 1": "np.abs({})",
    "one triangle": "np.triu({0}) if np.ndim({0}) == 2 else {0}",
}
VIEW_OF = {name: VIEWS[reason] for reason, (_, names) in DEFINED.items() for name in names}
_numbers = itertools.count()


@dataclass(frozen=True, eq=False)
class Calls:
    source: str
    given: tuple[tuple[str, Any], ...]
    names: tuple[str, ...]  # of the functions that are called
    strided: frozenset[str] = frozenset()  # arguments whose elements do not lie side by side

    def arguments(self) -> list[Any]:
        made = copy.deepcopy(dict(self.given))
        return [_strided(value) if name in self.strided else value for name, value in made.items()]

    def load(self) -> Callable[..., Any]:
        path = _directory() / f"calls{next(_numbers)}.py"
        path.write_text(self.source, encoding="utf-8")
        scope = {**SCOPE, "__name__": path.stem}
        exec(compile(self.source, str(path), "exec"), scope)
        linecache.checkcache(str(path))
        found: Callable[..., Any] = scope["f"]
        return found

    def __repr__(self) -> str:
        return f"{self.source}\n" + "\n".join(
            f"{name} = {value!r}{'  # strided' if name in self.strided else ''}" for name, value in self.given
        )


@cache
def _directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="tapeless-calls-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@st.composite
def calls(draw: Callable[[Any], Any], most: int = 3) -> Calls:
    return write(lambda n: int(draw(st.integers(0, n - 1))), most)


def write(choose: Choose, most: int) -> Calls:
    """A program of up to `most` calls."""
    writer = Writer(choose)
    for k in range(1 + choose(most)):
        found = examples_of(NAMES[choose(len(NAMES))])
        writer.piece(k, found[choose(len(found))], KINDS[choose(len(KINDS))])
    return writer.program()


def single(example: Example, kind: str = "straight") -> Calls:
    """A program of one call."""
    writer = Writer(lambda n: 0)
    writer.piece(0, example, kind)
    return writer.program()


@dataclass
class Piece:
    """The lines of one call: what its result is called, a function for it, its text with arguments as they are and as they are moved."""

    result: str
    function: str
    plain: str
    text: str
    moves: list[str] = field(default_factory=list)
    feed: list[str] = field(default_factory=list)

    def arranged(self, kind: str) -> list[str]:
        here, with_index = ([m.format(by) for m in self.moves] for by in ("", " - 0.001 * i"))
        assigned, once = f"{self.result} = {self.text}", f"{self.result} = {self.plain}"
        match kind:
            case "loop":
                return [once, "for i in range(2):", *_indented([*with_index, assigned, *self.feed])]
            case "branch":
                return ["if t > 0.1:", *_indented([*here, assigned]), "else:", f"    {once}", *self.feed]
            case "function" | "mapped":
                i, moves, call = (
                    ("t", here, f"{self.function}(t)")
                    if kind == "function"
                    else ("i", with_index, f"tp.map({self.function}, 2)")
                )
                body = _indented([*moves, f"return {self.text}"])
                return [f"def {self.function}({i}):", *body, f"{self.result} = {call}", *self.feed]
        return [*here, assigned, *self.feed]


@dataclass
class Writer:
    choose: Choose
    lines: list[str] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=lambda: {"t": 0.3})
    returned: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    strided: set[str] = field(default_factory=set)

    def program(self) -> Calls:
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return ({', '.join([*self.returned, 't'])},)"])
        source = f"def f({', '.join(self.given)}):\n{body}\n"
        return Calls(source, tuple(self.given.items()), tuple(self.names), frozenset(self.strided))

    def piece(self, k: int, example: Example, kind: str) -> None:
        """A call, and what is made of its result. In place of `x`, it may take `x_`, which `t` has moved."""
        found = list(parts(example.run()))
        own = {name: f"{name}{k}" for name, _ in example.given}
        moved = {name: f"{own[name]}_" for name, value in example.given if _is_float(value) and self.choose(3)}
        self.names.append(example.name)
        self.given |= {own[name]: value for name, value in example.given}
        self.strided |= {own[name] for name, value in example.given if _has_rows(value) and self.choose(6) == 5}
        piece = Piece(f"result{k}", f"inner{k}", renamed(example.text, own), renamed(example.text, own | moved))
        piece.moves = [f"{moved[name]} = {own[name]} * (1.0 - 0.01 * t{{}})" for name in moved]
        piece.feed = self.feed(k, example, found)
        if not found:
            kind = "straight"  # arguments are written
            self.returned += [(own | moved)[name] for name, value in example.given if isinstance(value, np.ndarray)]
        if kind == "mapped" and [path for path, _ in found] != [""]:
            kind = "function"
        self.lines += piece.arranged(kind)
        self.returned += [self.part(k, example, path) for path, _ in found]

    def part(self, k: int, example: Example, path: str) -> str:
        return VIEW_OF.get(example.name, "{}").format(f"result{k}{path}")

    def feed(self, k: int, example: Example, found: list[tuple[str, Any]]) -> list[str]:
        """Statements that make the next `t` of a result, and of one of its arrays. What has half the digits stays out of it."""
        terms = []
        for path, value in found:
            part, kind = self.part(k, example, path), np.asarray(value).dtype
            if kind not in (np.float32, np.complex64):
                faces = [f"np.real({part})", f"np.imag({part})"] if kind.kind == "c" else [part]
                terms += [f"np.sum(np.tanh(1.0 * {face}))" for face in faces]
        if not terms:
            return []
        lines = [f"s = {' + '.join(terms)}", "t = math.tanh(0.1 * s) if math.isfinite(s) else 0.25"]
        arrays = [
            path for path, value in found if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.size
        ]
        if arrays:
            part = self.part(k, example, arrays[self.choose(len(arrays))])
            lines.append(f"t = t + 0.01 * math.atan(np.mean(np.tanh({part}) * t + {part} / (1.0 + {part} ** 2)))")
        return lines


def renamed(text: str, names: dict[str, str]) -> str:
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = names[node.id]
    return ast.unparse(tree)


def _has_rows(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _strided(value: Any) -> Any:
    """The same array, turned around in memory: columns side by side, and every other one of them."""
    wide = np.zeros((2 * value.shape[-1], *reversed(value.shape[:-1])), value.dtype)
    wide[::2] = value.T
    return wide[::2].T


def _is_float(value: Any) -> bool:
    return (isinstance(value, np.ndarray) and value.dtype == np.float64) or type(value) is float


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
