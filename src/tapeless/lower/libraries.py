"""Lowering of library operations: products, solves and sorts, as calls of BLAS and LAPACK or as loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapeless.ir.core import Library, Var

if TYPE_CHECKING:
    from tapeless.lower.lowering import Lowerer


def lower_library(lo: Lowerer, vars: tuple[Var, ...], exp: Library) -> None:
    raise NotImplementedError(exp.name)
