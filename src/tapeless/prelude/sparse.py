"""Sparse matrices of SciPy in compiled code: containers of their data, indices and shape, with the operations on them.

Read once a matrix of `scipy.sparse` is met. Each class here stands for the one of SciPy that it inherits from, so that
`isinstance` says what it says there; what it does not define is compiled from SciPy's own source, or refused.

Note [Sparse matrices]
The indices and the shape are the structure of a matrix: gradients and tangents have the same, and one with another
structure is refused. Only the data have derivatives, so a gradient says nothing about places without an entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tapeless.errors import ArgumentError
from tapeless.ir import containers
from tapeless.prelude.intrinsics import prange
from tapeless.prelude.registry import refuse, stands_for

SPARSE = (scipy.sparse.sparray, scipy.sparse.spmatrix)


# -- products; the lines of a matrix are its rows, or the columns of one that is kept by columns


def check_sizes(given: Any, wanted: Any) -> None:
    if given != wanted:
        raise ValueError(f"matmul: dimension mismatch: a size of {wanted} meets one of {given}")


def check_dense(other: Any) -> None:
    if isinstance(other, SPARSE):
        refuse("the product of two sparse matrices cannot be compiled", "multiply by one after the other.")
    if np.ndim(other) == 0 or np.ndim(other) > 2:
        refuse("a sparse matrix is multiplied by vectors and matrices only", "reshape the array.")


def each_line(data: Any, indices: Any, starts: Any, n: Any, x: Any) -> Any:
    """The sum over the entries of each of `n` lines, times what `x` has at their indices."""
    kind = np.result_type(data, x)
    if x.ndim == 1:
        y = np.zeros(n, kind)
        for i in prange(n):
            total = y[i]
            for k in range(starts[i], starts[i + 1]):
                total += data[k] * x[indices[k]]
            y[i] = total
        return y
    m = x.shape[1]
    z = np.zeros((n, m), kind)
    for i in prange(n):
        for k in range(starts[i], starts[i + 1]):
            for j in range(m):
                z[i, j] += data[k] * x[indices[k], j]
    return z


def over_lines(data: Any, indices: Any, starts: Any, n: Any, x: Any) -> Any:
    """The transposed product: the entries of line i, times what `x` has at i, go to their indices, which are below `n`."""
    kind = np.result_type(data, x)
    if x.ndim == 1:
        y = np.zeros(n, kind)
        for i in range(len(x)):
            for k in range(starts[i], starts[i + 1]):
                y[indices[k]] += data[k] * x[i]
        return y
    m = x.shape[1]
    z = np.zeros((n, m), kind)
    for i in range(len(x)):
        for k in range(starts[i], starts[i + 1]):
            for j in range(m):
                z[indices[k], j] += data[k] * x[i, j]
    return z


def over_entries(data: Any, to: Any, of: Any, n: Any, x: Any) -> Any:
    kind = np.result_type(data, x)
    if x.ndim == 1:
        y = np.zeros(n, kind)
        for k in range(len(data)):
            y[to[k]] += data[k] * x[of[k]]
        return y
    m = x.shape[1]
    z = np.zeros((n, m), kind)
    for k in range(len(data)):
        for j in range(m):
            z[to[k], j] += data[k] * x[of[k], j]
    return z


def line_array(data: Any, indices: Any, starts: Any, lines: Any, width: Any) -> Any:
    found = np.zeros((lines, width), data.dtype)
    for i in range(lines):
        for k in range(starts[i], starts[i + 1]):
            found[i, indices[k]] += data[k]
    return found


def line_diagonal(data: Any, indices: Any, starts: Any, lines: Any, width: Any, k: Any) -> Any:
    n = max(min(lines + min(k, 0), width - max(k, 0)), 0)
    found = np.zeros(n, data.dtype)
    for i in range(n):
        line = i - min(k, 0)
        for p in range(starts[line], starts[line + 1]):
            if indices[p] == i + max(k, 0):
                found[i] += data[p]
    return found


# -- what all kinds have


class Matrix:
    """`times(x)` and `transposed_times(x)` of vectors and matrices, `_with(data)`, `toarray` and `T` are those of each kind."""

    data: Any
    shape: Any
    ndim = 2

    def __matmul__(self: Any, other: Any) -> Any:
        check_dense(other)
        check_sizes(other.shape[0], self.shape[1])
        return self.times(other)

    def __rmatmul__(self: Any, other: Any) -> Any:
        check_dense(other)
        check_sizes(other.shape[-1], self.shape[0])
        return self.transposed_times(other.T).T

    def dot(self: Any, other: Any) -> Any:
        return self * other if np.ndim(other) == 0 else self @ other

    def transpose(self: Any) -> Any:
        return self.T

    def __mul__(self: Any, other: Any) -> Any:
        if isinstance(other, SPARSE) or np.ndim(other) != 0:
            refuse("a sparse array times an array, element by element, cannot be compiled", "multiply its .data.")
        return self._with(self.data * other)

    def __rmul__(self: Any, other: Any) -> Any:
        return self * other

    def __truediv__(self: Any, other: Any) -> Any:
        if isinstance(other, SPARSE) or np.ndim(other) != 0:
            refuse("a sparse array divided by an array cannot be compiled", "divide its .data.")
        return self._with(self.data / other)

    def __neg__(self: Any) -> Any:
        return self._with(-self.data)

    def __pos__(self: Any) -> Any:
        return self

    def sum(self: Any, axis: Any = None) -> Any:
        kind = np.sum(self.data[:0]).dtype
        if axis is None:
            return np.sum(self @ np.ones(self.shape[1], kind))
        if axis in (1, -1):
            return self @ np.ones(self.shape[1], kind)
        if axis in (0, -2):
            return np.ones(self.shape[0], kind) @ self
        raise ValueError("invalid axis")

    def todense(self: Any) -> Any:
        return self.toarray()


class OldMatrix(Matrix):
    """Those of the old interface: `*` is the product of matrices, and sums along an axis are matrices of NumPy."""

    def __mul__(self: Any, other: Any) -> Any:
        if isinstance(other, SPARSE) or np.ndim(other) != 0:
            return self @ other
        return self._with(self.data * other)

    def __rmul__(self: Any, other: Any) -> Any:
        return other @ self if np.ndim(other) != 0 else self * other

    def sum(self: Any, axis: Any = None) -> Any:
        if axis is not None:
            refuse(
                "the sum of a sparse matrix along an axis is an np.matrix, which is not supported",
                "use a sparse array.",
            )
        return np.sum(self @ np.ones(self.shape[1], np.sum(self.data[:0]).dtype))

    def todense(self: Any) -> Any:
        refuse("todense() of a sparse matrix is an np.matrix, which is not supported", "use toarray().")


class Rows:
    """Kept by rows."""

    def times(self: Any, x: Any) -> Any:
        return each_line(self.data, self.indices, self.indptr, self.shape[0], x)

    def transposed_times(self: Any, x: Any) -> Any:
        return over_lines(self.data, self.indices, self.indptr, self.shape[1], x)

    def diagonal(self: Any, k: Any = 0) -> Any:
        return line_diagonal(self.data, self.indices, self.indptr, self.shape[0], self.shape[1], k)

    def toarray(self: Any) -> Any:
        return line_array(self.data, self.indices, self.indptr, self.shape[0], self.shape[1])


class Columns:
    """Kept by columns."""

    def times(self: Any, x: Any) -> Any:
        return over_lines(self.data, self.indices, self.indptr, self.shape[0], x)

    def transposed_times(self: Any, x: Any) -> Any:
        return each_line(self.data, self.indices, self.indptr, self.shape[1], x)

    def diagonal(self: Any, k: Any = 0) -> Any:
        return line_diagonal(self.data, self.indices, self.indptr, self.shape[1], self.shape[0], -k)

    def toarray(self: Any) -> Any:
        return line_array(self.data, self.indices, self.indptr, self.shape[1], self.shape[0]).T.copy()


class Entries:
    """Kept entry by entry."""

    @property
    def coords(self: Any) -> Any:
        return self.row, self.col

    def times(self: Any, x: Any) -> Any:
        return over_entries(self.data, self.row, self.col, self.shape[0], x)

    def transposed_times(self: Any, x: Any) -> Any:
        return over_entries(self.data, self.col, self.row, self.shape[1], x)

    def diagonal(self: Any, k: Any = 0) -> Any:
        n = max(min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0)), 0)
        found = np.zeros(n, self.data.dtype)
        for p in range(len(self.data)):
            if self.col[p] - self.row[p] == k:
                found[self.row[p] + min(k, 0)] += self.data[p]
        return found

    def toarray(self: Any) -> Any:
        found = np.zeros(self.shape, self.data.dtype)
        for p in range(len(self.data)):
            found[self.row[p], self.col[p]] += self.data[p]
        return found


# -- the classes of SciPy


@dataclass(eq=False, repr=False)
class csr_array(Rows, Matrix, scipy.sparse.csr_array):  # type: ignore[misc]
    data: Any
    indices: Any
    indptr: Any
    shape: Any

    def _with(self, data: Any) -> Any:
        return csr_array(data, self.indices, self.indptr, self.shape)

    @property
    def T(self) -> Any:
        return csc_array(self.data, self.indices, self.indptr, (self.shape[1], self.shape[0]))


@dataclass(eq=False, repr=False)
class csc_array(Columns, Matrix, scipy.sparse.csc_array):  # type: ignore[misc]
    data: Any
    indices: Any
    indptr: Any
    shape: Any

    def _with(self, data: Any) -> Any:
        return csc_array(data, self.indices, self.indptr, self.shape)

    @property
    def T(self) -> Any:
        return csr_array(self.data, self.indices, self.indptr, (self.shape[1], self.shape[0]))


@dataclass(eq=False, repr=False)
class coo_array(Entries, Matrix, scipy.sparse.coo_array):  # type: ignore[misc, override]
    data: Any
    row: Any
    col: Any
    shape: Any

    def _with(self, data: Any) -> Any:
        return coo_array(data, self.row, self.col, self.shape)

    @property
    def T(self) -> Any:
        return coo_array(self.data, self.col, self.row, (self.shape[1], self.shape[0]))


@dataclass(eq=False, repr=False)
class csr_matrix(Rows, OldMatrix, scipy.sparse.csr_matrix):  # type: ignore[misc]
    data: Any
    indices: Any
    indptr: Any
    shape: Any

    def _with(self, data: Any) -> Any:
        return csr_matrix(data, self.indices, self.indptr, self.shape)

    @property
    def T(self) -> Any:
        return csc_matrix(self.data, self.indices, self.indptr, (self.shape[1], self.shape[0]))


@dataclass(eq=False, repr=False)
class csc_matrix(Columns, OldMatrix, scipy.sparse.csc_matrix):  # type: ignore[misc]
    data: Any
    indices: Any
    indptr: Any
    shape: Any

    def _with(self, data: Any) -> Any:
        return csc_matrix(data, self.indices, self.indptr, self.shape)

    @property
    def T(self) -> Any:
        return csr_matrix(self.data, self.indices, self.indptr, (self.shape[1], self.shape[0]))


@dataclass(eq=False, repr=False)
class coo_matrix(Entries, OldMatrix, scipy.sparse.coo_matrix):  # type: ignore[misc, override]
    data: Any
    row: Any
    col: Any
    shape: Any

    def _with(self, data: Any) -> Any:
        return coo_matrix(data, self.row, self.col, self.shape)

    @property
    def T(self) -> Any:
        return coo_matrix(self.data, self.col, self.row, (self.shape[1], self.shape[0]))


# -- made in compiled code


def _maker(cls: Any, name: str) -> Any:
    def by_lines(arg1: Any, shape: Any = None) -> Any:
        if not isinstance(arg1, tuple) or len(arg1) != 3 or shape is None:
            refuse(
                "a sparse matrix is made of (data, indices, indptr) and its shape here", "make it outside, or use coo."
            )
        data, indices, indptr = arg1
        if len(indptr) != shape[MAJOR[name]] + 1:
            raise ValueError(f"index pointer size {len(indptr)} should be {shape[MAJOR[name]] + 1}")
        if len(data) != len(indices):
            raise ValueError("indices and data should have the same size")
        return cls(data, indices, indptr, shape)

    def by_entries(arg1: Any, shape: Any = None) -> Any:
        if not isinstance(arg1, tuple) or len(arg1) != 2 or not isinstance(arg1[1], tuple) or shape is None:
            refuse("a sparse matrix is made of (data, (rows, columns)) and its shape here", "make it outside.")
        data, (row, col) = arg1
        if len(data) != len(row) or len(data) != len(col):
            raise ValueError("all index and data arrays must have the same length")
        for k in range(len(data)):
            if row[k] < 0 or row[k] >= shape[0] or col[k] < 0 or col[k] >= shape[1]:
                raise ValueError("an index is negative, or exceeds matrix dimensions")
        return cls(data, row, col, shape)

    return by_entries if "coo" in name else by_lines


MAJOR = {"csr_array": 0, "csr_matrix": 0, "csc_array": 1, "csc_matrix": 1}

# -- as arguments and results


def _register(stand_in: type, original: type, names: tuple[str, str, str, str]) -> None:
    def opened(matrix: Any) -> list[Any]:
        if matrix.ndim != 2:
            raise ArgumentError(
                f"a {original.__name__} with {matrix.ndim} dimensions is not supported: use a matrix, or .toarray()"
            )
        return [getattr(matrix, name) for name in names]

    def built(parts: list[Any]) -> Any:
        data, first, second, shape = parts
        places = first.copy(), second.copy()  # SciPy sorts them in place, together with the data
        inside = (data, places) if names[1] == "row" else (data, *places)
        return original(inside, shape=shape)

    containers.register_stand_in(original, stand_in, names, opened, built, kept=names[1:])


for _class in (csr_array, csc_array, coo_array, csr_matrix, csc_matrix, coo_matrix):
    _names = ("data", "row", "col", "shape") if "coo" in _class.__name__ else ("data", "indices", "indptr", "shape")
    _register(_class, getattr(scipy.sparse, _class.__name__), _names)
    stands_for(f"scipy.sparse.{_class.__name__}")(_maker(_class, _class.__name__))
