"""Loops over tp.progress under derivatives: the gradients of plain loops, and each iteration told once in each pass."""

import math

import numpy as np
import pytest

import tapeless as tp
from tapeless.frontend.entry import trace
from tapeless.interp import evaluate as interpreter
from tapeless.ir.core import Progress
from tapeless.passes.pipeline import finished
from tests.gradients.jacobians import jacobians
from tests.recovery.same import same

BYTES = 500
WAYS = (
    *({"recover": how} for how in ("auto", "store", "undo", "checkpoint", "checkpoint:2", "checkpoint:3", "recompute")),
    {"memory": f"{BYTES}B"},
    {"memory": f"{BYTES}B", "recover": "checkpoint"},
)
INVERTED = ({"recover": "invert"}, {"recover": "invert:3"})


def over(iterable):
    """The programs with `range`, or with `tp.progress` around it."""

    def number(x, n):
        for i in iterable(range(n)):
            x = math.sin(x) + 0.1 * i
        return x

    def rows(x, n):
        u = x.copy()
        for _ in iterable(range(n)):
            for k in range(1, len(u)):
                u[k] = u[k] * 0.9 + math.sin(u[k - 1])
        return np.sum(u)

    def left_early(x, n):
        for i in iterable(range(n)):
            x = math.sin(x) + 0.1 * i
            if x > 1.7:
                break
        return x

    def in_a_branch(x, n):
        if x > 0.1:
            for i in iterable(range(n)):
                x = math.sin(x) + 0.1 * i
        return x * 2.0

    def grows(x, n):
        for _ in iterable(range(n)):
            x = x * 1.5 + 1.0
        return x

    return [number, rows, left_early, in_a_branch, grows]


X = {"rows": np.array([0.3, 0.2, 0.1])}
SHOWN, PLAIN = over(tp.progress), over(lambda iterable: iterable)
PAIRS = pytest.mark.parametrize("shown, plain", [pytest.param(s, p, id=s.__name__) for s, p in zip(SHOWN, PLAIN)])
number, rows, left_early, in_a_branch, grows = SHOWN


@pytest.fixture
def told(monkeypatch):
    """Runs a function by the interpreter after all passes; what its loops say: (done, total, backward)."""
    found = []

    def tell(evaluator, stm, exp):
        found.append((evaluator.integer(exp.done), evaluator.integer(exp.total), exp.backward))
        return []

    monkeypatch.setitem(interpreter.RULES, Progress, tell)

    def run(f, *args):
        found.clear()
        core = finished(trace(getattr(f, "python", f), args).core)
        room = [BYTES] * (len(core.params) - len(args))
        interpreter.evaluate(core, [*args, *room])
        return list(found)

    return run


def forward(n):
    return [(i, n, False) for i in range(n)]


def backward(n):
    return [(i + 1, n, True) for i in range(n)]


@pytest.mark.sampled(2, each="options")
@PAIRS
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_gradients_are_those_of_the_range(shown, plain, options):
    x = X.get(shown.__name__, 0.3)
    found, expected = tp.value_and_grad(shown, **options), tp.value_and_grad(plain, recover="store")
    for n in (0, 1, 2, 9, 27):
        same(found(x, n), expected(x, n))


@PAIRS
def test_all_modes(shown, plain):
    x = X.get(shown.__name__, 0.3)
    expected = jacobians(lambda x: plain(x, 7), x)
    for way, found in jacobians(lambda x: shown(x, 7), x).items():
        np.testing.assert_allclose(found, expected[way], rtol=1e-12)
    same(tp.hessian(shown)(x, 7), tp.hessian(plain)(x, 7))
    found, expected = (tp.hvp(lambda x, f=f: f(x, 7), (x,), (x,)) for f in (shown, plain))
    same(found, expected)


def test_vmap():
    xs = np.linspace(0.0, 1.0, 5)
    found = tp.vmap(tp.grad(number), in_axes=(0, None))(xs, 6)
    np.testing.assert_array_equal(found, [tp.grad(number)(float(x), 6) for x in xs])


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("f", [number, rows])
def test_each_iteration_is_told_once_in_each_pass(told, f, options):
    assert told(tp.grad(f, **options), X.get(f.__name__, 0.3), 11) == forward(11) + backward(11)


@pytest.mark.parametrize("options", INVERTED, ids=str)
def test_inverted_iterations_too(told, options):
    assert told(tp.grad(rows, **options), X["rows"], 11) == forward(11) + backward(11)


def test_what_runs_twice_is_told_twice(told):
    """The trips are counted, or the branch is taken, in a first run; what the backward pass needs comes from another."""
    assert told(tp.grad(left_early), 0.3, 9)[-4:] == [(6, 9, True), (7, 9, True), (8, 9, True), (9, 9, True)]
    assert told(tp.grad(in_a_branch), 0.3, 3) == forward(3) + forward(3) + backward(3)


def test_a_loop_is_not_run_to_be_told(told):
    """The slope needs no values."""
    assert told(tp.grad(grows), 0.3, 4) == backward(4)
    assert told(lambda x, n: (grows(x, n), 1.0)[1], 0.3, 4) == []


def test_higher_orders_and_forward_mode(told):
    assert told(tp.jacfwd(number), 0.3, 3) == forward(3)
    assert told(tp.hessian(number), 0.3, 3) == forward(3) + backward(3)


def test_hints_and_progress_in_either_order(told):
    def outside(x, n):
        for i in tp.progress(tp.loop(range(n), recover="checkpoint:3")):
            x = math.sin(x) + 0.1 * i
        return x

    def inside(x, n):
        for i in tp.loop(tp.progress(range(n)), recover="checkpoint:3"):
            x = math.sin(x) + 0.1 * i
        return x

    for f in (outside, inside):
        assert told(tp.grad(f), 0.3, 11) == forward(11) + backward(11)
        assert tp.grad(f).explain(0.3, 11).plans[0].recovery == {"x": "checkpoint:3"}
        assert f(0.3, 11) == number(0.3, 11)


def test_of_nested_loops_the_outermost_is_told(told):
    def nested(x, n):
        for _ in tp.progress(range(n)):
            x = number(x, 3)
        return x

    assert told(tp.grad(nested), 0.3, 4) == forward(4) + backward(4)


def test_a_plain_loop_around_starts_anew(told):
    def repeated(x, n):
        for _ in range(2):
            x = number(x, n)
        return x

    assert told(tp.grad(repeated), 0.3, 3) == forward(3) * 2 + backward(3) * 2


def test_where_elements_come_in_no_order_nothing_is_told(told):
    def mapped(x, n):
        return np.sum(tp.map(lambda e: number(e, n), x))

    def by_rows(x, n):
        y = np.zeros(len(x))
        for k in tp.prange(len(x)):
            for i in tp.progress(range(n)):
                y[k] = math.sin(y[k]) + 0.1 * i * x[k]
        return np.sum(y)

    def sums(x, n):
        total = 0.0
        for i in tp.progress(range(n)):
            total += x[i] * 2.0
        return total

    for f in (mapped, by_rows):
        assert told(f, X["rows"], 3) == told(tp.grad(f), X["rows"], 3) == []
    assert told(tp.grad(sums), X["rows"], 3) == []  # its backward pass is a map


def test_custom_derivatives(told):
    @tp.custom_vjp
    def own(x, n):
        return number(x, n)

    own.defvjp(lambda x, n: (number(x, n), x), lambda x, adj: (adj * 2.0, None))

    def around(x, n):
        return own(x, n) * 3.0

    assert told(around, 0.3, 3) == forward(3)
    assert told(tp.value_and_grad(around), 0.3, 3) == forward(3)
    assert tp.grad(around)(0.3, 3) == 6.0


def test_large_functions_that_are_shared(told):
    def large(x, n):
        for i in tp.progress(range(n)):
            for _ in range(2):
                x = math.sin(x) + math.cos(x * 0.1 * i) + math.exp(-x * x) + math.tanh(x) + math.log(1.0 + x * x)
                x = x * 0.2 + math.sin(x + 1.0) + math.cos(x - 1.0) + math.atan(x) + math.sqrt(1.0 + x * x)
        return x

    def calls(x, n):
        x = large(x, n) + large(x * 0.5, n)
        for _ in tp.progress(range(n)):
            x += large(x, 2)
        return x + large(x, n)

    assert told(calls, 0.3, 3) == forward(3) * 4
    np.testing.assert_allclose(calls(0.3, 3), tp.function(calls)(0.3, 3), rtol=1e-13)
