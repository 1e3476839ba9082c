"""The operators as plain Python, against loops written out: values, types, empty arrays, containers, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tapeless.api import operators as tp
from tapeless.ir.pytree import flatten

X = np.array([3.0, 1.0, 2.0])
MATRICES = np.array([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [1.0, 3.0]]])


def same(actual: Any, expected: Any) -> None:
    """Equal in structure, shape, type and value."""
    left, left_def = flatten(actual)
    right, right_def = flatten(expected)
    assert left_def == right_def
    for a, b in zip(left, right, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def affine(f: Any, g: Any) -> Any:
    """Composition of x -> a x + b, first f: associative, not commutative."""
    return g[0] * f[0], g[0] * f[1] + g[1]


class Compiled:
    """Stands for a decorated function: calling it is the wrong thing to do here."""

    def __init__(self, python: Any) -> None:
        self.python = python

    def __call__(self, *args: Any) -> Any:
        raise AssertionError("the compiled version was called")


# --- map --------------------------------------------------------------------------------------------------------------


def test_map_rows() -> None:
    same(tp.map(lambda x: 2 * x, X), 2 * X)
    same(tp.map(lambda x, y: x - y, X, np.array([1, 2, 3])), X - [1, 2, 3])
    same(tp.map(lambda row: row.sum(), MATRICES), MATRICES.sum(axis=(1, 2)))
    same(tp.map(lambda row: row[0], MATRICES), MATRICES[:, 0])
    same(tp.map(lambda row, x: row * x, MATRICES, X), MATRICES * X[:, None, None])


def test_map_rows_of_vectors_are_numpy_scalars() -> None:
    seen: list[Any] = []
    tp.map(lambda x: seen.append(x) or 0.0, np.ones(2, np.float32))
    assert [type(x) for x in seen] == [np.float32, np.float32]


@pytest.mark.parametrize("n", [3, np.int64(3), np.int32(3)])
def test_map_count(n: Any) -> None:
    same(tp.map(lambda i: i * i, n), np.array([0, 1, 4]))
    same(tp.map(lambda i: X[i], n), X)


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1.0, np.float64),
        (1, np.int64),
        (True, np.bool_),
        (1j, np.complex128),
        (np.float32(1), np.float32),
        (np.int32(1), np.int32),
        (np.array(1.0, np.float32), np.float32),
    ],
)
def test_map_types(value: Any, dtype: Any) -> None:
    same(tp.map(lambda i: value, 2), np.full(2, value, dtype))


def test_map_types_that_differ_between_rows_are_promoted() -> None:
    same(tp.map(lambda i: 0 if i else 1.5, 2), np.array([1.5, 0.0]))
    same(tp.map(lambda i: True if i else 2, 2), np.array([2, 1]))
    same(tp.map(lambda i: False if i else 2.5, 2), np.array([2.5, 0.0]))
    same(tp.map(lambda i: 0.0 if i else np.float32(1), 2), np.array([1, 0], np.float32))
    same(tp.map(lambda i: np.float64(0) if i else np.float32(1), 2), np.array([1.0, 0.0]))
    same(tp.map(lambda i: 1 if i else np.bool_(True), 2), np.array([1, 1]))


def test_map_containers() -> None:
    same(tp.map(lambda p: p[0] + p[1], (X, 2 * X)), 3 * X)
    same(
        tp.map(lambda p, z: {"s": p["a"] + z, "row": [p["b"]]}, {"a": X, "b": MATRICES}, X),
        {"s": 2 * X, "row": [MATRICES]},
    )
    same(tp.map(lambda x: (x, (1, x > 1)), X), (X, (np.ones(3, int), X > 1)))

    @dataclass
    class Particle:
        position: Any
        mass: Any

    moved = tp.map(lambda p: Particle(p.position + 1, p.mass), Particle(MATRICES[0], X[:2]))
    same(moved.position, MATRICES[0] + 1)
    same(moved.mass, X[:2])


def test_map_of_no_rows() -> None:
    same(tp.map(lambda i: (i, i / 2), 0), (np.empty(0, int), np.empty(0)))
    same(tp.map(lambda x: x > 0, np.empty((0, 4), int)), np.empty((0, 4), bool))
    same(
        tp.map(lambda x: (x.sum(), x), np.empty((0, 3), np.float32)),
        (np.empty(0, np.float32), np.empty((0, 3), np.float32)),
    )
    same(tp.map(lambda x, y: x @ y, np.empty((0, 3)), np.empty((0, 3))), np.empty(0))
    same(tp.map(lambda k: [5, 6][k - 1 + k], np.empty(0, int)), np.empty(0, int))
    same(tp.map(abs, -2), np.empty(0, int))


def test_map_of_no_rows_that_cannot_be_tried() -> None:
    table = np.empty(0)
    same(tp.map(lambda i: table[i], 0), np.empty(0))


def test_map_of_rows_with_no_columns() -> None:
    same(tp.map(lambda row: row, np.empty((3, 0))), np.empty((3, 0)))


def test_map_result_is_not_a_view() -> None:
    rows = np.ones((2, 2))
    tp.map(lambda row: row, rows)[:] = 7.0
    same(rows, np.ones((2, 2)))


def test_map_over_a_buffer_that_is_used_again() -> None:
    buffer = np.zeros(2)

    def f(i: int) -> Any:
        buffer[:] = i
        return buffer

    same(tp.map(f, 3), np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))


def test_map_without_a_result() -> None:
    assert tp.map(lambda x: None, X) is None


def test_map_prefers_plain_python() -> None:
    same(tp.map(Compiled(lambda x: x + 1), X), X + 1)


@pytest.mark.parametrize(
    "args, message",
    [
        ((X, X[:2]), r"leading lengths differ \(argument\[0\]: 3, argument\[1\]: 2\)"),
        (((X, {"a": X[:1]}),), r"argument\[0\]\[1\]\['a'\]: 1"),
        ((X, 3), r"argument\[1\] is a single value \(3\)"),
        ((True,), r"argument\[0\] is a single value"),
        (([1.0, 2.0],), r"argument\[0\]\[0\] is a single value \(1.0\)"),
        (((),), "argument holds no array"),
        ((), "argument holds no array"),
    ],
)
def test_map_refuses_arguments(args: Any, message: str) -> None:
    with pytest.raises(ValueError, match="tp.map: .*" + message):
        tp.map(lambda *a: 0.0, *args)


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda i: np.ones(i + 1), r"result has shape \(2,\) at 1 and \(1,\) at 0"),
        (lambda i: (1.0, np.ones(1) if i else 1.0), r"result\[1\] has shape \(1,\) at 1 and \(\) at 0"),
        (
            lambda i: (1, 2) if i else [1, 2],
            r"result 1 has another structure than result 0: \(\*, \*\) against \[\*, \*\]",
        ),
    ],
)
def test_map_refuses_results(f: Any, message: str) -> None:
    with pytest.raises(ValueError, match="tp.map: " + message):
        tp.map(f, 2)


# --- reduce -----------------------------------------------------------------------------------------------------------


def test_reduce() -> None:
    same(tp.reduce(lambda a, b: a + b, 0.0, X), np.float64(6.0))
    same(tp.reduce(max, -np.inf, X), np.float64(3.0))
    same(tp.reduce(lambda a, b: a * b, 1, np.array([2, 3, 4])), np.int64(24))
    same(tp.reduce(lambda a, b: a + b, 0.0, X, commutative=True), np.float64(6.0))
    same(tp.reduce(Compiled(lambda a, b: a + b), 0.0, X), np.float64(6.0))


def test_reduce_is_a_left_fold_from_the_neutral_element() -> None:
    calls: list[tuple[float, float]] = []

    def op(a: float, b: float) -> float:
        calls.append((float(a), float(b)))
        return a + b

    tp.reduce(op, 0.0, X)
    assert calls == [(0.0, 3.0), (3.0, 1.0), (4.0, 2.0)]


def test_reduce_matrices_in_order() -> None:
    same(tp.reduce(matmul, np.eye(2), MATRICES), MATRICES[0] @ MATRICES[1] @ MATRICES[2])


def test_reduce_rows_with_a_scalar_neutral_element() -> None:
    same(tp.reduce(np.add, 0.0, MATRICES), MATRICES.sum(axis=0))
    same(tp.reduce(np.add, 0.0, np.empty((0, 2))), np.zeros(2))


def test_reduce_tuples() -> None:
    def argmax(a: Any, b: Any) -> Any:
        return b if b[0] > a[0] else a

    same(tp.reduce(argmax, (-np.inf, -1), (X, np.arange(3))), (np.float64(3.0), np.int64(0)))
    same(tp.reduce(affine, (1.0, 0.0), (X, X)), (np.float64(6.0), np.float64(10.0)))
    nested = tp.reduce(lambda a, b: {"m": (a["m"][0] + b["m"][0],)}, {"m": (0.0,)}, {"m": (X,)})
    same(nested, {"m": (np.float64(6.0),)})


@pytest.mark.parametrize(
    "ne, dtype, result",
    [
        (0.0, np.float32, np.float32),
        (0, np.float32, np.float32),
        (0, np.int32, np.int32),
        (0.0, np.int64, np.float64),
        (np.float64(0), np.float32, np.float64),
        (0, np.bool_, np.int64),
    ],
)
def test_reduce_types_do_not_depend_on_the_length(ne: Any, dtype: Any, result: Any) -> None:
    for n in (0, 1, 3):
        total = tp.reduce(lambda a, b: a + b, ne, np.ones(n, dtype))
        same(total, result(n))
        assert isinstance(total, np.generic)
        same(tp.scan(lambda a, b: a + b, ne, np.ones(n, dtype)), np.arange(1, n + 1).astype(result))
        same(tp.reduce(lambda a, b: 1 if b else 0, ne, np.ones(n, dtype)), result(n > 0))


def test_reduce_empty() -> None:
    same(tp.reduce(matmul, np.eye(2), np.empty((0, 2, 2))), np.eye(2))
    same(tp.reduce(affine, (1.0, 0), (X[:0], np.empty(0, int))), (np.float64(1.0), np.int64(0)))
    same(tp.reduce(max, -np.inf, np.array([-np.inf])), np.float64(-np.inf))


def test_reduce_leaves_its_inputs_alone() -> None:
    def in_place(a: Any, b: Any) -> Any:
        a += b
        b[:] = -1.0
        return a

    rows, ne = np.ones((3, 2)), np.zeros(2)
    same(tp.reduce(in_place, ne, rows), np.full(2, 3.0))
    same(tp.scan(in_place, ne, rows), np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    same(tp.scan(in_place, ne, rows, exclusive=True), np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))
    tp.reduce(lambda a, b: b, ne, rows)[:] = 9.0
    tp.reduce(lambda a, b: b, ne, rows[:0])[:] = 9.0
    same((rows, ne), (np.ones((3, 2)), np.zeros(2)))


@pytest.mark.parametrize(
    "op, ne, xs, message",
    [
        (affine, 0.0, (X, X), r"neutral element has another structure than the elements: \* against \(\*, \*\)"),
        (affine, [1.0, 0.0], (X, X), r"\[\*, \*\] against \(\*, \*\)"),
        (lambda a, b: a[0], (1.0, 0.0), (X, X), r"operator's result has another structure than the elements"),
        (lambda a, b: [a, b], 0.0, X, r"operator's result has another structure than the elements"),
        (np.add, np.zeros(3), MATRICES, r"neutral element has shape \(3,\), the elements \(2, 2\)"),
        (lambda a, b: np.ones(2), 0.0, X, r"operator returned shape \(2,\) for elements of shape \(\)"),
        (max, 0.0, (X, X[:1]), r"xs\[0\]: 3, xs\[1\]: 1"),
        (max, 0.0, 5.0, r"xs is a single value"),
    ],
)
def test_reduce_and_scan_refuse(op: Any, ne: Any, xs: Any, message: str) -> None:
    for name in ("reduce", "scan"):
        with pytest.raises(ValueError, match=f"tp.{name}: .*{message}"):
            getattr(tp, name)(op, ne, xs)


# --- scan -------------------------------------------------------------------------------------------------------------


def test_scan_addition() -> None:
    def add(a: float, b: float) -> float:
        return a + b

    same(tp.scan(add, 0.0, X), np.array([3.0, 4.0, 6.0]))
    same(tp.scan(add, 0.0, X, exclusive=True), np.array([0.0, 3.0, 4.0]))
    same(tp.scan(add, 0.0, X, reverse=True), np.array([6.0, 3.0, 2.0]))
    same(tp.scan(add, 0.0, X, exclusive=True, reverse=True), np.array([3.0, 2.0, 0.0]))
    same(tp.scan(Compiled(add), 0.0, X), np.array([3.0, 4.0, 6.0]))


def test_scan_keeps_the_order_of_what_does_not_commute() -> None:
    a, b, c = MATRICES
    eye = np.eye(2)
    same(tp.scan(matmul, eye, MATRICES), np.array([a, a @ b, a @ b @ c]))
    same(tp.scan(matmul, eye, MATRICES, exclusive=True), np.array([eye, a, a @ b]))
    same(tp.scan(matmul, eye, MATRICES, reverse=True), np.array([a @ (b @ c), b @ c, c]))
    same(tp.scan(matmul, eye, MATRICES, exclusive=True, reverse=True), np.array([b @ c, c, eye]))


def test_scan_tuples() -> None:
    slope, shift = np.array([2.0, 3.0, 5.0]), np.array([1.0, 1.0, 2.0])
    same(tp.scan(affine, (1.0, 0.0), (slope, shift)), (np.array([2.0, 6.0, 30.0]), np.array([1.0, 4.0, 22.0])))
    same(
        tp.scan(affine, (1.0, 0.0), (slope, shift), reverse=True),
        (np.array([30.0, 15.0, 5.0]), np.array([22.0, 7.0, 2.0])),
    )
    same(
        tp.scan(affine, (1.0, 0.0), (slope, shift), exclusive=True),
        (np.array([1.0, 2.0, 6.0]), np.array([0.0, 1.0, 4.0])),
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_scan_empty_and_single(exclusive: bool, reverse: bool) -> None:
    options = {"exclusive": exclusive, "reverse": reverse}
    same(tp.scan(np.add, 0, np.empty(0, np.float32), **options), np.empty(0, np.float32))
    same(tp.scan(matmul, np.eye(2), np.empty((0, 2, 2)), **options), np.empty((0, 2, 2)))
    same(tp.scan(affine, (1.0, 0), (X[:0], np.empty(0, int)), **options), (np.empty(0), np.empty(0, int)))
    same(tp.scan(matmul, np.eye(2), MATRICES[:1], **options), np.eye(2)[None] if exclusive else MATRICES[:1])


def test_scan_result_is_not_a_view() -> None:
    rows = np.ones((2, 2))
    for exclusive in (False, True):
        tp.scan(lambda a, b: b, np.zeros(2), rows, exclusive=exclusive)[:] = 7.0
    same(rows, np.ones((2, 2)))


# --- hist -------------------------------------------------------------------------------------------------------------

KEYS = np.array([1, 0, 1, -1, 3, 2, -100000, 1])
VALUES = np.array([1.0, 2.0, 3.0, 50.0, 60.0, 4.0, 70.0, 5.0])


def test_hist_ignores_keys_out_of_range() -> None:
    same(tp.hist(lambda a, b: a + b, 0.0, 3, KEYS, VALUES), np.array([2.0, 9.0, 4.0]))
    same(tp.hist(max, -np.inf, np.int64(4), KEYS, VALUES), np.array([2.0, 5.0, 4.0, 60.0]))
    same(tp.hist(np.add, 0.0, 1, np.array([2**63 + 1, 0], np.uint64), X[:2]), np.array([1.0]))
    same(tp.hist(Compiled(max), -np.inf, 2, KEYS, VALUES), np.array([2.0, 5.0]))


def test_hist_goes_in_sequence_from_the_destination() -> None:
    digits = tp.hist(lambda a, b: 10 * a + b, 0, 2, np.array([0, 1, 0, 0]), np.array([1, 2, 3, 4]))
    same(digits, np.array([134, 2]))
    same(tp.hist(lambda a, b: a - b, 0.0, np.array([10.0, 20.0]), np.array([0, 0]), X[:2]), np.array([6.0, 20.0]))


def test_hist_copies_its_destination() -> None:
    dest = np.array([10.0, 20.0])
    result = tp.hist(np.add, 0.0, dest, np.array([0, 5]), np.array([1.0, 1.0]))
    same(result, np.array([11.0, 20.0]))
    same(dest, np.array([10.0, 20.0]))
    tp.hist(np.add, 0.0, dest, np.empty(0, int), np.empty(0))[:] = 0.0
    same(dest, np.array([10.0, 20.0]))


def test_hist_types() -> None:
    keys = np.array([0, 0])
    same(tp.hist(np.add, 0.0, 2, keys, np.ones(2, np.float32)), np.array([2, 0], np.float32))
    same(tp.hist(np.add, 0.0, 2, keys, np.ones(2, np.int32)), np.array([2, 0], np.int32))
    same(tp.hist(np.add, 0, np.zeros(2, np.float32), keys, np.ones(2)), np.array([2, 0], np.float32))
    same(tp.hist(np.add, 0, np.zeros(2), keys, np.ones(2, int)), np.array([2.0, 0.0]))
    same(tp.hist(lambda a, b: 1, 0.0, 2, keys, np.ones(2, np.float32)), np.array([1, 0], np.float32))
    for ne in (0.5, np.inf, np.float64(-np.inf)):
        with pytest.raises(TypeError, match="neutral element .* is not of type int64"):
            tp.hist(max, ne, 2, keys, np.ones(2, int))
    with pytest.raises(TypeError, match="values of type float64 do not fit a destination of type int64"):
        tp.hist(np.add, 0, np.zeros(2, int), keys, np.ones(2))
    with pytest.raises(TypeError, match="values of type float64 do not fit a destination of type int64"):
        tp.hist(lambda a, b: a / b, 1, 2, keys, np.ones(2, int))


def test_hist_rows() -> None:
    keys = np.array([1, 1, 5])
    same(tp.hist(np.add, 0.0, 2, keys, MATRICES), np.array([np.zeros((2, 2)), MATRICES[0] + MATRICES[1]]))
    same(tp.hist(matmul, np.eye(2), 2, keys, MATRICES), np.array([np.eye(2), MATRICES[0] @ MATRICES[1]]))
    same(
        tp.hist(matmul, np.eye(2), MATRICES[:2], keys[1:2], MATRICES[2:]),
        np.array([MATRICES[0], MATRICES[1] @ MATRICES[2]]),
    )


def test_hist_tuples() -> None:
    def argmax(a: Any, b: Any) -> Any:
        return b if b[0] > a[0] else a

    where = np.arange(8)
    best = (np.array([2.0, 5.0, 4.0]), np.array([1, 7, 5]))
    same(tp.hist(argmax, (-np.inf, -1), 3, KEYS, (VALUES, where)), best)
    dest = (np.array([9.0, 5.0, 0.0]), np.array([-1, -1, -1]))
    same(
        tp.hist(argmax, (-np.inf, -1), dest, KEYS, (VALUES, where)), (np.array([9.0, 5.0, 4.0]), np.array([-1, -1, 5]))
    )
    same(dest[1], np.array([-1, -1, -1]))


def test_hist_operator_that_swaps_rows() -> None:
    keys, ones = np.array([0]), np.ones((1, 2))
    dest = (np.zeros((1, 2)), np.full((1, 2), 5.0))
    same(tp.hist(lambda a, b: (a[1], a[0]), (0.0, 0.0), dest, keys, (ones, ones)), (dest[1], dest[0]))


def test_hist_empty() -> None:
    same(tp.hist(np.add, 7.0, 2, np.empty(0, int), np.empty(0)), np.array([7.0, 7.0]))
    same(tp.hist(np.add, 0.0, 2, [], np.empty((0, 3), np.float32)), np.zeros((2, 3), np.float32))
    same(tp.hist(np.add, 0.0, 0, KEYS, VALUES), np.empty(0))
    same(tp.hist(np.add, 0.0, np.empty(0), KEYS, VALUES), np.empty(0))


@pytest.mark.parametrize(
    "ne, dest, keys, vals, error, message",
    [
        (0.0, 2, np.array([0.0, 1.0]), X[:2], TypeError, "keys holds float64; integers are needed"),
        (0.0, 2, np.array([True, False]), X[:2], TypeError, "keys holds bool"),
        (0.0, 2, np.array([0, 1, 1]), X[:2], ValueError, "3 keys for 2 values"),
        (0.0, 2, np.array([[0], [1]]), X[:2], ValueError, "keys has 2 axes"),
        (0.0, 2, np.array([0]), (X[:1], X[:1]), ValueError, r"neutral element has another structure"),
        ((0.0, 0.0), X, np.array([0]), (X[:1], X[:1]), ValueError, r"destination has another structure"),
        (
            0.0,
            np.zeros((2, 3)),
            np.array([0]),
            np.ones((1, 2)),
            ValueError,
            r"dest have shape \(3,\), those of vals \(2,\)",
        ),
        ((0.0, 0.0), (X, X[:1]), np.array([0]), (X[:1], X[:1]), ValueError, r"dest\[0\]: 3, dest\[1\]: 1"),
        (0.0, 2.0, np.array([0]), X[:1], ValueError, r"dest is a single value"),
        (0.0, -1, np.array([0]), X[:1], ValueError, r"negative"),
    ],
)
def test_hist_refuses(ne: Any, dest: Any, keys: Any, vals: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tp.hist(lambda a, b: a, ne, dest, keys, vals)


# --- scatter ----------------------------------------------------------------------------------------------------------


def test_scatter() -> None:
    dest = np.zeros(3)
    same(tp.scatter(dest, np.array([2, -1, 3, 0]), np.array([1.0, 2.0, 3.0, 4.0])), np.array([4.0, 0.0, 1.0]))
    same(dest, np.zeros(3))


def test_scatter_the_last_of_equal_indices_wins() -> None:
    same(tp.scatter(np.zeros(2), np.array([1, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0])), np.array([2.0, 4.0]))


def test_scatter_rows_and_tuples() -> None:
    idx = np.array([1, 7])
    same(tp.scatter(MATRICES[:2], idx, MATRICES[1:] + 1), np.array([MATRICES[0], MATRICES[1] + 1]))
    a, b = tp.scatter((np.zeros(2), np.zeros((2, 2), int)), idx, (X[:2], np.ones((2, 2), int)))
    same((a, b), (np.array([0.0, 3.0]), np.array([[0, 0], [1, 1]])))


def test_scatter_types_and_empty() -> None:
    same(tp.scatter(np.zeros(2, np.float32), [0], np.array([1.0])), np.array([1, 0], np.float32))
    same(tp.scatter(np.zeros(2), [0], np.array([1])), np.array([1.0, 0.0]))
    same(tp.scatter(X, np.empty(0, int), np.empty(0)), X)
    same(tp.scatter(np.empty(0), [0, 1], np.ones(2)), np.empty(0))
    with pytest.raises(TypeError, match="tp.scatter: values of type float64 do not fit a destination of type int64"):
        tp.scatter(np.zeros(2, int), [0], np.array([1.0]))
    with pytest.raises(ValueError, match="1 idx for 3 values"):
        tp.scatter(np.zeros(2), [0], X)
    with pytest.raises(ValueError, match="vals is a single value"):
        tp.scatter(np.zeros(2), [0], 1.0)
    with pytest.raises(ValueError, match="destination has another structure"):
        tp.scatter((X, X), [0], X[:1])


def test_scatter_result_does_not_share_its_values() -> None:
    dest, vals = np.zeros((2, 2)), np.ones((1, 2))
    tp.scatter(dest, [0], vals)[:] = 5.0
    same((dest, vals), (np.zeros((2, 2)), np.ones((1, 2))))


# --- loops ------------------------------------------------------------------------------------------------------------


def test_prange() -> None:
    assert tp.prange(3) == range(3)
    assert tp.prange(1, np.int64(5)) == range(1, 5)
    assert tp.prange(5, 0, -2) == range(5, 0, -2)
    for bad in ((), (1, 2, 3, 4), (1.5,)):
        with pytest.raises(TypeError):
            tp.prange(*bad)


def test_loop() -> None:
    r = range(3)
    assert tp.loop(r) is r
    for recover in "auto recompute closed invert undo checkpoint checkpoint:1 checkpoint:12 store".split():
        assert tp.loop(r, recover=recover) is r
    unknown = ["", "Auto", "tape", "checkpoint:", "checkpoint:0", "checkpoint:-1", "checkpoint:K", "store:2", None, 3]
    for wrong in unknown:
        with pytest.raises(ValueError, match="recover=.* use one of auto, recompute, .* store"):
            tp.loop(r, recover=wrong)  # type: ignore[arg-type]


# --- vmap -------------------------------------------------------------------------------------------------------------


def test_vmap_axes() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(3, 2)
    same(tp.vmap(np.dot)(a, a), (a * a).sum(1))
    same(tp.vmap(np.dot, in_axes=(0, 1))(a, b), (a * b.T).sum(1))
    same(tp.vmap(np.dot, in_axes=[0, -1])(a, b), (a * b.T).sum(1))
    same(tp.vmap(np.dot, in_axes=(None, 1))(a, b), (a @ b).T)
    same(tp.vmap(np.dot, in_axes=(None, 1), out_axes=1)(a, b), a @ b)
    same(tp.vmap(lambda x: np.outer(x, x), out_axes=-1)(a), np.einsum("ni,nj->ijn", a, a))
    same(tp.vmap(np.sum, in_axes=1)(a), a.sum(0))
    same(tp.vmap(Compiled(np.sum))(a), a.sum(1))


def test_vmap_containers() -> None:
    tree = {"w": np.arange(6.0).reshape(2, 3), "b": X}

    def f(p: Any, x: Any) -> Any:
        return {"y": p["w"] * x + p["b"], "n": (x,)}

    result = tp.vmap(f, in_axes=({"w": 1, "b": None}, 0), out_axes={"y": 1, "n": 0})({"w": tree["w"], "b": 1.0}, X)
    same(result, {"y": tree["w"] * X + 1.0, "n": (X,)})
    same(tp.vmap(lambda p: p["w"].sum() + p["b"], in_axes=({"w": 1, "b": 0},))(tree), tree["w"].sum(0) + X)
    same(tp.vmap(lambda p: (p[0] + p[1], None))((X, X)), (2 * X, None))


def test_vmap_passes_what_is_not_mapped_as_it_is() -> None:
    same(tp.vmap(lambda f, x, s: f(x) if s == "neg" else x, in_axes=(None, 0, None))(lambda x: -x, X, "neg"), -X)
    same(tp.vmap(lambda x, *, y: x + y)(X, y=X), 2 * X)


def test_vmap_nests() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    pairwise = tp.vmap(tp.vmap(np.dot, in_axes=(None, 0)), in_axes=(0, None))
    same(pairwise(a, b), a @ b.T)
    assert pairwise.__name__ == "vmap(vmap(dot))"
    assert (pairwise.in_axes, pairwise.out_axes) == ((0, None), 0)


def test_vmap_out_axes_none() -> None:
    same(tp.vmap(lambda x, y: (x, y), in_axes=(0, None), out_axes=(0, None))(X, 5.0), (X, np.float64(5.0)))
    same(tp.vmap(lambda x: np.nan, out_axes=None)(X), np.float64(np.nan))
    with pytest.raises(ValueError, match=r"result has out_axes None but differs along the mapped axis"):
        tp.vmap(lambda x: x, out_axes=None)(X)


def test_vmap_empty() -> None:
    same(tp.vmap(lambda x: x, out_axes=1)(np.empty((0, 3))), np.empty((3, 0)))
    same(tp.vmap(lambda x: np.empty(0)[int(x[0])], out_axes=1)(np.empty((0, 3))), np.empty(0))
    with pytest.raises(ValueError, match="no row"):
        tp.vmap(lambda x: 1.0, out_axes=None)(np.empty((0, 3)))


@pytest.mark.parametrize(
    "options, args, message",
    [
        ({}, (X, X[:2]), r"mapped axes differ in length \(argument\[0\]: 3, argument\[1\]: 2\)"),
        ({"in_axes": None}, (X, X), "no argument is mapped"),
        ({"in_axes": (0,)}, (X, X), r"in_axes and the arguments differ: \(\*,\) does not fit \(\*, \*\)"),
        ({"in_axes": ((0, 0), 0)}, (X, X), r"in_axes and the arguments differ: at \[0\], "),
        ({"in_axes": (0, 1)}, (X, X), r"argument\[1\] has shape \(3,\), no axis 1"),
        ({}, (X, 1.0), r"argument\[1\] has shape \(\), no axis 0"),
        ({"out_axes": 1}, (X, X), r"result has 1 axes with the new one, no axis 1"),
        ({"out_axes": (0, 0)}, (X, X), r"out_axes and the result differ"),
    ],
)
def test_vmap_refuses(options: Any, args: Any, message: str) -> None:
    with pytest.raises(ValueError, match="tp.vmap: .*" + message):
        tp.vmap(lambda x, y: x + y, **options)(*args)


def test_vmap_refuses_axes_that_are_none() -> None:
    for options in ({"in_axes": 1.0}, {"in_axes": {"a": 0}}, {"in_axes": ("x",)}, {"out_axes": 0.5}):
        with pytest.raises(TypeError, match="tp.vmap: "):
            tp.vmap(lambda x: x, **options)


# --- nested -----------------------------------------------------------------------------------------------------------


def test_nested_operators() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    product = tp.map(
        lambda r: tp.map(lambda c: tp.reduce(lambda p, q: p + q, 0.0, tp.map(lambda p, q: p * q, r, c)), b.T), a
    )
    same(product, a @ b)
    same(tp.map(lambda r: tp.scan(np.add, 0.0, r), a), np.cumsum(a, axis=1))
    same(
        tp.map(lambda k: tp.hist(np.add, 0, 3, k, np.ones(4, int)), np.array([[0, 1, 1, 9], [2, 2, 2, 2]])),
        np.array([[1, 2, 0], [0, 0, 4]]),
    )
    same(tp.scan(lambda p, q: tp.map(max, p, q), np.full(3, -np.inf), a[::-1]), a[[1, 1]])
    same(tp.reduce(lambda p, q: tp.map(lambda u, v: u * v, p, q), np.ones(3), a), a[0] * a[1])


def test_kmeans_assignment() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0], [8.0, 9.0]])
    centres = np.array([[0.0, 1.0], [9.0, 8.0]])

    def nearest(p: Any) -> Any:
        cost = tp.map(lambda c: tp.reduce(lambda a, b: a + b, 0.0, (p - c) ** 2), centres)
        return tp.reduce(lambda a, b: b if b[0] < a[0] else a, (np.inf, -1), (cost, np.arange(2)))[1]

    cluster = tp.map(nearest, points)
    same(cluster, np.array([0, 0, 1, 1]))
    same(tp.hist(np.add, 0.0, 2, cluster, points), np.array([[1.0, 0.0], [17.0, 18.0]]))
