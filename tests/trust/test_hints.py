"""Every hint about a name that cannot be compiled is true: what it tells to write compiles and gives the same.

A row is the key of a hint, a program that gets it, the program with the hint followed, and the arguments. `test_every_hint_has_a_row`
holds the rows to the tables of `frontend/state/advice.py`.
"""

import collections
import copy
import functools
import heapq
import itertools
import math
import pdb
import random
import statistics
import time

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

import tapeless as tp
from tapeless.frontend.numpy.methods import REFUSED
from tapeless.frontend.state import advice, refusals
from tapeless.frontend.state.handlers import find_handler
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([3.0, 1.0, 2.0, 1.0])
M = np.array([[4.0, 1.0], [1.0, 3.0]])
ZEROS = np.array([0.0, 1.0, 0.0, 2.0, 0.0])
KEY = tp.random.key(1)


def first(x):
    for v in x:
        return v
    return 0.0


def running(items):
    total, found = 0.0, 0.0
    for v in items:
        total += v
        found += total
    return found


def trimmed(x):
    i = np.flatnonzero(x)
    return x[i[0] : i[-1] + 1]


@functools.lru_cache
def remembered(x):
    return x * 2


def simpson(x):
    total = 0.0
    for i in range(1, len(x), 2):
        total += (x[i - 1] + 4 * x[i] + x[i + 1]) / 3
    return total


def newton(x):
    y = x
    for _ in range(30):
        y = y - (y * y - x) / (2 * y)
    return y


FOLLOWED = {
    "iter": (lambda x: next(iter(x)), first, X),
    "next": (lambda x: next(v for v in x), first, X),
    "set": (lambda x: len(set(x)), lambda x: len(np.unique(x)), X),
    "frozenset": (lambda x: x in frozenset((1, 2)), lambda x: x in (1, 2), 2),
    "functools.*": (lambda x: functools.lru_cache(lambda t: t * 2)(x), lambda x: remembered(x), 2.0),
    "itertools.*": (lambda x: sum(itertools.accumulate((x, 2.0))), lambda x: running((x, 2.0)), 2.0),
    "collections.defaultdict": (lambda x: collections.defaultdict(float, a=x)["a"], lambda x: {"a": x}["a"], 1.0),
    "collections.Counter": (lambda k: collections.Counter(k)[2], lambda k: np.bincount(k)[2], np.array([1, 2, 2])),
    "heapq.*": (lambda x: heapq.nsmallest(2, x)[1], lambda x: sorted(x)[1], X),
    "copy.*": (lambda x: copy.copy(x), lambda x: x.copy(), X),
    "math.fsum": (lambda x: math.fsum(x), lambda x: sum(x), X),
    "np.ndarray": (lambda x: np.ndarray(2).shape, lambda x: np.empty(2).shape, X),
    "np.trim_zeros": (lambda x: np.trim_zeros(x), trimmed, ZEROS),
    "np.vectorize": (lambda x: np.vectorize(lambda t: t * 2)(x), lambda x: tp.map(lambda t: t * 2, x), X),
    "np.frompyfunc": (
        lambda x: np.frompyfunc(lambda t: t * 2, 1, 1)(x).astype(float), lambda x: tp.map(lambda t: t * 2, x), X,
    ),
    "np.fromiter": (lambda x: np.fromiter((t * t for t in x), float), lambda x: np.array([t * t for t in x]), X),
    "statistics.*": (lambda x: statistics.pstdev(x), lambda x: np.std(x), X),
    "np.linalg.*": (
        lambda a, b: np.linalg.tensorsolve(a, b), lambda a, b: np.linalg.solve(a, b), M, M[0],
    ),
    "scipy.linalg.*": (
        lambda a: scipy.linalg.khatri_rao(a, a), lambda a: np.einsum("ij,kj->ikj", a, a).reshape(-1, 2), M,
    ),
    "scipy.stats.*": (
        lambda x: scipy.stats.levy.pdf(x),
        lambda x: np.exp(-1 / (2 * x)) / np.sqrt(2 * np.pi) / x**1.5,
        2.0,
    ),
    "scipy.integrate.*": (lambda x: scipy.integrate.romb(x), simpson, np.arange(5.0) ** 2),
    "scipy.optimize.*": (lambda x: scipy.optimize.brentq(lambda t: t * t - x, 0.1, 9.0), newton, 2.0),
    "flat": (lambda x: x.flat[1], lambda x: x.ravel()[1], M),
    "nbytes": (lambda x: x.nbytes, lambda x: x.size * x.itemsize, X),
    "mT": (lambda x: x.mT, lambda x: np.matrix_transpose(x), M),
    "view": (lambda x: x.view(float), lambda x: x.astype(float), X),
    "partition": (lambda x: x.copy().partition(1), lambda x: np.partition(x, 1)[:0].sum() * 0, X),
    "compress": (lambda x: x.compress(x > 1), lambda x: np.compress(x > 1, x), X),
}  # fmt: skip
# Hints that lead out of compiled code: the message alone.
OUTSIDE = {
    "input": (lambda x: input(), 1.0),
    "open": (lambda x: open("f"), 1.0),
    "breakpoint": (lambda x: breakpoint(), 1.0),
    "pdb.*": (lambda x: pdb.post_mortem(), 1.0),
    "np.random.*": (lambda x: x + np.random.normal(), 1.0),
    "random.*": (lambda x: x + random.random(), 1.0),
    "scipy.stats.*.rvs": (lambda x: scipy.stats.norm.rvs(x), 1.0),
    "time.*": (lambda x: x * time.time(), 1.0),
    "resize": (lambda x: x.resize(2), X),
    "tobytes": (lambda x: x.tobytes(), X),
    "tofile": (lambda x: x.tofile("f"), X),
    "byteswap": (lambda x: x.byteswap(), X),
}
TABLES = (advice.HINTS, advice.OTHERWISE, refusals.ATTRIBUTES, REFUSED)


def refusal(function, *args):
    with pytest.raises(tp.CompileError) as caught:
        tp.function(function)(*args)
    assert caught.value.code == "TP103" and caught.value.file == __file__ and caught.value.line
    return caught.value.hint


def test_every_hint_has_a_row():
    assert {k for table in TABLES for k in table} == FOLLOWED.keys() | OUTSIDE.keys()


@pytest.mark.parametrize("key", FOLLOWED)
def test_hints_are_true(key):
    bad, good, *args = FOLLOWED[key]
    assert refusal(bad, *args) == next(t[key] for t in TABLES if key in t)
    found = tp.function(good)(*args)
    if (wanted := bad(*args)) is not None:
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("key", OUTSIDE)
def test_hints_that_lead_out(key):
    function, *args = OUTSIDE[key]
    assert refusal(function, *args) == next(t[key] for t in TABLES if key in t)


def test_random_numbers_come_from_keys():
    drawn = lambda key: (tp.random.normal(key), tp.random.uniform(key))
    np.testing.assert_allclose(tp.function(drawn)(KEY), drawn(KEY))


# -- the nearest name

NEAREST = {
    # in another module, with the same meaning
    "np.linalg.matmul": (lambda a: np.linalg.matmul(a, a), "use np.matmul.", M),
    "scipy.linalg.eig": (lambda a: scipy.linalg.eig(a), "use np.linalg.eig.", M),
    "statistics.median": (lambda x: statistics.median(x), "use np.median.", X),
    "scipy.special.round": (lambda x: scipy.special.round(x), "use np.round.", X),
    "math.frexp": (lambda x: math.frexp(x), "use np.frexp.", 2.0),
    # of the same module, which this one is a variant of
    "pinvh": (lambda a: scipy.linalg.pinvh(a), "the nearest name that can be compiled is scipy.linalg.pinv;", M),
    "jve": (lambda x: scipy.special.jve(1, x), "the nearest name that can be compiled is scipy.special.jv;", 0.5),
    "histogram2d": (lambda x: np.histogram2d(x, x), "the nearest name that can be compiled is np.histogram;", X),
    # names that are not there
    "np.summ": (lambda x: np.summ(x), "is it 'sum'?", X),
    "np.trapz": (lambda x: np.trapz(x), "is it 'trapezoid'?", X),
    "np.erf": (lambda x: np.erf(x), "is it scipy.special.erf?", X),
    "np.det": (lambda a: np.det(a), "is it np.linalg.det?", M),
    "np.linalg.expm": (lambda a: np.linalg.expm(a), "is it scipy.linalg.expm?", M),
    "math.sinn": (lambda x: math.sinn(x), "is it 'sin'?", 2.0),
    "np.pii": (lambda x: x * np.pii, "is it 'pi'?", 2.0),
    "scipy.stats.normal": (lambda x: scipy.stats.normal.pdf(x), "is it 'norm'?", 2.0),
    "norm.pfd": (lambda x: scipy.stats.norm.pfd(x), "is it 'pdf'?", 2.0),
    # methods
    "x.summ": (lambda x: x.summ(), "is it 'sum'?", X),
    "x.sin": (lambda x: x.sin(), "use np.sin(...).", X),
    "x.norm": (lambda x: x.norm(), "use np.linalg.norm(...).", X),
    "float.sqrt": (lambda x: x.sqrt(), "use np.sqrt(...).", 2.0),
    "list.appendd": (lambda x: [x].appendd(x), "is it 'append'?", 2.0),
    "dict.udate": (lambda x: {"a": x}.udate({}), "is it 'update'?", 2.0),
    # nothing that is near in meaning, though some of it is in spelling
    "nbdtr": (lambda x: scipy.special.nbdtr(2, 3, x), "write it out with a loop", 0.5),
    "polydiv": (lambda x: np.polydiv(x, x), "write it out with a loop", X),
    "pdtri": (lambda x: scipy.special.pdtri(2, x), "write it out with a loop", 0.5),
    "x.qqq": (lambda x: x.qqq(), "look at its spelling.", X),
}


@pytest.mark.parametrize("name", NEAREST)
def test_nearest_names(name):
    function, hint, *args = NEAREST[name]
    assert refusal(function, *args).startswith(hint)


def test_siblings_mean_the_same():
    """All functions to which a hint may lead from one that is there."""
    found = {}
    for module, library in {"math": math, "np.linalg": np.linalg, "scipy.fft": scipy.fft, "scipy.special": scipy.special,
                            "scipy.linalg": scipy.linalg, "scipy.integrate": scipy.integrate, "statistics": statistics}.items():  # fmt: skip
        public = {n: getattr(library, n) for n in getattr(library, "__all__", dir(library)) if not n.startswith("_")}
        names = [f"{module}.{n}" for n, value in public.items() if callable(value) and find_handler(value) is None]
        found |= {n: near for n in names if n not in advice.HINTS and (near := advice.sibling(n))}
    judged = {
        "math.frexp": "np.frexp", "math.nextafter": "np.nextafter",
        "np.linalg.matmul": "np.matmul", "np.linalg.tensordot": "np.tensordot",
        "scipy.special.round": "np.round", "scipy.linalg.eig": "np.linalg.eig",
        "statistics.mean": "np.mean", "statistics.median": "np.median",
    }  # fmt: skip
    assert found == {n: near for n, near in judged.items() if n in found} and len(found) >= 6
