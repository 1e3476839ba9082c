"""Library rows: values by definition, result types against what the evaluation gives, and what is refused."""

import numpy as np
import pytest

from tapeless.ir.types import FROM_NUMPY, I64, DType, Type, Var
from tapeless.ops.library import LIBRARY, ROWS, library_op

pytestmark = pytest.mark.filterwarnings("error")

INEXACT = [DType.f32, DType.f64, DType.c64, DType.c128]
REAL = [DType.i32, DType.i64, DType.f32, DType.f64]
SHAPES = {
    "matmul": [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((0,), (0,))],
    "solve": [((3, 3), (3,)), ((3, 3), (3, 2)), ((1, 1), (1,))],
    "solve_lower": [((3, 3), (3,)), ((3, 3), (3, 2)), ((1, 1), (1,))],
    "solve_upper": [((3, 3), (3,)), ((3, 3), (3, 2)), ((1, 1), (1,))],
    "inv": [((3, 3),)],
    "det": [((3, 3),), ((1, 1),)],
    "slogdet": [((3, 3),)],
    "cholesky": [((3, 3),)],
    "cholesky_adjoint": [((3, 3), (3, 3)), ((1, 1), (1, 1))],
    "eigh": [((3, 3),), ((1, 1),)],
    "eig": [((3, 3),), ((1, 1),)],
    "svd": [((4, 3), (3,)), ((2, 5), (2,)), ((3, 3), (3,))],
    "qr": [((4, 3),), ((3, 3),)],
    "fft_table": [((6,), (6,)), ((1,), (1,)), ((16 + 16 + 7,), (7,))],
    "fft": [((6,), (6,)), ((7,), (7,)), ((1,), (1,))],
    "ifft": [((6,), (6,)), ((1,), (1,))],
    "sort": [((7,),), ((0,),)],
    "argsort": [((7,),), ((0,),)],
    "ranked": [((7,), (3,))],
}
OF_COMPLEX = dict.fromkeys(("eig", "fft_table", "fft", "ifft"), INEXACT[2:])
DTYPES = OF_COMPLEX | {
    "matmul": [*REAL, *INEXACT[2:]],
    "cholesky_adjoint": [DType.f64],
    "sort": REAL,
    "argsort": REAL,
    "ranked": REAL,
}
EXAMPLES = [
    pytest.param(name, shapes, dtype, id=f"{name}-{shapes}-{dtype!r}")
    for name in SHAPES
    for shapes in SHAPES[name]
    for dtype in DTYPES.get(name, INEXACT)
]


def operands(shapes: tuple[tuple[int, ...], ...], dtype: DType) -> list[np.ndarray]:
    """Small integers; square matrices are Hermitian and positive definite."""
    rng = np.random.default_rng(7)
    arrays = []
    for shape in shapes:
        x = rng.integers(-4, 5, shape) + (1j * rng.integers(-4, 5, shape) if dtype.is_complex else 0)
        square = len(shape) == 2 and shape[0] == shape[1]
        arrays.append((x @ x.conj().T + 3 * np.eye(len(x)) if square else x).astype(dtype.numpy))
    return arrays


def determinant(a: np.ndarray) -> complex:
    if len(a) == 1:
        return a[0, 0].item()
    minors = (np.delete(a[1:], column, axis=1) for column in range(len(a)))
    return sum((-1) ** k * a[0, k].item() * determinant(minor) for k, minor in enumerate(minors))


def check_matmul(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    left, right = np.atleast_2d(a), b[:, None] if b.ndim == 1 else b
    expected = [[sum((x * y for x, y in zip(row, column)), 0) for column in right.T] for row in left]
    np.testing.assert_allclose(c, np.reshape(expected, a.shape[:-1] + b.shape[1:]), rtol=1e-6)


def check_slogdet(a: np.ndarray, sign: np.generic, log: np.generic) -> None:
    np.testing.assert_allclose(sign * np.exp(log), determinant(a), rtol=1e-4)
    np.testing.assert_allclose(abs(sign), 1, rtol=1e-5)


def check_cholesky(a: np.ndarray, factor: np.ndarray) -> None:
    np.testing.assert_allclose(factor @ factor.conj().T, a, atol=1e-4)
    assert (np.triu(factor, 1) == 0).all()


def check_cholesky_adjoint(a: np.ndarray, adj: np.ndarray, back: np.ndarray) -> None:
    """Against differences of the factor by each element of the lower triangle, which stands on both sides."""
    factor = np.tril(a)
    matrix, step = factor @ factor.T, 1e-4
    back = library_op("cholesky_adjoint").numpy([factor, adj], {})[0]
    for i, j in np.ndindex(*a.shape):
        moved = np.zeros_like(a)
        moved[i, j] = moved[j, i] = step * (i >= j)
        slope = (np.linalg.cholesky(matrix + moved) - np.linalg.cholesky(matrix - moved)) / (2 * step)
        np.testing.assert_allclose(back[i, j], np.sum(np.tril(adj) * slope), rtol=1e-4, atol=1e-7)


def check_qr(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    np.testing.assert_allclose(q @ r, a, atol=1e-4)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(a.shape[1]), atol=1e-5)
    assert (np.tril(r, -1) == 0).all()


def fourier(n: int, sign: int) -> np.ndarray:
    k = np.arange(n)
    return np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


def check_fft_table(room: np.ndarray, like: np.ndarray, table: np.ndarray) -> None:
    """Roots, and where there are more a chirp and a spectrum by which a convolution is the transform."""
    n = len(like)
    if len(room) == n:
        np.testing.assert_allclose(table, fourier(n, -1)[:, min(1, n - 1)], atol=1e-6)
        return
    roots, chirp, spectrum = np.split(table, [len(room) // 2 - n // 2, len(room) // 2 - n // 2 + n])
    np.testing.assert_allclose(roots, fourier(len(roots), -1)[:, 1], atol=1e-6)
    padded = np.concatenate([like * chirp, np.zeros(len(roots) - n)])
    made = np.fft.ifft(np.fft.fft(padded) * spectrum)[:n] * chirp
    np.testing.assert_allclose(made, fourier(n, -1) @ like, atol=1e-4)


CHECKS = {
    "matmul": check_matmul,
    "solve": lambda a, b, x: np.testing.assert_allclose(a @ x, b, atol=1e-4),
    "solve_lower": lambda a, b, x: np.testing.assert_allclose(np.tril(a) @ x, b, atol=1e-4),
    "solve_upper": lambda a, b, x: np.testing.assert_allclose(np.triu(a) @ x, b, atol=1e-4),
    "inv": lambda a, b: np.testing.assert_allclose(a @ b, np.eye(len(a)), atol=1e-4),
    "det": lambda a, d: np.testing.assert_allclose(d, determinant(a), rtol=1e-4),
    "slogdet": check_slogdet,
    "cholesky": check_cholesky,
    "cholesky_adjoint": check_cholesky_adjoint,
    "eigh": lambda a, w, v: np.testing.assert_allclose(a @ v, v * w, atol=1e-3),
    "eig": lambda a, w, v: np.testing.assert_allclose(a @ v, v * w, atol=1e-3),
    "svd": lambda a, _, u, s, vh: np.testing.assert_allclose((u * s) @ vh, a, atol=1e-3),
    "qr": check_qr,
    "fft_table": check_fft_table,
    "fft": lambda x, _, y: np.testing.assert_allclose(y, fourier(len(x), -1) @ x, atol=1e-4),
    "ifft": lambda x, _, y: np.testing.assert_allclose(y, fourier(len(x), 1) @ x, atol=1e-4),
    "sort": lambda x, y: np.testing.assert_array_equal(y, sorted(x.tolist())),
    "ranked": lambda x, ranks, p: np.testing.assert_array_equal(p, np.argsort(x, kind="stable")[ranks]),
    "argsort": lambda x, p: np.testing.assert_array_equal(p, sorted(range(len(x)), key=x.tolist().__getitem__)),
}


def test_every_row_is_here_once():
    named = {row.name for row in ROWS} - {"callback"}  # tests/language/test_callbacks.py
    assert sorted(named) == sorted(CHECKS) == sorted(SHAPES)
    assert all(library_op(name).name == name for name in LIBRARY)


@pytest.mark.parametrize("name, shapes, dtype", EXAMPLES)
def test_values_and_types(name: str, shapes: tuple[tuple[int, ...], ...], dtype: DType):
    row = library_op(name)
    args = operands(shapes, dtype)
    if name == "ranked":
        args[1] = np.array([5, 0, 2])
    results = row.numpy(args, {})
    assert len(args) == row.arity
    CHECKS[name](*args, *results)
    given = tuple(Type(FROM_NUMPY[r.dtype], r.shape) for r in results)
    assert row.result_types([Type(FROM_NUMPY[x.dtype], x.shape) for x in args], {}) == given


def test_symbolic_dimensions():
    m, k, k2, n = (Var(name, I64) for name in ("m", "k", "k2", "n"))
    matmul = library_op("matmul").result_types
    assert matmul([Type(DType.f64, (m, k)), Type(DType.f64, (k2, n))], {}) == (Type(DType.f64, (m, n)),)
    assert matmul([Type(DType.f64, (k,)), Type(DType.f64, (k2, n))], {}) == (Type(DType.f64, (n,)),)
    assert library_op("argsort").result_types([Type(DType.f32, (n,))], {}) == (Type(DType.i64, (n,)),)


@pytest.mark.parametrize(
    "name, types",
    [
        ("matmul", [Type(DType.f64, (2, 2, 2)), Type(DType.f64, (2,))]),
        ("matmul", [Type(DType.f64), Type(DType.f64, (2,))]),
        ("matmul", [Type(DType.f64, (2,)), Type(DType.f32, (2,))]),
        ("matmul", [Type(DType.bool, (2,)), Type(DType.bool, (2,))]),
        ("solve", [Type(DType.f64, (2, 2)), Type(DType.f32, (2,))]),
        ("solve", [Type(DType.f64, (2, 2)), Type(DType.f64)]),
        ("solve", [Type(DType.i64, (2, 2)), Type(DType.i64, (2,))]),
        ("inv", [Type(DType.f64, (2,))]),
        ("det", [Type(DType.i64, (2, 2))]),
        ("slogdet", [Type(DType.f64, (2, 2, 2))]),
        ("cholesky", [Type(DType.bool, (2, 2))]),
        ("cholesky_adjoint", [Type(DType.c64, (2, 2)), Type(DType.c64, (2, 2))]),
        ("sort", [Type(DType.f64, (2, 2))]),
        ("argsort", [Type(DType.c64, (2,))]),
    ],
)
def test_refused_types_are_named(name: str, types: list[Type]):
    with pytest.raises(TypeError, match=f"^{name} takes "):
        library_op(name).result_types(types, {})


@pytest.mark.parametrize("name", ["solve", "solve_lower", "solve_upper", "inv", "cholesky"])
def test_singular_matrices_raise(name: str):
    args = [np.zeros((2, 2)), np.ones(2)][: library_op(name).arity]
    with pytest.raises(np.linalg.LinAlgError):
        library_op(name).numpy(args, {})


def test_determinant_of_a_singular_matrix():
    zero = np.zeros((2, 2))
    assert library_op("det").numpy([zero], {}) == (0.0,)
    assert library_op("slogdet").numpy([zero], {}) == (0.0, -np.inf)


def test_cholesky_reads_the_lower_triangle():
    a = np.array([[4.0, 99.0], [2.0, 5.0]])
    np.testing.assert_allclose(library_op("cholesky").numpy([a], {})[0], [[2.0, 0.0], [1.0, 2.0]])


def test_sorting_is_stable_and_puts_nan_last():
    x = np.array([1.0, np.nan, 0.0, -0.0, np.nan, -1.0, -0.0, 0.0])
    (y,), (p,) = library_op("sort").numpy([x], {}), library_op("argsort").numpy([x], {})
    assert p.tolist() == [5, 2, 3, 6, 7, 0, 1, 4]
    np.testing.assert_array_equal(y, x[p])
    assert np.signbit(y[:5]).tolist() == [True, False, True, True, False]
