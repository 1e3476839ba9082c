"""What a variable is called says nothing: plans, reports and messages are the same under every name."""

import numpy as np

import tapeless as tp


def kept_by_name(x, n):
    y = 1.0
    for _ in range(n):
        z_kept = x * y
        for _ in range(3):
            z_kept = z_kept * 0.5 + x
        y = y * z_kept
    return y


def plain(x, n):
    y = 1.0
    for _ in range(n):
        z = x * y
        for _ in range(3):
            z = z * 0.5 + x
        y = y * z
    return y


def test_w18_a_variable_called_kept_does_not_change_the_plan(capsys):
    reports = [tp.grad(f).explain(0.5, 4) for f in (kept_by_name, plain)]
    assert [p.recovery for p in reports[1].plans] == [{"y": "store"}, {"z": "none"}]
    assert [p.recovery for p in reports[0].plans] == [{"y": "store"}, {"z_kept": "none"}]
    assert reports[0].memory_bytes == reports[1].memory_bytes == 4 * 8
    assert all(tp.grad(f).ir(0.5, 4).count("keep [") == 1 for f in (kept_by_name, plain))


def test_w18_arrays_of_the_user_are_not_counted_as_kept(capsys):
    def f(x, n):
        room_kept = np.empty(n)
        for i in range(n):
            room_kept[i] = x * i
        y = x
        for i in range(n):
            y = np.sin(y * room_kept[i])
        return y

    assert tp.grad(f).explain(0.5, 100).memory_bytes == 100 * 8


def renamed(m, flag):
    b = m  # another name for the argument
    c = b if flag else np.ones(3)
    m[0] = 2.0
    return c[0]


def test_w18_an_argument_keeps_its_name_whatever_that_is():
    with np.testing.assert_raises_regex(tp.CompileError, "'c' may refer to the array 'm'"):
        tp.function(renamed)(np.ones(3), True)
