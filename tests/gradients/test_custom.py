"""Functions with derivatives of their own: tp.custom_vjp and tp.custom_jvp, in all modes and nestings."""

import numpy as np
import pytest

import tapeless as tp

X = np.array([0.7, 1.3, 2.1])


def bisected(a):
    low, high = 0.0, 10.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if middle * middle > a:
            high = middle
        else:
            low = middle
    return low


@tp.custom_vjp
def root(a):
    return bisected(a)


def root_fwd(a):
    x = root(a)
    return x, x


root.defvjp(root_fwd, lambda x, adj: (adj / (2 * x),))


@tp.custom_jvp
def pushed_root(a):
    return bisected(a)


@pushed_root.defjvp
def pushed_root_rule(primals, tangents):
    x = pushed_root(primals[0])
    return x, tangents[0] / (2 * x)


ROOTS = pytest.mark.parametrize("root", [root, pushed_root], ids=["vjp", "jvp"])


@ROOTS
def test_every_mode(root):
    assert root(4.0) == pytest.approx(2.0)
    assert tp.grad(root)(4.0) == pytest.approx(0.25)
    assert tp.jvp(root, (4.0,), (2.0,))[1] == pytest.approx(0.5)
    assert tp.jacfwd(root)(4.0) == pytest.approx(0.25)
    assert tp.jacrev(root)(4.0) == pytest.approx(0.25)


@ROOTS
@pytest.mark.parametrize("outer", [tp.grad, tp.jacfwd], ids=["reverse", "forward"])
@pytest.mark.parametrize("inner", [tp.grad, tp.jacfwd], ids=["reverse", "forward"])
def test_rules_that_call_their_function_serve_higher_derivatives(root, outer, inner):
    assert outer(inner(root))(4.0) == pytest.approx(-(4.0**-1.5) / 4)
    assert outer(outer(inner(root)))(4.0) == pytest.approx(3 * 4.0**-2.5 / 8)


@ROOTS
def test_in_maps_loops_and_branches(root):
    def mapped(x):
        return np.sum(tp.map(root, x) * x)

    def looped(x):
        s = 0.0
        for i in range(len(x)):
            if x[i] > 1.0:
                s += root(x[i] + s)
        return s

    def vectorised(x):
        return tp.map(lambda v: root(v) * v, x)

    np.testing.assert_allclose(tp.grad(mapped)(X), 1.5 * np.sqrt(X), rtol=1e-9)
    tp.check_grads(looped, (X,))
    for jacobian in (tp.jacfwd, tp.jacrev):
        np.testing.assert_allclose(jacobian(vectorised)(X), np.diag(1.5 * np.sqrt(X)), rtol=1e-9)
    np.testing.assert_allclose(tp.hessian(mapped)(X), np.diag(0.75 / np.sqrt(X)), rtol=1e-8)


def test_inside_a_compiled_loop():
    @tp.function
    def newton(a):
        for _ in range(20):
            a = a - (root(a) - 3.0) / tp.grad(root)(a)
        return a

    assert newton(4.0) == pytest.approx(9.0)
    assert tp.grad(newton)(4.0) == pytest.approx(0.0, abs=1e-6)


def test_a_rule_that_is_not_the_derivative_is_used():
    @tp.custom_vjp
    def rounded(x):
        return np.round(x)

    rounded.defvjp(lambda x: (np.round(x), None), lambda _, adj: (adj,))
    np.testing.assert_array_equal(tp.grad(lambda x: np.sum(rounded(x) * X))(X * 2), X)
    np.testing.assert_array_equal(tp.jacfwd(lambda x: np.sum(rounded(x) * X))(X * 2), X)


def test_containers_constants_and_none():
    @tp.custom_vjp
    def scaled(params, x, unused):
        return {"y": params["w"] * x, "count": 3}, params["b"] + np.sum(x)

    def fwd(params, x, unused):
        return scaled(params, x, unused), (params["w"], x)

    def bwd(kept, adjs):
        w, x = kept
        ys, b = adjs
        return {"w": np.sum(ys["y"] * x), "b": b}, ys["y"] * w + b, None

    scaled.defvjp(fwd, bwd)

    def loss(params, x, unused):
        out, total = scaled(params, x, unused)
        return np.sum(out["y"] ** 2) * total + out["count"] * unused

    def plain(params, x, unused):
        return np.sum((params["w"] * x) ** 2) * (params["b"] + np.sum(x)) + 3 * unused

    args = {"w": 0.4, "b": -0.3}, X, 1.5
    for mine, theirs in zip(tp.grad(loss, argnums=(0, 1))(*args), tp.grad(plain, argnums=(0, 1))(*args), strict=True):
        for a, b in zip(mine.values() if isinstance(mine, dict) else [mine],
                        theirs.values() if isinstance(theirs, dict) else [theirs], strict=True):  # fmt: skip
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert tp.grad(loss, argnums=2)(*args) == 3.0
    np.testing.assert_allclose(tp.hessian(loss, argnums=1)(*args), tp.hessian(plain, argnums=1)(*args), rtol=1e-10)


def test_arguments_without_derivatives():
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y *= x
        return y

    made = tp.custom_vjp(power, nondiff_argnums=(1,))
    made.defvjp(lambda x, n: (made(x, n), x), lambda n, x, adj: (adj * n * made(x, n - 1),))
    assert tp.grad(made)(1.5, 4) == pytest.approx(4 * 1.5**3)
    fourth = lambda y: made(y, 4)
    assert tp.grad(tp.grad(fourth))(1.5) == pytest.approx(12 * 1.5**2)
    assert tp.hessian(fourth)(1.5) == pytest.approx(12 * 1.5**2)
    assert tp.grad(tp.grad(tp.grad(fourth)))(1.5) == pytest.approx(24 * 1.5)
    with pytest.raises(tp.CompileError, match="TP303.*no derivatives this high"):
        tp.grad(tp.grad(tp.grad(tp.grad(fourth))))(1.5)


def test_values_of_outside():
    def of(c):
        @tp.custom_vjp
        def times(x):
            return c * x

        times.defvjp(lambda x: (times(x), None), lambda _, adj: (adj * c,))
        return times

    times = of(3.0)
    assert tp.grad(lambda x: times(x) ** 2)(2.0) == pytest.approx(36.0)
    assert tp.grad(tp.grad(lambda x: times(x) ** 2))(2.0) == pytest.approx(18.0)


# -- rules that do not fit


def test_without_a_rule():
    @tp.custom_vjp
    def bare(x):
        return x * x

    assert bare(3.0) == 9.0
    assert tp.function(lambda x: bare(x) + 1.0)(3.0) == 10.0
    with pytest.raises(tp.CompileError, match=r"TP306.*'bare' has no rule yet\n(.*\n)*.*defvjp"):
        tp.grad(lambda x: bare(x))(3.0)


def test_functions_that_write_their_arguments_are_refused():
    @tp.custom_vjp
    def writes(a):
        a[0] = 10.0
        return np.sum(a)

    writes.defvjp(lambda a: (np.sum(a), None), lambda _, adj: (adj * np.ones(3),))
    with pytest.raises(tp.CompileError, match="TP306.*'writes' writes an array that it did not make"):
        tp.grad(lambda a: writes(a) + a[0])(X)


def test_rules_that_are_not_linear_serve_one_mode():
    @tp.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda _, adj: (np.clip(adj, -1.0, 1.0),))
    assert tp.grad(lambda x: 5.0 * clipped(x))(2.0) == 1.0
    with pytest.raises(tp.CompileError, match="TP303.*custom_vjp is not linear in its adjoints"):
        tp.jacfwd(lambda x: 5.0 * clipped(x))(2.0)

    @tp.custom_jvp
    def squashed(x):
        return x * 1.0

    squashed.defjvp(lambda p, t: (p[0] * 1.0, np.tanh(t[0])))
    assert tp.jvp(squashed, (1.0,), (3.0,))[1] == pytest.approx(np.tanh(3.0))
    with pytest.raises(tp.CompileError, match="TP303.*custom_jvp is not linear in its tangents"):
        tp.grad(squashed)(1.0)


@pytest.mark.parametrize(
    ("fwd", "bwd", "message"),
    [
        (lambda x: x, lambda kept, adj: (adj,), "returns a pair"),
        (lambda x: (x, None), lambda kept, adj: (adj, adj), "a tuple of 1 adjoint"),
        (lambda x: (x, None), lambda kept, adj: (np.ones(2) * adj,), "TP304.*shape"),
    ],
    ids=["forward", "count", "shape"],
)
def test_rules_of_other_shapes(fwd, bwd, message):
    made = tp.custom_vjp(lambda x: x * 1.0)
    made.defvjp(fwd, bwd)
    with pytest.raises(tp.CompileError, match=message):
        tp.grad(lambda x: made(x))(2.0)
