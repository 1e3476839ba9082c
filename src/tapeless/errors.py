"""The errors a user can meet, each with a stable code that has a page in the documentation.

`CompileError` and `ShapeError` show file, line, the source line and a caret under the expression.
This module imports nothing of the project, so that every layer may raise.
"""

from __future__ import annotations

import builtins
import linecache
import sys
import warnings
from types import FrameType

import numpy as np

# code -> (what it means, what to do when the place where it is raised knows nothing better)
CODES: dict[str, tuple[str, str]] = {
    "TP000": ("an error of Tapeless", ""),
    "TP100": ("the function cannot be compiled", "write it with the statements and functions of the language."),
    "TP101": ("syntax outside the language", "write it with the statements and functions of the language."),
    "TP102": ("a name that is not defined", "define it in the function or at the top of the file."),
    "TP103": (
        "a function, method or attribute that cannot be compiled",
        "write it with functions that can be compiled.",
    ),
    "TP104": ("types that do not fit", "convert one of the values, or use another one."),
    "TP105": ("it is not known which array a name refers to", "copy the array (.copy()) where the name is bound."),
    "TP106": ("recursion", "write it as a loop."),
    "TP107": ("a function without source, or with another one", "put the function into a file or a notebook cell."),
    "TP108": ("rows of different sizes", "make all rows of one size, and keep a count for each."),
    "TP109": ("a value or element type that is not supported", "use numbers, and arrays of numbers and bools."),
    "TP110": ("a variable without a value", "assign it first."),
    "TP111": ("iterations or elements that depend on each other", "use range."),
    "TP112": ("arguments that do not fit the function", "look at the arguments that the function takes."),
    "TP114": ("nesting too deep to be compiled", "split the function into several."),
    "TP115": ("an array that must not be written", "copy the array (.copy()) before writing to it."),
    "TP116": ("a program that grows too large when it is compiled", "loop over an array: the body is compiled once."),
    "TP120": ("the truth value of an array", "use np.any(...) or np.all(...)."),
    "TP130": ("arguments of a call that cannot be used together", ""),
    "TP201": (
        "sizes that do not fit together",
        "make the sizes equal; of a part that turns out to have one element, take that: x[2] for x[2:].",
    ),
    "TP202": ("numbers of dimensions that do not fit", "add axes with np.newaxis, or index some away."),
    "TP203": ("a constant index out of range", "use an index between -size and size - 1."),
    "TP204": (
        "an array that changes its size in a loop",
        "begin with an array of the size that it has in the loop.",
    ),
    "TP300": ("a recovery that does not apply to its loop", "use recover='auto'."),
    "TP305": ("a memory budget that is too small", "allow as much as it says, or leave `memory` out."),
    "TP400": ("a reversible step that could not be undone", ""),
    "TP401": ("a statement outside the reversible dialect", "use +=, swaps, calls of reversible functions, blocks."),
    "TP402": ("a step that uses what it changes", "copy what is used into an ancilla."),
    "TP403": ("a change of something that is no state", "make it a positional parameter, or an ancilla."),
    "TP404": ("an ancilla or a block that is not undone", "put what makes it into a block 'with tp.compute:'."),
    "TP405": ("a loop over something that its body changes", "copy it into an ancilla around the loop."),
    "TP406": ("a branch or a loop with one condition only", "add the one that holds afterwards."),
    "TP407": ("a function that cannot be solved for its arguments", "write it with @tp.reversible."),
    "TP410": ("running backwards did not end at the known inputs", ""),
    "TP500": ("a device that is missing or refused the work", ""),
    "TP501": ("a compile cache that others could write to", "keep it in a folder that only you can write to."),
    "TP301": ("an argument without derivatives", "pass a float, or close over it: lambda x: f(x, n)."),
    "TP302": ("a result that the transform cannot differentiate", "return one float, or use tp.jacobian or tp.vjp."),
    "TP303": ("an operation without a derivative", "write it with other operations, or give it a rule of its own."),
    "TP304": ("tangents or adjoints that do not fit", "give them the structure and shape of the values."),
    "TP306": ("a rule that does not fit its function", "look at tp.custom_vjp and tp.custom_jvp."),
    "TP308": ("a function without a formula", "use numbers, branches, and loops that are short or have a closed form."),
    "TP900": ("a bug of the compiler", "please report it with the function; .python runs it meanwhile."),
}


class TapelessError(Exception):
    """Base of all errors of Tapeless."""

    code = "TP000"

    def __str__(self) -> str:
        text = super().__str__()
        return text if text.startswith("[TP") else f"[{self.code}] {text}"


class SourceError(TapelessError):
    """An error that points into the user's source."""

    def __init__(
        self,
        reason: str,
        *,
        code: str = "",
        hint: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
        end_line: int = 0,
        end_column: int = 0,
        source: str | None = None,
    ) -> None:
        if code:
            self.code = code
        self.reason, self.hint = reason, hint or CODES.get(self.code, ("", ""))[1]
        self.file, self.line, self.column = file, line, column
        self.end_line, self.end_column = end_line or line, end_column
        self._source = source
        super().__init__(self._render())

    def _render(self) -> str:
        lines = [f"[{self.code}] {self.reason}"]
        if self.line:
            text = self._source if self._source is not None else linecache.getline(self.file, self.line)
            text = text.rstrip("\n")
            lines.append(f"  {self.file}:{self.line}")
            if text.strip():
                start = len(text) - len(text.lstrip())
                end = self.end_column if self.end_line == self.line else len(text)
                width = max(1, min(end, len(text)) - self.column)
                lines.append(f"    {text[start:]}")
                lines.append("    " + " " * max(0, self.column - start) + "^" * width)
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class CompileError(SourceError):
    """The function uses something that cannot be compiled."""

    code = "TP100"
    unbound: tuple[int, str] | None = None  # a name without a value, in its function, which a loop may bind


class CallError(CompileError, TypeError):
    """The arguments of a call do not fit the function."""

    code = "TP112"


class InternalError(CompileError):
    """The compiler failed on a function it should have compiled or refused. Its cause is kept, for a report."""

    code = "TP900"


class ShapeError(SourceError, ValueError):
    """Shapes do not fit together."""

    code = "TP201"


class SizeChanged(ShapeError):
    """An array changes its size in a loop."""

    code = "TP204"


class ArgumentError(TapelessError, ValueError):
    """The arguments of a call cannot be used together."""

    code = "TP130"


class RecoveryError(SourceError):
    """A recovery was asked for that does not apply."""

    code = "TP300"


class OtherPlan(RecoveryError):
    """Code was called that keeps its values in another way than the sizes of the call ask for. Nobody sees it: calls
    ask first.
    """

    code = "TP305"


class InvertibilityError(SourceError):
    """A reversible statement could not be undone."""

    code = "TP400"


class InversionDrift(UserWarning):
    """Running backwards did not end at the known inputs."""

    code = "TP410"


class CacheNotUsed(UserWarning):
    """Others could write to the folder of compiled code, or to one on the way to it."""

    code = "TP501"


def warn_caller(problem: Warning) -> None:
    """Gives the warning at the line of the user's that is being run."""
    frame, depth = sys._getframe(), 1
    while frame.f_back is not None and _is_ours(frame):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(problem, stacklevel=depth)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "tapeless.")).startswith("tapeless.")


WARNINGS = frozenset({"InversionDrift"})  # checks that fail with these let the program go on


class DeviceError(TapelessError):
    """A device is missing or refused the work."""

    code = "TP500"


def named(name: str) -> type[Exception] | None:
    """The exception that a test in a program raises: a class of this module, a built-in one, or NumPy's LinAlgError."""
    found = globals().get(name) or getattr(builtins, name, None) or getattr(np.linalg, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None
