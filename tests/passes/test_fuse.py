"""Fusion: what becomes one sweep, what stays apart and why, and that values stay as they were."""

from __future__ import annotations

import io
import itertools
import re
from contextlib import redirect_stdout
from textwrap import dedent, indent

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import Apply, Function, Stm
from tapeless.ir.parser import parse_function
from tapeless.ir.printer import print_function
from tapeless.ir.span import Span
from tapeless.ir.walk import Substitution, all_stms, map_function
from tapeless.passes.check.verify import verify
from tapeless.passes.parallel.fuse import fuse
from tests.passes.programs import calls_of

N = 5
PARAMS = "x: [n]f64, y: [n]f64, a: [n][m]f64, k: [n]i64, w: f64, d: [3]f64"


def program(code: str, results: str, types: str) -> Function:
    f = parse_function(f"def f({PARAMS}) -> {types}\n{indent(dedent(code), '  ')}\n  in {results}")
    verify(f)
    return f


def arguments(seed: int = 0) -> list[object]:
    random = np.random.default_rng(seed)
    x, y, d = (random.uniform(0.5, 2.0, size) for size in (N, N, 3))
    return [x, y, random.uniform(0.5, 2.0, (N, 4)), random.integers(0, N, N), 0.75, d]


def same_values(f: Function, g: Function, args: list[object], consume: bool = True, rtol: float = 0.0) -> None:
    """The same results bit for bit, and no new use of an array that was consumed."""
    for options in ({"consume": consume}, {"order": "reverse"}):
        for one, other in zip(evaluate(f, args, **options), evaluate(g, args, **options), strict=True):
            np.testing.assert_allclose(other, one, rtol=rtol)


def fused(code: str, results: str, types: str, rtol: float = 0.0) -> str:
    """The printed body after fusion, one space between any two words."""
    f = program(code, results, types)
    g = fuse(f)
    verify(g)
    same_values(f, g, arguments(), rtol=rtol)
    assert fuse(g) is g or print_function(fuse(g)) == print_function(g)
    return re.sub(r"[\s;]+", " ", print_function(g).split("\n", 1)[1]).strip()


def stays(code: str, results: str, types: str, consume: bool = True) -> None:
    f = program(code, results, types)
    assert fuse(f) is f
    evaluate(f, arguments(), consume=consume)


# -- a producer into its consumer


def test_map_into_map() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        q: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) p
    """
    assert fused(code, "q", "[n]f64") == (
        r"q: [n]f64 = map n (\i e -> t: f64 = sin e t_1: f64 = mul t w in t_1) x in q"
    )


def test_map_into_reduce_and_scan() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        s: f64, c: [n]f64 = sweep n (\i e -> (e, e)) p | reduce add 0.0 | scan add 0.0
    """
    assert fused(code, "(s, c)", "(f64, [n]f64)") == (
        r"s: f64, c: [n]f64 = sweep n (\i e -> t: f64 = sin e in (t, t)) x | reduce add 0.0 | scan add 0.0 in (s, c)"
    )


def test_a_chain_becomes_one_sweep() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        q: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) p y
        r: [n]f64 = map n (\i e f -> t: f64 = add e f; in t) q x
        s: f64 = reduce n add 0.0 r
    """
    assert fused(code, "s", "f64") == (
        r"s: f64 = sweep n (\i e f -> t: f64 = sin e t_1: f64 = mul t f t_2: f64 = add t_1 e in t_2) x y"
        r" | reduce add 0.0 in s"
    )


def test_an_input_used_twice() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        q: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) p p
    """
    assert fused(code, "q", "[n]f64") == r"q: [n]f64 = map n (\i e -> t: f64 = sin e t_1: f64 = mul t t in t_1) x in q"


def test_constant_results() -> None:
    code = r"""
        p: [n]f64 = map n (\i -> 2.0)
        q: [n][3]f64 = map n (\i e -> t: [3]f64 = broadcast e [3] axes []; in t) p
    """
    assert fused(code, "q", "[n][3]f64") == (
        r"q: [n][3]f64 = map n (\i -> p: f64 = identity 2.0 t: [3]f64 = broadcast p [3] axes [] in t) in q"
    )


def test_into_hist() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        own: [3]f64 = copy d
        h: [3]f64 = hist add 0.0 own n (\i j e -> (j, e)) k p
    """
    assert fused(code, "h", "[3]f64") == (
        r"own: [3]f64 = copy d h: [3]f64 = hist add 0.0 own n (\i e j -> t: f64 = sin e in (j, t)) x k in h"
    )


def test_into_scatter() -> None:
    code = r"""
        p: [n]i64 = map n (\i j -> t: i64 = sub i 1; in t) k
        own: [3]f64 = copy d
        h: [3]f64 = scatter own n (\i j e -> (j, e)) p x
    """
    assert fused(code, "h", "[3]f64") == (
        r"own: [3]f64 = copy d h: [3]f64 = scatter own n (\i j e -> t: i64 = sub i 1 in (t, e)) k x in h"
    )


def test_rows_are_consumed_row_by_row() -> None:
    code = r"""
        p: [n][m]f64 = map n (\i r -> q: [m]f64 = map m (\j e -> t: f64 = exp e; in t) r; in q) a
        s: [n]f64 = map n (\i r -> q: f64 = reduce m add 0.0 r; in q) p
        t: f64 = reduce n add 0.0 s
    """
    text = fused(code, "t", "f64")
    assert text == (
        r"t: f64 = sweep n (\i r -> q: f64 = sweep m (\j e -> t_1: f64 = exp e in t_1) r | reduce add 0.0 in q) a"
        r" | reduce add 0.0 in t"
    )


def test_elements_read_at_the_index_of_the_sweep() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        q: [n]f64 = map n (\i e -> t: f64 = p[i]; u: f64 = mul t e; in u) y
    """
    assert fused(code, "q", "[n]f64") == (
        r"q: [n]f64 = map n (\i e e_1 -> t: f64 = sin e u: f64 = mul t e_1 in u) x y in q"
    )


def test_parts_of_rows_read_at_the_index_of_the_sweep() -> None:
    code = r"""
        p: [n][m]f64 = map n (\i r -> q: [m]f64 = map m (\j e -> t: f64 = exp e; in t) r; in q) a
        z: [n][m]f64 = map n (\i e ->
          whole: [m]f64 = p[i, :]
          q: [m]f64 = map m (\j f -> t: f64 = p[i, j]; u: f64 = mul t f; v: f64 = mul u e; in v) whole
          in q) x
    """
    text = fused(code, "z", "[n][m]f64")
    assert text == (
        r"z: [n][m]f64 = map n (\i r e -> q: [m]f64 = map m (\j e_1 -> t: f64 = exp e_1 u: f64 = mul t t"
        r" v: f64 = mul u e in v) r in q) a x in z"
    )


def test_view_of_the_whole() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        v: [n]f64 = p[:]
        s: f64 = reduce n add 0.0 v
    """
    assert r"s: f64, p: [n]f64 = sweep n (\i e -> t: f64 = sin e in (t, t)) x | reduce add 0.0" in fused(
        code, "s", "f64"
    )


def test_spans_of_the_producer_stay() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        s: f64 = sweep n (\i e -> t: f64 = cos e; in t) p | reduce add 0.0
    """
    lines = itertools.count(1)

    class Spans(Substitution):
        def stm(self, stm: Stm) -> Stm:
            new = super().stm(stm)
            return Stm(new.vars, new.exp, Span("f.py", next(lines), 0, 0, 0))

    def spans(f: Function) -> dict[str, Span]:
        return {s.exp.op: s.span for s in all_stms(f.body) if isinstance(s.exp, Apply)}

    f = map_function(program(code, "s", "f64"), Spans({}).body)
    g = fuse(f)
    assert spans(f) == spans(g) and len(set(spans(g).values())) == 3
    assert g.body.stms[0].span == f.body.stms[1].span


# -- results that others need too


def test_another_result_is_kept() -> None:
    code = r"""
        p: [n]f64, q: [n]f64 = map n (\i e -> t: f64 = sin e; u: f64 = cos e; in (t, u)) x
        e: f64 = q[0]
        s: f64 = reduce n add 0.0 p
    """
    text = fused(code, "(s, e)", "(f64, f64)")
    assert text == (
        r"s: f64, q: [n]f64 = sweep n (\i e -> t: f64 = sin e u: f64 = cos e in (t, u)) x | reduce add 0.0"
        r" e_1: f64 = q[0] in (s, e_1)"
    )


def test_an_unused_result_goes() -> None:
    code = r"""
        p: [n]f64, q: [n]f64 = map n (\i e -> t: f64 = sin e; u: f64 = cos e; in (t, u)) x
        s: f64 = reduce n add 0.0 p
    """
    assert fused(code, "s", "f64").startswith("s: f64 = sweep n")


def test_the_result_itself_is_kept() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        s: f64 = reduce n add 0.0 p
    """
    assert fused(code, "(p, s)", "([n]f64, f64)") == (
        r"s: f64, p: [n]f64 = sweep n (\i e -> t: f64 = sin e in (t, t)) x | reduce add 0.0 in (p, s)"
    )


def test_softmax_keeps_the_exponentials() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = exp e; in t) x
        s: f64 = reduce n add 0.0 p
        q: [n]f64 = map n (\i e -> t: f64 = div e s; in t) p
        r: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) q y
    """
    text = fused(code, "r", "[n]f64")
    assert text == (
        r"s: f64, p: [n]f64 = sweep n (\i e -> t: f64 = exp e in (t, t)) x | reduce add 0.0"
        r" r: [n]f64 = map n (\i_1 e_1 f -> t_1: f64 = div e_1 s t_2: f64 = mul t_1 f in t_2) p y in r"
    )


def test_what_needs_the_kept_result_comes_after() -> None:
    """`e` follows the fused sweep, `b` precedes it."""
    code = r"""
        p: [n]f64, q: [n]f64 = map n (\i e -> t: f64 = sin e; u: f64 = cos e; in (t, u)) x
        e: f64 = q[0]
        b: f64 = sin w
        f: f64 = mul e w
        z: [n]f64 = map n (\i g -> t: f64 = mul g b; in t) p
    """
    text = fused(code, "(z, f)", "([n]f64, f64)")
    assert re.match(r"b: .*q: \[n\]f64, z: \[n\]f64 = map.* e_1: f64 = q\[0\] f: f64 = mul e_1 w in", text)


def test_a_cheap_producer_is_copied() -> None:
    """The array is gone; the multiplication is done twice."""
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) x
        s: f64 = reduce n add 0.0 p
        q: [n]f64 = map n (\i e -> t: f64 = div e s; in t) p
    """
    assert fused(code, "q", "[n]f64") == (
        r"s: f64 = sweep n (\i e -> t: f64 = mul e w in t) x | reduce add 0.0"
        r" q: [n]f64 = map n (\i_1 e_1 -> t_1: f64 = mul e_1 w t_2: f64 = div t_1 s in t_2) x in q"
    )


def test_a_cheap_producer_is_copied_into_hist() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) x
        own: [3]f64 = copy d
        h: [3]f64 = hist add 0.0 own n (\i j e -> (j, e)) k p
    """
    text = fused(code, "(p, h)", "([n]f64, [3]f64)")
    assert text.startswith("p: [n]f64 = map n") and "hist add 0.0 own n (\\i_1 e_1 j -> t_1: f64 = mul e_1 w" in text


def test_a_dear_producer_is_not_copied() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        own: [3]f64 = copy d
        h: [3]f64 = hist add 0.0 own n (\i j e -> (j, e)) k p
    """
    stays(code, "(p, h)", "([n]f64, [3]f64)")


# -- what stays apart


def test_other_width() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        s: f64 = reduce 5 add 0.0 p
    """
    stays(code, "s", "f64")


def test_equal_constant_widths() -> None:
    code = r"""
        p: [3]f64 = map 3 (\i e -> t: f64 = sin e; in t) d
        s: f64 = reduce 3 add 0.0 p
    """
    assert fused(code, "s", "f64") == r"s: f64 = sweep 3 (\i e -> t: f64 = sin e in t) d | reduce add 0.0 in s"


@pytest.mark.parametrize(
    "read",
    ["t: f64 = p[0]", "t: f64 = p[i?]", "j: i64 = add i 0; t: f64 = p[j]", "t: f64 = reduce n add 0.0 p"],
    ids=["elsewhere", "tested", "by another name", "all of it"],
)
def test_free_use_in_the_consumer(read: str) -> None:
    code = f"""
        p: [n]f64 = map n (\\i e -> t: f64 = sin e; in t) x
        q: [n]f64 = map n (\\i e -> {read}; u: f64 = mul t e; in u) p
    """
    stays(code, "q", "[n]f64")


def test_the_operator_uses_the_array() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        s: f64 = reduce n (\a b -> z: f64 = p[0]; u: f64 = max a b; v: f64 = max u z; in v) 0.0 p
    """
    stays(code.replace("a b", "g b").replace("max a", "max g"), "s", "f64")


def test_the_neutral_element_is_the_array() -> None:
    code = r"""
        p: [3]f64 = map 3 (\i e -> t: f64 = sin e; in t) d
        s: [3]f64 = sweep 3 (\i e -> u: [3]f64 = broadcast e [3] axes []; in u) p
          | reduce (\g b -> u: [3]f64 = map 3 (\i e f -> t: f64 = add e f; in t) g b; in u) p
    """
    stays(code, "s", "[3]f64")


@pytest.mark.parametrize("view", ["p[4:+n:-1]", "reshape p [n]"])
def test_views_are_not_looked_through(view: str) -> None:
    code = f"""
        p: [n]f64 = map n (\\i e -> t: f64 = sin e; in t) x
        v: [n]f64 = {view}
        s: f64 = reduce n add 0.0 v
    """
    stays(code, "s", "f64")


def test_transposes_are_not_looked_through() -> None:
    code = r"""
        b: [3][3]f64 = map 3 (\i e -> r: [3]f64 = broadcast e [3] axes []; in r) d
        v: [3][3]f64 = transpose b [1, 0]
        s: [3]f64 = map 3 (\i r -> t: f64 = reduce 3 add 0.0 r; in t) v
    """
    stays(code, "s", "[3]f64")


def test_results_of_reductions_and_scans() -> None:
    stays(
        r"""
        c: [n]f64 = scan n add 0.0 x
        q: [n]f64 = map n (\i e -> t: f64 = sin e; in t) c
        """,
        "q",
        "[n]f64",
    )
    stays(
        r"""
        s: f64, p: [n]f64 = sweep n (\i e -> t: f64 = sin e; in (e, t)) x | reduce add 0.0
        q: [n]f64 = map n (\i e -> t: f64 = mul e s; in t) p
        """,
        "q",
        "[n]f64",
    )


def test_mapped_results_beside_a_scan_stay() -> None:
    code = r"""
        c: [n]f64, p: [n]f64 = sweep n (\i e -> t: f64 = sin e; in (e, t)) x | scan add 0.0
        q: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) p
    """
    stays(code, "(c, q)", "([n]f64, [n]f64)")


def test_what_stands_between_and_is_needed() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        e: f64 = p[0]
        q: [n]f64 = map n (\i f -> t: f64 = mul f e; in t) p
    """
    stays(code, "q", "[n]f64")


@pytest.mark.parametrize(
    "around",
    [
        "s: f64 = loop (r: f64 = 0.0) for h < 2 do\n  {inner}\n  v: f64 = add r q\n  in v",
        "s: f64 = if c then\n  {inner}\n  in q\nelse 0.0",
        "z: [n]f64 = map n (\\h -> \n  {inner}\n  in q)\ns: f64 = z[0]",
    ],
    ids=["loop", "branch", "lambda"],
)
def test_consumers_in_regions(around: str) -> None:
    code = dedent(
        r"""
        c: bool = lt w 1.0
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        """
    ) + around.format(inner="q: f64 = reduce n add 0.0 p")
    stays(code, "s", "f64")


def test_large_lambdas() -> None:
    steps = "; ".join(f"t_{k + 1}: f64 = sin t_{k}" for k in range(300))
    one = f"map n (\\i t_0 -> {steps}; in t_300)"
    stays(f"p: [n]f64 = {one} x\nq: [n]f64 = {one} p", "q", "[n]f64")


# -- order and effects


def checked(name: str, source: str, message: str, bound: str = "0.0") -> str:
    return (
        f"{name}: [n]f64 = map n (\\i e -> c: bool = gt e {bound}; "
        f'check c ValueError "{message}"; t: f64 = sin e; in t) {source}'
    )


def test_checks_of_one_sweep_may_join_another() -> None:
    code = checked("p", "x", "first") + "\ns: f64 = reduce n add 0.0 p"
    assert fused(code, "s", "f64").startswith("s: f64 = sweep n")
    code = "p: [n]f64 = map n (\\i e -> t: f64 = sin e; in t) x\n" + checked("q", "p", "second")
    assert fused(code, "q", "[n]f64").startswith("q: [n]f64 = map n")


def test_effects_of_two_sweeps_do_not_mix() -> None:
    stays(checked("p", "x", "first") + "\n" + checked("q", "p", "second"), "q", "[n]f64")
    stays(checked("p", "x", "first") + "\n" + checked("q", "x", "second"), "(p, q)", "([n]f64, [n]f64)")


def test_tested_positions_are_effects() -> None:
    code = r"""
        p: [n]f64 = map n (\i j -> t: f64 = x[j?]; in t) k
        q: [n]f64 = map n (\i e j -> t: f64 = y[j!]; u: f64 = mul e t; in u) p k
    """
    stays(code, "q", "[n]f64")


def test_effects_do_not_pass_each_other() -> None:
    """The check between needs the first sweep and the second one needs the check's place: it cannot be crossed."""
    between = 'ok: bool = gt w 0.0\ncheck ok ValueError "between"'
    code = checked("p", "x", "first") + f"\n{between}\n" + "s: f64 = reduce n add 0.0 p"
    text = fused(code, "s", "f64")  # the sweep that fails goes first, as before
    assert text.index("first") < text.index("between")
    code = f"p: [n]f64 = map n (\\i e -> t: f64 = sin e; in t) x\n{between}\n" + checked("q", "p", "second")
    text = fused(code, "q", "[n]f64")
    assert text.index("between") < text.index("second")


def test_what_relies_on_a_check_stays_behind_it() -> None:
    """The routine must not see what the check refuses, though the two sweeps would fit: LAPACK may never come back."""
    code = """
        z: [n][n]f64 = map n (\\i e -> q: [n]f64 = map n (\\j -> t: f64 = mul e e; in t); in q) x
        r: f64 = reduce n add 0.0 y
        ok: bool = gt r 0.0
        check ok ValueError "not positive"
        h: [n]f64, v: [n][n]f64 = @eigh z
        s: f64 = reduce n maximum -inf h
    """
    order = fused(code, "(r, s)", "(f64, f64)", rtol=1e-12)
    assert order.index("check") < order.index("@eigh")


def test_a_failing_check_raises_the_same_error() -> None:
    code = checked("p", "x", "first", "100.0") + '\nok: bool = lt w 0.0\ncheck ok ValueError "between"\n'
    f = program(code + "s: f64 = reduce n add 0.0 p", "s", "f64")
    for g in (f, fuse(f)):
        with pytest.raises(ValueError, match="first"):
            evaluate(g, arguments())


def test_prints_are_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; print ("p", 0) i; in t) x
        print ("between")
        q: [n]f64 = map n (\i e -> t: f64 = sin e; in t) p
        print ("after")
    """
    f = program(code, "q", "[n]f64")
    g = fuse(f)
    assert len(g.body.stms) == 3
    outputs = []
    for h in (f, g):
        evaluate(h, arguments())
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_what_the_producer_reads_is_consumed_between() -> None:
    code = r"""
        own: [n]f64 = copy x
        v: [n]f64 = reshape own [n]
        p: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) v
        own_1: [n]f64 = update own[0] = 7.0
        q: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) p own_1
        r: [n]f64 = map n (\i e f -> t: f64 = sub e f; in t) q p
    """
    text = fused(code, "r", "[n]f64")
    assert text.index("mul e w") < text.index("update own")


def test_the_consumer_may_come_before_an_update() -> None:
    code = r"""
        own: [n]f64 = copy x
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) own
        own_1: [n]f64 = update own[0] = 7.0
        s: f64 = reduce n add 0.0 p
    """
    text = fused(code, "(s, own_1)", "(f64, [n]f64)")
    assert text.index("reduce") < text.index("update")


def test_loops_take_over_what_they_carry() -> None:
    code = r"""
        own: [n]f64 = copy x
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) own
        r: [n]f64 = loop (v: [n]f64 = own) for j < 2 do
          v_1: [n]f64 = update v[j] = w
          in v_1
        q: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) p r
    """
    stays(code, "q", "[n]f64")


def test_loops_take_over_what_they_make_anew() -> None:
    """The second iteration may be written where the array was that the loop began with."""
    code = r"""
        own: [n]f64 = copy x
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) own
        r: [n]f64 = loop (v: [n]f64 = own) for j < 2 do
          v_1: [n]f64 = map n (\i e -> t: f64 = mul e w; in t) v
          in v_1
        q: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) p r
    """
    stays(code, "q", "[n]f64")


def test_the_consumer_overwrites_what_the_producer_reads() -> None:
    code = r"""
        own: [n]f64 = copy x
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) own
        h: [n]f64 = scatter own n (\i j e -> (j, e)) k p
    """
    stays(code, "h", "[n]f64")


def test_the_consumer_overwrites_rows() -> None:
    code = r"""
        p: [n][m]f64 = map n (\i r -> q: [m]f64 = map m (\j e -> t: f64 = exp e; in t) r; in q) a
        z: [n][m]f64 = map n (\i r -> q: [m]f64 = update r[0] = 1.0; in q) p
    """
    stays(code, "z", "[n][m]f64", consume=False)  # the evaluator takes all rows for one piece of memory


# -- accumulators


def test_a_lambda_that_runs_once_is_entered() -> None:
    code = r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        own: [n]f64 = copy y
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i j e -> update_acc acc[j] = e; in ()) k p
          in ())
    """
    assert fused(code, "r", "[n]f64") == (
        r"own: [n]f64 = copy y r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->"
        r" map n (\i e j -> t: f64 = sin e update_acc acc[j] = t in ()) x k in ()) in r"
    )


def test_a_lambda_that_is_entered_goes_before_an_update() -> None:
    code = r"""
        old: [n]f64 = copy x
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) old
        new: [n]f64 = update old[0] = 7.0
        own: [n]f64 = copy y
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i j e -> update_acc acc[j] = e; in ()) k p
          in ())
    """
    text = fused(code, "(r, new)", "([n]f64, [n]f64)")
    assert text.count("map n") == 1 and text.index("with_acc") < text.index("update old")


@pytest.mark.parametrize(
    "code",
    [
        r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        own: [n]f64 = copy y
        s: f64 = p[0]
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i j e -> u: f64 = mul e s; update_acc acc[j] = u; in ()) k p
          in ())
        """,
        r"""
        own: [n]f64 = copy y
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) own
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i j e -> update_acc acc[j] = e; in ()) k p
          in ())
        """,
        r"""
        own: [n]f64 = copy y
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          e: f64 = p[0]
          update_acc acc[0] = e
          in ())
        """,
        r"""
        p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        r: [n]f64 = with_acc p (\(acc: acc<add, [n]f64>) ->
          map n (\i j e -> update_acc acc[j] = e; in ()) k x
          in ())
        """,
    ],
    ids=["used outside", "reads what is consumed", "nobody to take it in", "becomes the accumulator"],
)
def test_a_lambda_that_runs_once_is_not_entered(code: str) -> None:
    stays(code, "r", "[n]f64")


def test_a_sum_enters_the_lambda_in_which_its_work_is_done_again() -> None:
    code = r"""
        s: f64 = sweep n (\i e -> t: f64 = sin e; in t) x | reduce add 0.0
        double: f64 = mul s 2.0
        own: [n]f64 = full [n] 0.0
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i e j -> t: f64 = sin e; update_acc acc[j] = t; in ()) x k
          in ())
    """
    assert fused(code, "(r, double)", "([n]f64, f64)") == (
        r"own: [n]f64 = full [n] 0.0 r: [n]f64, s: f64 = with_acc own (\(acc: acc<add, [n]f64>) ->"
        r" s_1: f64 = sweep n (\i e j -> t: f64 = sin e t_1: f64 = sin e update_acc acc[j] = t_1 in t) x k"
        r" | reduce add 0.0 in s_1) double: f64 = mul s 2.0 in (r, double)"
    )


def test_a_sum_and_rows_enter_a_lambda() -> None:
    code = r"""
        s: f64, p: [n]f64 = sweep n (\i e -> t: f64 = sin e; in (t, t)) x | reduce add 0.0
        own: [n]f64 = copy y
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i j e -> update_acc acc[j] = e; in ()) k p
          in ())
    """
    for results, types in (("(r, s)", "([n]f64, f64)"), ("(r, s, p)", "([n]f64, f64, [n]f64)")):
        text = fused(code, results, types)
        assert text.count("sweep n") == 1 and "map n" not in text


@pytest.mark.parametrize(
    ("sweep", "acc", "factor"),
    [
        (r"t: f64 = cos e; in t", "full [n] 0.0", "w"),
        (r"t: f64 = sin e; in t", "full [n] 0.0", "s"),
        (r"j: i64 = k[i]; t: f64 = x[j?]; in t", "update y[0] = 7.0", "w"),
    ],
    ids=["other work", "the sum is used inside", "an error would leave half of the updates"],
)
def test_a_sum_does_not_enter_a_lambda(sweep: str, acc: str, factor: str) -> None:
    code = rf"""
        s: f64 = sweep n (\i e -> {sweep}) x | reduce add 0.0
        own: [n]f64 = {acc}
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          map n (\i e j -> t: f64 = sin e; u: f64 = mul t {factor}; update_acc acc[j] = u; in ()) x k
          in ())
    """
    stays(code, "(r, s)", "([n]f64, f64)")


def test_updates_of_accumulators_have_no_order() -> None:
    code = r"""
        own: [n]f64 = copy y
        r: [n]f64 = with_acc own (\(acc: acc<add, [n]f64>) ->
          p: [n]f64 = map n (\i j e -> t: f64 = sin e; update_acc acc[i] = 1.0; in t) k x
          map n (\i j e -> update_acc acc[j] = e; in ()) k p
          in ())
    """
    assert fused(code, "r", "[n]f64", rtol=1e-14).count("map n") == 1


# -- side by side


def test_sums_of_one_array() -> None:
    code = r"""
        s: f64 = reduce n add 0.0 x
        p: [n]f64 = map n (\i e -> t: f64 = mul e e; in t) x
        q: f64 = reduce n add 0.0 p
        v: f64 = reduce n max 0.0 x
    """
    assert fused(code, "(s, q, v)", "(f64, f64, f64)") == (
        r"s: f64, q: f64, v: f64 = sweep n (\i x_1 -> t: f64 = mul x_1 x_1 in (x_1, t, x_1)) x"
        r" | reduce add 0.0 | reduce add 0.0 | reduce max 0.0 in (s, q, v)"
    )


def test_results_in_the_order_of_a_sweep() -> None:
    code = r"""
        s: f64, c: [n]f64, p: [n]f64 = sweep n (\i e -> t: f64 = sin e; in (e, e, t)) x | reduce add 0.0 | scan add 0.0
        z: f64, g: [n]f64, q: [n]f64 = sweep n (\i e -> t: f64 = cos e; in (t, t, t)) x | reduce mul 1.0 | scan mul 1.0
    """
    text = fused(code, "(s, z, c, g, p, q)", "(f64, f64, [n]f64, [n]f64, [n]f64, [n]f64)")
    assert text.startswith("s: f64, z: f64, c: [n]f64, g: [n]f64, p: [n]f64, q: [n]f64 = sweep n")
    assert "in (e, t_1, e, t_1, t, t_1)" in text
    assert text.count("| scan") == 2 and text.count("| reduce") == 2


def test_small_reductions_of_other_arrays() -> None:
    code = r"""
        s: f64 = reduce n add 0.0 x
        z: f64 = reduce n add 0.0 y
    """
    assert fused(code, "(s, z)", "(f64, f64)").startswith("s: f64, z: f64 = sweep n")


def test_what_stands_between_goes_to_its_side() -> None:
    code = r"""
        s: f64 = reduce n add 0.0 x
        t: f64 = sin s
        b: f64 = sin w
        z: f64 = sweep n (\i e -> u: f64 = mul e b; in u) x | reduce add 0.0
    """
    text = fused(code, "(t, z)", "(f64, f64)")
    assert text.index("b: f64") < text.index("sweep") < text.index("t: f64 = sin s")


def test_a_sweep_that_was_moved_behind_another() -> None:
    """`u` needs `s`, so it comes after the sweep that `r` joins; then it shares `y` with a sweep before it."""
    code = r"""
        p: [n]f64 = map n (\i e f -> t: f64 = add e f; in t) x y
        s: f64 = reduce n add 0.0 x
        q: [n]f64 = map n (\i e -> t: f64 = sin e; in t) x
        u: f64 = sweep n (\i e -> t: f64 = mul e s; in t) y | reduce add 0.0
        r: [n]f64 = map n (\i e -> t: f64 = cos e; in t) x
    """
    text = fused(code, "(p, q, u, r)", "([n]f64, [n]f64, f64, [n]f64)")
    assert text.index("cos") < text.index("mul e_")


@pytest.mark.parametrize(
    "code",
    [
        r"""
        s: f64 = reduce n add 0.0 x
        z: f64 = sweep n (\i e -> u: f64 = mul e s; in u) x | reduce add 0.0
        """,
        r"""
        s: f64 = reduce n add 0.0 x
        t: f64 = sin s
        z: f64 = sweep n (\i e -> u: f64 = mul e t; in u) x | reduce add 0.0
        """,
        r"""
        s: f64 = reduce n add 0.0 x
        z: f64 = reduce 3 add 0.0 d
        """,
        r"""
        s: f64 = reduce n add 0.0 x
        c: [n]f64 = scan n add 0.0 x
        z: f64 = c[0]
        """,
        r"""
        s: f64 = reduce n add 0.0 x
        p: [n]f64 = map n (\i e -> u: f64 = mul e e; in u) y
        z: f64 = p[0]
        """,
    ],
    ids=["uses the result", "depends on the result", "other width", "scan", "nothing in common"],
)
def test_sweeps_that_stay_apart(code: str) -> None:
    stays(code, "(s, z)", "(f64, f64)")


def test_large_sweeps_stay_apart() -> None:
    def steps(op: str) -> str:
        return "; ".join(f"t_{k + 1}: f64 = {op} t_{k}" for k in range(120))

    sines, cosines, again = (f"map n (\\i t_0 -> {steps(op)}; in t_120) x" for op in ("sin", "cos", "sin"))
    stays(f"p: [n]f64 = {sines}\nq: [n]f64 = {cosines}", "(p, q)", "([n]f64, [n]f64)")
    text = fused(f"p: [n]f64 = {sines}\nq: [n]f64 = {again}", "(p, q)", "([n]f64, [n]f64)")
    assert text.count("map n") == 1  # what both do will be done once


def test_sweeps_in_lambdas() -> None:
    code = r"""
        p: [n]f64 = map n (\i r -> s: f64 = reduce m add 0.0 r; in s) a
        q: [n]f64 = map n (\i r -> s: f64 = reduce m max 0.0 r; in s) a
    """
    text = fused(code, "(p, q)", "([n]f64, [n]f64)")
    assert "s: f64, s_1: f64 = sweep m" in text and text.count("map n") == 1


def test_sweeps_in_loops() -> None:
    code = r"""
        r: [n]f64 = loop (v: [n]f64 = x) for j < 3 do
          p: [n]f64 = map n (\i e -> t: f64 = sin e; in t) v
          q: [n]f64 = map n (\i e f -> t: f64 = mul e f; in t) p y
          in q
    """
    assert fused(code, "r", "[n]f64").count("map n") == 1


# -- random programs

MORE = ["at", "element", "update", "hist", "print", "nest"]


@st.composite
def programs(draw: st.DrawFn) -> Function:
    """Chains of sweeps in which every array and number so far may be used any number of times."""
    lines = ["own: [n]f64 = copy y"]
    arrays, numbers, matrices, fresh = ["x", "y"], ["w"], ["a"], "own"
    pick = lambda many: draw(st.sampled_from(many[-4:]))
    for step in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from(["map", "map", "map", "two", "reduce", "scan", *MORE]))
        p, q, s = pick(arrays), pick(arrays), pick(numbers)
        op = draw(st.sampled_from(["add", "mul", "sub", "max"]))
        heavy = "u: f64 = sin t; v: f64 = cos u" if draw(st.booleans()) else "v: f64 = neg t"
        name = f"v_{step}"
        match kind:
            case "map":
                lines.append(f"{name}: [n]f64 = map n (\\i e f -> t: f64 = {op} e f; {heavy}; in v) {p} {q}")
            case "two":
                lines.append(f"{name}: [n]f64, {name}_b: [n]f64 = map n (\\i e -> t: f64 = {op} e {s}; in (t, e)) {p}")
                arrays.append(name + "_b")
            case "scan":
                lines.append(f"{name}: [n]f64 = sweep n (\\i e -> t: f64 = {op} e {s}; in t) {p} | scan add 0.0")
            case "at":
                lines.append(f"{name}: [n]f64 = map n (\\i e -> f: f64 = {p}[i]; t: f64 = {op} e f; in t) {q}")
            case "hist":
                lines.append(f"{name}_c: [n]f64 = copy {q}")
                lines.append(f"{name}: [n]f64 = hist add 0.0 {name}_c n (\\i j e -> (j, e)) k {p}")
            case "print":
                text = f'print ("{step} ", 0) i'
                lines.append(f"{name}: [n]f64 = map n (\\i e -> t: f64 = {op} e {s}; {text}; {heavy}; in v) {p}")
            case "nest":
                outer = f"z: [m]f64 = map m (\\j f -> t: f64 = {op} e f; {heavy}; in v) r"
                lines.append(f"{name}_c: [n][m]f64 = map n (\\i e r -> {outer}; in z) {p} {pick(matrices)}")
                lines.append(f"{name}: [n]f64 = map n (\\i r -> t: f64 = reduce m add 0.0 r; in t) {name}_c")
                matrices.append(f"{name}_c")
            case "reduce":
                lines.append(f"{name}: f64 = sweep n (\\i e -> t: f64 = {op} e {s}; in t) {p} | reduce add 0.0")
            case "element":
                lines.append(f"{name}: f64 = {p}[1]")
            case "update":
                lines.append(f"{name}: [n]f64 = update {fresh}[0] = {s}")
                arrays = [a for a in arrays if a != fresh]
                fresh = name
        if kind in ("reduce", "element"):
            numbers.append(name)
        elif kind != "two" or draw(st.booleans()):
            arrays.append(name)
    results = draw(st.lists(st.sampled_from(arrays + numbers), min_size=1, max_size=4, unique=True))
    types = ", ".join("f64" if r in numbers else "[n]f64" for r in results)
    return program("\n".join(lines), f"({', '.join(results)})", f"({types})")


@pytest.mark.thorough
@settings(max_examples=150)
@given(programs(), st.integers(0, 3))
def test_random_programs(f: Function, seed: int) -> None:
    g = fuse(f)
    verify(g)
    same_values(f, g, arguments(seed))
    assert printed(f, seed) == printed(g, seed)


def printed(f: Function, seed: int) -> str:
    with redirect_stdout(io.StringIO()) as output:
        evaluate(f, arguments(seed))
    return output.getvalue()


# -- time


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["chain", "beside", "apart"])
def test_work_grows_with_the_number_of_statements(kind: str) -> None:
    short, long = (_many(kind, count) for count in (350, 700))
    assert sum(1 for _ in all_stms(long.body)) > 2000
    assert calls_of(lambda: fuse(long)) < 2.3 * calls_of(lambda: fuse(short))


def _many(kind: str, count: int) -> Function:
    lines, last = [], "x"
    for k in range(count):
        source, scalar = {"chain": (last, "w"), "beside": ("x", "w"), "apart": ("x", f"t_{k}")}[kind]
        lines.append(f"t_{k}: f64 = add w {k}.0")
        lines.append(f"p_{k}: [n]f64 = map n (\\i e -> t: f64 = mul e {scalar}; in t) {source}")
        last = f"p_{k}"
    return program("\n".join(lines), last, "[n]f64")
