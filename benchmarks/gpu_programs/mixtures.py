"""Clusters of points: k-means, dense and sparse, in float32, and a mixture of Gaussians in float64.

k-means is taken a step of Newton's method: its Hessian is diagonal, so its product with ones is all of it.
"""

import math

import numpy as np
from scipy.special import logsumexp

import tapeless as tp
from benchmarks.gpu_programs.case import Arguments, Case, Random


def kmeans(centroids, points):
    def nearest(point):
        return np.min(np.sum((centroids - point) ** 2, axis=1))

    return np.sum(tp.map(nearest, points))


def kmeans_newton(centroids, points):
    return tp.hvp(lambda c: kmeans(c, points), (centroids,), (np.ones_like(centroids),))


def make_kmeans(rng: Random, n: int, d: int, k: int) -> Arguments:
    points = rng.standard_normal((n, d), dtype=np.float32)
    return points[::-1][:k].copy(), points


def kmeans_sparse(centroids, entries, start, column):
    """The points are the rows of a sparse matrix (CSR)."""
    squares = np.sum(centroids * centroids, axis=1)

    def nearest(row):
        own = 0.0
        for e in range(start[row], start[row + 1]):
            own += entries[e] * entries[e]
        best = np.inf
        for c in range(len(centroids)):
            product = 0.0
            for e in range(start[row], start[row + 1]):
                product += entries[e] * centroids[c, column[e]]
            best = np.minimum(best, squares[c] - 2 * product)
        return own + best

    return np.sum(tp.map(nearest, len(start) - 1))


def kmeans_sparse_newton(centroids, entries, start, column):
    return tp.hvp(lambda c: kmeans_sparse(c, entries, start, column), (centroids,), (np.ones_like(centroids),))


def sorted_columns(rng: Random, rows: int, width: int, columns: int) -> np.ndarray:
    """A row at a time; small numbers are more frequent."""
    u = rng.random((rows, width), dtype=np.float32)
    drawn = np.minimum((u * u * np.float32(columns)).astype(np.int32), columns - 1)
    return np.sort(drawn, axis=1).ravel()


def make_kmeans_sparse(rng: Random, rows: int, columns: int, entries: int, k: int) -> Arguments:
    """As many entries in every row, but for one more in the first ones; the first k rows are the centroids."""
    width, longer = divmod(entries, rows)
    column = np.concatenate(
        [sorted_columns(rng, longer, width + 1, columns), sorted_columns(rng, rows - longer, width, columns)]
    )
    start = np.zeros(rows + 1, np.int32)
    start[1:] = np.cumsum(np.where(np.arange(rows) < longer, width + 1, width))
    values = rng.random(entries, dtype=np.float32) + np.float32(0.5)
    centroids = np.zeros((k, columns), np.float32)
    for row in range(k):
        own = slice(start[row], start[row + 1])
        np.add.at(centroids[row], column[own], values[own])
    return centroids, values, start, column


def lower_triangle(diagonal, below):
    """exp(diagonal), and `below` it what is packed column by column."""
    d = len(diagonal)
    Q = np.zeros((d, d))
    at = 0
    for j in range(d):
        Q[j, j] = np.exp(diagonal[j])
        for i in range(j + 1, d):
            Q[i, j] = below[at]
            at += 1
    return Q


def log_wishart_constant(d, k, gamma, m):
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        log_gamma += math.lgamma(0.5 * (freedom - j))
    return k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma)


def gmm(alphas, means, icf, x, gamma, m):
    """The log posterior of a mixture of Gaussians; a row of `icf` is a factor of a component's precision."""
    n, d = x.shape
    k = len(alphas)

    def component(c):
        Q = lower_triangle(icf[c, :d], icf[c, d:])
        y = (x - means[c]) @ Q.T
        return alphas[c] + np.sum(icf[c, :d]) - 0.5 * np.sum(y * y, axis=1), np.sum(Q * Q)

    scores, squares = tp.map(component, k)
    likelihood = np.sum(logsumexp(scores, axis=0)) - n * logsumexp(alphas)
    prior = 0.5 * gamma * gamma * np.sum(squares) - m * np.sum(icf[:, :d]) - log_wishart_constant(d, k, gamma, m)
    return likelihood + prior - 0.5 * n * d * math.log(2.0 * math.pi)


def make_gmm(rng: Random, n: int, d: int, k: int) -> Arguments:
    alphas, means = rng.normal(size=k), rng.normal(size=(k, d))
    icf = rng.normal(size=(k, d * (d + 1) // 2)) * (0.3 / math.sqrt(d))
    return alphas, means, icf, rng.normal(size=(n, d)), 1.0, 0


CASES = (
    Case(
        "kmeans",
        "n points of d numbers, k centroids; gradient and diagonal of the Hessian",
        ((494_019, 35, 5), (10_000, 256, 200), (2_000_000, 10, 1024)),
        ((200, 4, 3),),
        make_kmeans,
        kmeans,
        kmeans_newton,
    ),
    Case(
        "kmeans_sparse",
        "rows, columns and entries of the points, k centroids; gradient and diagonal of the Hessian",
        ((6040, 3706, 1_000_209, 10), (66_985, 6400, 35_000_000, 10), (300_000, 102_660, 69_679_427, 10)),
        ((60, 30, 500, 10),),
        make_kmeans_sparse,
        kmeans_sparse,
        kmeans_sparse_newton,
    ),
    Case(
        "gmm",
        "n points of d numbers, k components; gradient by weights, means and precisions",
        (
            (1000, 64, 200),
            (1000, 128, 200),
            (10_000, 32, 200),
            (10_000, 64, 25),
            (10_000, 128, 25),
            (10_000, 128, 200),
        ),
        ((50, 5, 4),),
        make_gmm,
        gmm,
        tp.value_and_grad(gmm, argnums=(0, 1, 2)),
    ),
)
