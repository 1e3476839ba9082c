"""kmeans: the cost of a clustering, and Newton's direction for its centroids.

The Hessian is diagonal, so its product with a vector of ones is its diagonal: one pass of forward over reverse mode.
"""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats


def cost(points, centroids):
    def nearest(point):
        return ((centroids - point) ** 2).sum(axis=1).min()

    return tp.map(nearest, points).sum()


def direction(points, centroids):
    gradient, diagonal = tp.hvp(lambda c: cost(points, c), (centroids,), (np.ones(centroids.shape),))
    return gradient / diagonal


def arguments(given):
    return floats(given["points"]), floats(given["centroids"])


EXAMPLE = {
    "points": [[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.6, 0.1]],
    "centroids": [[0.7, 0.3], [0.6, 0.1], [0.2, 0.8]],
}
TASKS = {"cost": Task(cost, arguments), "dir": Task(direction, arguments)}
