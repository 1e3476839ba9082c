"""Routines that run in both directions, written in the dialect of `tp.reversible`.

State comes first and is returned; constants and plain functions are keywords. It is imported by its name, as in
`from tapeless.reversible.library import dot`, and is `tp.reversible.library` from then on.
"""

import sys

import tapeless as tp
from tapeless.reversible.library.bits import hash, scramble, xorshift
from tapeless.reversible.library.integrators import forest_ruth, leapfrog
from tapeless.reversible.library.layers import nice, real_nvp, residual
from tapeless.reversible.library.linalg import affine, axpy, dot, matmul, matvec, norm, sum
from tapeless.reversible.library.sorting import selection_sort, sort, sorting_rounds
from tapeless.reversible.library.sparse import csr_dot, csr_matmul, csr_matvec
from tapeless.reversible.library.unitary import fft, rotations

__all__ = [
    "sum", "dot", "norm", "axpy", "matvec", "matmul", "affine",
    "csr_matvec", "csr_matmul", "csr_dot",
    "rotations", "fft",
    "sort", "selection_sort", "sorting_rounds",
    "leapfrog", "forest_ruth",
    "nice", "real_nvp", "residual",
    "scramble", "hash", "xorshift",
]  # fmt: skip

tp.reversible.library = sys.modules[__name__]  # type: ignore[attr-defined]  # a function, so Python does not set it
