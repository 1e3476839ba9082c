"""`tp.vjp`, `tp.jvp`, `tp.hvp` and `tp.linearize`: derivatives of one run, in given directions.

Each takes a function and its arguments, as in JAX. What has no derivative (ints, truth values, texts) takes a tangent
of 0 or None and counts as a constant. Relies on `derivatives` for functions that are compiled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tapeless.api.derivatives import Derived, checked_function, checked_options, derived, plans_of
from tapeless.api.foreign import with_numpy
from tapeless.api.function import in_short
from tapeless.errors import ArgumentError, CompileError
from tapeless.frontend.source.plain_objects import refused
from tapeless.frontend.state.context import with_article
from tapeless.ir import pytree


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
        kept = pytree.kept_leaves(tree)
        self.like = pytree.unflatten(tree, [v if same else _stand_in(v) for v, same in zip(leaves, kept, strict=True)])
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
    return np.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray) else leaf


def _in_form(given: Any, like: Any) -> Any:
    """Tangents or adjoints in the structure, the types and the memory order of `like`; None where they do not fit."""
    wanted, tree = pytree.flatten(like)
    leaves, found = pytree.flatten(pytree.ordered_like(given, tree))
    if found != tree:
        return None
    for leaf, model, kept in zip(leaves, wanted, pytree.kept_leaves(tree), strict=True):
        if kept and not np.array_equal(leaf, model):  # running it says so
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

    def __init__(self, run: Frozen, back: Callable[[Any], Any]) -> None:
        self.run, self.back = run, back

    def __call__(self, adjoint: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.back(self.run(with_numpy(None, adjoint)[0]))
        return found

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a pullback cannot be pickled: {THIS_PROCESS} tp.vjp")


class Linear:
    """Takes tangents of the arguments to that of the result; may be called many times."""

    def __init__(self, run: Frozen, back: Callable[[Any], Any]) -> None:
        self.run, self.back = run, back

    def __call__(self, *tangents: Any) -> Any:
        function = self.run.run.transform.function
        tangents = with_numpy(None, tangents)[0]
        return self.back(self.run(_without_constants(function, self.run.primals, tangents))[1])

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a linear map cannot be pickled: {THIS_PROCESS} tp.linearize")


THIS_PROCESS = "it holds code of this process; send the function and its arguments, and call"


def vjp(
    f: Callable[..., Any], *primals: Any, memory: str | None = None, recover: str = "auto", **options: Any
) -> tuple[Any, Pullback]:
    """(f(*primals), pullback): `pullback(adjoint of the result)` gives the adjoints of the arguments."""
    run = derived(
        "pull", checked_function("vjp", f), plans=plans_of(memory, recover), options=checked_options("vjp", options)
    )
    primals, back = with_numpy(f, primals)
    kept = _kept(primals)
    out = derived("value", f, options=options)(*primals)
    return back(out), Pullback(Frozen(run, kept, out), back)


def _directed(name: str, f: Any, run: Derived, primals: Any, tangents: Any) -> tuple[Any, Any]:
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(f"tp.{name} takes a tuple of arguments and a tuple of tangents: tp.{name}(f, (x,), (v,))")
    args, back = with_numpy(f, tuple(primals))
    found: tuple[Any, Any] = back(run(args, _without_constants(f, args, with_numpy(f, tuple(tangents))[0])))
    return found


def _without_constants(function: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """None for the tangents of what has no derivative, after a look whether they are zero."""
    leaves, tree = pytree.flatten(primals)
    if not any(map(_is_constant, leaves)):
        return tangents
    try:
        given = pytree.broadcast_prefix(tangents, tree)
    except ValueError:  # compiling says what does not fit
        return tangents
    fixed = pytree.kept_leaves(tree)
    for leaf, tangent, path, same in zip(leaves, given, pytree.leaf_paths(tree), fixed, strict=True):
        if not same and _is_constant(leaf) and not _is_zero(tangent):
            kind = f"an array of {leaf.dtype}" if isinstance(leaf, np.ndarray) else with_article(type(leaf).__name__)
            reason = f"the argument {_named(function, path)} is {kind}, which has no derivative"
            raise CompileError(reason, code="TP301", hint=ZERO)
    kept = [t if same or not _is_constant(v) else None for v, t, same in zip(leaves, given, fixed, strict=True)]
    if any(fixed):  # a sparse matrix is not made of None
        kept = [t if t is not None else v if same else _zero(v) for v, t, same in zip(leaves, kept, fixed, strict=True)]
    found: tuple[Any, ...] = pytree.unflatten(tree, kept)
    return found


def _zero(leaf: Any) -> Any:
    return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else None


ZERO = "give it the tangent 0 or None, or close over it: lambda x: f(x, n)."


def _named(function: Any, path: str) -> str:
    """How the function calls a part of its arguments: `[1].w` is `p.w`, say."""
    number, _, rest = path[1:].partition("]")
    try:
        return list(inspect.signature(function).parameters)[int(number)] + rest
    except (IndexError, TypeError, ValueError):
        return f"number {number} (from 0)"


def _is_constant(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "iub"
    return isinstance(leaf, (int, str, bytes))


def _is_zero(tangent: Any) -> bool:
    """None and JAX's float0 count as zero."""
    if tangent is None or str(getattr(tangent, "dtype", "")) == "[('float0', 'V')]":
        return True
    return isinstance(tangent, (int, float, np.ndarray, np.generic)) and not np.any(tangent)


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
    plans_of(memory, recover)  # forward mode keeps nothing
    run = derived("jvp", f, True, options=checked_options("jvp", options))
    return _directed("jvp", f, run, primals, tangents)


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
    run = derived("hvp", f, True, plans_of(memory, recover), checked_options("hvp", options))
    return _directed("hvp", f, run, primals, tangents)


def linearize(
    f: Callable[..., Any], *primals: Any, memory: str | None = None, recover: str = "auto", **options: Any
) -> tuple[Any, Callable[..., Any]]:
    """(f(*primals), the linear map from tangents of the arguments to that of the result)."""
    plans_of(memory, recover)  # forward mode keeps nothing
    run = derived("jvp", checked_function("linearize", f), True, options=checked_options("linearize", options))
    primals, back = with_numpy(f, primals)
    kept = _kept(primals)
    out = derived("value", f, options=options)(*primals)
    leaves, tree = pytree.flatten(kept)
    fixed = pytree.kept_leaves(tree)
    none = _zero if any(fixed) else lambda _: None  # a sparse matrix is not made of None
    like = [v if same or not _is_constant(v) else none(v) for v, same in zip(leaves, fixed, strict=True)]
    both = Frozen(run, kept, pytree.unflatten(tree, like))
    return back(out), Linear(both, back)


for _name in ("vjp", "jvp", "hvp", "linearize"):
    setattr(globals()[_name], "__tapeless__", _name)  # noqa: B010
