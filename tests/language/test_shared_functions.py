"""Large functions that are called more than once: what is shared, what is not, and that it makes no difference to results.

With the fixture `shared`, all functions count as large, and calls stay calls to the end.
"""

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir import calls
from tapeless.ir.core import Call
from tapeless.ir.walk import all_stms
from tapeless.testing.stages import outcomes
from tests.language.same import raises, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([0.3, -0.7, 1.1, 0.4])
SCALES = np.linspace(0.5, 65.5, 66)  # sizes of short arrays are constants, and a Hessian then is nothing but zeros
HISTORY = np.zeros(3)


@pytest.fixture(autouse=True)
def shared(monkeypatch, compiled_anew):
    monkeypatch.setattr(calls, "SMALL", 0)
    monkeypatch.setattr(calls, "BUDGET", 0)


def calls_in(f, *args):
    core = tp.function(f, cache=False).compiled(*args).optimized
    return [s.exp.function for g in (*core.calls, core) for s in all_stms(g.body) if isinstance(s.exp, Call)]


def agree(f, *args):
    """Python, both interpreters and native code on one and two threads."""
    results = dict(outcomes(f, lambda: [a.copy() if isinstance(a, np.ndarray) else a for a in args]))
    expected = results.pop("python")
    for name, found in results.items():
        assert found.result == pytest.approx(expected.result, rel=1e-12), name


# -- functions of all kinds


def wave(v, w):
    u = np.sin(v * w)
    total = 0.0
    for i in range(len(v)):
        total += u[i] * u[i]
    return u, total


def waves(x):
    a, s = wave(x, 1.0 * len(x))
    a, s = wave(a, s)
    a, s = wave(a, s)
    a, s = wave(a, s)
    return a.sum() * s


def number(x):
    y = np.exp(-x * x)
    return y * np.cos(3 * x) if y > 0.5 else x


def numbers(x):
    return number(number(number(number(x)))) + number(2 * x)


def in_loops(x, n):
    total = 0.0
    for i in range(n):
        x, s = wave(x, 0.5)
        x, t = wave(x, 0.5)
        x, t = wave(x, 0.5)
        total += s * t
    while total > 1.0:
        total = number(total) * 0.5 + 0.1 * number(total)
    return total + x.sum()


def in_parallel(x):
    def step(e):
        return number(e) + number(e + 1.0) + number(e - 1.0)

    out = np.empty_like(x)
    for i in tp.prange(len(x)):
        out[i] = number(x[i]) * number(0.5 * x[i])
    return np.sum(tp.map(step, x) * out)


def inner(p, k):
    return {"sum": p["a"] * p["b"][k], "rows": (p["b"] + p["a"], k)}


def containers(x):
    first = inner({"a": 2.0 * x[0], "b": x}, 1)
    second = inner({"a": first["sum"], "b": first["rows"][0]}, 1)
    third = inner({"a": second["sum"], "b": second["rows"][0]}, 1)
    fourth = inner({"a": third["sum"], "b": x[::-1]}, 1)
    return np.sum(third["rows"][0] * fourth["rows"][0]) * fourth["sum"] + third["rows"][1]


def scaled(x):
    return x * SCALES[0] + SCALES[1] * x.sum()


def captured(x):
    return scaled(scaled(scaled(scaled(x)))).sum()


def deepest(x):
    return wave(x, 0.3)[0] + wave(x, 0.4)[0] + wave(x, 0.3)[0]


def deeper(x):
    return deepest(deepest(deepest(x)))


def deep(x):
    return deeper(deeper(deeper(x))).sum()


PROGRAMS = {
    "arrays": (waves, X),
    "numbers": (numbers, 0.4),
    "loops": (in_loops, X, 3),
    "parallel": (in_parallel, X),
    "containers": (containers, X),
    "captured": (captured, X),
    "in each other": (deep, X),
}
every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


@every_program
def test_results(program):
    f, *args = program
    assert calls_in(f, *args)
    agree(f, *args)


DERIVATIVES = {
    "grad": tp.grad,
    "jacfwd": tp.jacfwd,
    "hessian": tp.hessian,
    "of forward": lambda f: tp.grad(lambda x: tp.jvp(f, (x,), (x,))[1]),
}


@pytest.mark.thorough
@pytest.mark.sampled(10)
@every_program
@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_derivatives(program, derivative, monkeypatch):
    f, x, *rest = program
    found = derivative(lambda x: f(x, *rest))(x)
    assert f is numbers or calls_in(derivative(lambda x: f(x, *rest)).python, x)  # all patterns occur once there
    monkeypatch.setattr(calls, "SMALL", 10**9)
    expected = derivative(lambda x: f(x, *rest))(x)
    assert not calls_in(derivative(lambda x: f(x, *rest)).python, x)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_functions_are_compiled_once():
    assert len(calls_in(deep, X)) < 20
    assert set(calls_in(deep, X)) == {"deeper", "deepest", "wave"}  # that with 0.4 is called once in each


# -- what is not shared


def doubled_in_place(v, w):
    v[:] = v * w
    return v.sum()


def written(x):
    return doubled_in_place(x, 2.0) + doubled_in_place(x, 2.0) + doubled_in_place(x, 2.0)


def itself(v):
    s = v.sum() * 2.0
    return v, s


def given_back(x):
    y, s = itself(x)
    z, t = itself(y)
    u, r = itself(z)
    u[0] = s + t + r
    return x


def remembered(v):
    HISTORY[0] += v.sum()
    return HISTORY[0]


def chosen(v, k):
    return v[v > k]


def head(v, k):
    return v[:k] * 2.0


def of_own_size(x):
    return head(x, 2).sum() + head(x, 2).sum() + head(x, len(x) - 1).sum() + head(x, len(x) - 2).sum()


def test_functions_that_write_their_arguments():
    assert not calls_in(written, X.copy())
    same(written, X.copy())


def test_functions_that_give_their_arguments_back():
    assert not calls_in(given_back, X.copy())
    same(given_back, X.copy())


def test_functions_that_write_arrays_of_outside():
    def f(x):
        return remembered(x) + remembered(x) + remembered(x)

    HISTORY[0] = 0.0
    expected = f(X)
    HISTORY[0] = 0.0
    assert tp.function(f, cache=False)(X) == expected


def test_arrays_of_outside_that_are_written_between_calls():
    def f(x):
        SCALES[0] = 0.25
        a = scaled(scaled(x))
        SCALES[0] = 0.75
        return scaled(scaled(a)) + scaled(a)

    expected = f(X)
    np.testing.assert_allclose(tp.function(f, cache=False)(X), expected, rtol=1e-14)
    SCALES[0] = 0.5


def test_results_of_a_size_that_only_the_function_knows():
    same(of_own_size, X)


def test_views_and_the_same_array_twice():
    def product(a, b):
        return a * b + 1.0

    def f(x):
        return product(x, x) + product(x[::-1], x) + product(x, x[::-1]) + product(x * 2, x * 3) + product(x * 4, x)

    same(f, X)


def rotated(a, b):
    for _ in range(3):
        a, b = b, a
        a[0] += 1.0
    return a.sum() * b[0]


def twins(v):
    w = v * 2.0
    return w, w


def test_arrays_that_are_exchanged_and_written():
    def f(x):
        return rotated(x, 2.0 * x) + rotated(x, 3.0 * x) + rotated(x, 4.0 * x)

    same(f, X.copy())


def test_results_that_are_one_array():
    def f(x):
        a, b = twins(x)
        a, b = twins(a)
        a, b = twins(a)
        a, b = twins(a)
        a[0] = 7.0
        return b[0]

    assert calls_in(f, X)
    same(f, X)


def test_functions_without_a_complex_derivative():
    def g(z):
        return z * np.conj(z) + z

    def f(z):
        return g(g(g(g(z))))

    assert calls_in(f, 0.3 + 0.2j)
    with pytest.raises(tp.CompileError, match="conj"):
        tp.jacfwd(f)(0.3 + 0.2j)


# -- errors, output, options


def positive(v, w):
    assert w > 0, "w must be positive"
    return np.log(w) * v


def test_errors_name_the_line_of_the_function():
    def f(x, w):
        a = positive(x, 2.0 * w)
        b = positive(x, 2.0 + w)
        return positive(a + b, w)

    raises(AssertionError, f, X, -1.5)
    g = tp.function(f, cache=False)
    with pytest.raises(AssertionError, match=r"w must be positive.*test_shared_functions.py:\d+"):
        g(X, -1.5)
    with pytest.raises(AssertionError, match="w must be positive"):
        tp.grad(lambda x, w: f(x, w).sum())(X, -0.5)


def test_output_comes_once(capfd):
    def told(v):
        print("here", v)
        return v * v

    def f(x):
        y = told(x)
        for _ in range(2):
            y = told(y) + told(y)
        return y

    tp.grad(f)(1.5)
    assert capfd.readouterr().out.count("here") == 5


@pytest.mark.thorough
def test_a_budget_is_for_all_loops_together():
    f = PROGRAMS["loops"][0]
    plain, small = tp.grad(f)(X, 4), tp.grad(f, memory="64kB")(X, 4)
    np.testing.assert_allclose(small, plain, rtol=1e-12)


@tp.custom_vjp
def clipped(x):
    return number(x) * 2.0


clipped.defvjp(lambda x: (clipped(x), x), lambda x, adj: (np.minimum(adj, 1.0) * np.cos(x),))


def test_rules_inside():
    def g(x):
        return clipped(x) * number(x)

    def f(x):
        return g(g(g(x))) + clipped(x)

    slope = lambda x: np.cos(x)
    x = 0.3

    def by_hand(x):
        """Reverse mode, with the rule written out."""
        values = [x]
        for _ in range(3):
            values.append(2 * number(values[-1]) * number(values[-1]))
        adj = 1.0
        for v in reversed(values[:-1]):
            small = 1e-6
            other = (number(v + small) - number(v - small)) / (2 * small)
            adj = min(adj * number(v), 1.0) * slope(v) + adj * 2 * number(v) * other
        return adj + slope(x)

    assert tp.grad(f)(x) == pytest.approx(by_hand(x), rel=1e-7)


def test_a_chain_of_calls_is_compiled_in_linear_time(tmp_path, monkeypatch):
    """14 functions that call the next one twice: 16,384 copies of the last one."""
    monkeypatch.undo()
    lines = ["def f0(x):", "    return 0.5 * x + 0.1 * x * x - x * x * x"]
    for k in range(1, 15):
        lines += [f"def f{k}(x):", f"    return f{k - 1}(x) * 0.5 + f{k - 1}(0.3 * x)"]
    path = tmp_path / "chain.py"
    path.write_text("\n".join(lines))
    names: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    f = names["f14"]
    g = tp.function(f, cache=False)
    assert g(0.2) == pytest.approx(f(0.2), rel=1e-12)
    assert len(calls_in(f, 0.2)) < 40
    assert tp.grad(f)(0.2) == pytest.approx((f(0.2 + 1e-6) - f(0.2 - 1e-6)) / 2e-6, rel=1e-6)
