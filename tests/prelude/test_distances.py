"""scipy.spatial.distance."""

import numpy as np
from scipy.spatial import distance

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

ROWS = np.sin(np.arange(15.0) * 2 + 0.3).reshape(5, 3)
OTHERS = np.cos(np.arange(12.0) ** 2).reshape(4, 3)
ONE, TWO, WEIGHTS = ROWS[0], OTHERS[1], np.array([0.5, 0.0, 2.0])
WHOLE, LATER = np.array([1, 0, 3, -2]), np.array([4, 0, 1, -2])
METRICS = "euclidean sqeuclidean cityblock chebyshev minkowski cosine correlation canberra braycurtis hamming".split()


def between_two(name):
    function = getattr(distance, name)
    return lambda u, v, w: (function(u, v), function(u, v, w=w), function(u, v[::-1]))


def between_rows(name):
    return lambda a, b: (distance.cdist(a, b, name), distance.pdist(a, name), distance.cdist(a[:0], b, metric=name))


VALUES = {
    **{name: (between_two(name), ONE, TWO, WEIGHTS) for name in METRICS},
    **{f"{name} of integers": (between_two(name), WHOLE, LATER, np.array([1, 2, 0, 3])) for name in METRICS if name != "cosine"},
    **{f"rows: {name}": (between_rows(name), ROWS, OTHERS) for name in METRICS},
    "powers": (
        lambda u, v, a, b: (
            distance.minkowski(u, v, 3), distance.minkowski(u, v, np.inf), distance.minkowski(u, v, 1.5), distance.minkowski(u, v, 1),
            distance.cdist(a, b, "minkowski", p=3.0), distance.pdist(a, "minkowski", p=np.inf),
        ),
        ONE, TWO, ROWS, OTHERS,
    ),
    "both forms": (
        lambda a: (distance.squareform(distance.pdist(a)), distance.squareform(distance.squareform(distance.pdist(a)))),
        ROWS,
    ),
    "no pair": (lambda a: (distance.pdist(a), distance.squareform(distance.pdist(a))), ROWS[:1]),
    "nothing to compare": (lambda u, v: (distance.canberra(u, v), distance.canberra(u, u)), np.array([0.0, 1.0]), np.array([0.0, -1.0])),
}  # fmt: skip
SLOPES = {
    name: tuple(WEIGHTS + 0.25 if given is WEIGHTS else given for given in case)  # none that differences turn below 0
    for name, case in VALUES.items()
    if "integers" not in name and "hamming" not in name and name != "nothing to compare"
}
ERRORS = {
    "a power of 0": (ValueError, lambda u: distance.minkowski(u, u, 0), ONE),
    "weights below 0": (ValueError, lambda u, w: distance.cityblock(u, u, w), ONE, -WEIGHTS),
    "columns": (ValueError, lambda a, b: distance.cdist(a, b), ROWS, OTHERS[:, :2]),
    "no distances": (ValueError, lambda x: distance.squareform(x), np.ones(4)),
    "not symmetric": (ValueError, lambda a: distance.squareform(a), np.arange(4.0).reshape(2, 2) * (1 - np.eye(2))),
}
REFUSED = {
    "jaccard": (lambda a: distance.cdist(a, a, "jaccard"), ROWS),
    "a function": (lambda a: distance.cdist(a, a, lambda u, v: u @ v), ROWS),
    "a vector": (lambda a: distance.cdist(a, a), ONE),
    "complex numbers": (lambda a: distance.cdist(a, a), ROWS * 1j),
}


def test_the_slope_is_0_where_vectors_are_equal():
    judge(
        lambda u, t: (distance.euclidean(u, u + t * t), distance.minkowski(u, u + t * t, 3.0)),
        ONE,
        np.zeros(3),
        order=0,
    )
    for metric in ("euclidean", "minkowski", "chebyshev", "cityblock", "sqeuclidean"):
        assert np.all(tp.grad(lambda a, m=metric: np.sum(distance.cdist(a, a[:1], m)))(ROWS[:1]) == 0)
