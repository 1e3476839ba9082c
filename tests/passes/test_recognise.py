"""Matrix products written as sweeps and as loops become calls of the library, and what is none stays."""

from __future__ import annotations

import re
from itertools import permutations
from textwrap import dedent, indent

import numpy as np
import pytest

from tapeless.interp.evaluate import evaluate
from tapeless.ir.core import Function
from tapeless.ir.parser import parse_function
from tapeless.ir.printer import print_function
from tapeless.passes.check.verify import verify
from tapeless.passes.parallel.fuse import fuse
from tapeless.passes.products.recognise import recognise_products

PARAMS = "a: [m][k]f64, b: [k][n]f64, bt: [n][k]f64, at: [k][m]f64, x: [k]f64, c: [m][n]f64, y: [m]f64, w: f64"


def program(code: str, result: str, type: str, params: str = PARAMS) -> Function:
    f = parse_function(f"def f({params}) -> {type}\n{indent(dedent(code), '  ')}\n  in {result}")
    verify(f)
    return f


def arguments(dtype: str = "f64") -> list[object]:
    random = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        real = random.standard_normal(shape)
        kind = {"f64": np.float64, "f32": np.float32, "c64": np.complex64, "c128": np.complex128}[dtype]
        return (real + (1j * random.standard_normal(shape) if "c" in dtype else 0)).astype(kind)

    m, k, n = 3, 4, 5
    w = array(1)[0]
    return [array(m, k), array(k, n), array(n, k), array(k, m), array(k), array(m, n), array(m), w]


ZEROS = {"f64": "0.0", "f32": "0.0f32", "c64": "(0+0j)c64", "c128": "(0+0j)", "i64": "0", "i32": "0i32"}


def of_type(text: str, dtype: str) -> str:
    """The text for another element type."""
    return text.replace("0.0", ZEROS[dtype]).replace("f64", dtype)


def recognised(code: str, result: str = "r", type: str = "[m][n]f64", dtype: str = "f64") -> str:
    """The printed body, one space between words, after the values were compared."""
    f = program(of_type(code, dtype), result, of_type(type, dtype), of_type(PARAMS, dtype))
    g = recognise_products(f)
    verify(g)
    (expected,), (found,) = (evaluate(h, arguments(dtype), consume=True) for h in (f, g))
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype in ("f32", "c64") else 1e-12)
    return re.sub(r"[\s;]+", " ", print_function(g).split("\n", 1)[1]).strip()


def stays(code: str, result: str = "r", type: str = "[m][n]f64", params: str = PARAMS) -> None:
    f = program(code, result, type, params)
    assert recognise_products(f) is f


PRODUCT = "r: [m][n]f64 = @matmul a b in r"


def nest(inner: str, rows: str = "a", columns: str = "") -> str:
    """A map of maps; `inner` makes s from the rows u and v, if any, and the indices i and j."""
    u, v = " u" if rows else "", " v" if columns else ""
    return dedent(
        f"""
        r: [m][n]f64 = map m (\\i{u} ->
          z: [n]f64 = map n (\\j{v} ->
            {inner}
            in s) {columns}
          in z) {rows}
        """
    )


# -- sweeps

WAYS = {
    "rows of a and of b transposed": (
        nest(r"s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0", "a", "bt"),
        "bt_1: [k][n]f64 = transpose bt [1, 0] r: [m][n]f64 = @matmul a bt_1 in r",
    ),
    "a column read where it is needed": (
        nest(r"v: [k]f64 = b[:, j]; s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0"),
        PRODUCT,
    ),
    "elements read where they are needed": (
        nest(
            r"s: f64 = sweep k (\h -> e: f64 = a[i, h]; f: f64 = b[h, j]; t: f64 = mul f e; in t) | reduce add 0.0", ""
        ),
        PRODUCT,
    ),
    "a row of a free transpose": (
        "b_t: [n][k]f64 = transpose b [1, 0]"
        + nest(r"v: [k]f64 = b_t[j, :]; s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce comm add 0.0"),
        "b_t: [n][k]f64 = transpose b [1, 0] b_t_1: [k][n]f64 = transpose b_t [1, 0]"
        " r: [m][n]f64 = @matmul a b_t_1 in r",
    ),
    "a transpose inside": (
        nest(
            r"q: [n][k]f64 = transpose b [1, 0]; v: [k]f64 = q[j, :];"
            r" s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0"
        ),
        PRODUCT,
    ),
    "both transposed": (
        nest(
            r"s: f64 = sweep k (\h e -> f: f64 = at[h, i]; t: f64 = mul e f; in t) v | reduce add 0.0",
            "",
            "bt",
        ),
        "at_1: [m][k]f64 = transpose at [1, 0] bt_1: [k][n]f64 = transpose bt [1, 0]"
        " r: [m][n]f64 = @matmul at_1 bt_1 in r",
    ),
    "products first, then their sum": (
        nest(
            r"v: [k]f64 = b[:, j]; p: [k]f64 = map k (\h e f -> t: f64 = mul e f; in t) u v;"
            r" s: f64 = reduce k add 0.0 p"
        ),
        PRODUCT,
    ),
    "a dot product of the library": (nest("v: [k]f64 = b[:, j]; s: f64 = @matmul u v"), PRODUCT),
    "a loop in a lambda": (
        nest(
            r"""
            s: f64 = loop (g: f64 = 0.0) for h < k do
              e: f64 = u[h]
              f: f64 = b[h, j]
              t: f64 = mul e f
              g_1: f64 = add t g
              in g_1"""
        ),
        PRODUCT,
    ),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("dtype", ["f64", "f32", "c64", "c128"])
def test_products_as_sweeps(name: str, dtype: str) -> None:
    code, expected = WAYS[name]
    assert recognised(code, dtype=dtype) == of_type(expected, dtype)


@pytest.mark.parametrize("factor", ["2.5", "w"])
def test_a_factor_is_applied_afterwards(factor: str) -> None:
    inner = r"g: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0; s: f64 = mul " + factor + " g"
    text = recognised(nest(inner, "a", "bt"))
    assert "r: [m][n]f64 = @matmul a bt_1" in text and text.endswith("in r_1") and f"mul r_4 {factor}" in text


def test_matrix_times_vector() -> None:
    code = r"""
        r: [m]f64 = map m (\i u -> s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u x | reduce add 0.0; in s) a
    """
    assert recognised(code, type="[m]f64") == "r: [m]f64 = @matmul a x in r"
    code = r"""
        r: [n]f64 = map n (\i ->
          s: f64 = sweep k (\h f -> e: f64 = b[h, i]; t: f64 = mul e f; in t) x | reduce add 0.0
          in s)
    """
    assert recognised(code, type="[n]f64") == "b_1: [n][k]f64 = transpose b [1, 0] r: [n]f64 = @matmul b_1 x in r"


def test_a_matrix_times_its_transpose() -> None:
    code = r"""
        r: [m][m]f64 = map m (\i u ->
          z: [m]f64 = map m (\j v -> s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0; in s) a
          in z) a
    """
    expected = "a_1: [k][m]f64 = transpose a [1, 0] r: [m][m]f64 = @matmul a a_1 in r"
    assert recognised(code, type="[m][m]f64") == expected


def test_the_broadcast_way_after_fusion() -> None:
    """(a[:, None, :] * bt[None, :, :]).sum(-1)"""
    code = r"""
        p: [m][n][k]f64 = map m (\i u ->
          z: [n][k]f64 = map n (\j v -> q: [k]f64 = map k (\h e f -> t: f64 = mul e f; in t) u v; in q) bt
          in z) a
        r: [m][n]f64 = map m (\i u -> z: [n]f64 = map n (\j v -> s: f64 = reduce k add 0.0 v; in s) u; in z) p
    """
    f = fuse(program(code, "r", "[m][n]f64"))
    g = recognise_products(f)
    assert "@matmul a bt_1" in print_function(g) and "map" not in print_function(g)


def test_in_a_loop() -> None:
    code = r"""
        r: [m]f64 = loop (v: [m]f64 = y) for q < 2 do
          z: [m]f64 = map m (\i u -> s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u x | reduce add 0.0; in s) a
          in z
    """
    assert "z: [m]f64 = @matmul a x" in recognised(code, type="[m]f64")


# -- loops

SUM_FIRST = r"""
    r: [m][n]f64 = loop (c_1: [m][n]f64 = c_0) for i < m do
      c_2: [m][n]f64 = loop (c_3: [m][n]f64 = c_1) for j < n do
        {start}
        s: f64 = loop (g: f64 = {from_}) for h < k do
          e: f64 = a[i, h]
          f: f64 = b[h, j]
          t: f64 = mul e f
          g_1: f64 = add g t
          in g_1
        {end}
        c_4: [m][n]f64 = update c_3[i, j] = {value}
        in c_4
      in c_2
"""


def sum_first(init: str, start: str = "", from_: str = "0.0", end: str = "", value: str = "s") -> str:
    return f"c_0: [m][n]f64 = {init}\n" + dedent(SUM_FIRST.format(start=start, from_=from_, end=end, value=value))


def test_loops_with_a_sum() -> None:
    assert recognised(sum_first("full [m, n] _")).endswith(PRODUCT)
    assert recognised(sum_first("copy c")).endswith(PRODUCT)
    assert recognised(sum_first("full [m, n] _"), dtype="c128").endswith(of_type(PRODUCT, "c128"))


def test_loops_with_a_sum_that_is_scaled() -> None:
    text = recognised(sum_first("full [m, n] _", end="u: f64 = mul s w", value="u"))
    assert "@matmul a b" in text and "loop" not in text and "w in" in text


@pytest.mark.parametrize("way", ["after", "before"])
def test_loops_that_add_a_sum(way: str) -> None:
    if way == "after":
        code = sum_first("copy c", end="o: f64 = c_3[i, j]; u: f64 = add o s", value="u")
    else:
        code = sum_first("copy c", start="o: f64 = c_3[i, j]", from_="o")
    text = recognised(code)
    assert "@matmul a b" in text and "loop" not in text and text.count("map") == 2
    assert text.index("@matmul") < text.index("map") and "c_0 r" in text


def add_each(order: str, init: str = "copy c", result: str = "r") -> str:
    """c[i, j] += a[i, h] * b[h, j], the loops in this order."""
    widths = {"i": "m", "j": "n", "h": "k"}
    lines = [f"c_0: [m][n]f64 = {init}"]
    for depth, index in enumerate(order):
        name = result if depth == 0 else f"d_{depth}"
        lines.append("  " * depth + f"{name}: [m][n]f64 = loop (p_{depth}: [m][n]f64 = "
                     f"{'c_0' if depth == 0 else f'p_{depth - 1}'}) for {index} < {widths[index]} do")  # fmt: skip
    body = """
        o: f64 = p_2[i, j]
        e: f64 = a[i, h]
        f: f64 = b[h, j]
        t: f64 = mul e f
        q: f64 = add o t
        d_3: [m][n]f64 = update p_2[i, j] = q
        in d_3
    """
    lines.append(indent(dedent(body), "      "))
    lines += ["    in d_2", "  in d_1"]
    return "\n".join(lines)


@pytest.mark.parametrize("order", ["".join(p) for p in permutations("ijh")])
def test_loops_that_add_each_product(order: str) -> None:
    text = recognised(add_each(order))
    assert "@matmul a b" in text and "loop" not in text and text.count("map") == 2


def test_adding_to_zeros() -> None:
    assert recognised(add_each("ijh", "full [m, n] 0.0")).endswith(PRODUCT)


def test_loops_of_a_vector() -> None:
    code = r"""
        y_0: [m]f64 = copy y
        r: [m]f64 = loop (p: [m]f64 = y_0) for i < m do
          u: [k]f64 = a[i, :]
          s: f64 = loop (g: f64 = 0.0) for h < k do
            e: f64 = u[h]
            f: f64 = x[h]
            t: f64 = mul e f
            g_1: f64 = add g t
            in g_1
          q: [m]f64 = update p[i] = s
          in q
    """
    assert recognised(code, type="[m]f64").endswith("r: [m]f64 = @matmul a x in r")


# -- what stays


def test_dot_products_stay() -> None:
    stays(r"r: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) x x | reduce add 0.0", type="f64")


@pytest.mark.parametrize("dtype", ["i64", "i32"])
def test_integers_stay(dtype: str) -> None:
    code, _ = WAYS["rows of a and of b transposed"]
    stays(of_type(code, dtype), type=f"[m][n]{dtype}", params=of_type(PARAMS, dtype))


@pytest.mark.parametrize(("m", "k", "n", "found"), [(3, 8, 2, False), (3, 9, 2, True), (3, "k", 2, True)])
def test_small_constant_sizes_stay(m: object, k: object, n: object, found: bool) -> None:
    code, _ = WAYS["rows of a and of b transposed"]
    sizes = {"m": str(m), "k": str(k), "n": str(n)}

    def sized(text: str) -> str:
        text = re.sub(r"\[([mkn])\]", lambda match: f"[{sizes[match[1]]}]", text)
        return re.sub(r"(map|sweep|reduce) ([mkn])\b", lambda match: f"{match[1]} {sizes[match[2]]}", text)

    f = program(sized(code), "r", sized("[m][n]f64"), sized(PARAMS))
    assert ("@matmul" in print_function(recognise_products(f))) == found


def test_products_in_lambdas_stay() -> None:
    code = r"""
        r: [m][m]f64 = map m (\q w_1 ->
          z: [m]f64 = map m (\i u ->
            s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u x | reduce add 0.0
            g: f64 = mul s w_1
            in g) a
          in z) y
    """
    stays(code, type="[m][m]f64")


NONE = {
    "another operator": nest(r"s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce max 0.0", "a", "bt"),
    "another start": nest(r"s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 1.0", "a", "bt"),
    "another product": nest(r"s: f64 = sweep k (\h e f -> t: f64 = sub e f; in t) u v | reduce add 0.0", "a", "bt"),
    "more than a product": nest(
        r"s: f64 = sweep k (\h e f -> t: f64 = mul e f; q: f64 = mul t e; in q) u v | reduce add 0.0", "a", "bt"
    ),
    "something after the sum": nest(
        r"g: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0; s: f64 = sin g", "a", "bt"
    ),
    "a factor that changes": nest(
        r"g: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0; q: f64 = y[i]; s: f64 = mul g q",
        "a",
        "bt",
    ),
    "the same row for all": nest(
        r"s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u x | reduce add 0.0", "a", "bt"
    ),
    "a tested position": nest(
        r"s: f64 = sweep k (\h e -> f: f64 = b[h?, j]; t: f64 = mul e f; in t) u | reduce add 0.0"
    ),
    "a part of a column": nest(
        r"v: [3]f64 = b[0:+3, j]; q: [3]f64 = u[0:+3];"
        r" s: f64 = sweep 3 (\h e f -> t: f64 = mul e f; in t) q v | reduce add 0.0"
    ),
    "another length": nest(
        r"s: f64 = sweep 2 (\h -> e: f64 = a[i, h]; f: f64 = b[h, j]; t: f64 = mul e f; in t) | reduce add 0.0", ""
    ),
    "squares": nest(
        r"s: f64 = sweep k (\h e -> f: f64 = a[i, h]; t: f64 = mul e f; in t) u | reduce add 0.0", "a", "bt"
    ),
    "a check": nest(
        r"""ok: bool = gt w -100.0; check ok ValueError "small"
            s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0""",
        "a",
        "bt",
    ),
    "a start that is not zero": sum_first("copy c", from_="1.0"),
    "the sum starts at another cell": sum_first("copy c", start="o: f64 = c[i, j]", from_="o"),
    "adds to another array": sum_first("copy c", end="o: f64 = c[i, j]; u: f64 = add o s", value="u"),
    "a loop with a wish": add_each("ijh").replace("for i < m do", "for i < m do {store}"),
    "a shorter loop": add_each("ijh").replace("for i < m do", "for i < 2 do"),
    "a tested cell": add_each("ijh").replace("update p_2[i, j]", "update p_2[i?, j]"),
    "the cell is read before the loop": add_each("ijh").replace("o: f64 = p_2[i, j]", "o: f64 = p_1[i, j]"),
    "reads what it writes": add_each("ijh").replace("a[i, h]", "p_2[i, j]"),
    "an older state of what it writes": add_each("ijh").replace("e: f64 = a[i, h]", "e: f64 = p_1[i, j]"),
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_product_stays(name: str) -> None:
    stays(NONE[name])


def test_a_triangle_stays() -> None:
    code = r"""
        r: [m]f64 = loop (p: [m]f64 = y) for i < m do
          s: f64 = loop (g: f64 = 0.0) for h < i do
            e: f64 = a[i, h]
            f: f64 = x[h]
            t: f64 = mul e f
            g_1: f64 = add g t
            in g_1
          q: [m]f64 = update p[i] = s
          in q
    """
    stays(code, type="[m]f64")


def test_what_is_written_is_no_operand() -> None:
    """Each element depends on those written before it."""
    code = r"""
        c_0: [n][n]f64 = copy c
        r: [n][n]f64 = loop (p_0: [n][n]f64 = c_0) for i < n do
          d: [n][n]f64 = loop (p_1: [n][n]f64 = p_0) for j < n do
            z: [n][n]f64 = transpose p_1 [1, 0]
            s: f64 = sweep n (\h -> e: f64 = z[h, i]; f: f64 = b[h, j]; t: f64 = mul e f; in t) | reduce add 0.0
            q: [n][n]f64 = update p_1[i, j] = s
            in q
          in d
    """
    stays(code, type="[n][n]f64", params="b: [n][n]f64, c: [n][n]f64")


def test_an_extra_loop_stays() -> None:
    """It may make no trip, and then the array is not written."""
    inner = indent(sum_first("copy c").partition("\n")[2].replace("r: ", "q: ").replace("= c_0)", "= v)"), "  ")
    code = "c_0: [m][n]f64 = copy c\nr: [m][n]f64 = loop (v: [m][n]f64 = c_0) for g_0 < n do\n" + inner + "\n  in q"
    f = program(code, "r", "[m][n]f64")
    assert "loop" in print_function(recognise_products(f))
    np.testing.assert_allclose(*(evaluate(g, arguments())[0] for g in (f, recognise_products(f))))


def test_a_width_that_is_read_inside_stays() -> None:
    code = r"""
        r: [m][n]f64 = map m (\i u q ->
          z: [q]f64 = map q (\j v -> s: f64 = sweep k (\h e f -> t: f64 = mul e f; in t) u v | reduce add 0.0; in s) bt
          in z) a lengths
    """
    stays(code, params="a: [m][k]f64, bt: [n][k]f64, lengths: [m]i64")
