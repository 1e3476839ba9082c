"""`tp.function`: a Python function that compiles itself for the arguments it meets.

Specialises on element types, ranks, sizes of 1, which sizes are equal, and static values; never on sizes as such.
Relies on `runtime` for compiling and calling. The plain function stays reachable as `.python`.
"""

from __future__ import annotations

import functools
import importlib
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from tapeless.api.callables import (
    Bound,
    as_function,
    by_name,
    is_callable_object,
    pickled_function,
    unpickled_function,
)
from tapeless.api.foreign import taken
from tapeless.api.kinds import all_plain, captures_fit, fast_key, holds, in_a_row, loose, resized, weakened
from tapeless.api.options import DEFAULTS, asked, wrong_options
from tapeless.api.options import default_threads as default_threads
from tapeless.api.shared import Shareable, own_table, shared
from tapeless.errors import ArgumentError, CompileError, InternalError, TapelessError
from tapeless.frontend.entry import ArraySpec, Spec, StaticSpec, specs_of
from tapeless.frontend.state.context import Options, object_text
from tapeless.frontend.state.surroundings import is_users
from tapeless.ir import pytree
from tapeless.runtime.calling import Caller, is_for_the_user
from tapeless.runtime.compile import Call, Compiled, compile_specs
from tapeless.runtime.deep import with_room
from tapeless.runtime.device_arrays import is_on_device, view_of
from tapeless.runtime.device_calls import DeviceCaller
from tapeless.runtime.fastcall import fast_call
from tapeless.runtime.forks import steady
from tapeless.runtime.native_entry import MISFIT, native_entry
from tapeless.runtime.native_method import install

P = ParamSpec("P")
R = TypeVar("R")
MOST_KINDS = 256  # of arguments, for one function
OFTEN = 100  # calls in Python until a native entry is worth its milliseconds
MOST_HOT = 4  # native entries of a function: each of them looks at the arguments
T = TypeVar("T")


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
        "__dict__", "__weakref__", "_fast", "_given", "_hot", "_lock", "_versions", "cache", "options", "python", "threads"
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
        deterministic: bool = False,
    ) -> None:
        super().__init__()
        self.python = python
        self._wrap()
        given = (device, threads, fastmath, memory, cache, check, unsafe, debug_nans, coarsen, deterministic)
        self._given = {k: v for k, v in zip(DEFAULTS, given, strict=True) if v != DEFAULTS[k]}
        self.threads = threads if threads is not None else default_threads()
        self.options = Options(
            check,
            unsafe,
            fastmath,
            debug_nans,
            memory,
            self.threads == 1,
            coarsen and not debug_nans,
            device,
            deterministic,
        )
        self.cache = cache
        self._fast: dict[Any, tuple[_Short, ...]] = {}  # by types, ranks and flags
        self._hot: list[Callable[..., Any]] = []  # native entries of what is called often
        self._versions: dict[Any, list[tuple[tuple[Any, ...], Caller]]] = {}
        self._resized: set[Any] = set()  # kinds of calls between which arrays of the surroundings changed their sizes
        self._lock = threading.RLock()

    def copy(self) -> Self:
        new = super().copy()
        new.python, new.threads, new.options, new.cache = self.python, self.threads, self.options, self.cache
        new._wrap()
        new._given = self._given
        new._fast, new._hot, new._versions, new._lock = self._fast, self._hot, self._versions, self._lock
        new._resized = self._resized
        return new

    def _wrap(self) -> None:
        """Name, text and parameters are those of the function that was written."""
        functools.update_wrapper(self, self.python)
        transform = self.__dict__.pop("__tapeless_transform__", None)  # functions that wrap this one are no transforms
        if transform is not None:
            self.__dict__["__wrapped__"] = transform.function

    # -- calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if not kwargs:
                for native in self._hot:
                    result = native(*args)
                    if result is not MISFIT:
                        return result  # type: ignore[no-any-return]
                for short in self._fast.get(fast_key(args), ()):
                    if short.caller.unchanged():
                        result = short.call(args)
                        if result is not MISFIT:
                            short.calls += 1
                            if short.calls == OFTEN:
                                self._heat(short)
                            return result  # type: ignore[no-any-return]
            else:
                given, key = in_a_row(args, kwargs)
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
        leaves, tree = _flat(args, kwargs)
        foreign = taken(leaves, self.python, tree)
        if foreign is not None:
            args, kwargs = pytree.unflatten(tree, foreign.leaves)
            return foreign.back(self(*args, **kwargs))  # type: ignore[no-any-return]
        with steady:
            caller = self._found(leaves, tree)
            given, key = in_a_row(args, kwargs) if kwargs else (args, fast_key(args))
            if key is not None:
                self._shorten(
                    key,
                    caller,
                    caller.compiled.device is None and all_plain(given),
                    self._again_with(len(args), kwargs),
                )
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
                call = lambda args: fast(args) if captures_fit(caller) else again(args)  # noqa: E731
            self._fast[key] = (*known, _Short(call, caller))

    def _heat(self, short: _Short) -> None:
        """Later calls of this specialisation go through machine code alone."""
        with steady, self._lock:
            known = [s.caller for shorts in self._fast.values() for s in shorts if s.native in self._hot]
            if len(self._hot) < MOST_HOT and all(caller is not short.caller for caller in known):
                short.native = native_entry(short.caller)
                if short.native is not None:
                    self._hot.append(short.native)
                    install(Function, "_hot")

    def _again_with(self, count: int, kwargs: dict[str, Any]) -> Callable[[tuple[Any, ...]], Any]:
        """A call whose arguments by name come in a row behind the others."""
        names = sorted(kwargs)
        return lambda given: self._slow_call(given[:count], dict(zip(names, given[count:], strict=True)))

    def _caller(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Caller, list[Any]]:
        """The specialisation for these arguments, and their leaves."""
        leaves, tree = _flat(args, kwargs)
        foreign = taken(leaves, self.python, tree)
        leaves = leaves if foreign is None else foreign.leaves
        return self._found(leaves, tree), leaves

    def _found(self, leaves: list[Any], tree: pytree.TreeDef) -> Caller:
        """The specialisation for these arguments, compiled when there is none yet."""
        options, shown = self.options, leaves
        if any(map(is_on_device, leaves)):
            options, shown = replace(options, device="cuda"), [view_of(x) if is_on_device(x) else x for x in leaves]
        specs = specs_of(shown, self.python, tree)
        key = (tree, tuple(loose(s) for s in specs), options.device)
        with steady, self._lock:
            versions = self._place(specs).setdefault(key, [])
            labels = [s.labels if isinstance(s, ArraySpec) else () for s in specs]
            for required, caller in versions:
                if holds(required, labels) and caller.unchanged() and captures_fit(caller):
                    return caller
            kept = [(r, c) for r, c in versions if c.unchanged() and captures_fit(c)]
            if any(c.unchanged() and resized(c) for _, c in versions):
                self._resized.add(key)
            versions[:] = kept
            options = replace(options, resized=key in self._resized)
            self._forget()
            if versions:  # only what held for an earlier call too is assumed
                specs = weakened(specs, versions[-1][0])
            structure = pytree.for_tracing(tree)
            compiled = _compile(self.python, specs, structure, options, self.cache, Call(leaves, self.threads))
            caller = (Caller if compiled.device is None else DeviceCaller)(compiled, specs, self.threads)
            versions.append((tuple(s.labels if isinstance(s, ArraySpec) else () for s in specs), caller))
            return caller

    def _place(self, specs: list[Spec]) -> dict[Any, list[tuple[tuple[Any, ...], Caller]]]:
        """Where specialisations for such arguments are: for an object of the user with that object, and they go with it."""
        for spec in specs:
            if isinstance(spec, StaticSpec) and is_users(type(spec.value)):
                table = own_table(spec.value)
                if table is not None:
                    return table.made.setdefault(("versions", self._lock), {})  # type: ignore[no-any-return]
        return self._versions

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
            numbers, refusal = caller.numbers(leaves), caller.refusal(leaves)
            return tool.explain(compiled, numbers, self._measured(args, kwargs), caller.threads, refusal)

    def _measured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[str], tuple[int, float]] | None:
        """For plots: a recovery's bytes and seconds on these arguments. Only derivatives have recoveries."""
        return None

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        """Inside another function only the Python of it counts."""
        return ()

    def __repr__(self) -> str:
        return f"<tapeless function {getattr(self.python, '__qualname__', self.python)!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickled by name, as functions are, or as what was asked of the function behind it."""
        if by_name(self) is self:
            return str(self.python.__qualname__)
        transform = getattr(self.python, "__tapeless_transform__", None)  # of another callable
        return _asked_again, (*pickled_function(transform.function if transform else self.python), self._given)

    def __copy__(self) -> Self:
        return self.copy()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Bound(self, instance)


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], pytree.TreeDef]:
    try:
        return pytree.flatten((args, dict(sorted(kwargs.items()))))
    except RecursionError:
        raise ArgumentError("an argument is nested too deeply, or contains itself") from None


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
    """Compiles a Python function on first use, for the kinds of arguments that it meets. As a decorator, also with
    options: `@tp.function(threads=8)`.

    It takes functions, methods, objects with a `__call__`, and what `functools.partial` and `lru_cache` make. In the body
    of a class it makes a method, whose object is an argument (see `tp.register_container`). The result is called as the
    function is; `.python` runs it as plain Python, `.ir` and `.explain` show what was made of it.

    Options:
        device: "cpu", or "cuda" for a GPU.
        threads: how many threads parallel loops use; all cores if it is not given, TAPELESS_THREADS for all functions.
        fastmath: True lets the compiler reorder sums and assume that there are no NaNs.
        memory: what derivatives in it may keep for their backward sweeps, like "64MB".
        cache: False keeps its code out of the cache on disk.
        check: True tests integers for overflow, and that what runs backwards comes back to where it began.
        unsafe: True drops tests of indices.
        debug_nans: True raises FloatingPointError on the line where a NaN comes up, in a value or an adjoint.
        coarsen: False compiles loops as they are written, without closed forms.
        deterministic: True gives the same bits in each run on a GPU, too, where sums by many threads take any order otherwise.
    """
    if python is None:
        return lambda f: function(f, **options)
    if isinstance(python, Function):
        python = python.python

    def make() -> Function[Any, Any]:
        target = as_function(python) if is_callable_object(python) else python
        problem = _refused(target, options)
        if problem is not None:
            raise problem
        return Function(target, **options)

    threads = None if options.get("threads") is not None else default_threads()
    try:
        return shared(python, ("function", threads, *asked(options)), make)
    except Exception as problem:
        raise problem.with_traceback(None) from None


def _asked_again(holder: Any, path: tuple[str, ...], options: dict[str, Any]) -> Any:
    """For pickles."""
    return function(unpickled_function(holder, path), **options)


function.__tapeless__ = "function"  # type: ignore[attr-defined]


def _refused(python: Any, options: dict[str, Any]) -> Exception | None:
    """What is wrong with the arguments of tp.function."""
    if isinstance(python, (staticmethod, classmethod, property)):
        kind = type(python).__name__
        reason = f"tp.function compiles Python functions, not a {kind}"
        return CompileError(reason, code="TP107", hint=f"write @{kind} above @tp.function.")
    if not isinstance(python, types.FunctionType) and not isinstance(
        getattr(python, "python", None), types.FunctionType
    ):
        reason = f"tp.function compiles Python functions, not {object_text(python)}"
        return CompileError(reason, code="TP107", hint="wrap a function written with def or lambda.")
    return wrong_options("function", options)


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
