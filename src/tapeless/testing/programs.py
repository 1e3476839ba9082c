"""Random programs of the language with arguments, for hypothesis.

`programs()` gives `Program`s: source text of a function and what to call it with. They are right as Python; some of
them
raise IndexError or ZeroDivisionError, and a few use what the compiler refuses. `Program.load` makes the function.
"""

from __future__ import annotations

import atexit
import linecache
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tapeless as tp
from tapeless.testing.scope import BOOL, DTYPE, F32, F64, FLOAT, I64, INT, Arr, Choose, Num, Type
from tapeless.testing.statements import Statements

THEMES = ("all", "control", "arrays", "parallel", "references")
HEADER = """import math

import numpy as np

import tapeless as tp

RATE = 0.25
STEPS = 3
TABLE = np.array([0.5, -1.0, 2.0])


"""


@dataclass(frozen=True)
class Input:
    """An argument: values in order, and for an array its shape and how it lies in memory."""

    dtype: str
    values: tuple[Any, ...]
    shape: tuple[int, ...] | None = None  # None: a number
    layout: str = "plain"  # plain | fortran | strided | reversed
    weak: bool = False

    def make(self) -> Any:
        if self.shape is None:
            return self.values[0] if self.weak else DTYPE[self.dtype].type(self.values[0])
        plain = np.array(self.values, DTYPE[self.dtype]).reshape(self.shape)
        match self.layout:
            case "fortran":
                return np.asfortranarray(plain)
            case "strided":
                wide = np.zeros((*self.shape[:-1], 2 * self.shape[-1]), plain.dtype)
                wide[..., ::2] = plain
                return wide[..., ::2]
            case "reversed":
                return plain[::-1].copy()[::-1]
        return plain

    def __repr__(self) -> str:
        if self.shape is None:
            return repr(self.make())
        extra = "" if self.layout == "plain" else f"  # {self.layout}"
        return f"np.array({list(self.values)}, np.{DTYPE[self.dtype].name}).reshape({self.shape}){extra}"


@dataclass(frozen=True)
class Program:
    source: str
    inputs: tuple[Input, ...]
    twice: bool = False  # the last argument is the same array as the first
    grouped: str = ""  # "tuple" or "dict": the first two arguments come in one container
    loose: bool = False  # written for arrays of other sizes: they may not fit together

    def arguments(self) -> list[Any]:
        """The arguments, made anew."""
        args = [i.make() for i in self.inputs]
        if self.twice:
            args[-1] = args[0]
        match self.grouped:
            case "tuple":
                return [(args[0], args[1]), *args[2:]]
            case "dict":
                return [{"u": args[0], "v": args[1]}, *args[2:]]
        return args

    def resized(self, sizes: Mapping[int, int]) -> Program:
        """The same program with arrays of other sizes; values are repeated or left out."""

        def other(i: Input) -> Input:
            if i.shape is None:
                return i
            shape = tuple(sizes.get(n, n) for n in i.shape)
            spare = (DTYPE[i.dtype].type(1).item(), DTYPE[i.dtype].type(0).item())
            values = islice(cycle(i.values or spare), math.prod(shape))
            return replace(i, shape=shape, values=tuple(values))

        return replace(self, inputs=tuple(map(other, self.inputs)), loose=True)

    @property
    def parallel(self) -> bool:
        """Whether the order in which errors come up is free."""
        text = self.source.removeprefix(HEADER)
        return any(word in text for word in ("tp.", "for ", "while "))

    @property
    def untyped(self) -> bool:
        """Whether something may be mapped over nothing: plain Python then does not know the type of the result."""
        return "map(" in self.source and any(i.shape is not None and 0 in i.shape for i in self.inputs)

    def load(self) -> Callable[..., Any]:
        """The function, from a file, so that its source is found."""
        path = _directory() / f"program{len(list(_directory().iterdir()))}.py"
        path.write_text(self.source, encoding="utf-8")
        scope: dict[str, Any] = {"np": np, "math": math, "tp": tp, "__name__": path.stem}
        exec(compile(self.source, str(path), "exec"), scope)
        linecache.checkcache(str(path))
        function: Callable[..., Any] = scope["f"]
        return function

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))

    def __repr__(self) -> str:
        args = ",\n    ".join(map(repr, self.inputs))
        return f"Program(twice={self.twice}, grouped={self.grouped!r}, loose={self.loose})\n{self.source.removeprefix(HEADER)}\nf(\n    {args},\n)"


@cache
def _directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="tapeless-programs-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def _below(n: int) -> Any:
    return st.integers(0, n - 1)


@st.composite
def programs(draw: Callable[[Any], Any], theme: str = "all", size: int = 14) -> Program:
    """A program of up to `size` statements; a theme has more of control flow, of arrays, or of parallel operators."""
    return write_program(lambda n: int(draw(_below(n))), theme, size)


def write_program(choose: Choose, theme: str = "all", size: int = 14) -> Program:
    """A program from a source of choices; `choose(n)` gives a number below n."""
    w = Statements(choose, size, theme)
    sizes = (3, w.pick((4, 2, 1, 0, 5, 6)))
    inputs: list[Input] = []
    parameters: list[str] = []
    count = 2 + w.below(4)
    for k in range(count):
        t = _parameter_type(w, k, sizes)
        name = f"{'a' if isinstance(t, Arr) else 'x'}{k}"
        parameters.append(name)
        inputs.append(_input(w, t))
        w.bind(name, t, w.new_cell() if isinstance(t, Arr) else 0)
    twice = inputs[0].shape is not None and inputs[0] == inputs[-1] and count > 1
    if w.chance(50):  # early returns are possible, the types are fixed
        w.scope.returns = tuple(_result_type(w) for _ in range(1 + w.below(3)))
    if twice:
        w.scope.variables[parameters[-1]] = w.bind(parameters[-1], w.scope.variables[parameters[0]].type, 1)
    w.bind("RATE", FLOAT, fixed=True)
    w.bind("STEPS", INT, fixed=True)
    w.bind("TABLE", Arr("f64", (3,)), w.new_cell(), frozen=True, fixed=True)
    w.bold = w.bold or w.chance(20)
    grouped = w.pick(("tuple", "dict")) if w.chance(10) else ""
    if grouped:
        items = 'q["u"], q["v"]' if grouped == "dict" else "q"
        w.line(f"{parameters[0]}, {parameters[1]} = {items}")
    w.body(size)
    w.line(w.return_text())
    signature = ", ".join(["q", *parameters[2:]] if grouped else parameters)
    source = f"{HEADER}def f({signature}):\n" + "\n".join(w.lines) + "\n"
    program = Program(source, tuple(inputs), twice, grouped)
    if w.chance(25):
        return program.resized({n: w.pick((n, 2, 5, 1, 0, 17, 9)) for n in dict.fromkeys(sizes)})
    return program


def _parameter_type(w: Statements, k: int, sizes: tuple[int, int]) -> Type:
    if k == 0 or (k > 1 and w.chance(60)):
        dtype = w.weighted([(6, "f64"), (3, "i64"), (2, "f32"), (2, "i32"), (1, "bool"), (1, "c128")]) if k else "f64"
        rank = 2 if w.chance(35) else 1
        return Arr(dtype, tuple(sizes[w.below(2)] for _ in range(rank)))
    return w.pick((FLOAT, INT, INT, F64, BOOL, I64, F32))


def _result_type(w: Statements) -> Type:
    if w.chance(35):
        found = w.arrays()
        if found:
            v = w.pick(found)
            assert isinstance(v.type, Arr)
            return Arr(w.pick((v.type.dtype, "f64")), v.type.shape)
    return w.pick((F64, FLOAT, INT, I64, BOOL))


def _input(w: Statements, t: Type) -> Input:
    if isinstance(t, Num):
        return Input(t.dtype, (_value(w, t.dtype),), None, "plain", t.weak or t == BOOL)
    values = tuple(_value(w, t.dtype) for _ in range(math.prod(t.shape)))
    layout = w.pick(("fortran", "strided", "reversed")) if w.chance(8) else "plain"
    return Input(t.dtype, values, t.shape, layout)


def _value(w: Statements, dtype: str) -> Any:
    match dtype:
        case "bool":
            return bool(w.below(2))
        case "i64" | "i32":
            return w.pick((1, 0, 2, 3, -1, 4, -3, 7))
        case "c128":
            return complex(w.pick((1.0, 0.0, -0.5)), w.pick((0.0, 1.0, -2.0)))
    if w.chance(1):
        return w.pick((math.nan, math.inf, -math.inf, -0.0))
    return w.pick((1.0, 0.0, 0.5, -1.0, 2.0, 0.25, -2.5, 3.0))
