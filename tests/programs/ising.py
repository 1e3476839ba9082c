"""The Ising model on a torus by Metropolis: a checkerboard at a time, and spin by spin."""

import numpy as np

import tapeless as tp


def neighbours(spins):
    return np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)


def energy(spins, J=1.0, h=0.0):
    return -0.5 * J * np.sum(spins * neighbours(spins)) - h * spins.sum()


def sweep(key, spins, beta):
    """All black cells, then all white ones."""
    i, j = np.indices(spins.shape)
    for colour in range(2):
        cost = 2.0 * spins * neighbours(spins)
        u = tp.random.uniform(tp.random.fold_in(key, colour), spins.shape)
        flip = ((i + j) % 2 == colour) & (u < np.exp(-beta * cost))
        spins = np.where(flip, -spins, spins)
    return spins


def simulate(seed, n, beta, sweeps):
    """Magnetisation after each sweep, and the last state."""
    key = tp.random.key(seed)
    spins = 2 * tp.random.bernoulli(tp.random.fold_in(key, 2**20), 0.5, (n, n)).astype(np.int64) - 1
    magnetisation = np.zeros(sweeps)
    for t in range(sweeps):
        spins = sweep(tp.random.fold_in(key, t), spins, beta)
        magnetisation[t] = abs(spins.mean())
    return magnetisation, spins


def single_flips(seed, spins, beta, flips):
    """The classic loop: one random cell at a time, in place."""
    n, m = spins.shape
    key = tp.random.key(seed)
    for t in range(flips):
        a, b = tp.random.split(tp.random.fold_in(key, t))
        i, j = tp.random.integers(a, (2,), 0, n)
        s = spins[i, j]
        nb = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % m] + spins[i, j - 1]
        if nb * s <= 0 or tp.random.uniform(b) < np.exp(-2 * beta * nb * s):
            spins[i, j] *= -1
    return spins
