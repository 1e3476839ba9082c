"""Each construct of the language as a tiny program with its Jacobian: scalars, branches, loops, exits."""

import math

import numpy as np
import pytest
from scipy import special

import tapeless as tp
from tests.gradients.jacobians import Case, Cases

case = Cases()

X = np.array([0.7, -1.3, 2.1, 0.4])
SIN, COS = math.sin, math.cos


# -- scalars


@case(2.0, 3.0, jacobian=[3 + 1 / 3 - 1, 2 - 2 / 9 + 1])
def arithmetic(x, y):
    return x * y + x / y - x + y


@case(2.0, 3.0, jacobian=[12, 8 * math.log(2)])
def power(x, y):
    return x**y


@case(-2.0, jacobian=[12])
def power_of_a_negative_number(x):
    return x**3


@case(-2.0, jacobian=[-0.25])
def negative_power(x):
    return x**-1


@case(7.5, 2.0, jacobian=[1, -3])
def remainder(x, y):
    return x % y


@case(7.5, 2.0, jacobian=[0, 0])
def floored_quotient(x, y):
    return x // y


@case(0.3)
def functions_of_math(x):
    return math.exp(x) * math.log(1 + x) + math.atan2(x, 2.0) + math.tanh(x) * math.sqrt(x) - math.erf(x) / math.cosh(x)


@case(0.3)
def functions_of_numpy(x):
    return np.expm1(x) + np.log1p(x) * np.arcsin(x) + np.arctan(x) - np.hypot(x, 2.0) + np.cbrt(x) + np.exp2(x)


@case(1.7, jacobian=[special.digamma(1.7) + special.polygamma(1, 1.7)], tolerance=1e-8)
def functions_of_scipy(x):
    return special.gammaln(x) + special.digamma(x)


@case(2.3, jacobian=[0])
def steps(x):
    return np.floor(x) + np.ceil(x) + np.round(x) + np.sign(x) + int(x)


@case(-2.5, 1.5, jacobian=[-1, 0])
def kinks(x, y):
    return max(abs(x), y) + min(abs(y), 1.0)


@case(2.0, jacobian=[0])
def constant_result(x):
    return 3.0


@case(2.0, 5.0, jacobian=[0, 1])
def unused_argument(x, y):
    return y


@case(2.0, 5.0, jacobian=[[1, 0], [0, 1], [1, 0]])
def arguments_as_results(x, y):
    return x, y, x


@case(1.5, jacobian=[2 * 1.5])
def truth_value_as_a_factor(x):
    return (x > 1.0) * x * x


@case(0.5, 2.0, jacobian=[[0, 1], [1, 0]])
def swap_of_scalars(x, y):
    x, y = y, x
    return x, y


# -- branches


def three_ways(x, y):
    if x < 0:
        z = x * y
    elif x < 1:
        z = x + y * y
    else:
        z = math.sin(y)
    return z * x


case(-1.0, 3.0, jacobian=[2 * -1 * 3, 1])(three_ways)
case(0.5, 3.0, jacobian=[2 * 0.5 + 9, 2 * 3 * 0.5])(three_ways)
case(2.0, 3.0, jacobian=[SIN(3), 2 * COS(3)])(three_ways)


@case(0.5, jacobian=[1])
def branch_without_else(x):
    y = x
    if x > 1:
        y = x * x
    return y


@case(2.0, 3.0, jacobian=[6 * 2.0 * 3.0, 3 * 4.0])
def conditional_expression(x, y):
    return 3 * x * x * y if x < y and not x == y else x


@case(2.0, 3.0, jacobian=[[0, 3 * 2], [4 * 2, 0]], differ=True)
def tuple_from_a_branch(x, y):
    if x > y:
        a, b = x, y
    else:
        a, b = y * 3 * 2, x * 4 * 2
    return a, b


@case(0.5, 3.0, jacobian=[[2 * 0.5 * 9, 2 * 0.25 * 3]])
def nested_branches(x, y):
    if x > 0:
        if y > 2:
            r = (x * y) ** 2
        else:
            r = x
    elif y > 0:
        r = y
    else:
        r = 0.0
    return r


# -- for


@case(1.1, jacobian=[5 * 1.1**4])
def carried_scalar(x):
    p = 1.0
    for _ in range(5):
        p *= x
    return p


@case(0.3, 2.0)
def two_carried_scalars(x, y):
    a, b = x, y
    for i in range(6):
        a, b = b * math.cos(a), a + 0.1 * b * i
    return a, b


@case(X)
def sum_over_a_loop(x):
    s = 0.0
    for i in range(len(x)):
        s += math.sin(x[i]) * x[i]
    return s


@case(X)
def loop_over_an_array(x):
    s, k = 0.0, 1.0
    for e in x:
        s = s * e + k
        k += e
    return s


@case(X, X[::-1] + 0.5)
def zip_and_enumerate(x, y):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, y)):
        s += a * b**2 * i + s * a
    return s


@case(X)
def ranges_with_steps(x):
    s = 1.0
    for i in range(len(x) - 1, -1, -2):
        s = s * x[i] + i
    for i in range(1, len(x), 2):
        s -= x[i] * s
    return s


@case(np.arange(6.0).reshape(2, 3) / 5 + 0.1)
def nested_loops(a):
    s = 1.0
    for i in range(a.shape[0]):
        t = 0.0
        for j in range(a.shape[1]):
            t = t * a[i, j] + s
        s = s * t + a[i, 0]
    return s


@case(0.9)
def inner_loop_of_varying_length(x):
    s = 0.0
    for i in range(5):
        p = 1.0
        for j in range(i):
            p = p * x + j
        s = s * x + p
    return s


@case(X)
def branch_in_a_loop(x):
    s = 1.0
    for i in range(len(x)):
        if x[i] > 0:
            s = s * x[i]
        else:
            s = s + x[i] ** 2
    return s


@case(X)
def carried_array(x):
    y = np.zeros(len(x)) + 1.0
    for i in range(3):
        y = np.sin(y) * x + i
    return y


@case(0.7, np.array([1.0, 2.0]))
def zero_iterations(x, y):
    s = x
    for i in range(0):
        s = s * y[i]
    return s


# -- while


def newton(x):
    """The root of y**3 = x: the derivative is that of the cube root."""
    y = 1.0
    while abs(y * y * y - x) > 1e-13:
        y = y - (y * y * y - x) / (3 * y * y)
    return y


case(2.0, jacobian=[2 ** (-2 / 3) / 3], differ=False, tolerance=1e-7)(newton)


def halved(x):
    """x goes down to below 1: x / 2**k, of which only k jumps."""
    k = 0
    while x > 1.0:
        x = x / 2
        k += 1
    return x * k


case(5.0, jacobian=[3 / 8])(halved)
case(0.5, jacobian=[0])(halved)


@case(0.5, jacobian=[1])
def while_without_iterations(x):
    y = x
    while y > 1.0:
        y = y * y
    return y


@case(X, 1.5)
def while_over_an_array(x, y):
    i = 0
    while i < len(x) and y > 0.1:
        y = y * (1.1 + math.sin(x[i]))
        i += 1
    return y


@case(0.4, 1.3)
def while_in_a_for(x, y):
    s = 0.0
    for i in range(3):
        z = y + i
        while z > 0.5:
            z = z * x
        s = s * x + z
    return s


# -- exits


@case(X)
def break_out_of_a_loop(x):
    s = 1.0
    for i in range(len(x)):
        if x[i] > 2:
            break
        s = s * x[i] + i
    return s


@case(X)
def continue_with_the_next(x):
    s = 1.0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        s = s * x[i] + x[i]
    return s


@case(X)
def return_from_a_loop(x):
    s = 1.0
    for i in range(len(x)):
        s = s * (1 + x[i])
        if x[i] < 0:
            return s * x[i]
    return s


def early_return(x):
    if x < 0:
        return -x * x
    return x * x * x


case(-2.0, jacobian=[4])(early_return)
case(2.0, jacobian=[12])(early_return)


@case(0.3)
def break_out_of_a_while(x):
    y, n = x, 0
    while True:
        y = y * (2 - x) + 0.1
        n += 1
        if y > 3 or n == 20:
            break
    return y


# -- functions

FACTOR = 3.0
WEIGHTS = np.array([0.5, -2.0, 1.5, 4.0])


def square(x):
    return x * x


@case(1.5, jacobian=[4 * 1.5**3 * 3])
def inlined_functions(x):
    def scaled(y):
        return FACTOR * y

    return scaled(square(square(x)))


@case(1.5, jacobian=[2 * 2 * 1.5 + 1])
def functions_as_arguments(x):
    def twice(f, y):
        return f(y) + f(y)

    return twice(square, x) + twice(lambda y: y / 2, x)


@case(X, jacobian=WEIGHTS)
def array_of_the_surroundings(x):
    return np.sum(x * WEIGHTS)


@tp.function
def compiled(x, y):
    return x * y


@case(2.0, jacobian=[3 * 4.0])
def call_of_a_compiled_function(x):
    return compiled(compiled(x, x), x)


@pytest.mark.sampled(3)
@case.all
def test_jacobian(program: Case) -> None:
    program.check()
