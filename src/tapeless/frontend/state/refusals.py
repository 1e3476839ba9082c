"""What cannot be compiled: its name as people write it, and the error with what to write instead (`advice.py`).

Takes Python objects and values; gives messages. Relies on nothing but their names: whether something can be compiled is
decided elsewhere (`python/inlining.py`, `python/attributes.py`).
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from tapeless.errors import CompileError
from tapeless.frontend.source.marks import peek
from tapeless.frontend.state.advice import as_function, hint_for, missing_in, misspelt
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.parts import parts_of
from tapeless.frontend.state.values import Array, Scalar, Sequence_, Static, Value
from tapeless.ir.types import Const

# Attributes of arrays -> what to write instead.
ATTRIBUTES = {"flat": "use .ravel().", "nbytes": "use .size * .itemsize.", "mT": "use np.matrix_transpose(...)."}
OF_SHAPES = ("shape", "ndim", "size")  # what NumPy's functions also tell of numbers


def refuse_call(ctx: Context, target: Any, args: Sequence[Value], why: str = "") -> NoReturn:
    """A function that is not known, or, with the reason `why`, one of a library that cannot be compiled."""
    name = public_name(target)
    ctx.fail("TP103", f"{name} cannot be compiled{why and ': '}{why}", hint_for(name, _instead(ctx, args)))


def refuse_index(ctx: Context, base: Value) -> NoReturn:
    name = _exported(base.value) if isinstance(base, Static) else ""
    if name:
        ctx.fail("TP103", f"{name} cannot be compiled", hint_for(name, ""))
    ctx.fail("TP104", f"{type_text(base)} cannot be indexed")


def refuse_name(ctx: Context, module: types.ModuleType, name: str) -> NoReturn:
    """A name that a module does not have."""
    hint = missing_in(_short(module.__name__), name, dir(module))
    ctx.fail("TP103", f"module '{module.__name__}' has no attribute '{name}'", hint)


def refuse_attribute(ctx: Context, base: Value, name: str, offered: Iterable[str]) -> NoReturn:
    """An attribute that a value does not have, or not in compiled code, where it has those `offered`."""
    what = "arrays have" if isinstance(base, Array) else f"{type_text(base)} has"
    ctx.fail("TP103", f"{what} no attribute '{name}' that can be compiled", _attribute_hint(base, name, offered))


def _attribute_hint(base: Value, name: str, offered: Iterable[str]) -> str:
    if isinstance(base, (Array, Scalar)):
        if isinstance(base, Scalar) and name in OF_SHAPES:
            return f"np.{name}(...) works for numbers as for arrays."
        if found := (isinstance(base, Array) and ATTRIBUTES.get(name)) or as_function(name):
            return found
    return "" if name in _attributes(base) else misspelt(name, offered)


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
    if owner is not None and not isinstance(owner, (types.ModuleType, type)) and (found := _exported(owner)):
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
