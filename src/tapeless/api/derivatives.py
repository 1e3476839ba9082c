"""`tp.grad` and its family.

Each makes a function that is compiled for the arguments it meets, like any `tp.function`; inside compiled code the same
names are handled by `transforms.calls`. Names and arguments are those of JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from tapeless.api.function import MEMORY, Function, asked, default_threads, in_short, wrong_options
from tapeless.api.operators import check_recover
from tapeless.api.shared import shared
from tapeless.errors import ArgumentError
from tapeless.frontend.source.marks import Keys
from tapeless.frontend.source.plain_objects import refused
from tapeless.frontend.state.context import Context
from tapeless.frontend.state.handlers import OPERATORS, call_value
from tapeless.frontend.state.surroundings import from_python
from tapeless.frontend.state.values import Value
from tapeless.ir import pytree
from tapeless.runtime.peak import peak_of
from tapeless.transforms import calls, custom_calls

assert calls  # registers its handlers


class Transform:
    """A transform of a function with its options. Called in compiled code, it is the derived function."""

    def __init__(self, name: str, function: Any, options: dict[str, Any], direct: bool = False) -> None:
        self.name, self.function, self.options, self.direct = name, function, options, direct

    def __tapeless_handler__(self) -> Callable[[Context, list[Value], dict[str, Value]], Value]:
        def handler(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
            reads = ctx.reads
            own = reads.origin_of(self)
            function = from_python(ctx, reads.step(own, "own attribute", "function"), f"tp.{self.name} of")
            given = reads.step(own, "own attribute", "options")
            options = {k: from_python(ctx, reads.step(given, "own item", k), k) for k in self.options}
            if self.direct:
                return OPERATORS[self.name](ctx, [function, *args], {**options, **keywords})
            return call_value(ctx, OPERATORS[self.name](ctx, [function], options), args, keywords)

        return handler

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return (self.name, self.direct, Keys(self.options))


class Derived(Function[Any, Any]):
    """A derivative of a function, compiled when it is called."""

    __slots__ = ("_given", "transform")

    def __init__(self, transform: Transform, **options: Any) -> None:
        def run(*args: Any, **keywords: Any) -> Any:
            return self(*args, **keywords)

        run.__tapeless_transform__ = transform  # type: ignore[attr-defined]

        base = transform.function
        run.__name__ = run.__qualname__ = f"{transform.name}_of_{getattr(base, '__name__', 'function').strip('<>')}"
        super().__init__(run, **options)
        del self.__dict__["__tapeless_transform__"]  # functions that wrap this one are no transforms
        self.transform = transform
        self._given = options

    def copy(self) -> Self:
        new = super().copy()
        del new.__dict__["__tapeless_transform__"]
        new.transform, new._given = self.transform, self._given
        return new

    def _measured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[str], tuple[int, float]]:
        """Runs the derivative by another recovery on these arguments."""

        def measure(recover: str) -> tuple[int, float]:
            base = self.transform
            other = Derived(Transform(base.name, base.function, {**base.options, "recover": recover}), **self._given)
            other(*args, **kwargs)  # compiles it
            found = [peak_of(lambda: other(*args, **kwargs)) for _ in range(3)]
            return min(memory or 0 for memory, _ in found), min(seconds for _, seconds in found)

        return measure


def _check(name: str, function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"tp.{name} takes a function, not {function!r}")
    return function


def _plans(memory: str | None, recover: str) -> dict[str, Any]:
    """What was said about recoveries, as options of a transform."""
    check_recover(recover)
    if memory is not None and not MEMORY.fullmatch(str(memory)):
        raise ValueError(f"memory={memory!r}: a size like '64MB'")
    said = {"memory": memory, "recover": None if recover == "auto" else recover}
    return {k: v for k, v in said.items() if v is not None}


def _right(name: str, options: dict[str, Any], others: Iterable[str] = ()) -> dict[str, Any]:
    """Options for the compiler that were given to a transform."""
    problem = wrong_options(name, options, ("recover", *others))
    if problem is not None:
        raise problem
    return options


def _options_of(function: Any) -> dict[str, Any]:
    """Compiled derivatives inherit the options of a tp.function, where they are not given others."""
    if isinstance(function, Function):
        o = function.options
        return {
            "check": o.check, "unsafe": o.unsafe, "fastmath": o.fastmath, "debug_nans": o.debug_nans,
            "coarsen": o.coarsen, "device": o.device,
            "threads": function.threads, "cache": function.cache, "memory": o.memory,
        }  # fmt: skip
    return {}


def _surroundings(function: Any) -> Any:
    """What else decides a derivative of this function: all that it inherits."""
    if isinstance(function, Function):
        return (function.options, function.threads, function.cache)
    return default_threads()


def _family(name: str, doc: str, extra: tuple[str, ...] = ()) -> Callable[..., Derived]:
    def make(f: Any, argnums: Any, has_aux: bool, memory: str | None, recover: str, options: dict[str, Any]) -> Derived:
        _check(name, f)
        plans = _plans(memory, recover)
        numbers = (argnums,) if isinstance(argnums, int) else argnums
        if not isinstance(numbers, tuple | list) or not all(type(k) is int for k in numbers):
            raise TypeError(f"argnums of tp.{name} is an int or a tuple of ints, not {argnums!r}")
        chosen = {"argnums": argnums if isinstance(argnums, int) else tuple(numbers), "has_aux": has_aux, **plans}
        chosen |= {key: options[key] for key in extra if key in options}
        compiling = {key: value for key, value in options.items() if key not in extra}
        _right(name, compiling, ("argnums", "has_aux", *extra))
        return Derived(Transform(name, f, chosen), **{**_options_of(f), **compiling})

    def transform(
        f: Callable[..., Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        *,
        memory: str | None = None,
        recover: str = "auto",
        **options: Any,
    ) -> Derived:
        numbers = argnums if type(argnums) is int else repr(argnums)
        key = (name, numbers, has_aux, type(has_aux), memory, recover, _surroundings(f), *asked(options))
        return shared(f, key, lambda: make(f, argnums, has_aux, memory, recover, options))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = doc
    transform.__tapeless__ = name  # type: ignore[attr-defined]
    return transform


grad = _family("grad", "The gradient of a function that returns one number, by the arguments `argnums`.")
value_and_grad = _family("value_and_grad", "(value, gradient); with has_aux ((value, aux), gradient).")
jacfwd = _family("jacfwd", "The Jacobian, one forward run for each element of the arguments.")
jacrev = _family("jacrev", "The Jacobian, one backward run for each element of the result.")
jacobian = _family("jacobian", "The Jacobian, by whichever mode needs fewer runs.", ("sparse",))
hessian = _family("hessian", "The second derivatives of a function that returns one number.", ("sparse",))


def _once(
    name: str,
    f: Callable[..., Any],
    direct: bool = False,
    plans: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Derived:
    said, compiling = plans or {}, options or {}

    def make() -> Derived:
        return Derived(Transform(name, _check(name, f), said, direct), **{**_options_of(f), **compiling})

    return shared(f, ("direct", name, _surroundings(f), *asked(said), *asked(compiling)), make)


def _kept(primals: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments as they are now: the caller may write his arrays before the derivative is asked for."""
    leaves, tree = pytree.flatten(primals)
    copies = {id(v): v.copy() for v in leaves if isinstance(v, np.ndarray)}  # one array passed twice stays one
    kept: tuple[Any, ...] = pytree.unflatten(tree, [copies.get(id(v), v) for v in leaves])
    return kept


class Frozen:
    """A derivative of one run, to be called with tangents or adjoints: arguments and surroundings are as they were
    then.

    The code is chosen now, for tangents or adjoints `like` these values, and arrays of the surroundings are copied.
    """

    def __init__(self, run: Derived, primals: tuple[Any, ...], like: Any) -> None:
        leaves, tree = pytree.flatten(like)
        self.like = pytree.unflatten(tree, [_stand_in(v) for v in leaves])
        self.run, self.primals = run, primals
        caller = run.caller(primals, self.like)
        self.surroundings = [np.array(c.get()) for c in caller.captured]
        self.caller = caller.with_surroundings(self.surroundings)

    def __call__(self, given: Any) -> Any:
        fitted = _in_form(given, self.like)
        if fitted is not None:
            return in_short(lambda: self.caller(pytree.flatten(((self.primals, fitted), {}))[0]))
        found = self.run(self.primals, given)  # mostly an error that says what does not fit
        now = [c.get() for c in self.caller.captured]
        same = all(np.array_equal(a, b, a.dtype.kind in "fc") for a, b in zip(now, self.surroundings, strict=True))
        if not same or not self.caller.unchanged():
            raise ArgumentError(
                "what the function reads from outside has changed since: pass arrays of the value's types"
            )
        return found


def _stand_in(leaf: Any) -> Any:
    """An array of the same kind, different from all others."""
    return np.empty(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray) else leaf


def _in_form(given: Any, like: Any) -> Any:
    """Tangents or adjoints in the structure, the types and the memory order of `like`; None where they do not fit."""
    wanted, tree = pytree.flatten(like)
    leaves, found = pytree.flatten(pytree.ordered_like(given, tree))
    if found != tree:
        return None
    fitted = [_leaf_in_form(leaf, model) for leaf, model in zip(leaves, wanted, strict=True)]
    return None if any(leaf is None for leaf in fitted) else pytree.unflatten(tree, fitted)


def _leaf_in_form(leaf: Any, model: Any) -> Any:
    numbers = np.ndarray | np.generic | int | float | complex
    if not isinstance(model, numbers) or not isinstance(leaf, numbers) or refused(leaf):
        return leaf if leaf is model else None
    kind = np.asarray(model).dtype
    if kind.kind in "iub":  # has no tangents or adjoints
        return model
    if np.shape(leaf) != np.shape(model) or not np.can_cast(np.asarray(leaf).dtype, kind, "same_kind"):
        return None
    array = np.asarray(leaf, kind, order="C")
    return (
        array if isinstance(model, np.ndarray) else kind.type(array) if isinstance(model, np.generic) else array.item()
    )


class Pullback:
    """Takes the adjoint of a result to those of the arguments; may be called many times."""

    def __init__(self, run: Frozen) -> None:
        self.run = run

    def __call__(self, adjoint: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.run(adjoint)
        return found


def vjp(
    f: Callable[..., Any], *primals: Any, memory: str | None = None, recover: str = "auto", **options: Any
) -> tuple[Any, Pullback]:
    """(f(*primals), pullback): `pullback(adjoint of the result)` gives the adjoints of the arguments."""
    run = _once("pull", _check("vjp", f), plans=_plans(memory, recover), options=_right("vjp", options))
    kept = _kept(primals)
    out = _once("value", f, options=options)(*primals)
    return out, Pullback(Frozen(run, kept, out))


def _tuples(name: str, primals: Any, tangents: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(f"tp.{name} takes a tuple of arguments and a tuple of tangents: tp.{name}(f, (x,), (v,))")
    return tuple(primals), tuple(tangents)


def jvp(
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    memory: str | None = None,
    recover: str = "auto",
    **options: Any,
) -> tuple[Any, Any]:
    """(f(*primals), its derivative in the direction `tangents`)."""
    _plans(memory, recover)  # forward mode keeps nothing
    found: tuple[Any, Any] = _once("jvp", f, True, options=_right("jvp", options))(*_tuples("jvp", primals, tangents))
    return found


def hvp(
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    memory: str | None = None,
    recover: str = "auto",
    **options: Any,
) -> tuple[Any, Any]:
    """(gradient, Hessian times `tangents`)."""
    run = _once("hvp", f, True, _plans(memory, recover), _right("hvp", options))
    found: tuple[Any, Any] = run(*_tuples("hvp", primals, tangents))
    return found


def linearize(
    f: Callable[..., Any], *primals: Any, memory: str | None = None, recover: str = "auto", **options: Any
) -> tuple[Any, Callable[..., Any]]:
    """(f(*primals), the linear map from tangents of the arguments to that of the result)."""
    _plans(memory, recover)  # forward mode keeps nothing
    run = _once("jvp", _check("linearize", f), True, options=_right("linearize", options))
    kept = _kept(primals)
    out = _once("value", f, options=options)(*primals)
    both = Frozen(run, kept, kept)

    def linear(*tangents: Any) -> Any:
        return both(tangents)[1]

    return out, linear


class _Custom:
    """A function with a derivative of its own. Called from Python, it is compiled like a `tp.function`."""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self.function = _check(type(self).__name__, function)
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None
        self._compiled: Function[Any, Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            self._compiled = Function(self.function)
        return self._compiled(*args)

    def __tapeless_handler__(self) -> Callable[[Context, list[Value], dict[str, Value]], Value]:
        return lambda ctx, args, keywords: custom_calls.call(ctx, self, args, keywords)

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return (Keys(self.nondiff_argnums), self.fwd is None, self.bwd is None, self.jvp is None)

    missing = ""  # what to do where a derivative is asked for


class custom_vjp(_Custom):
    """A function whose adjoint is given by hand: `f.defvjp(fwd, bwd)`.

    `fwd(*args)` returns (result, residuals); `bwd(residuals, adjoint)` returns a tuple of one adjoint per argument,
    None for zeros. Arguments at `nondiff_argnums` are passed to `bwd` first.
    """

    missing = "call its .defvjp(fwd, bwd)."

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        self.fwd, self.bwd = _check("custom_vjp", fwd), _check("custom_vjp", bwd)


class custom_jvp(_Custom):
    """A function whose tangent is given by hand: `@f.defjvp` of a function (primals, tangents) -> (result, tangent)."""

    missing = "give it one with @f.defjvp."

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        self.jvp = _check("custom_jvp", jvp)
        return jvp


def stop_gradient(x: Any) -> Any:
    """`x`, as a constant: derivatives do not see where it came from."""
    return x


for _name in ("vjp", "jvp", "hvp", "linearize", "stop_gradient"):
    setattr(globals()[_name], "__tapeless__", _name)  # noqa: B010
