"""Programs whose size is a number: what compile time should be linear in.

`SHAPES` has for each kind of program a function from its size to the text of a module; the module's `f` takes the
arguments in `ARGUMENTS`. `module` writes and imports the text, since only functions with source are compiled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HEAD = "import math\nimport numpy as np\n\n"


def function(parameters: str, lines: list[str], before: str = "") -> str:
    return f"{HEAD}{before}\n\ndef f({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


def chain(n: int) -> str:
    """Each statement needs the one before."""
    lines = [f"x = x * {1 + 1 / (k + 2):.6f} + {k % 7}.5" if k % 3 else "x = math.sin(x)" for k in range(n)]
    return function("x", [*lines, "return x"])


def live(n: int) -> str:
    """Many variables, all of them needed at the end."""
    lines = [f"v{k} = x * {k + 1}.0 + {f'v{k - 1}' if k else 'x'}" for k in range(n)]
    sums = ["s = 0.0", *(f"s = s + v{k}" for k in range(n))]
    return function("x", [*lines, *sums, "return s"])


def elements(n: int) -> str:
    """Writes of single elements."""
    lines = [f"a[{k % 50}] = a[{(k * 7) % 50}] * {k}.5 + x" for k in range(n)]
    return function("x", ["a = np.zeros(50)", *lines, "return a.sum()"])


def arguments_written(n: int) -> str:
    """Writes of single elements of an argument, whose length is not known."""
    lines = [f"a[{k}] = a[{(k * 7) % n}] * {k}.5 + a[0]" for k in range(n)]
    return function("a", [*lines, "return a[0]"])


def whole(n: int) -> str:
    """Statements over whole arrays."""
    lines = [f"a = a * 0.4 + 0.{k % 9 + 1} * b" if k % 2 else f"b = b * 0.3 + 0.{k % 7 + 1} * a" for k in range(n)]
    return function("a", ["b = a.copy()", *lines, "return (a + b).sum()"])


def mixed(n: int) -> str:
    """Numbers, elements, whole arrays and short branches in turn."""
    lines = []
    for k in range(n):
        match k % 5:
            case 0:
                lines.append(f"v{k % 20} = x * {k}.5 + 1.0")
            case 1:
                lines.append(f"a[{k % len('0123')}] = x + {k}.0")
            case 2:
                lines.append(f"x = math.sqrt(x * x + v{(k - 2) % 20})")
            case 3:
                lines.append(f"x = x + 1.0 if x > {k}.0 else x - 1.0")
            case 4:
                lines.append("a += x" if k % 4 else "x += a[1]")
    return function("a, x", [*lines, "return x + a.sum()"])


def elifs(n: int) -> str:
    """One result."""
    arms = [line for k in range(n) for line in (f"{'el' if k else ''}if k == {k}:", f"    y = x * {k}.5 + 1.0")]
    return function("x, k", [*arms, "else:", "    y = x", "return y"])


def elifs_of_three(n: int) -> str:
    """Several variables, some of them in some arms only."""
    arms = []
    for k in range(n):
        arms += [f"{'el' if k else ''}if x < {k}.0:", f"    y = x * {k}.5", f"    {'z' if k % 2 else 'w'} += y"]
    return function("x", ["y = z = w = 0.0", *arms, "return y + z * w"])


def returns(n: int) -> str:
    """Arms that leave: what follows moves into the other arm."""
    return function(
        "x", [line for k in range(n) for line in (f"if x < {k}.0:", f"    return x * {k}.5")] + ["return x"]
    )


def ifs(n: int) -> str:
    """One after the other."""
    lines = [line for k in range(n) for line in (f"if x < {k}.0:", f"    x = x * {k}.5", "else:", "    y = y + x")]
    return function("x", ["y = 0.0", *lines, "return x + y"])


def nested_ifs(n: int) -> str:
    lines = ["y = x"]
    for k in range(n):
        lines += ["    " * k + f"if x < {n - k}.0:", "    " * (k + 1) + f"y = y * x + {k}.0"]
    return function("x", [*lines, "return y"])


def loops(n: int) -> str:
    """Small loops one after the other."""
    lines = [line for k in range(n) for line in ("for i in range(n):", f"    x = x * 0.5 + {k}.0 * i")]
    return function("x, n", [*lines, "return x"])


def array_loops(n: int) -> str:
    lines = [line for k in range(n) for line in ("for i in range(len(a)):", f"    a[i] = a[i] * 0.5 + {k}.0")]
    return function("a", [*lines, "return a.sum()"])


def definitions(n: int) -> str:
    """Functions inside the function, each called by the next."""
    lines = ["def g0(y):", "    return y * x"]
    for k in range(1, n):
        lines += [f"def g{k}(y):", f"    return y * {k}.5 + x"]
    calls = [f"x = g{k}(x)" for k in range(n)]
    return function("x", [*lines, *calls, "return x"])


def terms(n: int) -> str:
    """One expression, on many lines."""
    return function("x", ["return (x", *(f"    + x * {k}.5" for k in range(n)), ")"])


def calls_once(n: int) -> str:
    """Functions that call the next, n deep."""
    before = "".join(f"def g{k}(x):\n    return g{k + 1}(x * 1.5) + {k}.0\n\n\n" for k in range(n))
    return function("x", ["return g0(x)"], before + f"def g{n}(x):\n    return x\n")


def calls_twice(n: int) -> str:
    """Functions that call the next twice, n deep."""
    before = "".join(f"def g{k}(x):\n    return g{k + 1}(x * 1.5) + g{k + 1}(x + {k}.0)\n\n\n" for k in range(n))
    return function("x", ["return g0(x)"], before + f"def g{n}(x):\n    return x * x\n")


def writes_twice(n: int) -> str:
    """The same with functions that write an array of their caller, which are compiled in place: 2**n copies."""
    before = "".join(f"def g{k}(x):\n    g{k + 1}(x)\n    g{k + 1}(x)\n\n\n" for k in range(n))
    return function("x", ["g0(x)", "return x[0]"], before + f"def g{n}(x):\n    x[0] = x[0] * 0.999 + x[1]\n")


def calls_in_a_row(n: int) -> str:
    """One function called n times."""
    before = "def g(x, y):\n    z = x * y + 1.0\n    if z > 100.0:\n        z = math.sqrt(z)\n    return z - y\n"
    return function("x", [*(f"x = g(x, {k}.5)" for k in range(n)), "return x"], before)


def over_tuple(n: int) -> str:
    """A loop over numbers of one type."""
    return function(
        "x", ["for v in T:", "    x = x * 0.5 + v", "return x"], f"T = tuple(k * 0.5 for k in range({n}))\n"
    )


def over_ints(n: int) -> str:
    return function("a", ["s = 0", "for v in T:", "    s += v % 7", "return s"], f"T = tuple(range({n}))\n")


def over_mixed(n: int) -> str:
    """A loop over numbers of two types, which have to be told apart."""
    before = f"T = tuple(k * 0.5 if k % 2 else k for k in range({n}))\n"
    return function("x", ["for v in T:", "    x = x * 0.5 + v", "return x"], before)


def over_display(n: int) -> str:
    """A loop over a list of values that are made in the function."""
    items = ", ".join(f"x * {k}.5" for k in range(n))
    return function("x", [f"items = [{items}]", "s = 0.0", "for v in items:", "    s += v * v", "return s"])


def over_zip(n: int) -> str:
    before = f"T = tuple(k * 0.5 for k in range({n}))\nU = list(range({n}))\n"
    lines = ["for k, (t, u) in enumerate(zip(T, U)):", "    x = x * 0.5 + t * u - k", "return x"]
    return function("x", lines, before)


def over_static_use(n: int) -> str:
    """A loop whose body needs its items at compile time: they choose a function."""
    before = f"T = tuple(k % 2 for k in range({n}))\nF = (math.sin, math.cos)\n"
    return function("x", ["for v in T:", "    x = F[v](x)", "return x"], before)


def comprehension(n: int) -> str:
    return function("x", [f"items = [x * k for k in range({n})]", "return np.array(items).sum()"])


def sum_of_tuple(n: int) -> str:
    return function("x", ["return x * sum(T)"], f"T = tuple(k * 0.5 for k in range({n}))\n")


def max_of_items(n: int) -> str:
    return function("x", ["return max(x, *T)"], f"T = tuple(k * 0.5 for k in range({n}))\n")


def captured_list(n: int) -> str:
    """A long display as a global, of which one item is read."""
    return function("x", ["return x * D[3] + D[-1]"], f"D = [{', '.join(f'{k}.5' for k in range(n))}]\n")


def captured_dict(n: int) -> str:
    items = ", ".join(f"'k{k}': {k}.5" for k in range(n))
    return function("x", ["return x * D['k3']"], f"D = {{{items}}}\n")


def vector() -> Any:
    return np.linspace(0.1, 1.0, 7)


# name -> (the text for a size, arguments for `f`, a size that is large for it)
Shape = tuple[Callable[[int], str], Callable[[int], tuple[Any, ...]], int]
SHAPES: dict[str, Shape] = {
    "chain": (chain, lambda n: (0.5,), 5000),
    "live": (live, lambda n: (0.5,), 2500),
    "elements": (elements, lambda n: (0.5,), 5000),
    "arguments written": (arguments_written, lambda n: (np.ones(n),), 5000),
    "whole": (whole, lambda n: (vector(),), 1000),
    "mixed": (mixed, lambda n: (vector(), 0.5), 5000),
    "elifs": (elifs, lambda n: (0.5, 3), 500),
    "elifs of three": (elifs_of_three, lambda n: (0.5,), 500),
    "returns": (returns, lambda n: (0.5,), 500),
    "ifs": (ifs, lambda n: (0.5,), 1000),
    "nested ifs": (nested_ifs, lambda n: (0.5,), 80),
    "loops": (loops, lambda n: (0.5, 3), 500),
    "array loops": (array_loops, lambda n: (vector(),), 500),
    "definitions": (definitions, lambda n: (0.5,), 1000),
    "terms": (terms, lambda n: (0.5,), 1000),
    "calls once": (calls_once, lambda n: (0.5,), 100),
    "calls twice": (calls_twice, lambda n: (0.5,), 14),
    "writes twice": (writes_twice, lambda n: (np.ones(2),), 14),
    "calls in a row": (calls_in_a_row, lambda n: (0.5,), 1000),
    "over a tuple": (over_tuple, lambda n: (0.5,), 10**6),
    "over ints": (over_ints, lambda n: (0.5,), 10**6),
    "over mixed": (over_mixed, lambda n: (0.5,), 1000),
    "over a display": (over_display, lambda n: (0.5,), 2000),
    "over a zip": (over_zip, lambda n: (0.5,), 10**5),
    "over static use": (over_static_use, lambda n: (0.5,), 1000),
    "comprehension": (comprehension, lambda n: (0.5,), 2000),
    "sum of a tuple": (sum_of_tuple, lambda n: (0.5,), 10**5),
    "max of items": (max_of_items, lambda n: (0.5,), 2000),
    "captured list": (captured_list, lambda n: (0.5,), 10**5),
    "captured dict": (captured_dict, lambda n: (0.5,), 10**4),
}


def module(text: str, path: Path) -> ModuleType:
    """The text as a file and a module."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
