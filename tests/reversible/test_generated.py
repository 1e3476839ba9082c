"""Generated reversible functions: back to the start, the inverse as text too; the gradient is that of the plain form."""

import importlib.util
import itertools
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tapeless as tp
from tapeless.ops.exact import order
from tests.reversible.generated import HEADER, programs

pytestmark = pytest.mark.usefixtures("_without_llvm_passes")
number = itertools.count()


def module_of(text, folder):
    name = f"generated_{next(number)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def copied(state):
    return tuple(v.copy() if isinstance(v, np.ndarray | tp.fixed43) else v for v in state)


def same(found, wanted, tolerance=1e-9):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def units(state):
    return [np.asarray(order(v.pattern)).tolist() if isinstance(v, tp.fixed43) else v for v in state]


@pytest.mark.thorough
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(sums=True), st.integers(0, 2**32))
def test_there_and_back_to_the_last_bit(tmp_path_factory, text, seed):
    f = module_of(text, tmp_path_factory.mktemp("generated")).program
    rng = np.random.default_rng(seed)
    floats = [float(rng.uniform(-1, 1)), float(rng.uniform(-1, 1)), rng.uniform(-1, 1, 4)]
    start = (*map(tp.fixed43, floats), int(rng.integers(9)))
    first = units(start)
    try:
        wanted = units(f.python(*copied(start)))
    except tp.InvertibilityError:
        assume(False)
    end = f(*copied(start))
    assert units(end) == wanted
    assert units((~f)(*copied(end))) == first

    def loss(a, b, x, n):
        a, b, x, _ = f(a, b, x, n)
        return a + b * b + np.sum(x * x)

    found = tp.grad(loss, argnums=(0, 1, 2))(*start)
    for a, b in zip(found, tp.grad(loss, argnums=(0, 1, 2))(*(floats), start[3]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.thorough
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 2**32))
def test_there_and_back(tmp_path_factory, text, seed):
    folder = tmp_path_factory.mktemp("generated")
    f = module_of(text, folder).program
    rng = np.random.default_rng(seed)
    start = (float(rng.uniform(-1, 1)), float(rng.uniform(-1, 1)), rng.uniform(-1, 1, 4), int(rng.integers(9)))
    try:
        wanted = f.python(*copied(start))
    except tp.InvertibilityError:
        assume(False)
    end = f(*copied(start))
    same(end, wanted, 1e-12)
    back = (~f)(*copied(end))
    same(back, start)
    assert back[3] == start[3]
    # the text of the inverse is a function, whose inverse is the function
    assert (~(~f)).source == f.source
    other = module_of(HEADER.partition("@tp.reversible\ndef program")[0] + (~f).source, folder).program_inverse
    same(other(*copied(end)), back, 1e-13)
    assert (~other).source == f.source

    def reversible(a, b, x):
        a, b, x, _ = f(a, b, x, start[3])
        return a + b * b + np.sum(x * x)

    plain_form = f.unchecked

    def plain(a, b, x):
        a, b, x, _ = plain_form(a, b, x, start[3])
        return a + b * b + np.sum(x * x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tp.InversionDrift)
        found = tp.grad(reversible, argnums=(0, 1, 2))(*start[:3])
    expected = tp.grad(plain, argnums=(0, 1, 2))(*start[:3])
    size = max(1.0, *(float(np.max(np.abs(e))) for e in expected))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * size)
