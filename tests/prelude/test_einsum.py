"""np.einsum with '...', with lists of numbers, and with axes of length 1."""

import numpy as np
import pytest

import tapeless as tp
from tests.prelude.judged import judge
from tests.prelude.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "ellipsis": (
        lambda x, m, c: (
            np.einsum("...i,i->...", m, x),
            np.einsum("...i,...i", c, m),
            np.einsum("...ij,...kj->...ik", c, m),
            np.einsum("i...->...i", c),
            np.einsum("i...", c),
            np.einsum("...->...", m),
            np.einsum("...", x),
            np.einsum("...,i->...i", 2.0, x),
            np.einsum("i...j,j", c, x),
        ),
        VECTOR[:4],
        MATRIX,
        CUBE,
    ),
    "ones": (
        lambda m, c: (
            np.einsum("...ij,...ij->...", c[:, :1], c),
            np.einsum("...i,...i->...i", m[None], c),
            np.einsum("ij,ij->i", m[:1], m),
            np.einsum("ij,ij->ij", m[:, :1], m),
            np.einsum("ij->j", m[:1]),
            np.einsum("ij,ij->ij", m[:1], m[1:2]),
        ),
        MATRIX,
        CUBE,
    ),
    "lists": (
        lambda m, c: (
            np.einsum(m, [0, 1], [1, 0]),
            np.einsum(m, [0, 1], m, [2, 1], [0, 2]),
            np.einsum(m, [1, 0]),
            np.einsum(c, [Ellipsis, 3], m, [..., 3], [...]),
            np.einsum(m, (0, 1), m, (0, 1)),
            np.einsum(c, [30, 2, ...]),
        ),
        MATRIX,
        CUBE,
    ),
    "integers": (
        lambda w: (np.einsum("...ii->...", w), np.einsum("...ii->...i", w), np.einsum("ij,jk", w, w, optimize=True)),
        WHOLE,
    ),
}
SLOPES = {
    "all": (
        lambda m, c: (
            np.einsum("...i,...i", c, m),
            np.einsum("ij,ij->ij", m[:, :1], m),
            np.einsum(m, [0, 1], m, [2, 1], [0, 2]),
        ),
        MATRIX,
        CUBE,
    ),
}
ERRORS = {
    "too many": (ValueError, lambda x: np.einsum("ij...", x), VECTOR),
}
REFUSED = {
    "not in the result": (lambda c, m: np.einsum("...i,...i->", c, m), CUBE, MATRIX),
    "four dots": (lambda c: np.einsum("....i", c), CUBE),
    "one dot": (lambda c: np.einsum(".i", c), CUBE),
    "twice": (lambda c: np.einsum("...i...", c), CUBE),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    function, *args = VALUES[name]
    judge(function, *args, order=0)


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    function, *args = SLOPES[name]
    judge(function, *args)


@pytest.mark.parametrize("name", ERRORS)
def test_numpy_raises_too(name):
    kind, function, *args = ERRORS[name]
    for call in (function, tp.function(function)):
        with pytest.raises(kind):
            call(*args)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, *args = REFUSED[name]
    with pytest.raises(tp.CompileError):
        tp.function(function)(*args)
