"""The small words of Core's text: names and where they are bound, operands, types, lists of them.

Takes tokens; gives variables, atoms and types. Each name is bound once; a type may mention names that are bound beside
it, so it is read as words first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tapeless.ir.lexer import Cursor, Token
from tapeless.ir.types import Atom, Dim, DType, Type, Var

T = TypeVar("T")


@dataclass(frozen=True)
class TypeWords:
    """A type whose dimensions are not looked up yet: they may be bound beside it."""

    dtype: DType
    dims: tuple[int | Token, ...]
    acc: str


class OperandParser(Cursor):
    """`scopes` hold the names of the regions around, the innermost last."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scopes: list[dict[str, Var]] = [{}]

    # -- names

    def bind(self, name: Token, type: Type) -> Var:
        if any(name.text in scope for scope in self.scopes):
            raise self.error(f"{name.text} is bound twice", name)
        self.scopes[-1][name.text] = var = Var(name.text, type)
        return var

    def look_up(self, name: Token) -> Var:
        for scope in reversed(self.scopes):
            if name.text in scope:
                return scope[name.text]
        raise self.error(f"{name.text} is not bound here", name)

    def bind_all(self, words: Sequence[tuple[Token, TypeWords | Type]]) -> tuple[Var, ...]:
        """Scalars first: they may be the dimensions of the arrays beside them."""
        made: dict[int, Var] = {}
        for scalars in (True, False):
            for k, (name, type) in enumerate(words):
                if isinstance(type, TypeWords):
                    if scalars == (not type.dims):
                        made[k] = self.bind(name, self.resolve(type))
                elif scalars:
                    made[k] = self.bind(name, type)
        return tuple(made[k] for k in range(len(words)))

    def name_token(self) -> Token:
        if self.here.kind != "name":
            raise self.unexpected("a name")
        return self.advance()

    def var(self) -> Var:
        return self.look_up(self.name_token())

    def atom(self) -> Atom:
        return self.const() if self.here.kind == "const" else self.var()

    def atoms(self) -> tuple[Atom, ...]:
        """As many as follow."""
        found = []
        while self.here.kind in ("name", "const"):
            found.append(self.atom())
        return tuple(found)

    def vars(self) -> tuple[Var, ...]:
        found = []
        while self.here.kind == "name":
            found.append(self.var())
        return tuple(found)

    def listed(self, item: Callable[[], T], opening: str, closing: str) -> tuple[T, ...]:
        self.expect(opening)
        found: list[T] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    def one_or_tuple(self, item: Callable[[], T]) -> tuple[T, ...]:
        return self.listed(item, "(", ")") if self.sees("(") else (item(),)

    # -- types

    def dim(self) -> Dim:
        return self.integer() if self.here.kind == "const" else self.var()

    def dims(self) -> tuple[Dim, ...]:
        return self.listed(self.dim, "[", "]")

    def type_words(self) -> TypeWords:
        if self.sees("acc") and self.next.text == "<":
            self.advance(), self.advance()
            op = self.take("name")
            self.expect(",")
            words = self.type_words()
            self.expect(">")
            return TypeWords(words.dtype, words.dims, op)
        dims: list[int | Token] = []
        while self.accept("["):
            dims.append(self.integer() if self.here.kind == "const" else self.name_token())
            self.expect("]")
        if self.here.text not in DType.__members__:
            raise self.unexpected("a type")
        return TypeWords(DType(self.advance().text), tuple(dims), "")

    def resolve(self, words: TypeWords) -> Type:
        dims = tuple(self.look_up(d) if isinstance(d, Token) else d for d in words.dims)
        return Type(words.dtype, dims, words.acc)

    def typed_name(self) -> tuple[Token, TypeWords]:
        name = self.name_token()
        self.expect(":")
        return name, self.type_words()
