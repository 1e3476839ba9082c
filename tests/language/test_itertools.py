"""Functions of `itertools` in compiled code, as Python has them."""

from __future__ import annotations

import itertools
from itertools import chain, combinations, pairwise, permutations, product

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same, same_values
from tests.quick import unoptimized  # noqa: F401  (for all tests here)


def grid(x):
    total = 0.0
    for i, j in product(range(3), range(2)):
        total += x[i, j] * (i + 1) ** j
    return total


def cubes(x):
    return sum(x**a * b - c for a, b, c in product((1, 2), repeat=3))


def pairs(p):
    energy = 0.0
    for i, j in combinations(range(len(p)), 2):
        energy += 1.0 / np.sqrt(np.sum((p[i] - p[j]) ** 2))
    return energy


def determinant(a):
    total = 0.0
    for order in permutations(range(3)):
        sign = 1
        for i, j in combinations(order, 2):
            if i > j:
                sign = -sign
        total += sign * a[0, order[0]] * a[1, order[1]] * a[2, order[2]]
    return total


def joined(x):
    return [x * k for k in chain((1, 2), [3], range(2))], list(itertools.combinations_with_replacement((1, x), 2))


def steps(x):
    return sum(abs(b - a) for a, b in pairwise(x)), [b - a for a, b in pairwise((1.0, 3.0, 6.0))]


P = np.random.default_rng(0).normal(size=(4, 3))


def test_of_known_items():
    same(grid, P[:3])
    same(cubes, 0.5)
    same(determinant, P[:3])
    np.testing.assert_allclose(determinant(P[:3]), np.linalg.det(P[:3]))
    same(joined, 0.5)
    same(lambda x: [x * len(c) for c in combinations((1, 2), 3)], 0.5)
    same(lambda x: sum(x + a for (a,) in permutations((1, 2), r=1)), 0.5)


def test_pairs_of_arrays():
    for n in (0, 1, 2, 4):
        same_values(steps, P[:n, 0])


def test_slopes():
    points = [*P]
    gradient = tp.grad(lambda *p: pairs(p), argnums=(0, 1, 2, 3))(*points)
    for k, row in enumerate(gradient):
        for i in range(3):
            moved = []
            for step in (1e-6, -1e-6):
                near = [p.copy() for p in points]
                near[k][i] += step
                moved.append(pairs(near))
            np.testing.assert_allclose(row[i], (moved[0] - moved[1]) / 2e-6, rtol=1e-6)


def kept(x):
    them = combinations((1, 2, 3), 2)
    return sum(x * a for a, _ in them) + sum(x * b for _, b in them)


def of_unknown_length(x, n):
    return sum(x * a for a, _ in product(range(n), range(n)))


def too_many(x):
    return sum(x for _ in product(range(100), repeat=4))


def test_refused():
    for f, args, reason in (
        (kept, (1.0,), "gone over once"),
        (of_unknown_length, (1.0, 3), "length known at compile time"),
        (too_many, (1.0,), "cannot be compiled"),
    ):
        with pytest.raises(tp.CompileError, match=reason):
            tp.function(f)(*args)


# -- all elements of an array


def by_indices(x):
    total = 0.0
    for i, j in np.ndindex(*x.shape):
        total += x[i, j] * (i + 2 * j)
    return total


def by_tuples(x):
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        out[at] = x[at] ** 2 + at[0]
    return out


def with_elements(x):
    out = np.zeros(x.shape)
    for (i, j), e in np.ndenumerate(x):
        out[i, j] = e * e + i
    return out


def with_elements_by_tuples(x):
    best, where = -np.inf, 0
    for at, e in np.ndenumerate(x):
        if e > best:
            best, where = e, at[-1]
    return best, where


def of_one_axis(x):
    total = 0.0
    for (i,) in np.ndindex(x.shape[0]):
        total += x[i, 0] * i
    return total


@pytest.mark.sampled(2, each="f")
@pytest.mark.parametrize(
    "f", [by_indices, by_tuples, with_elements, with_elements_by_tuples, of_one_axis], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (0, 3), (2, 1)])
def test_elements_of_arrays(f, shape):
    x = np.random.default_rng(1).normal(size=shape)
    (same if x.size else same_values)(f, x)
    if f in (by_indices, by_tuples, with_elements) and x.size:
        tp.check_grads(f, (x,))


def test_three_axes_and_none():
    def volume(x):
        return [x[i, j, k] * i - j + k for i, j, k in np.ndindex(2, 3, 2)]

    same(volume, np.arange(12.0).reshape(2, 3, 2))
    with pytest.raises(tp.CompileError, match="no axes to go along"):
        tp.function(lambda x: [x for _ in np.ndindex()])(1.0)
    with pytest.raises(ValueError, match="negative dimensions"):
        tp.function(lambda x, n: sum(x * i for i, j in np.ndindex(n, 2)))(1.0, -1)
