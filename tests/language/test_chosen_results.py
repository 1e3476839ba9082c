"""Results that are an argument on one path and a new array on another: which one it is shows when it runs."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.testing.stages import outcomes


def expression(x, y, c):
    return x if c > 0 else 2 * x


def other_arm(x, y, c):
    return 2 * x if c > 0 else x


def either_argument(x, y, c):
    return x if c > 0 else y


def statement(x, y, c):
    if c > 1:
        z = x
    elif c > 0:
        z = y
    else:
        z = x + y
    return z


def early(x, y, c):
    if c > 0:
        return x
    y = y * 2
    if c < -1:
        return y
    return np.zeros(3)


def written_there(x, y, c):
    if c > 0:
        x[0] = 7.0
        z = x
    else:
        z = y
    return z


def in_a_tuple(x, y, c):
    z = x if c > 0 else y + 1
    return z, [y, z], c


def nested(x, y, c):
    z = x if c > 0 else y * 2
    return z if c != 2 else y


def no_argument(x, y, c):
    return x + 1 if c > 0 else y + 1


def of_a_call(x, y, c):
    return np.sum(expression(x, y, c)) + 0 * x, other_arm(y, x, c)


FUNCTIONS = [
    expression, other_arm, either_argument, statement, early, written_there, in_a_tuple, nested, no_argument, of_a_call,
]  # fmt: skip
every = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


def arrays(result):
    return [
        r
        for r in (result if isinstance(result, tuple | list) else [result])
        for r in (r if isinstance(r, list) else [r])
    ]


@every
@pytest.mark.parametrize("c", [-2, 0, 1, 2])
def test_the_very_array(f, c):
    compiled = tp.function(f)
    for _ in range(2):  # the second time the short way
        ours, its = ([np.arange(3.0), np.arange(3.0) + 5] for _ in range(2))
        found, expected = arrays(compiled(*ours, c)), arrays(f(*its, c))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            assert [a is x for x in ours] == [b is x for x in its]


@every
def test_every_stage(f):
    for c in (-2, 1):
        results = dict(outcomes(f, lambda: [np.arange(3.0), np.arange(3.0) + 5, c]))
        expected = results.pop("python")
        for name, found in results.items():
            for a, b in zip(arrays(found.result), arrays(expected.result), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)


def test_other_types_are_new_arrays():
    f = tp.function(lambda x, y, c: x if c else y)
    x, y = np.ones(2), np.ones(2)
    assert f(x, y, True) is x
    assert f(x, y, False) is y
    assert f(x, x, True) is f(x, x, False) is x


def test_an_array_of_the_surroundings():
    table = np.arange(4.0)
    f = tp.function(lambda x, c: table if c else x)
    x = np.zeros(4)
    assert f(x, 1) is table
    assert f(x, 0) is x


def test_from_the_cache(compiled_anew):
    x, y = np.ones(2), np.zeros(2)
    assert tp.function(either_argument)(x, y, 1) is x
    assert tp.function(either_argument)(x, y, -1) is y


def test_gradients_do_not_mind():
    def loss(x, y, c):
        return np.sum(expression(x, y, c) ** 2)

    x = np.arange(3.0)
    np.testing.assert_allclose(tp.grad(loss)(x, x + 1, 1), 2 * x)
    np.testing.assert_allclose(tp.grad(loss)(x, x + 1, -1), 8 * x)
