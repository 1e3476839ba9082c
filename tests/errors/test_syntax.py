"""Syntax outside the language: what it is, where it stands, and what to write instead."""

# ruff: noqa: UP028

import numpy as np

from tests.errors.rejected import Program, Rejected, message

rejected = Rejected()
counter = 0


MIXED = tuple(k if k % 2 else k + 0.5 for k in range(40_000))
FUNCTIONS = (abs, float)
CHOICES = tuple(k % 2 for k in range(40_000))


@rejected(1.0)
def loop_over_many_items_of_several_types(x):
    for v in MIXED:
        x = 0.5 * x + v
    return x


@rejected(1.0)
def loop_over_many_items_that_must_be_known(x):
    for v in CHOICES:
        x = FUNCTIONS[v](x) * 0.5
    return x


@rejected(1.0)
def comprehension_over_a_million(x):
    return {k: x * k for k in range(1_000_000)}[3]


@rejected(1.0)
def tuple_of_ten_million(x):
    items = tuple(range(10_000_000))
    return x * items[3]


@rejected(1.0)
def try_statement(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


@rejected(1.0)
def with_statement(x):
    with open("table") as file:
        return x


@rejected(3)
def yield_expression(n):
    for i in range(n):
        yield i


@rejected(3)
def yield_from(n):
    yield from range(n)


@rejected(1.0)
async def async_function(x):
    return x


@rejected(1.0)
def class_definition(x):
    class Point:
        pass

    return x


@rejected(1.0)
def import_statement(x):
    import math

    return math.sin(x)


@rejected(1.0)
def import_from(x):
    from math import sin

    return sin(x)


@rejected(1)
def global_statement(x):
    global counter
    counter = x
    return x


@rejected(1.0)
def nonlocal_statement(x):
    total = 0.0

    def add(y):
        nonlocal total
        total = total + y

    add(x)
    return total


@rejected(np.ones(3))
def del_statement(a):
    del a[0]
    return a


@rejected(1.0)
def set_display(x):
    s = {1.0, x}
    return x


@rejected(1.0)
def set_comprehension(x):
    s = {i * x for i in (1, 2)}
    return x


@rejected(1.0)
def dict_comprehension(x):
    d = {i * x: x for i in (1, 2)}
    return d[1]


@rejected(1)
def match_statement(x):
    match (x, 1):
        case (1, y):
            return y
    return x


@rejected(1.0)
def f_string(x):
    print(f"x = {x:{x}.3f}")
    return x


@rejected(np.ones((3, 2)))
def starred_target(a):
    first, *rest = a
    return first[0]


@rejected(np.ones(3))
def starred_element(x):
    u = (0.0, *x)
    return u[1]


@rejected(1.0)
def double_star_call(x):
    options = {1: x}
    return add(1.0, **options)


@rejected(5)
def comprehension_of_unknown_length(n):
    b = tuple([i * i for i in range(n)])
    return b[0]


@rejected(1.0)
def decorated_inner_function(x):
    @np.vectorize
    def g(y):
        return y

    return g(x)


@rejected(1.0)
def attribute_assignment(x):
    add.weight = x
    return x


@rejected(np.ones(3))
def raise_of_computed_message(a):
    raise ValueError(f"bad {a}")


@rejected(1.0)
def raise_of_own_exception(x):
    if x > 0:
        raise Oops("no")
    return x


@rejected(1.0)
def except_star(x):
    y = x
    try:
        y = 1 / y
    except* ZeroDivisionError:
        y = 0.0
    return y


@rejected(np.ones((2, 2)))
def in_place_matrix_product(a):
    a @= a
    return a


@rejected(3)
def index_of_a_range(n):
    r = range(n)
    return r[1]


class Oops(Exception):
    pass


def add(x, y):
    return x + y


@rejected.all
def test_message(program: Program, golden) -> None:
    golden(message(program), str(program))
