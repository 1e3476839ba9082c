"""Costly results of maps that are still there in the backward pass: Note [Results that are there] of `ad.rules.reverse_sweeps`."""

import numpy as np

import tapeless as tp

X = np.random.default_rng(5).normal(size=(3, 7))


def columns(x):
    top = x.max(axis=0)
    return (top + np.log(np.exp(x - top).sum(axis=0))).sum()


def updated_later(x):
    y = np.exp(np.sin(x))
    total = (y[0] * y[1]).sum()
    y[0] = 0.0
    y *= y
    return total + y.sum()


def in_a_loop(x, n):
    total = 0.0
    for _ in range(n):
        y = np.exp(x - total)
        total += (y / y.sum(axis=0)).max()
        x = np.tanh(y) * x
    return total + x.sum()


def in_a_map(x):
    def row(r):
        e = np.exp(r - r[0])
        return (e[::-1] * e).sum() / e.sum()

    return tp.map(row, x).sum()


def slope(f, x, direction, step=1e-6):
    return (f(x + step * direction) - f(x - step * direction)) / (2 * step)


def test_nothing_is_computed_twice():
    text = tp.grad(columns).ir(X, stage="optimized")
    assert text.count(" exp ") == 1
    weights = np.exp(X - X.max(axis=0))
    np.testing.assert_allclose(tp.grad(columns)(X), weights / weights.sum(axis=0), rtol=1e-14)


def test_gradients_are_slopes():
    direction = np.random.default_rng(6).normal(size=X.shape)
    for f in (columns, updated_later, lambda x: in_a_loop(x, 3), in_a_map):
        compiled = tp.function(f)
        found = (tp.grad(f)(X.copy()) * direction).sum()
        np.testing.assert_allclose(found, slope(lambda x, g=compiled: g(x.copy()), X, direction), rtol=1e-7)


def test_slopes_of_slopes():
    direction = np.random.default_rng(6).normal(size=X.shape)
    for f in (columns, updated_later, in_a_map):

        def along(x, g=f):
            return (tp.grad(g)(x) * direction).sum()

        found = (tp.grad(along)(X) * direction).sum()
        np.testing.assert_allclose(found, slope(tp.function(along), X, direction), rtol=1e-6, atol=1e-8)
