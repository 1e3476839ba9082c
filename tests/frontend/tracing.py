"""Running a function as Core in the reference evaluator, and comparing it with plain Python.

Takes a function and arguments; `check` compares values, element types, shapes and what was written into the arguments.
"""

import copy
import warnings
from typing import Any

import numpy as np

from tapeless.frontend.entry import trace
from tapeless.frontend.state.context import Options
from tapeless.interp.evaluate import evaluate
from tapeless.ir import pytree
from tapeless.passes.check.verify import verify
from tapeless.testing.stages import assemble

TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.complex64): 2e-5}


def run(function: Any, args: tuple[Any, ...], options: Options | None = None) -> tuple[Any, list[Any]]:
    """The result of the traced function, and its argument leaves afterwards."""
    traced = trace(function, args, options=options)
    verify(traced.core)
    leaves, _ = pytree.flatten((tuple(args), {}))
    given = [leaves[k] for k in traced.arguments] + [c.get() for c in traced.captured]
    results = evaluate(traced.core, given)
    kept = len(results) - len(traced.core.written)
    after = list(leaves)
    for position, value in zip(traced.core.written, results[kept:], strict=True):
        if position < len(traced.arguments):
            after[traced.arguments[position]] = value
    return assemble(traced, results, after), after


def check(function: Any, *args: Any) -> None:
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of nothing
        expected = function(*theirs)
    found, after = run(function, mine)
    same(expected, found)
    for a, b in zip(pytree.flatten((tuple(theirs), {}))[0], after, strict=True):
        same(a, b)


def same(expected: Any, found: Any) -> None:
    if isinstance(expected, tuple | list):
        assert type(expected) is type(found)
        assert len(expected) == len(found)
        for a, b in zip(expected, found, strict=True):
            same(a, b)
        return
    if isinstance(expected, np.ndarray) and expected.ndim == 0:
        expected = expected[()]  # we have no arrays of rank 0
    if isinstance(expected, np.ndarray | np.generic):
        assert isinstance(found, np.ndarray | np.generic), f"{expected!r} is of NumPy, {found!r} is not"
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
    else:
        assert type(found) is type(expected), f"expected {expected!r}, found {found!r}"
    if isinstance(expected, str | None):
        assert found == expected
        return
    rtol = TOLERANCE.get(np.asarray(expected).dtype, 1e-12)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
