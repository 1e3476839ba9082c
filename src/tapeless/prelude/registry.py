"""Which functions of NumPy, SciPy and Python are written here, and under which names.

A function takes the parameters of the one it stands for. What it leaves out is refused in a call, by name. Sizes are
known at run time only; ranks, strings, axes and lengths of tuples are known at compile time, and so are branches and
`for` loops over tuples that they decide.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

Written = TypeVar("Written", bound=Callable[..., Any])

WRITTEN: dict[str, Callable[..., Any]] = {}  # by dotted name: "np.pad", "scipy.stats.norm.logpdf"
# The modules that write functions of a library, which are read once somebody has imported that.
MODULES = {
    "scipy.fft": ("scipy_transforms", "cosines"),
    "scipy.linalg": ("linear_algebra", "banded", "structured", "matrix_functions"),
    "numpy": (
        "applying",
        "coefficients",
        "diagonals",
        "editing",
        "elements",
        "histograms",
        "joining",
        "ordering",
        "padding",
        "products",
        "quantiles",
        "sequences",
        "sets",
        "signals",
        "spread",
        "writing",
        "linear_algebra",
        "transforms",
        "masks",
    ),
    "scipy.integrate": ("integrals",),
    "scipy.signal": ("filters",),
    "scipy.spatial.distance": ("distances",),
    "scipy.special": ("special_functions", "orthogonal", "shaped", "zeta"),
    "heapq": ("heaps",),
    "scipy.sparse": ("sparse",),
    "scipy.stats": ("continuous", "light_tails", "heavy_tails", "discrete", "multivariate", "samples"),
}


def stands_for(*names: str) -> Callable[[Written], Written]:
    def decorate(function: Written) -> Written:
        for name in names:
            WRITTEN[name] = function
        return function

    return decorate


class Ruled:
    """A function with derivatives of its own. `fwd(*args)` gives (result, what is kept), `bwd(kept, adjoint)` the adjoints
    of the arguments; `jvp(arguments, tangents)` gives (result, tangent). Each mode takes its own; with one of them alone, the
    other one is its transpose. `constant`: numbers of arguments that are handed to the rules first.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        jvp: Callable[..., Any] | None,
        fwd: Callable[..., Any] | None = None,
        bwd: Callable[..., Any] | None = None,
        constant: tuple[int, ...] = (),
    ) -> None:
        self.function, self.jvp, self.fwd, self.bwd, self.constant = function, jvp, fwd, bwd, constant

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def read(library: str) -> dict[str, Callable[..., Any]]:
    """The functions of a library that are written here."""
    for module in MODULES[library]:
        importlib.import_module(f"tapeless.prelude.{module}")
    prefix = "np." if library == "numpy" else f"{library}."
    return {name: function for name, function in WRITTEN.items() if name.startswith(prefix)}


def refuse(reason: str, instead: str = "") -> NoReturn:
    """In the body of a function: this call cannot be compiled."""
    raise NotImplementedError(f"{reason}; {instead}")
