"""The gradients of the benchmark: for each workload by which arguments, on which inputs, and its adjoint in C.

`GRADIENTS` is the table. Each implementation gives (value, gradients), which must agree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.inputs import Inputs
from benchmarks.workloads import BY_NAME, F64, FLOATS, I64, INTS, CFunction, Implementation, as_tuple


@dataclass(frozen=True)
class Gradient:
    """One row: `argnums` are the arguments of the workload of the same name by which its loss is differentiated."""

    name: str
    title: str
    argnums: tuple[int, ...]
    c_function: CFunction
    adapt: Callable[..., Inputs] = lambda *args: args
    rtol: float = 1e-8

    @property
    def parallel(self) -> bool:
        return BY_NAME[self.name].parallel

    def make_inputs(self, small: bool = False) -> Inputs:
        return self.adapt(*BY_NAME[self.name].make_inputs(small))

    def loss(self) -> Implementation:
        """The plain function for `tp.function`."""
        function: Implementation = getattr(import_module("benchmarks.losses"), self.name)
        return function

    def c(self) -> Implementation:
        return self.c_function.bind(f"{self.name}_adjoint")

    def agree(self, result: Any, reference: Any) -> None:
        """Raise AssertionError unless the values agree, and the gradients by their largest entries; a number alone is
        a value without gradients.
        """
        expected, others = reference
        if not isinstance(result, tuple):
            np.testing.assert_allclose(result, expected, rtol=self.rtol)
            return
        value, gradients = result
        np.testing.assert_allclose(value, expected, rtol=self.rtol)
        gradients, others = as_tuple(gradients), as_tuple(others)
        assert len(gradients) == len(others), f"{len(gradients)} gradients, expected {len(others)}"
        for one, other in zip(gradients, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=self.rtol, atol=self.rtol * np.abs(other).max())


def _with_gradients(args: tuple[Any, ...], *like: Any) -> tuple[tuple[Any, ...], Any]:
    made = tuple(np.empty_like(a) for a in like)
    return (*args, *made), made


def _pack_scalar_loop(*args: Any) -> tuple[tuple[Any, ...], Any]:
    gradient = np.empty(4)
    return (*args, gradient), tuple(gradient[k, ...] for k in range(4))  # views, which C fills


def _pack_gmm(x: Any, alpha: Any, mu: Any, q: Any, l: Any, m: int, gamma: float) -> tuple[tuple[Any, ...], Any]:
    return _with_gradients((*x.shape, len(alpha), x, alpha, mu, q, l, m, gamma), alpha, mu, q, l)


def _pack_ba(cameras: Any, points: Any, weights: Any, *rest: Any) -> tuple[tuple[Any, ...], Any]:
    sizes = len(cameras), len(points), len(weights)
    return _with_gradients((*sizes, cameras, points, weights, *rest), cameras, points, weights)


def _pack_lstm(weights: Any, extra: Any, state: Any, seq: Any) -> tuple[tuple[Any, ...], Any]:
    sizes = len(state) // 2, state.shape[1], len(seq)
    return _with_gradients((*sizes, weights, extra, state, seq), weights, extra)


def _away_from_ties(distance: Any) -> Inputs:
    """Ways from a node to itself cost something: a way that goes nowhere would tie, where there is no gradient."""
    return (distance + 50.0 * np.eye(len(distance)),)


GRADIENTS = (
    Gradient(
        "scalar_loop",
        "mean x^2 along x = a sin(b x + c), by x, a, b, c",
        (0, 1, 2, 3),
        CFunction((F64, F64, F64, F64, I64, FLOATS), _pack_scalar_loop, F64),
    ),
    Gradient(
        "bessel",
        "sum of J_2(z), by z",
        (1,),
        CFunction((I64, I64, FLOATS, FLOATS), lambda nu, z: _with_gradients((len(z), nu, z), z), F64),
    ),
    Gradient(
        "spmv",
        "|A x|^2 / 2, by the entries of A and by x",
        (2, 3),
        CFunction(
            (I64, INTS, INTS, *[FLOATS] * 4),
            lambda start, *rest: _with_gradients((len(start) - 1, start, *rest), *rest[1:]),
            F64,
        ),
    ),
    Gradient(
        "heat",
        "sum of squares of the final state, by the first",
        (0,),
        CFunction(
            (I64, I64, I64, F64, FLOATS, FLOATS),
            lambda u, steps, rate: _with_gradients((*u.shape, steps, rate, u), u),
            F64,
        ),
    ),
    Gradient(
        "gmm",
        "log posterior, by alpha, mu, q, l",
        (1, 2, 3, 4),
        CFunction((I64, I64, I64, *[FLOATS] * 5, I64, F64, *[FLOATS] * 4), _pack_gmm, F64),
    ),
    Gradient(
        "ba",
        "half the sum of squares of residuals and weight errors, by cameras, points, weights",
        (0, 1, 2),
        CFunction((I64, I64, I64, *[FLOATS] * 4, INTS, INTS, *[FLOATS] * 3), _pack_ba, F64),
    ),
    Gradient(
        "lstm",
        "loss, by weights and extra parameters",
        (0, 1),
        CFunction((I64, I64, I64, *[FLOATS] * 6), _pack_lstm, F64),
    ),
    Gradient(
        "kmeans",
        "cost, by the centroids",
        (1,),
        CFunction(
            (I64, I64, I64, *[FLOATS] * 3),
            lambda p, c: _with_gradients((len(p), len(c), p.shape[1], p, c), c),
            F64,
        ),
    ),
    Gradient(
        "logsumexp",
        "by x",
        (0,),
        CFunction((I64, FLOATS, FLOATS), lambda x: _with_gradients((len(x), x), x), F64),
    ),
    Gradient(
        "hist",
        "sum of squares of the bins, by the weights",
        (2,),
        CFunction(
            (I64, I64, INTS, FLOATS, FLOATS),
            lambda bins, k, w: _with_gradients((len(k), bins, k, w), w),
            F64,
        ),
    ),
    Gradient(
        "nbody",
        "sum of squares of the final positions, by first positions and velocities",
        (0, 1),
        CFunction(
            (I64, I64, F64, F64, *[FLOATS] * 5),
            lambda p, v, mass, *rest: _with_gradients((len(mass), *rest, mass, p, v), p, v),
            F64,
        ),
    ),
    Gradient(
        "floyd",
        "sum of all distances, by the matrix",
        (0,),
        CFunction((I64, FLOATS, FLOATS), lambda d: _with_gradients((len(d), d), d), F64),
        adapt=_away_from_ties,
    ),
)

GRADIENT_OF = {gradient.name: gradient for gradient in GRADIENTS}
