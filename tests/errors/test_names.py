"""Names, attributes, calls and the values of the surroundings."""

# ruff: noqa: F821

import datetime
import math

import numpy as np

import tapeless as tp
from tapeless.errors import CallError
from tests.errors.rejected import Program, Rejected, message

rejected = Rejected()

HALF = np.ones(3, np.float16)
BYTES = np.array([b"a", b"b"])
TEXTS = np.array(["a", "b"])
OBJECTS = np.array([1, None], dtype=object)
DAYS = np.array(["2020-01-01"], dtype="datetime64[D]")
HUGE = 2**70
FROZEN = np.ones(3)
FROZEN.flags.writeable = False


def add(x, y, *, scale=1.0):
    return (x + y) * scale


@rejected(1.0)
def unknown_name(x):
    return x + unknwon


@rejected(True, 1.0)
def unbound_on_this_path(flag, x):
    y = z + x
    z = 1.0
    return y


@rejected(np.ones(3))
def unknown_function_of_numpy(a):
    return np.trim_zeros(a)


@rejected(np.ones(3))
def misspelt_function_of_numpy(a):
    return np.summ(a)


@rejected(1.0)
def unknown_function_of_math(x):
    return math.sine(x)


@rejected(1.0)
def unsupported_function_of_math(x):
    return math.fsum((x, x))


@rejected(3)
def random_numbers(n):
    return np.random.rand(n)


@rejected(1.0)
def other_module(x):
    return datetime.datetime.now()


@rejected(np.ones(3))
def unsupported_builtin(a):
    return next(iter(a))


@rejected(np.ones(3))
def unknown_attribute_of_an_array(a):
    return a.strides


@rejected(np.ones(3))
def unknown_method_of_an_array(a):
    return a.tobytes()


@rejected(1.0)
def unknown_attribute_of_a_number(x):
    return x.value


@rejected((1.0, 2.0))
def unknown_attribute_of_a_tuple(t):
    return t.first


@rejected(np.ones(3))
def list_append(a):
    out = []
    for i in range(len(a)):
        out.append(a[i])
    return iter(out)


@rejected(1.0, error=CallError)
def too_many_arguments(x):
    return add(x, x, x)


@rejected(1.0, error=CallError)
def missing_argument(x):
    return add(x)


@rejected(1.0, error=CallError)
def unknown_keyword(x):
    return add(x, x, factor=2.0)


@rejected(1.0, error=CallError)
def argument_given_twice(x):
    return add(x, 1.0, x=2.0)


@rejected(1.0)
def too_many_arguments_for_math(x):
    return math.sqrt(x, x)


@rejected(np.ones((2, 2)))
def unknown_keyword_of_numpy(a):
    return np.cumsum(a, where=a > 0)


@rejected(np.ones((2, 2)))
def axis_out_of_bounds(a):
    return np.sum(a, axis=2)


@rejected(1.0)
def call_of_a_number(x):
    return x(1.0)


@rejected(3)
def recursion(n):
    if n == 0:
        return 1
    return n * recursion(n - 1)


@rejected(3)
def mutual_recursion(n):
    return even(n)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


@rejected(3)
def recursion_through_a_lambda(n):
    return factorial(n)


factorial = lambda n: 1 if n == 0 else n * factorial(n - 1)


@rejected(1.0)
def global_array_of_half_precision(x):
    return x * HALF[0]


@rejected(1.0)
def global_array_of_bytes(x):
    return x * BYTES[0]


@rejected(1.0)
def global_array_of_texts(x):
    return TEXTS[0]


@rejected(1.0)
def global_array_of_objects(x):
    return x * OBJECTS[0]


@rejected(1.0)
def global_array_of_dates(x):
    return DAYS[0]


@rejected(1.0)
def global_integer_over_64_bits(x):
    return x + HUGE


@rejected(1.0)
def literal_over_64_bits(x):
    return x + 100000000000000000000


@rejected(1.0)
def constant_arithmetic_over_64_bits(x):
    return x + 2**64


@rejected(1.0)
def write_to_a_read_only_global(x):
    FROZEN[0] = x
    return x


@rejected(np.ones(3))
def unsupported_dtype_of_zeros(a):
    return np.zeros(3, dtype=np.float16)


@rejected(np.ones(3))
def unsupported_dtype_of_astype(a):
    return a.astype("float16")


@rejected(3)
def return_of_a_range(n):
    return range(n)


@rejected(3)
def return_of_a_module(n):
    return np


@rejected(3)
def return_of_a_function(n):
    return add


@rejected(3)
def return_of_a_lambda(n):
    return lambda x: x + n


@rejected(1.0)
def print_of_a_function(x):
    print(add)
    return x


@rejected({"a": 1.0})
def missing_key(d):
    return d["b"]


@rejected({"a": 1.0}, 3)
def key_not_constant(d, k):
    return d[k]


@rejected(1.0)
def prange_of_a_float(x):
    s = 0.0
    for i in tp.prange(x):
        s += 1.0
    return s


@rejected.all
def test_message(program: Program, golden) -> None:
    golden(message(program), str(program))
