"""Small programs that a reader with fresh eyes wrote, and that were compiled wrongly or not at all."""

import functools
from collections import namedtuple

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

Pair = namedtuple("Pair", "a b")


@pytest.mark.thorough
@pytest.mark.sampled(3, each="size")
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("size", [2, 5, 40])
def test_products_of_integers(dtype, size):
    a = np.arange(size * size, dtype=dtype).reshape(size, size) % 7
    agree(lambda a: a @ a, a)
    agree(lambda a: np.dot(a, a.T), a)
    agree(lambda a: np.einsum("ij,jk", a, a), a)
    agree(lambda a: a @ a[0], a)


def test_an_element_with_new_axes():
    agree(lambda x: x[0, None], np.arange(4.0))
    agree(lambda x: x[None, 0], np.arange(4.0))
    agree(lambda m, k: m[1, None, k] * 2.0, np.arange(6.0).reshape(2, 3), 2)

    def written(x):
        x[0, None] += 5.0
        x[None, 1] = 7.0
        return x

    agree(written, np.arange(4.0))
    tp.check_grads(lambda x: np.sum(x[1, None] * x[None, 0] * x), (np.arange(1.0, 4.0),))


def counted_down(n):
    while (n := n - 1) > 0:
        pass
    return n


def until(x):
    i, s = 0, 0.0
    while (v := x[i]) < 2:
        if v == 1.0:
            i += 2
            continue
        s += v + 1.0
        i += 1
    else:
        s += 100.0
    return s + v


def test_names_bound_in_conditions():
    for n in (-1, 0, 1, 6):
        agree(counted_down, n)
    agree(until, np.arange(5.0))

    def nested(n):
        for i in range(3):
            while (n := n - 1) > 0:
                n -= i
            else:
                break
        return n

    with pytest.raises(tp.CompileError, match="':=' in this condition"):
        tp.function(nested)(5)


def plus_one(f):
    @functools.wraps(f)
    def run(*args):
        return f(*args) + 1

    return run


@plus_one
def doubled(x):
    return 2 * x


def test_decorators_count():
    agree(doubled, 3)
    agree(lambda x: doubled(x) * 2, 3)
    assert tp.function(doubled)(3) == 7
    np.testing.assert_array_equal(tp.function(lambda x: tp.map(doubled, x))(np.arange(3)), [1, 3, 5])


@pytest.mark.parametrize("a", [0, 1, 2])
def test_tuples_and_lists_are_compared_as_in_python(a):
    agree(lambda a: (a, 2) < (1, 3), a)
    agree(lambda a: (a, 2) <= (1, 2), a)
    agree(lambda a: [a, 2] > [1], a)
    agree(lambda a: (a,) >= (1, 0), a)
    agree(lambda a: [a, 2] == [1, 2], a)
    agree(lambda a: (a, 2) == [1, 2], a)
    agree(lambda a: [a, 2] != [1, 2, 3], a)
    agree(lambda a: Pair(a, 2) == (1, 2), a)
    agree(lambda a: {"a": a} == {"b": a}, a)
    agree(lambda a: {"a": a, "b": 1} == {"b": 1, "a": 1}, a)
    agree(lambda a: a == "sum", a)
    agree(lambda a: (a, 1) == 1, a)


@pytest.mark.parametrize(
    "f", [lambda a: -(a, 2), lambda a: (a, 2) > 1, lambda a: [a, 2] + (1, 3), lambda a: (a, 1) - (1, 1)]
)
def test_what_python_does_not_do_with_tuples(f):
    with pytest.raises(TypeError):
        f(1)
    with pytest.raises(tp.CompileError) as caught:
        tp.function(f)(1)
    assert caught.value.code == "TP104"


def test_integers_that_do_not_fit_beside_narrow_ones():
    a = np.arange(3, dtype=np.int32)
    for b in (5, -(2**31), 2**31 - 1, 2**40, -(2**31) - 1):
        agree(lambda a, b: a < b, a, b)
        agree(lambda a, b: a == b, a, b)
        agree(lambda a, b: a + b, a, b)
        agree(lambda a, b: np.maximum(a, b), a[:1], b) if abs(b) < 2**31 else None
    agree(lambda a: a < 2**40, a)
    with pytest.raises(tp.CompileError, match="Python integer 1099511627776 out of bounds for int32"):
        tp.function(lambda a: a + 2**40)(a)


def test_squeezing_sizes_that_show_when_it_runs():
    agree(lambda x: np.squeeze(x[:1]), np.ones((3, 2)))
    agree(lambda n: np.zeros((1, n)).squeeze(), 3)
    with pytest.raises(tp.ShapeError, match="give axis="):
        tp.function(lambda n: np.zeros((1, n)).squeeze())(1)


def test_truth_values_without_nan():
    agree(lambda x: np.nansum(x), np.array([True, False, True]))
    agree(lambda x: np.nanprod(x), np.array([True, False]))
    agree(lambda z: np.nan_to_num(z), np.array([1j, complex(np.nan, -np.inf)]))


def test_elements_of_other_shapes_in_a_histogram():
    f = tp.function(lambda d, k, v: tp.hist(lambda a, b: a + b, 0.0, d, k, v))
    with pytest.raises(tp.ShapeError, match="elements of dest have 1 dimensions, those of vals 0"):
        f(np.zeros((2, 2)), np.array([0]), np.ones(1))
    with pytest.raises(tp.ShapeError, match="sizes 2 and 3"):
        f(np.zeros((2, 2)), np.array([0]), np.ones((1, 3)))


def test_more_numbers_than_can_be_passed():
    f = tp.function(lambda numbers: numbers[0] + numbers[-1])
    assert f([1.0] * 900) == 2.0
    with pytest.raises(tp.ArgumentError, match="make arrays of lists of numbers"):
        f([1.0] * 1100)


def test_an_ellipsis_that_stands_for_nothing_between_index_arrays():
    a = np.arange(60.0).reshape(5, 3, 4)
    agree(lambda a: a[..., [0, 1], 0], a)
    agree(lambda a: a[[0, 1], ..., 0], a)
    with pytest.raises(tp.CompileError, match="stands for no axis"):
        tp.function(lambda a: a[:, [0, 1], ..., 0])(a)


def test_numbers_picked_from_a_tuple_are_pythons():
    agree(lambda a, i: a * (1.0, 2.0)[i], np.ones(2, np.float32), 1)
    agree(lambda a, i: a * [1, 2][i], np.ones(2, np.int32), 0)


def test_carets_count_characters():
    def f(x):
        return x if "日本語" == "" else undefined_name  # noqa: F821

    with pytest.raises(tp.CompileError) as caught:
        tp.function(f)(1.0)
    *_, line, caret = [t for t in str(caught.value).splitlines() if "undefined_name" in t or "^" in t][-2:]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "undefined_name"


def multiplier(k):
    def times(w):
        return w * k

    return times


def cell(k):
    y = np.arange(3.0) * k

    def put(i, v):
        y[i] = v

    return put, lambda: np.sum(y)


def with_factories(x):
    put, total = cell(x)
    put(0, x * x)
    functions = [multiplier(2.0), multiplier(x)]
    s = total()
    for f in functions:
        s += f(x)
    for i in range(3):
        s = functions[1](s) + multiplier(i)(x)
    return s


def test_functions_that_return_functions():
    agree(with_factories, 1.3)
    tp.check_grads(with_factories, (1.3,))


@pytest.mark.thorough
def test_products_in_a_loop_over_what_they_multiply():
    def total(x):
        s = 0.0
        for _ in range(len(x)):
            s += np.prod(x)
        return s

    tp.check_grads(total, (np.array([1.0, 2.0, 3.0]),))


def test_leaves_without_a_gradient():
    assert tp.grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": (3.0, 4)}) == {"a": 3.0, "b": (2.0, None)}


def test_equal_maps_that_have_a_result_twice():
    """The second one was merged with the first, and its second result with one that was gone."""

    def twice(a):
        c = a * 2.0
        d = a * 2.0
        return c, d / np.diag(d)

    tp.check_grads(twice, (np.arange(1.0, 10.0).reshape(3, 3),), order=1)


def test_methods_of_ufuncs_are_traced_once():
    """np.add.reduce is another object each time that it is read."""
    total = tp.function(lambda x: np.add.reduce(x))
    total(np.ones(3))
    before = total.caller(np.ones(3)).compiled
    assert total.caller(np.ones(4)).compiled is before
