"""Random numbers from keys: `tp.random.key, split, fold_in, uniform, normal, integers, bernoulli, exponential, choice,
permutation`.

The functions are ordinary NumPy code, in plain Python and compiled alike. A number depends on its key and its place
alone, so that the bits are the same on every device, on any number of threads, and when they are drawn again on the way
back of a derivative.

Note [Threefry]
Bits are those of Threefry with two words of 32 bits and 20 rounds (J. Salmon and others, Parallel random numbers: as easy
as 1, 2, 3, 2011), on 64-bit integers that never overflow. The counter of a draw is its place, which has 2^62 values;
keys are split with a second word that no draw has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WORD = 0xFFFFFFFF
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
SPLIT, FOLD = 0xFFFFFFFF, 0xFFFFFFFE  # second words


def key(seed: Any) -> Any:
    """A key: two words in an array of int64. Different seeds give streams that have nothing to do with each other."""
    return np.array([(seed >> 32) & WORD, seed & WORD], dtype=np.int64)


def split(key: Any, num: int = 2) -> Any:
    """`num` keys of a key, as rows. Use each key once: for a draw, or to be split."""
    first, second = _threefry(key, np.arange(num), SPLIT)
    return np.stack((first, second), axis=-1)


def fold_in(key: Any, data: Any) -> Any:
    """A key of a key and a number, such as the number of a step in a loop."""
    first, second = _threefry(key, data & WORD, FOLD)
    return np.array([first, second], dtype=np.int64)


def uniform(key: Any, shape: Any = (), minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Numbers from minval to below maxval."""
    return minval + (maxval - minval) * _fractions(key, _places(shape, 0, 1))


def normal(key: Any, shape: Any = ()) -> Any:
    """Numbers of the standard normal distribution."""
    radius = np.sqrt(-2.0 * np.log1p(-_fractions(key, _places(shape, 0, 2))))
    return radius * np.cos(2 * np.pi * _fractions(key, _places(shape, 1, 2)))


def exponential(key: Any, shape: Any = ()) -> Any:
    return -np.log1p(-_fractions(key, _places(shape, 0, 1)))


def bernoulli(key: Any, p: Any = 0.5, shape: Any = ()) -> Any:
    """Bools that are true with probability `p`."""
    return _fractions(key, _places(shape, 0, 1)) < p


def integers(key: Any, shape: Any, minval: Any, maxval: Any) -> Any:
    """Whole numbers from minval to below maxval, which is less than 2^53 away."""
    return minval + np.floor(_fractions(key, _places(shape, 0, 1)) * (maxval - minval)).astype(np.int64)


def permutation(key: Any, x: Any) -> Any:
    """The numbers below x, or the rows of the array x, in random order."""
    if np.ndim(x) == 0:
        return np.argsort(_fractions(key, np.arange(x)), kind="stable")
    return x[np.argsort(_fractions(key, np.arange(x.shape[0])), kind="stable")]


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None) -> Any:
    """Elements of the vector `a`, or whole numbers below `a`; with `p`, by these probabilities.

    Without `replace` none is taken twice.
    """
    count = a if np.ndim(a) == 0 else a.shape[0]
    if replace:
        if p is None:
            at = integers(key, shape, 0, count)
        else:
            sums = np.cumsum(p)
            found = np.searchsorted(sums, uniform(key, shape) * sums[-1], side="right")
            at = np.minimum(found, count - 1)
    elif p is None:
        at = np.reshape(permutation(key, count)[: _size(shape)], shape)
    else:  # the first of exponential waiting times at these rates
        waits = exponential(key, (count,)) / np.asarray(p)
        at = np.reshape(np.argsort(waits, kind="stable")[: _size(shape)], shape)
    return at if np.ndim(a) == 0 else a[at]


# -- bits


def _size(shape: Any) -> Any:
    total = 1
    for size in shape if isinstance(shape, tuple) else (shape,):
        total *= size
    return total


def _places(shape: Any, first: int, step: int) -> Any:
    """A number for each element, from `first`."""
    if isinstance(shape, tuple) and len(shape) == 0:
        return first
    return np.reshape(np.arange(_size(shape)) * step + first, shape)


def _fractions(key: Any, places: Any) -> Any:
    """Multiples of 2^-53 from 0 to below 1."""
    first, second = _threefry(key, places & WORD, places >> 32)
    return ((first >> 5) * 67108864.0 + (second >> 6)) * 1.1102230246251565e-16


def _threefry(key: Any, first: Any, second: Any) -> Any:
    """Note [Threefry]"""
    words = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (first + words[0]) & WORD, (second + words[1]) & WORD
    for block in (0, 1, 2, 3, 4):
        for turn in ROTATIONS[block % 2]:
            x = (x + y) & WORD
            y = (((y << turn) & WORD) | (y >> (32 - turn))) ^ x
        x = (x + words[(block + 1) % 3]) & WORD
        y = (y + words[(block + 2) % 3] + block + 1) & WORD
    return x, y
