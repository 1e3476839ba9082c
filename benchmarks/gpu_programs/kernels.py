"""The small ones: a reduction, scans, a histogram, a sparse product, lanes of long loops and a stencil, all in float32."""

import numpy as np
from scipy.special import logsumexp

import tapeless as tp
from benchmarks.gpu_programs.case import Arguments, Case, Random


def reduce(x):
    return logsumexp(x)


def make_reduce(rng: Random, n: int) -> Arguments:
    return (rng.standard_normal(n, dtype=np.float32),)


def cumprod(z):
    return np.sum(np.cumprod(z) ** 2) / len(z)


def make_cumprod(rng: Random, n: int, _kind: str) -> Arguments:
    return ((1 + 1e-4 * rng.standard_normal(n, dtype=np.float32)).astype(np.float32),)


def linear_recurrence(a, b):
    """y[i] = a[i] * y[i - 1] + b[i], as a scan of such steps."""

    def then(first, second):
        return first[0] * second[0], second[0] * first[1] + second[1]

    _, y = tp.scan(then, (1.0, 0.0), (a, b))
    return np.sum(y * y) / len(y)


def make_linear_recurrence(rng: Random, n: int, _kind: str) -> Arguments:
    return 0.5 + 0.5 * rng.random(n, dtype=np.float32), rng.standard_normal(n, dtype=np.float32)


def hist(weights, values, bins):
    keys = (values * bins).astype(np.int32)
    h = tp.hist(lambda a, b: a + b, 0.0, bins, keys, weights)
    return np.sum(h * h) / len(weights)


def make_hist(rng: Random, n: int, bins: int) -> Arguments:
    values = rng.random(n, dtype=np.float32)
    return rng.random(n, dtype=np.float32), values, bins


def spmv(entries, x, start, column):
    """The squared length of a sparse matrix (CSR) times x."""
    rows = len(start) - 1
    y = np.empty(rows, x.dtype)
    for i in tp.prange(rows):
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += entries[e] * x[column[e]]
        y[i] = total
    return np.sum(y * y)


def make_spmv(rng: Random, n: int, per_row: int) -> Arguments:
    entries = rng.standard_normal(n * per_row, dtype=np.float32)
    x = rng.standard_normal(n, dtype=np.float32)
    column = np.sort(rng.integers(0, n, (n, per_row), dtype=np.int32), axis=1).ravel()
    return entries, x, np.arange(0, n * per_row + 1, per_row, dtype=np.int32), column


def scalar_loop(p, start, steps):
    """Every lane goes many steps of Euler's method by itself."""

    def lane(x):
        for _ in range(steps):
            x = x + 1e-3 * (p[0] * (1 - x) - p[1] * x * x * x + p[2] * np.sin(x))
        return x

    end = tp.map(lane, start)
    return np.mean(end * end)


def make_scalar_loop(rng: Random, lanes: int, steps: int) -> Arguments:
    return np.array([0.7, 0.3, 0.5], np.float32), rng.standard_normal(lanes, dtype=np.float32), steps


def laplacian(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def heat(u, steps):
    """Heat flow with a fixed rim."""
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] += 0.2 * laplacian(u)
        u = new
    return np.sum(u * u)


def nonlinear_heat(u, steps):
    """Heat flow in which hot places conduct less."""
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        new = u.copy()
        new[1:-1, 1:-1] += 0.2 / (1 + inner * inner) * laplacian(u)
        u = new
    return np.sum(u * u)


def make_stencil(rng: Random, side: int, steps: int, _kind: str) -> Arguments:
    return rng.standard_normal((side, side), dtype=np.float32), steps


CASES = (
    Case(
        "reduce",
        "log of a sum of exponentials of n numbers; gradient",
        ((100_000_000,),),
        ((1000,),),
        make_reduce,
        reduce,
        tp.value_and_grad(reduce),
    ),
    Case(
        "scan_cumprod",
        "running product of n numbers; gradient",
        ((10_000_000, "cumprod"),),
        ((200, "cumprod"),),
        make_cumprod,
        cumprod,
        tp.value_and_grad(cumprod),
        "scan",
    ),
    Case(
        "scan_linrec",
        "linear recurrence of n steps; gradient by both coefficients",
        ((10_000_000, "linrec"),),
        ((200, "linrec"),),
        make_linear_recurrence,
        linear_recurrence,
        tp.value_and_grad(linear_recurrence, argnums=(0, 1)),
        "scan",
    ),
    Case(
        "hist",
        "n weights into bins; gradient by the weights",
        ((10_000_000, 10_000),),
        ((500, 16),),
        make_hist,
        hist,
        tp.value_and_grad(hist),
    ),
    Case(
        "spmv",
        "sparse matrix of n rows times a vector, so many entries per row; gradient by entries and vector",
        ((1_000_000, 16),),
        ((50, 4),),
        make_spmv,
        spmv,
        tp.value_and_grad(spmv, argnums=(0, 1)),
    ),
    Case(
        "scalar_loop",
        "lanes, and steps of each; gradient by three parameters",
        ((1024, 1_000_000),),
        ((8, 100),),
        make_scalar_loop,
        scalar_loop,
        tp.value_and_grad(scalar_loop),
    ),
    Case(
        "stencil2d_lin",
        "side of a square and steps of linear heat flow; gradient by the start",
        ((4096, 200, "lin"),),
        ((16, 8, "lin"),),
        make_stencil,
        heat,
        tp.value_and_grad(heat),
        "stencil2d",
    ),
    Case(
        "stencil2d_nonlin",
        "side of a square and steps of nonlinear heat flow; gradient by the start",
        ((4096, 200, "nonlin"),),
        ((16, 8, "nonlin"),),
        make_stencil,
        nonlinear_heat,
        tp.value_and_grad(nonlinear_heat),
        "stencil2d",
    ),
)
