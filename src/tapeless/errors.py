"""The errors a user can meet, each with a stable code that has a page in the documentation.

`CompileError` and `ShapeError` show file, line, the source line and a caret under the expression.
This module imports nothing of the project, so that every layer may raise.
"""

from __future__ import annotations

import linecache


class TapelessError(Exception):
    """Base of all errors of Tapeless."""

    code = "TP000"


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
        self.reason, self.hint = reason, hint
        if code:
            self.code = code
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


class InternalError(CompileError):
    """The compiler failed on a function it should have compiled or refused. Its cause is kept, for a report."""

    code = "TP900"


class ShapeError(SourceError, ValueError):
    """Shapes do not fit together."""

    code = "TP200"


class ArgumentError(TapelessError, ValueError):
    """The arguments of a call cannot be used together."""

    code = "TP130"


class RecoveryError(SourceError):
    """A recovery was asked for that does not apply."""

    code = "TP300"


class InvertibilityError(SourceError):
    """A reversible statement could not be undone."""

    code = "TP400"


class InversionDrift(UserWarning):
    """Running backwards did not end at the known inputs."""

    code = "TP410"


class DeviceError(TapelessError):
    """A device is missing or refused the work."""

    code = "TP500"
