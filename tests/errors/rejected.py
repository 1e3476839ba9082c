"""Programs that must be refused, and the text their author sees.

`@rejected(...)` takes the arguments of the call and collects the function below it; `message` compiles and calls it and
gives the message, with the path and the line counted from the function's own first line, so that files may be edited.
"""

import linecache
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tapeless as tp

PACKAGE = str(Path(tp.__file__).parent)
INTERNAL = re.compile(
    r"tapeless[./]\w|frontend|<tapeless|Static\(|Scalar\(|Sequence_|RangeValue|ast\.|0x[0-9a-f]{6}|\b[fc](32|64|128)\b"
)


@dataclass
class Program:
    function: Any
    arguments: tuple[Any, ...]
    error: type[Exception] = tp.CompileError
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.function.__name__


class Rejected:
    """The programs of one file: `@rejected(1.0)` adds one, `rejected.all` is what a test goes through."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def __call__(
        self, *arguments: Any, error: type[Exception] = tp.CompileError, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.programs.append(Program(function, arguments, error, options))
            return function

        return add

    @property
    def all(self) -> Any:
        return pytest.mark.parametrize("program", [pytest.param(p, id=str(p)) for p in self.programs])


def message(program: Program) -> str:
    """The text of the error, after the checks that hold for all of them."""
    return text_of(
        lambda: tp.function(program.function, **program.options)(*program.arguments), program.error, program.function
    )


def text_of(run: Callable[[], Any], error: type[Exception], function: Any = None) -> str:
    with pytest.raises(error) as caught:
        run()
    problem = caught.value
    assert type(problem) is error
    assert problem.__cause__ is None and (problem.__context__ is None or problem.__suppress_context__)
    frames = traceback.extract_tb(problem.__traceback__)
    inside = [f for f in frames if f.filename.startswith(PACKAGE)]
    assert len(inside) <= 1, f"frames of ours: {[(f.filename, f.lineno) for f in inside]}"
    if isinstance(problem, tp.TapelessError):
        assert re.fullmatch(r"TP\d{3}", problem.code)
    text = str(problem)
    if function is not None:
        text = relative(text, function)
    assert not INTERNAL.search(text), f"an internal name in: {text}"
    assert str(Path.cwd()) not in text
    return text


def relative(text: str, function: Any) -> str:
    """The path becomes program.py, and its lines count from the function's first line."""
    code = getattr(function, "python", function).__code__
    first = code.co_firstlineno
    while linecache.getline(code.co_filename, first).lstrip().startswith("@"):
        first += 1
    place = re.compile(re.escape(code.co_filename) + r"(:| line |, line )(\d+)")
    return place.sub(lambda m: f"program.py{m.group(1)}{int(m.group(2)) - first + 1}", text)
