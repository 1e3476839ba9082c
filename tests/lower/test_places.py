"""Note [Quotients by products] of lower/core/code.py: where elements are, by machine code."""

import numpy as np
import pytest

from tapeless.ir.types import DType, i64
from tapeless.lower.core.code import ONE, Code, Loc, places
from tests.backends.native import call, param, prepare, program, var

HIGHEST = 2**62 - 1


def found(shape: tuple[int, ...], numbers: list[int], known: int | None = None) -> list[tuple[int, ...]]:
    """Indices of elements with these numbers. `known`: this axis has its size at compile time."""
    sizes = [var(f"d{k}") for k in range(len(shape))]
    axes = [i64(size) if k == known else v for k, (v, size) in enumerate(zip(sizes, shape))]
    given, out, n = param("given", DType.i64, written=False), param("out", DType.i64), var("n")
    source, target = (Loc(b, DType.i64, (n,), (ONE,)) for b in (given, out))
    code = Code()
    at = places(code, axes)
    with code.loop(n) as i:
        for k, index in enumerate(at.of(code.load(source, [i]))):
            code.store(target, [code.add(code.mul(i, i64(len(shape))), i64(k))], index)
    written = program([given, out, n, *sizes], code.block)
    answer = np.zeros(len(numbers) * len(shape), np.int64)
    assert call(written, *prepare(written), np.array(numbers), answer, len(numbers), *shape).code == 0
    return [tuple(map(int, row)) for row in answer.reshape(len(numbers), -1)]


def expected(shape: tuple[int, ...], number: int) -> tuple[int, ...]:
    indices = []
    for d in reversed(shape[1:]):
        number, index = divmod(number, d)
        indices.append(index)
    return (number, *reversed(indices))


SIZES = [
    1,
    2,
    3,
    5,
    7,
    10,
    64,
    127,
    128,
    129,
    1000,
    4096,
    46341,
    65535,
    65536,
    65537,
    2**20 + 7,
    2**30 - 1,
    2**30,
    2**30 + 1,
    2**31 + 3,
    2**39 + 1,
    2**41 + 1,
    2**42 - 1,
    3 * 2**45 + 7,
    2**60,
    2**61 - 1,
]


def test_quotients_by_every_kind_of_size():
    """The last numbers before the next quotient are where a factor that is too small or too large shows."""
    for d in SIZES:
        rows = HIGHEST // d
        edges = [q * d + off for q in (0, 1, 2, rows // 2, rows - 1, rows) for off in (-1, 0, 1, d - 1)]
        numbers = sorted({n for n in edges if 0 <= n < rows * d})
        assert found((rows, d), numbers) == [expected((rows, d), n) for n in numbers], d


@pytest.mark.parametrize("known", [None, 1, 2])
def test_several_axes(known: int | None):
    shape = (11, 7, 13)
    assert found(shape, list(range(1001)), known) == [expected(shape, n) for n in range(1001)]


def test_one_axis_is_the_number_itself():
    assert found((7,), [0, 6]) == [(0,), (6,)]
