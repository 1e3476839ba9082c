"""`tp.reversible`: functions that run in both directions.

The function is parsed when it is used first (`reversible/dialect`); what is compiled is its plain form, and that of its
inverse.
"""

from __future__ import annotations

import ast
import functools
import importlib
import operator
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, overload

from tapeless.api.callables import Bound, Transform, by_name
from tapeless.api.derivatives import Derived
from tapeless.api.function import Function, in_short
from tapeless.api.options import asked, wrong_options
from tapeless.api.shared import shared
from tapeless.errors import CompileError, InvertibilityError
from tapeless.frontend.source import sources
from tapeless.frontend.state.context import Context, object_text
from tapeless.frontend.state.values import Value
from tapeless.reversible.dialect import tree
from tapeless.reversible.dialect.adjoint import adjoint_function, exchanged, linked, remembered
from tapeless.reversible.dialect.inverse import inverse, undecided, why_undecided
from tapeless.reversible.dialect.made import made
from tapeless.reversible.dialect.parse import parse
from tapeless.reversible.dialect.plain import plain_function, trailed_function
from tapeless.reversible.dialect.scope import Scope
from tapeless.reversible.dialect.text import text_of
from tapeless.reversible.dialect.trails import watched_names
from tapeless.transforms import inverses, reversible_calls

assert inverses  # registers its handler

TOLERANCE = 1e-8  # relative


class AdjointForms(dict[tuple[str, ...], types.FunctionType]):
    """By the names that have adjoints. They are made when they are asked for: by a trace, or by what remembers one."""

    def __init__(self, of: Reversible, trailed: bool) -> None:
        super().__init__()
        self.of, self.trailed = of, trailed

    def __missing__(self, active: tuple[str, ...]) -> types.FunctionType:
        form = self[active] = self.of.adjoint_form(active, self.trailed)
        return form


class Reversible:
    """A function of the reversible dialect. `~f` and `f.inverse` run it backwards; `.python` is its plain form."""

    __tapeless_reversible__ = True
    __name__: str
    __qualname__: str

    def __init__(
        self,
        written: types.FunctionType,
        check: bool,
        tolerance: float,
        options: Mapping[str, Any],
        inverse_of: Reversible | None = None,
    ) -> None:
        functools.update_wrapper(self, written)
        self.written, self.check, self.tolerance, self.options = written, check, tolerance, dict(options)
        self._inverse = inverse_of
        self.adjoint_forms, self.trailed_adjoint_forms = AdjointForms(self, False), AdjointForms(self, True)

    # -- forms

    @functools.cached_property
    def _parsed(self) -> tuple[sources.Source, tree.Reversible]:
        if self._inverse is not None:
            source, forward = self._inverse._parsed
            return source, inverse(forward)
        source, node = sources.find(self.written)
        if isinstance(node, ast.Lambda):
            raise CompileError("a lambda has no statements to run backwards", code="TP401", hint="use def.")
        return source, parse(node, Scope(self.written, source))

    @functools.cached_property
    def checked(self) -> types.FunctionType:
        """With its tests."""
        return self._form(True)

    @functools.cached_property
    def unchecked(self) -> types.FunctionType:
        return self._form(False)

    @functools.cached_property
    def trailed(self) -> types.FunctionType:
        """Leaves a trail for the way back."""
        source, function = self._parsed
        return made(self.written, trailed_function(function), source)

    def _form(self, checks: bool) -> types.FunctionType:
        source, function = self._parsed
        return made(self.written, plain_function(function, checks, self.tolerance), source)

    @property
    def state(self) -> tuple[str, ...]:
        """The names of what goes in and comes out."""
        return self._parsed[1].state

    @functools.cached_property
    def changed(self) -> tuple[str, ...]:
        """The names of what it changes."""
        return self._parsed[1].changed

    @functools.cached_property
    def undecided(self) -> tree.If | tree.While | tree.Call | None:
        """The step that cannot be undone, if there is one."""
        return undecided(self._parsed[1].body)

    @functools.cached_property
    def remembered(self) -> frozenset[str]:
        """What the way back has to find again, and is compared at its end."""
        return remembered(self._parsed[1])

    @functools.cached_property
    def exchanged(self) -> list[set[str]]:
        """Names whose values change places."""
        return exchanged(self._parsed[1])

    def active(self, names: Collection[str]) -> tuple[str, ...]:
        """What has adjoints if these have."""
        return linked(self._parsed[1], names)

    @functools.cached_property
    def watched(self) -> tuple[str, ...]:
        """What loops change and use, so that the way back must come by the same values."""
        return watched_names(self._parsed[1])

    def adjoint_form(self, active: tuple[str, ...], trailed: bool) -> types.FunctionType:
        """The way back with adjoints of these names."""
        source, function = self._parsed
        return made(self.written, adjoint_function(function, active, trailed), source)

    @functools.cached_property
    def _compiled(self) -> Function[Any, Any]:
        form = self.checked if self.check else self.unchecked
        return Function(form, **self.options)

    @property
    def python(self) -> Callable[..., Any]:
        """The function in plain Python: its tests included, its state returned."""
        return in_short(lambda: self.checked if self.check else self.unchecked)

    @property
    def source(self) -> str:
        """As Python in the dialect, without comments."""
        return in_short(lambda: text_of(self._parsed[1]))

    @property
    def inverse(self) -> Reversible:
        return in_short(self._backwards)

    def _backwards(self) -> Reversible:
        if self._inverse is None:
            if self.undecided is not None:
                _refuse(self._parsed[0], self.undecided)
            self._inverse = Reversible(self.written, self.check, self.tolerance, self.options, self)
            name = self._inverse._parsed[1].node.name
            self._inverse.__name__ = name
            self._inverse.__qualname__ = self.written.__qualname__.removesuffix(self.written.__name__) + name
        return self._inverse

    def __invert__(self) -> Reversible:
        return in_short(self._backwards)

    # -- use

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return in_short(lambda: self._compiled)(*args, **keywords)

    def ir(self, *args: Any, stage: str = "core", **keywords: Any) -> str:
        """The program as text: see `tp.function`."""
        found: str = self._compiled.ir(*args, stage=stage, **keywords)
        return found

    def explain(self, *args: Any, **keywords: Any) -> Any:
        """Prints the function and its inverse side by side, then a report about the code for these arguments, which is
        returned.
        """
        tool = importlib.import_module("tapeless.tools.both_ways")  # a layer above this one
        missing = self.undecided
        line = 0 if missing is None else self._parsed[0].span(missing.at).line
        tool.show(self.source, self.inverse.source if missing is None else None, line)
        return self._compiled.explain(*args, **keywords)

    def __tapeless_handler__(self) -> Callable[[Context, list[Value], dict[str, Value]], Value]:
        return lambda ctx, args, keywords: reversible_calls.call(ctx, self, args, keywords)

    def __tapeless_mark__(self) -> tuple[Any, ...]:
        return (self.check, self.tolerance)

    def __repr__(self) -> str:
        return f"<reversible function {self.__qualname__!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickled by name, as functions are; an inverse as that of its function."""
        if by_name(self) is self:
            return str(self.written.__qualname__)
        if self._inverse is not None and by_name(self._inverse) is self._inverse:
            return operator.invert, (self._inverse,)
        raise TypeError(f"{self.__qualname__!r} cannot be pickled: its module has no such name for it")

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Bound(self, instance)


def _refuse(source: sources.Source, step: tree.If | tree.While | tree.Call) -> None:
    reason, hint = why_undecided(step)
    where = source.place(step.at if isinstance(step, tree.Call) else step.written)
    raise InvertibilityError(reason, code="TP406", hint=hint, **where)


@overload
def reversible(python: Callable[..., Any], /, **options: Any) -> Reversible: ...
@overload
def reversible(python: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Reversible]: ...
def reversible(python: Any = None, /, *, check: bool = True, tolerance: float = TOLERANCE, **options: Any) -> Any:
    """A function that can be run backwards. `check`: direct calls test that it can; `tolerance`: how near, relatively,
    floats must come back.
    """
    if python is None:
        return lambda f: reversible(f, check=check, tolerance=tolerance, **options)
    problem = wrong_options("reversible", {"check": check, **options}, ("tolerance",))
    if problem is not None:
        raise problem
    if not isinstance(tolerance, float) or not 0.0 <= tolerance < 1.0:
        raise ValueError(f"tp.reversible: tolerance must be a float from 0 to 1, not {tolerance!r}")
    if isinstance(python, Reversible):
        python = python.written
    if not isinstance(python, types.FunctionType):
        reason = f"tp.reversible takes a Python function, not {object_text(python)}"
        raise CompileError(reason, code="TP107", hint="write it with def.")
    return Reversible(python, check, tolerance, options)


def inverse_of(f: Callable[..., Any], **options: Any) -> Any:
    """The inverse of a function: what it returns stands in the place of its first arguments, the others are the same.

    An ordinary function is solved for them, if the compiler can; `InvertibilityError` says where it cannot.
    """
    if isinstance(f, Reversible):
        return f.inverse
    if not callable(f):
        raise TypeError(f"tp.inverse takes a function, not {f!r}")
    problem = wrong_options("inverse", options)
    if problem is not None:
        raise problem
    return shared(f, ("inverse", *asked(options)), lambda: Derived(Transform("inverse", f, {}), **options))


inverse_of.__name__ = inverse_of.__qualname__ = inverse_of.__tapeless__ = "inverse"  # type: ignore[attr-defined]

__all__ = ["Reversible", "inverse_of", "reversible"]
