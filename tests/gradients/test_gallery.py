"""Programs on which another system is silently wrong or gives up, each with the right gradient.

The names say which system and, where there is one, the report in its issue tracker.
"""

import math

import numpy as np
import pytest

import tapeless as tp
from tests.gradients.jacobians import check


def array(*values):
    return np.array(values, float)


# -- carried values that are overwritten


def test_warp_product_in_a_dynamic_loop() -> None:
    """[32, 8, 2] in Warp; in Dr.Jit 7 or 4 for 12 with another hint than the exact count."""

    def f(x, n):
        p = 1.0
        for i in range(n):
            p *= x[i]
        return p

    np.testing.assert_allclose(tp.grad(f)(array(2, 2, 2), 3), [4, 4, 4])

    def g(x):
        v = 1.0
        for i in range(3):
            v *= x
        return v

    assert tp.grad(g)(2.0) == 12.0


def test_warp_and_taichi_overwritten_elements() -> None:
    """[144, 48, 6] in Warp and Taichi."""

    def f(a):
        for i in range(1, len(a)):
            a[i] = a[i - 1] * a[i]
        return a[-1]

    check(f, array(2, 3, 4), jacobian=[12, 8, 6])


def test_warp_1694_value_from_before_a_loop_used_after_it() -> None:
    """Its adjoint was zero."""

    def f(x, n):
        before = x * x
        s = 0.0
        for i in range(n):
            s += x * i
        return s * before

    check(lambda x: f(x, 4), 3.0, jacobian=[6 * 3 * 9.0])


def test_warp_1293_nested_loops() -> None:
    """Twice the gradient."""

    def f(x, n, m):
        s = 0.0
        for i in range(n):
            for j in range(m):
                s += x[i] * x[j]
        return s

    np.testing.assert_allclose(tp.grad(f)(array(1, 2, 3), 3, 3), [12, 12, 12])


def test_warp_1552_continue_in_a_dynamic_loop() -> None:
    def f(x, n):
        s = 1.0
        for i in range(n):
            if x[i] < 0:
                continue
            s *= x[i]
        return s

    np.testing.assert_allclose(tp.grad(f)(array(2, -1, 3), 3), [3, 0, 2])


def test_warp_1350_arrays_changed_after_the_call() -> None:
    """The backward pass used the contents at that moment."""

    def f(x):
        return np.sum(x**3)

    x = array(1, 2)
    value, pullback = tp.vjp(f, x)
    (first,) = pullback(1.0)
    np.testing.assert_allclose(first, [3, 12])
    x[:] = 10.0
    (second,) = pullback(1.0)
    np.testing.assert_allclose(second, [3, 12])


def test_linear_map_of_arrays_changed_after_the_call() -> None:
    x = array(1, 2)
    _, linear = tp.linearize(lambda x: x**3, x)
    x[:] = 10.0
    np.testing.assert_allclose(linear(np.ones(2)), [3, 12])


def test_warp_conditions_on_overwritten_values() -> None:
    """The branch that was taken depends on a value that is gone afterwards."""

    def f(x):
        y = x
        if y > 1:
            y = y * 0.1
        if y > 1:
            y = y * y
        else:
            y = y * 3
        return y

    check(f, 2.0, jacobian=[0.3])


def test_taichi_3003_statements_beside_an_inner_loop() -> None:
    def f(x):
        total = 0.0
        for i in range(len(x)):
            p = x[i]
            for j in range(2):
                p = p * x[i]
            total += p * i
            x[i] = p
        return total + np.sum(x)

    x = array(1.5, 2, 3)
    check(f, x, jacobian=3 * x**2 * (np.arange(3) + 1))


def test_taichi_8802_loop_carried_reads_and_writes() -> None:
    def f(x):
        for t in range(3):
            for i in range(len(x)):
                x[i] = 0.5 * (x[i] + x[(i + 1) % 3]) * x[i]
        return np.sum(x)

    check(f, array(0.9, 1.1, 1.3))


def test_taichi_8027_long_inner_loop() -> None:
    """A stack of fixed depth crashed from 31 iterations on."""

    def f(x):
        s = 0.0
        for i in range(3):
            p = x
            for j in range(200):
                p = p * 1.001 + 0.0001 * p * p
            s += p
        return s

    x, h = 0.5, 1e-6
    expected = (f(x + h) - f(x - h)) / (2 * h)
    np.testing.assert_allclose(tp.grad(f)(x), expected, rtol=1e-7)


def test_quadrants_633_recomputed_loads() -> None:
    """A recomputed chain read an array again that had been overwritten."""

    def f(a):
        b = np.sin(a)
        c = b * 2
        a[:] = 0.0
        b[:] = 1.0
        return np.sum(c * c) + np.sum(b * a)

    a = array(0.3, 0.7)
    check(f, a, jacobian=8 * np.sin(a) * np.cos(a))


def test_slang_2914_loop_that_tests_at_the_end() -> None:
    def f(x):
        y, n = x, 0
        while True:
            y = y * y
            n += 1
            if n >= 3:
                break
        return y

    check(f, 1.1, jacobian=[8 * 1.1**7])


def test_slang_6048_more_iterations_than_any_bound() -> None:
    def f(x):
        s, k = x, 0
        while s < 1e6:
            s = s * x
            k += 1
        return s

    check(f, 1.5, jacobian=[35 * 1.5**34], differ=False)
    assert 1.5**34 < 1e6 <= 1.5**35


# -- while


def test_jax_2469_reverse_through_while() -> None:
    """Heron's square root, until it does not change."""

    def f(x):
        y, before = x, 0.0
        while abs(y - before) > 1e-14:
            before = y
            y = 0.5 * (y + x / y)
        return y

    for derivative in (tp.grad(f), tp.jacfwd(f)):
        np.testing.assert_allclose(derivative(2.0), 0.5 / math.sqrt(2), rtol=1e-12)


def test_jax_24740_branch_on_data() -> None:
    def escape(x, y):
        zx, zy = 0.0, 0.0
        for i in range(50):
            if zx * zx + zy * zy > 4:
                return math.log(zx * zx + zy * zy)
            zx, zy = zx * zx - zy * zy + x, 2 * zx * zy + y
        return 0.0

    check(escape, 0.5, 0.5)


# -- in-place updates


def test_pytorch_36470_element_from_its_neighbour() -> None:
    def f(x):
        y = np.ones(5)
        for i in range(1, 5):
            y[i] = y[i - 1] * x
        return y[4]

    check(f, 1.5, jacobian=[4 * 1.5**3])


def test_jax_10197_updates_cost_an_element() -> None:
    """The gradient of n updates of an array of n is not n * n work: this many would take minutes."""

    def f(x):
        y = np.zeros(len(x))
        y[0] = x[0]
        for i in range(1, len(x)):
            y[i] = y[i - 1] * 0.999 + x[i]
        return y[-1]

    n = 100_000
    np.testing.assert_allclose(tp.grad(f)(np.ones(n)), 0.999 ** np.arange(n - 1, -1, -1), rtol=1e-9)


def test_autograd_assignment_to_elements() -> None:
    def f(x):
        a = np.zeros((2, 2))
        a[0, 0] = x
        a[1] = x * x
        return np.sum(a * a)

    check(f, 1.5, jacobian=[2 * 1.5 + 2 * 4 * 1.5**3])


# -- zeros, infinities, kinks


def test_jax_347_where_around_a_division() -> None:
    def f(x):
        safe = x if x != 0 else 1.0
        return math.sin(x) / safe if x != 0 else 1.0

    assert tp.grad(f)(0.0) == 0.0


def test_pytorch_196701_second_derivative_of_cumprod_at_zero() -> None:
    def f(x):
        return np.cumprod(x)[-1]

    x = array(0, 3, 5)
    expected = [[0, 5, 3], [5, 0, 0], [3, 0, 0]]
    np.testing.assert_allclose(tp.hessian(f)(x), expected)
    np.testing.assert_allclose(tp.jacrev(tp.grad(f))(x), expected)


def test_futhark_2216_second_derivative_of_a_power_at_zero() -> None:
    def f(x, y):
        return x**y

    assert tp.grad(tp.grad(f))(0.0, 2.0) == 2.0
    assert tp.grad(tp.grad(f))(0.0, 3.0) == 0.0


def test_futhark_1878_extremum_of_a_map_with_free_arrays() -> None:
    def f(x, y):
        return np.min(tp.map(lambda i: x[i] * y[(i + 1) % 3] + y[i], 3))

    x, y = array(3, 1, 2), array(5, 7, 2)
    gx, gy = tp.grad(f, (0, 1))(x, y)
    np.testing.assert_allclose(gx, [0, 2, 0])
    np.testing.assert_allclose(gy, [0, 1, 1])


def test_futhark_1604_two_carried_arrays_from_one_input() -> None:
    def f(x):
        a, b = x.copy(), x.copy()
        for i in range(3):
            a = a + b
            b = b + 1
        return a

    check(f, array(1, 2, 3), jacobian=4 * np.eye(3))


def test_futhark_2228_swapped_arrays_inside_while() -> None:
    def f(x):
        a, b = array_of(x), array_of(-2 * x)
        i = 0
        while i < 4:
            if i % 2 == 0:
                a, b = b, a * 2
            else:
                a, b = a * 2, b
            i += 1
        return a[0] + b[0]

    check(f, 1.0)


def array_of(x):
    return np.full(2, x)


def test_futhark_atan_atanh_atan2() -> None:
    """Partials that were wrong for years, because no test reached them."""
    for f, slope in [
        (lambda x: np.arctan(x), 1 / 1.09),
        (lambda x: np.arctanh(x), 1 / 0.91),
        (lambda x: np.arctan2(x, 2.0), 2 / 4.09),
        (lambda x: np.copysign(x, -1.0), -1),
        (lambda x: np.tanh(x), 1 / math.cosh(0.3) ** 2),
        (lambda x: np.fmod(7.5, x + 2), -3),
    ]:
        np.testing.assert_allclose(tp.grad(f)(0.3), slope, rtol=1e-14)
        np.testing.assert_allclose(tp.jacfwd(f)(0.3), slope, rtol=1e-14)


# -- second order and sums of many


def test_warp_1767_hessian_vector_products_through_a_loop() -> None:
    def f(x):
        s = 0.0
        for i in range(len(x) - 1):
            s += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        return s

    x, v = array(1.2, 1.0, 0.7), array(1, 2, -1)
    hessian = np.array(
        [
            [1200 * 1.44 - 400 * 1.0 + 2, -400 * 1.2, 0],
            [-400 * 1.2, 200 + 1200 - 400 * 0.7 + 2, -400],
            [0, -400, 200],
        ]
    )
    np.testing.assert_allclose(tp.hvp(f, (x,), (v,))[1], hessian @ v)
    np.testing.assert_allclose(tp.hessian(f)(x), hessian)


def test_drjit_53_derivatives_through_several_iterations() -> None:
    def f(x, n):
        for i in range(n):
            x = math.sin(x)
        return x

    x, expected, at = 1.0, 1.0, 1.0
    for _ in range(10):
        expected *= math.cos(at)
        at = math.sin(at)
    np.testing.assert_allclose(tp.grad(f)(x, 10), expected, rtol=1e-14)
    np.testing.assert_allclose(tp.jacfwd(f)(x, 10), expected, rtol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_loop_of_any_length_keeps_what_it_needs(n) -> None:
    """The logistic map; JAX's scan keeps 16 bytes per step."""

    def f(r, n):
        x = 0.3
        for i in range(n):
            x = r * x * (1 - x)
        return x

    r, x, dx = 2.5, 0.3, 0.0
    for _ in range(n):
        x, dx = r * x * (1 - x), x * (1 - x) + r * (1 - 2 * x) * dx
    np.testing.assert_allclose(tp.grad(f)(r, n), dx, rtol=1e-12)
