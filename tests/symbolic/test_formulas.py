"""`tp.symbolic`: formulae that can be run as Python say what the function and its gradient say."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tp

NAMES = {name: getattr(math, name) for name in ("sin", "cos", "exp", "log", "sqrt", "tanh", "floor", "atan2", "pi")}


def evaluated(formula, **values):
    """As Python does it, if the text is not too long for that."""
    found = value_of(formula.expression, values)
    if len(formula.text) < 2000:
        names = {**NAMES, "abs": abs, "sum": sum, "range": range, **values}
        assert eval(formula.text, names) == pytest.approx(found, rel=1e-9, abs=1e-13)
    return found


def value_of(x, values, known=None):
    """Lazily: a side of a choice that is not taken may have no value."""
    known = {} if known is None else known
    if x in known:
        return known[x]

    def of(y):
        return value_of(y, values, known)

    match x.kind, x.parts:
        case "number", (value,):
            found = float(value)
        case "symbol", (name,):
            found = values[name] if name in values else NAMES[name]
        case "sum", (const, terms):
            found = float(const) + sum(float(f) * of(t) for t, f in terms)
        case "product", (pairs,):
            found = math.prod(of(b) ** of(e) for b, e in pairs)
        case "call", ("element", array, *at):
            found = of(array)[tuple(int(of(a)) for a in at)]
        case "call", (name, *args):
            found = {**NAMES, "abs": abs}[name](*map(of, args))
        case "choice", (condition, then, other):
            found = of(then) if of(condition) else of(other)
        case "total", (index, bound, body):
            terms = [{**values, index.parts[0]: k} for k in range(int(of(bound)))]
            found = sum(value_of(body, v) for v in terms)
        case "compare", (op, a, b):
            a, b = of(a), of(b)
            found = {"gt": a > b, ">=": a >= b, "eq": a == b}[op]
        case "logic", (op, a, b):
            found = (of(a) and of(b)) if op == "and" else (of(a) or of(b))
    known[x] = found
    return found


def agrees(f, *args, names, rtol=1e-12):
    found = tp.symbolic(f)(*args)
    values = dict(zip(names, args, strict=True))
    assert evaluated(found.value, **values) == pytest.approx(f(*args), rel=rtol, abs=1e-14)
    floats = [k for k, a in enumerate(args) if isinstance(a, float)]
    slopes = tp.grad(f, argnums=tuple(floats))(*args)
    for k, slope in zip(floats, slopes, strict=True):
        assert evaluated(found.gradient[names[k]], **values) == pytest.approx(slope, rel=rtol, abs=1e-13)
    return found


# -- branches


def same_sides(x, c):
    return x * x if c > 0 else x * x  # noqa: RUF034


def folded(x):
    t = x if x > 0 else -x
    return t * t


def published(x, p, q):
    d = p + q * x
    if d > 0:
        a = math.sqrt(d)
        z = a if a > 50 else d * math.sin(a)
    else:
        z = math.log(1 + math.exp(d))
    return z * (1 + math.exp(d))


def test_choices_that_are_none():
    assert tp.symbolic(same_sides)(1.0, 2.0).value.text == "x**2"
    found = tp.symbolic(folded)(1.0)
    assert (found.value.text, found.gradient["x"].text) == ("x**2", "2 * x")


def test_one_choice_of_two():
    def nested(a, b, c, s, t):
        left = a if t > 0 else b
        right = a if t > 0 else c
        return left if s > 0 else right

    found = tp.symbolic(nested)(1.0, 2.0, 3.0, 1.0, 1.0)
    assert found.value.text == "a if t > 0 else b if s > 0 else c"


@pytest.mark.parametrize("x", [-3.0, -2.0, 0.7])
def test_the_published_example(x):
    """On both sides of its first guard: the root has no value where d is negative."""
    found = agrees(published, x, 1.0, 0.5, names=("x", "p", "q"), rtol=1e-11)
    if x == 0.7:
        assert evaluated(found.value, x=0.7, p=1.0, q=0.5) == pytest.approx(6.0169104254377, abs=1e-13)
        assert evaluated(found.gradient["x"], x=0.7, p=1.0, q=0.5) == pytest.approx(5.1785863880566, abs=1e-13)
        assert "/ (exp" not in found.gradient["x"].text  # no division by 1 + exp(d) is left


def test_ten_branches_stay_ten():
    def chained(x):
        y = x
        for k in range(10):
            y = y * 2.0 if x > k else y + 1.0
        return y

    assert len(tp.symbolic(chained)(1.0).text) < 1500
    agrees(chained, 4.5, names=("x",))


@pytest.mark.parametrize("x", [-1.0, 0.0, 2.0])
def test_corners_are_those_of_gradients(x):
    agrees(lambda x: max(x, 0.0), x, names=("x",))
    agrees(lambda x: abs(x), x, names=("x",))
    agrees(lambda x: min(x, 1.0) * x, x, names=("x",))


# -- loops


def sums(a, x, k):
    s = a
    for _ in range(k):
        s += x
    return s


def affine(p, a, b, n):
    d = p
    for _ in range(n):
        d = a * d + b
    return d


def with_index(p, a, n):
    d = p
    for i in range(n):
        d = a * d + i
    return d


def powers(p, n):
    d = p
    for _ in range(n):
        d = 3 * d**2
    return d


def two_after_another(x, y, n):
    for _ in range(n):
        x = x + 1.5
        y = y + x
    return y


def invariant_branch(p, c, n):
    for _ in range(n):
        p = 2.0 * p if c > 0 else p + c
    return p


LOOPS = [
    (sums, (1.0, 2.0), "axk"), (affine, (1.5, 0.9, 0.3), "pabn"), (with_index, (1.0, 0.8), "pan"), (powers, (0.4,), "pn"),
    (two_after_another, (1.0, 2.0), "xyn"), (invariant_branch, (1.0, 0.3), "pcn"), (invariant_branch, (1.0, -0.3), "pcn"),
]  # fmt: skip


@pytest.mark.parametrize("case, n", list(itertools.product(LOOPS, [0, 1, 2, 5])))
def test_closed_forms(case, n):
    f, args, names = case
    agrees(f, *args, n, names=tuple(names), rtol=1e-10)


def test_closed_forms_as_text(golden):
    golden("\n\n".join(tp.symbolic(f)(*args, 100).text for f, args, _ in LOOPS[:6]), "closed_forms")


def test_the_printed_forms_are_wrong():
    """The corrected C9: 3**7 * 2**8, not 3**4 * 2**8."""
    assert evaluated(tp.symbolic(powers)(2.0, 3).value, p=2.0, n=3) == 559872


def test_arrays_at_known_places():
    def length(x):
        s = 0.0
        for i in range(3):
            s += i * x[i] ** 2
        return np.sqrt(s)

    found = tp.symbolic(length)(np.ones(3))
    assert found.value.text == "sqrt(x[1]**2 + 2 * x[2]**2)"
    assert found.gradient["x[2]"].text == "2 * x[2] / sqrt(x[1]**2 + 2 * x[2]**2)"


def test_horner():
    def horner(x, c, n):
        d = 0.0
        for i in range(n):
            d = d * x + c[i]
        return d

    found = tp.symbolic(horner)(0.5, np.ones(4), 4)
    assert found.value.text == "sum(x**j * c[n - j - 1] for j in range(n))"
    c = np.array([1.0, 2.0, 3.0, 4.0])
    assert evaluated(found.gradient["x"], x=0.5, c=c, n=4) == tp.grad(horner)(0.5, c, 4)
    assert "dhorner/dc is not written out" in found.text


def test_names_of_the_user_are_not_counted_with():
    def affine_in_j(p, j, n):
        for _ in range(n):
            p = j * p + 1.0
        return p

    def nested(x, i, n):
        s = 0.0
        for r in range(n):
            t = 0.0
            for _ in range(n):
                t = 0.5 * t + r * i
            s = x * s + t
        return s

    for n in (0, 1, 4):
        agrees(affine_in_j, 1.0, 0.5, n, names=("p", "j", "n"), rtol=1e-10)
        agrees(nested, 0.3, 0.5, n, names=("x", "i", "n"), rtol=1e-10)


def test_cells_that_may_be_one():
    """Of three cells, 2 and -1 are the same; and x[i] may be x[0]."""

    def ends(x):
        return x[-1] * x[2] + x[0]

    def summed(x, n):
        s = x[0]
        for i in range(n):
            s = s + x[i]
        return s

    for f, args in ((ends, (np.ones(3),)), (summed, (np.ones(3), 100))):
        found = tp.symbolic(f)(*args)
        assert found.left_out == ("x",) and found.gradient == {}


# -- what is not one


def no_end(x, n):
    for _ in range(n):
        x = math.sin(x)
    return x


def whole(x):
    return np.sum(x * x)


def until(x):
    while x > 1.0:
        x *= 0.5
    return x


@pytest.mark.parametrize("f, args, reason", [
    (no_end, (1.0, 100), "no closed form for 'x'"), (whole, (np.ones(3),), "whole arrays"), (until, (3.0,), "while loop"),
    (lambda x, n: x * (n & 3), (1.0, 5), "integers"), (lambda x: (x * 2j).imag, (1.0,), "complex"),
])  # fmt: skip
def test_no_formula(f, args, reason):
    with pytest.raises(tp.CompileError, match=reason) as caught:
        tp.symbolic(f)(*args)
    assert caught.value.code == "TP308" and caught.value.line > 0


def test_too_long():
    def chain(x):
        for _ in range(60):
            for _ in range(50):
                x = math.sin(x) * x
        return x

    with pytest.raises(tp.CompileError, match="too long"):
        tp.symbolic(chain)(0.5)


def test_several_results():
    with pytest.raises(tp.CompileError, match="one number"):
        tp.symbolic(lambda x: (x, x))(1.0)


# -- how it is written


def test_text_and_latex(golden):
    found = tp.symbolic(published)(0.7, 1.0, 0.5)
    golden(f"{found}\n\n{found.latex}", "published_example")


def test_sympy():
    sympy = pytest.importorskip("sympy")
    value, slopes = tp.symbolic(published)(0.7, 1.0, 0.5).sympy
    x, p, q = sympy.symbols("x p q", real=True)
    at = {x: 0.7, p: 1.0, q: 0.5}
    assert float(value.subs(at)) == pytest.approx(6.0169104254377, abs=1e-12)
    assert float(slopes["x"].subs(at)) == pytest.approx(float(sympy.diff(value, x).subs(at)), abs=1e-12)


# -- generated

LEAVES = ("x", "y", "2.0", "0.5", "1.25")


def expressions(depth):
    if depth == 0:
        return st.sampled_from(LEAVES)
    inner = expressions(depth - 1)
    return st.one_of(
        inner,
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(st.sampled_from(["math.sin", "math.tanh", "abs"]), inner).map(lambda p: f"{p[0]}({p[1]})"),
        inner.map(lambda x: f"({x}) / (2.0 + ({x}) ** 2)"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} > 0.3 else {p[2]})"),
        inner.map(lambda x: f"max({x}, 0.25)"),
    )


@pytest.mark.thorough
@settings(max_examples=60)
@given(expressions(3), st.floats(-2, 2), st.floats(-2, 2))
def test_generated(tmp_path_factory, text, x, y):
    path = tmp_path_factory.mktemp("formulas") / "f.py"
    path.write_text(f"import math\n\n\ndef f(x, y):\n    return 1.0 * x * 0.0 + {text}\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    agrees(names["f"], x, y, names=("x", "y"), rtol=1e-9)
