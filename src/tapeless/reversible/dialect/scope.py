"""What the names of a reversible function stand for, and how a message points into it."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tapeless.errors import InvertibilityError
from tapeless.frontend.source.sources import Source

MISSING = object()


@dataclass
class Scope:
    """`state` may be changed; `fixed` names have a value that may not, with the reason."""

    function: types.FunctionType
    source: Source
    state: set[str] = field(default_factory=set)
    fixed: dict[str, str] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)  # ancillas whose block has ended, with its line

    @property
    def names(self) -> set[str]:
        return {*self.state, *self.fixed}

    def fail(self, node: ast.AST, code: str, reason: str, hint: str = "") -> NoReturn:
        raise InvertibilityError(reason, code=code, hint=hint, **self.source.place(node))

    @contextmanager
    def fixing(self, names: set[str], reason: str) -> Iterator[None]:
        before = dict(self.fixed)
        self.fixed.update(dict.fromkeys(names, reason))
        yield
        self.fixed = before

    @contextmanager
    def with_ancilla(self, name: str, node: ast.AST) -> Iterator[None]:
        self.gone.pop(name, None)
        self.state.add(name)
        yield
        self.state.discard(name)
        self.gone[name] = getattr(node, "end_lineno", 0) or 0

    def object_of(self, expr: ast.expr) -> Any:
        """The Python object behind a name or an attribute of the surroundings; MISSING where there is none."""
        match expr:
            case ast.Name(id=name) if name not in self.names:
                return self._outside(name)
            case ast.Attribute(value=base, attr=name):
                found = self.object_of(base)
                return MISSING if found is MISSING else getattr(found, name, MISSING)
            case _:
                return MISSING

    def _outside(self, name: str) -> Any:
        code = self.function.__code__
        if name in code.co_freevars and self.function.__closure__ is not None:
            try:
                return self.function.__closure__[code.co_freevars.index(name)].cell_contents
            except ValueError:
                return MISSING
        found = self.function.__globals__.get(name, MISSING)
        return getattr(builtins, name, MISSING) if found is MISSING else found
