"""Functions typed into the plain prompt of Python before 3.13, whose source is kept nowhere but in the history of the prompt.

`typed_block` takes a function and gives the statement that it was typed in. What is found is Python's own code again (Note [Code of
the source] in `codes.py`), so that a function is never taken for another one.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator

from tapeless.frontend.source.codes import made_from

PROMPT = "<stdin>"
LONGEST = 500  # lines of a statement
MOST = 5000  # lines of the history that are looked at
GOES_ON = ("else", "elif", "except", "finally", "def", "class", "async", "@", ")", "]", "}")


def typed_block(function: types.FunctionType) -> list[str] | None:
    """The lines of the statement, the last of those that fit."""
    if function.__code__.co_filename != PROMPT:
        return None
    lines = _history()
    for start in range(len(lines) - 1, max(len(lines) - MOST, 0) - 1, -1):
        if not lines[start][:1].isspace():
            for block in _statements(lines, start, function.__code__.co_name):
                if made_from(function, ast.parse("\n".join(block)), block):
                    return block
    return None


def _statements(lines: list[str], start: int, name: str) -> Iterator[list[str]]:
    """What may be the statement that begins here."""
    word = "lambda" if name == "<lambda>" else f"def {name}"
    for end in range(start + 1, min(start + LONGEST, len(lines)) + 1):
        if end < len(lines) and lines[end][:1].isspace():
            continue
        block = lines[start:end]
        try:
            ast.parse("\n".join(block))
        except (SyntaxError, ValueError):
            continue
        if any(word in line for line in block):
            yield block
        if end == len(lines) or not lines[end].startswith(GOES_ON):
            return


def _history() -> list[str]:
    """A line that was pasted may be several."""
    readline = sys.modules.get("readline")  # where Python asks with it
    if readline is None:
        return []
    items = [readline.get_history_item(k + 1) for k in range(readline.get_current_history_length())]
    return [line for item in items if item for line in item.split("\n") if line.strip()]
