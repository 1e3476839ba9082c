"""Loops over the bits of words are written in vectors by the emitter: which ones, for vectors of any width, with all kinds of numbers."""

from dataclasses import replace

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm import host
from tests.lower.test_bits import in_half, matrix, of_two, shortest, where_others_are, with_sums_of_rows

SIZES = [1, 7, 63, 64, 65, 100, 130]

pytestmark = pytest.mark.usefixtures("compiled_anew")


def of_whole_numbers(d):
    """Sums of whole numbers beside decisions."""
    a = (d * 10.0).astype(np.int64)
    for k in range(3):
        a = np.where(a > k, a - 1, a * 2)
    return np.sum(a * d)


def of_small_numbers(d):
    a = d.astype(np.float32)
    for _ in range(3):
        a = np.where(a > 0.5, a * np.float32(0.9), a + a[0])
    return np.sum(a * d)


def of_roots(d):
    """Operations that are calls of LLVM."""
    for _ in range(3):
        d = np.where(np.abs(d) > 0.5, np.sqrt(np.abs(d)) * 0.5, -d * 1.5)
    return np.sum(d)


PROGRAMS = [
    shortest, in_half, of_two, where_others_are, with_sums_of_rows, of_whole_numbers, of_small_numbers, of_roots,
]  # fmt: skip


@pytest.fixture(params=[0, 128, 256, 512])
def any_width(request, monkeypatch):
    target = replace(host.host(), vector_width=request.param)
    monkeypatch.setattr(host, "host", lambda: target)


@pytest.mark.usefixtures("any_width")
@pytest.mark.parametrize("f", PROGRAMS)
def test_vectors_of_any_width(f) -> None:
    gradient = tp.grad(tp.function(f, threads=1, cache=False))
    digits = 1e-5 if f is of_small_numbers else 1e-12  # sums in single precision, in another order
    for n in SIZES:
        d = matrix(n)
        np.testing.assert_allclose(gradient(d), tp.grad(f, recover="store")(d), rtol=digits)


@pytest.mark.parametrize("f", [shortest, in_half, of_two])
def test_words_are_made_and_read_in_lanes(f) -> None:
    text = tp.grad(f).ir(matrix(8), stage="loops")
    assert text.count("{lanes}") >= 4  # whole words and the rest, on the way there and back
    assert " to i8" in tp.grad(f).ir(matrix(8), stage="llvm") or host.host().vector_width != 512


def by_the_sine(d):
    """No vector form of ours."""
    for _ in range(3):
        d = np.where(np.sin(d) > 0.5, d * 0.9, d * 1.1)
    return np.sum(d)


def test_others_are_left_to_llvm() -> None:
    text = tp.grad(by_the_sine).ir(matrix(8), stage="loops")
    assert "{simd}" in text and text.count("{lanes}") <= 2  # the way back only asks for bits
    d = matrix(70)
    np.testing.assert_array_equal(tp.grad(by_the_sine)(d), tp.grad(by_the_sine, recover="store")(d))


def test_a_sum_is_whole_wherever_it_is_read() -> None:
    """Between the words, in branches, and after it was set anew."""

    def f(d, w):
        total = 0.0
        for i in range(len(d)):
            row = d[i]
            for _ in range(2):
                row = np.where(row > w, row * 0.5, row + 0.1)
            part = np.sum(row * row)
            if part > 20.0:
                part = part * 0.5
            total += part
        return total

    d = matrix(150)
    stored = tp.grad(f, (0, 1), recover="store")(d, np.full(150, 0.4))
    for found, expected in zip(tp.grad(f, (0, 1))(d, np.full(150, 0.4)), stored, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
