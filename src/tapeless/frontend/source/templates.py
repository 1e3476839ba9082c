"""Python that the compiler writes itself, with names that no program has: ITEM in the text is `<item>`.

`template` gives the syntax tree, without positions: what goes wrong belongs to the call for which it is run.
"""

from __future__ import annotations

import ast


def template(text: str) -> ast.stmt:
    (node,) = ast.parse(text).body
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and n.id.isupper():
            n.id = f"<{n.id.lower()}>"
        for place in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            n.__dict__.pop(place, None)
    return node
