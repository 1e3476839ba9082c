"""The benchmark programs for a GPU, run on the CPU at a tiny size: values by plain Python, derivatives by differences.

Differences are taken of compiled values in float64, in random directions; programs in float32 are compiled for both. In
two programs a few terms outweigh all others, so that differences would not see these: there the numbers are made tamer.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tp
from benchmarks.gpu_programs import CASES
from benchmarks.gpu_programs.case import Arguments, Case
from tapeless.backends.cuda.host_code import DeviceHost
from tapeless.backends.llvm import host
from tapeless.backends.llvm.emit import emit
from tapeless.backends.llvm.ptx import libdevice, ptx
from tapeless.testing.compare import Returned
from tapeless.testing.stages import on_device


def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, tuple):
        return tuple(mapped(change, part) for part in tree)
    return change(tree) if isinstance(tree, np.ndarray) else tree


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [np.asarray(tree)]


def in_float64(tree: Any) -> Any:
    return mapped(lambda a: a.astype(np.float64) if a.dtype == np.float32 else a, tree)


def with_first(change: Callable[[np.ndarray], None], arguments: Arguments) -> Arguments:
    first = arguments[0].copy()
    change(first)
    return first, *arguments[1:]


def even_energies(grid: np.ndarray) -> None:
    """Energies of equal distance: the slopes are inverse to it."""
    grid[:, :, 0] = np.linspace(0.0, 1.0, grid.shape[1])


def narrow_resonances(poles: np.ndarray) -> None:
    """Without these, terms grow to 1e30."""
    poles[:, :, 1] /= 152.5


TAMED = {"xsbench": even_energies, "rsbench": narrow_resonances}
BLOCKS = {"ba", "hand"}  # with Jacobians
NEWTON = {"kmeans", "kmeans_sparse"}  # with a gradient and a product with the Hessian
BY = {
    **dict.fromkeys(("scan_linrec", "spmv", "hand", "dlstm"), 2),
    **dict.fromkeys(("gmm", "ba"), 3),
}  # of how many arguments, the first ones, derivatives are taken, if not of one


def along(f: Callable[..., Any], arguments: Arguments, directions: Arguments, h: float = 1e-5) -> list[np.ndarray]:
    """Derivatives of all results in one direction, by differences of fourth order."""

    def at(by: float) -> list[np.ndarray]:
        count = len(directions)
        moved = [shifted(a, d, by) for a, d in zip(arguments[:count], directions, strict=True)]
        return leaves(f(*moved, *arguments[count:]))

    return [
        (8 * (up - down) - (up2 - down2)) / (12 * h)
        for up, down, up2, down2 in zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)
    ]


def shifted(argument: Any, direction: Any, by: float) -> Any:
    if isinstance(argument, tuple):
        return tuple(shifted(a, d, by) for a, d in zip(argument, direction, strict=True))
    return argument + by * direction


def product(gradient: Any, directions: Any) -> float:
    return sum(float(np.sum(g * d)) for g, d in zip(leaves(gradient), leaves(directions), strict=True))


def jacobian_times(name: str, found: Any, arguments: Arguments, directions: Arguments) -> list[np.ndarray]:
    if name == "hand":
        return [sum(by @ d for by, d in zip(found, directions, strict=True))]
    blocks, by_weight = found
    cameras, points, weights = directions
    q = np.concatenate((cameras[arguments[3]], points[arguments[4]], weights[:, None]), axis=1)
    return [np.einsum("pij,pj->pi", blocks, q), by_weight * weights]


def close(found: Any, expected: Any, rtol: float) -> None:
    """Entries agree to so many of the largest one."""
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert one.shape == other.shape
        assert np.all(np.isfinite(other)) and np.any(other != 0.0)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())


CHOSEN = pytest.mark.parametrize(
    ("case", "size"), [pytest.param(c, size, id=c.name) for c in CASES.values() for size in c.tiny]
)


@pytest.mark.sampled(3)
@CHOSEN
def test_value_is_that_of_plain_python(case: Case, size: Any) -> None:
    arguments = case.make(size)
    found, expected = tp.function(case.value)(*arguments), case.value(*arguments)
    single = any(leaf.dtype == np.float32 for leaf in leaves(arguments))
    assert leaves(found)[0].dtype == leaves(expected)[0].dtype == (np.float32 if single else np.float64)
    close(found, expected, 1e-5 if single else 1e-11)


@pytest.mark.thorough
@CHOSEN
def test_gradient_is_that_of_differences(case: Case, size: Any) -> None:
    given = case.make(size)
    arguments = in_float64(given)
    if case.name in TAMED:
        arguments = with_first(TAMED[case.name], arguments)
    gradient = tp.function(case.gradient)
    rng = np.random.default_rng(99)
    directions = mapped(lambda a: rng.normal(size=a.shape), arguments[: BY.get(case.name, 1)])
    found, value = gradient(*arguments), tp.function(case.value)
    slopes = along(value, arguments, directions)
    if case.name in BLOCKS:
        close(tuple(jacobian_times(case.name, found, arguments, directions)), tuple(slopes), 1e-5)
    elif case.name in NEWTON:
        close(product(found[0], directions), slopes[0], 1e-5)
        ones = (np.ones_like(arguments[0]),)
        close(found[1], along(gradient, arguments, ones)[0], 1e-5)
    else:
        close(found[0], leaves(value(*arguments))[0], 1e-11)
        parts = found[1] if isinstance(found[1], tuple) else (found[1],)
        close(product(parts, directions), slopes[0], 1e-5)
    if any(leaf.dtype == np.float32 for leaf in leaves(given)):
        in_single = gradient(*given)
        assert {leaf.dtype for leaf in leaves(in_single)} == {np.dtype(np.float32)}
        close(in_single, found, 1e-3)


@CHOSEN
def test_data_are_the_same_in_every_run(case: Case, size: Any) -> None:
    for one, other in zip(leaves(case.make(size)), leaves(case.make(size)), strict=True):
        np.testing.assert_array_equal(one, other)


SLOW = {"rsbench", "xsbench", "hand", "lbm"}  # in the interpreter


@pytest.mark.thorough
@pytest.mark.parametrize("which", ["value", "gradient"])
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES])
def test_programs_for_a_gpu(name: str, which: str) -> None:
    """Host and kernels by the interpreter, with its detector of races; and as code for both."""
    case = CASES[name]
    function = getattr(case, which)
    python = getattr(function, "python", function)
    args = case.make(case.tiny[0])
    outcome, lowered = on_device(python, lambda: copy.deepcopy(list(args)), seed=1)
    assert isinstance(outcome, Returned), outcome
    want = tp.function(python)(*copy.deepcopy(list(args)))
    for x, y in zip(leaves(outcome.result), leaves(want), strict=True):
        size = np.max(np.abs(y), initial=0.0)
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4 * size + 1e-30)
    if libdevice() is not None:
        ptx(lowered.program, "sm_90")
    emit(lowered.program, host.host(), code=DeviceHost)
