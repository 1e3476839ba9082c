"""Rules of `tp.custom_vjp` and `tp.custom_jvp` that do not fit their function are refused, at the rule."""

import numpy as np
import pytest

import tapeless as tp

X = np.array([1.0, 2.0, 3.0])


def square(x):
    return x * x


def with_vjp(fwd, bwd=lambda x, g: (2 * x * g,), function=square):
    made = tp.custom_vjp(function)
    made.defvjp(fwd, bwd)
    return made


def with_jvp(rule, function=square):
    made = tp.custom_jvp(function)
    made.defjvp(rule)
    return made


def good(x):
    return x * x, x


WRONG = [
    (with_vjp(lambda x: (np.sum(x), x)), "result of the forward rule of 'square' is a float64 where the value is a 1-dim"),
    (with_vjp(lambda x: (x[1:] * x[1:], x)), "result of the forward rule of 'square' has size 2 where the value has 3"),
    (with_vjp(lambda x: (np.outer(x, x), x)), "is a 2-dimensional array"),
    (with_vjp(lambda x: ((x, x), x)), "is a tuple of 2"),
    (with_vjp(lambda x: ((x * x).astype(np.float32), x)), "array of float32 where"),
    (with_vjp(lambda x: (x * x * 1j, x)), "array of complex128 where"),
    (with_vjp(lambda x: (x.astype(np.int64), x)), "array of int64 where"),
    (with_vjp(lambda x: (None, x)), "is None where"),
    (with_vjp(lambda x: x), "the forward rule of 'square' returns a 1-dimensional array"),
    (with_vjp(good, lambda x, g: (np.sum(g),)), "backward rule of 'square' returns has 0 dimensions where the value has 1"),
    (with_vjp(good, lambda x, g: (g[1:],)), "backward rule of 'square' returns has size 2 where the value has 3"),
    (with_vjp(good, lambda x, g: (g, g)), "the backward rule of 'square' returns a tuple of 2"),
    (with_vjp(good, lambda x, g: g), "the backward rule of 'square' returns a 1-dimensional array"),
    (with_vjp(good, lambda x, g: (g * 1j,)), "is complex, the value is real"),
    (with_jvp(lambda p, t: (np.sum(p[0]), 2 * p[0] * t[0])), "result of the rule of 'square' is a float64 where"),
    (with_jvp(lambda p, t: (p[0][1:], 2 * p[0] * t[0])), "result of the rule of 'square' has size 2"),
    (with_jvp(lambda p, t: ((p[0], p[0]), 2 * p[0] * t[0])), "is a tuple of 2 where"),
    (with_jvp(lambda p, t: (p[0].astype(np.float32), t[0])), "array of float32 where"),
    (with_jvp(lambda p, t: (p[0] * p[0], np.sum(t[0]))), "the rule of 'square' returns has 0 dimensions"),
    (with_jvp(lambda p, t: (p[0] * p[0], t[0][1:])), "the rule of 'square' returns has size 2"),
    (with_jvp(lambda p, t: p[0]), "the rule of 'square' returns a 1-dimensional array"),
]  # fmt: skip


@pytest.mark.parametrize("rule, says", WRONG, ids=[says for _, says in WRONG])
def test_w16_a_rule_that_does_not_fit_is_refused(rule, says):
    for run in (lambda: tp.vjp(rule, X)[1](X), lambda: tp.grad(lambda x: np.sum(np.sin(rule(x))))(X)):
        with pytest.raises((tp.CompileError, tp.ShapeError), match=says) as caught:
            run()
        assert caught.value.code in ("TP306", "TP304", "TP201")
        assert caught.value.file == __file__ and "lambda" in str(caught.value)


def test_w16_numbers_must_stay_numbers():
    for fwd, says in ((lambda x: (np.array([x, x]), x), "1-dimensional"), (lambda x: (1, x), "an int where")):
        with pytest.raises(tp.CompileError, match=says):
            tp.grad(with_vjp(fwd))(1.0)


def tail(x):
    return x[1:] ** 2


def tail_adjoint(x, g):
    found = np.zeros(len(x))
    found[1:] = 2 * x[1:] * g
    return (found,)


def test_w16_sizes_that_the_function_works_out():
    right = with_vjp(lambda x: (x[1:] * x[1:], x), tail_adjoint, tail)
    np.testing.assert_array_equal(
        tp.grad(lambda x: np.sum(np.sin(right(x))))(X), [0.0, *2 * X[1:] * np.cos(X[1:] ** 2)]
    )
    np.testing.assert_array_equal(tp.vjp(right, X)[1](X[1:])[0], [0.0, 8.0, 18.0])
    tangent = with_jvp(lambda p, t: (p[0][1:] ** 2, 2 * p[0][1:] * t[0][1:]), tail)
    np.testing.assert_array_equal(tp.jvp(tangent, (X,), (X,))[1], 2 * X[1:] ** 2)
    wrong = with_vjp(lambda x: (x[2:] * x[2:], x), tail_adjoint, tail)
    with pytest.raises(tp.ShapeError, match="size 1 where the value has 2"):
        tp.grad(lambda x: np.sum(wrong(x)))(X)
