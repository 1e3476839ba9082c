"""What to write instead of something that cannot be compiled.

Takes names as people write them ("np.linalg.matmul") and gives sentences, empty ones where nothing fits. Relies on the table of
the functions that can be compiled (`handlers.py`), and is asked only once something has been refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fnmatch import fnmatchcase

from tapeless.frontend.state.handlers import BY_NAME

RANDOM = "use tp.random, whose numbers come from keys, or make them before the call and pass them in."
ELEMENT_TYPES = "use float32, float64, complex64, complex128, bool, or integers of any width."
DISTINCT = "use np.unique for the elements of an array, a tuple for a few values."
# Functions and objects, by patterns of their names -> what to write instead. The first that fits counts.
HINTS: dict[str, str] = {
    "iter": "use a for loop.",
    "next": "use a for loop.",
    "set": DISTINCT,
    "frozenset": DISTINCT,
    "input": "read before the call, and pass the values in.",
    "open": "read before the call and write after it.",
    "breakpoint": "step through the plain function instead: f.python(...) runs it as Python does.",
    "pdb.*": "step through the plain function instead: f.python(...) runs it as Python does.",
    "functools.*": "decorate the function where it is defined, outside of compiled code.",
    "itertools.*": "use a for loop.",
    "collections.defaultdict": "use a dict that has all its keys, or count in an array.",
    "collections.Counter": "use a dict that has all its keys, or count in an array: np.bincount.",
    "heapq.*": "use sorted of the items.",
    "copy.*": "use its method .copy().",
    "math.fsum": "use sum or np.sum.",
    "np.ndarray": "use np.empty.",
    "np.trim_zeros": "take the slice x[i[0]:i[-1] + 1], where i is np.flatnonzero(x).",
    "np.vectorize": "use tp.map.",
    "np.frompyfunc": "use tp.map.",
    "np.fromiter": "use np.array of a list comprehension.",
    "np.random.*": RANDOM,
    "random.*": RANDOM,
    "scipy.stats.*.rvs": RANDOM,
    "time.*": "measure time outside the compiled function.",
}
# The same, for what has no name like it that can be compiled.
OTHERWISE: dict[str, str] = {
    "statistics.*": "use np.mean, np.var or np.std.",
    "np.linalg.*": "docs/functions.md lists what can be: solve, cholesky, qr, svd, eigh and more.",
    "scipy.linalg.*": "docs/functions.md lists what can be: solve, cholesky, svd, eigh and more.",
    "scipy.stats.*": "write its formula; logpdf, cdf, ppf and the like of the usual distributions can be compiled.",
    "scipy.integrate.*": "write the sum or the steps as a loop.",
    "scipy.optimize.*": "write the iteration as a loop.",
}
# Where a function of a module may also be: under the same name, and with the same meaning.
SIBLINGS: dict[str, tuple[str, ...]] = {
    "math": ("np", "scipy.special"),
    "np": ("np.linalg", "np.fft", "scipy.special", "scipy.linalg"),
    "np.linalg": ("np", "scipy.linalg"),
    "scipy.fft": ("np.fft",),
    "scipy.integrate": ("np",),
    "scipy.linalg": ("np.linalg", "np"),
    "scipy.special": ("np",),
    "statistics": ("np",),
}
VARIANT, MISSPELT = 0.8, 0.6  # how much of two names has to be the same


def hint_for(name: str, otherwise: str) -> str:
    """For a function of a library, or a built-in one, that is spelled right."""
    if found := _fitting(HINTS, name):
        return found
    if found := sibling(name):
        return f"use {found}."
    found = _fitting(OTHERWISE, name) or otherwise
    variant = _variant(name)
    return f"the nearest name that can be compiled is {variant}; otherwise {found}" if variant else found


def _fitting(table: dict[str, str], name: str) -> str:
    return next((hint for pattern, hint in table.items() if fnmatchcase(name, pattern)), "")


def sibling(name: str) -> str:
    """The function of this name in another module, if that can be compiled."""
    module, _, last = name.rpartition(".")
    return next((f"{m}.{last}" for m in SIBLINGS.get(module, ()) if f"{m}.{last}" in BY_NAME), "")


def _variant(name: str) -> str:
    """The function of the same module that this one is named after: ellipk for ellipkm1. That names are spelled alike says
    little of functions that are there: nbdtr is of another family than ndtr.
    """
    module, _, last = name.rpartition(".")
    near = difflib.get_close_matches(last, known_names(module), 3, VARIANT)
    return next((f"{module}.{n}" for n in near if last.startswith(n)), "")


def known_names(module: str) -> list[str]:
    """The functions of a module that can be compiled."""
    return [last for home, _, last in (n.rpartition(".") for n in BY_NAME) if home == module and module]


def misspelt(name: str, *offered: Iterable[str]) -> str:
    """For a name that is not there: the first of those offered has precedence."""
    for names in offered:
        public = [n for n in names if not n.startswith("_") or name.startswith("_")]
        near = difflib.get_close_matches(name, public, 3, MISSPELT)
        if near:
            return f"is it '{next((n for n in near if sorted(n) == sorted(name)), near[0])}'?"
    return "look at its spelling."


def missing_in(module: str, name: str, names: Iterable[str]) -> str:
    """For a name that a module does not have. `names` are those that it has."""
    found = sibling(f"{module}.{name}")
    return f"is it {found}?" if found else misspelt(name, known_names(module), names)


def as_function(name: str) -> str:
    """For an attribute that arrays and numbers do not have."""
    found = next((f for f in (f"np.{name}", sibling(f"np.{name}")) if f in BY_NAME), "")
    return f"use {found}(...)." if found else ""
