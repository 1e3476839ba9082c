"""`if/elif/else`: what names are after two paths meet, and where they are unbound."""

from __future__ import annotations

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same


def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    else:
        return 0


def ladder(x):
    y = 0.0
    if x > 2:
        y = x * 2
        if x > 3:
            y += 1
        else:
            y -= 1
    elif x > 1:
        y = x * x
    return y


def test_branches():
    for x in (4.0, 2.5, 1.5, 0.5, -1.0):
        same(sign, x)
        same(ladder, x)


def fall_through(x):
    y = 1.0
    if x > 0:
        y = 2.0
    if x > 1:
        y *= 3.0
        z = y
    else:
        z = -y
    return y, z


def test_values_meet_after_branches():
    for x in (-1.0, 0.5, 2.0):
        same(fall_through, x)


def int_or_float(n):
    if n > 0:
        y = 1
    else:
        y = 2.5
    return y * 2


def test_a_name_of_two_types_has_the_wider_one():
    """The one departure from Python that a static type brings: the int comes back as a float of the same value."""
    f = tp.function(int_or_float)
    assert f(-1) == 5.0
    assert f(1) == 2


def bound_in_one_arm(x):
    if x > 0:
        y = x * 2
    return y


def bound_in_both(x):
    if x > 0:
        y = x
    elif x < -1:
        y = -x
    if x > 0 or x < -1:
        return y
    return 0.0


def test_unbound_names():
    same(bound_in_one_arm, 1.0)
    raises(UnboundLocalError, bound_in_one_arm, -1.0)
    for x in (1.0, -2.0, -0.5):
        same(bound_in_both, x)


def unbound_array(n, flag):
    if flag:
        a = np.ones(n)
    return a.sum()


def test_an_array_bound_in_one_arm():
    same(unbound_array, 4, True)
    raises(UnboundLocalError, unbound_array, 4, False)


def statically_known(x, mode="double"):
    if mode == "double":
        return x * 2
    elif mode == "tuple":
        return x, x
    return None


def test_conditions_known_at_compile_time_choose_types():
    same(statically_known, 2.0)
    same(statically_known, 2.0, mode="tuple")
    same(statically_known, 2.0, mode="other")


def optional(x, y=None):
    if y is None:
        y = x
    return x + y


def test_none_arguments():
    same(optional, 2.0)
    same(optional, 2.0, 3)
    same(optional, 2.0, None)


def arrays_meet(x, flag):
    if flag:
        y = x * 2
    else:
        y = x + 1
    y[0] = 9.0
    return y


def test_fresh_arrays_meet():
    for flag in (True, False):
        same(arrays_meet, np.arange(3.0), flag)


def sizes_meet(x, flag):
    if flag:
        y = x[1:] * 2
    else:
        y = np.concatenate((x, x))
    return y, len(y), y.sum()


def test_arrays_of_different_sizes_meet():
    for flag in (True, False):
        same(sizes_meet, np.arange(4.0), flag)


def written_in_one_arm(x, flag):
    if flag > 0:
        x[0] = 5.0
    elif flag < 0:
        x[1:] *= 2
    else:
        x += 1
    return x.sum()


def test_writes_in_branches_reach_the_caller():
    for flag in (1, 0, -1):
        same(written_in_one_arm, np.arange(3.0), flag)


def tuples_meet(x, flag):
    if flag:
        pair = (x, 1)
    else:
        pair = (x * 2, 3)
    a, b = pair
    return a + b, pair


def test_tuples_meet():
    for flag in (True, False):
        same(tuples_meet, 1.5, flag)


def pass_and_nothing(x):
    if x > 0:
        pass
    else:
        ...
    "a text that stands alone"
    return x


def returns_nothing(x):
    x[0] = 1.0


def returns_none(x):
    if x > 0:
        return None
    return None


def test_nothing():
    same(pass_and_nothing, 1.0)
    same(returns_nothing, np.zeros(2))
    same(returns_none, 1.0)


def different_kinds(x):
    if x > 0:
        y = x
    else:
        y = (x, x)
    return y


def array_or_number(x):
    if x > 0:
        y = np.zeros(3)
    else:
        y = 0.0
    return y


def ranks(x):
    if x > 0:
        y = np.zeros(3)
    else:
        y = np.zeros((3, 3))
    return y


def none_or_number(x):
    if x > 0:
        return x


@pytest.mark.parametrize("f", [different_kinds, array_or_number, ranks, none_or_number])
def test_paths_without_a_common_type_are_refused(f):
    with pytest.raises(tp.CompileError):
        tp.function(f)(1.0)


def unused_conflict(x):
    if x > 0:
        y = x
    else:
        y = (x, x)
    y = 1.0
    return y + x


def test_a_conflict_that_nobody_reads_is_none():
    same(unused_conflict, 2.0)
    same(unused_conflict, -2.0)


def raise_in_an_arm(x, k):
    if k == 0:
        y = x + 1
    elif k == 1:
        y = x * 2
    else:
        raise ValueError("k")
    return y


def test_an_arm_that_raises_decides_nothing():
    same(raise_in_an_arm, 2.0, 0)
    same(raise_in_an_arm, 2.0, 1)
    raises(ValueError, raise_in_an_arm, 2.0, 2)


def truth(n, x):
    a = 1 if n else 0
    b = 1 if x else 0
    c = 1 if (n, x) else 0
    d = 1 if () else 0
    return a, b, c, d


def test_truth_values():
    same(truth, 0, 0.5)
    same(truth, 2, 0.0)
