"""What inner loops keep, kept by the loop around them: Notes [Exports] and [Read from the record] of `ad.recovery.exports`."""

import numpy as np

import tapeless as tp


def layered(w, start, steps):
    layers, width = w.shape
    cell = np.empty((layers, width))
    cell[:] = start[0::2]  # has as many rows, as a test at run time says
    total = 0.0
    for t in range(steps):
        u = w[0] * t
        for i in range(layers):
            cell[i] = cell[i] * u + np.tanh(u * w[i])
            u = np.sin(cell[i])
        total += (u * u).sum()
    return total


def reaching_back(w, start, steps):
    """Reads a row that was put back in an earlier iteration of the backward pass: the array itself is needed."""
    state = np.empty(w.shape)
    state[:] = start[0::2]
    total = 0.0
    for _ in range(steps):
        for i in range(len(state) - 1):
            state[i] = state[i] * np.tanh(state[i + 1] * w[0])
            state[i + 1] = state[i + 1] + state[i] * w[1]
        total += (state * state).sum()
    return total


def given():
    rng = np.random.default_rng(7)
    return rng.normal(size=(3, 4)), 0.5 * rng.normal(size=(6, 4)), 4


def test_inner_loops_run_once_forwards():
    text = tp.grad(layered).ir(*given(), stage="optimized")
    assert text.count("tanh") == 2  # on the way, and for the slopes in the backward pass
    assert "cell: store, total: none" in text


def test_gradients_are_those_of_running_again():
    for function in (layered, reaching_back):
        plain = tp.grad(function, argnums=(0, 1))(*given())
        again = tp.grad(function, argnums=(0, 1), recover="recompute")(*given())
        for one, other in zip(plain, again, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_gradients_are_slopes():
    w, start, steps = given()
    for function in (layered, reaching_back):
        slope = tp.grad(function)(w, start, steps)
        step = 1e-6 * np.ones_like(w)
        expected = (function(w + step, start, steps) - function(w - step, start, steps)) / 2e-6
        np.testing.assert_allclose(slope.sum(), expected, rtol=1e-7, atol=1e-8)
