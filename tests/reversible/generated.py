"""Random reversible functions over two numbers, an array of four and an integer, as text."""

from hypothesis import strategies as st

NUMBERS = ("a", "b", "x[0]", "x[1]", "x[2]", "x[3]")
HEADER = """import numpy as np

import tapeless as tp


@tp.reversible
def shear(u, v, *, h=0.25):
    u += h * np.sin(v)
    v -= h * u * u


@tp.reversible
def program(a, b, x, k):
"""


@st.composite
def programs(draw: st.DrawFn, sums: bool = False) -> str:
    """sums: with no step but sums and exchanges."""
    return HEADER + "\n".join(_block(draw, 1, list(NUMBERS), 0, sums)) + "\n"


def _block(draw: st.DrawFn, depth: int, places: list[str], loops: int, sums: bool) -> list[str]:
    """Statements that change some of these places."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4 if depth == 1 else 2))):
        lines += _statement(draw, depth, places, loops, sums)
    return ["    " * depth + line if depth == 1 else "    " + line for line in lines]


def _value(draw: st.DrawFn, without: list[str], loops: int) -> str:
    """An expression that does not use some places, and stays small."""
    free = [p for p in NUMBERS if p not in without]
    p, q = draw(st.sampled_from(free)), draw(st.sampled_from(free))
    forms = [f"np.sin({p})", f"0.5 * {p}", f"0.25 * np.cos({p} + {q})", f"np.tanh({p} * {q})", f"1.0 / (2.0 + {p}**2)"]
    if not any(w.startswith("x") for w in without):
        forms += ["0.125 * np.sum(x)", "np.tanh(x @ x)"]
    if loops:
        forms.append("0.125 * i0")
    return draw(st.sampled_from(forms))


def _statement(draw: st.DrawFn, depth: int, places: list[str], loops: int, sums: bool) -> list[str]:
    kinds = ["add", "add", "add", "integer"] if sums else ["add", "add", "add", "scale", "integer"]
    if len(places) > 1:
        kinds += ["swap", "call", "inverse"] if sums else ["swap", "rotate", "call", "inverse"]
    if depth < 4:
        kinds += ["if", "for", "ancilla", "compute", "branch"]
    kind = draw(st.sampled_from(kinds))
    p = draw(st.sampled_from(places))
    if kind == "add":
        return [f"{p} {draw(st.sampled_from(['+=', '-=']))} {_value(draw, [p], loops)}"]
    if kind == "scale":
        return [f"{p} {draw(st.sampled_from(['*=', '/=']))} 1.5 + 0.5 * {_value(draw, [p], loops)}"]
    if kind == "integer":
        return [draw(st.sampled_from(["k += 3", "k ^= 5", "k -= 1"]))]
    if kind in ("swap", "rotate", "call", "inverse"):
        q = draw(st.sampled_from([o for o in places if o != p]))
        ways = {
            "swap": f"{p}, {q} = {q}, {p}",
            "rotate": f"{p}, {q} = tp.rot({p}, {q}, {_value(draw, [p, q], loops)})",
            "call": f"{p}, {q} = shear({p}, {q})",
            "inverse": f"{p}, {q} = (~shear)({p}, {q}, h=0.125)",
        }
        return [ways[kind]]
    if kind == "if":
        watched = draw(st.sampled_from(NUMBERS))
        left = [o for o in places if o != watched] or places
        if watched in left:
            return ["pass"]
        orelse = ["else:", *_block(draw, depth + 1, left, loops, sums)] if draw(st.booleans()) else []
        return [f"if {watched} > 0.1:", *_block(draw, depth + 1, left, loops, sums), *orelse]
    if kind == "branch":
        left = [o for o in places if o != p]
        inside = _block(draw, depth + 1, left, loops, sums) if left else []
        return [f"if tp.branch({p} > 0.0, {p} > 2.0):", f"    {p} += 2.0", *inside]
    if kind == "for":
        way = draw(st.sampled_from(["range(3)", "range(1, 6, 2)", "range(4, 0, -3)", "reversed(range(2))"]))
        return [f"for i{loops} in {way}:", *_block(draw, depth + 1, places, loops + 1, sums)]
    name = f"t{depth}"
    value = _value(draw, places, loops) if len(places) < len(NUMBERS) else "0.5"
    made = f"{name} += {_value(draw, [], loops)}"
    if kind == "ancilla":
        return [f"with tp.ancilla({value}) as {name}:", f"    {p} += {name} * 0.5"]
    read = [w for w in NUMBERS if w in made or ("x" in made and w.startswith("x"))]
    left = [o for o in places if o not in read]
    use = [f"    {left[0]} += np.sin({name})"] if left else ["    k += 1"]
    return [
        f"with tp.ancilla(0.25) as {name}:",
        "    with tp.compute:",
        f"        {made}",
        *use,
        *(_block(draw, depth + 1, left, loops, sums) if left else []),
    ]
