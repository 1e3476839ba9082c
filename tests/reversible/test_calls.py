"""Reversible functions called in each other and in ordinary ones: arrays, containers, functions among the keywords."""

import dataclasses

import numpy as np
import pytest

import tapeless as tp


@dataclasses.dataclass
class Body:
    x: float
    v: np.ndarray


@tp.reversible
def move(body, h):
    body.v += h
    body.v[0] += body.x
    body.x += h * 2


def test_fields():
    end = move(Body(1.0, np.ones(2)), 0.5)
    assert (end[0].x, end[0].v.tolist()) == (2.0, [2.5, 1.5])
    back = (~move)(*end)
    assert (back[0].x, back[0].v.tolist()) == (1.0, [1.0, 1.0])

    def f(body, h):
        body, _ = move(body, h)
        return np.sum(body.v) * body.x

    body, h = tp.grad(f, argnums=(0, 1))(Body(1.0, np.ones(2)), 0.5)
    assert (body.x, body.v.tolist(), h) == (6.0, [2.0, 2.0], 12.0)


@tp.reversible
def put_away(s, x, y):
    x += y * y
    tp.push(s, x)
    x += np.sin(y)
    tp.push(s, x)


def test_stacks():
    s, x, y = put_away(tp.stack(4), 1.0, 2.0)
    assert (s.data[0], s.top, x, y) == (5.0, 2, 0.0, 2.0)
    s, x, y = (~put_away)(s, x, y)
    assert (s.data.tolist(), s.top, x) == ([0.0] * 4, 0, 1.0)

    def f(x, y):
        s, _, _ = put_away(tp.Stack(np.zeros(4), 0), x, y)
        return s.data[0] * 3.0 + s.data[1]

    assert tp.grad(f, argnums=(0, 1))(1.0, 2.0) == pytest.approx((3.0, 12.0 + np.cos(2.0)))


@tp.reversible
def row(x, y):
    x += y * y
    y += np.sin(x)


@tp.reversible
def rows(xs, ys):
    xs, ys = tp.map(row, xs, ys)


def test_map():
    x, y = np.ones(3), np.arange(3.0)
    end = rows(x.copy(), y.copy())
    np.testing.assert_allclose(end[1], y + np.sin(1.0 + y * y))
    assert "tp.map(~row, xs, ys)" in (~rows).source
    np.testing.assert_allclose((~rows)(*end), (x, y), atol=1e-15)
    found = tp.grad(lambda x, y: np.sum(rows(x, y)[1]), argnums=(0, 1))(x, y)
    wanted = tp.grad(lambda x, y: np.sum(y + np.sin(x + y * y)), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(found, wanted)


@tp.reversible
def one_more(q):
    q += 1.0


@tp.reversible
def three_more(q):
    for _ in range(3):
        one_more(q)


@tp.reversible
def exchange(q, p, s):
    q, p = p, q
    s += 1.0


@tp.reversible
def exchanges(q, p, s):
    for _ in range(3):
        exchange(q, p, s)


def test_calls_in_loops():
    assert three_more(np.zeros(2))[0].tolist() == [3.0, 3.0]
    assert tp.grad(lambda q: np.sum(three_more(q)[0] ** 2))(np.zeros(2)).tolist() == [6.0, 6.0]
    q, p, s = exchanges(np.zeros(2), np.ones(2), 0.0)
    assert (q.tolist(), p.tolist(), s) == ([1.0, 1.0], [0.0, 0.0], 3.0)
    q, p, s = (~exchanges)(q, p, s)
    assert (q.tolist(), p.tolist(), s) == ([0.0, 0.0], [1.0, 1.0], 0.0)


@tp.reversible
def leap(q, p, *, force, steps, h):
    for _ in range(steps):
        q += h / 2 * p
        p += h * force(q)
        q += h / 2 * p


def test_what_functions_among_the_keywords_see_has_its_derivative():
    def f(theta):
        q, _ = leap(np.array([1.0, 0.0]), np.array([0.0, 0.8]), force=lambda q: -theta * q, steps=5, h=0.1)
        return q[0]

    def plain(theta):
        q, p = np.array([1.0, 0.0]), np.array([0.0, 0.8])
        for _ in range(5):
            q = q + 0.05 * p
            p = p - 0.1 * theta * q
            q = q + 0.05 * p
        return q[0]

    assert tp.grad(f)(1.3) == pytest.approx(tp.grad(plain)(1.3), rel=1e-13)


@tp.reversible
def layer(x, y, weights, *, net):
    y += net(x, weights)


def test_containers_of_weights():
    def net(x, w):
        return np.tanh(w[0] @ x + w[1])

    x, w = np.ones(2), (np.full((2, 2), 0.5), np.full(2, 0.25))
    found = tp.grad(lambda w: np.sum(layer(x, np.zeros(2), w, net=net)[1]))(w)
    wanted = tp.grad(lambda w: np.sum(net(x, w)))(w)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b)


@tp.reversible
def undecided(x, y):
    if x > 0.0:
        x -= y * y
    while x < 10.0:
        x += y


def test_gradients_need_no_second_condition():
    assert undecided(1.0, 2.0) == (11.0, 2.0)
    assert tp.grad(lambda x, y: undecided(x, y)[0], argnums=(0, 1))(1.0, 2.0) == (1.0, 3.0)


@pytest.mark.thorough
def test_reports_say_that_nothing_is_kept():
    def f(q, p, steps):
        return leap(q, p, force=lambda q: -q, steps=steps, h=0.1)[0][0]

    report = tp.grad(f).explain(np.ones(2), np.ones(2), 1000)
    assert report.memory_bytes == 0
    assert {"q": "invert", "p": "invert"} in [loop.recovery for loop in report.loops]


@tp.reversible
def whole_ancilla(z, x, y):
    with tp.ancilla(0) as t:
        with tp.compute:
            t += x * y
        z += t**2


def test_an_ancilla_that_begins_as_a_whole_number():
    assert tp.grad(lambda x, y: whole_ancilla(0.0, x, y)[0], argnums=(0, 1))(2.0, 3.0) == (36.0, 24.0)


@tp.reversible
def scaled(z, w, x):
    z *= w * x
    x /= 1.0 + w * w


def test_complex_factors():
    def f(z, w, x):
        z, w, x = scaled(z, w, x)
        return np.abs(z) ** 2 + np.real(x)

    def plain(z, w, x):
        z = z * (w * x)
        x = x / (1.0 + w * w)
        return np.abs(z) ** 2 + np.real(x)

    at = (1.0 + 2.0j, 0.5 - 0.3j, 0.7 + 0.2j)
    for a, b in zip(tp.grad(f, argnums=(0, 1, 2))(*at), tp.grad(plain, argnums=(0, 1, 2))(*at), strict=True):
        assert a == pytest.approx(b, rel=1e-13)


@tp.reversible
def leaves_dirt(x):
    with tp.ancilla(0.0) as t:
        t += x
        t -= 1.0


@tp.reversible
def caller_of_it(x):
    leaves_dirt(x)


def test_tests_of_what_is_called_run_too():
    with pytest.raises(tp.InvertibilityError, match="ancilla 't' is 1.0"):
        caller_of_it(2.0)


def test_what_nobody_reads_is_not_found_again():
    """So the function itself need not run for the gradient."""

    @tp.reversible
    def total(out, x):
        for i in range(len(x)):
            out += np.sin(x[i])

    assert total.remembered == frozenset()
    assert leap.remembered == {"q", "p"}
    assert rows.remembered == {"xs", "ys"}
    text = tp.grad(lambda x: total(0.0, x)[0]).ir(np.ones(3), stage="optimized")
    assert "cos" in text and "sin" not in text.replace("cos", "")


def test_explain_shows_both_ways(capsys):
    row.explain(1.0, 2.0)
    shown = capsys.readouterr().out
    both = [line.split() for line in shown.splitlines() if "x" in line]
    assert ["x", "+=", "y", "*", "y", "y", "-=", "np.sin(x)"] in both
    assert "kept for gradients: nothing" in shown
    undecided.explain(1.0, 2.0)
    assert "what was decided at line" in capsys.readouterr().out


@tp.reversible
def twice(q, p, *, step):
    q, p = step(q, p)
    q, p = (~step)(q, p)
    q, p = step(q, p)


def test_reversible_functions_as_keywords():
    x, y = row(1.0, 2.0)
    assert twice(1.0, 2.0, step=row) == (x, pytest.approx(y, abs=1e-15))
    assert (~twice)(x, y, step=row) == (1.0, pytest.approx(2.0))
    found = tp.grad(lambda x, y: twice(x, y, step=row)[1], argnums=(0, 1))(1.0, 2.0)
    assert found == pytest.approx(tp.grad(lambda x, y: row(x, y)[1], argnums=(0, 1))(1.0, 2.0))
    with pytest.raises(tp.InvertibilityError, match="is not reversible"):
        twice(1.0, 2.0, step=lambda q, p: (q, p))


@tp.reversible
def by_index(out, x, k):
    with tp.ancilla(0.0) as t:
        with tp.compute:
            for i in range(len(k)):
                t += x[k[i]]
        out += np.sin(t)


@tp.reversible
def index_moves(out, x, k, j):
    with tp.ancilla(0.0) as t:
        with tp.compute:
            t += x[k[0]]
        out += np.sin(t)
        k[j] += 1


def test_undoing_a_block_tests_no_index_again():
    x, k = np.arange(4.0), np.array([0, 2, 3])
    end = by_index(0.0, x, k)
    assert end[0] == np.sin(5.0)
    text = by_index.ir(0.0, x, k)
    assert ("k[i?]" in text, text.count("?"), text.count("~]")) == (True, 2, 2)
    assert index_moves.ir(0.0, x, k, 1).count("?]") >= 4  # it may be another one
    with pytest.raises(IndexError):
        by_index(0.0, x, np.array([0, 4]))


def test_stacks_are_neither_empty_nor_overwrite():
    with pytest.raises(tp.InvertibilityError, match="nothing is on the stack"):
        (~put_away)(tp.stack(2), 0.0, 1.0)
    with pytest.raises(tp.InvertibilityError, match="would overwrite 5.0"):
        (~put_away)(tp.Stack(np.array([1.0, 2.0]), 2), 5.0, 1.0)
    with pytest.raises(tp.InvertibilityError, match="nothing is on the stack"):
        (~put_away).python(tp.stack(2), 0.0, 1.0)
    with pytest.raises(IndexError, match="test_calls.py"):
        put_away(tp.stack(1), 1.0, 2.0)


def test_what_lies_above_a_stack_has_no_derivative():
    """It is overwritten."""
    above = tp.grad(lambda data: np.sum(put_away(tp.Stack(data, 0), 1.0, 2.0)[0].data ** 2))(np.ones(3))
    assert above.tolist() == [0.0, 0.0, 2.0]


@tp.reversible
def change_places(a, b):
    a, b = b, a
    with tp.ancilla(0) as t:
        t, b = b, t
        t, b = b, t


def test_a_float_and_a_whole_number_change_places():
    assert tp.grad(lambda a: 3.0 * change_places(a, 7)[1])(2.0) == 3.0
    assert tp.grad(lambda b: 3.0 * change_places(7, b)[0])(2.0) == 3.0


def test_state_by_name():
    found = tp.grad(lambda x, y: row(y=y, x=x)[1], argnums=(0, 1))(1.0, 2.0)
    assert found == tp.grad(lambda x, y: row(x, y)[1], argnums=(0, 1))(1.0, 2.0)
    with pytest.raises(tp.CompileError, match="missing 1 required positional argument: 'y'"):
        tp.grad(lambda x: row(x)[1])(1.0)


@tp.reversible
def through_a_call(a, b):
    a, b = change_places(a, b)


def test_they_change_places_in_calls_too():
    assert tp.grad(lambda a: 3.0 * through_a_call(a, 7)[1])(2.0) == 3.0
    assert tp.grad(lambda b: 3.0 * through_a_call(7, b)[0])(2.0) == 3.0


@tp.reversible
def again_and_again(x):
    x += 1.0
    again_and_again(x)


def test_recursion_is_refused():
    with pytest.raises(tp.InvertibilityError, match="TP106.*calls itself"):
        again_and_again(1.0)


@tp.reversible
def put_all_away(x, s, n):
    for _ in range(n):
        tp.push(s, x)
        x += 1.0


def test_a_loop_fills_a_stack_of_the_caller():
    s = tp.stack(5)
    x, after, _ = put_all_away(0.5, s, 3)
    assert (x, after.top) == (1.0, 3)
    np.testing.assert_array_equal(after.data, [0.5, 1.0, 1.0, 0.0, 0.0])
    back, before, _ = (~put_all_away)(x, after, 3)
    assert (back, before.top) == (0.5, 0)
