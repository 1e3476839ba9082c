"""`tp.function`: a Python function that compiles itself for the arguments it meets.

Specialises on element types, ranks, sizes of 1, which sizes are equal, and static values; never on sizes as such.
Relies on `runtime` for compiling and calling. The plain function stays reachable as `.python`.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from tapeless.api.operators import Vmapped
from tapeless.api.shared import Shareable, shared
from tapeless.backends.cpu.threads import MAX_THREADS
from tapeless.backends.cuda.driver import driver
from tapeless.backends.llvm.at_once import cores
from tapeless.errors import ArgumentError, CompileError, DeviceError, InternalError, TapelessError
from tapeless.frontend.entry import ArraySpec, Spec, StaticSpec, specs_of
from tapeless.frontend.source.plain_objects import refused
from tapeless.frontend.state.context import Options, object_text
from tapeless.ir import pytree
from tapeless.runtime.calling import Caller, is_for_the_user
from tapeless.runtime.compile import Call, Compiled, compile_specs
from tapeless.runtime.deep import with_room
from tapeless.runtime.device_arrays import is_on_device, view_of
from tapeless.runtime.device_calls import DeviceCaller
from tapeless.runtime.fastcall import fast_call
from tapeless.runtime.forks import steady
from tapeless.runtime.native_entry import MISFIT, PLAIN, native_entry

P = ParamSpec("P")
R = TypeVar("R")
THREADS = f"a number from 1 to {MAX_THREADS}"
MOST_KINDS = 256  # of arguments, for one function
OFTEN = 100  # calls in Python until a native entry is worth its milliseconds
MOST_HOT = 4  # native entries of a function: each of them looks at the arguments
T = TypeVar("T")


def default_threads() -> int:
    given = os.environ.get("TAPELESS_THREADS")
    if given:
        if not given.isdecimal() or len(given) > 9 or not 1 <= int(given) <= MAX_THREADS:
            raise ValueError(f"TAPELESS_THREADS={given!r}: it must be {THREADS}")
        return int(given)
    return min(cores(), MAX_THREADS)


@dataclass(slots=True)
class _Short:
    """The short way to one specialisation."""

    call: Callable[[Any], Any]
    caller: Caller
    calls: int = 0
    native: Callable[..., Any] | None = None


class Function(Shareable, Generic[P, R]):
    """A compiled function. Calling it runs native code; `.python` is the function as written."""

    # functools.wraps copies what is in `__dict__`, and the wrapper is another function
    __slots__ = (
        "__dict__", "__weakref__", "_fast", "_hot", "_lock", "_versions", "cache", "options", "python", "threads"
    )  # fmt: skip

    def __init__(
        self,
        python: Callable[P, R],
        *,
        device: str = "cpu",
        threads: int | None = None,
        fastmath: bool = False,
        memory: str | None = None,
        cache: bool = True,
        check: bool = False,
        unsafe: bool = False,
        debug_nans: bool = False,
        coarsen: bool = True,
    ) -> None:
        super().__init__()
        functools.update_wrapper(self, python)
        self.python = python
        self.threads = threads if threads is not None else default_threads()
        self.options = Options(
            check, unsafe, fastmath, debug_nans, memory, self.threads == 1, coarsen and not debug_nans, device
        )
        self.cache = cache
        self._fast: dict[Any, tuple[_Short, ...]] = {}  # by types, ranks and flags
        self._hot: list[Callable[..., Any]] = []  # native entries of what is called often
        self._versions: dict[Any, list[tuple[tuple[Any, ...], Caller]]] = {}
        self._lock = threading.RLock()

    def copy(self) -> Self:
        new = super().copy()
        functools.update_wrapper(new, self.python)
        new.python, new.threads, new.options, new.cache = self.python, self.threads, self.options, self.cache
        new._fast, new._hot, new._versions, new._lock = self._fast, self._hot, self._versions, self._lock
        return new

    # -- calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if not kwargs:
                for native in self._hot:
                    result = native(*args)
                    if result is not MISFIT:
                        return result  # type: ignore[no-any-return]
                for short in self._fast.get(_fast_key(args), ()):
                    if short.caller.unchanged():
                        result = short.call(args)
                        if result is not MISFIT:
                            short.calls += 1
                            if short.calls == OFTEN:
                                self._heat(short)
                            return result  # type: ignore[no-any-return]
            else:
                given, key = _in_a_row(args, kwargs)
                for short in self._fast.get(key, ()):
                    if short.caller.unchanged():
                        result = short.call(given)
                        if result is not MISFIT:
                            return result  # type: ignore[no-any-return]
            return self._slow_call(args, kwargs)
        except Exception as problem:
            if is_for_the_user(problem):
                raise problem.with_traceback(None) from None
            raise

    def _slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        with steady:
            caller, leaves = self._caller(args, kwargs)
            given, key = _in_a_row(args, kwargs) if kwargs else (args, _fast_key(args))
            if key is not None and caller.compiled.device is None:
                self._shorten(key, caller, _all_plain(given), self._again_with(len(args), kwargs))
        return caller(leaves)  # type: ignore[no-any-return]

    def _shorten(self, key: Any, caller: Caller, plain: bool, again: Callable[[tuple[Any, ...]], Any]) -> None:
        """Later calls with such arguments need not look for the specialisation."""
        with self._lock:
            known = self._fast.get(key, ())
            if any(short.caller is caller for short in known):
                return
            call = fast_call(caller, plain, again)
            if caller.captured:  # arrays of the surroundings may have been replaced by others
                fast = call
                call = lambda args: fast(args) if _captures_fit(caller) else again(args)  # noqa: E731
            self._fast[key] = (*known, _Short(call, caller))

    def _heat(self, short: _Short) -> None:
        """Later calls of this specialisation go through machine code alone."""
        with steady, self._lock:
            known = [s.caller for shorts in self._fast.values() for s in shorts if s.native in self._hot]
            if len(self._hot) < MOST_HOT and all(caller is not short.caller for caller in known):
                short.native = native_entry(short.caller)
                if short.native is not None:
                    self._hot.append(short.native)

    def _again_with(self, count: int, kwargs: dict[str, Any]) -> Callable[[tuple[Any, ...]], Any]:
        """A call whose arguments by name come in a row behind the others."""
        names = sorted(kwargs)
        return lambda given: self._slow_call(given[:count], dict(zip(names, given[count:], strict=True)))

    def _caller(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Caller, list[Any]]:
        """The specialisation for these arguments, compiled when there is none yet."""
        try:
            leaves, tree = pytree.flatten((args, dict(sorted(kwargs.items()))))
        except RecursionError:
            raise ArgumentError("an argument is nested too deeply, or contains itself") from None
        options, shown = self.options, leaves
        if any(map(is_on_device, leaves)):
            options, shown = replace(options, device="cuda"), [view_of(x) if is_on_device(x) else x for x in leaves]
        specs = specs_of(shown, self.python, tree)
        key = (tree, tuple(_loose(s) for s in specs), options.device)
        with steady, self._lock:
            versions = self._versions.setdefault(key, [])
            labels = [s.labels if isinstance(s, ArraySpec) else () for s in specs]
            for required, caller in versions:
                if _holds(required, labels) and caller.unchanged() and _captures_fit(caller):
                    return caller, leaves
            versions[:] = [(r, c) for r, c in versions if c.unchanged() and _captures_fit(c)]
            self._forget()
            if versions:  # only what held for an earlier call too is assumed
                specs = _weaken(specs, versions[-1][0])
            compiled = _compile(self.python, specs, tree, options, self.cache, Call(leaves, self.threads))
            caller = (Caller if compiled.device is None else DeviceCaller)(compiled, specs, self.threads)
            versions.append((tuple(s.labels if isinstance(s, ArraySpec) else () for s in specs), caller))
            return caller, leaves

    def _forget(self) -> None:
        """Lets go of specialisations that nobody will ask for: the oldest where there are many (static values, say)."""
        while len(self._versions) > MOST_KINDS:
            del self._versions[next(iter(self._versions))]
        there = {id(caller) for versions in self._versions.values() for _, caller in versions}
        for key, entries in list(self._fast.items()):
            kept = tuple(short for short in entries if id(short.caller) in there)
            if kept:
                self._fast[key] = kept
            else:
                del self._fast[key]
        known = [short.native for shorts in self._fast.values() for short in shorts]
        self._hot[:] = [native for native in self._hot if native in known]

    # -- looking inside

    def caller(self, *args: P.args, **kwargs: P.kwargs) -> Caller:
        """What calls the specialisation for these arguments."""

        def found() -> Caller:
            caller, leaves = self._caller(args, kwargs)
            return caller.for_call(leaves)

        return in_short(found)

    def compiled(self, *args: P.args, **kwargs: P.kwargs) -> Compiled:
        """The specialisation for these arguments, without running it."""
        return self.caller(*args, **kwargs).compiled

    def ir(self, *args: Any, stage: str = "core", **kwargs: Any) -> str:
        """The program as text: "core", "optimized", "loops", "llvm", "asm", "kernels" (of a GPU) or "ptx"."""
        with steady:
            return self.compiled(*args, **kwargs).text(stage)

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """Prints a report about the code for these arguments, and returns it."""
        tool = importlib.import_module("tapeless.tools.explain")  # a layer above this one
        caller, leaves = self._caller(args, kwargs)
        caller = caller.for_call(leaves)
        compiled = caller.compiled
        with steady:
            return tool.explain(compiled, caller.numbers(leaves), self._measured(args, kwargs), caller.threads)

    def _measured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[str], tuple[int, float]] | None:
        """For plots: a recovery's bytes and seconds on these arguments. Only derivatives have recoveries."""
        return None

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        """Inside another function only the Python of it counts."""
        return ()

    def __repr__(self) -> str:
        return f"<tapeless function {getattr(self.python, '__qualname__', self.python)!r}>"

    def __reduce__(self) -> str:
        """Pickled by name, as functions are."""
        return self.python.__qualname__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def in_short(run: Callable[[], T]) -> T:
    """What `run` gives; errors that say all there is to say come without our part of the traceback."""
    try:
        return run()
    except Exception as problem:
        if is_for_the_user(problem):
            raise problem.with_traceback(None) from None
        raise


@overload
def function(python: Callable[P, R], /, **options: Any) -> Function[P, R]: ...
@overload
def function(python: None = None, /, **options: Any) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(python: Any = None, /, **options: Any) -> Any:
    """Compiles a Python function on first use. Also as a decorator with options: @tp.function(threads=8)."""
    if python is None:
        return lambda f: function(f, **options)
    if isinstance(python, Function):
        python = python.python

    def make() -> Function[Any, Any]:
        target = _as_function(python) if _is_made(python) else python
        problem = _refused(target, options)
        if problem is not None:
            raise problem
        return Function(target, **options)

    threads = None if options.get("threads") is not None else default_threads()
    try:
        return shared(python, ("function", threads, *asked(options)), make)
    except Exception as problem:
        raise problem.with_traceback(None) from None


def asked(options: dict[str, Any]) -> tuple[Any, ...]:
    """Options as part of a key: True is not 1 there."""
    return tuple((name, type(value), value) for name, value in options.items())


function.__tapeless__ = "function"  # type: ignore[attr-defined]


def _is_made(python: Any) -> bool:
    """Whether it is called like a function without being one."""
    return isinstance(python, Vmapped) or hasattr(type(python), "__tapeless_handler__")


def _as_function(called: Any) -> Callable[..., Any]:
    """For what tp.vmap, tp.custom_vjp and tp.custom_jvp make."""

    def run(*args: Any) -> Any:
        return called(*args)

    return functools.update_wrapper(run, called, updated=())


MEMORY = re.compile(r"\d+(\.\d+)? ?([KMGT]i?)?B", re.IGNORECASE)
OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "device": (lambda x: isinstance(x, str), "the name of a device"),
    "threads": (
        lambda x: x is None or (isinstance(x, int) and not isinstance(x, bool) and 1 <= x <= MAX_THREADS),
        THREADS,
    ),
    "memory": (lambda x: x is None or (isinstance(x, str) and bool(MEMORY.fullmatch(x))), "a size like '64MB'"),
    **dict.fromkeys(
        ("fastmath", "cache", "check", "unsafe", "debug_nans", "coarsen"),
        (lambda x: isinstance(x, bool), "True or False"),
    ),
}


def _refused(python: Any, options: dict[str, Any]) -> Exception | None:
    """What is wrong with the arguments of tp.function."""
    if not isinstance(python, types.FunctionType) and not isinstance(
        getattr(python, "python", None), types.FunctionType
    ):
        reason = f"tp.function compiles Python functions, not {object_text(python)}"
        return CompileError(reason, code="TP107", hint="wrap a function written with def or lambda.")
    return wrong_options("function", options)


def wrong_options(made_by: str, options: Mapping[str, Any], others: Iterable[str] = ()) -> Exception | None:
    """What is wrong with options for the compiler, given to tp.function or a transform; `others` it takes, too."""
    for name, value in options.items():
        if name not in OPTIONS:
            return TypeError(f"tp.{made_by} has no option '{name}': it takes {', '.join([*others, *OPTIONS])}")
        fits, wanted = OPTIONS[name]
        if not fits(value):
            return ValueError(f"tp.{made_by}: {name} must be {wanted}, not {value!r}")
    if options.get("device", "cpu") not in ("cpu", "cuda"):
        return DeviceError(f"device {options['device']!r} is not known: use 'cpu' or 'cuda'")
    if options.get("device") == "cuda":
        try:
            driver()
        except DeviceError as problem:
            return DeviceError(f"device 'cuda' is not available: {problem.args[0]}; use device='cpu'")
    return None


def _compile(python: Any, specs: list[Spec], tree: Any, options: Options, cache: bool, call: Call) -> Compiled:
    try:
        return with_room(lambda: compile_specs(python, specs, tree, options, cache, call=call))
    except (TapelessError, MemoryError, Warning):  # warnings may be errors
        raise
    except RecursionError:
        raise CompileError(
            f"'{python.__name__}' is nested too deeply", code="TP114", hint="split it into several functions.",
            **_place(python),
        ) from None  # fmt: skip
    except Exception as problem:
        raise InternalError(
            f"the compiler failed on '{python.__name__}': {type(problem).__name__}: {problem}",
            hint="this is a bug of Tapeless, please report it with the function; .python runs it meanwhile.",
            **_place(python),
        ) from problem


def _place(python: Any) -> dict[str, Any]:
    code = getattr(python, "__code__", None)
    return {} if code is None else {"file": code.co_filename, "line": code.co_firstlineno}


# -- keys

NUMBERS = frozenset({np.float64, np.float32, np.int64, np.int32, np.bool_})  # of NumPy, with a short way into a call


def _fast_key(args: tuple[Any, ...]) -> Any:
    """What decides the specialisation but for sizes, from the arguments as they are; None when there are containers."""
    key: list[Any] = []
    for a in args:
        kind = type(a)
        if kind is float or kind is int or kind is bool:
            key.append(kind)
        elif kind is np.ndarray:
            key += (a.dtype, a.ndim, a.flags.num)
        elif kind in NUMBERS:
            key.append(kind)
        else:
            return None
    return tuple(key)


def _in_a_row(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """All arguments, those by name in the order of their names; and their key."""
    names = (*sorted(kwargs),)
    given = (*args, *[kwargs[n] for n in names])
    key = _fast_key(given)
    return given, None if key is None else (names, key)


def _all_plain(args: tuple[Any, ...]) -> bool:
    return all(type(a) is not np.ndarray or (a.flags.num & PLAIN == PLAIN and a.dtype.isnative) for a in args)


def _loose(spec: Spec) -> Any:
    """The part of a spec that every specialisation is keyed on."""
    match spec:
        case ArraySpec(labels=labels):
            return replace(spec, labels=tuple(x == 1 for x in labels))
        case StaticSpec(value=str() | bytes() | np.dtype() | types.MethodType() | types.BuiltinFunctionType() as value):
            return (type(value), value)
        case StaticSpec(value=value):  # what is equal to it may still have other attributes
            return ("object", id(value))
        case _:
            return spec


def _holds(required: tuple[Any, ...], labels: list[tuple[int, ...]]) -> bool:
    """Whether the sizes that a version takes to be equal are equal in this call."""
    seen: dict[int, int] = {}
    for want, have in zip(required, labels, strict=True):
        for w, h in zip(want, have, strict=True):
            if w != 1 and seen.setdefault(w, h) != h:
                return False
    return True


def _weaken(specs: list[Spec], earlier: tuple[Any, ...]) -> list[Spec]:
    """Sizes count as equal only when they were in the earlier version too."""
    pairs: dict[tuple[int, int], int] = {}
    new: list[Spec] = []
    for spec, old in zip(specs, earlier, strict=True):
        if isinstance(spec, ArraySpec):
            labels = tuple(
                1 if x == 1 else pairs.setdefault((x, y), 2 + len(pairs)) for x, y in zip(spec.labels, old, strict=True)
            )
            new.append(replace(spec, labels=labels))
        else:
            new.append(spec)
    return new


def _captures_fit(caller: Caller) -> bool:
    """Whether the arrays of the surroundings still have the types they were compiled for."""
    for c in caller.captured:
        try:
            now = c.get()
        except Exception:  # whatever a foreign object does when it is read
            return False
        shape = c.param.type.shape
        if (
            not isinstance(now, np.ndarray)
            or refused(now)
            or now.ndim != len(shape)
            or now.dtype != c.param.type.dtype.numpy
        ):
            return False
        if any((d == 1) != (n == 1) for d, n in zip(shape, now.shape, strict=True)):
            return False
        if bool(c.cell.readonly) == now.flags.writeable or c.cell.scattered == now.flags.c_contiguous:
            return False
    return True
