"""The evaluator, node by node: tiny functions made with the builder, expected values by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from tapeless.errors import ShapeError
from tapeless.interp.evaluate import evaluate
from tapeless.interp.values import IllTyped, OutOfBounds
from tapeless.ir.builder import Builder, full_axes
from tapeless.ir.core import (
    At,
    Atom,
    Check,
    If,
    Library,
    Print,
    Range,
    Shown,
    Sweep,
    While,
)
from tapeless.ir.types import BOOL, C128, F32, F64, I64, Const, DType, Type, Var, i64
from tests.interp.programs import ONE, ZERO, A, M, N, X, apply, array, function, region, rows, run

# -- scalars, arguments, sizes


def test_scalars_keep_their_exact_type() -> None:
    x, k = Var("x", F32), Var("k", I64)
    f = function(
        [x, k],
        lambda b, x, k: [apply(b, "sin", x), apply(b, "add", k, i64(2**63 - 1)), apply(b, "lt", x, x, type=BOOL)],
    )
    sine, wrapped, less = evaluate(f, (0.5, 1))
    assert type(sine) is np.float32 and sine == np.sin(np.float32(0.5))
    assert type(wrapped) is np.int64 and wrapped == -(2**63)
    assert type(less) is np.bool_ and not less


@pytest.mark.parametrize(
    ("given", "target", "expected"),
    [(-2.7, F32, np.float32(-2.7)), (-2.7, I64, np.int64(-2)), (0.0, BOOL, np.False_), (1.5, C128, 1.5 + 0j)],
)
def test_convert(given: float, target: Type, expected: object) -> None:
    (result,) = run([Var("x", F64)], lambda b, x: [apply(b, "convert", x, type=target)], given)
    assert result == expected and result.dtype == target.dtype.numpy


def test_division_by_zero_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    assert run([Var("x", F64)], lambda b, x: [apply(b, "div", x, ZERO)], 1.0) == [np.inf]
    assert not recwarn.list


def test_sizes_are_bound_from_shapes() -> None:
    assert run([array(N), array(M, N, name="a")], lambda b, x, a: [N, M], X, A) == [4, 3]


@pytest.mark.parametrize("args", [(X, X[:3]), (X[:3], X), (A, X)])
def test_shapes_that_disagree(args: tuple[object, ...]) -> None:
    with pytest.raises(ShapeError):
        run([array(N), array(N, name="y")], lambda b, x, y: [N], *args)
    with pytest.raises(ShapeError, match=r"axis 0 of x has length 4, expected 3"):
        run([array(3)], lambda b, x: [x], X)


def test_arguments_of_another_type() -> None:
    with pytest.raises(TypeError, match="x has element type float32, expected float64"):
        run([array(N)], lambda b, x: [x], X.astype(np.float32))
    with pytest.raises(TypeError, match="k has element type float64"):
        run([Var("k", I64)], lambda b, k: [k], 1.5)
    with pytest.raises(TypeError, match="takes 1 arguments, 2 given"):
        run([Var("k", I64)], lambda b, k: [k], 1, 2)


def test_the_arguments_stay_as_they_are() -> None:
    x = X.copy()
    (result,) = run([array(N)], lambda b, x: [b.update(x, [At(i64(0))], ONE)], x)
    assert x.tolist() == X.tolist() and result.tolist() == [1.0, *X[1:]]
    (same,) = run([array(N)], lambda b, x: [x], x)
    assert not np.shares_memory(same, x)
    whole, part = run([array(4)], lambda b, x: [x, b.reshape(x, [2, 2])], x)
    assert not np.shares_memory(whole, part)


# -- control


def test_if_runs_one_branch() -> None:
    def make(b: Builder, c: Var, x: Var) -> Iterable[Atom]:
        def bad() -> Iterable[Atom]:
            b.effect(Check(Const(False, DType.bool), "ValueError", "not this one"))
            return [ZERO]

        return b.bind([Var("r", F64)], If(c, region(b, lambda: [apply(b, "neg", x)]), region(b, bad)))

    assert run([Var("c", BOOL), Var("x", F64)], make, True, 2.0) == [-2.0]
    with pytest.raises(ValueError, match=r"^not this one \(f\.py:7\)$"):
        run([Var("c", BOOL), Var("x", F64)], make, False, 2.0)


def test_branches_may_return_arrays_of_different_sizes() -> None:
    def make(b: Builder, c: Var) -> Iterable[Atom]:
        size = Var("k", I64)
        branches = [region(b, lambda n=n: [i64(n), b.iota(n)]) for n in (2, 3)]  # type: ignore[misc]
        return b.bind([size, array(size, dtype=DType.i64)], If(c, *branches))

    size, result = run([Var("c", BOOL)], make, False)
    assert size == 3 and result.tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_for(n: int) -> None:
    def make(b: Builder, n: Var, x: Var) -> Iterable[Atom]:
        def step(i: Var, previous: Var, current: Var) -> Iterable[Atom]:
            return [current, apply(b, "add", apply(b, "mul", previous, x), apply(b, "convert", i, type=F64))]

        return b.for_(n, [ZERO, ONE], step)

    a, c = 0.0, 1.0
    for i in range(n):
        a, c = c, a * 1.5 + i
    assert run([Var("n", I64), Var("x", F64)], make, n, 1.5) == [a, c]


def test_while_counts_the_steps_of_collatz() -> None:
    def make(b: Builder, start: Var) -> Iterable[Atom]:
        k, steps = Var("k", I64), Var("steps", I64)

        def step() -> Iterable[Atom]:
            odd = apply(b, "eq", apply(b, "mod", k, i64(2)), i64(1), type=BOOL)
            up = region(b, lambda: [apply(b, "add", apply(b, "mul", k, i64(3)), i64(1))])
            down = region(b, lambda: [apply(b, "floordiv", k, i64(2))])
            return [*b.bind([Var("k", I64)], If(odd, up, down)), apply(b, "add", steps, i64(1))]

        test = region(b, lambda: [apply(b, "ne", k, i64(1), type=BOOL)])
        return b.bind([Var("k", I64), Var("s", I64)], While((k, steps), (start, i64(0)), test, region(b, step)))

    assert run([Var("k", I64)], make, 27) == [1, 111]
    assert run([Var("k", I64)], make, 1) == [1, 0]


# -- index and update


@pytest.mark.parametrize("i", [0, 3, -1, -4])
def test_index_wraps(i: int) -> None:
    assert run([array(N), Var("i", I64)], lambda b, x, i: [b.index(x, [At(i, wrap=True, check=True)])], X, i) == [X[i]]


@pytest.mark.parametrize("i", [4, -5])
def test_index_outside(i: int) -> None:
    params = [array(M, N), Var("i", I64)]
    message = rf"^index {i} is out of bounds for axis 1 with size 4 \(f\.py:7\)$"

    def read(**flags: bool) -> Callable[..., Iterable[Atom]]:
        return lambda b, a, i: [b.index(a, [At(i64(0)), At(i, **flags)])]

    def write(**flags: bool) -> Callable[..., Iterable[Atom]]:
        return lambda b, a, i: [b.update(a, [At(i64(0)), At(i, **flags)], ZERO)]

    for access in (read, write):
        with pytest.raises(IndexError, match=message):
            run(params, access(wrap=True, check=True), A, i)
        with pytest.raises(OutOfBounds, match=message):
            run(params, access(wrap=True), A, i)
    with pytest.raises(IndexError):
        run(params, read(check=True), A, -1)  # not wrapped
    with pytest.raises(OutOfBounds):
        run(params, read(), A, -1)


@pytest.mark.parametrize(
    "part", [slice(0, 4, 1), slice(1, 4, 2), slice(3, None, -1), slice(2, None, -2), slice(2, 2, 1), slice(3, 2, -1)]
)
def test_ranges(part: slice) -> None:
    positions = range(4)[part]
    axes = [Range(i64(0), 3, i64(1)), Range(i64(positions.start), len(positions), i64(positions.step))]
    (view,) = run([array(3, 4)], lambda b, a: [b.index(a, axes)], A)
    np.testing.assert_array_equal(view, A[:, part])
    expected = A.copy()
    expected[:, part] = -A[:, part]
    value = array(3, len(positions), name="v")
    (written,) = run([array(3, 4), value], lambda b, a, v: [b.update(a, axes, v)], A, -A[:, part])
    np.testing.assert_array_equal(written, expected)
    (filled,) = run([array(3, 4)], lambda b, a: [b.update(a, axes, ONE)], A)
    expected[:, part] = 1
    np.testing.assert_array_equal(filled, expected)


@pytest.mark.parametrize(("start", "length", "step"), [(2, 3, 1), (-1, 1, 1), (1, 3, -1), (0, 2, 0), (0, -1, 1)])
def test_a_range_outside_is_a_mistake_of_the_compiler(start: int, length: int, step: int) -> None:
    size = Var("k", I64)
    with pytest.raises(OutOfBounds):
        run([array(N), size], lambda b, x, k: [b.index(x, [Range(i64(start), k, i64(step))])], X, length)


def test_row_and_value_of_an_update_must_fit() -> None:
    assert run([array(M, N)], lambda b, a: [b.row(a, i64(1))], A)[0].tolist() == A[1].tolist()
    with pytest.raises(IllTyped):
        run([array(N)], lambda b, x: [b.update(x, [At(i64(0))], i64(1))], X)
    with pytest.raises(IllTyped):  # NumPy would broadcast
        run([array(4), array(1, name="y")], lambda b, x, y: [b.update(x, full_axes([4]), y)], X, X[:1])


# -- making and rearranging arrays


def test_makers() -> None:
    def make(b: Builder, x: Var, n: Var) -> Iterable[Atom]:
        return [b.iota(n), b.full([2, n], x, DType.f64), b.array([x, ONE]), b.array([b.full([n], x, DType.f64)] * 2)]

    iota, full, pair, rows = run([Var("x", F64), Var("n", I64)], make, 2.5, 3)
    assert iota.tolist() == [0, 1, 2] and iota.dtype == np.int64
    assert full.tolist() == rows.tolist() == [[2.5] * 3] * 2
    assert pair.tolist() == [2.5, 1.0]


@pytest.mark.parametrize("dtype", list(DType))
def test_uninitialised_cells_show(dtype: DType) -> None:
    (cells,) = run([], lambda b: [b.full([3], None, dtype)])
    assert cells.dtype == dtype.numpy
    assert np.isnan(cells).all() if np.issubdtype(cells.dtype, np.inexact) else (cells != 0).all()


def test_rearranging() -> None:
    def make(b: Builder, a: Var) -> Iterable[Atom]:
        return [b.reshape(a, [2, 6]), b.transpose(a, [1, 0]), b.concat([a, a], 1, 8), b.copy(a)]

    reshaped, transposed, joined, copied = run([array(3, 4)], make, A)
    np.testing.assert_array_equal(reshaped, A.reshape(2, 6))
    np.testing.assert_array_equal(transposed, A.T)
    np.testing.assert_array_equal(joined, np.concatenate([A, A], 1))
    np.testing.assert_array_equal(copied, A)
    with pytest.raises(IllTyped):
        run([array(3, 4)], lambda b, a: [b.reshape(a, [5])], A)


def test_transpose_of_rank_three() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    (result,) = run([array(2, 3, 4)], lambda b, a: [b.transpose(a, [2, 0, 1])], a)
    np.testing.assert_array_equal(result, a.transpose(2, 0, 1))


def test_broadcast() -> None:
    def make(b: Builder, a: Var, x: Var, s: Var) -> Iterable[Atom]:
        return [
            b.broadcast(a, [3, 2, 4], [0, 2]),
            b.broadcast(a, [4, 2, 3], [2, 0]),
            b.broadcast(x, [4, 2], [0]),
            b.broadcast(s, [2, 2], []),
        ]

    middle, swapped, columns, scalar = run([array(3, 4), array(4, name="y"), Var("s", F64)], make, A, X, 2.0)
    np.testing.assert_array_equal(middle, np.broadcast_to(A[:, None, :], (3, 2, 4)))
    np.testing.assert_array_equal(swapped, np.broadcast_to(A.T[:, None, :], (4, 2, 3)))
    np.testing.assert_array_equal(columns, np.broadcast_to(X[:, None], (4, 2)))
    assert scalar.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(IllTyped):
        run([array(4)], lambda b, x: [b.broadcast(x, [3], [0])], X)


def test_library() -> None:
    spd = A[:, :3] @ A[:, :3].T + np.eye(3)

    def make(b: Builder, a: Var, x: Var) -> Iterable[Atom]:
        product = b.let(Type(DType.f64, (3,)), Library("matmul", (a, x)))
        sign_log = b.bind([Var("s", F64), Var("l", F64)], Library("slogdet", (a,)))
        return [product, *sign_log, b.let(x.type, Library("sort", (x,)))]

    product, sign, log, ordered = run([array(3, 3), array(3, name="x")], make, spd, X[:3])
    np.testing.assert_allclose(product, spd @ X[:3])
    assert (sign, log) == tuple(np.linalg.slogdet(spd))
    assert ordered.tolist() == sorted(X[:3])


# -- effects


@pytest.mark.parametrize(
    "error", ["IndexError", "ZeroDivisionError", "ValueError", "UnboundLocalError", "AssertionError"]
)
def test_check_raises_the_named_builtin(error: str) -> None:
    def make(b: Builder, k: Var) -> Iterable[Atom]:
        b.effect(Check(apply(b, "gt", k, i64(0), type=BOOL), error, "{0} is not above {1}", (k, i64(0))))
        return [k]

    assert run([Var("k", I64)], make, 1) == [1]
    with pytest.raises(Exception, match=r"^-2 is not above 0 \(f\.py:7\)$") as caught:
        run([Var("k", I64)], make, -2)
    assert type(caught.value).__name__ == error


def test_check_fills_the_place_of_a_source_error() -> None:
    def make(b: Builder) -> Iterable[Atom]:
        b.effect(Check(Const(False, DType.bool), "ShapeError", "{0} against {1}", (i64(2), i64(3))))
        return []

    with pytest.raises(ShapeError) as caught:
        run([], make)
    error = caught.value
    assert (error.reason, error.file, error.line, error.column) == ("2 against 3", "f.py", 7, 4)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    def make(b: Builder, x: Var, k: Var) -> Iterable[Atom]:
        b.effect(Print(("x is ", Shown(0), ", k is ", Shown(1, "{:3d}"), "\n"), (x, k)))
        return []

    run([Var("x", F64), Var("k", I64)], make, 1.5, 3)
    assert capsys.readouterr().out == "x is 1.5, k is   3\n"


# -- what a verifier would also find


def test_names_stay_in_their_scope() -> None:
    def make(b: Builder, c: Var) -> Iterable[Atom]:
        inner: list[Var] = []

        def branch() -> Iterable[Atom]:
            inner.append(apply(b, "not", c))
            return []

        b.bind([], If(c, region(b, branch), region(b, lambda: [])))
        return inner[:1]

    with pytest.raises(IllTyped, match="not in scope"):
        run([Var("c", BOOL)], make, True)


def test_values_are_of_the_type_of_their_variable() -> None:
    with pytest.raises(IllTyped, match=r"bound to int64\[\].* in `t = apply` \(f\.py:7\)"):
        run([Var("k", I64)], lambda b, k: [apply(b, "neg", k, type=F64)], 1)
    with pytest.raises(IllTyped):
        run([array(N)], lambda b, x: b.bind([array(3)], Sweep(N, (x,), rows(b, [x], lambda i, e: [e]))), X)
