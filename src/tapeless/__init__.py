"""Tapeless: numeric Python compiled to native code, and differentiated without a tape."""

from tapeless.api import random
from tapeless.api.callbacks import callback
from tapeless.api.checking import check_grads
from tapeless.api.derivatives import (
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    stop_gradient,
    value_and_grad,
)
from tapeless.api.directions import hvp, jvp, linearize, vjp
from tapeless.api.exact_numbers import fixed43, lognum
from tapeless.api.function import Function, function
from tapeless.api.operators import hist, loop, map, prange, reduce, scan, scatter, vmap
from tapeless.api.progress import progress
from tapeless.api.reversible import inverse_of as inverse
from tapeless.api.reversible import reversible
from tapeless.api.schedules import Counts, bennett, treeverse
from tapeless.api.symbolic import symbolic
from tapeless.errors import (
    ArgumentError,
    CacheNotUsed,
    CompileError,
    DeviceError,
    InversionDrift,
    InvertibilityError,
    RecoveryError,
    ShapeError,
    TapelessError,
)
from tapeless.ir.containers import register_container
from tapeless.ir.pytree import tree_map
from tapeless.reversible.dialect.support import Stack, stack
from tapeless.reversible.dialect.words import ancilla, between, branch, compute, pop, push, rot, uncompute
from tapeless.version import VERSION as __version__

__all__ = [
    "ArgumentError",
    "CacheNotUsed",
    "CompileError",
    "Counts",
    "DeviceError",
    "Function",
    "InversionDrift",
    "InvertibilityError",
    "RecoveryError",
    "ShapeError",
    "Stack",
    "TapelessError",
    "__version__",
    "ancilla",
    "bennett",
    "between",
    "branch",
    "callback",
    "check_grads",
    "compute",
    "custom_jvp",
    "custom_vjp",
    "fixed43",
    "function",
    "grad",
    "hessian",
    "hist",
    "hvp",
    "inverse",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "lognum",
    "loop",
    "map",
    "pop",
    "prange",
    "progress",
    "push",
    "random",
    "reduce",
    "register_container",
    "reversible",
    "rot",
    "scan",
    "scatter",
    "stack",
    "stop_gradient",
    "symbolic",
    "tree_map",
    "treeverse",
    "uncompute",
    "value_and_grad",
    "vjp",
    "vmap",
]
