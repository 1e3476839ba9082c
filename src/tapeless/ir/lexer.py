"""The words of Core's text, with their lines, and a cursor over them.

Takes text; gives tokens in which a line end is a token only where a statement may end. The parser relies on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tapeless.ir.text import COMPLEX, FUNCTION, INTEGER, REAL, read_const
from tapeless.ir.types import Const


class CoreSyntaxError(ValueError):
    """The text is no Core; the message says where and why."""


@dataclass(frozen=True)
class Token:
    """`kind` is name, const, string, braces (text between { and }), symbol, line (a line end or ;) or end."""

    kind: str
    text: str
    line: int


_TOKEN = re.compile(
    rf"""(?P<space>[ \t]+|--[^\n]*)
       | (?P<line>\n|;)
       | (?P<const>{COMPLEX}|{REAL}\b|{INTEGER}\b)
       | (?P<name>{FUNCTION})
       | (?P<string>"(?:[^"\\\n]|\\.)*")
       | (?P<braces>\{{(?:[^{{}}"\n]|"(?:[^"\\\n]|\\.)*")*\}})
       | (?P<symbol>->|:\+|[][(){{}}<>:,=@|\\?!~])
    """,
    re.VERBOSE,
)
_GOES_ON_AFTER = frozenset({"(", "[", ",", "=", "->", "do", "then", "else", "while"})
_GOES_ON_BEFORE = frozenset({")", "]", "else", "do", "|"})


def tokens(text: str) -> list[Token]:
    found = _merge_lines(list(_words(text)))
    found.append(Token("end", "the end", text.count("\n") + 1))
    return found


def _words(text: str) -> list[Token]:
    words, position, line = [], 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CoreSyntaxError(f"line {line}: cannot read {text[position:].partition(chr(10))[0][:20]!r}")
        kind, word = match.lastgroup or "", match[0]
        if kind == "name" and read_const(word):
            kind = "const"
        if kind != "space":
            words.append(Token(kind, word, line))
        line += word == "\n"
        position = match.end()
    return words


def _merge_lines(words: list[Token]) -> list[Token]:
    """Leaves out the line ends that no statement ends at."""
    kept: list[Token] = []
    for word in words:
        if word.kind == "line":
            if kept and kept[-1].kind != "line" and kept[-1].text not in _GOES_ON_AFTER:
                kept.append(word)
            continue
        if word.text in _GOES_ON_BEFORE and kept and kept[-1].kind == "line":
            kept.pop()
        kept.append(word)
    if kept and kept[-1].kind == "line":
        kept.pop()
    return kept


class Cursor:
    """A place in the tokens. Every error names its line."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.position = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    @property
    def next(self) -> Token:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def error(self, message: str, token: Token | None = None) -> CoreSyntaxError:
        return CoreSyntaxError(f"line {(token or self.here).line}: {message}")

    def unexpected(self, wanted: str) -> CoreSyntaxError:
        found = "the end of the line" if self.here.kind == "line" else self.here.text
        return self.error(f"expected {wanted}, found {found}")

    def sees(self, *texts: str) -> bool:
        return self.here.text in texts and self.here.kind in ("symbol", "name")

    def advance(self) -> Token:
        token = self.here
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.advance()
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.sees(text):
            raise self.unexpected(text)
        return self.advance()

    def take(self, kind: str, wanted: str = "") -> str:
        if self.here.kind != kind:
            raise self.unexpected(wanted or f"a {kind}")
        return self.advance().text

    def skip_lines(self) -> None:
        while self.here.kind == "line":
            self.advance()

    def const(self) -> Const:
        word = self.take("const", "a constant")
        value = read_const(word)
        assert value is not None, word
        return value

    def integer(self) -> int:
        value = self.const().value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"expected an integer, found {value}", self.tokens[self.position - 1])
        return value

    def after_parentheses(self) -> int:
        """The position after the parenthesis that closes the one here."""
        depth = 0
        for position in range(self.position, len(self.tokens)):
            text, kind = self.tokens[position].text, self.tokens[position].kind
            depth += kind == "symbol" and text == "("
            depth -= kind == "symbol" and text == ")"
            if depth == 0:
                return position + 1
        raise self.error("this parenthesis is never closed")
