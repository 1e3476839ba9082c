"""Library operations: what Core's `Library` node may name, one row each.

Gives `LIBRARY` and `library_op`. A row knows its result types and a NumPy evaluation; derivatives and native routines
live with `ad` and the backends. Operands have one element type; the front end promotes, and maps over batch axes.

`solve_lower`, `solve_upper` and `eigh` read one triangle of their matrix, `eigh` the lower one. `eig`, `eigh`, `svd` and `qr`
have no derivatives of their own: functions of the prelude that call them do. `cholesky_adjoint` is how the derivative of `cholesky`
goes backwards, where nobody differentiates it again. `callback` calls Python: Note [Callbacks] in `ops/callbacks.py`.

Note [Singular]
`solve`, `solve_lower`, `solve_upper` and `inv` of a singular matrix and `cholesky` of one that is not positive definite raise LinAlgError, as in
NumPy. `cholesky` reads the lower triangle only, and the upper triangle of its result is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapeless.ir.types import DType, Type
from tapeless.ops.callbacks import callback
from tapeless.ops.op import COMPLEX, FLOATS, NUMERIC, REAL

ANY = -1  # an arity
Attrs = Mapping[str, int | str | bool]


@dataclass(frozen=True)
class LibraryOp:
    """`cost` counts operations in words, for people and for reports. One that is `partial` is not for all operands: tests before it
    may have ruled out those on which it fails, or never ends.
    """

    name: str
    arity: int
    result_types: Callable[[Sequence[Type], Attrs], tuple[Type, ...]]
    numpy: Callable[[Sequence[Any], Attrs], tuple[Any, ...]]
    cost: str
    partial: bool = False


def library_op(name: str) -> LibraryOp:
    return LIBRARY[name]


# --- result types ------------------------------------------------------------------------------------------------
# Ranks and element types are checked. Sizes are not: dimensions of different names may be equal at run time.


def _expect(holds: bool, name: str, wanted: str, types: Sequence[Type]) -> None:
    if not holds:
        raise TypeError(f"{name} takes {wanted}, not {', '.join(map(repr, types))}")


def _matmul_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    a, b = types
    wanted = "two vectors or matrices of one numeric type"
    _expect(a.rank in (1, 2) and b.rank in (1, 2), "matmul", wanted, types)
    _expect(a.dtype is b.dtype and a.dtype in NUMERIC, "matmul", wanted, types)
    return (a.with_shape((*a.shape[:-1], *b.shape[1:])),)


def _is_matrix(type: Type) -> bool:
    return type.rank == 2 and type.dtype in FLOATS | COMPLEX


def _solve_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    a, b = types
    wanted = "a float or complex matrix, and a vector or matrix of the same type"
    _expect(_is_matrix(a) and b.rank in (1, 2) and a.dtype is b.dtype, "solve", wanted, types)
    return (b,)


def _two_matrices(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    factor, adj = types
    fits = _is_matrix(factor) and _is_matrix(adj) and factor.dtype is adj.dtype and factor.dtype in FLOATS
    _expect(fits, "cholesky_adjoint", "two float matrices of one type", types)
    return (_same(adj),)


def _of_matrix(name: str, *results: Callable[[Type], Type]) -> Callable[[Sequence[Type], Attrs], tuple[Type, ...]]:
    def result_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        _expect(_is_matrix(types[0]), name, "a float or complex matrix", types)
        return tuple(result(types[0]) for result in results)

    return result_types


def _of_vector(name: str, result: Callable[[Type], Type]) -> Callable[[Sequence[Type], Attrs], tuple[Type, ...]]:
    def result_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        _expect(types[0].rank == 1 and types[0].dtype in REAL, name, "a vector of real numbers", types)
        return (result(types[0]),)

    return result_types


def _same(type: Type) -> Type:
    return Type(type.dtype, type.shape)


def _eigh_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _expect(_is_matrix(types[0]), "eigh", "a float or complex matrix", types)
    return Type(types[0].dtype.real, types[0].shape[:1]), _same(types[0])


def _eig_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _expect(_is_matrix(types[0]) and types[0].dtype in COMPLEX, "eig", "a complex matrix", types)
    return Type(types[0].dtype, types[0].shape[:1]), _same(types[0])


def _svd_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    """The second operand has as many elements as there are singular values: the smaller size of the matrix."""
    matrix, least = types
    _expect(_is_matrix(matrix) and least.rank == 1, "svd", "a float or complex matrix, and a vector", types)
    (rows, columns), (size,) = matrix.shape, least.shape
    return (
        Type(matrix.dtype, (rows, size)),
        Type(matrix.dtype.real, (size,)),
        Type(matrix.dtype, (size, columns)),
    )


def _qr_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    """Of a matrix with at least as many rows as columns."""
    _expect(_is_matrix(types[0]), "qr", "a float or complex matrix", types)
    columns = types[0].shape[1]
    return _same(types[0]), Type(types[0].dtype, (columns, columns))


def _ranked_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, ranks = types
    fits = x.rank == ranks.rank == 1 and x.dtype in REAL and ranks.dtype is DType.i64
    _expect(fits, "ranked", "a vector of real numbers, and one of ranks", types)
    return (_same(ranks),)


def _fft_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    """Of a vector and its table, or the table of the size of the first one for the second."""
    x, table = types
    fits = x.rank == table.rank == 1 and x.dtype is table.dtype and x.dtype in COMPLEX
    _expect(fits, "fft", "two complex vectors of one type", types)
    return (_same(x),)


def _element(type: Type) -> Type:
    return Type(type.dtype)


def _real_element(type: Type) -> Type:
    return Type(type.dtype.real)


def _positions(type: Type) -> Type:
    return type.with_dtype(DType.i64)


# --- rows --------------------------------------------------------------------------------------------------------


def _sort(x: Any) -> Any:
    return np.sort(x, kind="stable")  # NaN last


def _argsort(x: Any) -> Any:
    return np.argsort(x, kind="stable").astype(np.int64, copy=False)


def _ranked(x: Any, ranks: Any) -> Any:
    return _argsort(x)[ranks]


def _solve_lower(a: Any, b: Any) -> Any:
    return np.linalg.solve(np.tril(a), b)


def _solve_upper(a: Any, b: Any) -> Any:
    return np.linalg.solve(np.triu(a), b)


def _cholesky_adjoint(factor: Any, adj: Any) -> Any:
    """Of the lower triangle of the matrix, from that of its factor."""
    half = np.tril(factor.T @ np.tril(adj)) * (1 - 0.5 * np.eye(len(factor), dtype=factor.dtype))
    whole = np.linalg.solve(factor.T, np.linalg.solve(factor.T, half).T).T
    return np.tril(whole + whole.T) * (1 - 0.5 * np.eye(len(factor), dtype=factor.dtype))


def _fft_table(room: Any, like: Any) -> Any:
    """Note [Tables] in lower/core/fourier.py."""
    n = len(like)
    size = n if len(room) <= n else (len(room) - n) // 2
    roots = np.exp(-2j * np.pi / max(size, 1) * np.arange(size))
    if size == n:
        return roots.astype(room.dtype)
    k = np.arange(n)
    chirp = np.exp(-1j * np.pi / n * (k * k % (2 * n)))
    around = np.zeros(size, dtype=complex)
    around[:n] = around[-k] = np.conj(chirp)
    return np.concatenate([roots, chirp, np.fft.fft(around)]).astype(room.dtype)


def _fft(x: Any, table: Any) -> Any:
    return np.fft.fft(x).astype(x.dtype)


def _ifft(x: Any, table: Any) -> Any:
    return (np.fft.ifft(x) * max(len(x), 1)).astype(x.dtype)


def _svd(a: Any, least: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.svd(a, full_matrices=False))


def _evaluation(function: Callable[..., Any]) -> Callable[[Sequence[Any], Attrs], tuple[Any, ...]]:
    def evaluate(args: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            results = function(*args)
        return tuple(results) if isinstance(results, tuple) else (results,)

    return evaluate


def _callback_types(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    """The first operands are like the results."""
    return tuple(map(_same, types[: int(attrs["likes"])]))


def _callback(args: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
    likes, number, again = int(attrs["likes"]), int(attrs["number"]), bool(attrs["again"])
    shapes = [np.shape(like) for like in args[:likes]]
    found = callback(number).run([np.array(a, order="C") for a in args[likes:]], shapes, again)
    return tuple(array[()] for array in found)  # numbers are no arrays


ROWS = (
    LibraryOp("matmul", 2, _matmul_types, _evaluation(np.matmul), "2 m k n"),
    LibraryOp("solve", 2, _solve_types, _evaluation(np.linalg.solve), "2/3 n^3 + 2 n^2 k", partial=True),
    LibraryOp("solve_lower", 2, _solve_types, _evaluation(_solve_lower), "n^2 k", partial=True),
    LibraryOp("solve_upper", 2, _solve_types, _evaluation(_solve_upper), "n^2 k", partial=True),
    LibraryOp("inv", 1, _of_matrix("inv", _same), _evaluation(np.linalg.inv), "2 n^3", partial=True),
    LibraryOp("det", 1, _of_matrix("det", _element), _evaluation(np.linalg.det), "2/3 n^3"),
    LibraryOp("slogdet", 1, _of_matrix("slogdet", _element, _real_element), _evaluation(np.linalg.slogdet), "2/3 n^3"),
    LibraryOp("cholesky", 1, _of_matrix("cholesky", _same), _evaluation(np.linalg.cholesky), "1/3 n^3", partial=True),
    LibraryOp("eigh", 1, _eigh_types, _evaluation(lambda a: tuple(np.linalg.eigh(a))), "9 n^3", partial=True),
    LibraryOp("eig", 1, _eig_types, _evaluation(lambda a: tuple(np.linalg.eig(a))), "25 n^3", partial=True),
    LibraryOp("svd", 2, _svd_types, _evaluation(_svd), "20 m n^2", partial=True),
    LibraryOp("qr", 1, _qr_types, _evaluation(lambda a: tuple(np.linalg.qr(a))), "4 m n^2"),
    LibraryOp("fft_table", 2, _fft_types, _evaluation(_fft_table), "10 n"),
    LibraryOp("fft", 2, _fft_types, _evaluation(_fft), "5 n log n"),
    LibraryOp("ifft", 2, _fft_types, _evaluation(_ifft), "5 n log n"),
    LibraryOp("cholesky_adjoint", 2, _two_matrices, _evaluation(_cholesky_adjoint), "2/3 n^3"),
    LibraryOp("sort", 1, _of_vector("sort", _same), _evaluation(_sort), "n log n"),
    LibraryOp("ranked", 2, _ranked_types, _evaluation(_ranked), "3 n"),
    LibraryOp("callback", ANY, _callback_types, _callback, "a call of Python"),
    LibraryOp("argsort", 1, _of_vector("argsort", _positions), _evaluation(_argsort), "n log n"),
)
LIBRARY: dict[str, LibraryOp] = {row.name: row for row in ROWS}
