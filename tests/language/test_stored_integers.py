"""Integers of 8 and 16 bits and unsigned ones: programs that mix them with others, in every stage. tests/trust tries the functions."""

import numpy as np
import pytest

import tapeless as tp
from tests.agreement import agree

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 7), dtype=np.uint8)
SMALL = [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64]


def arithmetic(x, y):
    return x + y, x - y, x * y, x // y, x % y, -x, ~x, x & y, x ^ 5, x | 3, x << 2, x >> 1, x**2, x**y


def order(x, y):
    return x < y, x <= y, x == y, x > 3, x != -1, x >= 70000, np.maximum(x, y), np.minimum(x, y), abs(x), np.sign(x)


def mixed(x, y):
    return x + 1.5, x / y, x * np.float32(2), x + np.int64(5), x + np.int16(5), x < y.astype(np.int64), np.sqrt(x * 1.0)


def combined(x, y):
    z = x.reshape(5, 4)
    return (
        x.sum(), x.prod(), x.max(), x.min(), x.mean(), x.argmax(), x.cumsum(), np.sort(x), np.argsort(x, kind="stable"),
        z @ z.T, z.max(axis=0), np.unique(y), np.median(x), x[y % x.shape[0]], np.concatenate([x, y]), x.any(),
    )  # fmt: skip


def operands(dtype):
    numbers = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    x = rng.integers(numbers.min, numbers.max, 20, dtype=dtype, endpoint=True)
    y = rng.integers(1, 9, 20, dtype=dtype)
    y[0] = numbers.max
    return x, y


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("function", [arithmetic, order, mixed, combined], ids=lambda f: f.__name__)
def test_arrays(function, dtype):
    agree(function, *operands(dtype))


@pytest.mark.parametrize("dtype", SMALL)
def test_numbers(dtype):
    """As arguments and as results, in the native entry and outside of it."""
    compiled = tp.function(arithmetic)
    for x, y in zip(*operands(dtype), strict=True):
        with np.errstate(all="ignore"):
            wanted = arithmetic(x, y)
        for got, want in zip(compiled(x, y), wanted, strict=True):
            assert type(got) is type(want) and got == want


# -- programs


def in_place(a):
    a[0, 0] += 1
    a[1] += 250
    a[a > 200] = 7
    a += 1
    np.add.at(a, (np.array([0, 0, 1]), np.array([1, 1, 2])), 200)
    return a


def running(a):
    """A Python number becomes what it is added to, in the inner loop too."""
    total, last = 0, np.uint8(0)
    for row in a:
        for x in row:
            total += x
        last = last + row[0]
    return total, last


def counted(a):
    total = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += int(a[i, j])
    return total, np.bincount(a.ravel() % 5)


def either(a, flag):
    if flag:
        x = a[0, 0]
    else:
        x = np.uint8(3)
    return x * np.uint8(100)


def hashed(a):
    h = np.uint64(14695981039346656037)
    for x in a.ravel():
        h = (h ^ np.uint64(x)) * np.uint64(1099511628211)
    h ^= h >> np.uint64(33)
    return h * 0xFF51AFD7ED558CCD, h % np.uint64(1000), h / 7


def made(n):
    return (
        np.zeros(n, np.uint8),
        np.arange(n, dtype=np.int8),
        np.full(n, 7, "uint16"),
        np.ones(n).astype(np.uint32),
        np.int8(n),
    )


def states(scores):
    """Viterbi's way back, in bytes."""
    steps, kinds = scores.shape
    back = np.zeros((steps, kinds), np.int8)
    best = scores[0].copy()
    for t in range(1, steps):
        for k in range(kinds):
            back[t, k] = np.argmax(best - 0.5 * np.abs(np.arange(kinds) - k))
        best = scores[t] + np.array([best[back[t, k]] for k in range(kinds)])
    path = np.zeros(steps, np.int8)
    path[-1] = np.argmax(best)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (in_place, (IMAGE,)), (running, (IMAGE,)), (counted, (IMAGE,)), (either, (IMAGE, True)), (either, (IMAGE, False)),
        (hashed, (IMAGE,)), (made, (5,)), (states, (np.random.default_rng(2).normal(size=(6, 3)),)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_programs(function, args):
    agree(function, *args)


def brightness(a, w):
    return np.sum((a / 255.0) ** w) + np.sum(a * w)


@pytest.mark.thorough
def test_derivatives_go_past_them():
    tp.check_grads(lambda w: brightness(IMAGE, w), (1.3,))
    with pytest.raises(tp.CompileError, match="TP301.*array of uint8: integers and truth values have no derivative"):
        tp.grad(brightness)(IMAGE, 1.3)


# -- what does not fit


@tp.function
def put(a, x):
    a[0] = x
    return a


def test_numbers_must_fit():
    a = np.zeros(2, np.uint8)
    assert put(a.copy(), 255)[0] == 255
    for x in (256, -1):
        with pytest.raises(OverflowError, match=f"{x} is out of bounds for uint8"):
            put(a.copy(), x)
    with pytest.raises(tp.CompileError, match="TP104.*Python integer 300 out of bounds for uint8"):
        tp.function(lambda a: a + 300)(a)
    with pytest.raises(tp.CompileError, match="TP109.*only fits into np.uint64"):
        tp.function(lambda n: n + 0xFFFFFFFFFFFFFFFF)(1)


@tp.function(check=True)
def checked(x, y):
    return x + y, x * y, x - y


@pytest.mark.parametrize("dtype", SMALL)
def test_checks(dtype):
    top, low = np.iinfo(dtype).max, np.iinfo(dtype).min
    one, two = np.array([1], dtype), np.array([2], dtype)
    for x, y in (([top], one), ([low], one), ([top // 2 + 1], two)):
        with pytest.raises(OverflowError, match="integer overflow"):
            checked(np.array(x, dtype), y)
    fine = np.array([top // 2], dtype)
    for got, want in zip(checked(fine, two), (fine + two, fine * two, fine - two), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_index_that_only_u64_holds():
    with pytest.raises(IndexError):
        tp.function(lambda a, i: a[i])(np.arange(3.0), np.uint64(2**64 - 1))


def test_halves_are_refused():
    with pytest.raises(tp.CompileError, match="float16"):
        tp.function(lambda a: a + 1)(np.ones(2, np.float16))
