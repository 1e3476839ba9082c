"""`tp.inverse` of ordinary functions: what the solver finds, and what it says where it does not."""

import math

import numpy as np
import pytest

import tapeless as tp

Q, P = np.linspace(0.1, 1.3, 6), np.linspace(-0.2, 0.3, 6)
K = np.random.default_rng(3).normal(size=(6, 6))


def affine(x, a):
    return 3.0 * x + a


def growth(x):
    return math.log(1.0 + math.exp(2.0 * x - 1.0))


def rolled(q, p, h, n):
    for _ in range(n):
        p += h * np.sin(np.roll(q, 1) - q)
        q += h * p
    return q, p


def coupled(q, p, k, n):
    for _ in range(n):
        p = p - 0.1 * (k @ q)
        q = q + 0.1 * p / np.sqrt(1.0 + np.sum(p * p))
    return q, p


def pairwise(q):
    d = q[:, None] - q[None, :]
    return np.sum(d / (1.0 + d * d), axis=1)


def bodies(q, p, n):
    for _ in range(n):
        p = p + 0.1 * pairwise(q)
        q = q + 0.1 * p
    return q, p


def coupling(x, y):
    y = y * np.exp(np.tanh(x)) + np.sin(x)
    x = x + y**2
    return x, y


def generator(s):
    return 6364136223846793005 * s + 1442695040888963407


def turned(x):
    return x[::-1].reshape(2, 3).T


def branching(x, y):
    if y > 0.0:
        x = x * 2.0
    else:
        x = x - y
    return x, y


CASES = [
    (affine, (2.0, 5.0), 1),
    (growth, (0.3,), 1),
    (rolled, (Q, P, 0.1, 20), 2),
    (coupled, (Q, P, K, 10), 2),
    (bodies, (Q, P, 10), 2),
    (coupling, (Q, P), 2),
    (branching, (1.5, 0.5), 2),
    (branching, (1.5, -0.5), 2),
]


def copied(values):
    return tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)


@pytest.mark.parametrize("f, args, count", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_found(f, args, count):
    found = tp.function(f)(*copied(args))
    results = found if isinstance(found, tuple) else (found,)
    back = tp.inverse(f)(*copied(results), *args[count:])
    back = back if isinstance(found, tuple) else (back,)
    for a, b in zip(back, args[:count], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_integers_exactly():
    f, back = tp.function(generator), tp.inverse(generator)
    x = 12345
    for _ in range(10):
        x = f(x)
    for _ in range(10):
        x = back(x)
    assert x == 12345


def in_place(q, p, h):
    p += h * np.cos(q)
    q -= h * p


def test_in_place():
    q, p = Q.copy(), P.copy()
    tp.function(in_place)(q, p, 0.2)
    assert tp.inverse(in_place)(q, p, 0.2) is None
    np.testing.assert_allclose((q, p), (Q, P), atol=1e-15)


def test_in_compiled_code():
    @tp.function
    def there_and_back(x, a):
        return tp.inverse(affine)(affine(x, a), a)

    assert there_and_back(2.0, 5.0) == 2.0


def test_gradient_of_an_inverse():
    assert tp.grad(lambda y: tp.inverse(growth)(y))(growth(0.3)) == pytest.approx(1.0 / tp.grad(growth)(0.3))


def test_reversible_functions_have_theirs():
    @tp.reversible
    def f(x, y):
        x += np.sin(y)

    assert tp.inverse(f) is ~f


def squared(x):
    return x * x


def summed(x):
    return x - np.sum(x)


def forgotten(x, y):
    return x + y, 2.0 * (x + y)


def decided_by_itself(x):
    if x > 0.0:
        x = 2.0 * x
    return x


def until_large(x):
    while x < 10.0:
        x = 2.0 * x
    return x


@pytest.mark.parametrize(
    "f, args, line, reason",
    [
        (squared, (4.0,), "return x * x", "cannot be found"),
        (summed, (Q,), "return x - np.sum(x)", ""),
        (forgotten, (1.0, 2.0), "", ""),
        (decided_by_itself, (1.0,), "if x > 0.0:", "which branch was taken"),
        (until_large, (1.0,), "while x < 10.0:", "how often the loop went around"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_not_found(f, args, line, reason):
    with pytest.raises(tp.InvertibilityError) as caught:
        tp.inverse(f)(*args)
    assert "TP407" in str(caught.value)
    assert line in str(caught.value)
    assert reason in str(caught.value)


# -- there and back


def scaled(x, c):
    return x * c


def summed_up(x, n):
    for i in range(n):
        x = x * i + 1
    return x


def exponential(x):
    return math.exp(x)


def asserted(x, c):
    assert c > 0
    return x * c


@pytest.mark.parametrize(
    ("f", "args"), [(scaled, (1.0, 0.0)), (scaled, (0.0, 0.0)), (summed_up, (4.0, 3)), (exponential, (-1.0,))]
)
def test_what_is_no_value_of_the_function_has_no_inverse(f, args):
    with pytest.raises(tp.InvertibilityError, match="there is no such argument"):
        tp.inverse(f)(*args)


def logarithm(x):
    return math.log(x)


def logarithms(x):
    return np.log(x)


def tiny(x):
    return x * 1e-300


def moved(x, y):
    return x + y


@pytest.mark.parametrize(
    ("f", "args"),
    [(logarithm, (800.0,)), (logarithms, (np.array([1.0, 800.0]),)), (tiny, (1e10,)), (moved, (1e308, -1e308))],
)
def test_what_is_out_of_range_is_no_inverse(f, args):
    with pytest.raises(tp.InvertibilityError, match="there is no such argument: the function gives inf"):
        tp.inverse(f)(*args)
    assert tp.inverse(logarithm)(math.inf) == math.inf


def test_reasons_name_no_temporary_values():
    with pytest.raises(tp.InvertibilityError, match="what it is made of cannot be found from one value"):
        tp.inverse(lambda x: x**3)(8.0)


def test_the_tests_of_a_function_hold_for_what_is_found():
    assert tp.inverse(asserted)(1.5, 2.0) == 0.75
    with pytest.raises(AssertionError):
        tp.inverse(asserted)(1.5, -1.0)
    assert tp.grad(lambda y: tp.inverse(exponential)(y))(2.0) == 0.5


def logged(x, *, log):
    log[0] += 1
    return x * 2


def less(x, c):
    return x - c


def grown(x):
    return np.exp(x)


def test_going_there_again_leaves_no_trace():
    log = np.zeros(1)
    assert tp.inverse(logged)(4.0, log=log) == 2.0 and log[0] == 0.0


def test_rounding_is_no_reason_to_refuse():
    assert tp.inverse(less)(0.1, 1e12) == 1e12 + 0.1
    assert tp.inverse(less)(np.float32(0.1), np.float32(1e4)) == np.float32(1e4) + np.float32(0.1)
    np.testing.assert_array_equal(tp.inverse(less)(np.array([0.1, 0.3]), 1e10), 1e10 + np.array([0.1, 0.3]))
    assert tp.inverse(grown)(np.inf) == np.inf
    assert tp.inverse(less)(np.zeros(0), 1.0).shape == (0,)
