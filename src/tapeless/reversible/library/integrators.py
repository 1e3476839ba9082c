"""Integrators of motion: positions q, momenta p, mass 1. `force(q, parameters)` is a plain function."""

import tapeless as tp

THETA = 1 / (2 - 2 ** (1 / 3))  # of Forest and Ruth


@tp.reversible
def leapfrog(q, p, parameters, *, force, steps, h):
    """Steps of second order: half a drift, a kick, half a drift."""
    for _ in range(steps):
        q += h / 2 * p
        p += h * force(q, parameters)
        q += h / 2 * p


@tp.reversible
def forest_ruth(q, p, parameters, *, force, steps, h):
    """Steps of fourth order: three leapfrog steps, the one in the middle backwards."""
    for _ in range(steps):
        q += THETA * h / 2 * p
        p += THETA * h * force(q, parameters)
        q += (1 - THETA) * h / 2 * p
        p += (1 - 2 * THETA) * h * force(q, parameters)
        q += (1 - THETA) * h / 2 * p
        p += THETA * h * force(q, parameters)
        q += THETA * h / 2 * p
