"""The workloads: for each its inputs, its four implementations and how closely they must agree.

`WORKLOADS` is the table. A `Workload` gives callables that take the inputs and return fresh results, whatever they
call: NumPy, Numba, C through ctypes, or a plain function for `tp.function`.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from benchmarks import inputs, native, with_numpy

Implementation: TypeAlias = Callable[..., Any]

F64, I64 = ctypes.c_double, ctypes.c_int64
FLOATS = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
INTS = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")


@dataclass(frozen=True)
class CFunction:
    """A C function. `pack` takes the workload's inputs and gives C's arguments and its output: None for what it
    returns; else arrays, after what it returns if it does.
    """

    argtypes: tuple[Any, ...]
    pack: Callable[..., tuple[tuple[Any, ...], Any]]
    restype: Any = None

    def bind(self, name: str, *, fast: bool = False) -> Implementation:
        function = getattr(native.load(name, fast=fast), name)
        function.argtypes, function.restype = self.argtypes, self.restype
        pack, both = self.pack, self.restype is not None

        def call(*args: Any) -> Any:
            c_args, output = pack(*args)
            returned = function(*c_args)
            if output is None:
                return returned
            return (returned, output) if both else output

        return call


@dataclass(frozen=True)
class Workload:
    """One row of the benchmark; `name` is also the name of the function in C and in each module of implementations."""

    name: str
    title: str
    c_function: CFunction
    parallel: bool = True
    rtol: float = 1e-9
    atol: float = 0.0

    def make_inputs(self, small: bool = False) -> inputs.Inputs:
        made: inputs.Inputs = getattr(inputs, self.name)(small)
        return made

    def c(self, *, fast: bool = False) -> Implementation:
        return self.c_function.bind(self.name, fast=fast)

    def numpy(self) -> Implementation:
        function: Implementation = getattr(with_numpy, self.name)
        return function

    def numba(self, *, parallel: bool) -> Implementation:
        function: Implementation = import_module("benchmarks.with_numba").compile_for(self.name, parallel=parallel)
        return function

    def tapeless(self) -> Implementation:
        """The plain function for `tp.function`; raises ImportError where this project is not installed."""
        function: Implementation = getattr(import_module("benchmarks.programs"), self.name)
        return function

    def agree(self, result: Any, reference: Any) -> None:
        """Raise AssertionError with the worst entry unless the two results agree."""
        got, expected = as_tuple(result), as_tuple(reference)
        assert len(got) == len(expected), f"{len(got)} results, expected {len(expected)}"
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=self.rtol, atol=self.atol)


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _with_output(args: tuple[Any, ...], *outputs: Any) -> tuple[tuple[Any, ...], Any]:
    return (*args, *outputs), outputs if len(outputs) > 1 else outputs[0]


def _pack_spmv(start: Any, column: Any, value: Any, x: Any) -> tuple[tuple[Any, ...], Any]:
    rows = len(start) - 1
    return _with_output((rows, start, column, value, x), np.empty(rows))


def _pack_gmm(x: Any, alpha: Any, mu: Any, q: Any, l: Any, m: int, gamma: float) -> tuple[tuple[Any, ...], Any]:
    return (*x.shape, len(alpha), x, alpha, mu, q, l, m, gamma), None


def _pack_ba(*arrays: Any) -> tuple[tuple[Any, ...], Any]:
    p = len(arrays[2])
    return _with_output((p, *arrays), np.empty((p, 2)), np.empty(p))


def _pack_lstm(weights: Any, extra: Any, state: Any, seq: Any) -> tuple[tuple[Any, ...], Any]:
    return (len(state) // 2, state.shape[1], len(seq), weights, extra, state, seq), None


def _pack_nbody(
    position: Any, velocity: Any, mass: Any, steps: int, dt: float, softening: float
) -> tuple[tuple[Any, ...], Any]:
    args = (len(mass), steps, dt, softening, mass, position, velocity)
    return _with_output(args, np.empty_like(position), np.empty_like(velocity))


WORKLOADS = (
    Workload(
        "scalar_loop",
        "x = a sin(b x + c), 1e6 steps",
        CFunction((F64, F64, F64, F64, I64), lambda *args: (args, None), F64),
        parallel=False,
    ),
    Workload(
        "bessel",
        "J_2(z) by its series, 1e5 values",
        CFunction(
            (I64, I64, FLOATS, FLOATS),
            lambda nu, z: _with_output((len(z), nu, z), np.empty_like(z)),
        ),
        atol=1e-11,  # NumPy goes on until the slowest element has converged
    ),
    Workload(
        "spmv",
        "CSR times vector, 1e5 rows, 10 per row",
        CFunction((I64, INTS, INTS, FLOATS, FLOATS, FLOATS), _pack_spmv),
        atol=1e-12,
    ),
    Workload(
        "heat",
        "five-point stencil 512x512, 100 steps",
        CFunction(
            (I64, I64, I64, F64, FLOATS, FLOATS),
            lambda u, steps, rate: _with_output((*u.shape, steps, rate, u), np.empty_like(u)),
        ),
    ),
    Workload(
        "gmm",
        "Gaussian mixture, n=1000 d=64 k=50",
        CFunction((I64, I64, I64, *[FLOATS] * 5, I64, F64), _pack_gmm, F64),
    ),
    Workload(
        "ba",
        "reprojection of 1e5 observations",
        CFunction((I64, *[FLOATS] * 4, INTS, INTS, FLOATS, FLOATS), _pack_ba),
        atol=1e-10,
    ),
    Workload(
        "lstm",
        "2 layers, 1024 steps, 14 wide",
        CFunction((I64, I64, I64, *[FLOATS] * 4), _pack_lstm, F64),
        parallel=False,
    ),
    Workload(
        "kmeans",
        "cost, k=100 n=10000 d=16",
        CFunction(
            (I64, I64, I64, FLOATS, FLOATS),
            lambda p, c: ((len(p), len(c), p.shape[1], p, c), None),
            F64,
        ),
    ),
    Workload(
        "logsumexp",
        "of 1.28e6 values",
        CFunction((I64, FLOATS), lambda x: ((len(x), x), None), F64),
    ),
    Workload(
        "hist",
        "1e7 weights into 1e4 bins",
        CFunction(
            (I64, I64, INTS, FLOATS, FLOATS),
            lambda bins, k, w: _with_output((len(k), bins, k, w), np.empty(bins)),
        ),
    ),
    Workload(
        "nbody",
        "1000 bodies, 10 steps, all pairs",
        CFunction((I64, I64, F64, F64, *[FLOATS] * 5), _pack_nbody),
        atol=1e-9,
    ),
    Workload(
        "floyd",
        "all shortest paths, 300 nodes",
        CFunction(
            (I64, FLOATS, FLOATS),
            lambda d: _with_output((len(d), d), np.empty_like(d)),
        ),
    ),
)

BY_NAME = {workload.name: workload for workload in WORKLOADS}
