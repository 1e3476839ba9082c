"""What cannot be compiled: its name as people write it, and what to write instead.

Takes Python objects and values; gives messages. Relies on nothing but their names: whether something can be compiled is
decided elsewhere (`python/inlining.py`, `python/attributes.py`).
"""

from __future__ import annotations

import builtins
import difflib
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from tapeless.errors import CompileError
from tapeless.frontend.source.marks import peek
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value, parts_of
from tapeless.ir.types import Const

# Functions and objects -> what to write instead. Modules and objects with methods end with a dot; the first that fits counts.
HINTS: dict[str, str] = {
    "sorted": "use np.sort.",
    "map": "use tp.map.",
    "filter": "use np.where, which keeps the shape, or a loop with 'if'.",
    "iter": "use a for loop.",
    "next": "use a for loop.",
    "set": "use an array or a tuple.",
    "str": "strings cannot be made at run time.",
    "input": "read before the call, and pass the values in.",
    "open": "read before the call and write after it.",
    "breakpoint": "step through the plain function instead: f.python(...) runs it as Python does.",
    "pdb.": "step through the plain function instead: f.python(...) runs it as Python does.",
    "functools.partial": "use a lambda.",
    "functools.reduce": "use tp.reduce or a loop.",
    "itertools.": "use a for loop.",
    "copy.": "use .copy() of the array.",
    "statistics.": "use np.mean, np.var or np.std.",
    "np.ndarray": "use np.empty.",
    "np.trim_zeros": "its size depends on the data: loop over the elements and count.",
    "np.vectorize": "use tp.map.",
    "np.frompyfunc": "use tp.map.",
    "np.fromiter": "fill an array in a loop.",
    "math.fsum": "use sum or np.sum.",
    "np.random.": "make random numbers before the call and pass them in.",
    "random.": "make random numbers before the call and pass them in.",
    "np.linalg.": "docs/functions.md lists what can be: solve, cholesky, qr, svd, eigh and more.",
    "scipy.linalg.": "docs/functions.md lists what can be: solve, cholesky, svd, eigh and more.",
    "scipy.stats.": "write its formula; logpdf, cdf, ppf and the like of the usual distributions can be compiled.",
    "scipy.integrate.": "write the sum or the steps as a loop.",
    "scipy.optimize.": "write the iteration as a loop.",
    "time.": "measure time outside the compiled function.",
}
# Attributes of arrays -> what to write instead.
ATTRIBUTES = {"flat": "use .ravel().", "nbytes": "use .size * .itemsize.", "sort": "use np.sort of an array."}
OF_SHAPES = ("shape", "ndim", "size")  # what NumPy's functions also tell of numbers


def refuse_call(ctx: Context, target: Any, args: Sequence[Value], why: str = "") -> NoReturn:
    """A function that is not known, or, with the reason `why`, one of a library that cannot be compiled."""
    name = public_name(target)
    ctx.fail("TP103", f"{name} cannot be compiled{why and ': '}{why}", _hint(name) or _instead(ctx, args))


def refuse_index(ctx: Context, base: Value) -> NoReturn:
    name = _exported(base.value) if isinstance(base, Static) else ""
    if name:
        ctx.fail("TP103", f"{name} cannot be compiled", _hint(name))
    ctx.fail("TP104", f"{type_text(base)} cannot be indexed")


def refuse_attribute(ctx: Context, base: Value, name: str) -> NoReturn:
    what = "arrays have" if isinstance(base, Array) else f"{type_text(base)} has"
    hint, offered = ATTRIBUTES.get(name, ""), _attributes(base)
    if isinstance(base, Scalar) and name in OF_SHAPES:
        hint = f"np.{name}(...) works for numbers as for arrays."
    elif not hint:
        hint = "" if name in offered else similar(name, offered)
    ctx.fail("TP103", f"{what} no attribute '{name}' that can be compiled", hint)


def _attributes(base: Value) -> Sequence[str]:
    """Those that the value has in Python."""
    match base:
        case Array():
            return dir(np.ndarray)
        case Scalar(weak=weak):
            return dir(type(base.dtype.numpy.type().item()) if weak else base.dtype.numpy.type)
        case Sequence_(kind="namedtuple" | "dataclass", keys=keys):
            return [str(k) for k in keys]
        case Sequence_(kind=kind):
            return dir(getattr(builtins, kind, tuple))
        case Static(value=known):
            return dir(known)
        case _:
            return ()


def similar(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"is it '{close[0]}'?" if close else "look at its spelling."


def _hint(name: str) -> str:
    return next((h for key, h in HINTS.items() if name == key or (key[-1] == "." and name.startswith(key))), "")


WRITE = "write it out with a loop or with functions that can be compiled"


def _instead(ctx: Context, args: Sequence[Value]) -> str:
    """Passing a result in helps where the arguments are there before the call, and where it may count as a constant."""
    if not any(map(_computed, args)):
        return "call it outside and pass the result in."
    if ctx.transforms:
        return f"{WRITE}: a result that is passed in would count as a constant."
    return f"{WRITE}, or call it before and pass the result in."


def _computed(value: Value) -> bool:
    known = isinstance(value, Static) or (isinstance(value, Scalar) and isinstance(value.atom, Const))
    return any(map(_computed, parts_of(value))) if isinstance(value, Sequence_) else not known


# -- names


def public_name(target: Any) -> str:
    """As people write it: np.unique, math.fsum, sorted, scipy.special.erfinv, scipy.stats.norm.pdf."""
    owner = peek(target, "__self__")
    if owner is not None and not isinstance(owner, types.ModuleType | type) and (found := _exported(owner)):
        return f"{found}.{target.__name__}"
    if found := _exported(target):
        return found
    name = peek(target, "__qualname__") or peek(target, "__name__")
    if name is None:
        return f"an object of type {type(target).__name__}"
    module = peek(target, "__module__") or type(owner).__module__
    if module in (None, "builtins", "__main__"):
        return str(name)
    first, *rest = module.split(".")
    shown = [first.lstrip("_"), *(part for part in rest if not part.startswith("_"))]
    if first == "numpy":
        shown = ["np", *(part for part in shown[1:] if part in ("linalg", "random", "fft"))]
        name = name.rpartition(".")[2]
    return ".".join([*shown, name])


def _exported(target: Any) -> str:
    """The shortest public name that its package has for this very object; empty without one."""
    own = peek(target, "__name__") or ""
    home = peek(target, "__module__")
    packages = ("numpy", "scipy", "random") if home is None else (str(home).partition(".")[0],)
    for module in _public_modules({"builtins", *packages} - {"__main__"}):
        names = [n for n, value in list(vars(module).items()) if value is target and not n.startswith("_")]
        if names:
            name = own if own in names else names[0]
            return name if module.__name__ == "builtins" else f"{_short(module.__name__)}.{name}"
    return ""


def _short(module: str) -> str:
    return "np" + module.removeprefix("numpy") if module.partition(".")[0] == "numpy" else module


def _public_modules(packages: set[str]) -> Iterator[types.ModuleType]:
    names = [n for n in list(sys.modules) if n.partition(".")[0] in packages]
    for name in sorted(names, key=lambda n: (n.count("."), n)):
        module = sys.modules[name]
        if not any(part.startswith("_") for part in name.split(".")) and isinstance(module, types.ModuleType):
            yield module


# -- code that is not the user's


@functools.cache
def is_library(file: str) -> bool:
    """Whether a file belongs to NumPy, SciPy, Python or to us: what is wrong there is shown at the user's call."""
    folders = [os.path.dirname(m.__file__) for n in ("numpy", "scipy") if (m := sys.modules.get(n)) and m.__file__]
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "api")
    if file.startswith("<frozen "):
        return True
    python = sysconfig.get_path("stdlib")
    inside = any(file.startswith(folder + os.sep) for folder in (*folders, own))
    return inside or (file.startswith(python + os.sep) and "-packages" not in file)


def from_library(ctx: Context, function: Any, args: Sequence[Value], problem: CompileError) -> NoReturn:
    """Something in a library function that was compiled into its caller is refused at the call; what is wrong with a
    function of the user that was given to it stays where it is.
    """
    here = (ctx.span.file, ctx.span.line, ctx.span.column)
    if is_library(problem.file) or (problem.file, problem.line, problem.column) == here:
        refuse_call(ctx, function, args, problem.reason)
    raise problem
