"""Loops that run to find something out, whose code is then thrown away but for a number.

Relies on `ir` only.
"""

from __future__ import annotations

from tapeless.frontend.state.context import Context
from tapeless.ir.core import Body, Library, Print, Progress
from tapeless.ir.walk import all_stms, in_regions, with_stms


def silent(ctx: Context, body: Body) -> Body:
    """Without output. What fails fails as it would later."""
    if any(isinstance(s.exp, Library) and s.exp.name == "callback" for s in all_stms(body)):
        ctx.fail(
            "TP104",
            "a loop that calls back into Python cannot run twice, as it would have to here: sizes are not known before",
        )
    return _without_output(body)


def _without_output(body: Body) -> Body:
    stms = [in_regions(s, _without_output) for s in body.stms if not isinstance(s.exp, (Print, Progress))]
    return with_stms(body, stms)
