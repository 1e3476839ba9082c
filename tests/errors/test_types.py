"""Types and shapes that do not fit together, and references that cannot be told apart."""

import numpy as np

import tapeless as tp
from tapeless.errors import SizeChanged
from tests.errors.rejected import Program, Rejected, message

rejected = Rejected()
READ_ONLY = np.ones(3)
READ_ONLY.flags.writeable = False


@rejected(np.ones(3), True)
def number_or_array(a, flag):
    if flag:
        y = a
    else:
        y = 1.0
    return y


@rejected(1.0, True)
def number_or_tuple(x, flag):
    y = (x, x) if flag else x
    return y


@rejected(1.0, True)
def text_or_number(x, flag):
    if flag:
        y = "none"
    else:
        y = x
    return y


@rejected(1.0, True)
def none_or_number(x, flag):
    if flag:
        return x


@rejected(np.ones((2, 3)), True)
def rank_differs_between_branches(a, flag):
    if flag:
        b = a
    else:
        b = a[0]
    return b


@rejected(np.ones((2, 3)), 3)
def rank_changes_in_a_loop(a, n):
    b = a
    for i in range(n):
        b = b.sum(axis=0)
    return b


@rejected(np.ones(3, np.int64), 3)
def element_type_changes_in_a_loop(a, n):
    b = a + 1
    while n > 0:
        b = b * 0.5
        n -= 1
    return b


@rejected(1.0, 3)
def number_becomes_array_in_a_loop(x, n):
    y = x
    for i in range(n):
        y = np.array([y, y])
    return y


@rejected(1.0, 3)
def number_becomes_tuple_in_a_loop(x, n):
    y = x
    for i in range(n):
        y = (x, i)
    return y


@rejected(np.zeros((3, 2)), 1, error=SizeChanged)
def size_changes_in_a_loop(a, n):
    y = np.zeros(2)
    for i in range(n):
        y = a @ y
    return y


@rejected(3, error=tp.ShapeError)
def constant_sizes_differ(n):
    return np.zeros(2) + np.zeros(3)


@rejected(np.ones(3), np.ones(4), error=tp.ShapeError)
def sizes_differ(a, b):
    return a + b


@rejected(np.ones((2, 3)), np.ones((2, 3)), error=tp.ShapeError)
def matrix_product_sizes_differ(a, b):
    return a @ b


@rejected(np.ones(3), np.ones((3, 4)), error=tp.ShapeError)
def assignment_sizes_differ(a, b):
    a[:] = b[0]
    return a


@rejected(np.ones((2, 3)), error=tp.ShapeError)
def value_of_higher_rank(a):
    a[0] = a
    return a


@rejected(np.ones(6), error=tp.ShapeError)
def reshape_of_another_size(a):
    return a.reshape(4, 2)


@rejected(np.ones(3), error=tp.ShapeError)
def concatenation_of_other_ranks(a):
    return np.concatenate((a, a.reshape(1, 3)))


@rejected(1.0)
def ragged_literal(x):
    return np.array([[x, x], [x]])


@rejected(np.ones(3), error=tp.ShapeError)
def ragged_result_of_map(a):
    return tp.map(lambda i: np.zeros(i), 3)


@rejected(1.0)
def array_of_texts(x):
    return np.array(["a", "b"])


@rejected(np.ones(3))
def truth_of_an_array(a):
    if a > 0:
        return 1.0
    return 2.0


@rejected(np.ones(3))
def array_in_and(a):
    return a > 0 and a < 2


@rejected(np.ones(3))
def chained_comparison_of_arrays(a):
    return 0 < a < 2


@rejected(np.ones(3))
def while_of_an_array(a):
    while a:
        a -= 1
    return a


@rejected(np.ones((2, 3)))
def too_many_indices(a):
    return a[0, 1, 2]


@rejected(1.0)
def constant_index_out_of_range(x):
    a = np.zeros(3)
    return a[3] + x


@rejected((1.0, 2.0))
def tuple_index_out_of_range(t):
    return t[2]


@rejected((1.0, np.ones(2)), 1)
def tuple_index_not_constant(t, i):
    return t[i]


@rejected(np.ones(3), 1.5)
def float_index(a, x):
    return a[x]


@rejected(np.ones(3))
def text_index(a):
    return a["x"]


@rejected(1.0)
def index_of_a_number(x):
    return x[0]


@rejected(READ_ONLY)
def write_to_a_read_only_argument(a):
    a[0] = 2.0
    return a


@rejected((1.0, 2.0))
def assignment_to_a_tuple_item(t):
    t[0] = 2.0
    return t


@rejected(np.ones(3), np.ones(3), True)
def which_array_is_written(a, b, flag):
    c = a
    if flag:
        c = b
    c[0] = 5.0
    return a[0]


@rejected(np.ones(3), np.ones(3), True)
def read_after_a_write_elsewhere(a, b, flag):
    c = a if flag else b
    a[0] = 5.0
    return c[0]


@rejected(np.ones(3), np.ones(3), 4)
def arrays_swapped_in_a_loop_and_written(a, b, n):
    c = a
    for i in range(n):
        c[0] = 1.0
        c = b
    return a[0]


@rejected(np.ones(3, np.int64))
def integer_array_plus_float_in_place(a):
    a += 0.5
    return a


@rejected(np.ones(3))
def complex_into_a_float_array(a):
    a[0] = 1j
    return a


@rejected(1 + 1j)
def order_of_complex_numbers(z):
    return z < 1.0


@rejected(1 + 1j)
def float_of_a_complex_number(z):
    return float(z)


@rejected(1.0)
def bits_of_a_float(x):
    return x & 1


@rejected(1.0)
def invert_a_float(x):
    return ~x


@rejected(1.0)
def text_plus_number(x):
    return "a" + x


@rejected((1.0, 2.0, 3.0))
def unpack_too_few_names(t):
    a, b = t
    return a


@rejected(1.0)
def unpack_a_number(x):
    a, b = x
    return a


@rejected(1.0)
def loop_over_a_number(x):
    s = 0.0
    for v in x:
        s += v
    return s


@rejected(np.ones(3))
def zero_slice_step(a):
    return a[::0]


@rejected(3)
def zero_range_step(n):
    s = 0
    for i in range(0, n, 0):
        s += i
    return s


@rejected(3, 3)
def identity_of_numbers(m, n):
    return n is m


@rejected(np.ones(3), 1.0)
def member_of_an_array(a, x):
    return x in a.reshape(1, -1)


@rejected([1.0, 2.0])
def half_of_a_list(x):
    return 0.5 * x


@rejected.all
def test_message(program: Program, golden) -> None:
    golden(message(program), str(program))
