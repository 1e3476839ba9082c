"""`tp.grad` and its family; functions with derivatives of their own.

Each makes a function that is compiled for the arguments it meets, like any `tp.function`; inside compiled code the same
names are handled by `transforms.calls`. Names and arguments are those of JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, Self

from tapeless.api.callables import Bound, Transform, by_name, pickled_function, unpickled_function
from tapeless.api.function import Function
from tapeless.api.function import function as compiled_function
from tapeless.api.operators import check_recover
from tapeless.api.options import MEMORY, asked, default_threads, wrong_options
from tapeless.api.shared import shared
from tapeless.frontend.source.marks import Keys
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.values import Value
from tapeless.runtime.peak import peak_of
from tapeless.transforms import calls, custom_calls

assert calls  # registers its handlers
P = ParamSpec("P")


class Derived(Function[Any, Any]):
    """A derivative of a function, compiled when it is called."""

    __slots__ = ("transform",)

    def __init__(self, transform: Transform, **options: Any) -> None:
        def run(*args: Any, **keywords: Any) -> Any:
            return self(*args, **keywords)

        run.__tapeless_transform__ = transform  # type: ignore[attr-defined]

        base = transform.function
        name = getattr(base, "__name__", "function")
        run.__name__ = run.__qualname__ = f"{transform.name}_of_{name.strip('<>')}"
        text = f"tp.{transform.name} of {name}, which takes the same arguments."
        own = getattr(base, "__doc__", None) if hasattr(base, "__name__") else None
        run.__doc__ = f"{text}\n\n{own}" if own else text
        run.__module__ = getattr(base, "__module__", None) or run.__module__
        super().__init__(run, **options)
        self.transform = transform

    def copy(self) -> Self:
        new = super().copy()
        new.transform = self.transform
        return new

    def __reduce__(self) -> str | tuple[Any, ...]:
        base = self.transform
        if by_name(base.function) is self:
            return str(base.function.__qualname__)
        return _derived, (base.name, *pickled_function(base.function), base.options, base.direct, self._given)

    def _measured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[str], tuple[int, float]]:
        """Runs the derivative by another recovery on these arguments."""

        def measure(recover: str) -> tuple[int, float]:
            base = self.transform
            other = Derived(Transform(base.name, base.function, {**base.options, "recover": recover}), **self._given)
            other(*args, **kwargs)  # compiles it
            found = [peak_of(lambda: other(*args, **kwargs)) for _ in range(3)]
            return min(memory or 0 for memory, _ in found), min(seconds for _, seconds in found)

        return measure


def _derived(
    name: str, holder: Any, path: tuple[str, ...], chosen: dict[str, Any], direct: bool, options: dict[str, Any]
) -> Derived:
    """For pickles: what was asked of the function."""
    function = unpickled_function(holder, path)
    key = (name, "pickled", *asked(chosen), direct, *asked(options))
    return shared(function, key, lambda: Derived(Transform(name, function, chosen, direct), **options))


def checked_function(name: str, function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"tp.{name} takes a function, not {function!r}")
    return function


def plans_of(memory: str | None, recover: str) -> dict[str, Any]:
    """What was said about recoveries, as options of a transform."""
    check_recover(recover)
    if memory is not None and not MEMORY.fullmatch(str(memory)):
        raise ValueError(f"memory={memory!r}: a size like '64MB'")
    said = {"memory": memory, "recover": None if recover == "auto" else recover}
    return {k: v for k, v in said.items() if v is not None}


def checked_options(name: str, options: dict[str, Any], others: Iterable[str] = ()) -> dict[str, Any]:
    """Options for the compiler that were given to a transform."""
    problem = wrong_options(name, options, ("recover", *others))
    if problem is not None:
        raise problem
    return options


def _options_of(function: Any) -> dict[str, Any]:
    """Compiled derivatives inherit the options of a tp.function, where they are not given others."""
    function = function.__func__ if isinstance(function, Bound) else function
    if isinstance(function, Function):
        o = function.options
        return {
            "check": o.check, "unsafe": o.unsafe, "fastmath": o.fastmath, "debug_nans": o.debug_nans,
            "coarsen": o.coarsen, "device": o.device, "deterministic": o.deterministic,
            "threads": function.threads, "cache": function.cache, "memory": o.memory,
        }  # fmt: skip
    return {}


def _surroundings(function: Any) -> Any:
    """What else decides a derivative of this function: all that it inherits."""
    function = function.__func__ if isinstance(function, Bound) else function
    if isinstance(function, Function):
        return (function.options, function.threads, function.cache)
    return default_threads()


OPTIONS_TEXT = """The result takes the arguments of `f`, and has `.python`, `.ir` and `.explain` as a `tp.function` has. In
containers (tuples, lists, dicts, NamedTuples, dataclasses, and what `tp.register_container` has) the derivative has the
same structure, with None in the place of None, texts, ints and truth values. An int alone has no derivative.

    argnums: which positional arguments to differentiate by, from 0: a number, or several.
    has_aux: True for a function that returns (value, more); more comes back beside the derivative.
    memory: what the backward sweep may keep, like "64MB".
    recover: how the values that loops overwrite come back: "auto", "recompute", "closed", "invert", "undo", "checkpoint",
        "checkpoint:K" or "store".
    Others are those of `tp.function`."""


class Family(Protocol):
    """How `tp.grad` and the like are called."""

    def __call__(
        self, f: Callable[P, Any], argnums: Any = 0, has_aux: Any = False, **options: Any
    ) -> Function[P, Any]: ...


def _family(name: str, doc: str, extra: tuple[str, ...] = ()) -> Family:
    def make(f: Any, argnums: Any, has_aux: bool, memory: str | None, recover: str, options: dict[str, Any]) -> Derived:
        checked_function(name, f)
        plans = plans_of(memory, recover)
        numbers = (argnums,) if isinstance(argnums, int) else argnums
        if not isinstance(numbers, (tuple, list)) or not all(type(k) is int for k in numbers):
            raise TypeError(f"argnums of tp.{name} is an int or a tuple of ints, not {argnums!r}")
        chosen = {"argnums": argnums if isinstance(argnums, int) else tuple(numbers), "has_aux": has_aux, **plans}
        chosen |= {key: options[key] for key in extra if key in options}
        compiling = {key: value for key, value in options.items() if key not in extra}
        checked_options(name, compiling, ("argnums", "has_aux", *extra))
        return Derived(Transform(name, f, chosen), **{**_options_of(f), **compiling})

    def transform(
        f: Callable[P, Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        *,
        memory: str | None = None,
        recover: str = "auto",
        **options: Any,
    ) -> Function[P, Any]:
        numbers = argnums if type(argnums) is int else repr(argnums)
        key = (name, numbers, has_aux, type(has_aux), memory, recover, _surroundings(f), *asked(options))
        return shared(f, key, lambda: make(f, argnums, has_aux, memory, recover, options))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{doc}\n\n{OPTIONS_TEXT}"
    transform.__tapeless__ = name  # type: ignore[attr-defined]
    return transform


grad = _family("grad", "The gradient of a function that returns one number, by the arguments `argnums`.")
value_and_grad = _family("value_and_grad", "(value, gradient); with has_aux ((value, aux), gradient).")
jacfwd = _family("jacfwd", "The Jacobian, one forward run for each element of the arguments.")
jacrev = _family("jacrev", "The Jacobian, one backward run for each element of the result.")
jacobian = _family("jacobian", "The Jacobian, by whichever mode needs fewer runs.", ("sparse",))
hessian = _family("hessian", "The second derivatives of a function that returns one number.", ("sparse",))


def derived(
    name: str,
    f: Callable[..., Any],
    direct: bool = False,
    plans: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Derived:
    said, compiling = plans or {}, options or {}

    def make() -> Derived:
        return Derived(Transform(name, checked_function(name, f), said, direct), **{**_options_of(f), **compiling})

    return shared(f, ("direct", name, _surroundings(f), *asked(said), *asked(compiling)), make)


class _Custom:
    """A function with a derivative of its own. Called from Python, it is compiled like a `tp.function`."""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self.function = checked_function(type(self).__name__, function)
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None
        self._compiled: Function[Any, Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            self._compiled = compiled_function(self.function)
        return self._compiled(*args)

    def __tapeless_handler__(self) -> Callable[[Context, list[Value], dict[str, Value]], Value]:
        return lambda ctx, args, keywords: custom_calls.call(ctx, self, args, keywords)

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return (Keys(self.nondiff_argnums), self.fwd is None, self.bwd is None, self.jvp is None)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickled by name, as functions are."""
        if by_name(self) is self:
            return str(self.function.__qualname__)
        raise TypeError(f"{self.function.__qualname__!r} cannot be pickled: its module has no such name for it")

    missing = ""  # what to do where a derivative is asked for


class custom_vjp(_Custom):
    """A function whose adjoint is given by hand: `f.defvjp(fwd, bwd)`.

    `fwd(*args)` returns (result, residuals); `bwd(residuals, adjoint)` returns a tuple of one adjoint per argument,
    None for zeros. Arguments at `nondiff_argnums` are passed to `bwd` first.
    """

    missing = "call its .defvjp(fwd, bwd)."

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        self.fwd, self.bwd = checked_function("custom_vjp", fwd), checked_function("custom_vjp", bwd)


class custom_jvp(_Custom):
    """A function whose tangent is given by hand: `@f.defjvp` of a function (primals, tangents) -> (result, tangent)."""

    missing = "give it one with @f.defjvp."

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        self.jvp = checked_function("custom_jvp", jvp)
        return jvp


def stop_gradient(x: Any) -> Any:
    """`x`, as a constant: derivatives do not see where it came from."""
    return x


stop_gradient.__tapeless__ = "stop_gradient"  # type: ignore[attr-defined]
