"""gmm: the log posterior of a Gaussian mixture with a Wishart prior on its precisions."""

import math

import numpy as np

import tapeless as tp
from benchmarks.gradbench.lse import primal as logsumexp
from benchmarks.gradbench.task import Task, floats


def lower_triangle(q, l):
    """exp(q) on the diagonal, `l` below it, packed column by column."""
    d = len(q)
    Q = np.zeros((d, d))
    at = 0
    for j in range(d):
        Q[j, j] = np.exp(q[j])
        for i in range(j + 1, d):
            Q[i, j] = l[at]
            at += 1
    return Q


def log_wishart_constant(d, k, m, gamma):
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        log_gamma += math.lgamma(0.5 * (freedom - j))
    return k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma)


def objective(alpha, mu, q, l, x, m, gamma):
    n, d = x.shape
    k = len(alpha)

    def component(c):
        Q = lower_triangle(q[c], l[c])
        z = (x - mu[c]) @ Q.T
        return alpha[c] + q[c].sum() - 0.5 * (z * z).sum(axis=1), (Q * Q).sum()

    score, squares = tp.map(component, k)
    top = score.max(axis=0)
    likelihood = (top + np.log(np.exp(score - top).sum(axis=0))).sum() - n * logsumexp(alpha)
    prior = log_wishart_constant(d, k, m, gamma) + m * q.sum() - 0.5 * gamma * gamma * squares.sum()
    return likelihood + prior - 0.5 * n * d * math.log(2.0 * math.pi)


def jacobian(alpha, mu, q, l, x, m, gamma):
    return tp.grad(objective, argnums=(0, 1, 2, 3))(alpha, mu, q, l, x, m, gamma)


def arguments(given):
    parameters = tuple(floats(given[name]) for name in ("alpha", "mu", "q", "l"))
    d, k = int(given["d"]), int(given["k"])
    return (
        *parameters[:3],
        parameters[3].reshape(k, d * (d - 1) // 2),
        floats(given["x"]),
        int(given["m"]),
        float(given["gamma"]),
    )


def by_name(result, _arguments):
    return {name: part.tolist() for name, part in zip(("alpha", "mu", "q", "l"), result, strict=True)}


def example():
    d, k, n = 4, 3, 5
    some = lambda *shape: np.linspace(0.1, 0.9, math.prod(shape)).reshape(shape).tolist()
    l = some(k, d * (d - 1) // 2)
    return {
        "d": d,
        "k": k,
        "n": n,
        "x": some(n, d),
        "m": 0,
        "gamma": 1.0,
        "alpha": some(k),
        "mu": some(k, d),
        "q": some(k, d),
        "l": l,
    }


EXAMPLE = example()
TASKS = {"objective": Task(objective, arguments), "jacobian": Task(jacobian, arguments, by_name)}
