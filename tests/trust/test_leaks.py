"""Lengths, transforms and functions come and go, and memory stays as it is. `make soak` does the same for longer."""

import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

import tapeless as tp
from tapeless.api.shared import NAME
from tapeless.frontend.source import sources
from tests.trust import leaks

MB = 2**20


def test_l1_lengths_cost_no_memory():
    assert leaks.grown(leaks.lengths(), 2_000, 10_000) < MB


def test_l1_one_way_in_for_all_lengths():
    @tp.function
    def add(a, b):
        return a + b

    shapes = [((3,), (3,)), ((3,), (1,)), ((1,), (4,)), ((1,), (1,)), ((0,), (1,)), ((0,), (0,)), ((5,), (5,))]
    shapes += [((2, 3), (3,)), ((3, 3), (3,)), ((2, 3), (1, 3)), ((2, 3), (2, 1)), ((4, 5), (4, 5)), ((1, 1), (6, 7))]
    rng = np.random.default_rng(0)
    compiled = set()
    for _ in range(3):
        for k in range(4):
            for first, second in shapes:
                longer = lambda shape, k=k: tuple(n + k if n > 1 else n for n in shape)
                a, b = rng.random(longer(first)), rng.random(longer(second))
                np.testing.assert_array_equal(add(a, b), a + b)
        compiled.add(sum(len(entries) for entries in add._fast.values()))
    assert len(compiled) == 1
    with pytest.raises(tp.ShapeError):
        add(np.ones(3), np.ones(4))


def test_l1_overlap_is_seen_at_every_length():
    @tp.function
    def shift(a, b):
        a[0] = 2.0
        return b[0] + a[0]

    a = np.zeros(20)
    for n in range(2, 9):
        assert shift(np.zeros(n), np.ones(n)) == 3.0
        assert shift(np.zeros(n), np.ones(n + 1)) == 3.0
        with pytest.raises(tp.ArgumentError, match="shares memory"):
            shift(a[:n], a[1 : n + 1])
        same = np.ones(n)
        assert shift(same, same) == 4.0


def test_l1_sizes_out_of_range_are_refused_at_the_second_call_too():
    f = tp.function(lambda a: a.shape[0])
    assert f(np.ones((2, 3))) == f(np.ones((3, 2))[::1]) - 1 == 2
    with pytest.raises(tp.CompileError, match=r"2\*\*60"):
        f(np.empty((2**61, 0), np.bool_).astype(np.bool_, copy=False))
    g = tp.function(lambda a: a.shape[0])
    assert g(np.empty((2, 0), np.bool_)) == 2
    with pytest.raises(tp.CompileError, match=r"2\*\*60"):
        g(np.empty((2**61, 0), np.bool_))


def test_l1_arrays_without_axes_at_the_second_call():
    f = tp.function(lambda n: n * 2)
    for value in (3, 2.5, True, 1j, np.int32(3), np.float32(0.5)):
        for _ in range(2):
            assert f(np.array(value)) == value * 2


def test_l2_transforms_cost_no_memory():
    assert leaks.grown(leaks.transforms(), 300, 2_000) < MB


def test_l2_the_same_transform_finds_the_compiled_code():
    def f(x):
        return x * x * x

    grad, again = tp.grad(f), tp.grad(f)
    assert grad is not again
    assert grad.compiled(2.0) is again.compiled(2.0)
    assert tp.grad(tp.grad(f)).compiled(2.0) is tp.grad(tp.grad(f)).compiled(2.0)
    assert tp.function(f).compiled(2.0) is tp.function(f).compiled(2.0)
    assert tp.grad(tp.function(f)).compiled(2.0) is tp.grad(tp.function(f)).compiled(2.0)
    assert tp.jacrev(tp.vmap(f)).compiled(np.ones(2)) is tp.jacrev(tp.vmap(f)).compiled(np.ones(2))
    assert tp.grad(np.sin).compiled(2.0) is tp.grad(np.sin).compiled(2.0)
    grad.note = "mine"
    assert not hasattr(tp.grad(f), "note")


def test_l2_other_options_are_other_code():
    def f(x, y):
        return x * y

    assert tp.grad(f)(2.0, 3.0) == 3.0
    assert tp.grad(f, 1)(2.0, 3.0) == 2.0
    assert tp.grad(f, (0, 1))(2.0, 3.0) == tp.grad(f, [0, 1])(2.0, 3.0) == (3.0, 2.0)
    with pytest.raises(TypeError):
        tp.grad(f, True)
    assert tp.value_and_grad(f)(2.0, 3.0) == (6.0, 3.0)
    assert tp.function(f, check=True).options.check
    assert not tp.function(f).options.check
    assert tp.grad(tp.function(f, check=True)).options.check
    assert not tp.grad(tp.function(f)).options.check
    assert tp.function(f, threads=1).threads == 1
    assert tp.function(f, threads=3).threads == 3


def test_l2_wrappers_are_other_functions():
    def f(x):
        return x * x

    compiled, slope = tp.function(f), tp.grad(f)
    own = tp.custom_vjp(f)
    own.defvjp(lambda x: (x * x, x), lambda kept, adjoint: (3.0 * kept * adjoint,))
    assert tp.jvp(f, (2.0,), (1.0,)) == (4.0, 4.0)
    assert (compiled(2.0), slope(2.0), tp.grad(own)(2.0)) == (4.0, 4.0, 6.0)
    for wrapped, value, derivative in ((f, 4.0, 4.0), (compiled, 4.0, 4.0), (slope, 4.0, 2.0), (own, 4.0, 6.0)):

        @functools.wraps(wrapped)
        def five(x, wrapped=wrapped):
            return 5.0 * wrapped(x)

        assert tp.function(five)(2.0) == 5.0 * value
        assert tp.grad(five)(2.0) == 5.0 * derivative
        assert tp.jvp(five, (2.0,), (1.0,)) == (5.0 * value, 5.0 * derivative)


def test_l2_what_the_function_reads_still_counts():
    factor = 2.0

    def f(x):
        return x * factor

    assert tp.grad(f)(1.0) == 2.0
    factor = 3.0
    assert tp.grad(f)(1.0) == tp.function(f)(1.0) == 3.0
    own = tp.custom_vjp(lambda x: x)
    for k in (2.0, 5.0):
        own.defvjp(lambda x: (x, None), lambda kept, adjoint, k=k: (adjoint * k,))
        assert tp.grad(own)(1.0) == k


def test_l2_compiled_code_goes_with_the_function():
    def make(k):
        f = lambda x: x * k
        assert tp.grad(f)(1.0) == tp.function(f)(1.0) == k
        return weakref.ref(f)

    gone = [make(float(k)) for k in range(3)]
    gc.collect()
    assert [f() for f in gone] == [None] * 3


def at_top(x):
    return x + 1.0


def test_l2_functions_can_still_be_pickled():
    assert tp.grad(at_top)(1.0) == 1.0
    assert pickle.loads(pickle.dumps(at_top)) is at_top
    assert not pickle.loads(pickle.dumps(vars(at_top)))[NAME].made


@pytest.mark.thorough
def test_l3_functions_that_are_dropped_leave_nothing():
    """Of an earlier compiler, a hundred left 10 MB."""
    assert leaks.grown(leaks.functions(), 40, 100) < 2 * MB


@pytest.mark.sampled(4)
@pytest.mark.parametrize("work", [leaks.closures, leaks.many_budgets, leaks.statics, leaks.wrappers])
def test_l3_whatever_is_made_anew(work):
    step = work()
    for _ in range(4):
        step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(12):
        step()
    gc.collect()
    left = len(gc.get_objects()) - before
    assert left < (12_000 if work in (leaks.statics, leaks.many_budgets) else 600)  # some are kept, up to a number


def test_l3_tables_have_an_end(monkeypatch):
    monkeypatch.setattr(sources, "KEPT", 5)
    x = np.ones(3)
    for k in range(8):
        g, forget = leaks.made(10**6 + k)
        tp.function(g).compiled(x, x)
        forget()
    assert len(sources._files) <= 5
    assert len(sources._digests) <= 5
    f = tp.function(lambda mode, x: x, cache=False)
    monkeypatch.setattr("tapeless.api.function.MOST_KINDS", 3)
    for k in range(6):
        f(str(k), 1.0)
    assert len(f._versions) <= 4
